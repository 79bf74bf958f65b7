"""The judge of programs: the last fenced block of a response, run on all tests of its question.

The form of a code question's reference is in `data.code_tests`. Outputs are compared as
LiveCodeBench's evaluator does: what is printed line by line, without white space around, and where
two lines differ as text, number by number; what a function returns by equality. The expected
outputs never enter the sandbox.
"""

import re
import textwrap
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation

from data.code_tests import CodeTests as CodeTests
from data.code_tests import json_value
from data.question import Question
from evaluator.answers.errors import BadReferenceError
from evaluator.answers.judge import SlowTools
from evaluator.answers.sandbox import SandboxRun, run_program
from evaluator.answers.sandbox_runner import spelled
from evaluator.answers.verdict import Verdict
from evaluator.answers.visible import visible_text

__all__ = ["CodeJudge", "last_fenced_block", "outputs_equal", "values_equal"]

_ELEMENT = re.compile(r"\S+")
_FENCE = re.compile(r"^([ \t]{0,12})(`{3,}|~{3,})([^`\n]*)$", re.MULTILINE)


def last_fenced_block(text: str) -> str | None:
    r"""Return the content of the last fenced block; None if there is none, or it is cut off.

    Examples
    --------
    >>> last_fenced_block("First:\n```python\nx = 1\n```\nBetter:\n```python\nx = 2\n```\n")
    'x = 2\n'
    >>> last_fenced_block("```python\nx = 1") is None
    True
    """
    opening: re.Match[str] | None = None
    block: str | None = None
    for fence in _FENCE.finditer(text):
        if opening is None:
            opening = fence
        elif fence.group(2)[0] == opening.group(2)[0] and not fence.group(3).strip():
            if len(fence.group(2)) >= len(opening.group(2)):
                block = _dedented(text[opening.end() + 1 : fence.start()], opening)
                opening = None
        elif fence.group(3).strip() and fence.group(2)[0] == opening.group(2)[0]:
            opening = fence  # a new block before the last one was closed
    if opening is not None and text[opening.end() :].strip():
        return None
    return block if block is not None and block.strip() else None


def _dedented(block: str, fence: re.Match[str]) -> str:
    """Drop the indentation of a fence that stands in a list item from the lines in it."""
    indentation = fence.group(1)
    if not indentation:
        return block
    lines = block.split("\n")
    if all(line.startswith(indentation) or not line.strip() for line in lines):
        return "\n".join(line[len(indentation) :] for line in lines)
    return textwrap.dedent(block)


def outputs_equal(output: str, expected: str) -> bool:
    r"""Compare what a program printed with what it should have, line by line.

    A line at a time: a program may print far more than its grader could hold as numbers.

    Examples
    --------
    >>> outputs_equal("1.50 2 \n", "1.5 2")
    True
    """
    output, expected = output.strip(), expected.strip()
    if output.count("\n") != expected.count("\n"):
        return False
    return all(
        line == expected_line or _same_numbers(line, expected_line)
        for line, expected_line in zip(_lines(output), _lines(expected), strict=True)
    )


def values_equal(value: str | None, expected: str) -> bool:
    """Compare a function's value, as `sandbox_runner.spelled`, with the expected one's JSON text.

    As in LiveCodeBench by equality of the values in Python.
    """
    return value is not None and value == spelled(json_value(expected))


def _lines(text: str) -> Iterator[str]:
    start = 0
    while (end := text.find("\n", start)) >= 0:
        yield text[start:end].strip()
        start = end + 1
    yield text[start:].strip()


def _same_numbers(line: str, expected: str) -> bool:
    """Compare two lines number by number; False where one of the two is not made of numbers."""
    pairs = zip(_ELEMENT.finditer(line), _ELEMENT.finditer(expected), strict=True)
    try:
        return all(Decimal(one.group()) == Decimal(other.group()) for one, other in pairs)
    except (InvalidOperation, ValueError):
        return False  # No number, a signalling NaN, or more elements on one side.


class CodeJudge:
    """Judges programs that answer one question."""

    def __init__(self, question: Question) -> None:
        try:
            self._tests = CodeTests.from_json(question.reference)
        except BadReferenceError as error:
            raise BadReferenceError(f"question {question.id}: {error}") from error

    def extract(self, response: str) -> str | None:
        """Extract the program: the last fenced block."""
        text = visible_text(response)
        return None if text is None else last_fenced_block(text)

    def quick(self, answer: str) -> Verdict | None:
        """Decide nothing: a program has to be run."""
        return None

    def slow(self, answer: str, tools: SlowTools) -> Verdict:
        """Run the program on the tests in their order, up to the first that fails."""
        tests = self._tests
        count = len(tests.inputs)
        for number, (given, expected) in enumerate(
            zip(tests.inputs, tests.outputs, strict=True), start=1
        ):
            run = run_program(
                answer,
                tests.fn_name,
                given,
                tests.time_limit_seconds,
                unsandboxed=tools.unsandboxed,
            )
            trouble = self._trouble(run, expected)
            if trouble is not None:
                return Verdict(False, answer, f"wrong: test {number} of {count}: {trouble}")
        return Verdict(right=True, answer=answer, reason=f"right: all {count} tests passed")

    def _trouble(self, run: SandboxRun, expected: str) -> str | None:
        if run.trouble is not None:
            return run.trouble
        if self._tests.fn_name is not None:
            return None if values_equal(run.value, expected) else "another value"
        if outputs_equal(run.output.decode("utf-8", "replace"), expected):
            return None
        return "another output"
