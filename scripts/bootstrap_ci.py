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
    python scripts/bootstrap_ci.py campaign-folder another-campaign --difference M1-M2

A difference is of two value columns (methods on the same trajectories) or of two models.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

from data.errors import MisuseError, StpError
from evaluator.analysis.bootstrap import (
    LEVEL,
    REPLICATES,
    STATISTICS,
    CurveBootstrap,
    IntervalEstimate,
    Quantity,
    bootstrap_values,
)
from evaluator.analysis.groups import completeness, pool_benchmarks, recorded_groups
from evaluator.analysis.missing import missing_sentences
from evaluator.analysis.nesting import AVERAGE
from evaluator.analysis.overthinking import per_trajectory
from stp.campaign.curves import load_curves
from stp.cli.progress import shown_progress
from stp.seeds import PAPER_SEED

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
        typer.Option(
            help="Two value columns or two models as A-B: the paired interval of A minus B."
        ),
    ] = None,
    replicates: Annotated[int, typer.Option(min=1)] = REPLICATES,
    seed: Annotated[int, typer.Option(min=0)] = PAPER_SEED,
    level: Annotated[float, typer.Option(help="Of the intervals, between 0 and 1.")] = LEVEL,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Threads; the result does not depend on it.")
    ] = None,
    allow_incomplete: Annotated[
        bool, typer.Option(help="Of campaigns, take what is graded, and say what is missing.")
    ] = False,
    csv: Annotated[bool, typer.Option(help="Print CSV with full digits.")] = False,
) -> None:
    """Print bootstrap intervals."""
    try:
        frame, names = read_values(sources, allow_incomplete=allow_incomplete)
        columns = value_columns(frame, column)
        pairs = [_pair(text, columns, names.get("model", [])) for text in difference or []]
        if not 0 < level < 1:
            raise MisuseError(f"--level must lie between 0 and 1, not {level}")
        with shown_progress() as progress:
            drawn = bootstrap_values(
                frame,
                columns,
                replicates=replicates,
                seed=seed,
                workers=workers,
                progress=progress.stage("bootstrap"),
            )
    except StpError as error:
        typer.echo(f"error: {error}", err=True)
        raise SystemExit(error.exit_code) from error
    table = interval_table(drawn, pairs, names, level)
    typer.echo(table.to_csv(index=False) if csv else table.round(5).to_string(index=False))


def read_values(
    sources: Sequence[str], *, allow_incomplete: bool = False
) -> tuple[pd.DataFrame, Names]:
    """Return per-trajectory values with numbers as keys, and the names behind the numbers.

    Raises
    ------
    data.errors.StpError
        If a source cannot be read, a needed column is missing, or campaigns are incomplete (unless
        allowed; then what is missing is written to standard error).
    """
    files = [source for source in sources if Path(source).suffix in (".csv", ".parquet")]
    if not files:
        measured = load_curves(sources, allow_incomplete=allow_incomplete)
        curves = pool_benchmarks(measured, recorded_groups(sources))
        unequal = completeness(curves).missing
        if unequal and not allow_incomplete:
            raise MisuseError(
                f"models do not have the same questions and trajectories: {' '.join(unequal)} "
                "Take what is there with --allow-incomplete"
            )
        for sentence in (*missing_sentences(sources, measured), *unequal):
            typer.echo(sentence, err=True)
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


@dataclass(frozen=True, slots=True)
class Pair:
    """A difference a - b of two value columns, or of two models where those are given."""

    a: str
    b: str
    models: tuple[int, int] | None = None


def _pair(text: str, columns: list[str], models: list[str]) -> Pair:
    for cut in (i for i, letter in enumerate(text) if letter == "-"):
        a, b = text[:cut], text[cut + 1 :]
        if a in columns and b in columns:
            return Pair(a, b)
        if a in models and b in models:
            return Pair(a, b, (models.index(a), models.index(b)))
    raise MisuseError(
        f"--difference {text!r} is not A-B with two of the value columns {', '.join(columns)}, or "
        f"of the models {', '.join(models)}"
    )


def interval_table(
    drawn: CurveBootstrap, pairs: list[Pair], names: Names, level: float
) -> pd.DataFrame:
    """Return a row per statistic (or difference), model and benchmark, averages last."""
    rows = []

    def add(statistic: str, model: str, benchmark: int, interval: IntervalEstimate) -> None:
        place = {"model": model, "benchmark": _name(names, "benchmark", benchmark)}
        ends = {"estimate": interval.estimate, "low": interval.low, "high": interval.high}
        rows.append({"statistic": statistic, **place, **ends})

    methods = [pair for pair in pairs if pair.models is None]
    for model, benchmark in product(drawn.models, drawn.benchmarks):
        at = {
            name: Quantity(statistic=name, model=model, benchmark=benchmark)
            for name in drawn.statistics
        }
        label = _name(names, "model", model)
        for name, quantity in at.items():
            add(name, label, benchmark, drawn.interval(quantity, level=level))
        for pair in methods:
            apart = drawn.difference(at[pair.a], at[pair.b], level=level)
            add(f"{pair.a} - {pair.b}", label, benchmark, apart)
    for pair in pairs:
        for benchmark, name in product(drawn.benchmarks if pair.models else (), drawn.statistics):
            one, other = (
                Quantity(statistic=name, model=model, benchmark=benchmark)
                for model in pair.models or ()
            )
            apart = drawn.difference(one, other, level=level)
            add(name, f"{pair.a} - {pair.b}", benchmark, apart)
    return pd.DataFrame(rows).dropna().sort_values("statistic", kind="stable")


def _name(names: Names, key: str, number: int) -> str:
    if number == AVERAGE:
        return "average"
    known = names.get(key, [])
    return known[number] if number < len(known) else str(number)


if __name__ == "__main__":
    typer.run(main)
