"""The bridge to step-wise truncation probing: how much of the lost area stopping could win back.

A campaign probes the same questions at every step. Its curves tell what each trajectory would have
answered had it stopped after k steps, so AUC_OAA can be computed for any rule of stopping: for the
rule that knows everything, for rules that lose no accuracy, and for the methods of OTBench.
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd

from data.errors import MisuseError
from data.hints import did_you_mean
from data.optimal.general import ANSWER_TYPES
from data.progress import NOBODY, Progress
from evaluator.analysis.bootstrap import Quantity, bootstrap_values
from evaluator.optimal.metrics import T_MAX, check_t_max
from evaluator.optimal.subsets import BENCHMARKS, GENERAL, Side
from evaluator.present.names import benchmark_name, model_name
from oracle import exact_frontier
from stp.curves import Curves
from stp.ragged import IntArray, first_greatest, first_where
from stp.seeds import PAPER_SEED

if TYPE_CHECKING:
    from evaluator.otbench.load import Release

GRID = 101
REPLICATES = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopping:
    """What a rule of stopping comes to in one cell.

    Attributes
    ----------
    rule
        Its name.
    accuracy
        Mean over questions, fraction.
    thinking_tokens
        Mean tokens of thinking kept.
    auc_oaa
        AUC_OAA, fraction.
    """

    rule: str
    accuracy: float
    thinking_tokens: float
    auc_oaa: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BridgeCell:
    """One model on one benchmark: AUC_OAA beside the early-exit frontier.

    Attributes
    ----------
    model, benchmark
        Names.
    questions, trajectories
        How many.
    rules
        ``full thinking``, ``no thinking``, ``earliest stop that loses no accuracy`` (each
        trajectory's first position that is no worse than its end), and ``ideal for the area``.
    lost_area
        Accuracy with full thinking minus its AUC_OAA: what thinking tokens cost.
    won_back
        AUC_OAA of the ideal rule minus that of full thinking.
    won_back_low, won_back_high
        Its paired bootstrap interval.
    thresholds, full_curve, ideal_curve
        OAA_t of full thinking and of the ideal rule; float64 ``(t_max + 1,)``.
    budgets, frontier
        The early-exit frontier: fractions of full thinking's tokens, and the best accuracy there.
    """

    model: str
    benchmark: str
    questions: int
    trajectories: int
    rules: tuple[Stopping, ...]
    lost_area: float
    won_back: float
    won_back_low: float
    won_back_high: float
    thresholds: IntArray
    full_curve: npt.NDArray[np.float64]
    ideal_curve: npt.NDArray[np.float64]
    budgets: npt.NDArray[np.float64]
    frontier: npt.NDArray[np.float64]

    @property
    def won_back_fraction(self) -> float:
        """Area won back over area lost; above 1 if stopping also makes answers right.

        NaN if nothing was lost.
        """
        return self.won_back / self.lost_area if self.lost_area > 0 else float("nan")


def stop_ideal(curves: Curves, t_max: int = T_MAX) -> IntArray:
    """Return the position of each trajectory that gives the greatest area; int64 ``(s,)``.

    The earliest of several. Positions count within the trajectory, from 0.
    """
    area = curves.correct.astype(np.int64) * np.maximum(0, check_t_max(t_max) - curves.tokens)
    return first_greatest(area, curves.trajectory_offsets)


def stop_without_loss(curves: Curves) -> IntArray:
    """Return each trajectory's first position that is at least as right as its end; int64."""
    enough = curves.correct >= curves.spread(curves.full_correct_s)
    return first_where(enough, curves.trajectory_offsets) - curves.trajectory_offsets[:-1]


def per_stop(curves: Curves, stop: IntArray, t_max: int = T_MAX) -> pd.DataFrame:
    """Return what each trajectory comes to when it stops at a position.

    Parameters
    ----------
    curves
        Any number of cells.
    stop
        A position of each trajectory, from 0; int64 ``(trajectories,)``.
    t_max
        Of AUC_OAA.

    Returns
    -------
    pandas.DataFrame
        ``model``, ``benchmark``, ``question``, ``sample``, ``right`` (the fraction of right
        probes), ``thinking_tokens`` and ``area``; a row for each trajectory.
    """
    check_t_max(t_max)
    rows = curves.rows_at(stop)
    correct, tokens = curves.correct[rows].astype(np.int64), curves.tokens[rows]
    return pd.DataFrame(
        {
            "model": curves.model,
            "benchmark": curves.benchmark,
            "question": curves.question,
            "sample": curves.sample,
            "right": correct / curves.probes,
            "thinking_tokens": tokens,
            "area": correct * np.maximum(0, t_max - tokens) / (curves.probes * t_max),
        }
    )


def bridge(
    curves: Curves,
    *,
    t_max: int = T_MAX,
    replicates: int = REPLICATES,
    seed: int = PAPER_SEED,
    progress: Progress = NOBODY,
) -> list[BridgeCell]:
    """Put AUC_OAA beside the early-exit frontier, cell by cell.

    Parameters
    ----------
    curves
        Of a campaign; see :func:`stp.campaign.load_curves`.
    t_max
        Of AUC_OAA.
    replicates, seed
        Of the bootstrap; 0 replicates for none.
    progress
        Told how many cells are done, and of how many.

    Notes
    -----
    The ideal rule chooses by the probes that it is scored on, so it is a bound: chance makes it
    look a little better than any rule could be.
    """
    check_t_max(t_max)
    found: list[BridgeCell] = []
    cells = list(curves.cells())
    for model, benchmark, cell in cells:
        progress(len(found), len(cells))
        names = (model_name(curves, model), benchmark_name(curves, benchmark))
        found.append(_cell(cell, *names, t_max, replicates, seed))
    return found


def _cell(
    curves: Curves, model: str, benchmark: str, t_max: int, replicates: int, seed: int
) -> BridgeCell:
    frames = {rule: per_stop(curves, stop, t_max) for rule, stop in _stops(curves, t_max).items()}
    rules = tuple(_stopping(rule, frame) for rule, frame in frames.items())
    full, ideal = rules[0], rules[-1]
    paired = frames["full thinking"].assign(
        full_area=frames["full thinking"]["area"], ideal_area=frames["ideal for the area"]["area"]
    )
    low = high = np.nan
    if replicates:
        won = bootstrap_values(
            paired, ("ideal_area", "full_area"), replicates=replicates, seed=seed
        ).difference(Quantity(statistic="ideal_area"), Quantity(statistic="full_area"))
        low, high = won.low, won.high
    frontier = exact_frontier(curves, "early_exit")
    budgets = np.linspace(0.0, 1.0, GRID)
    return BridgeCell(
        model=model,
        benchmark=benchmark,
        questions=int(np.unique(curves.question).size),
        trajectories=curves.trajectories,
        rules=rules,
        lost_area=full.accuracy - full.auc_oaa,
        won_back=ideal.auc_oaa - full.auc_oaa,
        won_back_low=low,
        won_back_high=high,
        thresholds=np.arange(t_max + 1),
        full_curve=_oaa(frames["full thinking"], t_max),
        ideal_curve=_oaa(frames["ideal for the area"], t_max),
        budgets=budgets,
        frontier=np.asarray(frontier.accuracy_at(budgets)),
    )


def _stops(curves: Curves, t_max: int) -> dict[str, IntArray]:
    """Return where each rule stops every trajectory."""
    last = np.diff(curves.trajectory_offsets) - 1
    return {
        "full thinking": last,
        "no thinking": np.zeros_like(last),
        "earliest stop that loses no accuracy": stop_without_loss(curves),
        "ideal for the area": stop_ideal(curves, t_max),
    }


def _stopping(rule: str, frame: pd.DataFrame) -> Stopping:
    means = frame.groupby("question")[["right", "thinking_tokens", "area"]].mean().mean()
    return Stopping(
        rule=rule,
        accuracy=float(means["right"]),
        thinking_tokens=float(means["thinking_tokens"]),
        auc_oaa=float(means["area"]),
    )


def _oaa(frame: pd.DataFrame, t_max: int) -> npt.NDArray[np.float64]:
    """Return OAA_t for t = 0..t_max; trajectories of a question weigh its part together."""
    sizes = frame.groupby("question")["right"].transform("size").to_numpy(float)
    weights = frame["right"].to_numpy(float) / (sizes * frame["question"].nunique())
    tokens = frame["thinking_tokens"].to_numpy(np.int64)
    inside = tokens < t_max
    counts = np.bincount(tokens[inside], weights=weights[inside], minlength=t_max)
    return np.concatenate([np.zeros(1), np.cumsum(counts)])


def sides_of(
    benchmarks: Sequence[str], ovt: Sequence[str] = (), ut: Sequence[str] = ()
) -> dict[str, tuple[str, Side]]:
    """Return subset and side of each benchmark of a campaign or release.

    Parameters
    ----------
    benchmarks
        Names of benchmarks; not of reporting groups.
    ovt, ut
        Benchmarks by side. One that the paper has on that side stays in the paper's subset; any
        other is a subset of its own.

    Raises
    ------
    data.errors.MisuseError
        If nobody says on which side a benchmark lies, or a side is given twice or to none.
    """
    paper: dict[str, tuple[str, Side]] = {
        name: (subset, side) for subset, (side, names) in BENCHMARKS.items() for name in names
    }
    paper |= {f"{GENERAL}-{kind}": (GENERAL, "ovt") for kind in ANSWER_TYPES}
    given: dict[str, Side] = {}
    sides: tuple[tuple[Side, Sequence[str]], ...] = (("ovt", ovt), ("ut", ut))
    for side, named in sides:
        for name in named:
            if name not in benchmarks:
                raise MisuseError(
                    f"--{side} {shlex.quote(name)}: no such benchmark; there are "
                    f"{', '.join(map(shlex.quote, benchmarks))}{did_you_mean(name, benchmarks)}"
                )
            if given.setdefault(name, side) != side:
                raise MisuseError(f"benchmark {name!r} is named by --ovt and by --ut; name one")
    found: dict[str, tuple[str, Side]] = {}
    for name in benchmarks:
        chosen = given.get(name)
        if name in paper and chosen in (None, paper[name][1]):
            found[name] = paper[name]
        elif chosen is not None:
            found[name] = (f"{chosen}:{name}", chosen)
        else:
            raise MisuseError(
                f"benchmark {name!r} is in no subset of the paper; say where it counts, with "
                f"--ovt {shlex.quote(name)} or --ut {shlex.quote(name)}"
            )
    return found


def released_benchmarks(release: "Release") -> tuple[str, ...]:
    """Return the names of a release's benchmarks; its curves have those of reporting groups."""
    return tuple(dict.fromkeys(benchmark for benchmark, _ in release.question_ids))


def method_rows(
    release: "Release",
    methods: Sequence[str] = (),
    *,
    sides: Mapping[str, tuple[str, Side]],
    progress: Progress = NOBODY,
) -> pd.DataFrame:
    """Return the decisions of OTBench's methods on test questions as rows for ``score``.

    Parameters
    ----------
    release
        Of a campaign on these benchmarks; see :mod:`evaluator.otbench`.
    methods
        As ``stp otbench run`` takes them; without any, all that the release has signals for.
    sides
        From :func:`sides_of`, of :func:`released_benchmarks`.
    progress
        As of :func:`evaluator.otbench.run.evaluate`.

    Returns
    -------
    pandas.DataFrame
        One row for each method and trajectory: ``right`` is the fraction of right probes at the
        stop that the method's selected setting chose, ``thinking_tokens`` what it had thought.
        Output tokens are not known of a thinking that was cut.
    """
    from evaluator.otbench.asked import methods_for
    from evaluator.otbench.run import evaluate, split_curves

    curves = split_curves(release, "test")
    frames = []
    for each in methods_for(release, methods).asked:
        result = evaluate(release, each, progress=progress)
        stop = result.decided.stop[result.selected]
        frames.append(per_stop(curves, stop).assign(method=result.label))
    return _rows(frames, curves, dict(enumerate(release.question_ids)), sides)


def campaign_rows(
    curves: Curves, *, sides: Mapping[str, tuple[str, Side]], t_max: int = T_MAX
) -> pd.DataFrame:
    """Return what the rules of stopping come to on a campaign as rows for ``score``.

    Methods are called ``probed: RULE``; they are not the run's own answers, but those that probing
    sampled at the end, at the start, and where the rules of :class:`BridgeCell` stop.
    """
    frames = [
        per_stop(curves, stop).assign(method=f"probed: {rule}")
        for rule, stop in _stops(curves, t_max).items()
    ]
    pairs = np.unique(np.stack([curves.question, curves.benchmark], axis=1), axis=0)
    questions = {
        question: (
            curves.benchmark_names[benchmark],
            curves.question_names[question] if curves.question_names else f"{question}",
        )
        for question, benchmark in pairs.tolist()
    }
    return _rows(frames, curves, questions, sides)


def _rows(
    frames: Sequence[pd.DataFrame],
    curves: Curves,
    questions: Mapping[int, tuple[str, str]],
    sides: Mapping[str, tuple[str, Side]],
) -> pd.DataFrame:
    """Return stops of several methods under the names that graded rows have.

    ``questions`` has benchmark and id of each question number. Keys are those of
    :attr:`evaluator.optimal.subsets.Item.key`: the bootstrap draws the same questions for a run.
    """
    rows = pd.concat(frames, ignore_index=True)
    placed = {}
    for number, (benchmark, name) in questions.items():
        subset, side = sides[benchmark]
        # A run asks OvT-General as one benchmark, whatever the type of its answers.
        asked = GENERAL if subset == GENERAL else benchmark
        placed[number] = (subset, side, asked, f"{subset}/{asked}/{name}")
    columns = zip(*(placed[number] for number in rows["question"].tolist()), strict=True)
    named = dict(zip(("subset", "side", "benchmark", "question"), columns, strict=True))
    rows = rows.assign(
        model=rows["model"].map(lambda m: model_name(curves, m)),
        output_tokens=np.nan,
        credit=np.nan,
        **named,
    )
    return rows.drop(columns="area")
