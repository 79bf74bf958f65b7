"""What all tables, pages and charts share: one table value, text that stays text, one palette."""

import csv
import io
import re
from html.parser import HTMLParser
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb

from evaluator.present import page
from evaluator.present.drawing import draw, log_ticks
from evaluator.present.figure_style import house_style, new_figure, save
from evaluator.present.numbers import Span, as_text
from evaluator.present.palette import DARK, LIGHT, SERIES
from evaluator.present.table import Table, write_tables
from evaluator.present.views import Bars, Lines, Point, Scatter, Trace, view_json

NASTY = "<script>alert(1)</script>\x1b[31m\u202e\" onload='x"


def fragment(macro, *values):
    """Return what a macro of the pages' parts makes of values."""
    parts = page.environment().get_template("present/templates/parts.html").module
    return getattr(parts, macro)(*values)


class Elements(HTMLParser):
    """Collects elements and attributes, and refuses what is not closed."""

    def __init__(self, source):
        super().__init__()
        self.tags, self.names, self.open = [], [], []
        self.feed(source)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.names += [name for name, _ in attrs]
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def hostile_table(**options):
    index = pd.MultiIndex.from_tuples([("a", "<b>"), ("c", NASTY)], names=["model", None])
    frame = pd.DataFrame(
        {"share": [0.5, None], "count": [12345, 7], NASTY: ["yes", ""]}, index=index
    )
    return Table(
        name="t", title=NASTY, frame=frame, formats={"share": ".1f"}, note="n & m", **options
    )


def is_clean(markup):
    found = Elements(str(markup))
    assert "script" not in found.tags
    assert not [name for name in found.names if name.startswith("on")]
    assert "\x1b" not in markup
    assert "\u202e" not in markup


@pytest.mark.parametrize("grouped", [False, True])
def test_a_table_of_a_page_shows_what_its_other_forms_show(grouped):
    table = hostile_table(grouped=grouped)
    shown = fragment("table", table)
    is_clean(shown)
    assert ('<th class="first" scope="col">model</th>' in shown) is not grouped
    assert ("<strong>a</strong>" in shown) is grouped
    assert "&lt;b&gt;</th><td>0.5</td><td>12,345</td><td>yes</td>" in shown
    assert "<td>\u2013</td><td>7</td>" in shown
    assert '<p class="note">n &amp; m</p>' in shown
    assert "| 0.5 | 12,345 | yes |" in table.to_markdown()


def test_groups_of_columns_and_totals_are_set_apart():
    columns = pd.MultiIndex.from_tuples([("x", "OR"), ("x", "AD"), ("y", "OR")])
    frame = pd.DataFrame([[1.0, 2.0, 3.0]] * 2, ["a", "Average"], columns)
    shown = fragment("table", Table(name="t", title="T", frame=frame, totals=1))
    is_clean(shown)
    assert '<th class="group" scope="colgroup" colspan="2">x</th>' in shown
    assert shown.count('<th scope="col" class="start">') == 2
    assert re.search(r'<tr class="average"><th scope="row">Average</th>', shown)


def test_intervals_are_columns_in_csv_and_below_the_value_elsewhere():
    frame = pd.DataFrame({"gain": [Span(1.25, 0.5, 2), Span(3), None], "n": [1, 2, 3]}, list("abc"))
    frame.index.name = "row"
    table = Table(name="t", title="T", frame=frame, formats={"gain": "+.1f"})
    rows = list(csv.reader(io.StringIO(table.to_csv())))
    assert rows == [
        ["row", "gain", "gain low", "gain high", "n"],
        ["a", "1.25", "0.5", "2", "1"],
        ["b", "3", "", "", "2"],
        ["c", "", "", "", "3"],
    ]
    assert "| a | +1.2 [+0.5, +2.0] | 1 |" in table.to_markdown()
    assert "<td>+1.2<br><small>[+0.5, +2.0]</small></td>" in fragment("table", table)
    assert "<td>\u2013</td>" in fragment("table", table)


def test_numbers_become_text_in_one_way():
    values = [1234, np.int64(1234), 0.5, np.float64(0.5), None, float("nan"), "a", True]
    assert [as_text(value) for value in values] == [
        *("1,234", "1,234", "0.50", "0.50", "\u2013", "\u2013", "a", "True")
    ]


def test_tables_are_written_in_the_forms_asked_for(tmp_path):
    paths = write_tables([hostile_table()], tmp_path / "new", ("csv", "md"))
    assert [path.name for path in paths] == ["t.csv", "t.md"]
    assert all(path.read_text(encoding="utf-8") for path in paths)


def views(name):
    """One view of each kind, all texts of which are ``name``."""
    texts = {"stem": "s", "title": name, "x_label": name, "y_label": name, "note": name}
    return (
        Scatter(
            **texts,
            points=[Point(name=name, x=20, y=0.5, marked=True), Point(name="b", x=300, y=1.0)],
            contours=[Trace(name=name, x=[20, 100, 300], y=[0.2, 0.4, 0.9])],
            log_x=True,
        ),
        Scatter(**texts, points=[Point(name=name, x=0.2, y=0.9)], x_format=".0%"),
        Lines(**texts, lines=[Trace(name=name, x=[1, 8], y=[0.2, 0.5], texts=[name, ""])]),
        Lines(**texts, y_format=",.0f", ticks=[name], lines=[Trace(name=name, x=[0], y=[730])]),
        Bars(**texts, groups=[name, "b"], series=[(name, [0.5, None]), ("c", [None, 0.25])]),
        Bars(**texts, y_format=",.0f", groups=[name], series=[(name, [812.4])], flat=True),
    )


