"""Prompts for answers without thinking: the generation modes ``direct`` and ``thinking_off``.

``direct`` is the paper's separate condition (002, B.3): the prompt asks for an answer without
reasoning, and thinking is closed before it begins. ``thinking_off`` asks as a thinking campaign
does, with the model's thinking turned off: by its chat template, or by an empty thinking. Both are
other conditions than k = 0 of a thinking campaign, which keeps a prompt that asks for reasoning.
"""

from data import Benchmark, Question
from data.benchmark import INSTRUCTIONS
from data.prompts import Prompts
from stp.campaign.fit import Fit
from stp.campaign.sections import Mode
from stp.formats import ThinkingFormat


def unthinking_prompt_ids(
    mode: Mode,
    format: ThinkingFormat,
    benchmark: Benchmark,
    question: Question,
    prompts: Prompts | None = None,
) -> tuple[int, ...]:
    """Return a question's prompt, up to where the answer begins.

    In ``direct`` mode our own instruction that asks for reasoning is replaced by one that asks for
    none. After a benchmark's own instruction, whose content is unknown, the request is added.
    """
    if mode == "thinking_off":
        return format.answer_prompt_ids(question.prompt, benchmark.instruction)
    kind, prompts = question.answer_kind, prompts or Prompts()
    if kind in INSTRUCTIONS and benchmark.instruction == prompts.text(kind):
        instruction = prompts.text(f"direct-{kind}")
    else:
        request = prompts.text("direct")
        instruction = " ".join(part for part in (benchmark.instruction, request) if part)
    return format.answer_prompt_ids(question.prompt, instruction)


def fit_answer(prompt_tokens: int, *, answer_tokens: int, context_limit: int) -> Fit:
    """Return how a prompt that is answered at once fits the context.

    Examples
    --------
    >>> [fit_answer(n, answer_tokens=20, context_limit=100).kind for n in (40, 90, 120)]
    ['whole', 'shortened', 'too_long']
    """
    room = context_limit - prompt_tokens
    if room < 1:
        return Fit(kind="too_long", thinking_limit=0)
    return Fit(kind="whole" if room >= answer_tokens else "shortened", thinking_limit=0)
