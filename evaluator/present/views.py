"""Pictures as values: what is to be seen, before it is drawn in print or on a page.

A view is drawn by :func:`evaluator.present.drawing.draw` with matplotlib, for PNG and PDF, and by
:func:`evaluator.present.view_charts.view_chart` as SVG inside a page. So both show the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass


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
    """

    groups: Sequence[str]
    series: Sequence[tuple[str, Sequence[float | None]]]
    flat: bool = False
