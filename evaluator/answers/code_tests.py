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
from dataclasses import dataclass

from evaluator.answers.errors import BadReferenceError

DEFAULT_TIME_LIMIT_SECONDS = 6.0
"""Per test, as in LiveCodeBench's evaluator."""


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
        if not self.time_limit_seconds > 0:
            raise BadReferenceError("code tests: time_limit_seconds must be greater than 0")

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
            The text is no such document, or it holds no test.
        """
        try:
            document = json.loads(reference)
            name = document["fn_name"]
            inputs, outputs = document["inputs"], document["outputs"]
            limit = float(document.get("time_limit_seconds", DEFAULT_TIME_LIMIT_SECONDS))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BadReferenceError(
                "code tests: the reference must be a JSON object with fn_name, inputs, outputs and "
                f"time_limit_seconds ({type(error).__name__}: {error})"
            ) from error
        texts = [*inputs, *outputs]
        if not (name is None or isinstance(name, str)) or not all(
            isinstance(text, str) for text in texts
        ):
            raise BadReferenceError("code tests: fn_name is a text or null, all tests are texts")
        return cls(name or None, tuple(inputs), tuple(outputs), limit)
