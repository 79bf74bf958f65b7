"""Figures of methods: the legend covers no curve and no words, however long the labels."""

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from evaluator.analysis.frontiers import average_frontiers, cell_frontiers
from evaluator.otbench.figures import method_figures
from tests.otbench.made import curves, made_row

LABELS = [
    "deer",
    "end_entropy",
    "a_name_of_forty_and_more_characters_which_is_long(with=1, more=2.5)",
]


def row(label, *, trivial=False, place=0):
    x = np.linspace(0.1, 0.9, 5)
    points = [
        {"tokens_fraction": a, "accuracy": 0.3 + 0.1 * a + 0.02 * place, "on_curve": True}
        for a in x.tolist()
    ]
    return made_row(label, trivial=trivial, points=points)


@pytest.mark.parametrize("count", [1, 2, 3, 14])
def test_the_legend_is_below_the_axes_and_above_the_note(count):
    labels = (LABELS * 5)[:count]
    rows = [row(label, place=place) for place, label in enumerate(labels)]
    rows += [row(name, trivial=True) for name in ("constant_cap", "think_share")]
    frontiers = average_frontiers(cell_frontiers(curves()))
    found = list(method_figures(rows, frontiers, name="mine"))
    (figure,) = [named.figure for named in found if named.stem == "otbench_early_exit"]
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    (axes,) = figure.axes
    legend = axes.get_legend().get_window_extent()
    label = axes.xaxis.label.get_window_extent()
    note = figure._supxlabel.get_window_extent()
    assert note.y1 <= legend.y0 <= legend.y1 <= label.y0 <= axes.get_window_extent().y0
    width, height = canvas.get_width_height()
    assert legend.x1 <= width
    assert axes.get_window_extent().height >= 0.4 * height
    texts = [text.get_text().replace("\n", "") for text in axes.get_legend().get_texts()]
    assert {label.replace(" ", "") for label in labels} <= {t.replace(" ", "") for t in texts}
