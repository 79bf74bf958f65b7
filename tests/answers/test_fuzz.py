"""Random and mutated responses: never an exception, never slow, the same verdict twice.

Symbolic equality is put out of reach (it would start processes): what reaches it is counted and
judged False, so that everything before it runs on every response. The number of responses is
STP_FUZZ_RESPONSES, 100,000 by default.
"""

import json
import math
import os
import random
import time
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction

import pytest

from data.question import Question
from data.reasoning_gym_tasks import gym_questions
from evaluator.answers.code import outputs_equal, values_equal
from evaluator.answers.judge import Judge, SlowTools
from evaluator.answers.judges import judge_for
from evaluator.answers.sandbox import SandboxRun
from evaluator.answers.sandbox_runner import spelled
from evaluator.answers.verdict import Verdict
from tests.answers.grammar import nasty
from tests.answers.tables import KINDS, Case, read_table
from tests.effort import tries

RESPONSES = int(os.environ.get("STP_FUZZ_RESPONSES", tries(100_000)))
BATCH = 50
"""Responses between two looks at the clock."""
PARTS = (
    r"\boxed{", "}", "{", "$", "$$", r"\(", r"\]", r"\frac{", r"\sqrt", r"\begin{pmatrix}",
    r"\end{pmatrix}",
    "&", r"\\", "<think>", "</think>", "Answer: ", "**", "```", "```python\n", "\n", "\n\n", ",",
    "(", ")", "[",
    "]", "|", "^", "_", "!", "%", r"\%", r"\text{", r"\pm", r"\cup", r"\infty", "=", "<", r"\le",
    "0", "7", "12",
    "1,000", "3.14", "1e5", "9" * 30, "x", "y", "π", "√", "−", "½", "²", "\x00", "\ud800",
    "\udfff", "\u202e",
    "\u200f", "\u05d0", "\u0661", "\U0001f600", "\ufeff", "Wait, ", "that is wrong. ",
    "the answer is ", "A", "(B)",
    " or ", " and ", r"\in", r"\R", r"\setminus", "(" * 50, "{" * 50, r"\frac" * 20, "^" * 30,
    "-" * 40, "##",
    "#### ", "9^{9^{9}}", "!" * 10, r"\left(", r"\right]", r"\overline{3}", "0.", ":", ";", "/",
    "°", "€", r"\$",
)  # fmt: skip


GYM = (
    *("letter_counting", "propositional_logic", "advanced_geometry", "fraction_simplification"),
    *("spiral_matrix", "knight_swap"),
)


def judges() -> list[Judge]:
    """One judge for a question of each sort."""
    kinds = (
        ("math", "7"), ("math", r"\frac{3}{4}"), ("math", "[3,8)"), ("math", "4, 10"),
        ("math", "x^2+2x+1"),
        ("math", r"\text{Evelyn}"), ("math", r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}"),
        ("math", "y = 2x + 3"),
        ("math", r"90^\circ"), ("math", r"3\sqrt{13}"), ("math", r"50\%"), ("choice", "B"),
        ("sum", "7"),
        ("mean", "7/2"), ("sorting", "[-3, 5, 12]"), ("comparison", "<"), ("mode", "3 or 7"),
        ("code", '{"fn_name": null, "inputs": ["1"], "outputs": ["1"]}'),
        ("code", '{"fn_name": "f", "inputs": ["1"], "outputs": ["1"]}'),
        ("judged", "The Battle of Hastings"),
        *(("reasoning_gym", gym_questions(name, {}, count=1)[0].reference) for name in GYM),
    )  # fmt: skip
    return [
        judge_for(
            Question(
                id="q",
                prompt="",
                reference=reference,
                answer_kind=kind,
                choices=("1 m", "2 m", "3 m", "x") if kind == "choice" else (),
            )
        )
        for kind, reference in kinds
    ]


def credit(reference: str, answer: str) -> float:
    """Credit as a worker gives it, in this process."""
    question = Question(id="", prompt="", reference=reference, answer_kind="reasoning_gym")
    return judge_for(question).credit(answer)


def decided(question: Question, answer: str) -> Verdict:
    """Stands for a model that judges."""
    return Verdict(False, answer, "wrong: by the model")


def mutated(source: random.Random, cases: list[Case]) -> str:
    """A response made of parts, or a real one with parts cut, doubled, swapped and put in."""
    if source.random() < 0.3:
        return "".join(source.choice(PARTS) for _ in range(source.randrange(1, 60)))
    text = source.choice(cases).response
    for _ in range(source.randrange(1, 6)):
        start = source.randrange(len(text) + 1)
        stop = min(len(text), start + source.randrange(12))
        change = source.random()
        if change < 0.4:
            text = text[:start] + source.choice(PARTS) + text[start:]
        elif change < 0.6:
            text = text[:start] + text[stop:]
        elif change < 0.75:
            text = text[:start] + text[start:stop] * source.randrange(2, 30) + text[stop:]
        elif change < 0.9:
            text = text[:start] + chr(source.randrange(0x3000)) + text[stop:]
        else:
            text = text[stop:] + text[:start]
    return text


