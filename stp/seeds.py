"""One seed for every sample, from what the sample is.

A seed depends on the sample's place in the campaign and on nothing else, so a sample can be drawn
again alone, in another batch, or on another machine (paper 002, A.1).
"""

import hashlib
import operator
from typing import SupportsIndex

# The default seed has one home, in the lowest package.
from data.seeds import PAPER_SEED as PAPER_SEED

_PERSON = b"stp.sample.seed1"


def sample_seed(
    campaign_seed: SupportsIndex,
    *,
    model: SupportsIndex | str,
    benchmark: SupportsIndex | str,
    question: SupportsIndex | str,
    trajectory: SupportsIndex,
    phase: str,
    position: SupportsIndex | None = None,
    sample: SupportsIndex = 0,
) -> int:
    """Return the seed of one sample: a 63-bit BLAKE2b digest of its fields.

    Parameters
    ----------
    campaign_seed
        The seed that the user chose.
    model, benchmark, question
        Names or indices. The number 7 and the text "7" are different fields.
    trajectory
        Which trajectory of the question.
    phase
        What is sampled, such as ``"think"``, ``"answer"`` or ``"probe"``.
    position
        The probing position k; None outside probing.
    sample
        Which probe at the position.

    Returns
    -------
    int
        In ``[0, 2**63)``.

    Examples
    --------
    >>> sample_seed(0, model="demo", benchmark="demo", question="demo-sum-17", trajectory=0,
    ...             phase="probe", position=3, sample=1)
    2615506380725424310
    """
    digest = hashlib.blake2b(digest_size=8, person=_PERSON)
    for value in (campaign_seed, model, benchmark, question, trajectory, phase, position, sample):
        digest.update(_encoded(value))
    return int.from_bytes(digest.digest(), "big") >> 1


def _encoded(value: SupportsIndex | str | None) -> bytes:
    """Return a field's kind, length and content, so that no two lists of fields read alike."""
    if value is None:
        kind, content = b"n", b""
    elif isinstance(value, str):
        kind, content = b"s", value.encode()
    else:
        kind, content = b"i", str(operator.index(value)).encode()
    return kind + len(content).to_bytes(8, "big") + content
