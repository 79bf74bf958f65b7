"""Signals: internal values of a model while it thinks, as plain arrays beside the curves.

One row per position, in the order of :class:`stp.curves.Curves`, and one per model and question for
what can be seen before any thinking. Only numpy is imported here. All log-probabilities are the
model's own (temperature 1, no nucleus, no penalty), natural logarithms; entropies are in nats.

Axes: ``_s`` trajectory, ``_k`` position (all trajectories' positions, concatenated), ``_m`` model
and question. W is the width of a hidden state.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from stp.curves import Int32Array
from stp.ragged import BoolArray, Float32Array, IntArray, gather

HiddenArray = npt.NDArray[np.float16]

_OPTIONAL = ("end_entropy", "answer_entropy", "trial_logprob", "trial_probability")


def _empty() -> Any:
    return np.empty(0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Signals:
    """Signals of many trajectories, and of the questions before them.

    At position k, "the prefix" is the prompt and the first L(k) thinking tokens as the model wrote
    them, not closed. "Closed" means that the prefix is ended as it is for the probes: thinking-end
    and the answer's opening follow.

    Parameters
    ----------
    trajectory_offsets
        Where each trajectory's positions start, and the end of the last; int64
        ``(trajectories + 1,)``, equal to the curves'.
    end_logprob
        Log-probability of the thinking-end right after the prefix (of all its tokens, where the
        model writes it in several); float32 ``(positions,)``.
    other_logprob, other_id
        Log-probability and id of the best other next token after the same prefix; float32 and
        int32 ``(positions,)``.
    entropy
        Entropy of the next token after the prefix; float32 ``(positions,)``.
    end_exact
        False where ``end_logprob`` is only known not to be greater than what stands there, since
        the engine shows no more than its best tokens; bool ``(positions,)``, all True when left
        out.
    end_entropy
        Entropy of the next token after the closed prefix's thinking-end; float32
        ``(positions,)``, NaN if it was not measured, which is everywhere when left out.
    answer_entropy
        Entropy of the answer's first token: after thinking-end and the answer's opening; likewise.
    trial_logprob, trial_probability, trial_tokens
        Mean log-probability, mean probability and number of the tokens of a greedy trial answer
        after the closed prefix; float32 ``(positions,)`` with NaN, and int32 with 0, where there
        is none. ``exp(trial_logprob)`` is the geometric mean of the probabilities,
        ``exp(-trial_logprob)`` the answer's perplexity.
    hidden
        By layer, the hidden state at the prefix's last token; float16 ``(positions, W)``. Layer 0
        is the embedding, layer i the output of the i-th block, the last one after the final norm.
    prompt_model, prompt_question
        Whose prompt each row of ``prompt_hidden`` is: the curves' numbers; int32 ``(rows,)``, each
        pair once.
    prompt_hidden
        By layer, the hidden state at the last prompt token; float16 ``(rows, W)``.

    Raises
    ------
    ValueError
        If an array has the wrong shape or kind, or a log-probability or entropy is impossible.

    Examples
    --------
    >>> signals = Signals(trajectory_offsets=[0, 2], end_logprob=[-4.0, -0.5],
    ...                   other_logprob=[-0.5, -1.5], other_id=[7, 7], entropy=[0.9, 0.8])
    >>> signals.margin.tolist()
    [3.5, -1.0]
    """

    trajectory_offsets: IntArray
    end_logprob: Float32Array
    other_logprob: Float32Array
    other_id: Int32Array
    entropy: Float32Array
    end_exact: BoolArray = field(default_factory=_empty)
    end_entropy: Float32Array = field(default_factory=_empty)
    answer_entropy: Float32Array = field(default_factory=_empty)
    trial_logprob: Float32Array = field(default_factory=_empty)
    trial_probability: Float32Array = field(default_factory=_empty)
    trial_tokens: Int32Array = field(default_factory=_empty)
    hidden: Mapping[int, HiddenArray] = field(default_factory=dict)
    prompt_model: Int32Array = field(default_factory=lambda: np.empty(0, np.int32))
    prompt_question: Int32Array = field(default_factory=lambda: np.empty(0, np.int32))
    prompt_hidden: Mapping[int, HiddenArray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        def put(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        put("trajectory_offsets", _typed("trajectory_offsets", self.trajectory_offsets, np.int64))
        offsets = self.trajectory_offsets
        if offsets.size < 1 or offsets[0] != 0 or np.any(np.diff(offsets) < 1):
            raise ValueError(
                "trajectory_offsets must start at 0 and rise: every trajectory has a position"
            )
        positions = self.positions
        for name in (*_OPTIONAL, "end_exact", "trial_tokens"):
            if np.asarray(getattr(self, name)).size == 0:
                put(name, _absent(name, positions))
        for name in ("end_logprob", "other_logprob", "entropy", *_OPTIONAL):
            put(name, _typed(name, getattr(self, name), np.float32))
        for name in ("other_id", "trial_tokens", "prompt_model", "prompt_question"):
            put(name, _typed(name, getattr(self, name), np.int32))
        put("end_exact", np.asarray(self.end_exact, np.bool_))
        put("hidden", _states("hidden", self.hidden, positions))
        put("prompt_hidden", _states("prompt_hidden", self.prompt_hidden, self.prompt_model.size))
        self._check(positions)

    def _check(self, positions: int) -> None:
        names = ("end_logprob", "other_logprob", "other_id", "entropy", *_OPTIONAL)
        for name in (*names, "end_exact", "trial_tokens"):
            if getattr(self, name).shape != (positions,):
                raise ValueError(
                    f"{name} has shape {getattr(self, name).shape} for {positions} positions"
                )
        for name in ("end_logprob", "other_logprob", "entropy"):
            if np.any(np.isnan(getattr(self, name))):
                raise ValueError(f"{name} holds values that are not numbers")
        # Rounding may carry a logarithm of 1, or an entropy of 0, a hair past its bound.
        for name in ("end_logprob", "other_logprob", "trial_logprob"):
            if np.any(getattr(self, name) > 1e-3):
                raise ValueError(f"{name} holds a log-probability above 0")
        for name in ("entropy", "end_entropy", "answer_entropy"):
            if np.any(getattr(self, name) < -1e-3):
                raise ValueError(f"{name} holds an entropy below 0")
        if self.prompt_question.size != self.prompt_model.size:
            raise ValueError(
                f"prompt_question has {self.prompt_question.size} entries and prompt_model "
                f"{self.prompt_model.size}"
            )
        pairs = np.stack([self.prompt_model, self.prompt_question], axis=1)
        if np.unique(pairs, axis=0).shape[0] != pairs.shape[0]:
            raise ValueError("a model and question has more than one row of prompt_hidden")

    @property
    def trajectories(self) -> int:
        """Number of trajectories."""
        return int(self.trajectory_offsets.size) - 1

    @property
    def positions(self) -> int:
        """Number of positions over all trajectories."""
        return int(self.trajectory_offsets[-1])

    @property
    def margin(self) -> Float32Array:
        """Best other token's log-probability less the thinking-end's; float32 ``(positions,)``.

        Where ``end_exact`` is False it is a lower bound.
        """
        margin: Float32Array = self.other_logprob - self.end_logprob
        return margin

    def select(self, trajectory_s: npt.ArrayLike) -> Self:
        """Return the trajectories at the given indices (or where a mask holds), in that order.

        As :meth:`stp.curves.Curves.select`. Rows of prompts stay as they are: they are found by
        model and question.
        """
        rows = np.asarray(trajectory_s)
        if rows.dtype == np.bool_:
            rows = np.flatnonzero(rows)
        rows = rows.astype(np.int64)
        elements, offsets = gather(self.trajectory_offsets, rows)
        names = ("end_logprob", "other_logprob", "other_id", "entropy", "end_exact", "trial_tokens")
        columns: dict[str, Any] = {
            name: getattr(self, name)[elements] for name in names + _OPTIONAL
        }
        hidden = {layer: states[elements] for layer, states in self.hidden.items()}
        return replace(self, trajectory_offsets=offsets, hidden=hidden, **columns)


def _absent(name: str, positions: int) -> npt.NDArray[Any]:
    if name == "end_exact":
        return np.ones(positions, np.bool_)
    if name == "trial_tokens":
        return np.zeros(positions, np.int32)
    return np.full(positions, np.nan, np.float32)


def _typed(name: str, values: npt.ArrayLike, dtype: type[np.generic]) -> npt.NDArray[Any]:
    """Return values as a one-dimensional array of a type, refusing another kind of number."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"{name} must have one dimension, not {array.ndim}")
    integers = np.issubdtype(dtype, np.integer)
    kinds = np.integer if integers else np.number
    if array.size and not np.issubdtype(array.dtype, kinds):
        raise ValueError(f"{name} must hold {'integers' if integers else 'numbers'}")
    return np.ascontiguousarray(array, dtype=dtype)


def _states(name: str, states: Mapping[int, npt.ArrayLike], rows: int) -> dict[int, HiddenArray]:
    """Return hidden states by rising layer, checked."""
    checked: dict[int, HiddenArray] = {}
    for layer in sorted(states):
        array = np.asarray(states[layer])
        if array.ndim != 2 or array.shape[0] != rows:
            raise ValueError(f"{name}[{layer}] has shape {array.shape}, and needs {rows} rows")
        if not np.issubdtype(array.dtype, np.floating):
            raise ValueError(f"{name}[{layer}] must hold floating-point numbers")
        checked[int(layer)] = np.ascontiguousarray(array, dtype=np.float16)
    return checked
