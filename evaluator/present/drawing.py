"""Views as figures for print; see :mod:`evaluator.present.views`."""

import math
import textwrap
from functools import singledispatch
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FuncFormatter, NullLocator

from evaluator.present.figure_style import (
    CURVE,
    INK,
    MARK,
    MUTED,
    SERIES_COLOURS,
    add_note,
    house_style,
    new_figure,
)
from evaluator.present.names import visible
from evaluator.present.views import Bars, Lines, Scatter, View

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_DASHES: tuple[Any, ...] = ("solid", (0, (5, 1.8)), (0, (1, 1.4)), (0, (6, 2, 1, 2)))
_HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\", "++++")
_NAME = 40
_STROKE = [withStroke(linewidth=2.5, foreground="white")]


def draw(view: View) -> Figure:
    """Return a view as a figure.

    Examples
    --------
    >>> from evaluator.present.views import Point, Scatter
    >>> point = Point(name="a", x=10, y=0.5)
    >>> plane = Scatter(stem="s", title="t", x_label="x", y_label="y", points=[point])
    >>> draw(plane).axes[0].get_ylabel()
    'y'
    """
    with house_style():
        figure = new_figure(6.8, 4.3)
        axes = figure.subplots()
        _fill(view, axes, figure)
        axes.set_title(textwrap.fill(view.title, 70))
        add_note(figure, view.note)
    return figure


@singledispatch
def _fill(view: View, axes: Axes, figure: Figure) -> None:
    raise TypeError(f"{type(view).__name__} is not a view that can be drawn")


def _axes(view: View, axes: Axes) -> None:
    axes.set_xlabel(view.x_label)
    axes.set_ylabel(view.y_label)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: format(value, view.y_format)))
    # After all is drawn: an end that is set stops the other from growing.
    axes.set_ylim(0, 1.02 if view.fraction else None)


def _across(axes: Axes, values: list[float], log_x: bool, x_format: str) -> None:
    """Set the x axis: from 0, or of ratios."""
    if log_x:
        axes.set_xscale("log")
        axes.set_xticks(log_ticks(min(values), max(values)))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xlim(min(values) / 1.25, max(values) * 1.25)
    else:
        most = max(values, default=1.0) or 1.0
        axes.set_xlim(0, 1.03 if most <= 1 else 1.08 * most)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: format(value, x_format)))


def log_ticks(least: float, most: float) -> list[float]:
    """Return round numbers in a range, for an axis of ratios; its start where there are none.

    Examples
    --------
    >>> log_ticks(0.5, 40)
    [0.5, 1.0, 2.0, 5.0, 10.0, 20.0]
    >>> log_ticks(3, 4)
    [3]
    """
    steps = (1, 2, 5) if most / least < 1000 else (1,)
    first, last = math.floor(math.log10(least)), math.ceil(math.log10(most))
    found = [float(step * 10.0**power) for power in range(first, last + 1) for step in steps]
    return [tick for tick in found if least / 1.001 <= tick <= most * 1.001] or [least]


@_fill.register
def _scatter(view: Scatter, axes: Axes, figure: Figure) -> None:
    xs = [point.x for point in view.points]
    for line in view.contours:
        axes.plot(line.x, line.y, color=MUTED, linewidth=0.8, linestyle=(0, (4, 2)), zorder=1)
        axes.annotate(
            line.name,
            (line.x[0], line.y[0]),
            xytext=(2, 2),
            textcoords="offset points",
            color=MUTED,
            fontsize=7,
        )
        xs += line.x
    _across(axes, xs, view.log_x, view.x_format)
    # A number in each point and names in the margin: names beside points cover each other.
    for number, point in enumerate(view.points, start=1):
        axes.plot(
            [point.x],
            [point.y],
            "D" if point.marked else "o",
            color=MARK if point.marked else CURVE,
            markersize=11 if point.marked else 12,
            markeredgecolor="white",
            zorder=3 + number / 1000,
            clip_on=False,
            label=f"{number}  {visible(point.name, _NAME)}",
        )
        axes.annotate(
            str(number),
            (point.x, point.y),
            ha="center",
            va="center_baseline",
            color="white",
            fontsize=6,
            zorder=3.0005 + number / 1000,
            annotation_clip=False,
        )
    _axes(view, axes)
    columns = 1 + (len(view.points) - 1) // 26
    figure.set_figwidth(figure.get_figwidth() + 1.6 * columns)
    figure.legend(
        *axes.get_legend_handles_labels(),
        loc="outside right upper",
        fontsize=6.5,
        markerscale=0.5,
        ncols=columns,
        labelspacing=0.35,
    )


