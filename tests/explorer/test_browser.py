"""The page in a real browser, served and from disk."""

import re
import threading
import zlib
from collections import Counter
from urllib.parse import quote

import pytest

from evaluator.explorer.opening import open_sources
from evaluator.explorer.server import listen, server
from evaluator.explorer.static import write_static
from tests.explorer.browser import browser
from tests.explorer.made import HOSTILE, campaign, columns_of, hostile_campaign

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    return open_sources(
        [
            campaign(folder / "first", questions=(8, 5)),
            campaign(folder / "second", questions=(8, 5), seed=2),
            hostile_campaign(folder / "hostile"),
        ]
    )


@pytest.fixture(scope="module")
def served(sources):
    listening = listen()
    running = server(sources, listening)
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listening.socket]})
    thread.start()
    yield listening.address
    running.should_exit = True
    thread.join()


@pytest.fixture(scope="module")
def written(sources, tmp_path_factory):
    return write_static(sources, tmp_path_factory.mktemp("site") / "site").as_uri()


@pytest.fixture(scope="module")
def page():
    with browser() as opened:
        yield opened


VIEWS = (
    "/",
    "/0",
    "/0/cell/0",
    "/0/all",
    "/0/t/0/0",
    "/0/frontiers",
    "/compare?a=0&b=4",
    "/2/cell/0",
    "/2/t/0/0",
)


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_is_accessible_and_fits(page, served, view):
    page.console()
    for width in (1400, 390):
        for dark in (False, True):
            page.look(width, dark=dark)
            page.open(f"{served}#{view}")
            page.unfold()
            assert page.count("[role=alert]") == 0, page.text("#view")
            assert "[object" not in page.text("#view")
            assert page.overflow() <= 0
            assert page.violations() == []
    assert page.console() == []


@pytest.mark.parametrize("kind", ["served", "written"])
def test_a_newcomer_gets_to_the_step_that_ruined_an_answer(page, kind, request, sources):
    """From the first page: campaign, cell, first row; three clicks."""
    page.look()
    page.open(request.getfixturevalue(kind))
    page.console()
    page.run("document.querySelector('#view ul a').click()")
    page.wait("return location.hash === '#/0' && document.querySelector('td, th[scope=row]')")
    page.wait()
    page.run("document.querySelector('#view th[scope=row] a').click()")
    page.wait("return location.hash.startsWith('#/0/cell/')")
    page.wait()
    page.run("document.querySelector('#view th[scope=row] a').click()")
    page.wait("return location.hash.startsWith('#/0/t/')")
    page.wait()
    columns = columns_of(sources.piece("0/cell/0"))
    fall, probes = max(columns["fall"]), sources.piece("0/index")["probes"]
    row = columns["fall"].index(fall)
    piece = sources.piece(f"0/t/0/{row}")
    assert page.run("return location.hash").startswith(f"#/0/t/0/{row}")
    step = columns["fk"][row]
    before, after = (piece["correct"][step - 1 + i] / probes for i in (0, 1))
    assert f"P falls from {before:.0%} to {after:.0%}" in page.text(".warning")
    assert page.text(".step.current b") == f"step {step}"
    assert f"k = {step} of" in page.text(".position")
    assert page.console() == []


def test_numbers_are_those_of_the_pieces(page, served, sources):
    page.look()
    page.open(f"{served}#/0/cell/0?sort=-L")
    columns = columns_of(sources.piece("0/cell/0"))
    shown = page.run(
        "return [...document.querySelectorAll('#view table')][0].innerText.split('\\n').length"
    )
    assert shown == 1 + min(50, len(columns["q"]))
    cells = page.run(
        "return [...document.querySelectorAll('#view tbody')[0].rows].map((r) => "
        "[...r.cells].map((c) => c.innerText))"
    )
    tokens = [int(row[8].replace(",", "")) for row in cells]
    assert tokens == sorted(columns["L"], reverse=True)[:50]


def test_filters_choose_rows_and_stand_in_the_address(page, served, sources):
    columns = columns_of(sources.piece("0/cell/0"))
    page.look()
    page.open(f"{served}#/0/cell/0")
    page.run(
        "const box = document.querySelector('select[id=filter-shape]'); box.value = 'non-monotone';"
        "box.dispatchEvent(new Event('change'))"
    )
    falling = columns["up"].count(0)
    page.wait(
        "return document.querySelector('.note[role=status]').innerText"
        f".startsWith('{falling} of {len(columns['q'])} rows')"
    )
    assert "shape=non-monotone" in page.run("return location.hash")
    page.open(page.run("return location.href"))
    assert page.text(".note[role=status]").startswith(f"{falling} of {len(columns['q'])} rows")
    page.open(f"{served}#/0/cell/0?L={min(columns['L']) + 1}..")
    more = sum(value > min(columns["L"]) for value in columns["L"])
    assert page.text(".note[role=status]").startswith(f"{more} of")
    page.open(f"{served}#/0/cell/0?text=aime-1")
    ids = [question[0] for question in sources.piece("0/cell/0")["questions"]]
    found = sum("aime-1" in ids[q].lower() for q in columns["q"])
    assert page.text(".note[role=status]").startswith(f"{found} of") or found == 0


