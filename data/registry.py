"""The benchmarks that there are, found without registration code.

Three places are looked at: the modules of ``data.catalogue`` (each exposes ``BENCHMARK`` or
``BENCHMARKS``), the entry points of other packages in the group ``stp.benchmarks``, and a user's
own TOML file, named by its path.
"""

import importlib
import pkgutil
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from data import catalogue
from data.benchmark import Benchmark
from data.errors import MisuseError
from data.hints import near_names

ENTRY_POINT_GROUP = "stp.benchmarks"
"""Entry points of this group load to a Benchmark, or to a function that returns one."""


def benchmark_names() -> tuple[str, ...]:
    """Return the names of all benchmarks found, sorted.

    Examples
    --------
    >>> "gsm8k" in benchmark_names()
    True
    """
    return tuple(sorted({*_catalogue(), *_entry_points()}))


def get_benchmark(name: str) -> Benchmark:
    """Return a benchmark by its name, or from a TOML file by its path.

    Parameters
    ----------
    name
        One of :func:`benchmark_names`, or a path that ends in ``.toml`` (see :mod:`data.custom`).

    Raises
    ------
    data.errors.MisuseError
        If there is none of that name; the message offers the nearest ones.
    """
    if name.endswith(".toml"):
        from data.custom import load_custom

        return load_custom(Path(name))
    found = _catalogue().get(name)
    if found is not None:
        return found
    point = _entry_points().get(name)
    if point is not None:
        return _load_entry_point(point, name)
    near = near_names(name, benchmark_names())
    hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
    raise MisuseError(
        f"no benchmark {name!r}; {hint}`stp benchmarks` lists them all, and a path that ends in "
        ".toml is a benchmark of your own"
    )


@cache
def _catalogue() -> dict[str, Benchmark]:
    found: dict[str, Benchmark] = {}
    for module_info in pkgutil.iter_modules(catalogue.__path__):
        module = importlib.import_module(f"{catalogue.__name__}.{module_info.name}")
        exposed = [getattr(module, "BENCHMARK", None), *getattr(module, "BENCHMARKS", ())]
        for benchmark in exposed:
            if benchmark is None:
                continue
            if benchmark.name in found:
                raise MisuseError(f"{module.__name__}: the benchmark {benchmark.name!r} exists")
            found[benchmark.name] = benchmark
    return found


@cache
def _entry_points() -> dict[str, EntryPoint]:
    return {
        point.name: point
        for point in entry_points(group=ENTRY_POINT_GROUP)
        if point.name not in _catalogue()
    }


def _load_entry_point(point: EntryPoint, name: str) -> Benchmark:
    loaded: object = point.load()
    value = loaded() if callable(loaded) else loaded
    if isinstance(value, (str, Path)):
        value = get_benchmark(str(value))
    if not isinstance(value, Benchmark):
        raise MisuseError(
            f"entry point {name!r} ({point.value}) gives a {type(value).__name__}, "
            "not a data.Benchmark"
        )
    if value.name != name:
        raise MisuseError(
            f"entry point {name!r} ({point.value}) gives the benchmark {value.name!r}; "
            "both must have one name"
        )
    return value
