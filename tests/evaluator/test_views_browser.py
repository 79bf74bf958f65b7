"""Views of a page in a real browser: drawn with their numbers, accessible, and texts are texts."""

from dataclasses import replace

import pytest

from evaluator.present.page import render
from evaluator.present.views import Bars, Lines, Scatter, Trace
from tests.evaluator.test_present import NASTY, hostile_table, views
from tests.explorer.browser import browser

pytestmark = pytest.mark.browser
_SERIES = """
return Object.fromEntries([...document.querySelectorAll("[data-view]")].map((host) => [
  host.dataset.view,
  echarts.getInstanceByDom(host.querySelector(".echart")).getOption().series.map((one) => [
    one.name, one.data.map((point) => point?.value ?? point)]),
]));
"""


def shown_views():
    """Return the views of every kind, and those that pages have beside them."""
    many = [x / 100 for x in range(300)]
    made = [
        *views(NASTY),
        Lines(
            stem="", title="t", x_label="x", y_label="y", lines=[Trace(name="m", x=many, y=many)]
        ),
        Lines(
            stem="",
            title="t",
            x_label="size",
            y_label="y",
            log_x=True,
            x_format="g",
            lines=[Trace(name="m", x=[0.5, 7, 70], y=[0.1, 0.2, 0.3], texts=["a", NASTY, "c"])],
        ),
        Bars(
            stem="",
            title="t",
            x_label="x",
            y_label="y",
            groups=["0\u201320", "20\u201340"],
            series=[("falls", [0.25, 0.5]), ("rises", [0.75, 0.5])],
            colours=("fall", "rise"),
            notes=("7 steps", "8 steps"),
            stacked=True,
        ),
    ]
    return [replace(view, stem=f"view-{place}") for place, view in enumerate(made)]


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    path = tmp_path_factory.mktemp("views") / "page.html"
    source = render(
        "thinkbench/page.html",
        runs=NASTY,
        lead=NASTY,
        pool=NASTY,
        views=shown_views(),
        tables=[hostile_table(), replace(hostile_table(), name="other", title="other")],
    )
    path.write_text(source, encoding="utf-8")
    return path.as_uri()


@pytest.fixture(scope="module")
def page():
    with browser() as opened:
        yield opened


def test_views_are_accessible_and_fit(page, address):
    page.console()
    for width in (1400, 390):
        for dark in (False, True):
            page.look(width, dark=dark)
            page.open(address)
            assert page.count(".echart[data-drawn] svg") == len(shown_views())
            assert page.count("main script, main img") == 0
            assert page.overflow() <= 0
            assert page.violations() == []
    assert "<script>alert(1)</script>" in page.text(".names")
    assert page.console() == []


def test_views_are_drawn_with_their_numbers(page, address):
    page.look()
    page.open(address)
    drawn = page.run(_SERIES)
    for view in shown_views():
        found = drawn[view.stem]
        if isinstance(view, Scatter):
            assert found[-1][1] == [[point.x, point.y] for point in view.points]
            contours = [[[x, y] for x, y in zip(c.x, c.y, strict=True)] for c in view.contours]
            assert [data[::-1] for _, data in found[:-1]] == contours
        elif isinstance(view, Lines):
            lines = [[[x, y] for x, y in zip(c.x, c.y, strict=True)] for c in view.lines]
            assert [data for _, data in found] == lines
        else:
            assert [data for _, data in found] == [list(values) for _, values in view.series]