def test_the_keyboard_is_enough(page, served, sources):
    from selenium.webdriver.common.keys import Keys

    def press(*keys):
        page.driver.switch_to.active_element.send_keys(*keys)

    page.look()
    page.open(f"{served}#/0/cell/0")
    press(Keys.TAB)
    assert page.run("return document.activeElement.className") == "skip"
    page.run("document.querySelector('#view th[scope=row] a').focus()")
    press(Keys.ENTER)
    page.wait("return location.hash.startsWith('#/0/t/')")
    page.wait()
    before = page.run("return location.hash")
    press("n")
    page.wait(f"return !location.hash.startsWith({before.split('?')[0]!r})")
    page.wait()
    press("p")
    page.wait(f"return location.hash.startsWith({before.split('?')[0]!r})")
    page.wait()
    press(Keys.HOME)
    assert page.text(".position").startswith("k = 0 of")
    press(Keys.ARROW_RIGHT)
    assert page.text(".position").startswith("k = 1 of")
    press("k")
    best = int(page.text(".position").split()[2])
    place, row = page.run("return location.hash").split("?")[0].split("/")[3:]
    assert best == columns_of(sources.piece(f"0/cell/{place}"))["k"][int(row)]


def test_choosing_in_the_list_moves_the_curve_and_the_answers(page, served, sources):
    page.look()
    page.open(f"{served}#/0/t/0/0?k=0")
    piece = sources.piece("0/t/0/0")
    last = len(piece["tokens"]) - 1
    page.run("[...document.querySelectorAll('.step button')].at(-1).click()")
    assert page.text(".position").startswith(f"k = {last} of {last}")
    assert f"k={last}" in page.run("return location.hash")
    assert page.count(".answers li") == len(piece["answers"][last])
    page.run("document.querySelector('.answers summary').click()")
    assert piece["answers"][last][0][3] in page.text(".answers pre")


def test_the_latent_band_is_drawn_beside_the_curve(page, served, sources):
    page.look()
    page.open(f"{served}#/0/t/0/0")
    before = page.count(".echart path")
    page.run(
        "[...document.querySelectorAll('button')].find((b) => b.innerText === 'Latent band')"
        ".click()"
    )
    page.wait("return document.body.innerText.includes('Latent band shown')", seconds=120)
    page.wait()
    assert page.count(".echart path") > before
    fit = sources.piece("0/band/0")
    assert all(
        low <= mean <= high
        for low, mean, high in zip(fit["low"], fit["mean"], fit["high"], strict=True)
    )
    assert fit["offsets"][-1] == len(fit["mean"])


@pytest.mark.parametrize("kind", ["served", "written"])
def test_thinking_can_be_searched(page, kind, request, sources):
    units = sources.piece("2/index")["cells"][0]["units"]
    everything = {}
    for unit in range(units):
        texts = sources.piece(f"2/texts/0/{unit}")
        everything |= dict(zip(texts["rows"], texts["texts"], strict=True))
    counts = Counter(word for text in everything.values() for word in set(text.lower().split()))
    word, expected = counts.most_common()[-1]
    found = sum(word in text.lower() for text in everything.values())
    assert 0 < expected <= found
    page.look()
    page.open(f"{request.getfixturevalue(kind)}#/2/cell/0?think={quote(word)}")
    parts = f"{units} of {units} part"
    page.wait(f"return document.querySelector('.found').innerText.includes('{parts}')")
    assert page.text(".found").startswith(f"{found} traject")
    rows = f"{found} of {len(everything)} rows" if found < len(everything) else "rows"
    assert rows in page.text(".note[role=status]")
    page.run("document.querySelector('#view th[scope=row] a').click()")
    page.wait("return location.hash.startsWith('#/2/t/')")
    page.wait()
    assert "has the words" in page.text(".steps")


