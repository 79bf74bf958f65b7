r"""LiveCodeBench (Jain et al. 2024): the 175 problems that release v6 adds to release v5.

One record, shortened::

    {"question_id": "abc387_b", "question_content": "...", "starter_code": "", "metadata": "{}",
     "public_test_cases": "[{\"input\": \"1\\n\", \"output\": \"24\\n\", \"testtype\": \"stdin\"}]",
     "private_test_cases": "eJxrYJlayg...", "platform": "atcoder"}

Problems of LeetCode are functions (``metadata`` names one, ``starter_code`` its class, a test's
input is one JSON value a line); the others are programs from stdin to stdout.
"""

import json
from collections.abc import Sequence

from data.benchmark import CODE_INSTRUCTION, Benchmark
from data.code_tests import CodeTests
from data.errors import BadReferenceError, MisuseError
from data.files import RawRow, text_of, value_of
from data.packed import PackedTestsError, unpack_text
from data.public import PublicSource
from data.question import Question

TIME_LIMIT_SECONDS = 6.0
"""What LiveCodeBench's own evaluator gives a program for each test."""

STDIN_FORM = (
    "Your program reads its input from standard input and writes its output to standard output."
)
STARTER_FORM = "Complete this starter code and keep its names and signatures:"


def parse(benchmark: str, rows: Sequence[RawRow], where: str) -> list[Question]:
    """Return one question a row; its reference holds all tests, the public ones first."""
    questions = []
    for number, row in enumerate(rows, start=1):
        place = f"{where}, row {number}"
        question_id = text_of(row, "question_id", place)
        starter = str(value_of(row, "starter_code", place) or "").strip("\n")
        form = f"{STARTER_FORM}\n\n```python\n{starter}\n```" if starter else STDIN_FORM
        questions.append(
            Question(
                id=question_id,
                prompt=f"{text_of(row, 'question_content', place)}\n\n{form}",
                reference=reference(row, f"{place} ({question_id})"),
                answer_kind="code",
            )
        )
    return questions


def reference(row: RawRow, where: str) -> str:
    """Return a row's tests as the JSON document that code answers are checked against.

    Returns
    -------
    str
        An object with ``fn_name`` (``null`` for programs), ``inputs`` and ``outputs`` (texts, one
        of each per test) and ``time_limit_seconds`` (per test).

    Raises
    ------
    data.errors.MisuseError
        If the tests cannot be read, there are none, no program could pass them, or their kinds are
        mixed.
    """
    tests = [
        *_json_list(text_of(row, "public_test_cases", where), where),
        *_private_tests(text_of(row, "private_test_cases", where), where),
    ]
    if not tests:
        raise MisuseError(f"{where}: no tests")
    kinds = {test.get("testtype") for test in tests}
    if kinds not in ({"stdin"}, {"functional"}):
        raise MisuseError(f"{where}: expected tests of kind stdin or functional, found {kinds}")
    fn_name = None
    if kinds == {"functional"}:
        metadata = _json(str(row.get("metadata") or "{}"), f"{where}: metadata")
        fn_name = metadata.get("func_name") if isinstance(metadata, dict) else None
        if not isinstance(fn_name, str) or not fn_name:
            raise MisuseError(f"{where}: functional tests, but metadata names no func_name")
    inputs, outputs = (tuple(test[name] for test in tests) for name in ("input", "output"))
    try:
        return CodeTests(fn_name, inputs, outputs, TIME_LIMIT_SECONDS).to_json()
    except BadReferenceError as error:
        raise BadReferenceError(f"{where}: {error}") from error


def _private_tests(text: str, where: str) -> list[dict[str, str]]:
    if text.startswith("["):
        return _json_list(text, where)
    try:
        return _json_list(unpack_text(text), where)
    except PackedTestsError as error:
        raise MisuseError(f"{where}: private tests cannot be read ({error})") from error


def _json_list(text: str, where: str) -> list[dict[str, str]]:
    tests = _json(text, f"{where}: tests")
    if not isinstance(tests, list) or not all(
        isinstance(test, dict)
        and isinstance(test.get("input"), str)
        and isinstance(test.get("output"), str)
        for test in tests
    ):
        raise MisuseError(f"{where}: expected a list of tests, each with a text input and output")
    return tests


def _json(text: str, what: str) -> object:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise MisuseError(f"{what}: not valid JSON ({error})") from error


BENCHMARK = Benchmark(
    name="livecodebench",
    group="LCB",
    instruction=CODE_INSTRUCTION,
    answer_kind="code",
    expected_count=175,
    source=PublicSource(
        repository="livecodebench/code_generation_lite",
        revision="0fe84c3912ea0c4d4a78037083943e8f0c4dd505",
        files=("test6.jsonl",),
        licence="CC (its card names no variant)",
        rows_expected=175,
        local_names=("livecodebench", "test6"),
        parse=parse,
    ),
)
