"""Views as charts of a page; see :mod:`evaluator.present.views`."""

import math
from collections.abc import Callable, Sequence

from markupsafe import Markup

from evaluator.present.charts import NAME, Line, Plot, line_chart, tag
from evaluator.present.names import visible
from evaluator.present.palette import SERIES
from evaluator.present.ticks import round_step
from evaluator.present.views import Bars, Lines, Scatter, Trace, View


def view_chart(view: View) -> Markup:
    """Return a view of :mod:`evaluator.present.views` as a chart of a page."""
    charts: dict[type[View], Callable[..., Markup]] = {
        Scatter: _scatter,
        Lines: _lines,
        Bars: _columns,
    }
    return charts[type(view)](view)


def _scatter(view: Scatter) -> Markup:
    """Return numbered points in a plane, and the list of their names."""
    xs = [point.x for point in view.points]
    xs += [x for line in view.contours for x in line.x]
    least = min(xs) if view.log_x else None
    whole = not view.log_x and max(xs) <= 1
    plot = Plot(
        1.0 if whole else max(xs),
        _y_range(view, [point.y for point in view.points]),
        x_least=least,
        y_format=view.y_format,
    )
    marks, names = [], []
    for line in view.contours:
        drawn = "M" + "L".join(
            f"{plot.x(x)},{plot.y(y)}" for x, y in zip(line.x, line.y, strict=True)
        )
        look = {"class_": "series background", "stroke_dasharray": "4 3"}
        marks.append(tag("path", tag("title", line.name), d=drawn, **look))
        place = {"x": plot.x(line.x[0]) + 3, "y": plot.y(line.y[0]) - 4}
        marks.append(tag("text", line.name, **place))
    for number, point in enumerate(view.points, start=1):
        name = visible(point.name, NAME)
        title = (
            f"{name}: {view.x_label} {format(point.x, '.3g' if whole else view.x_format)}, "
            f"{view.y_label} {format(point.y, '.3g')}"
        )
        spot = {"cx": plot.x(point.x), "cy": plot.y(point.y), "r": 9}
        kind = f"dot{' best' * point.marked}"
        text = {"x": spot["cx"], "y": spot["cy"] + 4, "text_anchor": "middle"}
        look = {"style": "fill: var(--card); font-size: 11px; pointer-events: none"}
        circle = tag("circle", tag("title", title), class_=kind, **spot)
        marks.append(tag("g", circle, tag("text", str(number), **text, **look)))
        names.append(tag("li", f"{number} {name}" + " (marked)" * point.marked))
    svg = plot.drawn(marks, x_label=view.x_label, y_label=view.y_label, x_format=view.x_format)
    return tag("ul", *names, class_="legend") + tag("div", svg, class_="chart")


def _y_range(view: View, values: Sequence[float]) -> tuple[float, float]:
    """Return the ends of a y axis that begins at 0."""
    if view.fraction:
        return 0.0, 1.0
    most = max(values, default=1.0) or 1.0
    step = round_step(most)
    return 0.0, step * math.ceil(most / step)


def _lines(view: Lines) -> Markup:
    def marks(line: Trace) -> list[tuple[float, float, str]]:
        texts = [*line.texts, *[""] * (len(line.x) - len(line.texts))]
        return [
            (x, y, f"{line.name} {text}: {format(y, '.1%' if view.fraction else view.y_format)}")
            for x, y, text in zip(line.x, line.y, texts, strict=True)
        ]

    xs = [x for line in view.lines for x in line.x]
    return line_chart(
        [Line(name=line.name, x=line.x, y=line.y, marks=marks(line)) for line in view.lines],
        x_label=view.x_label,
        y_label=view.y_label,
        x_format=view.x_format,
        y_range=_y_range(view, [y for line in view.lines for y in line.y]),
        y_format=view.y_format,
        x_least=min(xs) if view.log_x else None,
        names=list(enumerate(view.ticks)) or None,
    )


def _columns(view: Bars) -> Markup:
    """Return groups of bars, each with its title, and the legend."""
    known = [value for _, values in view.series for value in values if value is not None]
    plot = Plot(len(view.groups), _y_range(view, known), y_format=view.y_format)
    width = 0.8 / len(view.series)
    marks, legend = [], []
    for number, (name, values) in enumerate(view.series):
        colour = {"style": f"fill: var(--series-{number % SERIES + 1})"}
        box = tag("rect", width=12, height=12, **colour)
        svg = tag("svg", box, class_="key", viewBox="0 0 30 12", aria_hidden="true")
        legend.append(tag("li", svg, visible(name, NAME)))
        for group, value in enumerate(values):
            if value is None:
                continue
            start = group + 0.1 + number * width
            place = {
                "x": plot.x(start),
                "width": round(plot.x(start + width) - plot.x(start) - 1, 1),
                "y": plot.y(value),
                "height": round(plot.y(0) - plot.y(value), 1),
            }
            shown = format(value, ".1%" if view.fraction else view.y_format)
            title = f"{visible(view.groups[group], NAME)}, {visible(name, NAME)}: {shown}"
            marks.append(tag("rect", tag("title", title), **place, **colour))
    room = max(4, int(90 / len(view.groups)))
    names = [
        (place + 0.5, visible(name) if len(name) <= room else visible(name)[: room - 1] + "\u2026")
        for place, name in enumerate(view.groups)
    ]
    svg = plot.drawn(marks, x_label=view.x_label, y_label=view.y_label, x_format="", names=names)
    return tag("ul", *legend, class_="legend") + tag("div", svg, class_="chart")
