"""The rules of the taxonomy, on labelled traces and wrong answers of errors.tsv and traces.txt."""

import time
from collections import Counter

import pytest

from data.errors import MisuseError
from evaluator.answers import check
from evaluator.thinkbench.agreement import cohens_kappa
from evaluator.thinkbench.error_kinds import ERROR_KINDS, error_kind, question_numbers
from evaluator.thinkbench.judge import read_label
from evaluator.thinkbench.patterns import PATTERNS, repeats_itself, trace_pattern
from tests.effort import tries
from tests.thinkbench.taxonomy import labelled_traces, wrong_answers

TRACES = labelled_traces()
WRONG = wrong_answers()
HUGE = tries(1_000_000, 300_000)


def test_there_are_enough_labels_of_every_kind():
    assert len(TRACES) + len(WRONG) >= 100
    assert min(Counter(label for label, _ in TRACES).values()) >= 10
    assert min(Counter(wrong.kind for wrong in WRONG).values()) >= 6
    assert {label for label, _ in TRACES} == set(PATTERNS)
    assert {wrong.kind for wrong in WRONG} == set(ERROR_KINDS)


def test_rules_name_most_patterns_of_traces_by_somebody_who_did_not_know_them():
    traces = labelled_traces("traces_independent.txt")
    assert len(traces) + len(TRACES) >= 100
    given = [label for label, _ in traces]
    found = [str(trace_pattern(text, cut=label == "stopping-failure")) for label, text in traces]
    agreement = cohens_kappa(given, found)
    assert agreement.observed >= 39 / 48
    assert agreement.kappa >= 0.76


def test_rules_name_the_patterns_of_traces():
    given = [label for label, _ in TRACES]
    found = [trace_pattern(text, cut=label == "stopping-failure") for label, text in TRACES]
    agreement = cohens_kappa(given, [str(label) for label in found])
    assert agreement.observed >= 0.95
    assert agreement.kappa >= 0.9


def test_rules_name_the_kinds_of_errors():
    given, found = [], []
    for wrong in WRONG:
        verdict = check(wrong.item.question, wrong.response.text)
        assert not verdict.right, wrong
        given.append(wrong.kind)
        found.append(error_kind(wrong.item, verdict.answer, wrong.response))
    agreement = cohens_kappa(given, found)
    assert agreement.observed >= 0.95
    assert agreement.kappa >= 0.9


@pytest.mark.parametrize(
    "text",
    [
        "The sum is 100,000,000,000,000,000.",
        "| a | b |\n|-----|-----|\n| 1 | 2 |",
        "-" * 20 + "\nwork\n" + "-" * 20 + "\nIt is 4.",
        "[1, 1, 1, 1, 1, 1, 1, 1]",
        "So far: 2 odd. So far: 3 odd. So far: 4 odd. Done, the count is 4.",
        "",
    ],
)
def test_what_only_looks_like_a_loop_is_none(text):
    assert not repeats_itself(text, cut=True)


def test_short_traces_have_no_pattern():
    assert trace_pattern("3 + 4 = 7. \\boxed{7}") is None
    assert trace_pattern("") is None


@pytest.mark.parametrize(
    "text",
    [
        "a" * HUGE,
        "ab " * (HUGE // 3),
        "Wait, no. The sum is 4. Check again. " * (HUGE // 40),
        "\\" * HUGE,
    ],
)
def test_a_huge_trace_takes_linear_time(text):
    started = time.process_time()
    assert trace_pattern(text, cut=True) == "stopping-failure"
    assert time.process_time() - started < 10


def test_numbers_of_a_question_are_found():
    for wrong in WRONG:
        numbers = question_numbers(wrong.item.question.prompt)
        assert len(numbers) == wrong.item.size, wrong.item.question.prompt


def naive_kappa(first, second):
    total = len(first)
    observed = sum(a == b for a, b in zip(first, second, strict=True)) / total
    chance = sum(
        (first.count(label) / total) * (second.count(label) / total)
        for label in set(first + second)
    )
    return (observed - chance) / (1 - chance)


def test_kappa_is_what_its_definition_says():
    first = list("aabbccaabbacbbacab")
    second = list("abbbccaabaacbbacaa")
    found = cohens_kappa(first, second)
    assert found.kappa == pytest.approx(naive_kappa(first, second))
    assert sum(found.counts.values()) == found.total == len(first)
    assert cohens_kappa(["a", "b"], ["a", "b"]).kappa == 1.0
    assert cohens_kappa(["a", "b"], ["b", "a"]).kappa == -1.0
    # A label that both always give agrees by chance alone.
    assert cohens_kappa(["a", "a"], ["a", "a"]).kappa is None
    with pytest.raises(MisuseError):
        cohens_kappa([], [])
    with pytest.raises(MisuseError):
        cohens_kappa(["a"], ["a", "b"])


@pytest.mark.parametrize(
    ("reply", "label"),
    [
        ("Label: self-contradiction", "self-contradiction"),
        ("**Label:** Self Contradiction", "self-contradiction"),
        ("Not helpful-decomposition. Label: stopping_failure", "stopping-failure"),
        ("redundant-verification", "redundant-verification"),
        ("either stopping-failure or redundant-verification", None),
        ("Label: nonsense", None),
        ("", None),
    ],
)
def test_replies_of_a_judge_are_read(reply, label):
    assert read_label(reply, PATTERNS) == label
