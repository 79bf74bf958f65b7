"""The tables of a release, column by column: what is written, and what the dataset card says."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

_TEXT = pa.string()

COLUMNS: Mapping[str, tuple[tuple[str, pa.DataType, str], ...]] = {
    "questions": (
        ("benchmark", _TEXT, "the benchmark"),
        ("question_id", _TEXT, "the question's id, unique within its benchmark"),
        ("group", _TEXT, "the reporting group: benchmarks that are reported as one"),
        ("split", _TEXT, "train, validation or test"),
        ("answer_kind", _TEXT, "how answers are judged"),
        ("prompt_sha256", _TEXT, "SHA-256 of the question's text, white space normalised"),
        ("lot", pa.float64(), "a number in [0, 1) for methods that draw lots"),
    ),
    "trajectories": (
        ("model", _TEXT, "the model"),
        ("benchmark", _TEXT, "the benchmark"),
        ("question_id", _TEXT, "the question"),
        ("split", _TEXT, "the question's split"),
        ("trajectory", pa.int32(), "which sampled reasoning of the question, from 0"),
        ("steps", pa.int32(), "n, its steps; it has n + 1 positions"),
        ("full_tokens", pa.int64(), "L(n), its thinking tokens"),
        ("zero_correct", pa.int32(), "C(0), right probes without thinking"),
        ("full_correct", pa.int32(), "C(n), right probes after all thinking"),
        ("probes", pa.int32(), "probes a position"),
        ("original_correct", pa.int8(), "whether its own answer was right: 1, 0, or -1 unknown"),
    ),
    "positions": (
        ("model", _TEXT, "the model"),
        ("benchmark", _TEXT, "the benchmark"),
        ("question_id", _TEXT, "the question"),
        ("trajectory", pa.int32(), "the trajectory"),
        ("position", pa.int32(), "k, how many steps are kept"),
        ("tokens", pa.int64(), "L(k), thinking tokens kept"),
        ("correct", pa.int32(), "C(k), right probes"),
        ("answers", pa.list_(pa.int32()), "numbers of the probes' answers, -1 for none"),
        ("answer_hedged", pa.bool_(), "whether the first probe carries a word of doubt"),
        ("answer_tokens", pa.int32(), "tokens of the first probe's answer"),
    ),
    "answers": (
        ("model", _TEXT, "the model"),
        ("benchmark", _TEXT, "the benchmark"),
        ("question_id", _TEXT, "the question"),
        ("number", pa.int32(), "what `positions.answers` holds"),
        ("answer", _TEXT, "the first answer of this number, as the model wrote it"),
    ),
    "prompts": (
        ("model", _TEXT, "the model"),
        ("benchmark", _TEXT, "the benchmark"),
        ("question_id", _TEXT, "the question"),
        ("prompt_tokens", pa.int32(), "tokens of the prompt, chat format included"),
    ),
    "hidden": (
        ("model", _TEXT, "the model"),
        ("benchmark", _TEXT, "the benchmark"),
        ("question_id", _TEXT, "the question"),
        ("trajectory", pa.int32(), "the trajectory"),
        ("position", pa.int32(), "the position"),
    ),
}
"""Tables and their fixed columns: name, type, meaning. Signals and layers come on top."""

SIGNAL_COLUMNS: tuple[tuple[str, pa.DataType, str], ...] = (
    ("end_logprob", pa.float32(), "log-probability of the thinking-end after the prefix"),
    ("other_logprob", pa.float32(), "log-probability of the best other token there"),
    ("other_id", pa.int32(), "that token's id"),
    ("end_exact", pa.bool_(), "false: end_logprob is an upper bound"),
    ("entropy", pa.float32(), "entropy of the next token after the prefix, nats"),
    ("end_entropy", pa.float32(), "entropy of the next token after the thinking-end, nats"),
    ("answer_entropy", pa.float32(), "entropy of the answer's first token, nats"),
    ("trial_logprob", pa.float32(), "mean log-probability of a greedy trial answer's tokens"),
    ("trial_probability", pa.float32(), "mean probability of these tokens"),
    ("trial_tokens", pa.int32(), "how many they are"),
)
"""Columns of ``positions`` that are there when a campaign has signals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """What the values of a column can be.

    Attributes
    ----------
    least, most
        The bounds, inclusive; None: there is none.
    optional
        Whether there may be no number (NaN), which says that it was not measured.
    """

    least: float | None = None
    most: float | None = None
    optional: bool = False


# Rounding may carry a logarithm of 1, or an entropy of 0, a hair past its bound. No trajectory has
# more tokens, and no vocabulary a greater entropy.
_HAIR, _TOKENS, _NATS = 1e-3, 2**31 - 1, 64.0
_COUNT, _LENGTH = Range(least=0), Range(least=0, most=_TOKENS)

RANGES: Mapping[str, Range] = {
    "trajectory": _COUNT,
    "position": _COUNT,
    "steps": _COUNT,
    "tokens": _LENGTH,
    "full_tokens": _LENGTH,
    "correct": _COUNT,
    "original_correct": Range(least=-1, most=1),
    "number": _COUNT,
    "answers": Range(least=-1),
    "answer_tokens": _LENGTH,
    "prompt_tokens": _LENGTH,
    "end_logprob": Range(most=_HAIR),
    "other_logprob": Range(most=_HAIR),
    "entropy": Range(least=-_HAIR, most=_NATS),
    "end_entropy": Range(least=-_HAIR, most=_NATS, optional=True),
    "answer_entropy": Range(least=-_HAIR, most=_NATS, optional=True),
    "trial_logprob": Range(most=_HAIR, optional=True),
    "trial_probability": Range(least=0, most=1 + _HAIR, optional=True),
    "trial_tokens": _LENGTH,
}
"""Ranges of values, by column; the others can hold anything of their type."""


def schema_of(table: str, *, signals: bool = False) -> pa.Schema:
    """Return the schema of a table, hidden states left out."""
    columns = COLUMNS[table] + (SIGNAL_COLUMNS if signals else ())
    return pa.schema([(name, kind) for name, kind, _ in columns])


def columns_of(table: str, names: Iterable[str] = (), layers: Iterable[int] = ()) -> pa.Schema:
    """Return the schema of some columns of a table, and of some layers' hidden states."""
    schema = schema_of(table, signals=table == "positions")
    states = [pa.field(hidden_column(layer), pa.list_(pa.float16())) for layer in layers]
    return pa.schema([*(schema.field(name) for name in names), *states])


def hidden_column(layer: int) -> str:
    """Return the name of a layer's column."""
    return f"layer_{layer}"
