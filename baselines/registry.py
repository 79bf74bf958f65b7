"""Methods by name: those of this project, those that other packages register, those in a file.

Finding a method imports its module. The evaluator does so only with this project's own methods;
third-party methods are found and run in their own process (:mod:`baselines.apart`).

Another package registers its methods as entry points of the group ``stp.methods``::

    [project.entry-points."stp.methods"]
    calm_ending = "my_package.calm:CalmEnding"

and a file needs no package: ``calm.py:CalmEnding``.
"""

import hashlib
import re
import sys
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from baselines.interface import EarlyExit, FixedBudget, Method, Router
from baselines.player import Player
from baselines.signals import check_needs
from data.errors import MisuseError
from data.hints import nearest
from oracle.actions import STRATEGIES, Strategy

GROUP = "stp.methods"
_LARGEST_FILE = 2**24
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")

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
class MethodDescription:
    """What a method says about itself; see :class:`baselines.interface.Method`.

    Attributes
    ----------
    spec
        What finds it again: a name, or ``file.py:Class``.
    origin
        ``"stp-engine"``, ``"package version"`` of an entry point, or ``"file sha256:..."``.
    name, strategy, needs, control, citation, trivial, packages
        As its class declares.
    """

    spec: str
    origin: str
    name: str
    strategy: Strategy
    needs: tuple[str, ...]
    control: str
    citation: str
    trivial: bool
    packages: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodSource:
    """A method's class, and where it comes from.

    Attributes
    ----------
    spec, origin
        See :class:`MethodDescription`.
    method
        The class.
    """

    spec: str
    method: type[Method]
    origin: str

    @property
    def description(self) -> MethodDescription:
        """What the class says of itself."""
        method = self.method
        return MethodDescription(
            spec=self.spec,
            origin=self.origin,
            name=method.name,
            strategy=method.strategy,
            needs=tuple(method.needs),
            control=method.control,
            citation=method.citation,
            trivial=method.trivial,
            packages=tuple(method.packages),
        )

    def seat(self, hyperparameters: dict[str, Any] | None = None) -> Player:
        """Return a new, untrained method in this process, at the table; see :meth:`make`."""
        return Player(self.make(hyperparameters))

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
        hints = _hints(self.method) if given else {}
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
    """Return the names of all methods that can be used by name."""
    return (*BUILT_IN, *(name for name in _registered() if name not in BUILT_IN))


def find_method(spec: str) -> MethodSource:
    """Import a method's class.

    Parameters
    ----------
    spec
        A name, or ``path/to/file.py:Class``.

    Raises
    ------
    data.errors.MisuseError
        If there is none of this name, the file or class is missing, or the class is not a method.
    """
    if spec in BUILT_IN:
        module, _, name = BUILT_IN[spec].partition(":")
        found = getattr(import_module(module), name)
        return MethodSource(spec=spec, method=_checked(found, spec), origin="stp-engine")
    return find_where(locate(spec))


@dataclass(frozen=True, slots=True, kw_only=True)
class Whereabouts:
    """Where a third-party method is, found without running any of it.

    Attributes
    ----------
    spec, origin
        See :class:`MethodDescription`.
    content
        Of its file; None for an entry point.
    value
        ``module:Class`` of an entry point, or the path and the class of a file.
    """

    spec: str
    origin: str
    content: bytes | None = field(repr=False)
    value: str


