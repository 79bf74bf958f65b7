"""OvT-General's files: our own, the published form, and what is refused."""

import json

import pytest

from data.errors import MisuseError
from data.optimal import prompt_text
from data.optimal.domains import disciplines, domain_names
from data.optimal.general import ANSWER_TYPES, load_general
from data.prompts import Prompts
from evaluator.answers import Checker
from evaluator.optimal.subsets import BENCHMARKS, load_items


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def test_there_are_72_domains_of_13_disciplines():
    assert len(domain_names()) == len(set(domain_names())) == 72
    assert len(disciplines()) == 13


@pytest.mark.parametrize(
    "name",
    ["generate", "answer", "judge", "router", "no_overthinking", "step_by_step"]
    + [f"format_{kind}" for kind in ANSWER_TYPES],
)
def test_prompts_are_plain_files(name):
    assert prompt_text(name).strip()


def test_the_sample_has_every_answer_type_and_its_references_are_right():
    questions = load_general("sample")
    assert {q.answer_type for q in questions} == set(ANSWER_TYPES)
    with Checker() as checker:
        for item in questions:
            question = item.as_question()
            assert checker.check(question, f"\\boxed{{{question.reference}}}").right, item.id


def test_what_was_written_is_read_back(tmp_path):
    questions = load_general("sample")
    source = write(tmp_path / "questions.jsonl", [q.as_row() for q in questions])
    assert load_general(source) == questions
    assert load_general(str(tmp_path)) == questions


def test_the_published_form_is_read(tmp_path):
    rows = [
        {"Domain": "x", "domain": "Mechanics", "question": "Unit of force?", "answer": "B",
         "options": ["Joule", "Newton", "Watt", "Volt"], "mode": "mcq", "num_options": 4},
        {"question": "How many legs has a spider?", "answer": 8,
         "metadata": {"answer_type": "numeric", "domain": "Biology"}},
        {"question": "Capital of Italy?", "answer": "Rome",
         "metadata": '{"answer_type": "short_answer", "domain": "Geography"}'},
        {"question": "Which?", "answer": "b", "A": "a", "B": "b", "answer_type": "mcq"},
        # A row of another subset of the same file.
        {"question": "1 + 1?", "answer": "2", "metadata": {"level": 1}, "type": "math"},
    ]  # fmt: skip
    found = load_general(write(tmp_path / "p.jsonl", rows))
    assert [q.answer_type for q in found] == ["choice", "numeric", "short", "choice"]
    assert found[0].answer == "Newton"
    assert found[0].as_question().reference == "B"
    assert (found[1].answer, found[1].domain) == ("8", "Biology")
    assert found[3].options == ("a", "b")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"question": "Why?", "answer": "So"}, "row 1: no answer type"),
        ({"question": "Why?", "answer_type": "short"}, "row 1: no answer"),
        ({"question": "Why?", "answer": "x", "answer_type": "essay"}, "row 1: the answer type"),
        (
            {"question": "?a", "answer": "E", "answer_type": "mcq", "options": ["x", "y"]},
            "row 1: the answer 'E' is not among the options",
        ),
        (
            {"question": "?a", "answer": "x", "answer_type": "mcq", "options": ["x", "x"]},
            "row 1: a choice needs",
        ),
    ],
)
def test_rows_that_lack_something_are_named(tmp_path, row, message):
    with pytest.raises(MisuseError, match=message):
        load_general(write(tmp_path / "bad.jsonl", [row]))


def test_a_source_that_is_nowhere_is_one_line(tmp_path):
    with pytest.raises(MisuseError, match="no such folder, file or data set"):
        load_general("nowhere")


def test_subsets_are_the_papers():
    assert BENCHMARKS["ovt-math"] == ("ovt", ("math500_level_1", "math500_level_2"))
    assert len(BENCHMARKS["ut-reasoning"][1]) == 11
    assert BENCHMARKS["ut-math"] == ("ut", ("aime2025", "hmmt_feb_2025"))


def test_items_of_every_kind_of_subset():
    items = load_items(
        ["ovt-general", "ut:think-sum", "ut:gym:chain_sum"], general="sample", limit=2
    )
    assert [item.side for item in items] == ["ovt"] * 8 + ["ut"] * 4
    assert len({item.key for item in items}) == 12
    assert items[0].prompt_in(Prompts()).endswith(prompt_text("answer"))


@pytest.mark.parametrize(
    ("subsets", "message"),
    [
        ([], "no subset"),
        (["ovt-general"], "--general"),
        (["ovt-physics"], "no subset 'ovt-physics'"),
        (["ut:think-sum", "ut:think-sum"], "twice"),
        (["ut:think-summ"], "no benchmark"),
    ],
)
def test_subsets_that_cannot_be_are_one_line(subsets, message):
    with pytest.raises(MisuseError, match=message):
        load_items(subsets)


def test_irrelevant_options_are_added_and_the_right_one_stays(tmp_path):
    alone = [q.as_row() for q in load_general("sample") if q.id == "sample-choice-1"]
    single = write(tmp_path / "one.jsonl", alone)
    base = {i.question.id: i for i in load_items(["ovt-general"], general="sample")}
    for total in (8, 12):
        items = load_items([f"ovt-general+{total}"], general="sample")
        assert items == load_items([f"ovt-general+{total}"], general="sample")
        for item in items:
            before = base[item.question.id].question
            assert item.side == "none"
            assert len(item.question.choices) == total == item.options
            assert set(before.choices) <= set(item.question.choices)
            letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
            right = item.question.choices[letters.index(item.question.reference)]
            assert right == before.choices[letters.index(before.reference)]
    with pytest.raises(MisuseError, match="write ovt-general"):
        load_items(["ovt-general+many"], general="sample")
    with pytest.raises(MisuseError, match="options for"):
        load_items(["ovt-general+20"], general=single)
