"""Charts of pages, as SVG inside the page: they follow its colours, and marks say what they are.

A mark's title is shown when the pointer rests on it. Nothing here needs a script.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from evaluator.present.names import visible
from evaluator.present.numbers import percent
from evaluator.present.palette import SERIES
from evaluator.present.ticks import log_ticks, round_step

WIDTH: Final = 640
HEIGHT: Final = 340
LEFT, RIGHT, TOP, BOTTOM = 58, 24, 14, 46
DASHES: Final = ("", "7 3", "2 3", "9 3 2 3")
_TICKS: Final = (0, 0.25, 0.5, 0.75, 1)
_WHOLE: Final = 10**9
"""No attribute is cut: a path has thousands of characters."""
NAME: Final = 80
"""Characters of a name in legends and titles."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line of a chart.

    Attributes
    ----------
    name
        What the legend calls it.
    x, y
        Its points in the units of the axes; y is a fraction.
    stepped
        Nothing lies between two points: y stays until the next x.
    kind
        A class of the style sheet that draws it, such as a strategy's; left out: the next of the
        palette's series.
    marks
        Points that are drawn beside the line: (x, y, title).
    chosen
        A point in a ring: (x, y, title).
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    stepped: bool = False
    kind: str = ""
    marks: Sequence[tuple[float, float, str]] = ()
    chosen: tuple[float, float, str] | None = None


def tag(name: str, *children: str, **attributes: object) -> Markup:
    """Return an element; all that is not Markup is escaped.

    Examples
    --------
    >>> print(tag("text", "a < b", class_="name", text_anchor="end"))
    <text class="name" text-anchor="end">a &lt; b</text>
    """
    written = Markup("").join(
        Markup(' {}="{}"').format(key.rstrip("_").replace("_", "-"), visible(str(value), _WHOLE))
        for key, value in attributes.items()
        if value != ""
    )
    shown = (child if isinstance(child, Markup) else visible(child) for child in children)
    return Markup("<{0}{1}>{2}</{0}>").format(name, written, Markup("").join(shown))


class Plot:
    """The place of a chart's axes: from units to places in the drawing.

    With ``x_least`` equal distances are equal ratios, from there on; otherwise x begins at 0.
    """

    def __init__(
        self,
        x_most: float,
        y_range: tuple[float, float] = (0.0, 1.0),
        *,
        x_least: float | None = None,
        y_format: str = ".0%",
    ) -> None:
        self.x_most, self.y_range = x_most or 1.0, y_range
        self.x_least, self.y_format = x_least, y_format
        self.inner, self.tall = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def x(self, value: float) -> float:
        """Return the place of a value of the x axis."""
        share = value / self.x_most
        if self.x_least is not None:
            share = math.log(value / self.x_least) / (math.log(self.x_most / self.x_least) or 1.0)
        return round(LEFT + self.inner * share, 1)

    def ticks(self) -> list[float]:
        """Return the numbers below the x axis."""
        if self.x_least is not None:
            return log_ticks(self.x_least, self.x_most)
        return [share * self.x_most for share in _TICKS]

    def y(self, value: float) -> float:
        """Return the place of a value of the y axis."""
        low, high = self.y_range
        return round(TOP + self.tall * (1 - (value - low) / ((high - low) or 1.0)), 1)

    def levels(self) -> list[float]:
        """Return the y of the grid's lines: round numbers, at most six."""
        low, high = self.y_range
        step = round_step(high - low)
        return [step * number for number in range(round(low / step), round(high / step) + 1)]

    def drawn(
        self,
        marks: Sequence[Markup],
        *,
        x_label: str,
        y_label: str,
        x_format: str,
        grid: bool = True,
        names: Sequence[tuple[float, str]] | None = None,
    ) -> Markup:
        """Return the drawing: marks over axes; ``names``, (x, name), instead of numbers below."""
        parts = []
        for level in self.levels():
            if grid:
                ends = {"x1": LEFT, "x2": WIDTH - RIGHT, "y1": self.y(level), "y2": self.y(level)}
                parts.append(tag("line", class_="gridline", **ends))
            text = format(level, self.y_format)
            parts.append(tag("text", text, x=LEFT - 8, y=self.y(level) + 4, text_anchor="end"))
        if names is None:
            names = [(across, format(across, x_format)) for across in self.ticks()]
        for across, name in names:
            place = {"x": self.x(across), "y": HEIGHT - BOTTOM + 20, "text_anchor": "middle"}
            parts.append(tag("text", name, **place))
        middle = {"x": LEFT + self.inner / 2, "y": HEIGHT - 5, "text_anchor": "middle"}
        return tag(
            "svg",
            *parts,
            *marks,
            tag("text", x_label, **middle),
            class_="plot",
            viewBox=f"0 0 {WIDTH} {HEIGHT}",
            role="img",
            aria_label=f"{y_label} over {x_label}",
        )


