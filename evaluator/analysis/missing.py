"""What campaigns asked for and their curves lack, in sentences."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from evaluator.present.names import visible
from stp.campaign.store import Store
from stp.curves import Curves

CELLS_NAMED = 8


def missing_sentences(urls: Sequence[str | Path], curves: Curves) -> tuple[str, ...]:
    """Say which trajectories and questions of campaigns have no curve.

    Parameters
    ----------
    urls
        The campaigns' folders.
    curves
        What :func:`stp.campaign.load_curves` returned for them, benchmarks not pooled.

    Returns
    -------
    tuple of str
        Sentences; empty if every trajectory that was asked for is there.
    """
    there = Counter(
        zip(
            [curves.model_names[m] for m in curves.model.tolist()],
            [curves.benchmark_names[b] for b in curves.benchmark.tolist()],
            strict=True,
        )
    )
    planned, gaps, too_long = 0, [], []
    for url in urls:
        store = Store(url)
        runs = store.read_config().generation.trajectories
        for cell in store.read_manifest().cells:
            expected = runs * (cell.questions - cell.too_long)
            planned += expected
            graded = there[cell.model, cell.benchmark]
            name = visible(f"{cell.model} on {cell.benchmark}")
            if graded < expected:
                gaps.append(f"{name} has {graded:,} of {expected:,}")
            if cell.too_long:
                too_long.append(f"{cell.too_long:,} of {cell.questions:,} of {name}")
    sentences = []
    if gaps:
        sentences.append(
            f"Incomplete: {curves.trajectories:,} of {planned:,} trajectories are graded "
            f"({_listed(gaps)})."
        )
    if too_long:
        sentences.append(
            f"Questions that are too long for the context have no curve: {_listed(too_long)}."
        )
    return tuple(sentences)


def _listed(parts: Sequence[str]) -> str:
    more = len(parts) - CELLS_NAMED
    return "; ".join([*parts[:CELLS_NAMED], *([f"and {more} more"] if more > 0 else [])])
