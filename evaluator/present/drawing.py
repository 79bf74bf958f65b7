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
from evaluator.present.ticks import log_ticks
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
        _fill(view, axes)
        axes.set_title(textwrap.fill(view.title, 70))
        add_note(figure, view.note)
    return figure


@singledispatch
def _fill(view: View, axes: Axes) -> None:
    raise TypeError(f"{type(view).__name__} is no view that can be drawn")


def _axes(view: View, axes: Axes) -> None:
    axes.set_xlabel(view.x_label)
    axes.set_ylabel(view.y_label)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: format(value, view.y_format)))
    axes.set_ylim(0, 1.02 if view.fraction else None)


def _across(axes: Axes, values: list[float], log_x: bool, x_format: str) -> None:
    """Set the x axis: from 0, or of ratios."""
    if log_x:
        axes.set_xscale("log")
        axes.set_xticks(log_ticks(min(values), max(values)))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xlim(min(values) / 1.25, max(values) * 1.6)
    else:
        axes.set_xlim(0, 1.08 * max(values, default=1.0) or 1.0)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: format(value, x_format)))


@_fill.register
def _scatter(view: Scatter, axes: Axes) -> None:
    _axes(view, axes)
    xs = [point.x for point in view.points]
    for line in view.contours:
        axes.plot(line.x, line.y, color=MUTED, linewidth=0.8, linestyle=(0, (4, 2)), zorder=1)
        inside = [(x, y) for x, y in zip(line.x, line.y, strict=True) if y <= 0.97]
        if inside:
            axes.annotate(line.name, inside[0], color=MUTED, fontsize=7, path_effects=_STROKE)
        xs += [x for x, _ in inside]
    _across(axes, xs, view.log_x, view.x_format)
    for place, point in enumerate(view.points):
        axes.plot(
            [point.x],
            [point.y],
            MARKERS[place % len(MARKERS)],
            color=MARK if point.marked else CURVE,
            markersize=6.5,
            markeredgecolor="white",
            zorder=3,
            clip_on=False,
        )
    _names(view, axes)


def _names(view: Scatter, axes: Axes) -> None:
    """Name the points beside them, above or below where another name is near."""
    middle = np.mean(axes.get_xlim()) if not view.log_x else math.sqrt(np.prod(axes.get_xlim()))
    taken: list[tuple[bool, float]] = []
    for point in sorted(view.points, key=lambda each: each.y):
        left = point.x > middle
        height = point.y
        for side, before in taken:
            if side == left and height - before < 0.045:
                height = before + 0.045
        taken.append((left, height))
        axes.annotate(
            visible(point.name, _NAME),
            (point.x, point.y),
            xytext=(-7 if left else 7, 245 * (height - point.y)),
            textcoords="offset points",
            ha="right" if left else "left",
            va="center",
            color=INK,
            fontsize=7.5,
            path_effects=_STROKE,
            zorder=4,
        )


@_fill.register
def _lines(view: Lines, axes: Axes) -> None:
    _axes(view, axes)
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
    if view.ticks:
        axes.set_xticks(range(len(view.ticks)), [visible(tick, 20) for tick in view.ticks])
        axes.set_xlim(-0.3, len(view.ticks) - 0.7)
    else:
        xs = [x for line in view.lines for x in line.x]
        _across(axes, xs, view.log_x, view.x_format)
    _legend(axes, len(view.lines))


@_fill.register
def _bars(view: Bars, axes: Axes) -> None:
    width = 0.8 / len(view.series)
    places = np.arange(len(view.groups))
    for number, (name, values) in enumerate(view.series):
        at = places + (number - (len(view.series) - 1) / 2) * width
        heights = [math.nan if value is None else value for value in values]
        look = {
            "color": SERIES_COLOURS[number % len(SERIES_COLOURS)],
            "hatch": _HATCHES[number % len(_HATCHES)],
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
        axes.figure.set_figheight(max(3.4, 1.6 + 0.14 * len(names) * (1 + len(view.series))))
    else:
        axes.set_xticks(places, [textwrap.fill(name, 15) for name in names], fontsize=7.5)
        axes.set_xlabel(view.x_label)
        axes.set_ylabel(view.y_label)
        axes.yaxis.set_major_formatter(formatter)
        axes.set_ylim(0, 1.06 if view.fraction else None)
        axes.grid(visible=False, axis="x")
        # Groups of few bars are not stretched over the whole width.
        axes.set_xlim(-0.75, max(len(names) - 0.25, 1.75))
    _legend(axes, len(view.series))


def _legend(axes: Axes, entries: int) -> None:
    if entries > 1 or axes.get_legend_handles_labels()[1] != [""]:
        axes.figure.legend(
            *axes.get_legend_handles_labels(), loc="outside right upper", fontsize=7.5
        )
