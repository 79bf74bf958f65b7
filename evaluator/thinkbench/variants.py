"""What runs differ in: size and precision of their models, budget, cap, style, tools.

What was asked is in a run's record. What its model is comes from the run's attributes
(``--attribute parameters=14e9``), and where these say nothing from the model's name: ``-7B-`` is a
size, ``GPTQ-Int4`` a precision.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, get_args

from evaluator.thinkbench.stored import ThinkRun
from stp.asking import ReasoningEffort

UNQUANTISED: Final = "unquantised"
_SIZE: Final = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)([bBmM])(?![A-Za-z])")
_QUANTISED: Final = re.compile(
    r"(?i)(?:[-_. ](?:gptq|awq|bnb|gguf))*[-_. ]"
    r"(?:int(?P<a>[2-8])|w(?P<b>[2-8])a\d+|(?P<c>[2-8])[-_ ]?bits?|q(?P<d>[2-8])(?:_\w+)*"
    r"|(?P<four>nf4|awq)|(?P<eight>fp8))(?![A-Za-z0-9])"
)
_EFFORTS: Final = get_args(ReasoningEffort)
_FIRST: Final = -1.0
_MOST: Final = 1e15
_LAST: Final = float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """What is known of a run's model.

    Attributes
    ----------
    model
        Its name without owner or folder, whatever the run is called.
    plain
        The same without its precision: quantised variants of a model share it.
    family
        The attribute ``family``; else the name without size and precision.
    billions
        Parameters in billions: the attribute ``parameters``, else from the name; None if unknown.
    precision
        The attribute ``precision``, such as ``"4-bit"``; else from the name.
    training
        The attribute ``training``; ``""`` where nobody said.
    baseline
        The attribute ``baseline``: the name of the run that this one is measured against.
    """

    model: str
    plain: str
    family: str
    billions: float | None
    precision: str
    training: str
    baseline: str


def variant_of(run: ThinkRun) -> Variant:
    """Return what is known of a run's model."""
    attributes = run.record.attributes
    name = str(run.record.models["model"].get("model") or run.name).rstrip("/").rpartition("/")[2]
    plain = _QUANTISED.sub("", name) or name
    size = _SIZE.search(plain)
    family = _SIZE.sub("", plain)
    family = re.sub(r"([-_. ])[-_. ]+", r"\1", family).strip("-_. ") or plain
    return Variant(
        model=name,
        plain=plain,
        family=str(attributes.get("family", family)),
        billions=_billions(attributes.get("parameters"), size),
        precision=str(attributes.get("precision", _precision(name))),
        training=str(attributes.get("training", "")),
        baseline=str(attributes.get("baseline", "")),
    )


def _billions(given: Any, size: "re.Match[str] | None") -> float | None:
    if isinstance(given, int | float) and not isinstance(given, bool) and given > 0:
        return float(given) / 1e9
    if size is None:
        return None
    return float(size[1]) / (1 if size[2] in "bB" else 1000) or None


def _precision(name: str) -> str:
    found = _QUANTISED.search(name)
    if found is None:
        return UNQUANTISED
    if found["four"] or found["eight"]:
        return "4-bit" if found["four"] else "8-bit"
    return f"{next(found[key] for key in 'abcd' if found[key])}-bit"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSetting:
    """One way in which a run was made: what it is called, and its place among the others."""

    label: str
    place: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """Runs that differ in one thing alone, model by model.

    Attributes
    ----------
    kind
        ``"budget"``, ``"cap"``, ``"precision"``, ``"style"`` or ``"tools"``.
    title
        What differs, in words.
    groups
        By what the runs of a group share: two or more runs with their settings, in order.
    """

    kind: str
    title: str
    groups: Mapping[str, Sequence[tuple[RunSetting, ThinkRun]]]


def _budget(run: ThinkRun) -> RunSetting:
    settings = run.config.settings
    if settings.thinking == "off":
        return RunSetting(label="no thinking", place=_FIRST)
    if settings.thinking_tokens is not None:
        return RunSetting(
            label=f"{settings.thinking_tokens:,} tokens", place=float(settings.thinking_tokens)
        )
    if settings.reasoning_effort is not None:
        # After all budgets in tokens, from the least effort on.
        place = _MOST + _EFFORTS.index(settings.reasoning_effort)
        return RunSetting(label=f"{settings.reasoning_effort} effort", place=place)
    return RunSetting(label="no budget", place=_LAST)


def _cap(run: ThinkRun) -> RunSetting:
    cap = run.config.settings.max_tokens
    # The paper's order: what the model does by itself, then capped ones from the largest on.
    return (
        RunSetting(label="no cap", place=-_LAST)
        if cap is None
        else RunSetting(label=f"{cap:,} tokens", place=-float(cap))
    )


