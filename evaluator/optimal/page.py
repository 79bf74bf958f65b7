"""The report as one HTML page that works from disk: no script, no network, all text escaped."""

from importlib import metadata
from typing import Final

import numpy as np

from evaluator.optimal.charts import bar_chart, bridge_charts, line_chart, oaa_lines
from evaluator.optimal.results import Results, ShownExample
from evaluator.optimal.scores import MEASURES
from evaluator.present.table import Table
from evaluator.present.table_html import table_html
from evaluator.report.text import html

_CSP: Final = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_STYLE: Final = """
:root { --paper: #fafaf7; --card: #fff; --ink: #1b2026; --muted: #5d6672; --line: #dfe2e0;
  --soft: #f0f1ed; --accent: #0b4f8a; --mark: #b93a0b;
  --c1: #0b4f8a; --c2: #c2410c; --c3: #14805f; --c4: #8a3ffc; --c5: #b7791f; --c6: #64748b; }
@media (prefers-color-scheme: dark) { :root { --paper: #12161b; --card: #1a2027; --ink: #e7eaee;
  --muted: #9aa5b1; --line: #2d353e; --soft: #222a32; --accent: #7db8ec; --mark: #ff9466;
  --c1: #7db8ec; --c2: #ff9466; --c3: #5fcf9b; --c4: #c4a5ff; --c5: #f0c36a; --c6: #a8b3c0; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.55 Inter, system-ui, "Segoe UI", "Liberation Sans", sans-serif; }
header, main, footer { max-width: 1180px; margin: 0 auto; padding: 0 clamp(16px, 3vw, 32px); }
.eyebrow { margin: 2rem 0 0; font-size: .78rem; letter-spacing: .09em; text-transform: uppercase;
  color: var(--muted); }
h1 { font-size: 1.8rem; line-height: 1.2; margin: .3rem 0 .8rem; overflow-wrap: anywhere; }
h2 { font: 600 1.4rem/1.25 Charter, Georgia, "Liberation Serif", serif; margin: 0 0 .3rem; }
h3 { font-size: .95rem; margin: 1rem 0 .4rem; overflow-wrap: anywhere; }
.lead { font: 400 1.55rem/1.3 Charter, Georgia, "Liberation Serif", serif; max-width: 34em;
  margin: 0 0 .8rem; text-wrap: pretty; }
.lead b { color: var(--mark); font-weight: 600; }
p { max-width: 54em; } .note, .intro, footer { color: var(--muted); } .note { font-size: .9rem; }
nav { display: flex; flex-wrap: wrap; gap: .3rem 1.1rem; padding: .6rem 0; font-size: .92rem;
  border-block: 1px solid var(--line); }
a { color: var(--accent); text-decoration: none; } a:hover { text-decoration: underline; }
section { margin: 2.6rem 0; scroll-margin-top: 1rem; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 12px;
  padding: 14px 16px; margin: 0 0 .7rem; overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; min-width: 100%;
  font-size: .93rem; }
th, td { padding: .32rem .7rem; text-align: right; border-bottom: 1px solid var(--line);
  white-space: nowrap; }
.label { text-align: left; } thead th { color: var(--muted); font-weight: 600; font-size: .86rem; }
tbody tr:last-child td { border-bottom: 0; } tbody tr:hover { background: var(--soft); }
svg { width: 100%; height: auto; display: block; }
svg text { fill: var(--muted); font-size: 13px; } .grid { stroke: var(--line); }
.bars rect { fill: var(--c1); opacity: .85; } .bars text { fill: var(--ink); }
.legend { display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; font-size: .88rem; margin: 0 0 .6rem;
  padding: 0; list-style: none; }
svg.key { display: inline-block; width: 26px; height: 8px; margin-right: .4em; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr));
  gap: 1rem; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: var(--soft); padding: .6rem .8rem;
  border-radius: 8px; font: .88rem/1.45 ui-monospace, "DejaVu Sans Mono", monospace;
  max-height: 22rem; overflow: auto; margin: .3rem 0; }
details { margin: 0 0 .7rem; } summary { cursor: pointer; color: var(--accent); }
footer { font-size: .85rem; border-top: 1px solid var(--line); padding-block: 1rem 2.5rem; }
"""
_LONG = 24
"""Rows from which on a table is folded."""


