r"""Whether an answer is right.

``check(question, response)`` for one response, `Checker` for many. Sees questions and the text of
responses, nothing of models, tokens or campaigns.

>>> from data.question import Question
>>> question = Question(id="1", prompt="", reference="[3,8)", answer_kind="math")
>>> check(question, r"The range is \[ \boxed{[3,8)} \]").right
True
"""

import atexit
import threading

from data.code_tests import CodeTests
from data.question import Question
from evaluator.answers.checker import Checker
from evaluator.answers.errors import BadReferenceError, CheckerError, SandboxMissingError
from evaluator.answers.judge import ModelVerdict
from evaluator.answers.judges import judge_for
from evaluator.answers.verdict import CHECKER_VERSION, Verdict

__all__ = [
    "CHECKER_VERSION",
    "BadReferenceError",
    "Checker",
    "CheckerError",
    "CodeTests",
    "ModelVerdict",
    "SandboxMissingError",
    "Verdict",
    "check",
    "check_reference",
]

_shared: Checker | None = None
_shared_lock = threading.Lock()


def check(question: Question, response: str) -> Verdict:
    """Check one response with a checker that this process keeps.

    Workers start only if the exact rules do not decide, and are reused by later calls.

    Raises
    ------
    CheckerError
        A worker could not be started.
    BadReferenceError
        The question's reference cannot be used.
    """
    global _shared  # noqa: PLW0603 (one checker for the process, made when first needed)
    with _shared_lock:
        if _shared is None:
            _shared = Checker()
            atexit.register(_shared.close)
        checker = _shared
    return checker.check(question, response)


def check_reference(question: Question) -> None:
    """Make sure that answers to a question can be judged; nothing is judged yet.

    Raises
    ------
    BadReferenceError
        The answer kind is unknown, or the reference cannot be used.
    """
    judge_for(question)
