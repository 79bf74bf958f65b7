"""How well two labellers agree: observed agreement and Cohen's kappa."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from data.errors import MisuseError


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelAgreement:
    """Two labellers on the same things.

    Attributes
    ----------
    labels
        All labels that either gave, sorted.
    counts
        How often the first gave one label and the second another (or the same).
    total
        Things that both labelled.
    observed
        Fraction with equal labels.
    kappa
        Agreement beyond chance: 1 is perfect, 0 what chance gives. None if chance alone gives
        full agreement (both always give one and the same label).
    """

    labels: tuple[str, ...]
    counts: Mapping[tuple[str, str], int]
    total: int
    observed: float
    kappa: float | None


def cohens_kappa(first: Sequence[str], second: Sequence[str]) -> LabelAgreement:
    """Return the agreement of two labellers.

    Raises
    ------
    data.errors.MisuseError
        If there are no labels, or not as many of both.

    Examples
    --------
    >>> round(cohens_kappa(["a", "a", "b", "b"], ["a", "a", "b", "a"]).kappa, 2)
    0.5
    """
    if len(first) != len(second) or not first:
        raise MisuseError(
            f"agreement needs as many labels of both labellers, not {len(first)} and {len(second)}"
        )
    total = len(first)
    counts = Counter(zip(first, second, strict=True))
    ours, theirs = Counter(first), Counter(second)
    agreed = sum(count for (one, other), count in counts.items() if one == other)
    # In integers, so that full agreement by chance is told from nearly full.
    chance = sum(ours[label] * theirs[label] for label in ours)
    kappa = None
    if chance != total * total:
        kappa = (agreed * total - chance) / (total * total - chance)
    return LabelAgreement(
        labels=tuple(sorted({*first, *second})),
        counts=dict(counts),
        total=total,
        observed=agreed / total,
        kappa=kappa,
    )
