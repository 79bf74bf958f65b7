"""Print bootstrap intervals of a table of per-trajectory values, or of campaigns.

The resampling is the project's own (paired, two-stage, 10,000 replicates, seed 20260721), for
values from anywhere. A table is CSV or Parquet with a row per trajectory::

    model,benchmark,question,sample,overthinking_ratio,accuracy_degradation
    qwen3-4b,MATH-500,math500-17,0,0.81,0.0625

``model``, ``benchmark``, ``question`` and ``sample`` may be numbers or names; ``model``,
``benchmark`` and ``sample`` may be left out. Every other column of numbers is a value, unless
``--column`` names some. An empty field is a value that is not known::

    python scripts/bootstrap_ci.py values.csv
    python scripts/bootstrap_ci.py values.csv --difference mine-theirs
    python scripts/bootstrap_ci.py campaign-folder another-campaign --replicates 2000
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer
from rich.progress import Progress

from data.errors import MisuseError, StpError
from evaluator.bootstrap import (
    LEVEL,
    REPLICATES,
    SEED,
    STATISTICS,
    Bootstrap,
    Quantity,
    bootstrap_values,
)
from evaluator.groups import pool_benchmarks, recorded_groups
from evaluator.nesting import AVERAGE
from evaluator.overthinking import per_trajectory
from stp.campaign.curves import load_curves

KEYS = ("model", "benchmark", "question", "sample")
Names = dict[str, list[str]]


def main(
    sources: Annotated[
        list[str], typer.Argument(help="One .csv or .parquet file, or campaigns' folders.")
    ],
    column: Annotated[
        list[str] | None, typer.Option(help="A value column; may be given several times.")
    ] = None,
    difference: Annotated[
        list[str] | None,
        typer.Option(help="Two value columns as A-B: the paired interval of A minus B."),
    ] = None,
    replicates: Annotated[int, typer.Option(min=1)] = REPLICATES,
    seed: Annotated[int, typer.Option(min=0)] = SEED,
    level: Annotated[float, typer.Option(help="Of the intervals, between 0 and 1.")] = LEVEL,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Threads; the result does not depend on it.")
    ] = None,
    csv: Annotated[bool, typer.Option(help="Print CSV with full digits.")] = False,
) -> None:
    """Print bootstrap intervals."""
    try:
        frame, names = read_values(sources)
        columns = value_columns(frame, column)
        pairs = [_pair(text, columns) for text in difference or []]
        if not 0 < level < 1:
            raise MisuseError(f"--level must lie between 0 and 1, not {level}")
        with Progress(transient=True) as bar:
            task = bar.add_task("resampling", total=replicates)
            drawn = bootstrap_values(
                frame,
                columns,
                replicates=replicates,
                seed=seed,
                workers=workers,
                progress=lambda done, total: bar.update(task, completed=done),
            )
    except StpError as error:
        typer.echo(f"error: {error}", err=True)
        raise SystemExit(error.exit_code) from error
    table = interval_table(drawn, pairs, names, level)
    typer.echo(table.to_csv(index=False) if csv else table.round(5).to_string(index=False))


def read_values(sources: Sequence[str]) -> tuple[pd.DataFrame, Names]:
    """Return per-trajectory values with numbers as keys, and the names behind the numbers.

    Raises
    ------
    data.errors.StpError
        If a source cannot be read or a needed column is missing.
    """
    files = [source for source in sources if Path(source).suffix in (".csv", ".parquet")]
    if not files:
        curves = pool_benchmarks(load_curves(sources), recorded_groups(sources))
        frame = per_trajectory(curves)[[*KEYS, *STATISTICS]]
        return frame, {
            "model": list(curves.model_names),
            "benchmark": list(curves.benchmark_names),
        }
    if len(sources) > 1:
        raise MisuseError("give one table, or campaigns' folders; not several tables, not both")
    frame = _read_table(Path(files[0]))
    if "question" not in frame:
        raise MisuseError(f"{files[0]}: there is no column 'question'; questions are resampled")
    names: Names = {}
    for key in KEYS:
        if key not in frame:
            frame[key] = 0 if key != "sample" else frame.groupby([*KEYS[:3]]).cumcount()
        if frame[key].isna().any():
            raise MisuseError(f"{files[0]}: the column {key!r} has an empty field")
        if key in ("model", "benchmark", "question"):
            # A question is itself within its benchmark only.
            parts = frame[key].astype(str)
            parts = frame["benchmark"].astype(str) + "\0" + parts if key == "question" else parts
            frame[f"{key} number"], found = pd.factorize(parts, sort=True)
            names[key] = [str(name) for name in found]
    for key in names:
        frame[key] = frame.pop(f"{key} number")
    try:
        frame["sample"] = frame["sample"].astype("int64")
    except (TypeError, ValueError) as error:
        raise MisuseError(f"{files[0]}: the column 'sample' must hold whole numbers") from error
    return frame, names


def _read_table(path: Path) -> pd.DataFrame:
    try:
        return pd.read_csv(path) if path.suffix == ".csv" else pd.read_parquet(path)
    except (OSError, ValueError) as error:
        raise MisuseError(f"{path}: cannot be read: {str(error).splitlines()[0]}") from error


def value_columns(frame: pd.DataFrame, wanted: list[str] | None) -> list[str]:
    """Return the columns to resample: those wanted, or all that hold numbers."""
    numbers = [str(name) for name in frame.select_dtypes(["number", "bool"]) if name not in KEYS]
    for name in wanted or []:
        if name not in numbers:
            raise MisuseError(
                f"there is no column of numbers named {name!r}; there are {', '.join(numbers)}"
            )
    if not numbers:
        raise MisuseError("the table has no column of numbers besides its keys")
    return wanted or numbers


def _pair(text: str, columns: list[str]) -> tuple[str, str]:
    for cut in (i for i, letter in enumerate(text) if letter == "-"):
        if text[:cut] in columns and text[cut + 1 :] in columns:
            return text[:cut], text[cut + 1 :]
    raise MisuseError(
        f"--difference {text!r} is not A-B with two of the value columns {', '.join(columns)}"
    )


def interval_table(
    drawn: Bootstrap, pairs: list[tuple[str, str]], names: Names, level: float
) -> pd.DataFrame:
    """Return a row per statistic (or difference), model and benchmark, averages last."""
    rows = []
    for model in drawn.models:
        for benchmark in drawn.benchmarks:
            place = {"model": _name(names, "model", model)}
            place["benchmark"] = _name(names, "benchmark", benchmark)

            def at(name: str, m: int = model, b: int = benchmark) -> Quantity:
                return Quantity(statistic=name, model=m, benchmark=b)

            found = [(name, drawn.interval(at(name), level=level)) for name in drawn.statistics]
            found += [(f"{a} - {b}", drawn.difference(at(a), at(b), level=level)) for a, b in pairs]
            for name, interval in found:
                values = {
                    "estimate": interval.estimate,
                    "low": interval.low,
                    "high": interval.high,
                }
                rows.append({"statistic": name, **place, **values})
    return pd.DataFrame(rows).dropna().sort_values("statistic", kind="stable")


def _name(names: Names, key: str, number: int) -> str:
    if number == AVERAGE:
        return "average"
    known = names.get(key, [])
    return known[number] if number < len(known) else str(number)


if __name__ == "__main__":
    typer.run(main)
