"""The report: what it says, what it shows, and that hostile text stays text."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from data.errors import StoreError
from evaluator.analysis.bootstrap import Quantity, bootstrap_curves
from evaluator.analysis.frontiers import cell_frontiers
from evaluator.analysis.headline import make_headline
from evaluator.analysis.overthinking import per_trajectory, summarise
from evaluator.present.names import cell_name, visible
from evaluator.present.page import environment, resource, script_json
from evaluator.report.build import write_report
from evaluator.report.data import ReportData
from evaluator.report.html import frontier_views
from stp.curves import Curves
from tests.evaluator.synthetic import make_curves, make_report, undrawn

HOSTILE = (
    "</script><script>alert(1)</script><img src=x onerror=alert(2)> <!-- --> & \" ' `${x}` "
    "\x00\x1b[31m \u202e\u2066right to left \u2028\u2029 \ud800 ]]> \\u003c"
)


class Elements(HTMLParser):
    """Collects tags, attributes and the text of script elements."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.tags, self.attributes, self.scripts, self.inside, self.text = [], [], [], False, ""

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag == "script":
            self.inside = True
            self.scripts.append("")

    def handle_endtag(self, tag):
        self.inside = self.inside and tag != "script"

    def handle_data(self, data):
        if self.inside:
            self.scripts[-1] += data
        else:
            self.text += data


def page_of(data, folder):
    paths = write_report(data, folder)
    parser = Elements()
    source = paths.page.read_text(encoding="utf-8")
    parser.feed(source)
    return paths, source, parser


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """A page of harmless texts."""
    with undrawn():
        return page_of(make_report(make_curves(questions=2)), tmp_path_factory.mktemp("plain"))


def test_page_holds_the_numbers_and_links_the_figures(tmp_path):
    curves = make_curves(models=2, benchmarks=2, questions=3, seed=1)
    paths, source, parser = page_of(make_report(curves), tmp_path)
    overall = summarise(per_trajectory(curves)).overall
    assert f"{100 * overall['overthinking_ratio']:.1f}%" in parser.text
    assert f"{100 * overall['accuracy_degradation']:.1f} points" in paths.headline.sentence
    for name in ("model0", "model1", "bench0", "bench1"):
        assert name in parser.text
    assert len(paths.figures) == 14
    for figure in paths.figures:
        assert f'href="figures/{figure.name}"' in source
        assert figure.stat().st_size > 1000
    payload = json.loads(parser.scripts[0])
    assert payload["frontiers"] == frontier_views(curves, cell_frontiers(curves))
    assert [view["name"] for view in payload["frontiers"]][:2] == [
        "Average of all cells",
        "model0 \u00b7 bench0",
    ]


def test_headline_says_how_sure_its_averages_are(tmp_path):
    curves = make_curves(questions=3, seed=1)
    with undrawn():
        paths, _, parser = page_of(make_report(curves), tmp_path)
    found = bootstrap_curves(curves).interval(Quantity(statistic="overthinking_ratio"))
    said = f"OR {found.estimate:.1%} ({100 * found.low:.1f} to {100 * found.high:.1f})"
    assert said in paths.headline.intervals
    assert said in parser.text
    assert paths.headline.intervals in paths.headline.lines


def test_a_report_of_curves_alone_has_no_empty_section(tmp_path):
    curves = Curves.of_lists([[0, 9, 20], [0, 7]], [[0.25, 1, 0.75], [0, 0.5]], probes=4)
    with undrawn():
        _, source, parser = page_of(ReportData(name="mine", curves=curves), tmp_path)
    sections = re.findall(r'<section id="([a-z]+)"', source)
    assert sections == [*re.findall(r'<a href="#([a-z]+)">', source), "files"]
    assert not {"settings", "progress"} & set(sections)
    assert "stp explore" not in parser.text


def test_page_needs_nothing_from_outside(plain):
    _, source, parser = plain
    # Beside the charting library, whose name spaces look like addresses; the policy holds for it.
    markup = source.replace(parser.scripts[1], "")
    assert not re.search(r"""(?:src|href|url)\s*[=(]\s*["']?(?:https?:)?//""", markup)
    assert "@import" not in markup
    assert "link" not in parser.tags
    assert "default-src 'none'" in source


