r"""The traces that the demo model learns to write, made up from a problem and a recipe.

Used only by ``train_demo_model.py``. One real trace, each line a step::

    Let me work it out.              a decomposition, running totals written out,
    7 + 5 = 12.                      each step ended by a token with a double newline
    12 + 9 = 21.
    The answer is 21.                a right result
    Let me check again:              0 to 3 redundant checks
    7 + 5 = 12
    12 + 9 = 22                      some of them slip, and the answer follows the slip
    So it is 22.
    The final answer is 22.
"""

from dataclasses import dataclass
from itertools import accumulate

from data.demo import DemoProblem
from data.draws import StableDraws

_OPENERS = ("Wait, let me check.\n\n", "Is that right?\n\n", "Let me check again:\n\n")


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a trace and what its author believes the answer to be after it."""

    text: str
    belief: int


@dataclass(frozen=True, slots=True)
class TraceRecipe:
    """What share of the traces does what.

    Attributes
    ----------
    rounds
        Weights in percent of 0, 1, 2, ... checks after the result.
    slip
        Share of the checks that recompute and get the last line wrong.
    doubt
        Share of the checks that recompute nothing and only suggest another answer.
    branches
        Cuts of each trace that are closed with an answer.
    guess
        Share of the traces that are also closed before any thinking.
    """

    rounds: tuple[int, ...] = (10, 30, 34, 26)
    slip: float = 0.06
    doubt: float = 0.05
    branches: int = 4
    guess: float = 0.3


def computation(problem: DemoProblem) -> list[str]:
    """Return the lines that work a problem out, without their ends."""
    if problem.kind == "sum":
        return _chain(problem.numbers, "+")
    if problem.kind == "difference":
        return _chain(problem.numbers, "-")
    if problem.kind == "comparison":
        first, second = sum(problem.numbers), sum(problem.others)
        final = f"{first} {'>' if first > second else '<'} {second}"
        return [*_chain(problem.numbers, "+"), *_chain(problem.others, "+"), final]
    return _scan(problem) if problem.kind == "extremum" else _tally(problem)


def early_beliefs(problem: DemoProblem) -> list[int]:
    """Return the belief before a computation's first line, and after each of its lines.

    The right answer, which the model can only guess at from the numbers; but for an extremum the
    best number so far, for with the right one the model would learn to see it at a glance.
    """
    if problem.kind == "extremum":
        return list(accumulate(problem.numbers, max if problem.word == "largest" else min))
    return [problem.answer] * (len(computation(problem)) + 1)


def _chain(numbers: tuple[int, ...], sign: str) -> list[str]:
    total, lines = numbers[0], []
    for number in numbers[1:]:
        after = total + number if sign == "+" else total - number
        lines.append(f"{total} {sign} {number} = {after}")
        total = after
    return lines


def _scan(problem: DemoProblem) -> list[str]:
    best, lines = problem.numbers[0], []
    for number in problem.numbers[1:]:
        sign = ">" if number > best else "<"
        kept = max(best, number) if problem.word == "largest" else min(best, number)
        lines.append(f"{number} {sign} {best}")
        best = kept
    return lines


def _tally(problem: DemoProblem) -> list[str]:
    total, lines = 0, []
    for number in problem.numbers:
        total += problem.counts(number)
        if problem.word == "larger":
            sign = ">" if number > problem.threshold else "<" if number < problem.threshold else "="
            lines.append(f"{number} {sign} {problem.threshold}: {total}")
        else:
            lines.append(f"{number} is {'even' if number % 2 == 0 else 'odd'}: {total}")
    return lines


def _wrong_answer(problem: DemoProblem, last_line: str, draws: StableDraws) -> int:
    """Return the wrong result that a slip in the last line of a computation leads to."""
    if problem.kind == "comparison":
        return sum(problem.numbers) + sum(problem.others) - problem.answer
    if problem.kind == "extremum":
        sides = last_line.replace("<", ">").split(">")
        return sum(int(side) for side in sides) - problem.answer
    if problem.kind == "count":
        return problem.answer + (1 if problem.answer == 0 else (-1, 1)[draws.integer(0, 1)])
    return problem.answer + (-10, -1, 1, 10)[draws.integer(0, 3)]


def write_trace(problem: DemoProblem, draws: StableDraws, recipe: TraceRecipe) -> list[Step]:
    """Return the steps of one trace; the last one has no double newline, for thinking ends there.

    A step's belief is what a cut after it is closed with.
    """
    right = problem.answer
    lines = ["Let me work it out", *computation(problem)]
    beliefs = early_beliefs(problem)
    steps = [Step(f"{line}.\n\n", belief) for line, belief in zip(lines, beliefs, strict=True)]
    steps.append(Step(f"The answer is {right}.\n\n", right))
    belief = right
    for _ in range(_drawn_rounds(draws, recipe)):
        fate = draws.integer(0, 999) / 1000
        if fate < recipe.doubt:
            last = computation(problem)[-1]
            belief = _wrong_answer(problem, last, draws)
            steps.append(Step(f"Hmm, maybe it is {belief}?\n\n", belief))
        else:
            steps.append(Step(_OPENERS[draws.integer(0, 2)], belief))
            lines = computation(problem)
            steps += [Step(line + "\n\n", belief) for line in lines[:-1]]
            belief = right
            if fate < recipe.doubt + recipe.slip:
                belief = _wrong_answer(problem, lines[-1], draws)
                lines[-1] = _with_result(lines[-1], belief)
            steps.append(Step(lines[-1] + "\n\n", belief))
        steps.append(Step(f"So it is {belief}.\n\n", belief))
    steps.append(Step(f"The final answer is {belief}.\n", belief))
    return steps


def _with_result(line: str, result: int) -> str:
    """Return a computation's last line with another result, or with its sign turned around."""
    for sign, other in (("<", ">"), (">", "<")):
        if sign in line and ":" not in line:
            return line.replace(sign, other)
    head, mark, _ = line.rpartition(": " if ":" in line else "= ")
    return f"{head}{mark}{result}"


def _drawn_rounds(draws: StableDraws, recipe: TraceRecipe) -> int:
    drawn = draws.integer(1, sum(recipe.rounds))
    for rounds, weight in enumerate(recipe.rounds):
        drawn -= weight
        if drawn <= 0:
            return rounds
    raise AssertionError("weights are exhausted by construction")
