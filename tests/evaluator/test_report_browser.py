"""The page in a real browser: no error, accessible, and its numbers are the frontiers'."""

import pytest

from evaluator.analysis.frontiers import cell_frontiers
from evaluator.report.build import write_report
from evaluator.report.html import frontier_views
from tests.evaluator.synthetic import make_curves, make_report, undrawn
from tests.explorer.browser import browser

pytestmark = pytest.mark.browser
_DRAWN = "return !!document.querySelector('.echart[data-drawn]')"


@pytest.fixture(scope="module")
def curves():
    return make_curves(models=2, questions=3, seed=2)


@pytest.fixture(scope="module")
def address(curves, tmp_path_factory):
    data = make_report(curves, name="</script><img src=x onerror=console.error('run')>")
    with undrawn():
        return write_report(data, tmp_path_factory.mktemp("report")).page.as_uri()


@pytest.fixture(scope="module")
def page():
    with browser() as opened:
        yield opened


def test_it_is_accessible_and_fits(page, address):
    page.console()
    for width in (1400, 390):
        for dark in (False, True):
            page.look(width, dark=dark)
            page.driver.get("about:blank")
            page.driver.get(address)
            page.wait(_DRAWN)
            assert page.count("img") == 0
            assert page.overflow() <= 0
            assert page.violations() == []
    assert page.console() == []


def test_the_budget_reads_off_what_a_strategy_reaches_within_it(page, address, curves):
    page.look()
    page.driver.get(address)
    page.wait(_DRAWN)
    views = frontier_views(curves, cell_frontiers(curves))
    for place, budget in ((0, 0.4), (1, 0.0), (2, 0.731), (2, 1.0)):
        page.run(
            "const box = document.querySelector('#frontier-view select'); box.value = arguments[0];"
            "box.dispatchEvent(new Event('change'));"
            "const slider = document.querySelector('#frontier-view input[type=range]');"
            "slider.value = 1000 * arguments[1]; slider.dispatchEvent(new Event('input'));",
            place,
            budget,
        )
        assert page.text(".readout p").startswith(f"With {budget:.1%} of the thinking tokens")
        shown = page.run(
            "return [...document.querySelectorAll('.readout tr')].slice(0, 3)"
            ".map((row) => row.cells[2].innerText)"
        )
        lines = {line["strategy"]: line for line in views[place]["lines"]}
        expected = []
        for strategy in ("early_exit", "fixed_budget", "routing"):
            line = lines[strategy]
            reached = [y for x, y in zip(line["x"], line["y"], strict=True) if x <= budget + 1e-9]
            expected.append(f"{100 * reached[-1]:.1f}%")
        assert shown == expected
    assert page.console() == []


def test_a_chart_is_saved_and_its_pdf_lies_beside_the_page(page, address):
    page.look()
    page.driver.get(address)
    page.wait(_DRAWN)
    # What a page from disk may not fetch, its own data among it, is read in another way.
    page.run(
        "window.saved = []; HTMLAnchorElement.prototype.click = function () {"
        " window.saved.push([this.download, this.href.slice(0, 15)]); };"
        "document.querySelectorAll('#frontier-view .save button')"
        ".forEach((button) => button.click())"
    )
    page.wait("return window.saved.length === 2")
    saved = dict(page.run("return window.saved"))
    assert {name.rpartition(".")[2] for name in saved} == {"svg", "png"}
    assert saved["frontiers-0.png"].startswith("data:image/png")
