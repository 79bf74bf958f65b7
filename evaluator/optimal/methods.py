"""How a model is asked to think: modes, prompt suffixes and routers (paper 004, section 3.3).

A *mode* is asked for; a *router* is made of the responses of two modes, choosing one of them for
each question. Methods that stop the thinking before its end come from step-wise truncation probing
(:mod:`evaluator.optimal.bridging`).
"""

import re
from dataclasses import dataclass, replace
from typing import Literal

from data.errors import MisuseError
from data.hints import did_you_mean
from data.prompts import Prompts
from stp.asking import Settings

THINKING, NO_THINKING = "thinking", "no-thinking"
ROUTER, ORACLE_ROUTER = "router", "oracle-router"

_ROUTE = re.compile(r"\broute\b[\s*_`\"':=\-]*(simple|complex)\b", re.IGNORECASE)
_ALONE = re.compile(r"[\s*_`\"'.]*(simple|complex)[\s*_`\"'.!]*", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class AskingMode:
    """A way of asking.

    Attributes
    ----------
    name
        Short, for files and tables.
    thinking
        What is asked for; ``"default"`` for models that have no choice.
    prompt
        Name of the prompt (:mod:`data.prompts`) that follows every question, or ``""``.
    """

    name: str
    thinking: Literal["default", "on", "off"]
    prompt: str = ""

    def settings(self, common: Settings, prompts: Prompts) -> Settings:
        """Return the settings of a run, asked in this way and in these words."""
        suffix = prompts.text(self.prompt) if self.prompt else common.prompt_suffix
        return replace(common, thinking=self.thinking, prompt_suffix=suffix)


MODES = {
    mode.name: mode
    for mode in (
        AskingMode(name="default", thinking="default"),
        AskingMode(name=THINKING, thinking="on"),
        AskingMode(name=NO_THINKING, thinking="off"),
        AskingMode(name="no-overthinking", thinking="on", prompt="no-overthinking"),
        AskingMode(name="step-by-step", thinking="on", prompt="step-by-step"),
    )
}
"""What a model can be asked for."""

ROUTERS = (ROUTER, ORACLE_ROUTER)
METHODS = (*MODES, *ROUTERS)


def check_methods(names: tuple[str, ...]) -> None:
    """Check the methods of a run.

    Raises
    ------
    data.errors.MisuseError
        If one is unknown or named twice, or a router lacks one of its two modes.
    """
    if not names:
        raise MisuseError(f"no method; choose from {', '.join(METHODS)}")
    for name in names:
        if name not in METHODS:
            raise MisuseError(
                f"no method {name!r}{did_you_mean(name, METHODS)} (there are {', '.join(METHODS)})"
            )
        if names.count(name) > 1:
            raise MisuseError(f"the method {name} is named twice")
        if name in ROUTERS and not {THINKING, NO_THINKING} <= set(names):
            raise MisuseError(f"{name} chooses between thinking and no-thinking: name both too")


def read_route(reply: str) -> bool | None:
    """Read whether a router model calls a question complex; None if it says neither.

    Examples
    --------
    >>> read_route("Route: simple"), read_route("It is complex to say.") is None
    (False, True)
    """
    found = _ROUTE.findall(reply)
    if found:
        return bool(found[-1].lower() == "complex")
    alone = _ALONE.fullmatch(reply)
    return None if alone is None else alone.group(1).lower() == "complex"