def render_page(results: Results, *, title: str) -> str:
    """Return the page's HTML.

    Parameters
    ----------
    results
        What it shows.
    title
        Its heading.
    """
    tables = {table.name: table for table in results.tables}
    sections: list[tuple[str, str, str]] = [
        ("scores", "Scores", _table(tables["scores"])),
    ]
    chart = _oaa_chart(results)
    if chart:
        sections.append(("oaa", "Accuracy below a number of thinking tokens", chart))
    sections.append(("methods", "Methods", _table(tables["methods"])))
    sections.append(("subsets", "Subsets", _table(tables["subsets"])))
    if results.cells:
        sections.append(("bridge", "What stopping could win back", _bridge(results, tables)))
    analysis = _analysis(tables)
    if analysis:
        sections.append(("analysis", "Where the thinking goes", analysis))
    sections.append(
        ("examples", "Overthinking and underthinking, seen", _examples(results, tables))
    )
    sections.append(("judging", "How answers were judged", _judging(results)))
    sections.append(("reading", "How to read this page", _READING))
    links = "".join(f'<a href="#{name}">{html(heading)}</a>' for name, heading, _ in sections)
    body = "".join(
        f'<section id="{name}"><h2>{html(heading)}</h2>{inner}</section>'
        for name, heading, inner in sections
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_CSP}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{html(title, 120)}</title><style>{_STYLE}</style></head><body><header>"
        f'<p class="eyebrow">OptimalThinkingBench</p><h1>{html(title, 120)}</h1>{_lead(results)}'
        f"<nav>{links}</nav></header><main>{body}</main>"
        f"<footer><p>Made by STP Engine {html(metadata.version('stp-engine'))}. This page loads "
        "nothing from anywhere.</p></footer></body></html>\n"
    )


def _lead(results: Results) -> str:
    scores = results.scores
    f1 = scores.values[:, 0]
    if np.isnan(f1).all():
        return (
            '<p class="lead">One side only: F1 needs overthinking and underthinking questions, and '
            "known thinking tokens.</p>"
        )
    best = int(np.nanargmax(f1))
    model, method = scores.rows[best]
    values = dict(zip(MEASURES, scores.values[best], strict=True))
    sentence = (
        f"{html(model, 60)} with the method {html(method, 60)} has the best F1, "
        f"<b>{100 * values['f1']:.1f}</b>: AUC<sub>OAA</sub> {100 * values['auc_oaa']:.1f} on easy "
        f"questions, accuracy {100 * values['ut_accuracy']:.1f} on hard ones."
    )
    if f1[best] == 0:
        sentence = (
            "No model and method scores above <b>0</b>: F1 is 0 where one of its two sides is."
        )
    responses = int(scores.responses.sum())
    questions = results.rows["question"].nunique()
    return (
        f'<p class="lead">{sentence}</p><p class="note">{len(scores.rows)} rows, '
        f"{questions:,} questions, {responses:,} graded responses.</p>"
    )


def _table(table: Table) -> str:
    """Return a table; a long one is folded."""
    inner, count = table_html(table), len(table.frame)
    if count <= _LONG:
        return inner
    return f"<details><summary>{html(table.title)}: {count} rows</summary>{inner}</details>"


def _oaa_chart(results: Results) -> str:
    lines = oaa_lines(results.rows, results.scores.t_max)
    if not lines:
        return ""
    chart = line_chart(lines, x_label="t, thinking tokens", y_label="OAA")
    return (
        '<p class="intro">OAA<sub>t</sub>: the share of responses to easy questions that are right '
        "with fewer than t thinking tokens. The area below a line is its AUC<sub>OAA</sub>.</p>"
        f'<div class="card">{chart}</div>'
    )


def _bridge(results: Results, tables: dict[str, Table]) -> str:
    charts = "".join(
        f"<h3>{html(cell.model, 60)} on {html(cell.benchmark, 60)}</h3>"
        f'<div class="card">{bridge_charts(cell)}</div>'
        for cell in results.cells
    )
    return (
        '<p class="intro">The same questions, probed step by step: what AUC<sub>OAA</sub> would be '
        "had every trajectory stopped at its best moment, and beside it the best accuracy for "
        f"every budget of thinking tokens.</p>{_table(tables['bridge'])}{charts}"
    )


