"""Training, validation and test questions: by question, stratified by benchmark, from a seed.

Within every benchmark, questions are put in the order of a digest of (seed, prompt) and cut where
the fractions say. So a question's place depends on nothing but the seed, its own text and how many
come before it; all models and trajectories of a question are together; and questions with the same
text, in one benchmark or in several, are never on two sides.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from data.errors import MisuseError
from stp.seeds import PAPER_SEED

SPLITS = ("train", "validation", "test")
_USUAL = "--train 1/2 --validation 1/5"


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitRule:
    """How questions are divided.

    Attributes
    ----------
    train, validation
        Fractions of every benchmark's questions; the rest are test questions.
    seed
        Another seed, another division.
    """

    train: Fraction = Fraction(1, 2)
    validation: Fraction = Fraction(1, 5)
    seed: int = PAPER_SEED

    def __post_init__(self) -> None:
        if min(self.train, self.validation) < 0 or self.train + self.validation >= 1:
            raise MisuseError(
                f"splits: train {float(self.train):g} and validation {float(self.validation):g} "
                "must not be negative and must leave test questions"
            )


def prompt_digest(prompt: str) -> str:
    """Return the SHA-256 of a question's text, white space normalised."""
    return hashlib.sha256(" ".join(prompt.split()).encode()).hexdigest()


def divide(prompts: Mapping[str, Sequence[str]], rule: SplitRule) -> dict[str, list[str]]:
    """Return the split of every question.

    Parameters
    ----------
    prompts
        Of every benchmark, the digests of its questions' texts, in any order.
    rule
        How to divide.

    Returns
    -------
    dict
        Of every benchmark, ``"train"``, ``"validation"`` or ``"test"`` for each of its questions.

    Examples
    --------
    >>> divide({"b": ["1", "2", "3", "4"]}, SplitRule(train=Fraction(1, 2), seed=1))
    {'b': ['validation', 'test', 'train', 'train']}
    """
    of_prompt: dict[str, str] = {}
    for digests in prompts.values():
        fresh = sorted(
            {digest for digest in digests if digest not in of_prompt},
            key=lambda digest: _rank(rule.seed, digest),
        )
        # Half up, in integers: rounding must not depend on a platform.
        train = _rounded(rule.train * len(fresh))
        last = max(train, _rounded((rule.train + rule.validation) * len(fresh)))
        for place, digest in enumerate(fresh):
            of_prompt[digest] = SPLITS[(place >= train) + (place >= last)]
    return {name: [of_prompt[digest] for digest in digests] for name, digests in prompts.items()}


def check_fractions(rule: SplitRule) -> None:
    """Refuse fractions that leave a split without questions however many there are.

    Raises
    ------
    data.errors.MisuseError
        Names the split and its option.
    """
    for split, fraction in (("train", rule.train), ("validation", rule.validation)):
        if not fraction:
            raise MisuseError(
                f"splits: --{split} 0 leaves no {split} questions, and methods need some in every "
                f"split; give fractions above 0, as {_USUAL}"
            )


def check_splits(splits: Mapping[str, Mapping[str, Sequence[str]]]) -> list[str]:
    """Refuse a division in which a model has no question at all in a split.

    Parameters
    ----------
    splits
        Of every model, of every benchmark of it, the split of each of its questions.

    Returns
    -------
    list of str
        What a reader must know: which benchmarks have no question in a split.

    Raises
    ------
    data.errors.MisuseError
        Names the model, the split, and how many questions there are.
    """
    notes: dict[str, None] = {}
    for model, benchmarks in splits.items():
        every = [split for found in benchmarks.values() for split in found]
        for split in SPLITS:
            if split not in every:
                raise MisuseError(_no_questions(model, benchmarks, split, every))
            for name, found in benchmarks.items():
                if split not in found:
                    notes[_left_out(name, split, len(found))] = None
    return list(notes)


def _no_questions(
    model: str, benchmarks: Mapping[str, Sequence[str]], split: str, every: Sequence[str]
) -> str:
    others = " and ".join(f"{every.count(name):,} {name}" for name in SPLITS if name != split)
    return (
        f"splits: no {split} questions of {model}: its {len(every):,} questions of "
        f"{', '.join(benchmarks)} are {others}; give other fractions, as {_USUAL}, or measure "
        "more questions"
    )


def _left_out(benchmark: str, split: str, count: int) -> str:
    what = {
        "train": "nothing is learnt from it",
        "validation": "it has no part in selecting settings",
        "test": "it has no part in any figure",
    }
    questions = "question" if count == 1 else "questions"
    return f"{benchmark} has no {split} questions ({count:,} {questions}): {what[split]}."


def lot(seed: int, benchmark: str, question_id: str) -> float:
    """Return a pseudo-random number in [0, 1): a hash of the seed and the question's id."""
    text = f"{seed}\0{benchmark}\0{question_id}".encode()
    digest = hashlib.blake2b(text, digest_size=8, person=b"stp.otbench.lot").digest()
    return int.from_bytes(digest, "big") / 2**64


def _rank(seed: int, digest: str) -> bytes:
    return hashlib.blake2b(f"{seed}\0{digest}".encode(), person=b"stp.split").digest()


def _rounded(value: Fraction) -> int:
    return (2 * value.numerator + value.denominator) // (2 * value.denominator)