def test_hostile_text_stays_text(plain, tmp_path):
    curves = make_curves(questions=2)
    clean = plain[2]
    data = make_report(
        curves,
        name=HOSTILE,
        campaign=HOSTILE,
        settings=((HOSTILE, HOSTILE),),
        warnings=(HOSTILE,),
    )
    named = replace(
        curves, question_names=(HOSTILE,) * 2, benchmark_names=(HOSTILE,), model_names=(HOSTILE,)
    )
    data = replace(data, curves=named)
    with undrawn():
        _, source, dirty = page_of(data, tmp_path / "dirty")
    # The only new element is the paragraph of the warning.
    assert len(dirty.tags) - len(clean.tags) == dirty.tags.count("p") - clean.tags.count("p") == 1
    assert dirty.tags.count("script") == clean.tags.count("script") == 2
    assert "img" not in dirty.tags
    assert not [name for name, _ in dirty.attributes if name.startswith("on")]
    for hidden in "\x00\x1b\u202e\u2066\u2028\u2029":
        assert hidden not in source
    (view,) = json.loads(dirty.scripts[0])["frontiers"]
    assert view["name"] == cell_name(named, 0, 0)
    assert view["name"].startswith("</script><script>alert(1)</script>")


def test_script_policy_allows_the_page_script_alone(plain):
    _, source, parser = plain
    digest = base64.b64encode(hashlib.sha256(parser.scripts[1].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in source
    own = parser.scripts[1].replace(resource("explorer/vendor/echarts.common.min.js"), "")
    assert len(own) < 40_000
    assert "innerHTML" not in own


def test_text_helpers():
    assert visible("a\nb\tc") == "a\nb\tc"
    assert visible("x" * 10, limit=4) == "xxxx \u2026 [6 more characters]"
    text = environment().from_string("{{ text }}").render(text='<a href="x">\x00')
    assert text == "&lt;a href=&#34;x&#34;&gt;\u2400"
    assert "<" not in script_json({"a": "</script>"})
    assert json.loads(script_json({"a": HOSTILE[:60]})) == {"a": HOSTILE[:60]}
    with pytest.raises(ValueError, match="not JSON compliant"):
        script_json([float("nan")])


def test_headline_says_what_was_measured():
    # One trajectory: right at once after 5 of 20 tokens, then spoiled by half.
    curves = Curves(
        tokens=[0, 5, 20], correct=[0, 4, 2], trajectory_offsets=[0, 3], question=[0], probes=4
    )
    headline = make_headline(curves, summarise(per_trajectory(curves)), cell_frontiers(curves))
    assert headline.sentence == (
        "75.0% of the thinking came after the best measured accuracy was reached, and thinking "
        "to the end cost 50.0 points of accuracy."
    )
    exit_, fixed, routing = headline.strategies
    assert (exit_.strategy, exit_.equal_tokens_fraction, exit_.best_accuracy) == (
        "early_exit",
        0.25,
        1.0,
    )
    assert fixed.equal_tokens_fraction == 0.25
    assert (routing.equal_tokens_fraction, routing.best_accuracy) == (1.0, 0.5)
    assert "choosing for each question whether to think at all would save nothing" in (
        headline.potential
    )
    assert headline.scope.startswith("1 model, 1 benchmark, 1 question, 1 trajectory, 3 positions")


def test_headline_without_loss_and_without_saving():
    curves = Curves(
        tokens=[0, 9], correct=[0, 4], trajectory_offsets=[0, 2], question=[0], probes=4
    )
    headline = make_headline(curves, summarise(per_trajectory(curves)), cell_frontiers(curves))
    assert headline.sentence.endswith("thinking to the end cost no accuracy.")
    assert headline.potential.startswith("Even with perfect choices")


def test_a_folder_that_cannot_be_written_is_one_clear_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be written: Not a directory"):
        write_report(make_report(make_curves()), tmp_path / "file" / "below")


@pytest.mark.slow
def test_rewriting_gives_the_same_page(tmp_path):
    data = make_report(make_curves(seed=np.int64(3)))
    first = write_report(data, tmp_path).page.read_bytes()
    assert write_report(data, tmp_path).page.read_bytes() == first
    assert not list(tmp_path.glob("*.partial"))