def line_chart(
    lines: Sequence[Line],
    *,
    x_label: str,
    y_label: str,
    x_format: str = ",.0f",
    y_range: tuple[float, float] | None = (0.0, 1.0),
    y_format: str = ".0%",
    x_least: float | None = None,
    names: Sequence[tuple[float, str]] | None = None,
) -> Markup:
    """Return lines over a common axis from 0, with their legend; nothing without a line.

    Parameters
    ----------
    lines
        In the order of the legend; the first is drawn on top.
    x_label, y_label
        What the axes are.
    x_format
        A format specification of the numbers below the x axis.
    y_range
        Ends of the y axis; None: those of the lines, rounded outwards.
    y_format
        A format specification of the numbers beside the y axis.
    x_least
        Where the x axis begins if equal distances are to be equal ratios.
    names
        What stands below the x axis instead of numbers: (x, name).
    """
    if not lines:
        return Markup("")
    xs = [x for line in lines for x in [*line.x, *(mark[0] for mark in line.marks)]]
    if y_range is None:
        ys = [y for line in lines for y in [*line.y, *(mark[1] for mark in line.marks)]]
        step = round_step(max(ys) - min(ys))
        y_range = step * math.floor(min(ys) / step), step * math.ceil(max(ys) / step)
    plot = Plot(max(xs, default=1.0), y_range, x_least=x_least, y_format=y_format)
    marks, legend, number = [], [], 0
    for line in lines:
        name, look = visible(line.name, NAME), {"class_": f"series {line.kind}".strip()}
        shade = f"fill: var(--{line.kind})"
        if not line.kind:
            colour = f"var(--series-{number % SERIES + 1})"
            shade = f"fill: {colour}"
            look |= {"style": f"stroke: {colour}"}
            look |= {"stroke_dasharray": DASHES[number // SERIES % len(DASHES)]}
            number += 1
        key = tag("line", x1=0, x2=30, y1=6, y2=6, **look)
        svg = tag("svg", key, class_="key", viewBox="0 0 30 12", aria_hidden="true")
        legend.append(tag("li", svg, name))
        drawn = [tag("path", tag("title", name), d=_path(plot, line), **look)]
        for x, y, title in line.marks:
            spot = {"cx": plot.x(x), "cy": plot.y(y), "r": 3.2}
            drawn.append(tag("circle", tag("title", title), style=shade, **spot))
        if line.chosen is not None:
            x, y, title = line.chosen
            ring = {
                "cx": plot.x(x),
                "cy": plot.y(y),
                "r": 8,
                "style": shade.replace("fill", "stroke"),
            }
            drawn.append(tag("circle", tag("title", title), class_="chosen", **ring))
        marks.append(tag("g", *drawn))
    svg = plot.drawn(marks[::-1], x_label=x_label, y_label=y_label, x_format=x_format, names=names)
    return tag("ul", *legend, class_="legend") + tag("div", svg, class_="chart")


def _path(plot: Plot, line: Line) -> str:
    parts: list[str] = []
    before = None
    for x, y in zip(line.x, line.y, strict=True):
        if not parts or not line.stepped:
            parts.append(f"{'L' if parts else 'M'}{plot.x(x)},{plot.y(y)}")
        elif y != before:
            parts.append(f"H{plot.x(x)}V{plot.y(y)}")
        before = y
    if line.stepped and parts:
        parts.append(f"H{plot.x(line.x[-1])}")
    return "".join(parts)


def bar_chart(labels: Sequence[str], values: Sequence[float], *, unit: str) -> Markup:
    """Return horizontal bars in the order given, with their values."""
    most = max(values, default=0.0) or 1.0
    rows = [
        tag("dt", visible(label, 44))
        + tag("dd", tag("i", style=f"width: {80 * value / most:.1f}%"), f"{value:,.0f}")
        for label, value in zip(labels, values, strict=True)
    ]
    return tag("dl", *rows, class_="bars", aria_label=unit)


def stacked_bars(
    bins: Sequence[tuple[float, float, str]],
    shares: Sequence[tuple[float, ...]],
    kinds: Sequence[tuple[str, str]],
    *,
    x_label: str,
    y_label: str,
) -> Markup:
    """Return a column for each bin, its shares one above the other, and the legend.

    Parameters
    ----------
    bins
        Each (from, to, title).
    shares
        Of each bin, one a kind, from the bottom up.
    kinds
        Each (class of the style sheet, name).
    x_label, y_label
        What the axes are.
    """
    plot = Plot(max(end for _, end, _ in bins))
    marks = []
    for (start, end, title), parts in zip(bins, shares, strict=True):
        across = {"x": plot.x(start) + 0.75}
        across |= {"width": round(max(0.5, plot.x(end) - plot.x(start) - 1.5), 1)}
        drawn, base = [tag("title", title)], 0.0
        for (kind, _), share in zip(kinds, parts, strict=True):
            top = plot.y(base + share)
            height = round(plot.y(base) - top, 1)
            drawn.append(tag("rect", class_=kind, y=top, height=height, **across))
            base += share
        marks.append(tag("g", *drawn))
    legend = [
        tag(
            "li",
            tag(
                "svg",
                tag("rect", class_=kind, width=12, height=12),
                class_="key",
                viewBox="0 0 30 12",
            ),
            name,
        )
        for kind, name in kinds[::-1]
    ]
    svg = plot.drawn(marks, x_label=x_label, y_label=y_label, x_format=",.0f", grid=False)
    return tag("ul", *legend, class_="legend") + tag("div", svg, class_="chart")


def share_title(name: str, x: float, y: float) -> str:
    """Return what a mark says of itself where both axes are fractions.

    Examples
    --------
    >>> share_title("deer", 0.25, 0.5)
    'deer: 25.0% of the tokens, accuracy 50.0%'
    """
    return f"{visible(name, NAME)}: {percent(x)} of the tokens, accuracy {percent(y)}"
