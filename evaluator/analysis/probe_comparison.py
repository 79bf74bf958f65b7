"""Two campaigns that probed the same trajectories in two ways, side by side.

Answers that are opened for the model, or sampled differently, measure a different P(k) than free
ones. The difference is measured here, on the trajectories that both have.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.compute as pc

from data.errors import MisuseError
from data.progress import NOBODY, Progress
from evaluator.analysis.bootstrap import REPLICATES, Quantity, bootstrap_values
from evaluator.analysis.frontiers import STRATEGY_LABELS
from evaluator.analysis.nesting import AVERAGE, averages_of_cells
from evaluator.analysis.overthinking import per_trajectory
from evaluator.present.table import Table
from oracle.actions import STRATEGIES
from oracle.frontier import exact_frontier, grid_budgets
from stp.campaign.curves import load_curves
from stp.campaign.manifest import CellRecord
from stp.campaign.status import unit_state
from stp.campaign.store import Store
from stp.campaign.text import StoredTokenizer
from stp.curves import Curves
from stp.ragged import FloatArray
from stp.tokenizers import exact_ids

BUDGETS = (0.1, 0.25, 0.5, 1.0)
_LABELS = {
    "difference": "P(k), all positions",
    "zero": "P(0)",
    "full": "P(n)",
    "overthinking_ratio": "OR",
    "accuracy_degradation": "AD",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerTokens:
    """What a campaign's answers took: how many there are, and their generated tokens."""

    answers: int
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProbeComparison:
    """What two ways to probe say about the same trajectories.

    Attributes
    ----------
    sentences
        What is compared, and how far k* and P(k) agree.
    tables
        Differences with intervals; frontiers at some budgets; answers and tokens.
    """

    sentences: tuple[str, ...]
    tables: tuple[Table, ...]


def compare_probes(
    first: str | Path,
    second: str | Path,
    *,
    replicates: int = REPLICATES,
    progress: Progress = NOBODY,
) -> ProbeComparison:
    """Compare the probes of two graded campaigns.

    Parameters
    ----------
    first, second
        Their folders. Trajectories are the same if model, benchmark, question, number and
        every L(k) agree; those that only one has are left out.
    replicates
        Of the bootstrap over questions and trajectories.
    progress
        Told how far it is.

    Raises
    ------
    data.errors.MisuseError
        If they have no trajectory in common, or one of the same name that is another.
    data.errors.StoreError
        If a campaign is incomplete or damaged.
    """
    urls = (first, second)
    loaded = [load_curves(url, progress=progress.stage(f"reading {url}")) for url in urls]
    a, b = matched(*loaded, names=(str(first), str(second)))
    spent = [_answer_tokens(Store(url)) for url in urls]
    return ProbeComparison(
        sentences=tuple(_sentences(a, b, loaded)),
        tables=(
            _difference_table(a, b, replicates, progress.stage("bootstrap")),
            _frontier_table(a, b),
            _token_table(spent),
        ),
    )


def matched(first: Curves, second: Curves, *, names: tuple[str, str]) -> tuple[Curves, Curves]:
    """Return the trajectories that two values have in common, in the same order and numbering.

    Raises
    ------
    data.errors.MisuseError
        If there is none, or one has other positions in the two.
    """
    keys = [{key: s for s, key in enumerate(_keys(curves))} for curves in (first, second)]
    common = [key for key in keys[0] if key in keys[1]]
    if not common:
        raise MisuseError(
            f"{names[0]} and {names[1]} have no trajectory in common; compare campaigns of "
            "the same models and questions"
        )
    a, b = (
        curves.select([at[key] for key in common])
        for curves, at in zip((first, second), keys, strict=True)
    )
    same = np.array_equal(a.trajectory_offsets, b.trajectory_offsets)
    if not same or not np.array_equal(a.tokens, b.tokens):
        for s, key in enumerate(common):
            one, other = (c.select([s]).tokens for c in (a, b))
            if not np.array_equal(one, other):
                raise MisuseError(
                    f"trajectory {key[3]} of {key[2]} has {one.size} positions and {one[-1]} "
                    f"tokens in {names[0]}, and {other.size} and {other[-1]} in {names[1]}: they "
                    "thought differently; give both the same seed, generation and step_tokens"
                )
    return a, b


def _keys(curves: Curves) -> list[tuple[str, str, str, int]]:
    return [
        (curves.model_names[m], curves.benchmark_names[b], curves.question_names[q], s)
        for m, b, q, s in zip(
            curves.model.tolist(),
            curves.benchmark.tolist(),
            curves.question.tolist(),
            curves.sample.tolist(),
            strict=True,
        )
    ]


def difference_frame(a: Curves, b: Curves) -> pd.DataFrame:
    """Return, per trajectory, what the second way says minus what the first says."""
    one, other = per_trajectory(a), per_trajectory(b)
    gap = b.correct / b.probes - a.correct / a.probes
    starts, lengths = a.trajectory_offsets[:-1], np.diff(a.trajectory_offsets)
    frame = one[["model", "benchmark", "question", "sample"]].copy()
    frame["difference"] = np.add.reduceat(gap, starts) / lengths
    frame["zero"] = other["zero_accuracy"] - one["zero_accuracy"]
    frame["full"] = other["full_accuracy"] - one["full_accuracy"]
    for name in ("overthinking_ratio", "accuracy_degradation"):
        frame[name] = other[name] - one[name]
    return frame


