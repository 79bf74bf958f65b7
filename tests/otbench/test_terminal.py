"""Rows on a terminal of 80 columns: every word whole, the sentence below them in agreement."""

import re
from io import StringIO

import pytest
from rich.console import Console

from evaluator.otbench.compare import COLUMNS, FEWER, SHORT, terminal_tables
from evaluator.otbench.page import lead
from evaluator.present.terminal import rich_table
from tests.otbench.made import made_row

METHODS = {
    "deer": ("early_exit", False, 0.518),
    "hidden_probe(strengths=(0.1, 1.0), layers=(2, 5), first=3)": ("early_exit", False, 0.541),
    "predictive_scheduling": ("fixed_budget", False, 0.492),
    "constant_cap": ("fixed_budget", True, 0.494),
}


def printed(tables, width=80):
    console = Console(file=StringIO(), width=width, highlight=False)
    for table in tables:
        console.print(rich_table(table, width))
    return console.file.getvalue()


def row(label):
    strategy, trivial, area = METHODS[label]
    return made_row(label, strategy=strategy, trivial=trivial, area=area)


ROWS = [row(label) for label in METHODS]


@pytest.mark.parametrize("width", [60, 80, 200])
@pytest.mark.parametrize("intervals", [False, True])
def test_no_word_is_cut_and_no_line_is_long(intervals, width):
    text = printed(terminal_tables(ROWS, intervals=intervals), width)
    assert max(map(len, text.splitlines())) <= width
    words = set(text.split())
    for key in FEWER if intervals else COLUMNS:
        assert words.issuperset(SHORT.get(key, COLUMNS[key]).split())
    for label in METHODS:
        assert words.issuperset(label.split())
    assert ("[-100.0, 100.0]" in text) is intervals


def test_strategies_are_headings_and_each_is_there_once_in_a_part():
    text = printed(terminal_tables(ROWS, intervals=False), 200)
    assert text.count("Dynamic early exit") == text.count("Fixed budgets") == 1


def test_the_table_has_the_area_that_the_sentence_is_about():
    text = printed(terminal_tables(ROWS, intervals=False), 200)
    heading = next(line for line in text.splitlines() if line.split()[:1] == ["method"])
    assert heading.split()[1] == "area"
    area = {}
    for line in text.splitlines():
        if found := re.match(r" *(\w+)(?: \*)? +([\d.]+) ", line):
            area[found[1]] = float(found[2])
    assert area == {"predictive_scheduling": 49.2, "constant_cap": 49.4, "deer": 51.8}
    assert "54.1" in text
    assert "4.7 points of area more than the best trivial line, constant_cap" in lead(ROWS)
