r"""The tests of a programming question: what its reference holds.

A code question's ``reference`` is one JSON document::

    {"fn_name": null, "inputs": ["1 2\n", "3 4\n"], "outputs": ["3\n", "7\n"],
     "time_limit_seconds": 6}

``fn_name`` null: a program that reads an input text from standard input and is compared by what it
prints. Otherwise the name of a function (or of a method of a class ``Solution``); an input is then
a text with one JSON value per line, the arguments in their order (``"[1, 2]\n3"``), and an output
the JSON text of the value that must come back (``"5"``). These are LiveCodeBench's own forms of
``public_test_cases`` and ``private_test_cases``, with each test's ``input`` and ``output`` moved
into two lists; ``CodeTests(...).to_json()`` writes it.
"""

import json
import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from data.errors import BadReferenceError

DEFAULT_TIME_LIMIT_SECONDS = 6.0
"""Per test, as in LiveCodeBench's evaluator."""
LONGEST_TIME_LIMIT_SECONDS = 3600.0
MOST_DIGITS = 50_000
"""Of an integer that can be read and printed, as in LiveCodeBench's evaluator."""
LONGEST_OUTPUT_CHARACTERS = 32 * 2**20
"""What a program prints beyond this is not read."""

_READ_AT_ONCE = 4000
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class CodeTests:
    """The tests of one programming question.

    Attributes
    ----------
    fn_name
        The function to call; None for a program that reads standard input.
    inputs, outputs
        One text per test, in the same order; see the module's text for their form.
    time_limit_seconds
        Limit for one test.

    Raises
    ------
    BadReferenceError
        No program could pass: there is no test, an input or output is not of its form, or the time
    limit is out of range.
    """

    fn_name: str | None
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    time_limit_seconds: float = DEFAULT_TIME_LIMIT_SECONDS

    def __post_init__(self) -> None:
        if len(self.inputs) != len(self.outputs):
            raise BadReferenceError(
                f"code tests: {len(self.inputs)} inputs but {len(self.outputs)} outputs"
            )
        if not self.inputs:
            raise BadReferenceError("code tests: the list of tests is empty; nothing can pass it")
        if not 0 < self.time_limit_seconds <= LONGEST_TIME_LIMIT_SECONDS:
            raise BadReferenceError(
                f"code tests: time_limit_seconds is {self.time_limit_seconds:g}; write a number "
                f"greater than 0, at most {LONGEST_TIME_LIMIT_SECONDS:g}"
            )
        for number, output in enumerate(self.outputs, start=1):
            if len(output) > LONGEST_OUTPUT_CHARACTERS:
                raise BadReferenceError(
                    f"code tests: output {number} has {len(output):,} characters; at most "
                    f"{LONGEST_OUTPUT_CHARACTERS:,} of what a program prints are read"
                )
        if self.fn_name is not None:
            self._check_function(self.fn_name)

    def _check_function(self, name: str) -> None:
        """Refuse what is not a call of a function, and what no function can return."""
        if not name.isidentifier():
            raise BadReferenceError(f"code tests: fn_name {name!r:.60} is not a name of a function")
        for number, (given, output) in enumerate(zip(self.inputs, self.outputs, strict=True), 1):
            place = f"code tests: input {number} of function {name}"
            for line in argument_lines(given):
                _checked_value(line, place)
            value = _checked_value(output, f"code tests: output {number} of function {name}")
            if _has_nan(value):
                raise BadReferenceError(
                    f"code tests: output {number} of function {name} holds NaN, which equals "
                    "nothing"
                )

    def to_json(self) -> str:
        """Write the tests as a question's reference."""
        return json.dumps(
            {
                "fn_name": self.fn_name,
                "inputs": list(self.inputs),
                "outputs": list(self.outputs),
                "time_limit_seconds": self.time_limit_seconds,
            }
        )

    @classmethod
    def from_json(cls, reference: str) -> "CodeTests":
        """Read a question's reference.

        Raises
        ------
        BadReferenceError
            The text is no such document, or no program could pass its tests.
        """
        try:
            document = json.loads(reference)
            name = document["fn_name"]
            inputs, outputs = document["inputs"], document["outputs"]
            limit = document.get("time_limit_seconds", DEFAULT_TIME_LIMIT_SECONDS)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise BadReferenceError(
                "code tests: the reference must be a JSON object with fn_name, inputs, outputs and "
                f"time_limit_seconds ({type(error).__name__}: {error})"
            ) from error
        if not (name is None or isinstance(name, str)) or not all(
            isinstance(texts, list) and all(isinstance(text, str) for text in texts)
            for texts in (inputs, outputs)
        ):
            raise BadReferenceError(
                "code tests: fn_name is a text or null, inputs and outputs are lists of texts"
            )
        if isinstance(limit, bool) or not isinstance(limit, int | float):
            raise BadReferenceError(
                f"code tests: time_limit_seconds is {limit!r:.60}; write a number of seconds"
            )
        try:
            seconds = float(limit)
        except OverflowError:
            seconds = math.inf
        return cls(name or None, tuple(inputs), tuple(outputs), seconds)


def argument_lines(given: str) -> list[str]:
    r"""Return the JSON texts of a function's arguments.

    Examples
    --------
    >>> argument_lines("[1, 2]\n3\n")
    ['[1, 2]', '3']
    """
    return [line for line in given.split("\n") if line.strip()]


def json_value(text: str) -> Any:
    """Return the value of a JSON text; integers may have `MOST_DIGITS` digits.

    Raises
    ------
    ValueError
        If it is not JSON, or is nested too deeply to be read.
    """
    try:
        return json.loads(text, parse_int=_whole)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _whole(digits: str) -> int:
    """Read an integer that may have more digits than the process's own limit allows."""
    if len(digits) <= _READ_AT_ONCE:
        return int(digits)
    if len(digits.lstrip("-")) > MOST_DIGITS:
        raise ValueError(f"an integer of more than {MOST_DIGITS:,} digits")
    return int(Decimal(digits))


def _checked_value(text: str, place: str) -> Any:
    try:
        return json_value(text)
    except ValueError as error:
        raise BadReferenceError(
            f"{place} is not JSON: {text[:_SHOWN]!a} ({error}); a text is written in quotes, as in "
            '"\\"a\\""'
        ) from error


def _has_nan(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_has_nan, value))
    if isinstance(value, dict):
        return any(map(_has_nan, value.values()))
    return isinstance(value, float) and math.isnan(value)
