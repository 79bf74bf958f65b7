"""The example notebook runs, its figures are figures, and nothing of it prints."""

import json
from pathlib import Path

import numpy as np
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
    assert len(figures) == 3
    assert repr(shown[0]).startswith("Curves(40 trajectories, 10 questions, 1 model")
    assert "\n" not in repr(shown[0])
    assert "\n" not in repr(values["latent"])
    assert ("nobody", "made up") in shown[1].columns
    for place, figure in enumerate(figures):
        figure.savefig(tmp_path / f"{place}.png")
        assert all(path.stat().st_size for path in save_plain(figure, tmp_path / f"plain-{place}"))
        assert not any(axes.get_title(loc="left") for axes in figure.get_axes())
    assert capfd.readouterr() == ("", "")


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
