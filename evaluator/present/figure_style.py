"""How every figure looks, and how it is written to disk: the palette of pages, in light.

The three strategies are told apart three times over: by hue (safe for the colour-blind), by
lightness (so that a grey print works) and by line style.
"""

import textwrap
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.font_manager import get_font_names

from evaluator.present.palette import LIGHT, SERIES
from stp.files import write_durably

INK = LIGHT["ink"]
MUTED = LIGHT["muted"]
GRID = LIGHT["line"]
CURVE = LIGHT["accent"]
MARK = LIGHT["mark"]
FLAT = LIGHT["flat"]
POSITIVE = LIGHT["rise"]
NEGATIVE = LIGHT["fall"]
SERIES_COLOURS = tuple(LIGHT[f"series-{number}"] for number in range(1, SERIES + 1))


@dataclass(frozen=True, slots=True)
class LineStyle:
    """How a strategy is drawn."""

    colour: str
    dash: Any
    width: float


STRATEGY_STYLES = {
    "routing": LineStyle(LIGHT["routing"], (0, (1, 1.4)), 2.0),
    "fixed_budget": LineStyle(LIGHT["fixed_budget"], (0, (5, 1.8)), 1.9),
    "early_exit": LineStyle(LIGHT["early_exit"], "solid", 2.2),
}
_FONTS = ("Inter", "Source Sans 3", "Liberation Sans", "DejaVu Sans")

_RC: dict[Any, Any] = {
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 8.0,
    "axes.labelcolor": INK,
    "axes.edgecolor": MUTED,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    # Names come from users and models: a dollar sign is a dollar sign.
    "text.parse_math": False,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "lines.solid_capstyle": "round",
    "pdf.fonttype": 42,
    "svg.hashsalt": "stp",
}


@cache
def _fonts() -> list[str]:
    """Return those of our fonts that are there.

    matplotlib writes a line for each text and each font that it lacks. A list, not the generic
    family: then a glyph that one font lacks comes from the next.
    """
    there = set(get_font_names())
    return [name for name in _FONTS if name in there] or ["sans-serif"]


@contextmanager
def house_style() -> Iterator[None]:
    """Apply the style to everything drawn inside the ``with`` block."""
    with mpl.rc_context({**_RC, "font.family": _fonts()}):
        yield


def new_figure(width: float = 6.4, height: float = 3.8) -> Figure:
    """Return an empty figure; ``width`` and ``height`` in inches."""
    return Figure(figsize=(width, height), layout="constrained")


def add_note(figure: Figure, note: str) -> None:
    """Write a caption (n and settings) below the axes, aligned to the left."""
    if note:
        # At this size some 17 characters go into an inch.
        lines = textwrap.fill(note, int(17 * figure.get_figwidth()))
        figure.supxlabel(lines, x=0.012, ha="left", fontsize=7.5, color=MUTED)


def save(figure: Figure, stem: Path) -> tuple[Path, Path]:
    """Write ``stem.png`` (200 dots per inch) and ``stem.pdf``; the same figure gives same bytes.

    Returns
    -------
    tuple
        The paths of the PNG and of the PDF.
    """
    png, pdf = stem.with_name(stem.name + ".png"), stem.with_name(stem.name + ".pdf")
    for path in (png, pdf):
        write_durably(path, _drawn(figure, path.suffix[1:]))
    return png, pdf


def save_plain(figure: Figure, stem: Path) -> tuple[Path, Path, Path]:
    """Write a figure for an article, without its title and its caption: PNG, PDF and SVG.

    The figure loses both.
    """
    for axes in figure.get_axes():
        for place in ("left", "center", "right"):
            axes.set_title("", loc=place)
    figure.suptitle("")
    figure.supxlabel("")
    png, pdf, svg = (stem.with_name(f"{stem.name}.{form}") for form in ("png", "pdf", "svg"))
    for path in (png, pdf, svg):
        write_durably(path, _drawn(figure, path.suffix[1:]))
    return png, pdf, svg


_NOBODY: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "svg": {"Date": None, "Creator": None},
}
"""What formats say of when and by what a file was made, left out."""


def _drawn(figure: Figure, form: str) -> bytes:
    # Drawn in memory: where a disk is full, matplotlib's writers fail in ways of their own.
    drawn = BytesIO()
    with house_style(), warnings.catch_warnings():
        # A name may have characters that no font here has.
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        figure.savefig(drawn, format=form, dpi=200, metadata=_NOBODY[form])
    return drawn.getvalue()