def judged(judge: Judge, response: str, tools: SlowTools) -> Verdict | None:
    answer = judge.extract(response)
    if answer is None:
        return None
    verdict = judge.quick(answer)
    return judge.slow(answer, tools) if verdict is None else verdict


@pytest.mark.slow
def test_random_and_mutated_responses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "evaluator.answers.code.run_program", lambda *_, **__: SandboxRun(b"", None, None)
    )
    asked = 0

    def symbolic(gold: str, answer: str) -> bool:
        nonlocal asked
        asked += 1
        assert len(gold) <= 400
        assert len(answer) <= 400
        return False

    tools = SlowTools(symbolic, credit, model_judge=decided)
    source = random.Random(20260721)
    cases = [case for kind in KINDS for case in read_table(kind)]
    pool = judges()
    twins = judges()
    answers = 0
    start = time.process_time()
    for number in range(RESPONSES):
        response = mutated(source, cases)
        index = number % len(pool)
        verdict = judged(pool[index], response, tools)
        answers += verdict is not None
        if number % 10 == 0:
            assert judged(twins[index], response, tools) == verdict
        if number % BATCH == 0:
            # Not a benchmark: far above what a batch takes, and below the limit of one answer.
            seconds, start = time.process_time() - start, time.process_time()
            assert seconds < 5.0, number
    assert answers > RESPONSES / 5