def _analysis(tables: dict[str, Table]) -> str:
    parts = []
    bars = tables.get("thinking_discipline") or tables.get("thinking_domain")
    if bars is not None:
        known = bars.frame["thinking tokens"].dropna()
        if len(known):
            chart = bar_chart([str(i) for i in known.index], known.tolist(), unit=bars.title)
            parts.append(f'<h3>{html(bars.title)}</h3><div class="card">{chart}</div>')
    names = (
        "thinking_answer_type",
        "thinking_discipline",
        "thinking_domain",
        "deltas_benchmark",
        "deltas_answer_type",
        "deltas_discipline",
        "deltas_domain",
        "correlations",
        "options",
        "sizes",
    )
    for name in names:
        table = tables.get(name)
        if table is not None:
            parts.append(f"<h3>{html(table.title)}</h3>{_table(table)}")
    return "".join(parts)


def _examples(results: Results, tables: dict[str, Table]) -> str:
    table = tables.get("examples")
    if table is None:
        return (
            '<p class="intro">No question shows a difference between thinking and not thinking '
            "that stands the correction for having looked at all of them. More seeds show more: "
            "the paper takes 128 responses.</p>"
        )
    return _table(table) + "".join(_example(each) for each in results.shown)


def _example(shown: ShownExample) -> str:
    each = shown.example
    return (
        f"<details><summary>{html(each.kind)}: {html(each.question, 90)}</summary>"
        f"<pre>{html(shown.prompt)}</pre><p>Reference: {html(shown.reference, 300)}</p>"
        f"<h3>{html(each.better)}: right in {each.better_right} of {each.better_responses}</h3>"
        f"<pre>{html(shown.better_text)}</pre>"
        f"<h3>{html(each.worse)}: right in {each.worse_right} of {each.worse_responses}</h3>"
        f"<pre>{html(shown.worse_text)}</pre></details>"
    )


def _judging(results: Results) -> str:
    if not results.judgings:
        return '<p class="intro">By rule, while probing.</p>'
    items = []
    for model, judging in results.judgings.items():
        text = (
            f"{html(model, 60)}: {judging.responses:,} responses, {judging.by_rule:,} decided by "
            f"rule, {judging.by_judge:,} by the judge"
        )
        if judging.judge:
            text += f" ({html(judging.judge, 80)})"
        if judging.undecided:
            text += f", {judging.undecided:,} undecided and left out"
        agreed = judging.agreement
        if agreed.pairs:
            text += (
                f". Of {agreed.cases:,} answers judged repeatedly {agreed.unanimous:,} got one "
                f"verdict throughout; {100 * agreed.agreeing_pairs / agreed.pairs:.0f}% of pairs "
                "agree"
            )
        if judging.unrouted:
            text += f". The router sorted all questions but {judging.unrouted:,}"
        items.append(f"<li>{text}.</li>")
    return f"<ul>{''.join(items)}</ul>"


_READING: Final = (
    "<dl><dt><b>OvT, UT</b></dt><dd>The overthinking side has easy questions, where a right answer "
    "counts the less the longer it was thought about; the underthinking side has hard ones, where "
    "only being right counts.</dd>"
    "<dt><b>AUC OAA</b></dt><dd>Mean over responses of: 0 if wrong, else 1 minus thinking tokens "
    "over t<sub>max</sub>, at least 0. It equals the accuracy of a model that does not think.</dd>"
    "<dt><b>F1</b></dt><dd>The harmonic mean of AUC OAA on the one side and accuracy on the other; "
    "0 if both are 0.</dd>"
    "<dt><b>Averages</b></dt><dd>Responses, then questions, then subsets of a side with equal "
    "weight.</dd>"
    "<dt><b>Router, oracle router</b></dt><dd>A router takes the response with or without thinking "
    "for each question; a model sorts the questions, and the oracle knows the sides.</dd></dl>"
)
