"""An analysis as files: tables in three forms, figures in two, findings as text."""

from dataclasses import dataclass
from pathlib import Path

from data.progress import NOBODY, Progress
from evaluator.analysis.pipeline import Analysis
from evaluator.figures.catalogue import MOST_FIGURES
from evaluator.present.figure_style import save
from evaluator.present.names import visible
from evaluator.present.table import write_tables
from stp.files import write_durably


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysisPaths:
    """What was written."""

    folder: Path
    tables: tuple[Path, ...]
    figures: tuple[Path, ...]
    findings: Path


def write_analysis(
    analysis: Analysis, out_dir: Path, *, progress: Progress = NOBODY
) -> AnalysisPaths:
    """Write every table as CSV, Markdown and LaTeX, the figures, and ``findings.md``.

    Parameters
    ----------
    analysis
        What to write.
    out_dir
        A folder, made if it is not there.
    watch
        Told how many files are written.

    Raises
    ------
    data.errors.StoreError
        If a file cannot be written; the message names it.
    """
    figures: list[Path] = []
    findings = out_dir / "findings.md"
    tables = write_tables(analysis.tables, out_dir / "tables")
    progress = progress.stage("figures")
    for done, named in enumerate(analysis.figures(), start=1):
        figures += save(named.figure, out_dir / "figures" / named.stem)
        progress(done, MOST_FIGURES)
    write_durably(findings, _findings_text(analysis).encode())
    return AnalysisPaths(
        folder=out_dir, tables=tuple(tables), figures=tuple(figures), findings=findings
    )


def _findings_text(analysis: Analysis) -> str:
    contents = "".join(f"- `tables/{table.name}`: {table.title}\n" for table in analysis.tables)
    return (
        f"# {visible(analysis.name)}\n\n{analysis.findings.to_markdown()}\n"
        f"## Tables\n\nEach as .csv, .md and .tex.\n\n{contents}"
    )
