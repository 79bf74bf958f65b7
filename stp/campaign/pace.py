"""How fast an engine is, measured before a campaign: steps at a few batch sizes, and prefill.

What a step takes with few rows says what the last samples of a campaign cost. The paces are those
of short samples; a warm-up with the campaign's own prompts says how far they hold
(:func:`calibrated`).
"""

import statistics
import time
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from stp.engines.base import AnyTree, Branch, Engine, PromptTree
from stp.engines.clock import ClockEngine, Pace
from stp.ragged import IntArray

_ROWS = (1, 4, 16, 64, 256)
_TOKENS = 24
_TIMES = 7
"""Each figure is the median of this many: one is noisy, and a step of few rows decides the tail."""
_PREFILL_TOKENS = 256
_COPIES = 16
"""Of each length, so that those that were cut become several."""


Clock: TypeAlias = Callable[[], float]
"""Seconds from some beginning: of a clock on the wall, or of a processor's work."""


def measured_pace(
    engine: Engine, prompt_ids: Sequence[int], *, clock: Clock = time.monotonic
) -> Pace:
    """Return how fast an engine samples and reads.

    Parameters
    ----------
    engine
        An idle engine. A few thousand tokens are asked of it.
    prompt_ids
        A prompt that fits its context.
    clock
        What seconds are taken from.

    Raises
    ------
    data.errors.EngineError
        If it fails.
    """

    def seconds(prompts: Sequence[tuple[int, ...]], *, samples: int, tokens: int) -> float:
        taken = []
        for prompt in prompts:
            branch = Branch(cut=len(prompt), suffix_ids=(), seeds=tuple(range(samples)))
            tree = PromptTree(trunk_ids=prompt, branches=(branch,), max_tokens=tokens)
            begin = clock()
            engine.generate([tree])
            taken.append(clock() - begin)
        return statistics.median(taken)

    prompt = tuple(prompt_ids)
    sizes = [rows for rows in _ROWS if rows <= engine.rows]
    seconds([prompt], samples=1, tokens=2)  # What is compiled at the first call.
    steps = [seconds([prompt] * _TIMES, samples=rows, tokens=_TOKENS) / _TOKENS for rows in sizes]
    length = min(_PREFILL_TOKENS, engine.context_limit - 2)
    # Another trunk each time, or a prefix cache would have it: the prompt backwards, begun at
    # another place.
    backwards = prompt[::-1] * ((length + _TIMES) // len(prompt) + 1)
    trunks = [backwards[start : start + length] for start in range(_TIMES)]
    prefill = max(0.0, seconds(trunks, samples=1, tokens=1) - steps[0]) / length
    # A larger batch never takes less: what was measured shorter was noise.
    rising = tuple(float(value) for value in np.maximum.accumulate(steps))
    return Pace(tuple(sizes), rising, prefill)


def calibrated(
    pace: Pace,
    engine: Engine,
    phases: Sequence[tuple[Sequence[AnyTree], Sequence[int]]],
    seconds: float,
) -> float:
    """Return by which factor real work was slower than a pace says.

    Parameters
    ----------
    pace
        As :func:`measured_pace` gives it.
    engine
        Whose rows count.
    phases
        What was asked, phase after phase: trees whose seeds are places in the lengths beside them.
    seconds
        What it took.
    """
    spent = 0.0
    for trees, lengths in phases:
        clock = ClockEngine(rows=engine.rows, length_of=lengths.__getitem__, pace=pace)
        clock.run(trees)
        spent += clock.seconds
    return seconds / spent if spent > 0 else 1.0


def whole_lengths(lengths: IntArray, cut: npt.NDArray[np.bool_], limit: float) -> IntArray:
    """Return lengths as they would be up to a limit, where some were cut before it.

    Those that were cut continue by exponential lengths, whose mean is the maximum-likelihood one:
    all tokens over the samples that ended.

    Parameters
    ----------
    lengths
        Tokens, int ``(n,)``.
    cut
        Which were cut, bool ``(n,)``.
    limit
        The limit that counts.

    Returns
    -------
    array
        Several of each; int.
    """
    if not len(lengths):
        return lengths
    ended = int((~cut).sum())
    if not ended:
        return np.full(len(lengths), int(limit), np.int64)
    copies = np.repeat(lengths, _COPIES)
    further = np.random.default_rng(0).exponential(lengths.sum() / ended, len(copies))
    whole = np.where(np.repeat(cut, _COPIES), copies + further, copies)
    return np.minimum(whole, limit).astype(np.int64)