def locate(spec: str) -> Whereabouts:
    """Find a third-party method, without running any of it.

    Raises
    ------
    data.errors.MisuseError
        If there is none of this name, or its file cannot be read.
    """
    if spec.endswith(".py"):
        raise MisuseError(f"method {spec}: name its class too, as in {spec}:MyMethod")
    if ".py:" in spec:
        path, _, name = spec.rpartition(":")
        try:
            file = Path(path).expanduser()
            if file.exists() and not file.is_file():
                raise MisuseError(f"method {spec}: {file} is not a file")
            if file.stat().st_size > _LARGEST_FILE:
                raise MisuseError(f"method {spec}: {file} is too large for a program")
            content = file.read_bytes()
        except (OSError, ValueError, RuntimeError) as error:
            why = getattr(error, "strerror", None) or error
            raise MisuseError(f"method {spec}: cannot read {path}: {why}") from error
        origin = f"{file.name} sha256:{hashlib.sha256(content).hexdigest()}"
        value = f"{file.absolute()}:{name}"
        return Whereabouts(spec=spec, origin=origin, content=content, value=value)
    registered = _registered()
    if spec not in registered:
        near = nearest(spec, method_names())
        hint = f"did you mean {near!r}? There" if near else "there"
        raise MisuseError(
            f"there is no method {spec!r}; {hint} are {', '.join(method_names())}; or name a class "
            "in a file, as in my_method.py:MyMethod"
        )
    entry = registered[spec]
    origin = f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.value
    return Whereabouts(spec=spec, origin=origin, content=None, value=entry.value)


def find_where(where: Whereabouts) -> MethodSource:
    """Import the class of a third-party method.

    Raises
    ------
    data.errors.MisuseError
        If it cannot be imported, or the class is missing or no method.
    """
    if where.content is not None:
        found = _from_file(where, where.content)
    else:
        entry = EntryPoint(name=where.spec, value=where.value, group=GROUP)
        try:
            found = entry.load()
        except (ImportError, AttributeError, ValueError) as error:
            raise MisuseError(
                f"method {where.spec}: its package cannot be imported: {error}"
            ) from error
    return MethodSource(spec=where.spec, method=_checked(found, where.spec), origin=where.origin)


def _hints(method: type[Method]) -> dict[str, Any]:
    """Return the annotations of a class; none if they name what is there for checkers alone."""
    try:
        return get_type_hints(method)
    except NameError:
        return {}


def _registered() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=GROUP)}


def _from_file(where: Whereabouts, content: bytes) -> Any:
    path, _, name = where.value.rpartition(":")
    # A name of its own, so that it hides no other module; dataclasses look their module up there.
    module = ModuleType(f"stp_method_{hashlib.sha256(content).hexdigest()[:16]}")
    module.__file__ = path
    sys.modules[module.__name__] = module
    try:
        exec(compile(content, path, "exec"), module.__dict__)
    # Whatever a user's file does wrong is shown as theirs.
    except Exception as error:
        del sys.modules[module.__name__]
        raise MisuseError(
            f"method {where.spec}: {type(error).__name__} in {path}: {error}{what_it_sees(error)}"
        ) from error
    if not hasattr(module, name):
        raise MisuseError(f"method {where.spec}: {path} has no class {name}")
    return getattr(module, name)


def what_it_sees(error: BaseException) -> str:
    """Return a hint if a method's file looks for another file beside it; empty otherwise."""
    if isinstance(error, ModuleNotFoundError | FileNotFoundError):
        return (
            "; a method in a file sees that file alone: with modules or data of its own make it a "
            "package with an entry point"
        )
    return ""


def check_name(name: object, spec: str) -> None:
    """Refuse a name that cannot stand in files, tables and labels.

    Raises
    ------
    data.errors.MisuseError
        Says what a name is.
    """
    if not _NAME.fullmatch(str(name)):
        raise MisuseError(
            f"method {spec}: its name is {ascii(name)[:80]}; a name has small letters, digits and "
            "underscores, begins with a letter, and has at most 40"
        )


def _checked(found: Any, spec: str) -> type[Method]:
    """Refuse what is not a method, with what it lacks."""
    kinds = (Router, FixedBudget, EarlyExit)
    if not (isinstance(found, type) and issubclass(found, kinds)):
        raise MisuseError(
            f"method {spec}: {found!r} does not derive from baselines.Router, FixedBudget or "
            "EarlyExit"
        )
    if not getattr(found, "name", ""):
        raise MisuseError(f"method {spec}: the class {found.__name__} has no name; give it one")
    check_name(found.name, spec)
    if found.strategy not in STRATEGIES:
        raise MisuseError(f"method {spec}: unknown strategy {found.strategy!r}")
    needs: Any = found.needs
    if isinstance(needs, str):
        raise MisuseError(f"method {spec}: needs is a text; write needs = ({needs!r},)")
    check_needs(needs, method=found.name)
    return found