@pytest.mark.parametrize(
    "unit",
    [
        "a", "1", " ", "\n", "{", "}", "\\", "$", "*", "`", "```\n", "(", "[", "<", "<think>",
        "|", "-", "−", ",", ".",
        "=", "^", "_", "!", "%", "#", "# ", "\x00", "\ud800", "\u202e", "½", "√", "²", "9,", "1 ",
        "12,345,", r"\boxed{",
        r"\boxed{}", r"\boxed{7}", r"\boxed{7},", r"\frac", r"\text{", "Answer:", "Answer: ",
        "answer is ",
        "Answer: 7 ", "the answer is 7, ", "Wait, ", "that is wrong. ", r"\left",
        r"\begin{pmatrix}", "**7**", "box",
        "$x$ ", r"\[", "option A is ", "and ", "or ", "A or ", "I choose ", "x=", r"\pm", r"\cup",
        "'", '"', "1/2 ", "0.",
        "<|channel|>", "####", "####7\n", "is 7 ", "is", "\t", "\r", "~", "'1", r"\,1", "é", "漢",
        "🙂",
    ],
)  # fmt: skip
def test_a_megabyte_of_one_thing(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "evaluator.answers.code.run_program", lambda *_, **__: SandboxRun(b"", None, None)
    )
    tools = SlowTools(lambda gold, answer: False, credit, model_judge=decided)
    length = tries(1_000_000, 300_000)
    text = unit * (length // len(unit))
    frames = (
        text,
        rf"\boxed{{{text}}}",
        f"Answer: {text}",
        rf"\boxed{{7}} {text}",
        f"{text} \\boxed{{7}}",
    )
    pool = judges()
    for number in (0, 11, 14, 17, 19, 20, 21):  # mathematics, choices, tasks, code, words, gym
        for frame in frames if number == 0 else frames[:2]:
            start = time.process_time()
            judged(pool[number], frame, tools)
            # Linear code takes some milliseconds for a megabyte; quadratic code takes minutes.
            assert time.process_time() - start < 5.0, number


@pytest.mark.parametrize("depth", [10, 100, 900])
def test_nesting(depth: int) -> None:
    tools = SlowTools(lambda gold, answer: False, credit, model_judge=decided)
    for opening, closing in (
        ("(", ")"), ("{", "}"), (r"\frac{", "}{2}"), (r"\sqrt{", "}"), ("2^{", "}"),
        (r"\boxed{", "}"), ("|", "|"),
        ("-", ""), (r"\{", r"\}"), ("[", "]"), (r"\text{", "}"),
        (r"\begin{pmatrix}", r"\end{pmatrix}"), ("1+", ""),
    ):  # fmt: skip
        response = rf"\boxed{{{opening * depth}7{closing * depth}}}"
        for judge in judges()[:17]:
            verdict = judged(judge, response, tools)
            assert judged(judge, response, tools) == verdict


@pytest.mark.slow
def test_nested_and_long_texts_on_both_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    """Responses and references of a grammar: the rules themselves raise nothing."""
    monkeypatch.setattr(
        "evaluator.answers.code.run_program", lambda *_, **__: SandboxRun(b"", None, None)
    )
    tools = SlowTools(lambda gold, answer: False, credit, model_judge=decided)
    source = random.Random(20261130)
    frames = (r"\boxed{%s}", "%s", "Answer: %s", "The answer is %s.", r"\boxed{7} %s", "So $%s$.")
    usual = judges()
    pool: list[Judge] = []
    start = time.process_time()
    for number in range(RESPONSES):
        if number % BATCH == 0:
            seconds, start = time.process_time() - start, time.process_time()
            assert seconds < 5.0, number
            # Some references of their own, and those of the usual kinds.
            references = [text for text in (nasty(source) for _ in range(4)) if text.strip()]
            pool = [
                *usual,
                *(
                    judge_for(Question(id="q", prompt="", reference=text, answer_kind="math"))
                    for text in references
                ),
            ]
        response = source.choice(frames) % nasty(source)
        judge = source.choice(pool)
        verdict = judged(judge, response, tools)
        if number % 20 == 0:
            assert judged(judge, response, tools) == verdict


WORDS = (
    "sNaN", "NaN", "-sNaN123", "inf", "-Infinity", "1e999999999999999999", "1E-999999999", "1_0",
    "0x10", "٣", "１", "1", "1.0", "-0", "+1", ".", "e5", "\x00", "\x85", "\u2028", "\ud800",
    "\udc80",
    "\u200b", "\x1c", "9" * 5000, "0." + "9" * 5000, "1" * 60_000, "[", "]", "{", "}", '"', ",",
    '{"1": 2}', "[[", "null", "true", "nan", "<set>", "(1)", "\n", "\n\n", " ", "\r", "\t", "",
)  # fmt: skip


def test_outputs_and_values_of_programs() -> None:
    """Whatever a program prints or returns, with whatever was expected: an answer, no error."""
    source = random.Random(20261130)
    same = 0
    for _ in range(RESPONSES // 5):
        texts = [
            source.choice((" ", "\n", "", "  ")).join(
                source.choice(WORDS) for _ in range(source.randrange(6))
            )
            for _ in range(2)
        ]
        output = texts[0].encode("utf-8", "surrogatepass")[: source.randrange(2, 99)]
        printed = output.decode("utf-8", "replace")
        for one in (texts[0], printed):
            for other in (texts[1], one):
                same += outputs_equal(one, other)
                assert outputs_equal(one, other) == outputs_equal(other, one)
        assert not values_equal(texts[0], '[{"a": "b"}]')
    assert same >= RESPONSES / 5


class Strange:
    """Objects that raise or lie wherever they are asked something."""

    def __eq__(self, other: object) -> bool:
        raise ValueError

    def __hash__(self) -> int:
        return 1

    def __repr__(self) -> str:
        raise KeyError


def test_spellings_are_equal_where_values_are() -> None:
    """The slow twin: Python's own equality, of values that JSON can hold and others."""
    source = random.Random(20261130)
    leaves = (
        0, 1, 2, True, False, None, 0.0, -0.0, 1.0, 0.5, 0.1, 1e300, 10**300, 10**20, 1e20, "1",
        "a",
        "é", "", math.inf, -math.inf, Fraction(1, 2), Fraction(1, 10), Decimal("0.5"), Decimal(1),
        Decimal("0.1"), 1 + 0j, 1j, 2**64, float(2**64), IntEnum("E", "one").one, -1, -(10**18),
    )  # fmt: skip

    def made(depth: int, *, json_only: bool) -> object:
        kind = source.random()
        if depth == 0 or kind < 0.4:
            leaf = source.choice(leaves)
            plain = leaf is None or type(leaf) in (int, bool, float, str)
            return leaf if plain or not json_only else 7
        items = [made(depth - 1, json_only=json_only) for _ in range(source.randrange(3))]
        if kind < 0.7:
            return items
        if kind < 0.8 and not json_only:
            return tuple(items)
        keys = ("1", "a") if json_only else (1, "1", "a", 1.0, True, None, (1,))
        return {source.choice(keys): item for item in items}

    equal = 0
    for _ in range(RESPONSES):
        value, expected = made(2, json_only=False), made(2, json_only=True)
        if source.random() < 0.3:
            expected = json.loads(json.dumps(expected))
            value = source.choice((expected, [expected], made(1, json_only=True)))
        top = list(value) if isinstance(value, tuple) else value
        equal += top == expected
        assert values_equal(spelled(value), json.dumps(expected)) == (top == expected), (
            value,
            expected,
        )
    assert equal > RESPONSES / 20
    assert (
        spelled([Strange(), {Strange(): 1}, {1}, math.nan]) == "[<Strange>,{<Strange>:1},<set>,nan]"
    )
