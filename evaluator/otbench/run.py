"""Methods on a release: trained on train, selected on validation, measured on test.

Questions of the three splits are kept apart here: what a method was given in training is remembered
with it, and deciding on any of these questions is refused.
"""

import re
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from baselines.interface import Setting
from baselines.measurements import Measurements
from baselines.player import Start
from baselines.registry import MethodDescription
from baselines.signals import with_costs
from data.errors import MisuseError
from data.progress import NOBODY, Progress
from evaluator.otbench.asked import AskedMethod
from evaluator.otbench.decide import Decisions, decide
from evaluator.otbench.intervals import Decided
from evaluator.otbench.load import Release
from evaluator.otbench.points import CellTotals, Points, cell_frontiers_of, cell_totals
from evaluator.otbench.points import operating_points as points_of
from evaluator.otbench.splits import SPLITS
from evaluator.otbench.summary import select, summarise
from stp.curves import Curves
from stp.ragged import IntArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trained:
    """A trained method, and the questions that it has seen.

    Attributes
    ----------
    start
        Makes seats of the method, trained on one model.
    description
        What it says about itself.
    seen
        Question numbers of training and validation.
    hyperparameters
        All of them, defaults included.
    """

    start: Start
    description: MethodDescription
    seen: IntArray
    hyperparameters: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MethodResult:
    """A method evaluated on a release.

    Attributes
    ----------
    asked
        Which method.
    strategy, settings
        Its strategy and its grid.
    totals, points
        On test questions.
    selected
        The setting that validation questions selected.
    summary
        Its numbers; see :data:`evaluator.otbench.summary.SUMMARIES`.
    decided
        Its decisions on test questions, for the bootstrap.
    hyperparameters
        All of them, defaults included.
    fit_seconds, decide_seconds
        What it took.
    """

    asked: AskedMethod
    strategy: str
    settings: tuple[Setting, ...]
    totals: CellTotals
    points: Points
    selected: int
    summary: dict[str, float]
    decided: Decided
    hyperparameters: dict[str, Any]
    fit_seconds: float
    decide_seconds: float

    @property
    def label(self) -> str:
        """What tables call it."""
        return self.asked.label


def train(asked: AskedMethod, training: Measurements, validation: Measurements) -> Trained:
    """Return a new method trained on one model's questions.

    Raises
    ------
    data.errors.MisuseError
        If a question is in both.
    """
    shared = np.intersect1d(training.questions, validation.questions)
    if shared.size:
        raise MisuseError(
            f"{asked.label}: leak: {shared.size} questions are in training and in validation, as "
            f"question {_name(training.curves, int(shared[0]))}"
        )
    needs = asked.description.needs
    with closing(asked.seat()) as seat:
        seat.fit(_nameless(training.restricted(needs)), _nameless(validation.restricted(needs)))
        return Trained(
            start=seat.freeze(),
            description=asked.description,
            seen=np.concatenate([training.questions, validation.questions]),
            hyperparameters=seat.hyperparameters(),
        )


def _nameless(measurements: Measurements) -> Measurements:
    """Return measurements whose curves name no question: they would name those of test too."""
    return replace(measurements, curves=replace(measurements.curves, question_names=()))


def decide_on(
    trained: Trained, test: Measurements, lots: Any, progress: Progress = NOBODY
) -> Decisions:
    """Return a trained method's decisions on questions that it has not seen.

    Raises
    ------
    data.errors.MisuseError
        If it has seen one of them.
    """
    shared = np.intersect1d(trained.seen, test.questions)
    if shared.size:
        raise MisuseError(
            f"{trained.description.name}: leak: {shared.size} test questions were used in "
            f"training, as question {_name(test.curves, int(shared[0]))}; a method is measured on "
            "questions that it has not seen"
        )
    return decide(trained.start, trained.description, test, lots, progress=progress)


