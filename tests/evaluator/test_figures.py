"""Figures show what they were given, and the same input gives the same bytes."""

import errno

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from data.errors import StoreError
from evaluator.analysis.frontiers import average_endpoints, average_frontiers, cell_frontiers
from evaluator.analysis.overthinking import per_trajectory
from evaluator.analysis.sensitivity_tables import (
    sensitivity_table,
    trajectory_sensitivity_table,
)
from evaluator.analysis.step_changes import changes_by_progress
from evaluator.figures.frontiers import frontier_plot
from evaluator.figures.sensitivity import sensitivity_plot
from evaluator.figures.shapes import curve_shapes, shapes_plot, typical_of_shapes
from evaluator.figures.step_changes import progress_plot
from evaluator.figures.steps import step_length_plot, step_lengths
from evaluator.figures.trajectories import (
    representative_question,
    small_multiples,
    trajectory_curve,
)
from evaluator.present.figure_style import STRATEGY_STYLES, save
from stp.curves import Curves
from tests.evaluator.synthetic import make_curves

CURVE = Curves(
    tokens=[0, 10, 25, 40],
    correct=[1, 4, 4, 2],
    trajectory_offsets=[0, 4],
    question=[0],
    probes=4,
)


def texts(figure):
    found = [t.get_text() for axes in figure.axes for t in axes.texts]
    return found + [axes.get_title(loc=loc) for axes in figure.axes for loc in ("left", "right")]


def test_curve_marks_its_reference_and_both_ends():
    figure = trajectory_curve(CURVE, 0)
    line = figure.axes[0].lines[0]
    assert line.get_xdata().tolist() == [0, 10, 25, 40]
    assert line.get_ydata().tolist() == [0.25, 1, 1, 0.5]
    shown = " ".join(texts(figure))
    for expected in ("k* = 1", "P(0) = 25%", "P(n) = 50%", "OR 75.0%", "AD 50.0 pp"):
        assert expected in shown


def test_small_multiples_share_axes_and_keep_order():
    curves = make_curves(questions=1, trajectories=6, seed=2)
    figure = small_multiples(curves, [3, 0, 5, 1, 2])
    panels = [axes for axes in figure.axes if axes.get_visible()]
    assert [p.get_title(loc="left").split()[0] for p in panels] == ["s3", "s0", "s5", "s1", "s2"]
    assert len({p.get_xlim() for p in panels}) == len({p.get_ylim() for p in panels}) == 1
    with pytest.raises(ValueError, match="at least one"):
        small_multiples(curves, [])


def test_frontier_plot_steps_without_interpolation_and_marks_the_ends():
    cells = cell_frontiers(make_curves(models=2, seed=1))
    zero, full = average_endpoints(cells)
    frontiers = average_frontiers(cells, 50)
    figure = frontier_plot(frontiers, zero_accuracy=zero, full_accuracy=full)
    lines = {line.get_label(): line for line in figure.axes[0].lines}
    assert lines["Dynamic early exit"].get_drawstyle() == "steps-post"
    np.testing.assert_array_equal(lines["Dynamic early exit"].get_ydata(), frontiers[2].accuracy)
    shown = " ".join(texts(figure))
    assert f"full thinking {full:.1%}" in shown
    assert f"k = 0: {zero:.1%}" in shown


def test_strategies_differ_in_grey_and_in_dash():
    grey = sorted(
        float(np.dot(to_rgb(style.colour), (0.299, 0.587, 0.114)))
        for style in STRATEGY_STYLES.values()
    )
    assert min(np.diff(grey)) > 0.12
    assert len({str(style.dash) for style in STRATEGY_STYLES.values()}) == 3


def test_progress_plot_stacks_to_one_and_says_what_it_leaves_out():
    changes = changes_by_progress(make_curves(questions=30, seed=4), 20)
    figure = progress_plot(changes, fewest_steps=8)
    bars = figure.axes[0].patches
    kept = int((changes["steps"] >= 8).sum())
    assert len(bars) == 3 * kept
    tops = [bar.get_y() + bar.get_height() for bar in bars[2 * kept :]]
    assert tops == pytest.approx([1.0] * kept)
    assert f"{len(changes) - kept} bins" in figure.get_supxlabel()
    with pytest.raises(ValueError, match="no bin"):
        progress_plot(changes, fewest_steps=10**6)


