"""From a release to a method and a setting: what keeps accuracy, or stays within a budget.

Chosen on validation questions among all methods of this project; what to expect is given for the
validation questions too, with an interval over questions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

from baselines.interface import Setting
from baselines.registry import BUILT_IN
from baselines.signals import with_costs
from data.errors import MisuseError
from data.progress import NOBODY, Progress
from evaluator.analysis.intervals import central_range
from evaluator.live.compare import question_shares
from evaluator.live.policy import model_number
from evaluator.otbench.asked import parse_method
from evaluator.otbench.decide import decide
from evaluator.otbench.load import Release, load_release
from evaluator.otbench.run import train
from stp.curves import Curves


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A method and a setting, and what to expect of them.

    Attributes
    ----------
    method, setting
        What was chosen.
    accuracy, full_accuracy
        Percent right on validation questions, with the method and with full thinking.
    accuracy_change
        Ends of the interval of the difference, in points.
    tokens
        Thinking and signal tokens, in percent of full thinking's.
    tokens_interval
        Its ends.
    questions
        How many there are.
    """

    method: str
    setting: Setting
    accuracy: float
    full_accuracy: float
    accuracy_change: tuple[float, float]
    tokens: float
    tokens_interval: tuple[float, float]
    questions: int


def choose(
    release: Release | Path,
    *,
    model: str | None = None,
    methods: Sequence[str] = (),
    tokens: Fraction | None = None,
    replicates: int = 10_000,
    progress: Progress = NOBODY,
) -> Choice:
    """Choose method and setting on validation questions.

    Parameters
    ----------
    release
        The release, or its folder.
    model
        Which of its models; the only one when left out.
    methods
        To choose from; this project's that the release has signals for when empty.
    tokens
        Most tokens, signals included, as a share of full thinking's: the best accuracy within it.
        None: the fewest tokens that keep full thinking's accuracy.
    replicates
        Of the bootstrap over questions.
    progress
        Told of the methods.

    Raises
    ------
    data.errors.MisuseError
        If nothing keeps the accuracy, or nothing stays within the budget.
    """
    if not isinstance(release, Release):
        release = load_release(release, progress=progress)
    number = model_number(release, model)
    names = list(methods) or [
        name for name in BUILT_IN if not release.lacking(parse_method(name).description.needs)
    ]
    best: tuple[tuple[float, float], str, Setting, np.ndarray, np.ndarray] | None = None
    questions = np.empty(0)
    for place, name in enumerate(names, start=1):
        stage = progress.stage(f"{name} ({place} of {len(names)})")
        asked = parse_method(name, release)
        needs = with_costs(asked.description.needs)
        train_, validation = (
            release.measurements(number, split, needs) for split in ("train", "validation")
        )
        trained = train(asked, train_, validation)
        decided = decide(
            trained.start, trained.description, validation, release.lot_q, progress=stage
        )
        curves = validation.curves
        questions = np.unique(curves.question)
        full = _means(curves, np.diff(curves.trajectory_offsets) - 1, np.zeros(curves.trajectories))
        for index, setting in enumerate(decided.settings):
            found = _means(curves, decided.stop[index], decided.signal_tokens[index])
            accuracy, cost = found.mean(axis=0)
            share = cost / max(full[:, 1].mean(), 1e-9)
            if tokens is None:
                fits, rank = accuracy >= full[:, 0].mean() - 1e-9, (share, -accuracy)
            else:
                fits, rank = share <= float(tokens) + 1e-9, (-accuracy, share)
            if fits and (best is None or rank < best[0]):
                best = rank, asked.label, setting, found, full
    if best is None:
        what = "keeps full thinking's accuracy" if tokens is None else "stays within the budget"
        raise MisuseError(f"{release.folder}: no setting of {', '.join(names)} {what}")
    _, label, setting, found, full = best
    shares = question_shares(questions.size, replicates)
    change = central_range(shares @ (found[:, 0] - full[:, 0]))
    ratio = 100 * (shares @ found[:, 1]) / np.maximum(shares @ full[:, 1], 1e-9)
    spread = central_range(ratio)
    return Choice(
        method=label,
        setting=setting,
        accuracy=float(found[:, 0].mean()),
        full_accuracy=float(full[:, 0].mean()),
        accuracy_change=(float(change[0]), float(change[1])),
        tokens=float(100 * found[:, 1].mean() / max(full[:, 1].mean(), 1e-9)),
        tokens_interval=(float(spread[0]), float(spread[1])),
        questions=int(questions.size),
    )


def _means(curves: Curves, stop: np.ndarray, signal_tokens: np.ndarray) -> np.ndarray:
    """Return of every question percent right and all tokens; float64 ``(questions, 2)``."""
    rows = curves.trajectory_offsets[:-1] + stop
    right = 100.0 * curves.correct[rows] / curves.probes
    cost = curves.tokens[rows] + signal_tokens
    places = np.unique(curves.question, return_inverse=True)[1]
    counts = np.bincount(places)
    return np.stack([np.bincount(places, right) / counts, np.bincount(places, cost) / counts], 1)