@pytest.mark.parametrize("view", ["/2", "/2/cell/0", "/2/t/0/0", "/2/all"])
@pytest.mark.parametrize("kind", ["served", "written"])
def test_texts_of_strangers_are_texts(page, kind, view, request):
    page.look()
    page.console()
    page.open(f"{request.getfixturevalue(kind)}#{view}")
    assert page.run("return window.stolen === undefined")
    assert page.count("#view img, #view script, #view style, #view iframe") == 0
    assert page.run(
        "return [...document.querySelectorAll('#view a')].every((a) => a.hash && "
        "a.pathname === location.pathname)"
    )
    if "/t/" in view:
        assert HOSTILE[0] in page.text(".question pre")
        assert HOSTILE[0] in page.text(".steps")
        page.unfold()
        assert page.count("#view img, #view script") == 0
    assert page.console() == []


def test_two_campaigns_side_by_side_have_the_paired_differences(page, served, sources):
    page.look()
    page.open(f"{served}#/compare?a=0&b=4")
    means = []
    for source in ("0", "1"):
        piece = sources.piece(f"{source}/cell/0")
        columns, probes = columns_of(piece), sources.piece(f"{source}/index")["probes"]
        by_question = {}
        for question, right in zip(columns["q"], columns["cn"], strict=True):
            by_question.setdefault(piece["questions"][question][0], []).append(right / probes)
        means.append({key: sum(each) / len(each) for key, each in by_question.items()})
    changes = [100 * (means[1][key] - means[0][key]) for key in means[0]]
    shown = page.text("[data-figure=pn]").replace("\u2212", "-")
    assert float(shown) == pytest.approx(sum(changes) / len(changes), abs=0.06)


def test_questions_of_one_name_and_other_texts_are_not_compared(page, served, sources):
    """The hostile campaign has the ids of the first, and other prompts."""
    ids = {question[0] for question in sources.piece("2/cell/0")["questions"]}
    shared = ids & {question[0] for question in sources.piece("0/cell/0")["questions"]}
    assert shared
    page.look()
    page.open(f"{served}#/compare?a=0&b=8")
    assert f"{len(shared)} questions of the same name are other ones" in page.text("#view")
    assert page.count("[data-figure]") == 0


def test_a_chart_can_be_saved(page, served):
    page.look()
    page.open(f"{served}#/0/frontiers")
    saved = page.driver.execute_async_script(
        "const done = arguments[0], kept = [], address = URL.createObjectURL;"
        "URL.createObjectURL = (blob) => { blob.arrayBuffer().then((content) => {"
        " window.pdf = [...new Uint8Array(content)]; }); return address(blob); };"
        "HTMLAnchorElement.prototype.click = function () { kept.push([this.download, this.href]);"
        " if (kept.length === 3) done(kept); };"
        "document.querySelectorAll('.save button').forEach((button) => button.click());"
    )
    by_name = {name.rpartition(".")[2]: address for name, address in saved}
    assert by_name["svg"].startswith("data:image/svg+xml")
    assert by_name["png"].startswith("data:image/png")
    assert len(by_name["png"]) > 5000
    assert by_name["pdf"].startswith("blob:")
    page.wait("return window.pdf !== undefined")
    check_pdf(bytes(page.run("return window.pdf")))


def check_pdf(content):
    """See that a chart is in lines and letters, its axis among them, and that nothing is dots."""
    assert content.startswith(b"%PDF-1.")
    assert content.rstrip().endswith(b"%%EOF")
    assert b"/Subtype /Image" not in content
    drawn = b"".join(
        zlib.decompress(stream)
        for stream in re.findall(rb"/FlateDecode.*?stream\r?\n(.*?)endstream", content, re.DOTALL)
    )
    assert b"Thinking tokens kept, of full thinking" in drawn
    assert len(re.findall(rb"^[\d. -]+ l$", drawn, re.MULTILINE)) > 50


def test_a_pdf_says_what_letters_it_lacks(page, served):
    page.look(dark=True)
    page.open(f"{served}#/0/frontiers")
    made = page.driver.execute_async_script(
        "const done = arguments[0];"
        "const view = stp.chart({ label: 'x', save: 'x', make: () => ({ title: { text: '\u65b9' },"
        " series: [] }) });"
        "document.querySelector('#view').append(view);"
        "const seen = () => (view.querySelector('[data-drawn]')"
        " ? view.querySelectorAll('button')[2].click() : setTimeout(seen, 50)); seen();"
        "const said = () => (view.querySelector('.save span').textContent"
        " ? done(view.querySelector('.save span').textContent) : setTimeout(said, 50)); said();"
    )
    assert "no letter \u201c\u65b9\u201d" in made
    assert page.run("return document.documentElement.dataset.theme") is None


def test_what_is_not_there_is_said(page, served):
    page.open(f"{served}#/0/t/0/99999")
    assert "no piece" in page.text("[role=alert]")
    page.open(f"{served}#/9")
    assert "no folder 9" in page.text("[role=alert]")
    page.open(f"{served}#/nonsense")
    assert "no view" in page.text("[role=alert]")