def test_step_lengths_add_up_to_the_thinking():
    curves = make_curves(questions=9, seed=5)
    lengths = step_lengths(curves)
    assert lengths.size == curves.positions - curves.trajectories
    assert lengths.sum() == curves.full_tokens_s.sum()
    figure = step_length_plot({"a": {16: lengths}, "b": {16: lengths, 32: 2 * lengths}})
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["a", "b"]
    labels = [t.get_text() for t in figure.axes[1].get_legend().get_texts()]
    assert labels[0] == f"b = 16, mean {lengths.mean():.1f}"
    unknown = step_length_plot({"a": {0: lengths}}).axes[0].get_legend().get_texts()
    assert [t.get_text() for t in unknown] == [f"mean {lengths.mean():.1f}"]
    with pytest.raises(ValueError, match="at least one"):
        step_length_plot({})


@pytest.mark.parametrize("seed", range(5))
def test_representative_question_has_the_median_spread(seed):
    curves = make_curves(models=2, questions=5, trajectories=4, seed=seed)
    rows = representative_question(curves)
    ratios = per_trajectory(curves)["overthinking_ratio"].to_numpy()
    spreads = sorted(
        float(np.std(ratios[(curves.model == m) & (curves.question == q)], ddof=1))
        for m in range(2)
        for q in range(5)
    )
    assert len({(int(curves.model[s]), int(curves.question[s])) for s in rows}) == 1
    assert len(rows) == 4
    assert float(np.std(ratios[rows], ddof=1)) == pytest.approx(spreads[4])


def test_saving_writes_both_kinds_with_repeatable_bytes(tmp_path):
    first = save(trajectory_curve(CURVE, 0), tmp_path / "a" / "curve")
    again = save(trajectory_curve(CURVE, 0), tmp_path / "b" / "curve")
    assert [path.name for path in first] == ["curve.png", "curve.pdf"]
    assert first[0].read_bytes().startswith(b"\x89PNG")
    assert first[1].read_bytes().startswith(b"%PDF")
    for one, other in zip(first, again, strict=True):
        assert one.read_bytes() == other.read_bytes()


def test_a_full_disk_is_one_line_that_names_the_figure(tmp_path, monkeypatch):
    def full(number: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(StoreError, match=r"figure\.png: the disk is full"):
        save(Figure(), tmp_path / "figure")
    assert not list(tmp_path.iterdir())


def test_curves_have_the_shapes_that_their_names_say():
    curves = Curves(
        tokens=[0, 5, 9] * 6,
        correct=[0, 1, 2, 0, 2, 2, 0, 2, 1, 2, 2, 2, 0, 0, 0, 1, 2, 1],
        trajectory_offsets=[0, 3, 6, 9, 12, 15, 18],
        question=[0] * 6,
        probes=2,
    )
    assert curve_shapes(curves) == ["rise", "plateau", "fall", "flat", "flat", "fall"]
    frame = per_trajectory(curves)
    for shape, fraction in zip(curve_shapes(curves), frame["accuracy_degradation"], strict=True):
        assert (fraction > 0) == (shape == "fall")
    assert typical_of_shapes(curves) == {"rise": 0, "plateau": 1, "fall": 2, "flat": 3}
    figure = shapes_plot(curves, dict.fromkeys(range(6), "somewhere"), note="A note.")
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == [
        "Rises to the end: 17% of curves",
        "Stays at its best: 17% of curves",
        "Falls after its best: 33% of curves",
        "Never changes: 33% of curves",
    ]


@pytest.mark.parametrize("seed", range(3))
def test_the_curve_of_a_shape_is_the_middle_one(seed):
    curves = make_curves(questions=12, seed=seed)
    frame = per_trajectory(curves)
    shapes = np.array(curve_shapes(curves))
    chosen = typical_of_shapes(curves)
    assert set(chosen) == set(shapes)
    falls = frame["accuracy_degradation"].to_numpy()[shapes == "fall"]
    if falls.size:
        middle = np.sort(falls)[(falls.size - 1) // 2]
        assert frame["accuracy_degradation"][chosen["fall"]] == middle


def test_a_shape_that_no_curve_has_is_left_out():
    curves = Curves(tokens=[0], correct=[1], trajectory_offsets=[0, 1], question=[0], probes=2)
    assert typical_of_shapes(curves) == {"flat": 0}
    figure = shapes_plot(curves, {0: "here"})
    assert len(figure.axes) == 1


def test_the_figure_of_fewer_probes_draws_the_tables(tmp_path):
    curves = make_curves(seed=1)
    probes = sensitivity_table(curves).frame
    trajectories = trajectory_sensitivity_table(curves).frame
    figure = sensitivity_plot(probes, trajectories)
    expected, drawn = figure.axes[0].lines[0], figure.axes[1].lines[0]
    assert expected.get_xydata().tolist() == [[m, v] for m, v in probes["OR"].items()]
    assert drawn.get_ydata().tolist() == trajectories["OR", "mean"].tolist()
    assert figure.axes[4].lines[0].get_ydata()[-1] == pytest.approx(100)
    save(figure, tmp_path / "sensitivity")
