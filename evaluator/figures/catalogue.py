"""All figures of measured curves, in reading order."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure

from evaluator.analysis.frontiers import CellFrontiers, average_endpoints, average_frontiers
from evaluator.analysis.latent import LatentCurves
from evaluator.analysis.overthinking import Summary
from evaluator.figures.frontiers import frontier_plot
from evaluator.figures.latent import latent_curve
from evaluator.figures.shapes import shapes_plot, typical_of_shapes
from evaluator.figures.step_changes import FEWEST_STEPS, progress_plot
from evaluator.figures.steps import step_length_plot, step_lengths
from evaluator.figures.trajectories import (
    representative_question,
    representative_trajectory,
    small_multiples,
    trajectory_curve,
)
from evaluator.present.names import model_name, question_name, visible
from evaluator.present.numbers import count
from stp.curves import Curves
from stp.ragged import FloatArray, IntArray

NAME_LIMIT = 40
MOST_FIGURES = 7
Bands = Mapping[str, tuple[FloatArray, FloatArray]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NamedFigure:
    """A figure with what to call it: in a list, and as a file without its ending."""

    title: str
    stem: str
    figure: Figure


def all_figures(
    curves: Curves,
    summary: Summary,
    cells: tuple[CellFrontiers, ...],
    changes: pd.DataFrame,
    *,
    name: str,
    step_tokens: int | None = None,
    bands: Bands | None = None,
    lengths: Mapping[str, Mapping[int, IntArray]] | None = None,
    latent: LatentCurves | None = None,
) -> Iterator[NamedFigure]:
    """Yield every figure that the curves allow.

    Parameters
    ----------
    curves, summary, cells, changes
        Measured curves, their averages, frontiers and changes by progress.
    name
        What was measured, for captions.
    step_tokens
        b of these curves, where it is known.
    bands
        Intervals of the averaged frontiers; see
        :func:`evaluator.figures.frontiers.frontier_plot`.
    lengths
        For each model's name and each b, step lengths; left out: those of the curves.
    latent
        The accuracies behind the counts; left out: no figure of them.
    """
    b = f", b = {step_tokens}" if step_tokens else ""
    note = (
        f"{visible(name, 60)}: {count(curves.trajectories, 'trajectory', 'trajectories')}, "
        f"{curves.probes} probes per position{b}."
    )
    yield _frontiers(cells, note, bands)
    yield from _trajectories(curves, summary, note)
    if latent is not None and representative_question(curves):
        shown = representative_trajectory(summary)
        where = f"{_where(curves, shown)}, trajectory {int(curves.sample[shown])}"
        figure = latent_curve(latent, shown, title=where)
        yield NamedFigure(title="The accuracy behind a curve", stem="latent", figure=figure)
    if (changes["steps"] >= FEWEST_STEPS).any():
        figure = progress_plot(changes, note=note)
        yield NamedFigure(title="Changes by progress", stem="progress", figure=figure)
    by_model = _lengths(curves, step_tokens or 0) if lengths is None else lengths
    if by_model:
        named = {visible(model, NAME_LIMIT): by_target for model, by_target in by_model.items()}
        figure = step_length_plot(named, note=note)
        yield NamedFigure(title="Step lengths", stem="step-lengths", figure=figure)


def _frontiers(cells: tuple[CellFrontiers, ...], note: str, bands: Bands | None) -> NamedFigure:
    zero, full = average_endpoints(cells)
    parts = [note]
    if len(cells) > 1:
        parts.append(f"Averaged over {len(cells)} cells with equal weight.")
    parts.append("Exact; no interpolation.")
    if bands:
        parts.append("Bands: pointwise 95 % bootstrap intervals at 101 budgets.")
    figure = frontier_plot(
        average_frontiers(cells),
        zero_accuracy=zero,
        full_accuracy=full,
        bands=bands,
        note=" ".join(parts),
    )
    return NamedFigure(title="The three frontiers", stem="frontiers", figure=figure)


def _trajectories(curves: Curves, summary: Summary, note: str) -> Iterator[NamedFigure]:
    """Yield the curve of a typical trajectory, one of each shape, and those of one question."""
    group = representative_question(curves)
    if not group:
        return
    shown = representative_trajectory(summary)
    yield NamedFigure(
        title="A trajectory's curve",
        stem="curve",
        figure=trajectory_curve(
            curves,
            shown,
            title=f"{_where(curves, shown)}, trajectory {int(curves.sample[shown])}",
            note=f"Each point: {curves.probes} answer probes. Shaded: after k*. Chosen by rule: OR "
            f"and AD nearest to the averages. Of {note}",
        ),
    )
    chosen = typical_of_shapes(curves).values()
    names = {s: f"{_where(curves, s)}, trajectory {int(curves.sample[s])}" for s in chosen}
    yield NamedFigure(
        title="Curves of every shape",
        stem="shapes",
        figure=shapes_plot(curves, names, note=f"Of {note}"),
    )
    yield NamedFigure(
        title="A question's trajectories",
        stem="multiples",
        figure=small_multiples(
            curves,
            group,
            title=_where(curves, group[0]),
            note=f"Chosen by rule: the median spread of OR within a question. Of {note}",
        ),
    )


def _where(curves: Curves, trajectory: int) -> str:
    model = model_name(curves, int(curves.model[trajectory]), NAME_LIMIT)
    return f"{model}, {question_name(curves, int(curves.question[trajectory]), NAME_LIMIT)}"


def _lengths(curves: Curves, step_tokens: int) -> dict[str, dict[int, IntArray]]:
    lengths = {}
    for model in sorted(set(curves.model.tolist())):
        own = step_lengths(curves.select(curves.model == model))
        if own.size:
            lengths[model_name(curves, model, NAME_LIMIT)] = {step_tokens: own}
    return lengths
