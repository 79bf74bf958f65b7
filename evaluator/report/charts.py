"""The page's one still chart, drawn as SVG so that it follows the page's colours."""

import pandas as pd

from evaluator.figures.step_changes import FEWEST_STEPS

WIDTH, HEIGHT = 900, 250
LEFT, RIGHT, TOP, BOTTOM = 46, 10, 8, 40


def progress_chart(changes: pd.DataFrame) -> str:
    """Return stacked bars of rising, flat and falling steps, or nothing without enough steps.

    Parameters
    ----------
    changes
        What :func:`evaluator.analysis.step_changes.changes_by_progress` returns. Bins with fewer
        than that module's ``FEWEST_STEPS`` steps are left out.
    """
    kept = changes[changes["steps"] >= FEWEST_STEPS]
    if kept.empty:
        return ""
    last = float(kept["to_tokens"].max())
    inner, tall = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def x(tokens: float) -> float:
        return LEFT + inner * tokens / last

    marks = []
    columns = ["from_tokens", "to_tokens", "steps", "positive", "flat", "negative"]
    for start, end, steps, positive, flat, negative in kept[columns].to_numpy(float).tolist():
        title = (
            f"{start:,.0f} to {end:,.0f} tokens: {steps:,.0f} steps, "
            f"{positive:.0%} rise, {flat:.0%} stay, {negative:.0%} fall"
        )
        bottom = float(TOP + tall)
        parts = []
        for kind, share in (("fall", negative), ("flat", flat), ("rise", positive)):
            height = tall * share
            bottom -= height
            parts.append(
                f'<rect class="{kind}" x="{x(start) + 0.75:.2f}" y="{bottom:.2f}" '
                f'width="{max(0.5, x(end) - x(start) - 1.5):.2f}" '
                f'height="{height:.2f}"/>'
            )
        marks.append(f"<g><title>{title}</title>{''.join(parts)}</g>")
    ticks = [
        f'<text x="{LEFT - 8}" y="{TOP + tall * (1 - share) + 4:.1f}" text-anchor="end">'
        f"{share:.0%}</text>"
        for share in (0, 0.5, 1)
    ]
    every = max(1, -(-len(kept) // 8))
    ticks += [
        f'<text x="{x(edge):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">'
        f"{int(edge):,}</text>"
        for edge in [*kept["from_tokens"].tolist()[::every], last]
        if edge == last
        or last - edge >= 0.6 * every * (kept["to_tokens"] - kept["from_tokens"]).iloc[0]
    ]
    label = (
        f'<text x="{LEFT + inner / 2}" y="{HEIGHT - 4}" text-anchor="middle">'
        "Thinking tokens so far, L(k)</text>"
    )
    return (
        f'<div class="chart"><svg class="stack" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        'aria-label="Fractions of steps after which the accuracy rises, stays or falls">'
        f"{''.join(marks)}{''.join(ticks)}{label}</svg></div>"
    )
