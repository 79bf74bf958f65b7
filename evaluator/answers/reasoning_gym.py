r"""The judge of Reasoning Gym's tasks: their own verifiers, fed with what was boxed.

Only full credit is right; partial credit is there to be reported apart (`credit`). An answer is
read out of LaTeX before it is verified (``\frac{3}{4}``, ``P \land Q``, ``45^\circ``), in several
spellings where it may mean several; the best one counts.

Some verifiers evaluate the answer as a program. What a model wrote gets there only if it is made
of numbers, signs and a few known names; and since an integral of such may take for ever, verifiers
run in a process that is limited and can be killed (`symbolic`).
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from data.question import Question
from data.reasoning_gym_tasks import entry_of, gym_dataset
from evaluator.answers.boxes import last_boxes
from evaluator.answers.errors import BadReferenceError
from evaluator.answers.judge import SlowTools
from evaluator.answers.marked import marked_answer
from evaluator.answers.symbolic import SymbolicTimeoutError
from evaluator.answers.verdict import TIME_LIMIT_REASON, Verdict
from evaluator.answers.visible import visible_text

MAX_CHARACTERS = 4000
"""A longer answer is a response that ran away; no task's answer comes near it."""

_PARTIAL = "partial credit "
_TAG = re.compile(r"<answer>(.{1,4000}?)</answer>", re.DOTALL | re.IGNORECASE)
_FONT = re.compile(
    r"\\(?:text(?:bf|it|rm|sf|tt|normal)?|math(?:bf|rm|it|sf|tt)|mbox|operatorname) ?\{([^{}]*)\}"
)
_FRACTION = re.compile(r"\\[dtc]?frac ?\{ ?([^{}]{1,60}?) ?\} ?\{ ?([^{}]{1,60}?) ?\}")
_DECIMAL_FRACTION = re.compile(r"(?<![\d.])(-?)\(?(-?\d{1,12})\)?/\(?(\d{1,12})\)?(?![\d.])")
_SIGNS = {
    r"\rightarrow": "→",
    r"\leftrightarrow": "↔",
    r"\Leftrightarrow": "↔",
    r"\implies": "→",
    r"\Rightarrow": "→",
    r"\to": "→",
    r"\iff": "↔",
    r"\land": "∧",
    r"\wedge": "∧",
    r"\lor": "∨",
    r"\vee": "∨",
    r"\lnot": "¬",
    r"\neg": "¬",
    r"\sim": "¬",
    r"\times": "*",
    r"\cdot": "*",
    r"\div": "/",
    r"\degree": "°",
    r"\circ": "°",
    r"\left": "",
    r"\right": "",
    r"\quad": " ",
}
_SIGN = re.compile(
    "|".join(re.escape(sign) + "(?![a-zA-Z])" for sign in sorted(_SIGNS, key=len, reverse=True))
)

_ARITHMETIC = re.compile(r"[0-9+\-*/(). ]{1,200}")
_ALGEBRA = re.compile(r"[0-9a-zA-Z+\-*/(). ]{1,400}")
_NAME = re.compile(r"[a-zA-Z]{2,}")
_KNOWN_NAMES = frozenset(
    ["sin", "cos", "tan", "exp", "log", "sqrt", "sinh", "cosh", "tanh", "asin", "acos", "atan"]
)
_POWER = re.compile(r"\*\*\s*(?!\(?-?\d{1,2}(?:/\d{1,2})?\)?(?![\d.]|\s*\*\*))")

ARITHMETIC_TASKS = frozenset({"puzzle24", "countdown"})
ALGEBRA_TASKS = frozenset(
    {"simple_integration", "intermediate_integration", "polynomial_multiplication"}
)
LITERAL_TASKS = frozenset({"string_insertion", "spiral_matrix", "binary_matrix", "n_queens"})
"""Tasks whose verifiers evaluate an answer: as arithmetic, as algebra, as a list."""


class GymJudge:
    """Judges answers to one question of Reasoning Gym."""

    def __init__(self, question: Question) -> None:
        try:
            self._dataset, parameters, self._entry = entry_of(question.reference)
        except ValueError as error:
            raise BadReferenceError(f"question {question.id}: {error}") from error
        self._verifier = _verifier(self._dataset, tuple(sorted(parameters.items())))
        self._question = question

    def extract(self, response: str) -> str | None:
        """Extract what the last box holds; without a box, what is marked as the answer."""
        text = visible_text(response)
        if text is None:
            return None
        boxes = last_boxes(text) if "box" in text else []
        if boxes:
            content = boxes[-1].content.strip() if boxes[-1].closed else ""
        else:
            tags = _TAG.findall(text)
            content = tags[-1].strip() if tags else (marked_answer(text) or "").strip()
        return content if 0 < len(content) <= MAX_CHARACTERS else None

    def credit(self, answer: str) -> float:
        """Return Reasoning Gym's own score of an answer, from 0 to 1; it may take for ever."""
        best = 0.0
        for spelling in spellings(answer):
            if _harmless(self._dataset, spelling):
                # A verifier may write into the metadata of what it judges.
                entry = {**self._entry, "metadata": dict(self._entry["metadata"])}
                best = max(best, _score(self._verifier, spelling, entry))
            if best >= 1.0:
                break
        return best

    def quick(self, answer: str) -> Verdict | None:
        """Decide nothing: what verifiers do with an answer has no bound."""
        return None

    def slow(self, answer: str, tools: SlowTools) -> Verdict:
        """Judge by the task's verifier; full credit alone is right."""
        try:
            credit = tools.gym_credit(self._question.reference, answer)
        except SymbolicTimeoutError:
            return Verdict(right=False, answer=answer, reason=TIME_LIMIT_REASON)
        if credit >= 1.0:
            missing = self._missing(answer)
            if missing:
                return Verdict(False, answer, f"wrong: {missing}")
            return Verdict(True, answer, "right: full credit by the task's verifier")
        return Verdict(False, answer, f"wrong: {_PARTIAL}{credit:.4g} by the task's verifier")

    def _missing(self, answer: str) -> str:
        """Say what Reasoning Gym's verifier of ``puzzle24`` does not look at.

        It asks for any four numbers of the range, and cuts what they come to down to an integer.
        """
        if self._dataset != "puzzle24":
            return ""
        given = sorted(self._entry["metadata"]["numbers"])
        for spelling in spellings(answer):
            used = sorted(int(number) for number in re.findall(r"\d+", spelling))
            if used == given and _harmless(self._dataset, spelling) and _is_24(spelling):
                return ""
        return "the expression does not make exactly 24 from the numbers of the puzzle"


