"""The report of methods on a release: one page that works from disk, figures beside it."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata, resources
from pathlib import Path

from data.errors import StoreError
from evaluator.analysis.frontiers import average_frontiers, cell_frontiers
from evaluator.analysis.headline import count
from evaluator.otbench.compare import (
    best_trivial,
    differences_table,
    leaderboard_table,
    order_rows,
)
from evaluator.otbench.leaderboard import Row
from evaluator.otbench.load import Release
from evaluator.otbench.run import split_curves
from evaluator.present.table import Table
from evaluator.report.text import html
from stp.files import write_durably

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; \
img-src data:; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
{style}
.figure img {{ width: 100%; height: auto; display: block; background: #fff; border-radius: 8px; }}
.figures {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 560px), 1fr)); \
gap: 1rem; }}
.scroll thead th {{ white-space: normal; vertical-align: bottom; }}
.scroll th, .scroll td {{ padding-inline: .55rem; }}
.scroll tbody th[scope="row"] {{ white-space: normal; overflow-wrap: break-word; \
max-width: 12.5rem; }}
.scroll caption span, .scroll th strong {{ position: sticky; left: .55rem; \
display: inline-block; max-width: calc(100vw - 4rem); }}
.scroll caption {{ padding-inline: .55rem; }}
.figure {{ margin: 0; }} .figure figcaption {{ font-size: .9rem; padding-top: .4rem; }}
</style>
</head>
<body>
<header class="top">
<p class="eyebrow">OTBench</p>
<h1>{title}</h1>
<p class="lead">{lead}</p>
<p class="scope">{scope}</p>
{warnings}
</header>
<main>
<section aria-labelledby="curves"><h2 id="curves">Method curves and frontiers</h2>
<p class="intro">Every point is a setting of a method, measured on test questions. A frontier is \
the exact best that its strategy could have done on the same trajectories, knowing all answers: a \
bound, no method. The grey lines know nothing of the question.</p>
<div class="figures">{figures}</div></section>
<section aria-labelledby="rows"><h2 id="rows">Leaderboard</h2>{table}</section>
{differences}
<section aria-labelledby="files"><h2 id="files">Files</h2>
<ul class="files"><li><a href="leaderboard.jsonl">leaderboard.jsonl</a>: a row for each method, \
with all points and their intervals</li>\
<li><a href="points.csv">points.csv</a>: the points as a table</li></ul></section>
<section aria-labelledby="reading"><h2 id="reading">How to read this page</h2>
<dl class="reading">
<dt>Three splits</dt><dd>Methods learn on training questions; their setting is selected on \
validation questions (the fewest tokens that keep the accuracy of full thinking, else the best \
accuracy); everything shown is measured on test questions.</dd>
<dt>Gap, gain realised</dt><dd>At exactly the tokens that a setting spent in each cell, the \
frontier's accuracy less the setting's; and the setting's gain over full thinking as a share of \
the frontier's. Nothing is interpolated.</dd>
<dt>Area</dt><dd>The best accuracy within each of 101 budgets, less P(0), averaged; and that as a \
share of the frontier's (the hypervolume relative to it).</dd>
<dt>Signals</dt><dd>Tokens that a method's own probes and passes take, over full thinking's. They \
are not in the retained tokens, as in the paper.</dd>
<dt>A caution</dt><dd>Methods that look at probed answers look at one of the probes that accuracy \
is counted over, and frontiers are chosen and scored on the same probes: both look a little better \
than they are.</dd>
</dl></section>
</main>
<footer><p>Made by STP Engine {version}. This page loads nothing from anywhere.</p></footer>
</body>
</html>
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PagePaths:
    """What was written: the page, and PNG and PDF figures."""

    page: Path
    figures: tuple[Path, ...]


def write_page(
    release: Release, rows: Sequence[Row], folder: Path, *, notes: Sequence[str] = ()
) -> PagePaths:
    """Write the report of a release's rows.

    Parameters
    ----------
    release
        What they were measured on.
    rows
        Its rows, in any order.
    folder
        Where ``otbench.html`` and ``figures/`` go.
    notes
        What a reader must know, shown on top.

    Raises
    ------
    data.errors.StoreError
        If it cannot be written.
    """
    # matplotlib is needed at the end alone: a run begins, and a row is made again, without it.
    from evaluator.figures.style import save
    from evaluator.otbench.figures import method_figures

    ordered = order_rows(rows)
    frontiers = average_frontiers(cell_frontiers(split_curves(release, "test")))
    page = folder / "otbench.html"
    written: list[Path] = []
    shown = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for named in method_figures(ordered, frontiers, name=release.name):
            png, pdf = save(named.figure, folder / "figures" / named.stem)
            written += [png, pdf]
            data = base64.b64encode(png.read_bytes()).decode()
            shown.append(
                f'<figure class="figure card"><img alt="{html(named.title)}" '
                f'src="data:image/png;base64,{data}"><figcaption>{html(named.title)}: '
                f'<a href="figures/{png.name}">PNG</a>, <a href="figures/{pdf.name}">PDF</a>'
                "</figcaption></figure>"
            )
        text = _PAGE.format(
            title=html(f"{release.name}: termination methods"),
            style=resources.files("evaluator.report").joinpath("page.css").read_text("utf-8"),
            lead=html(lead(ordered)),
            scope=html(_scope(release, ordered)),
            warnings="".join(f'<p class="warning">{html(note)}</p>' for note in notes),
            figures="".join(shown),
            table=_table(leaderboard_table(ordered)),
            differences=_differences(ordered),
            version=html(_version()),
        )
        write_durably(page, text.encode())
    except OSError as error:
        raise StoreError(f"{folder}: the report cannot be written: {error}") from error
    return PagePaths(page=page, figures=tuple(written))


def lead(rows: Sequence[Row]) -> str:
    """Return what the rows say in a sentence: the best method, and whether it is any good."""
    real = [row for row in rows if not row["method"]["trivial"]]
    if not real:
        return "Only trivial methods were run."
    best = max(real, key=lambda row: row["summary"]["curve_area"]["value"])
    base = next(row for row in rows if row["label"] == best_trivial(rows))
    share = best["summary"]["hypervolume_share"]["value"]
    reached = "" if share is None else f", {100 * share:.0f}% of its frontier's"
    ahead = best["summary"]["curve_area"]["value"] - base["summary"]["curve_area"]["value"]
    verdict = f"{100 * abs(ahead):.1f} points of area {'more' if ahead > 0 else 'less'} than"
    return (
        f"{best['label']} has the largest area of {count(len(real), 'method')}{reached}: {verdict} "
        f"the best trivial line, {base['label']}."
    )


def _scope(release: Release, rows: Sequence[Row]) -> str:
    questions = release.manifest["questions"]
    curves = release.curves
    return (
        f"{questions['train']:,} training, {questions['validation']:,} validation and "
        f"{questions['test']:,} test questions; {count(len(curves.model_names), 'model')}, "
        f"{count(len(curves.benchmark_names), 'benchmark')}; "
        f"P(0) {100 * rows[0]['zero_accuracy']:.1f}%, P(n) "
        f"{100 * rows[0]['full_accuracy']:.1f}% on test questions. Release "
        f"{release.checksum[:12]}; {rows[0]['resampling']['replicates']:,} bootstrap replicates."
    )


def _differences(rows: Sequence[Row]) -> str:
    """Return the rows that can be paired with the best trivial one, less it."""
    label = best_trivial(rows)
    base = next(row for row in rows if row["label"] == label)
    if not base["resampling"]["replicates"]:
        return ""
    paired = [row for row in rows if row["resampling"] == base["resampling"]]
    if len(paired) < 2:
        return ""
    left_out = (
        f'<p class="intro">{count(len(rows) - len(paired), "row")} with other replicates cannot be '
        "paired.</p>"
        if len(paired) < len(rows)
        else ""
    )
    return (
        '<section aria-labelledby="differences"><h2 id="differences">Against the best trivial line'
        f"</h2>{_table(differences_table(paired, label))}{left_out}</section>"
    )


def _table(table: Table) -> str:
    """Return a table of texts, its two index levels as headings of a row."""
    frame = table.frame
    # A lone unit says nothing on a line of its own.
    headings = [html(str(column)).replace(", %", ",&nbsp;%") for column in frame.columns]
    header = "".join(f'<th scope="col">{heading}</th>' for heading in headings)
    body, before = [], None
    for (strategy, method), line in zip(
        frame.index.tolist(), frame.to_numpy(object).tolist(), strict=True
    ):
        if strategy != before:
            span = len(frame.columns) + 1
            body.append(
                f'<tr><th scope="rowgroup" style="text-align:left" colspan="{span}">'
                f"<strong>{html(strategy)}</strong></th></tr>"
            )
            before = strategy
        cells = "".join(f"<td>{_cell(str(value))}</td>" for value in line)
        body.append(f'<tr><th scope="row">{html(method)}</th>{cells}</tr>')
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{html(table.title)}"><table>'
        f"<caption><span>{html(table.title)}</span></caption><thead><tr>"
        f'<th class="first" scope="col">Method</th>{header}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table></div>"
        f'<p class="intro">{html(table.note)}</p>'
    )


def _cell(text: str) -> str:
    """Return a value with its interval below it."""
    value, separator, rest = html(text).partition(" [")
    return f"{value}<br><small>[{rest}</small>" if separator else value


def _version() -> str:
    try:
        return metadata.version("stp-engine")
    except metadata.PackageNotFoundError:
        return "(not installed)"
