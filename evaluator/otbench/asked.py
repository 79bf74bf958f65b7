"""Which methods a run is asked for: by name, in a file, of other packages, and the trivial."""

import ast
import cmath
import importlib.util
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from baselines.player import Seat
from baselines.registry import BUILT_IN, MethodDescription, method_names
from data.errors import MisuseError
from evaluator.otbench.apart import AnySource, find_source, isolation_of
from evaluator.otbench.load import Release

# A file's path may hold brackets: only those after its class count.
_CALL = re.compile(r"(?P<spec>.*\.py:[^()]+|[^()]+)\((?P<inside>.*)\)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedMethod:
    """A method to evaluate: where its class is, and its hyperparameters."""

    source: AnySource
    hyperparameters: dict[str, Any]

    @property
    def description(self) -> MethodDescription:
        """What the method says of itself."""
        return self.source.description

    @property
    def label(self) -> str:
        """Its name, with the hyperparameters that were given."""
        given = ", ".join(f"{key}={value!r}" for key, value in self.hyperparameters.items())
        return f"{self.description.name}({given})" if given else self.description.name

    def seat(self) -> Seat:
        """Return a new, untrained method; a third-party one runs in its own process."""
        return self.source.seat(self.hyperparameters)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The methods of a run.

    Attributes
    ----------
    asked
        All, in order.
    named
        Labels of those that were asked for by name; the others are there because they always are.
    notes
        What was left out, and why; and which methods could have read the release from disk.
    """

    asked: tuple[AskedMethod, ...]
    named: frozenset[str]
    notes: tuple[str, ...]


def parse_method(text: str, release: Release | None = None) -> AskedMethod:
    """Return the method that a text names.

    Parameters
    ----------
    text
        ``name``, ``file.py:Class``, or either with hyperparameters in brackets, as in
        ``deer(mean="arithmetic")``.
    release
        What it is to run on: its files are hidden from third-party methods.

    Raises
    ------
    data.errors.MisuseError
        If there is none, or the brackets hold something else than ``key=literal``.
    """
    match = _CALL.fullmatch(text.strip())
    spec, inside = (match["spec"], match["inside"]) if match else (text.strip(), "")
    try:
        call = ast.parse(f"f({inside})", mode="eval").body
        if not isinstance(call, ast.Call) or call.args:
            raise ValueError
        given = {str(each.arg): ast.literal_eval(each.value) for each in call.keywords}
        # JSON, and so a row, knows no infinity.
        if len(given) < len(call.keywords) or "None" in given or not _is_finite(given):
            raise ValueError
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError) as error:
        raise MisuseError(
            f"method {text!r}: hyperparameters are written as name(key=value, ...), each once, its "
            "value a finite number, a text in quotes or a tuple"
        ) from error
    return ask(spec, given, release)


def _is_finite(value: Any) -> bool:
    if isinstance(value, dict):
        return all(_is_finite(each) for each in value.values())
    if isinstance(value, list | tuple | set):
        return all(_is_finite(each) for each in value)
    return not isinstance(value, float | complex) or cmath.isfinite(value)


def ask(spec: str, hyperparameters: dict[str, Any], release: Release | None = None) -> AskedMethod:
    """Return a method with its hyperparameters; see :func:`parse_method`."""
    hidden = () if release is None else (release.folder.resolve(),)
    source = find_source(spec, hyperparameters, hidden)
    return AskedMethod(source=source, hyperparameters=hyperparameters)


def methods_for(release: Release, texts: Sequence[str] = ()) -> Chosen:
    """Return the methods to run.

    Parameters
    ----------
    release
        What they are to run on.
    texts
        See :func:`parse_method`. Without any: all that there are, without those whose signals the
        release lacks, or whose packages are not installed. The trivial ones are always among
        them: every plot has them.

    Raises
    ------
    data.errors.MisuseError
        If a method named needs what the release lacks, or is named twice.
    """
    named = [parse_method(text, release) for text in texts]
    labels = [asked.label for asked in named]
    for label in labels:
        if labels.count(label) > 1:
            raise MisuseError(f"method {label} is named twice")
    for asked in named:
        missing = release.lacking(asked.description.needs)
        if missing:
            raise MisuseError(
                f"method {asked.label} needs {', '.join(missing)}, which {release.folder} does not "
                "hold; make the campaign's signals with `stp signals CAMPAIGN` and release it again"
            )
    others, notes = ([], []) if texts else _of_other_packages(release)
    always = [ask(name, {}) for name in BUILT_IN]
    others = [asked for asked in always if asked.description.trivial or not texts] + others
    for asked in others:
        why = _why_not(asked, release)
        if asked.label in labels:
            continue
        if why:
            notes.append(f"{asked.label} is left out: {why}")
        else:
            named.append(asked)
    notes += [
        f"{asked.label} runs in a process of its own, but in no sandbox: it could read the release "
        "from disk; install bubblewrap (Debian: apt-get install bubblewrap)"
        for asked in named
        if isolation_of(asked.source) == "process"
    ]
    return Chosen(asked=tuple(named), named=frozenset(labels), notes=tuple(notes))


def _of_other_packages(release: Release) -> tuple[list[AskedMethod], list[str]]:
    """Return the methods that other packages register, and why some cannot be used."""
    found: dict[str, AskedMethod] = {}
    broken = []
    for name in method_names():
        if name in BUILT_IN:
            continue
        try:
            asked = ask(name, {}, release)
        except MisuseError as error:
            broken.append(f"{name} is left out: {error}")
            continue
        if asked.label in found:
            broken.append(f"{name} is left out: another package's is called {asked.label} too")
        else:
            found[asked.label] = asked
    return list(found.values()), broken


def _why_not(asked: AskedMethod, release: Release) -> str:
    """Return why a method that nobody named cannot run; empty if it can."""
    missing = release.lacking(asked.description.needs)
    if missing:
        return f"the release holds no {', '.join(missing)}"
    packages = [name for name in asked.description.packages if not _is_installed(name)]
    return f"it needs {', '.join(packages)}" if packages else ""


def _is_installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except (ImportError, ValueError):
        return False