@_fill.register
def _lines(view: Lines, axes: Axes, figure: Figure) -> None:
    for place, line in enumerate(view.lines):
        axes.plot(
            line.x,
            line.y,
            marker=MARKERS[place % len(MARKERS)],
            color=SERIES_COLOURS[place % len(SERIES_COLOURS)],
            linestyle=_DASHES[place // len(SERIES_COLOURS) % len(_DASHES)],
            linewidth=1.7,
            markersize=5.5,
            markeredgecolor="white",
            label=visible(line.name, _NAME),
        )
        for x, y, text in zip(line.x, line.y, line.texts, strict=False):
            axes.annotate(
                visible(text, _NAME),
                (x, y),
                xytext=(0, 7),
                textcoords="offset points",
                ha="center",
                fontsize=7,
                color=MUTED,
                path_effects=_STROKE,
            )
    _axes(view, axes)
    if view.ticks:
        axes.set_xticks(range(len(view.ticks)), [visible(tick, 20) for tick in view.ticks])
        axes.set_xlim(-0.3, len(view.ticks) - 0.7)
    else:
        xs = [x for line in view.lines for x in line.x]
        _across(axes, xs, view.log_x, view.x_format)
    _legend(axes, figure)


@_fill.register
def _bars(view: Bars, axes: Axes, figure: Figure) -> None:
    width = 0.8 / len(view.series)
    places = np.arange(len(view.groups))
    for number, (name, values) in enumerate(view.series):
        at = places + (number - (len(view.series) - 1) / 2) * width
        heights = [math.nan if value is None else value for value in values]
        look: dict[str, Any] = {
            "color": SERIES_COLOURS[number % len(SERIES_COLOURS)],
            # Shifted by one for each round of the colours, so that no two series look alike.
            "hatch": _HATCHES[(number + number // len(SERIES_COLOURS)) % len(_HATCHES)],
            "edgecolor": "white",
            "linewidth": 0.5,
            "label": visible(name, _NAME),
        }
        drawn = axes.barh(at, heights, width, **look) if view.flat else None
        drawn = drawn or axes.bar(at, heights, width, **look)
        if len(view.groups) * len(view.series) <= 24:
            texts = ["" if value is None else format(value, view.y_format) for value in values]
            axes.bar_label(drawn, texts, fontsize=6.5, padding=1.5, color=INK)
    names = [visible(name, _NAME) for name in view.groups]
    formatter = FuncFormatter(lambda value, _: format(value, view.y_format))
    if view.flat:
        axes.set_yticks(places, [textwrap.fill(name, 26) for name in names])
        axes.invert_yaxis()
        axes.set_xlabel(view.y_label)
        axes.xaxis.set_major_formatter(formatter)
        axes.grid(visible=False, axis="y")
        figure.set_figheight(max(3.4, 1.6 + 0.14 * len(names) * (1 + len(view.series))))
    else:
        axes.set_xticks(places, [textwrap.fill(name, 15) for name in names], fontsize=7.5)
        axes.set_xlabel(view.x_label)
        axes.set_ylabel(view.y_label)
        axes.yaxis.set_major_formatter(formatter)
        axes.set_ylim(0, 1.06 if view.fraction else None)
        axes.grid(visible=False, axis="x")
        # Groups of few bars are not stretched over the whole width.
        axes.set_xlim(-0.75, max(len(names) - 0.25, 1.75))
    _legend(axes, figure)


def _legend(axes: Axes, figure: Figure) -> None:
    figure.legend(*axes.get_legend_handles_labels(), loc="outside right upper", fontsize=7.5)
