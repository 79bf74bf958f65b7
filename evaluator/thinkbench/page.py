"""A comparison as one HTML page that works from disk: no script, no network, text escaped."""

from pathlib import Path
from typing import Final

from evaluator.present.table import Table
from evaluator.present.table_html import table_html
from evaluator.report.text import html
from evaluator.thinkbench.bridge import Bridge, bridge_table
from evaluator.thinkbench.comparison import Comparison
from evaluator.thinkbench.tables import comparison_tables
from stp.files import write_durably

_STYLE: Final = """
:root { --paper: #fafaf7; --card: #fff; --ink: #1b2026; --muted: #5d6672; --line: #dfe2e0;
  --accent: #0b4f8a; --soft: #f0f1ed; }
@media (prefers-color-scheme: dark) { :root { --paper: #12161b; --card: #1a2027; --ink: #e7eaee;
  --muted: #9aa5b1; --line: #2d353e; --accent: #7db8ec; --soft: #222a32; } }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, "Segoe UI", "Liberation Sans", sans-serif; }
main, header { max-width: 1180px; margin: 0 auto; padding: 0 clamp(16px, 3vw, 32px); }
h1 { font-size: 1.8rem; margin: 1.6rem 0 .4rem; } h2 { font-size: 1.2rem; margin: 2.2rem 0 .3rem; }
p { max-width: 54em; color: var(--muted); margin: .2rem 0 .8rem; }
.lead { color: var(--ink); font-size: 1.15rem; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 12px;
  padding: 12px; overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; min-width: 100%; }
th, td { padding: .3rem .7rem; text-align: right; border-bottom: 1px solid var(--line);
  white-space: nowrap; }
th:first-child, td:first-child, .label { text-align: left; }
thead th { color: var(--muted); font-weight: 600; font-size: .88rem; }
tbody tr:hover { background: var(--soft); }
svg { max-width: 100%; height: auto; } svg text { fill: var(--ink); font-size: 12px; }
.axis { stroke: var(--line); } .dot { fill: var(--muted); } .best { fill: var(--accent); }
"""


def write_page(comparison: Comparison, path: str | Path, *, bridge: Bridge | None = None) -> Path:
    """Write a comparison as a page; returns where it is.

    Parameters
    ----------
    comparison
        Runs in one pool.
    path
        The HTML file, or a folder for ``index.html``.
    bridge
        A campaign beside the runs: a section with O-Score, OR, AD and frontiers together.

    Raises
    ------
    data.errors.StoreError
        If it cannot be written there.
    """
    target = Path(path).expanduser()
    if target.is_dir() or target.suffix.lower() not in (".html", ".htm"):
        target /= "index.html"
    write_durably(target, render_page(comparison, bridge=bridge).encode())
    return target


def render_page(comparison: Comparison, *, bridge: Bridge | None = None) -> str:
    """Return the page's HTML."""
    tables = comparison_tables(comparison)
    sections = [_section(tables[0]), _plane(comparison)]
    if bridge is not None:
        sections.append(_section(bridge_table(bridge)))
    sections += [_section(table) for table in tables[1:]]
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>LLMThinkBench: {len(comparison.runs)} runs</title><style>{_STYLE}</style></head>"
        f"<body><header><h1>LLMThinkBench</h1>{_lead(comparison)}</header>"
        f"<main>{''.join(sections)}</main></body></html>\n"
    )


def _lead(comparison: Comparison) -> str:
    best = comparison.runs[0]
    score = comparison.scores[best.name].mean_oscore
    accuracy = max(comparison.runs, key=lambda run: run.measures.overall.accuracy.mean)
    sentence = f"{html(best.name, 60)} has the best O-Score, {score:.3f}"
    if len(comparison.runs) == 1:
        sentence = f"{html(best.name, 60)} has an O-Score of {score:.3f}, alone in its pool"
    elif accuracy is best:
        sentence += ", and is the most accurate too."
    else:
        share = 100 * accuracy.measures.overall.accuracy.mean
        sentence += f"; {html(accuracy.name, 60)} is the most accurate, {share:.1f} %."
    return f'<p class="lead">{sentence}</p><p>{html(comparison.pool.describe())}.</p>'


def _section(table: Table) -> str:
    return f'<section id="{table.name}"><h2>{html(table.title)}</h2>{table_html(table)}</section>'


def _plane(comparison: Comparison) -> str:
    """Draw accuracy over efficiency; runs that no other beats are marked and named."""
    width, height, left, top = 640, 360, 52, 14
    inner_width, inner_height = width - left - 24, height - top - 46
    marks = []
    for run in comparison.runs:
        accuracy = run.measures.overall.accuracy.mean
        efficiency = comparison.scores[run.name].mean_efficiency
        x, y = left + efficiency * inner_width, top + (1 - accuracy) * inner_height
        best = run.name in comparison.pareto
        kind = "best" if best else "dot"
        name = html(run.name, 40)
        anchor = "end" if efficiency > 0.7 else "start"
        shift = -9 if efficiency > 0.7 else 9
        marks.append(
            f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="5"><title>{name}: accuracy '
            f"{100 * accuracy:.1f} %, efficiency {efficiency:.3f}</title></circle>"
            + (
                f'<text x="{x + shift:.1f}" y="{y + 4:.1f}" text-anchor="{anchor}">{name}</text>'
                if best
                else ""
            )
        )
    ticks = "".join(
        f'<line class="axis" x1="{left}" x2="{left + inner_width}" y1="{y:.1f}" y2="{y:.1f}"/>'
        f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{share} %</text>'
        f'<text x="{left + share / 100 * inner_width:.1f}" y="{height - 28}" '
        f'text-anchor="middle">{share / 100:.2f}</text>'
        for share in (0, 25, 50, 75, 100)
        for y in (top + (1 - share / 100) * inner_height,)
    )
    return (
        '<section id="plane"><h2>Accuracy and token efficiency</h2><div class="card">'
        f'<svg viewBox="0 0 {width} {height}" width="{width}" role="img" '
        f'aria-label="Accuracy over token efficiency">{ticks}{"".join(marks)}'
        f'<text x="{left + inner_width / 2:.0f}" y="{height - 6}" text-anchor="middle">'
        "token efficiency (further right: shorter)</text></svg></div>"
        "<p>Up: accuracy. Marked and named: runs that no other beats in both.</p></section>"
    )
