"""The report of a campaign: one HTML page that works from disk, and figures beside it.

``build_report(campaign_url, out_dir)`` is all that a caller needs. The modules: ``data`` (what a
page is made from), ``selection`` (which trajectories it shows), ``load`` (from a campaign),
``payload`` (numbers and texts for the page's script),
``html`` (the page), ``build`` (files on disk).
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evaluator.report.build import ReportPaths, build_report, write_report
    from evaluator.report.data import ReportData

__all__ = ["ReportData", "ReportPaths", "build_report", "write_report"]


def __getattr__(name: str) -> Any:
    """Import what is asked for on first use, so that the package itself stays light."""
    if name in ("ReportPaths", "build_report", "write_report"):
        from evaluator.report import build

        return getattr(build, name)
    if name == "ReportData":
        from evaluator.report.data import ReportData

        return ReportData
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
