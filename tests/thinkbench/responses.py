"""More than six hundred responses to the fourteen tasks, written as models write.

Each is a manner of writing applied to a question's right or wrong value. A manner says what a value
is put into (a box, a marked sentence, a list one number a line, LaTeX, a code block, thinking
before it), and whether the value in it is what the response gives as its answer.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from data.question import Question
from data.tasks import TaskParameters, get_task, task_names
from data.tasks.base import make_questions

INSTANCES = 2
LISTS = ("sorting",)
RATIONAL = ("division", "mean", "median")
SIGN_WORDS = {"<": "less than", ">": "greater than", "=": "equal to"}
SIGN_LATEX = {"<": r"\lt", ">": r"\gt", "=": "="}


@dataclass(frozen=True, slots=True)
class Case:
    """One response, and whether it is right."""

    question: Question
    response: str
    right: bool
    note: str


def values(question: Question) -> tuple[str, str, str]:
    """Return the right value, a near wrong one, and another wrong one, in plain spelling."""
    task = question.answer_kind
    reference = question.reference.split(" or ")[0]
    if task == "comparison":
        wrong = [sign for sign in "<=>" if sign != reference]
        return reference, wrong[0], wrong[1]
    if task == "sorting":
        numbers = [int(text) for text in reference.strip("[]").split(",")]
        swapped = [numbers[1], numbers[0], *numbers[2:]]
        if swapped == numbers:
            swapped = numbers[:-1]
        return reference, str(swapped), str(numbers[:-1])
    value = Fraction(reference)
    return str(value), str(value + 1), str(value + 10 if value <= 0 else -value)


# What every task's value can be put into: the value, then another wrong value of the same kind.
Manner = Callable[[str, str], str]
ANY: dict[str, Manner] = {
    "box": lambda v, w: rf"\boxed{{{v}}}",
    "box in a sentence": lambda v, w: rf"Adding it all up, the answer is \boxed{{{v}}}.",
    "box in inline LaTeX": lambda v, w: rf"So we get $\boxed{{{v}}}$ as the final result.",
    "box in a display": lambda v, w: "Therefore\n\\[\n\\boxed{" + v + "}\n\\]",
    "box with spaces": lambda v, w: "**Final Answer**\n" + rf"$\boxed{{ {v} }}$",
    "thinking before the box": lambda v, w: (
        f"<think>\nMaybe it is {w}. No, let me see. \\boxed{{{w}}}? It is {v}.\n</think>\n\n"
        rf"\boxed{{{v}}}"
    ),
    "end of thinking alone": lambda v, w: (
        f"I first thought of \\boxed{{{w}}}.\n</think>\n\nThe result is \\boxed{{{v}}}."
    ),
    "two boxes, the last counts": lambda v, w: (
        rf"First I get \boxed{{{w}}}. Wait, I made a slip there. The right result is \boxed{{{v}}}."
    ),
    "same box twice": lambda v, w: (
        rf"\boxed{{{v}}}" + "\n\nSo the final answer is " + rf"\boxed{{{v}}}."
    ),
    "placeholder first": lambda v, w: (
        rf"I will give the answer as \boxed{{answer}}. Working it out: \boxed{{{v}}}"
    ),
    "label": lambda v, w: f"I go through the numbers one by one.\n\nAnswer: {v}",
    "bold label": lambda v, w: f"Some work here.\n\n**Final Answer:** {v}",
    "sentence": lambda v, w: f"After checking everything, the final answer is {v}.",
    "bold in the last line": lambda v, w: f"We have worked through it.\n\nThe result is **{v}**.",
    "hash marks": lambda v, w: f"Step by step we reach the end.\n#### {v}",
    "answer tag": lambda v, w: f"Here is what I found.\n<answer>{v}</answer>",
    "only the value": lambda v, w: v,
    "markdown heading": lambda v, w: f"### Work\nNothing special.\n\n### Answer\n\n{v}",
    "heading with a box": lambda v, w: (
        f"## Solution\n\nWe compute.\n\n## Answer\n\n$$\\boxed{{{v}}}$$"
    ),
    "text inside the box": lambda v, w: rf"\boxed{{\text{{{v}}}}}",
    "bold inside the box": lambda v, w: rf"\boxed{{\mathbf{{{v}}}}}",
    "fbox": lambda v, w: rf"The result: \fbox{{{v}}}",
}
# The value stands somewhere, but it is not what is given as the answer: never right.
NEVER: dict[str, Manner] = {
    "right in thinking, wrong in the answer": lambda v, w: (
        f"<think>It is \\boxed{{{v}}}.</think>\n\nThe answer is \\boxed{{{w}}}."
    ),
    "right first, then replaced": lambda v, w: (
        rf"I get \boxed{{{v}}}. Wait, that is wrong. The correct result is \boxed{{{w}}}."
    ),
    "thinking that never ends": lambda v, w: (
        f"<think>\nSo it is \\boxed{{{v}}}. Let me check again"
    ),
    "refusal": lambda v, w: "I am sorry, I cannot work with these numbers.",
    "empty box": lambda v, w: f"It could be {v} or {w}: \\boxed{{}}",
    "empty": lambda v, w: "",
    "box denied": lambda v, w: rf"The answer is not \boxed{{{v}}} but \boxed{{{w}}}.",
    "label replaces a box": lambda v, w: rf"At first \boxed{{{v}}}." + f"\n\nFinal answer: {w}",
}
NUMBER: dict[str, Manner] = {
    "last line with an equals sign": lambda v, w: f"Let me calculate.\nTotal = {v}",
    "variable in the box": lambda v, w: rf"\boxed{{x = {v}}}",
    "Unicode minus": lambda v, w: r"\boxed{" + v.replace("-", "\u2212") + "}",
    "dollar signs": lambda v, w: f"Thus the answer is ${v}$.",
    "trailing full stop in the box": lambda v, w: (
        rf"\boxed{{{v}.}}" if "/" not in v else rf"\boxed{{{v}}}"
    ),
    "calculation before it": lambda v, w: (
        rf"Steps: 3 + 4 = 7, and so on until {w} is ruled out. \boxed{{{v}}}"
    ),
    "plus zero decimals": lambda v, w: rf"\boxed{{{v}.0}}" if "/" not in v else rf"\boxed{{{v}}}",
    "minus outside the box": lambda v, w: (
        rf"-\boxed{{{v[1:]}}}" if v.startswith("-") else rf"\boxed{{{v}}}"
    ),
}
LONG: dict[str, Manner] = {
    "thousands separators": lambda v, w: rf"\boxed{{{int(v):,}}}",
    "LaTeX separators": lambda v, w: rf"\boxed{{{int(v):,}}}".replace(",", "{,}"),
    "thin spaces": lambda v, w: rf"\boxed{{{int(v):,}}}".replace(",", r"\,"),
    "separators in a sentence": lambda v, w: f"The answer is {int(v):,}.",
}
FRACTION: dict[str, Manner] = {
    "LaTeX fraction": lambda v, w: rf"\boxed{{{_latex(v)}}}",
    "display fraction": lambda v, w: rf"\boxed{{{_latex(v).replace('frac', 'dfrac')}}}",
    "four decimals": lambda v, w: rf"\boxed{{{float(Fraction(v)):.4f}}}",
    "six decimals in a sentence": lambda v, w: f"The answer is {float(Fraction(v)):.6f}.",
    "unreduced": lambda v, w: (
        rf"\boxed{{{Fraction(v).numerator * 3}/{Fraction(v).denominator * 3}}}"
    ),
    "about": lambda v, w: rf"\boxed{{\approx {float(Fraction(v)):.4f}}}",
}
LIST: dict[str, Manner] = {
    "without brackets": lambda v, w: rf"\boxed{{{v.strip('[]')}}}",
    "without spaces": lambda v, w: rf"\boxed{{{v.replace(' ', '')}}}",
    "in parentheses": lambda v, w: rf"\boxed{{({v.strip('[]')})}}",
    "in braces": lambda v, w: rf"\boxed{{\{{{v.strip('[]')}\}}}}",
    "large brackets": lambda v, w: rf"\boxed{{\left[{v.strip('[]')}\right]}}",
    "LaTeX commas": lambda v, w: r"\boxed{" + v.replace(", ", r",\ ") + "}",
    "Unicode minus in a list": lambda v, w: r"\boxed{" + v.replace("-", "\u2212") + "}",
    "label and list": lambda v, w: f"Sorted list: done.\n\nFinal answer: {v}",
}
SIGN: dict[str, Manner] = {
    "words": lambda v, w: rf"\boxed{{\text{{{SIGN_WORDS[v]}}}}}",
    "LaTeX sign": lambda v, w: rf"\boxed{{{SIGN_LATEX[v]}}}",
    "sentence in words": lambda v, w: f"The answer is {SIGN_WORDS[v]}.",
    "quoted sign": lambda v, w: rf'\boxed{{"{v}"}}',
    "statement in the box": lambda v, w: rf"\boxed{{12 {v} 40}}",
}


def _latex(value: str) -> str:
    fraction = Fraction(value)
    sign = "-" if fraction < 0 else ""
    if fraction.denominator == 1:
        return str(fraction)
    return rf"{sign}\frac{{{abs(fraction.numerator)}}}{{{fraction.denominator}}}"


def manners(question: Question, value: str) -> dict[str, Manner]:
    """Return the manners that suit a task and a value."""
    task = question.answer_kind
    if task == "comparison":
        return {**ANY, **SIGN}
    if task in LISTS:
        return {**ANY, **LIST}
    found = {**ANY, **NUMBER}
    if task in RATIONAL:
        return {**found, **FRACTION}
    return {**found, **LONG} if len(value.lstrip("-")) > 3 else found


def cases() -> Iterator[Case]:
    """Yield every response; the wrong ones are the right ones' manners with a wrong value."""
    for name in task_names():
        parameters = TaskParameters(samples=INSTANCES, seed=7, sizes=(8,))
        for question in make_questions(get_task(name), parameters, INSTANCES):
            value, near, other = values(question)
            for note, manner in manners(question, value).items():
                yield Case(question, manner(value, other), True, note)
            for note, manner in list(manners(question, near).items())[::2]:
                yield Case(question, manner(near, value), False, f"{note} (wrong value)")
            for note, manner in NEVER.items():
                yield Case(question, manner(value, near), False, note)
