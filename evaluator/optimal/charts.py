"""The page's charts, as SVG that follows the page's colours."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from evaluator.optimal.bridging import BridgeCell
from evaluator.optimal.metrics import oaa_curve
from evaluator.report.text import html

WIDTH, HALF, HEIGHT = 900, 540, 340
LEFT, RIGHT, TOP, BOTTOM = 50, 26, 12, 44
COLOURS = ("var(--c1)", "var(--c2)", "var(--c3)", "var(--c4)", "var(--c5)", "var(--c6)")
DASHES = ("", "7 3", "2 3", "9 3 2 3")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line of a chart: name, and its points in the units of the axes."""

    name: str
    x: Sequence[float]
    y: Sequence[float]


def line_chart(
    lines: Sequence[Line],
    *,
    x_label: str,
    y_label: str,
    percent_x: bool = False,
    width: int = WIDTH,
) -> str:
    """Return lines over a common axis; y from 0 to 100%."""
    if not lines:
        return ""
    last = max(max(line.x) for line in lines) or 1.0
    inner, tall = width - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def place(x: float, y: float) -> str:
        return f"{LEFT + inner * x / last:.1f},{TOP + tall * (1 - y):.1f}"

    marks, legend = [], []
    for number, line in enumerate(lines):
        points = " ".join(place(x, y) for x, y in zip(line.x, line.y, strict=True))
        dash = DASHES[number // len(COLOURS) % len(DASHES)]
        stroke = f'stroke="{COLOURS[number % len(COLOURS)]}" stroke-width="2.2"'
        stroke += f' stroke-dasharray="{dash}"' if dash else ""
        name = html(line.name, 80)
        marks.append(
            f'<polyline points="{points}" fill="none" {stroke}><title>{name}</title></polyline>'
        )
        legend.append(
            f'<li><svg class="key" viewBox="0 0 26 8"><line x1="0" x2="26" y1="4" y2="4" {stroke}/>'
            f"</svg>{name}</li>"
        )
    grid = [
        f'<line class="grid" x1="{LEFT}" x2="{width - RIGHT}" y1="{TOP + tall * (1 - share):.1f}" '
        f'y2="{TOP + tall * (1 - share):.1f}"/><text x="{LEFT - 8}" '
        f'y="{TOP + tall * (1 - share) + 4:.1f}" text-anchor="end">{share:.0%}</text>'
        for share in (0, 0.25, 0.5, 0.75, 1)
    ]
    ticks = [
        f'<text x="{LEFT + inner * share:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">'
        f"{f'{last * share:.0%}' if percent_x else f'{last * share:,.0f}'}</text>"
        for share in (0, 0.25, 0.5, 0.75, 1)
    ]
    return (
        f'<ul class="legend">{"".join(legend)}</ul><svg viewBox="0 0 {width} {HEIGHT}" role="img" '
        f'aria-label="{html(y_label)} over {html(x_label)}">{"".join(grid)}{"".join(ticks)}'
        f'{"".join(marks)}<text x="{LEFT + inner / 2}" y="{HEIGHT - 4}" text-anchor="middle">'
        f"{html(x_label)}</text></svg>"
    )


def oaa_lines(rows: pd.DataFrame, t_max: int) -> list[Line]:
    """Return OAA_t of every method on the overthinking side; subsets weigh the same."""
    kept = rows[(rows["side"] == "ovt") & rows["right"].notna()]
    lines = []
    for (model, method), group in kept.groupby(["model", "method"], sort=False):
        if group["thinking_tokens"].isna().any() or not group["right"].isin([0, 1]).all():
            continue
        curves: list[npt.NDArray[np.float64]] = [
            _subset_curve(part, t_max) for _, part in group.groupby("subset")
        ]
        mean = np.mean(curves, axis=0)
        step = max(1, t_max // 250)
        x = np.append(np.arange(0, t_max, step), t_max)
        lines.append(Line(name=f"{model}, {method}", x=x.tolist(), y=mean[x].tolist()))
    return lines


def _subset_curve(rows: pd.DataFrame, t_max: int) -> npt.NDArray[np.float64]:
    """Return OAA_t of one subset: responses, then questions."""
    sizes = rows.groupby("question")["right"].transform("size")
    if sizes.nunique() == 1:
        return oaa_curve(
            rows["right"].astype(bool).to_numpy(), rows["thinking_tokens"].astype(int), t_max
        )
    parts = [
        oaa_curve(part["right"].astype(bool).to_numpy(), part["thinking_tokens"].astype(int), t_max)
        for _, part in rows.groupby("question")
    ]
    return np.asarray(np.mean(parts, axis=0))


def bridge_charts(cell: BridgeCell) -> str:
    """Return OAA_t with and without ideal stopping, and the early-exit frontier beside it."""
    step = max(1, cell.thresholds.size // 250)
    x = cell.thresholds[::step].tolist()
    left = line_chart(
        [
            Line(name="full thinking", x=x, y=cell.full_curve[::step].tolist()),
            Line(name="ideal stopping", x=x, y=cell.ideal_curve[::step].tolist()),
        ],
        x_label="t, thinking tokens",
        y_label="OAA",
        width=HALF,
    )
    right = line_chart(
        [Line(name="early-exit frontier", x=cell.budgets.tolist(), y=cell.frontier.tolist())],
        x_label="budget, part of full thinking's tokens",
        y_label="best accuracy",
        percent_x=True,
        width=HALF,
    )
    return f'<div class="pair"><div>{left}</div><div>{right}</div></div>'


def bar_chart(labels: Sequence[str], values: Sequence[float], *, unit: str) -> str:
    """Return horizontal bars, in the order given."""
    most = max(values, default=0.0) or 1.0
    row, label = 22, 250
    height = row * len(labels) + 8
    bars = "".join(
        f'<text x="{label - 8}" y="{row * n + 19}" text-anchor="end">{html(name, 44)}</text>'
        f'<rect x="{label}" y="{row * n + 7}" width="{(WIDTH - label - 90) * value / most:.1f}" '
        f'height="15" rx="3"/><text x="{label + (WIDTH - label - 90) * value / most + 6:.1f}" '
        f'y="{row * n + 19}">{value:,.0f}</text>'
        for n, (name, value) in enumerate(zip(labels, values, strict=True))
    )
    return (
        f'<svg class="bars" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{html(unit)}">'
        f"{bars}</svg>"
    )