def evaluate(release: Release, asked: AskedMethod, *, progress: Progress = NOBODY) -> MethodResult:
    """Train a method for every model, select its setting, and measure it.

    Parameters
    ----------
    release
        With the signals that it needs.
    asked
        The method.
    progress
        Told of the method's stages.

    Raises
    ------
    data.errors.MisuseError
        If a split is empty, or the method does what it must not.
    """
    found = [
        _of_model(release, asked, model, progress)
        for model in np.unique(release.curves.model).tolist()
    ]
    settings = _same_settings(asked, [each.test for each in found])
    chosen = _points(release, "validation", asked, [each.validation for each in found])[1]
    decisions = [each.test for each in found]
    totals, points = _points(release, "test", asked, decisions)
    selected = select(chosen)
    return MethodResult(
        asked=asked,
        strategy=asked.description.strategy,
        settings=settings,
        totals=totals,
        points=points,
        selected=selected,
        summary=summarise(points, selected),
        decided=Decided(
            strategy=asked.description.strategy,
            stop=np.concatenate([d.stop for d in decisions], axis=1),
            signal_tokens=np.concatenate([d.signal_tokens for d in decisions], axis=1),
            selected=selected,
        ),
        hyperparameters=found[0].hyperparameters,
        fit_seconds=sum(each.fit_seconds for each in found),
        decide_seconds=sum(each.decide_seconds for each in found),
    )


_SLIPS = re.compile(
    r"\b(?:Name|UnboundLocal|Attribute|Type|Import|ModuleNotFound|NotImplemented)Error\b"
)
_TRIED_QUESTIONS = 6


def try_out(release: Release, asked: AskedMethod) -> None:
    """Train and ask a method on a few questions, so that a slip is said before anything long.

    Parameters are those of :func:`evaluate`.

    Raises
    ------
    data.errors.MisuseError
        If the method has an error that does not depend on the data, such as an undefined name. What
        may only come of so few questions (no two classes, a matrix that has no inverse) is no
        reason.
    """
    model = int(release.curves.model[0])
    needs = with_costs(asked.description.needs)
    few = [
        release.measurements(model, split, needs).of_first(_TRIED_QUESTIONS)
        for split in ("train", "validation")
    ]
    if not all(each.curves.trajectories for each in few):
        return
    try:
        trained = train(asked, *few)
        decide(trained.start, trained.description, few[1], release.lot_q)
    except MisuseError as error:
        if _SLIPS.search(str(error)):
            raise


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _OfModel:
    """What a method decided on one model's questions."""

    validation: Decisions
    test: Decisions
    hyperparameters: dict[str, Any]
    fit_seconds: float
    decide_seconds: float


def _of_model(release: Release, asked: AskedMethod, model: int, progress: Progress) -> _OfModel:
    needs = with_costs(asked.description.needs)
    splits = {split: release.measurements(model, split, needs) for split in SPLITS}
    for split, measured in splits.items():
        if not measured.curves.trajectories:
            raise MisuseError(
                f"{release.folder}: there are no {split} questions of "
                f"{release.curves.model_names[model]}; a release needs questions in every split"
            )
    progress.stage("training")
    begin = time.perf_counter()
    trained = train(asked, splits["train"], splits["validation"])
    fitted = time.perf_counter()
    # Settings are selected on validation questions, which training may have looked at too.
    validation = decide(trained.start, trained.description, splits["validation"], release.lot_q)
    deciding = progress.stage(f"deciding, {release.curves.model_names[model]}")
    test = decide_on(trained, splits["test"], release.lot_q, deciding)
    # All is decided; the frontier of its strategy is solved where it is not yet.
    progress.stage("beside the frontier")
    if validation.settings != test.settings:
        raise MisuseError(f"{asked.label}: its settings change while it decides")
    return _OfModel(
        validation=validation,
        test=test,
        hyperparameters=trained.hyperparameters,
        fit_seconds=fitted - begin,
        decide_seconds=time.perf_counter() - fitted,
    )


def split_curves(release: Release, split: str) -> Curves:
    """Return the curves of all models in a split, models one after the other."""
    return release.curves.select(np.isin(release.curves.question, release.in_split(split)))


def _points(
    release: Release, split: str, asked: AskedMethod, decisions: Sequence[Decisions]
) -> tuple[CellTotals, Points]:
    curves = split_curves(release, split)
    totals = cell_totals(
        curves,
        np.concatenate([d.stop for d in decisions], axis=1),
        np.concatenate([d.signal_tokens for d in decisions], axis=1),
    )
    return totals, points_of(totals, cell_frontiers_of(curves, asked.description.strategy))


def _same_settings(asked: AskedMethod, decisions: Sequence[Decisions]) -> tuple[Setting, ...]:
    first = decisions[0].settings
    if any(d.settings != first for d in decisions[1:]):
        raise MisuseError(
            f"{asked.label}: its settings differ between models, so they cannot be averaged; make "
            "them relative to what was learnt, as a scale or a quantile"
        )
    return first


def _name(curves: Curves, question: int) -> str:
    return curves.question_names[question] if curves.question_names else str(question)
