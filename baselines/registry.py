"""Methods by name: those of this project, those that other packages register, those in a file.

Another package registers its methods as entry points of the group ``stp.methods``::

    [project.entry-points."stp.methods"]
    calm_ending = "my_package.calm:CalmEnding"

and a file needs no package: ``calm.py:CalmEnding``.
"""

import difflib
import hashlib
import importlib.util
import sys
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from baselines.interface import EarlyExit, FixedBudget, Method, Router
from baselines.signals import check_needs
from data.errors import MisuseError
from oracle.actions import STRATEGIES

GROUP = "stp.methods"

BUILT_IN: dict[str, str] = {
    "think_switcher": "baselines.think_switcher:ThinkSwitcher",
    "predictive_scheduling": "baselines.predictive_scheduling:PredictiveScheduling",
    "think_brake": "baselines.think_brake:ThinkBrake",
    "never_think": "baselines.never_think:NeverThink",
    "always_think": "baselines.always_think:AlwaysThink",
    "think_share": "baselines.think_share:ThinkShare",
    "constant_cap": "baselines.constant_cap:ConstantCap",
    "constant_fraction": "baselines.constant_fraction:ConstantFraction",
    "no_thinking": "baselines.no_thinking:NoThinking",
    "perplexity_router": "baselines.perplexity_router:PerplexityRouter",
    "greedy_scheduling": "baselines.greedy_scheduling:GreedyScheduling",
    "answer_convergence": "baselines.answer_convergence:AnswerConvergence",
    "dynasor": "baselines.dynasor:Dynasor",
    "deer": "baselines.deer:Deer",
    "end_entropy": "baselines.end_entropy:EndEntropy",
    "answer_entropy": "baselines.answer_entropy:AnswerEntropy",
    "hidden_probe": "baselines.hidden_probe:HiddenProbe",
}
"""The methods of this project: the paper's three, the trivial lines, and the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodSource:
    """Where a method's class comes from.

    Attributes
    ----------
    spec
        What finds it again: a name, or ``file.py:Class``.
    method
        The class.
    origin
        ``"stp-engine"``, ``"package version"`` of an entry point, or ``"file sha256:..."``.
    ours
        Whether it is one of this project's: others run in a process of their own.
    """

    spec: str
    method: type[Method]
    origin: str
    ours: bool = False

    def make(self, hyperparameters: dict[str, Any] | None = None) -> Method:
        """Return a new, untrained method.

        Raises
        ------
        data.errors.MisuseError
            If the class does not take these hyperparameters.
        """
        given = {
            # JSON knows no tuples; hyperparameters are never lists.
            key: tuple(value) if isinstance(value, list) else value
            for key, value in (hyperparameters or {}).items()
        }
        fields = {
            name: field
            for name, field in getattr(self.method, "__dataclass_fields__", {}).items()
            if field.init
        }
        hints = get_type_hints(self.method)
        for key, value in given.items():
            if fields and key not in fields:
                raise MisuseError(
                    f"method {self.spec}: no hyperparameter {key!r}; it has {', '.join(fields)}"
                )
            allowed = get_args(hints.get(key)) if get_origin(hints.get(key)) is Literal else ()
            if allowed and value not in allowed:
                raise MisuseError(
                    f"method {self.spec}: {key} is {value!r}; it is one of "
                    f"{', '.join(map(repr, allowed))}"
                )
        try:
            return self.method(**given)
        except TypeError as error:
            raise MisuseError(f"method {self.spec}: {error}") from error


def method_names() -> tuple[str, ...]:
    """Return the names of all methods that can be had by name."""
    return (*BUILT_IN, *(name for name in _registered() if name not in BUILT_IN))


def find_method(spec: str) -> MethodSource:
    """Return a method's class.

    Parameters
    ----------
    spec
        A name, or ``path/to/file.py:Class``.

    Raises
    ------
    data.errors.MisuseError
        If there is none of this name, the file or class is missing, or the class is no method.
    """
    if ".py:" in spec:
        return _from_file(spec)
    if spec in BUILT_IN:
        module, _, name = BUILT_IN[spec].partition(":")
        found = getattr(import_module(module), name)
        return MethodSource(spec=spec, method=_checked(found, spec), origin="stp-engine", ours=True)
    registered = _registered()
    if spec not in registered:
        near = difflib.get_close_matches(spec, method_names(), n=1)
        hint = f"did you mean {near[0]!r}? There" if near else "there"
        raise MisuseError(
            f"there is no method {spec!r}; {hint} are {', '.join(method_names())}; or name a class "
            "in a file, as in my_method.py:MyMethod"
        )
    entry = registered[spec]
    try:
        found = entry.load()
    except (ImportError, AttributeError) as error:
        raise MisuseError(f"method {spec}: its package cannot be imported: {error}") from error
    origin = f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.value
    return MethodSource(spec=spec, method=_checked(found, spec), origin=origin)


def _registered() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=GROUP)}


def _from_file(spec: str) -> MethodSource:
    path_text, _, name = spec.rpartition(":")
    path = Path(path_text).expanduser()
    try:
        content = path.read_bytes()
    except OSError as error:
        raise MisuseError(f"method {spec}: cannot read {path}: {error.strerror}") from error
    digest = hashlib.sha256(content).hexdigest()
    # A name of its own, so that it hides no other module; dataclasses look their module up there.
    module_name = f"stp_method_{digest[:16]}"
    module_spec = importlib.util.spec_from_file_location(module_name, path)
    if module_spec is None or module_spec.loader is None:
        raise MisuseError(f"method {spec}: {path} is no Python file")
    module = importlib.util.module_from_spec(module_spec)
    sys.modules[module_name] = module
    try:
        module_spec.loader.exec_module(module)
    # Whatever a user's file does wrong is shown as theirs.
    except Exception as error:
        del sys.modules[module_name]
        raise MisuseError(f"method {spec}: {type(error).__name__} in {path}: {error}") from error
    if not hasattr(module, name):
        raise MisuseError(f"method {spec}: {path} has no class {name}")
    found = getattr(module, name)
    return MethodSource(
        spec=spec, method=_checked(found, spec), origin=f"{path.name} sha256:{digest}"
    )


def _checked(found: Any, spec: str) -> type[Method]:
    """Refuse what is no method, with what it lacks."""
    kinds = (Router, FixedBudget, EarlyExit)
    if not (isinstance(found, type) and issubclass(found, kinds)):
        raise MisuseError(
            f"method {spec}: {found!r} does not derive from baselines.Router, FixedBudget or "
            "EarlyExit"
        )
    if not getattr(found, "name", ""):
        raise MisuseError(f"method {spec}: the class {found.__name__} has no name; give it one")
    if found.strategy not in STRATEGIES:
        raise MisuseError(f"method {spec}: unknown strategy {found.strategy!r}")
    check_needs(found.needs, method=found.name)
    return found
