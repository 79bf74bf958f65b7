"""The page: template, styles, script, tables and data put together into one file."""

import base64
import hashlib
import math
import re
from collections.abc import Sequence
from importlib import resources
from string import Template

import pandas as pd

from evaluator.analysis.frontiers import CellFrontiers, average_savings, savings
from evaluator.analysis.headline import Headline, percent
from evaluator.analysis.overthinking import Summary
from evaluator.report.charts import progress_chart
from evaluator.report.data import ReportData
from evaluator.report.payload import page_payload
from evaluator.report.tables import accuracy_table, overthinking_table, savings_table
from evaluator.report.text import html, script_json

LONG_TABLE = 8
_SECTIONS = (
    ("frontiers", "Frontiers"),
    ("overthinking", "OR and AD"),
    ("explorer", "Read the trajectories"),
    ("progress", "Step by step"),
    ("reading", "How to read"),
    ("settings", "Settings"),
)


def _resource(name: str) -> str:
    return resources.files("evaluator.report").joinpath(name).read_text(encoding="utf-8")


def _emphasise(sentence: str) -> str:
    """Return our own sentence as HTML with its numbers marked."""
    return re.sub(r"\d[\d.,]*(?:%| points)", r"<b>\g<0></b>", html(sentence))


def _tiles(summary: Summary) -> str:
    overall = summary.overall
    original = float(overall["original_accuracy"])
    tiles = [
        ("Overthinking ratio, OR", percent(float(overall["overthinking_ratio"]))),
        (
            "Accuracy degradation, AD",
            f"{100 * float(overall['accuracy_degradation']):.1f}<small> points</small>",
        ),
        ("Without thinking, P(0)", percent(float(overall["zero_accuracy"]))),
        ("Full thinking, P(n)", percent(float(overall["full_accuracy"]))),
        ("At the best moment, P(k*)", percent(float(overall["best_accuracy"]))),
        ("Thinking tokens, mean", f"{float(overall['full_tokens']):,.0f}"),
    ]
    if not math.isnan(original):
        tiles.insert(4, ("Original final answers", percent(original)))
    inner = "".join(f'<div class="tile"><dt>{k}</dt><dd>{v}</dd></div>' for k, v in tiles)
    return f'<dl class="tiles">{inner}</dl>'


def _savings(data: ReportData, cells: tuple[CellFrontiers, ...]) -> str:
    """Return the savings of every cell, folded away where they would push the page apart."""
    table = savings_table(data.curves, savings(cells), average_savings(cells))
    if len(cells) <= LONG_TABLE:
        return table
    summary = f"<summary>What could be saved in each of {len(cells)} cells</summary>"
    return f"<details>{summary}{table}</details>"


def _progress_section(changes: pd.DataFrame) -> str:
    chart = progress_chart(changes)
    if not chart:
        return ""
    return (
        '<section id="progress" aria-labelledby="progress-title">'
        '<h2 id="progress-title">Does the next step help?</h2><p class="intro">All steps, sorted '
        "by how far the thinking had come; each changes the measured accuracy upwards, downwards "
        'or not at all. Chance alone moves it a little.</p><div class="card"><ul class="legend">'
        '<li><span class="swatch" style="background:var(--rise)"></span>Accuracy rises</li>'
        '<li><span class="swatch" style="background:var(--flat)"></span>stays</li>'
        '<li><span class="swatch" style="background:var(--fall)"></span>falls</li></ul>'
        f"{chart}</div></section>"
    )


def _settings(data: ReportData) -> str:
    cards = []
    for title, pairs in (("Settings", data.settings), ("Provenance", data.provenance)):
        inner = "".join(f"<dt>{html(k)}</dt><dd>{html(v)}</dd>" for k, v in pairs)
        if inner:
            cards.append(f'<div class="card"><h3>{title}</h3><dl>{inner}</dl></div>')
    if not cards:
        return '<p class="intro">No settings were recorded.</p>'
    return f'<div class="settings">{"".join(cards)}</div>'


def _files(files: Sequence[tuple[str, str, str]]) -> str:
    if not files:
        return ""
    items = "".join(
        f'<li>{html(name)}: <a href="{html(png)}">PNG</a>, <a href="{html(pdf)}">PDF</a></li>'
        for name, png, pdf in files
    )
    return (
        '<section id="files" aria-labelledby="files-title"><h2 id="files-title">Figures for print'
        '</h2><p class="intro">In the folder beside this page.</p>'
        f'<ul class="files">{items}</ul></section>'
    )


def render_page(
    data: ReportData,
    summary: Summary,
    cells: tuple[CellFrontiers, ...],
    changes: pd.DataFrame,
    headline: Headline,
    *,
    files: Sequence[tuple[str, str, str]] = (),
    version: str = "",
) -> str:
    """Return the whole page.

    Parameters
    ----------
    data
        Curves and texts.
    summary, cells, changes, headline
        What was computed from the curves.
    files
        Figures beside the page: (name, relative path of the PNG, of the PDF).
    version
        This project's version.
    """
    script = _resource("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    progress = _progress_section(changes)
    step_clause = f" of about {data.step_tokens} tokens" if data.step_tokens else ""
    return Template(_resource("template.html")).substitute(
        script_hash=f"sha256-{digest}",
        title=html(f"{data.name}: overthinking report"),
        style=_resource("page.css"),
        name=html(data.name),
        sentence=_emphasise(headline.sentence),
        potential=_emphasise(headline.potential),
        scope=html(headline.scope),
        warnings="".join(f'<p class="warning">{html(note)}</p>' for note in data.warnings),
        navigation="".join(
            f'<a href="#{name}">{label}</a>'
            for name, label in _SECTIONS
            if name != "progress" or progress
        ),
        tiles=_tiles(summary),
        savings_table=_savings(data, cells),
        overthinking_table=overthinking_table(data.curves, summary),
        accuracy_table=accuracy_table(data.curves, summary),
        selection_note=html(data.selection_note),
        progress_section=progress,
        step_clause=step_clause,
        probes=data.curves.probes,
        settings=_settings(data),
        files_section=_files(files),
        version=html(version),
        data=script_json(page_payload(data, summary, cells)),
        script=script,
    )
