"""What fits into a model's context: decided before anything is run, and recorded.

Nothing is shortened silently: a question that gets less thinking than was asked for is marked, and
one whose prompt leaves no room for thinking is recorded as too long and not run.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from stp.engines.base import PromptTree

FitKind = Literal["whole", "shortened", "too_long"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """How a prompt fits: ``thinking_limit`` is what its trajectories really get."""

    kind: FitKind
    thinking_limit: int


def fit_prompt(
    prompt_tokens: int,
    *,
    closing_tokens: int,
    thinking_limit: int,
    answer_tokens: int,
    context_limit: int,
) -> Fit:
    """Return how a question's prompt fits the context.

    Room for an answer is kept free first, so that every prefix can be probed; thinking gets what
    is left, up to its limit.

    Parameters
    ----------
    prompt_tokens
        Length of the prompt.
    closing_tokens
        Most tokens that stand between the thinking and the answer.
    thinking_limit, answer_tokens
        What was asked for.
    context_limit
        Most tokens, prompt and output together.

    Examples
    --------
    >>> [fit_prompt(n, closing_tokens=0, thinking_limit=30, answer_tokens=20, context_limit=100)
    ...  .kind for n in (40, 70, 80)]
    ['whole', 'shortened', 'too_long']
    """
    room = context_limit - prompt_tokens - closing_tokens - answer_tokens
    if room < 1:
        return Fit(kind="too_long", thinking_limit=0)
    if room >= thinking_limit:
        return Fit(kind="whole", thinking_limit=thinking_limit)
    return Fit(kind="shortened", thinking_limit=room)


def answer_limit(prompt_tokens: int, *, answer_tokens: int, context_limit: int) -> int:
    """Return how many tokens an answer after a prompt may have; 0 if none fits.

    Examples
    --------
    >>> [answer_limit(n, answer_tokens=20, context_limit=100) for n in (40, 90, 120)]
    [20, 10, 0]
    """
    return max(0, min(answer_tokens, context_limit - prompt_tokens))


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedTree:
    """A tree whose answers all have one limit, and which branches of the whole tree it has."""

    tree: PromptTree
    branches: tuple[int, ...]


def fit_tree(tree: PromptTree, *, context_limit: int) -> list[FittedTree]:
    """Split a tree by how long its branches' answers may be.

    An engine has one limit per tree. Where the context cuts no answer short, which is nearly
    always, the result is the tree itself. Branches without room for a single token are left out.

    Answers are cut where a prefix ends on a boundary token whose text takes more tokens than were
    kept free for it (:mod:`stp.campaign.prepare`), and in folders begun by a version that let
    prompts think without keeping room for answers.
    """
    by_limit: dict[int, list[int]] = {}
    for index, branch in enumerate(tree.branches):
        prompt_tokens = branch.cut + len(branch.suffix_ids)
        limit = answer_limit(
            prompt_tokens, answer_tokens=tree.max_tokens, context_limit=context_limit
        )
        if limit > 0:
            by_limit.setdefault(limit, []).append(index)
    return [_part(tree, indices, limit) for limit, indices in by_limit.items()]


def _part(tree: PromptTree, indices: Sequence[int], limit: int) -> FittedTree:
    branches = tuple(tree.branches[index] for index in indices)
    part = tree if len(branches) == len(tree.branches) else replace(tree, branches=branches)
    return FittedTree(tree=replace(part, max_tokens=limit), branches=tuple(indices))
