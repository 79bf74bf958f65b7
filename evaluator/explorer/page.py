"""The page and its files: the same for the server and for the static form."""

from functools import cache
from importlib import resources

from evaluator.present.page import render

SCRIPTS = (
    "core.js",
    "charts.js",
    "table.js",
    "frontier.js",
    "rows.js",
    "stops.js",
    "trajectory.js",
    "compare.js",
    "frontiers.js",
    "responses.js",
    "board.js",
    "main.js",
)
"""The page's own scripts, in the order of loading."""
CHARTS = "echarts.common.min.js"
"""The charting library; the page loads it when the first chart is drawn."""
PDF = ("jspdf.umd.min.js", "svg2pdf.umd.min.js")
"""Write a chart as PDF; the page loads them when the first one is asked for."""
LICENCES = (
    "echarts.LICENSE",
    "echarts.LICENSE-d3",
    "echarts.NOTICE",
    "jspdf.LICENSE",
    "svg2pdf.LICENSE",
)
FILES = frozenset({*SCRIPTS, CHARTS, *PDF, *LICENCES})
"""All files beside the page, in its folder ``app``."""


@cache
def page() -> str:
    """Return the page; what it shows it takes from pieces beside it."""
    return render("explorer/page.html", scripts=SCRIPTS)


@cache
def page_file(name: str) -> bytes:
    """Return one of :data:`FILES`.

    Raises
    ------
    KeyError
        If there is no such file.
    """
    if name not in FILES:
        raise KeyError(name)
    folder = "app" if name in SCRIPTS else "vendor"
    return resources.files("evaluator.explorer").joinpath(folder, name).read_bytes()