@pytest.mark.parametrize("view", views("some name"), ids=lambda view: type(view).__name__)
def test_a_view_is_drawn_whole_for_print(view):
    figure = draw(view)
    axes = figure.axes[0]
    printed = [text.get_text() for text in figure.legends[0].get_texts()] if figure.legends else []
    assert any("some name" in text for text in printed)
    flat = isinstance(view, Bars) and view.flat
    assert axes.get_title("left") == view.title
    assert (axes.get_xlim() if flat else axes.get_ylim())[0] == 0
    low, high = axes.get_xlim() if flat else axes.get_ylim()
    for values in (
        [p.y for p in view.points]
        if isinstance(view, Scatter)
        else [y for line in view.lines for y in line.y]
        if isinstance(view, Lines)
        else [y for _, ys in view.series for y in ys if y is not None],
    ):
        assert low <= min(values)
        assert max(values) <= high


def test_ticks_are_round_and_lie_in_their_range():
    for least, most in ((0.5, 72), (32, 793), (1, 40_000), (3, 4)):
        ticks = log_ticks(least, most)
        assert ticks == sorted(ticks)
        assert all(least / 1.01 <= tick <= most * 1.01 for tick in ticks)
        assert len(ticks) <= 9


def test_a_view_goes_into_a_page_as_text_and_numbers():
    for view in views(NASTY):
        said = view_json(view)
        assert said["kind"] == type(view).__name__
        assert "\x1b" not in str(said)
        assert "\u202e" not in str(said)
    bars = view_json(views("n")[4])
    assert bars["series"] == [["n", [0.5, None]], ["c", [None, 0.25]]]


def test_every_template_is_escaped_and_has_the_base():
    made = page.environment()
    assert made.autoescape is True
    folder = Path(page.__file__).parents[1]
    names = [path.relative_to(folder).as_posix() for path in folder.glob("*/page.html")]
    assert len(names) == 5
    for name in names:
        source = page.resource(name)
        assert source.startswith('{% extends "present/templates/base.html" %}')
        assert not re.search(r"\|\s*safe|<style|autoescape", source)


def simulated(colour, kind):
    """Return a colour as the colour-blind see it, in linear light (Machado and others, 2009)."""
    matrix = {
        "none": np.eye(3),
        "protan": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
        "deutan": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    }[kind]
    rgb = np.array(to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return np.clip(np.array(matrix) @ linear, 0, 1)


def lab(linear):
    """Return CIE L*a*b* (D65)."""
    xyz = (
        np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
        @ linear
        / np.array([0.9505, 1.0, 1.089])
    )
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("kind", ["none", "protan", "deutan"])
@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_colours_are_told_apart_also_by_the_colour_blind(colours, kind):
    series = [f"series-{number}" for number in range(1, SERIES + 1)]
    for group in (series, ["early_exit", "fixed_budget", "routing"], ["rise", "flat", "fall"]):
        for first, second in combinations(group, 2):
            apart = [lab(simulated(colours[name], kind)) for name in (first, second)]
            assert np.linalg.norm(apart[0] - apart[1]) > 10, (first, second)


def contrast(first, second):
    """Return the ratio of contrast (WCAG 2)."""
    lights = sorted(
        float(np.dot(simulated(c, "none"), (0.2126, 0.7152, 0.0722))) for c in (first, second)
    )
    return (lights[1] + 0.05) / (lights[0] + 0.05)


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_texts_and_lines_can_be_seen(colours):
    assert LIGHT.keys() == DARK.keys()
    for name in ("ink", "muted", "accent", "mark", "right", "wrong"):
        for under in ("paper", "card", "soft"):
            assert contrast(colours[name], colours[under]) > 4.5, (name, under)
    lines = [f"series-{number}" for number in range(1, SERIES + 1)]
    for name in (*lines, "early_exit", "fixed_budget", "routing"):
        assert contrast(colours[name], colours["card"]) > 3, name


def test_saving_a_figure_says_nothing(tmp_path, caplog, capfd, recwarn):
    with house_style():
        figure = new_figure()
        figure.subplots().set_title("é 方法")
    save(figure, tmp_path / "f")
    assert len(recwarn) == 0
    # Someone's own call, outside of our style.
    with house_style():
        own = new_figure()
        own.subplots().set_title("a")
    own.savefig(tmp_path / "g.png")
    assert caplog.text == ""
    assert capfd.readouterr() == ("", "")


def test_headings_break_at_spaces_alone():
    frame = pd.DataFrame({"O-Score of <b>": [1], "saved at P(n), %": [2]}, ["a"])
    shown = fragment("table", Table(name="t", title="T", frame=frame))
    assert '<span class="word">O-Score</span> of &lt;b&gt;' in shown
    assert "saved at P(n),\u00a0%" in shown
