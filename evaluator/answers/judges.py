"""Which judge for which answer kind: the one place where kinds are told apart."""

from data.optimal.general import JUDGED
from data.question import Question
from data.reasoning_gym_tasks import ANSWER_KIND as REASONING_GYM
from data.tasks import task_names
from evaluator.answers.choices import ChoiceJudge
from evaluator.answers.code import CodeJudge
from evaluator.answers.errors import BadReferenceError
from evaluator.answers.judge import Judge
from evaluator.answers.judged import JudgedJudge
from evaluator.answers.mathematics import MathJudge
from evaluator.answers.reasoning_gym import GymJudge
from evaluator.answers.tasks import TaskJudge, is_task


def judge_for(question: Question) -> Judge:
    """Prepare the judge of a question.

    Raises
    ------
    BadReferenceError
        The answer kind is unknown, or the reference cannot be used.
    """
    if question.answer_kind == "math":
        return MathJudge(question)
    if question.answer_kind == "choice":
        return ChoiceJudge(question)
    if question.answer_kind == "code":
        return CodeJudge(question)
    if question.answer_kind == JUDGED:
        return JudgedJudge(question)
    if question.answer_kind == REASONING_GYM:
        return GymJudge(question)
    if is_task(question.answer_kind):
        return TaskJudge(question)
    raise BadReferenceError(
        f"question {question.id}: unknown answer kind '{question.answer_kind}'; known: math, "
        f"choice, code, {JUDGED}, {REASONING_GYM}, {', '.join(task_names())}"
    )


def check_reference(question: Question) -> None:
    """Make sure that answers to a question can be judged; nothing is judged yet.

    Raises
    ------
    BadReferenceError
        The answer kind is unknown, or the reference cannot be used.
    """
    judge_for(question)