def _difference_table(a: Curves, b: Curves, replicates: int, progress: Progress) -> Table:
    frame = difference_frame(a, b)
    drawn = bootstrap_values(frame, list(_LABELS), replicates=replicates, progress=progress)
    means = [pd.Series(_levels(curves)) for curves in (a, b)]
    rows = []
    for name in _LABELS:
        found = drawn.interval(Quantity(statistic=name))
        rows.append(
            [means[0][name], means[1][name], found.estimate, found.low, found.high],
        )
    return Table(
        name="differences",
        title="What the two ways to probe say: % and points, second minus first",
        frame=pd.DataFrame(
            100 * np.array(rows),
            index=pd.Index(list(_LABELS.values()), name="Quantity"),
            columns=["First", "Second", "Difference", "low", "high"],
        ),
        note=f"n = {a.trajectories:,} trajectories that both have; means over trajectories, "
        "differences averaged over questions, benchmarks and models, with 95 % intervals.",
    )


def _levels(curves: Curves) -> Mapping[str, float]:
    frame = per_trajectory(curves)
    lengths = np.diff(curves.trajectory_offsets)
    share = np.add.reduceat(curves.correct / curves.probes, curves.trajectory_offsets[:-1])
    return {
        "difference": float((share / lengths).mean()),
        "zero": float(frame["zero_accuracy"].mean()),
        "full": float(frame["full_accuracy"].mean()),
        "overthinking_ratio": float(frame["overthinking_ratio"].mean()),
        "accuracy_degradation": float(frame["accuracy_degradation"].mean()),
    }


def _sentences(a: Curves, b: Curves, loaded: list[Curves]) -> list[str]:
    one, other = per_trajectory(a), per_trajectory(b)
    same = float((one["k_star"] == other["k_star"]).mean())
    apart = (one["k_star_tokens"] - other["k_star_tokens"]).abs()
    share = float((apart / one["full_tokens"].clip(lower=1)).mean())
    sentences = [
        f"{a.trajectories:,} trajectories and {a.positions:,} positions are in both, with "
        f"{a.probes} and {b.probes} probes at each.",
        f"k* is the same position in {100 * same:.0f} % of the trajectories; it is "
        f"{100 * share:.0f} % of the thinking apart on average.",
    ]
    spread = _spread_beyond_noise(a, b)
    if spread is not None:
        sentences.append(
            f"P(k) at a position differs by {100 * spread:.1f} points (root mean square), once the "
            "noise of the probes is taken off."
        )
    left = [curves.trajectories - a.trajectories for curves in loaded]
    if any(left):
        sentences.append(f"Left out, since only one has them: {left[0]} and {left[1]}.")
    return sentences


def _spread_beyond_noise(a: Curves, b: Curves) -> float | None:
    """Return the root mean square difference of P without binomial noise; None for one probe."""
    if a.probes < 2 or b.probes < 2:
        return None
    shares: list[FloatArray] = [c.correct / c.probes for c in (a, b)]
    # P (1 - P) / (m - 1) of the shares is an unbiased estimate of a share's variance.
    noise = sum(
        float((p * (1 - p) / (c.probes - 1)).mean()) for p, c in zip(shares, (a, b), strict=True)
    )
    return float(np.sqrt(max(float(((shares[1] - shares[0]) ** 2).mean()) - noise, 0.0)))


def _frontier_table(a: Curves, b: Curves) -> Table:
    columns: dict[tuple[str, str], FloatArray] = {}
    for strategy in STRATEGIES:
        for label, curves in (("first", a), ("second", b)):
            keys, values = [], []
            for model, benchmark, cell in curves.cells():
                frontier = exact_frontier(cell, strategy)
                reward = frontier.reward_within(grid_budgets(frontier.full_cost, 20))
                places = [round(20 * budget) for budget in BUDGETS]
                keys.append((model, benchmark))
                values.append(np.asarray(reward[places] / frontier.probes, np.float64))
            columns[STRATEGY_LABELS[strategy], label] = (
                100 * averages_of_cells(keys, values)[AVERAGE, AVERAGE]
            )
    frame = pd.DataFrame(columns)
    frame.index = pd.Index([f"{budget:.0%}" for budget in BUDGETS], name="Budget")
    return Table(
        name="frontiers",
        title="Best accuracy in % by budget, as each way to probe measures it",
        frame=frame,
        note="Averages over cells. With more probes a frontier is less biased upwards.",
    )


def _token_table(spent: list[AnswerTokens]) -> Table:
    return Table(
        name="answer-tokens",
        title="Answers of the probes, and the tokens generated in them",
        frame=pd.DataFrame(
            {
                "Answers": [one.answers for one in spent],
                "Tokens": [one.tokens for one in spent],
                "Tokens each": [one.tokens / max(1, one.answers) for one in spent],
            },
            index=pd.Index(["first", "second"], name="Campaign"),
        ),
        formats={"Tokens each": ".1f"},
        note="What was written for the model (answer_opening) is not counted.",
    )


def _answer_tokens(store: Store) -> AnswerTokens:
    config, manifest = store.read_campaign()
    opened = _opening_tokens(store, config.probing.answer_opening, tuple(manifest.cells))
    answers = tokens = 0
    for record in manifest.cells:
        for unit in store.plan(config, record):
            if not unit_state(store, unit).probed:
                continue
            rows = store.read_shard("probes", unit.shard("probes"))
            made = int(pc.sum(pc.not_equal(rows["finish"], "too_long")).as_py() or 0)
            lengths = int(pc.sum(pc.list_value_length(rows["answer_ids"])).as_py() or 0)
            answers += made
            tokens += lengths - made * opened[record.model]
    return AnswerTokens(answers=answers, tokens=tokens)


def _opening_tokens(store: Store, opening: str, cells: Sequence[CellRecord]) -> dict[str, int]:
    """Return how many tokens of every answer were written for each model."""
    return {
        record.model: len(exact_ids(StoredTokenizer(store, record.model).fast, opening))
        for record in cells
    }
