"""A question: one item of a benchmark, with what is needed to judge an answer to it.

One real record::

    Question(id="demo-sum-17", prompt="What is 4 + 7 + 2?", reference="13", answer_kind="math")
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    r"""One item of a benchmark.

    Attributes
    ----------
    id
        Unique within its benchmark and stable over releases of this project.
    prompt
        What is asked, without the instruction that a benchmark adds.
    reference
        The right answer as text. A letter for choices; for code, the tests as a JSON document.
    answer_kind
        ``"math"``, ``"choice"``, ``"code"``, or the name of a generated task.
    choices
        The options in the order shown, first letter first. Empty unless ``answer_kind`` is
        ``"choice"``.
    language
        Language in which it is asked, as a two-letter code (``"de"``); empty if nothing is said. It
        tells whether ``2,5`` in an answer is two and a half.
    """

    id: str
    prompt: str
    reference: str
    answer_kind: str
    choices: tuple[str, ...] = ()
    language: str = ""
