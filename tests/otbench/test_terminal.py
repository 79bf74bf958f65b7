"""Tables on a terminal of 80 columns: every word whole, the sentence below them in agreement."""

import re
from io import StringIO

import pytest
from rich.console import Console

from evaluator.otbench.compare import COLUMNS
from evaluator.otbench.page import lead
from evaluator.otbench.summary import SUMMARIES
from evaluator.otbench.terminal import Lines, terminal_rows

METHODS = {
    "predictive_scheduling": ("fixed_budget", False, 0.492),
    "constant_cap": ("fixed_budget", True, 0.494),
    "deer": ("early_exit", False, 0.518),
    "hidden_probe(strengths=(0.1, 1.0), layers=(2, 5), first=3)": ("early_exit", False, 0.541),
}


def printed(renderable, width=80):
    console = Console(file=StringIO(), width=width, highlight=False)
    console.print(renderable)
    return console.file.getvalue()


def row(label):
    strategy, trivial, area = METHODS[label]
    summary = {key: {"value": 0.5, "low": -1.0, "high": 1.0} for key in SUMMARIES}
    summary["curve_area"] = {"value": area, "low": area - 0.1, "high": area + 0.1}
    return {
        "label": label,
        "method": {"strategy": strategy, "trivial": trivial},
        "release": {"name": "mine", "checksum": "0"},
        "full_accuracy": 0.854,
        "zero_accuracy": 0.208,
        "summary": summary,
    }


ROWS = [row(label) for label in METHODS]


@pytest.mark.parametrize("intervals", [False, True])
def test_no_word_is_cut_and_no_line_is_long(intervals):
    table = terminal_rows(ROWS, intervals=intervals)
    text = printed(table)
    assert max(map(len, text.splitlines())) <= 80
    assert text.split() == printed(table, width=200).split()
    for label in METHODS:
        assert f"  {label}" in text


def test_the_table_has_the_area_that_the_sentence_is_about():
    text = printed(terminal_rows(ROWS, intervals=False))
    heading = next(line for line in text.splitlines() if line.startswith("method"))
    assert heading.split()[1] == "area"
    area = {}
    for line in text.splitlines():
        if found := re.match(r"  (\w+)(?: \*)? +([\d.]+) ", line):
            area[found[1]] = float(found[2])
    assert area == {"predictive_scheduling": 49.2, "constant_cap": 49.4, "deer": 51.8}
    assert "54.1" in text
    assert "4.7 points of area more than the best trivial line, constant_cap" in lead(ROWS)
    assert COLUMNS["curve_area"] == ("area", 100)


def test_a_label_without_room_stands_above_its_numbers():
    table = Lines(["one", "two\nlines"])
    table.add("a group")
    table.add("short", "1", "2")
    table.add("a name that needs more", "3", "4\n[5, 6]")
    assert printed(table, 24).splitlines() == [
        "                 two",
        "method   one   lines",
        "a group",
        "short      1       2",
        "a name that needs more",
        "           3       4",
        "              [5, 6]",
    ]


def test_wide_characters_keep_their_columns():
    table = Lines(["n"])
    table.add("方法", "1")
    table.add("method", "22")
    assert printed(table).splitlines() == ["method   n", "方法     1", "method  22"]