def partial_credit(verdict: Verdict) -> float:
    """Return the credit that Reasoning Gym gave, as a verdict tells it: 1 for what is right.

    Examples
    --------
    >>> partial_credit(Verdict(False, "7", "wrong: partial credit 0.05 by the task's verifier"))
    0.05
    """
    if verdict.right:
        return 1.0
    found = re.search(re.escape(_PARTIAL) + r"([0-9.e-]+)", verdict.reason)
    return float(found.group(1)) if found else 0.0


def spellings(answer: str) -> Iterator[str]:
    r"""Yield what an answer may look like to a verifier, as written first.

    Examples
    --------
    >>> list(spellings(r"P \land Q"))
    ['P \\land Q', 'P ∧ Q']
    >>> list(spellings(r"\text{No}"))[-1]
    'No'
    """
    seen = set()
    for spelling in (answer, *_plainer(answer)):
        if spelling and spelling not in seen:
            seen.add(spelling)
            yield spelling


def _plainer(answer: str) -> Iterator[str]:
    text = answer
    for _ in range(3):
        text = _FONT.sub(r"\1", text)
    text = text.replace("^{\\circ}", "°").replace("^\\circ", "°")
    text = re.sub(r"\\([#&%$_{}])", r"\1", text)
    text = _SIGN.sub(lambda match: _SIGNS[match.group()], text)
    text = re.sub(r"\\[,;:! ]", " ", text).replace("~", " ")
    text = re.sub(r"\\[()\[\]]", "", text).replace("$", "").replace("`", "")
    text = re.sub(r"[ \t]+", " ", text.replace("−", "-").replace("×", "*").replace("÷", "/"))
    text = text.strip().strip(".").strip()
    yield text
    yield text.replace(" = 24", "").replace("=24", "")
    plain = _FRACTION.sub(r"\1/\2", text)
    yield plain
    # Coordinates: the verifier reads decimals, and compares three places.
    yield _DECIMAL_FRACTION.sub(_as_decimal, plain)
    yield text.replace("°", "").strip()
    yield text.strip("\"'").strip()


def _as_decimal(match: re.Match[str]) -> str:
    below = int(match.group(3))
    if below == 0:
        return match.group()
    sign = -1 if match.group(1) else 1
    return f"{sign * int(match.group(2)) / below:.6f}"


def _harmless(dataset: str, answer: str) -> bool:
    """Whether an answer may be given to its verifier, which may evaluate it."""
    if dataset in ARITHMETIC_TASKS:
        return _ARITHMETIC.fullmatch(answer) is not None and "**" not in answer
    if dataset in ALGEBRA_TASKS:
        return (
            _ALGEBRA.fullmatch(answer) is not None
            and set(_NAME.findall(answer)) <= _KNOWN_NAMES
            and _POWER.search(answer) is None
            and re.search(r"[a-zA-Z)]\s*\.|\.\s*[a-zA-Z]", answer) is None
        )
    if dataset in LITERAL_TASKS and not re.fullmatch(r"[\w \n.,-]*", answer):
        try:
            ast.literal_eval(answer)
        except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            return False
    return True


def _is_24(expression: str) -> bool:
    from fractions import Fraction

    try:
        tree = ast.parse(expression.strip(), mode="eval")
        return bool(_value(tree.body) == Fraction(24))
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, MemoryError):
        return False


def _value(node: ast.expr) -> Any:
    from fractions import Fraction

    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return Fraction(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand)
    if isinstance(node, ast.BinOp):
        left, right = _value(node.left), _value(node.right)
        if isinstance(node.op, ast.Add):
            return left + right
        if isinstance(node.op, ast.Sub):
            return left - right
        if isinstance(node.op, ast.Mult):
            return left * right
        if isinstance(node.op, ast.Div):
            return left / right
    raise ValueError("no arithmetic of four operations")


@cache
def _verifier(dataset: str, parameters: tuple[tuple[str, Any], ...]) -> Any:
    return gym_dataset(dataset, dict(parameters))


def _score(verifier: Any, answer: str, entry: dict[str, Any]) -> float:
    try:
        return float(verifier.score_answer(answer, entry))
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, ArithmeticError):
        # Verifiers of other data sets than the eleven fall over answers of another form.
        return 0.0
    except (RecursionError, SyntaxError, MemoryError):
        return 0.0
