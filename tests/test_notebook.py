"""The example notebook runs, its figures are figures, and nothing of it prints."""

import json
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from evaluator.present.figure_style import save_plain

NOTEBOOK = Path(__file__).parent.parent / "docs" / "examples" / "notebook.ipynb"


def run(cell, values):
    """Run a cell as a notebook does; return the value of its last line, if it is an expression."""
    *before, last = cell.rstrip().split("\n\n")
    lines = last.split("\n")
    exec(compile("\n".join([*before, *lines[:-1]]), "cell", "exec"), values)
    try:
        shown = compile(lines[-1], "cell", "eval")
    except SyntaxError:
        exec(compile(lines[-1], "cell", "exec"), values)
        return None
    return eval(shown, values)


def test_the_notebook_runs_and_says_little(capfd, tmp_path):
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    values = {}
    shown = [run("".join(c["source"]), values) for c in cells if c["cell_type"] == "code"]
    figures = [value for value in shown if isinstance(value, Figure)]
    assert len(figures) == 4
    assert repr(shown[0]).startswith("Curves(40 trajectories, 10 questions, 1 model")
    assert "\n" not in repr(shown[0])
    assert "\n" not in repr(values["latent"])
    assert ("nobody", "made up") in shown[1].columns
    for place, figure in enumerate(figures):
        figure.savefig(tmp_path / f"{place}.png")
        assert all(path.stat().st_size for path in save_plain(figure, tmp_path / f"plain-{place}"))
        assert not any(axes.get_title(loc="left") for axes in figure.get_axes())
    assert capfd.readouterr() == ("", "")


def test_rules_of_ones_own_stand_where_they_are():
    """Two models of unlike size weigh the same; tokens are over those of full thinking."""
    from evaluator.figures import methods
    from stp.curves import Curves

    curves = Curves(
        tokens=[0, 10, 40, 0, 20, 0, 30, 60],
        correct=[0, 2, 4, 1, 3, 4, 0, 2],
        trajectory_offsets=[0, 3, 5, 8],
        question=[0, 1, 0],
        model=[0, 0, 1],
        probes=4,
    )
    figure = methods(curves, {"mine": [[2, 1, 2], [1, 0, 0]], "one": [0, 0, 0]})
    lines = {line.get_label(): line for line in figure.axes[0].get_lines()}
    x, y = lines["mine"].get_data()
    assert x.tolist() == [(10 / 60 + 0 / 60) / 2, 1.0]
    assert y.tolist() == [(3 / 8 + 4 / 4) / 2, (7 / 8 + 2 / 4) / 2]
    assert lines["one"].get_xdata().tolist() == [0.0]
    for wrong in ([0, 0], [3, 0, 0], [-1, 0, 0]):
        with pytest.raises(ValueError, match="mine: needs a position"):
            methods(curves, {"mine": wrong})


def test_big_values_are_a_line():
    from stp.curves import Curves

    size = 100_000
    curves = Curves(
        tokens=np.zeros(size, int),
        correct=np.zeros(size, int),
        trajectory_offsets=np.arange(size + 1),
        question=np.arange(size),
        probes=4,
    )
    assert len(repr(curves)) < 150