def _precision_setting(run: ThinkRun) -> RunSetting:
    precision = variant_of(run).precision
    bits = re.match(r"\d+", precision)
    return RunSetting(label=precision, place=-float(bits[0]) if bits else -_LAST)


def _style(run: ThinkRun) -> RunSetting:
    order = ("standard", "concise", "ultra-concise")
    return RunSetting(label=run.config.style, place=float(order.index(run.config.style)))


def _tools(run: ThinkRun) -> RunSetting:
    tools = run.config.settings.tools
    return RunSetting(label=" + ".join(tools) or "no tools", place=float(len(tools)))


_KINDS: Final[dict[str, tuple[str, Callable[[ThinkRun], RunSetting]]]] = {
    "budget": ("thinking budget or effort", _budget),
    "cap": ("cap on all tokens", _cap),
    "precision": ("precision", _precision_setting),
    "style": ("prompt style", _style),
    "tools": ("tools", _tools),
}


def studies(runs: Sequence[ThinkRun]) -> list[Study]:
    """Return every study that there is among runs: what they differ in, and in nothing else.

    Parameters
    ----------
    runs
        Of one comparison.

    Returns
    -------
    list of Study
        Each with at least one group of two settings.
    """
    found = []
    for kind, (title, setting) in _KINDS.items():
        groups: dict[tuple[str, ...], list[tuple[RunSetting, ThinkRun]]] = {}
        for run in runs:
            groups.setdefault(_shared(run, kind), []).append((setting(run), run))
        kept = {
            key: sorted(group, key=lambda pair: pair[0].place)
            for key, group in groups.items()
            if len({made.label for made, _ in group}) > 1
        }
        if kept:
            order = sorted(kept, key=lambda key: _by_size(kept[key][0][1]))
            named = {_group_name(key, kept): kept[key] for key in order}
            found.append(Study(kind=kind, title=title, groups=named))
    return found


def _shared(run: ThinkRun, kind: str) -> tuple[str, ...]:
    """Return all that the runs of a group have in common: model first, then settings."""
    variant = variant_of(run)
    settings = run.config.settings
    others = [
        made(run).label for name, (_, made) in _KINDS.items() if name not in (kind, "precision")
    ]
    return (
        variant.plain if kind == "precision" else variant.model,
        *others,
        f"{settings.temperature}, {settings.top_p}",
    )


def _group_name(key: tuple[str, ...], groups: Mapping[tuple[str, ...], Any]) -> str:
    """Return a group's model, and what else tells it from other groups of that model."""
    same = [other for other in groups if other[0] == key[0]]
    odd = [
        part
        for place, part in enumerate(key[1:], start=1)
        if len({other[place] for other in same}) > 1
    ]
    return ", ".join([key[0], *odd])


def _by_size(run: ThinkRun) -> tuple[str, float]:
    variant = variant_of(run)
    return variant.family, variant.billions or 0.0


def families(runs: Sequence[ThinkRun]) -> dict[str, list[tuple[float, ThinkRun]]]:
    """Return families of models of several sizes, smallest first.

    Of a size that was run in several ways the plainest counts: unquantised, without cap, budget,
    tools or another style; then the first in ``runs``.
    """
    found: dict[str, dict[float, ThinkRun]] = {}
    for run in sorted(runs, key=_special):
        variant = variant_of(run)
        if variant.billions is not None:
            found.setdefault(variant.family, {}).setdefault(variant.billions, run)
    return {
        family: sorted(sizes.items()) for family, sizes in sorted(found.items()) if len(sizes) > 1
    }


def _special(run: ThinkRun) -> int:
    """Return in how many things a run is not as a model is by itself."""
    settings = run.config.settings
    return sum(
        (
            variant_of(run).precision != UNQUANTISED,
            settings.max_tokens is not None,
            _budget(run).place != _LAST,
            run.config.style != "standard",
            bool(settings.tools),
        )
    )


def matched_pairs(runs: Sequence[ThinkRun]) -> list[tuple[ThinkRun, list[ThinkRun]]]:
    """Return runs that others name as their ``baseline``, each with these (paper 000, Table 13)."""
    by_name = {run.name: run for run in runs}
    found: dict[str, list[ThinkRun]] = {}
    for run in runs:
        baseline = variant_of(run).baseline
        if baseline in by_name and baseline != run.name:
            found.setdefault(baseline, []).append(run)
    return [
        (by_name[name], sorted(others, key=lambda run: run.measures.overall.tokens.mean))
        for name, others in found.items()
    ]
