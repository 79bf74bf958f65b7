"""Pictures as values: what is to be seen, before it is drawn in print or on a page.

A view is drawn by :func:`evaluator.present.drawing.draw` with matplotlib, for PNG and PDF, and by
``explorer/app/views.js`` in a page, from what :func:`view_json` gives. So both show the same.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from evaluator.present.names import visible

_TEXT = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What every view has.

    Attributes
    ----------
    stem
        Names its files, and its place in a page.
    title
        What it shows.
    x_label, y_label
        What the axes are.
    note
        What to know when reading it.
    y_format
        A format specification of the values of the y axis.
    """

    stem: str
    title: str
    x_label: str
    y_label: str
    note: str = ""
    y_format: str = ".0%"

    @property
    def fraction(self) -> bool:
        """Whether the y axis is a fraction, from 0 to 1."""
        return self.y_format.endswith("%")


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A point with its name; ``marked`` ones stand out."""

    name: str
    x: float
    y: float
    marked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Points that belong together, with their name; ``texts`` says what each of them is."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    texts: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scatter(View):
    """Points in a plane, over lines of equal value.

    Attributes
    ----------
    points
        One for each model.
    contours
        Lines behind them.
    log_x
        Whether equal distances are equal ratios; all x are above 0 then.
    x_format
        A format specification of the numbers below the x axis.
    """

    points: Sequence[Point]
    contours: Sequence[Trace] = ()
    log_x: bool = False
    x_format: str = ",.0f"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines(View):
    """Lines with a mark at each point; ``log_x`` and ``x_format`` as of :class:`Scatter`.

    ``ticks`` are names of x = 0, 1, 2, ... where these are not amounts.
    """

    lines: Sequence[Trace]
    log_x: bool = False
    x_format: str = ",.0f"
    ticks: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars(View):
    """Groups of bars beside each other.

    Attributes
    ----------
    groups
        Names of the groups.
    series
        Name and one value a group, None if there is none.
    flat
        Whether bars lie, with names of any length before them.
    stacked
        Whether the bars of a group stand one above the other.
    colours
        Names of the palette's colours, one a series; left out: those of series.
    notes
        What is to be known of each group; a page shows it where one points.
    """

    groups: Sequence[str]
    series: Sequence[tuple[str, Sequence[float | None]]]
    flat: bool = False
    stacked: bool = False
    colours: Sequence[str] = ()
    notes: Sequence[str] = ()


def view_json(view: View) -> dict[str, Any]:
    """Return a view as JSON for a page: hidden characters visible, and unknown numbers null.

    Examples
    --------
    >>> view_json(Bars(stem="s", title="t", x_label="x", y_label="y", groups=["a"],
    ...                series=[("b", [math.nan])]))["series"]
    [['b', [None]]]
    """
    return {"kind": type(view).__name__, **_plain(asdict(view))}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, str):
        return visible(value, _TEXT)
    if isinstance(value, Sequence):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and math.isnan(value) else value
