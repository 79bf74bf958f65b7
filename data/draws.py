"""Random draws that are the same in every Python version and on every machine.

No generator of a library promises that its bounded integers never change between versions, and
questions made from a seed must never change; so each draw is a hash of a key and a counter.
"""

import hashlib
from collections.abc import Sequence
from typing import TypeVar

_Item = TypeVar("_Item")

_NARROW = 1 << 32
"""Ranges up to this width are served by 8 bytes; the bias is then below 1 in 4 billion."""


class StableDraws:
    """Draws that belong to a key.

    The draw number ``n`` (from 0) of the key ``a, b`` from a range of up to 2**32 values is the
    BLAKE2b digest, 8 bytes, of the text ``a/b#n``, read as a big-endian integer, modulo the width
    of the range. Wider ranges take SHAKE-256 with 8 bytes more than the width has.

    Parameters
    ----------
    *key
        What the draws belong to; another key gives other draws.

    Examples
    --------
    >>> StableDraws("example", 1).integer(0, 99)
    60
    """

    def __init__(self, *key: str | int) -> None:
        self._key = "/".join(str(part) for part in key).encode()
        self._count = 0

    def integer(self, low: int, high: int) -> int:
        """Return an integer between ``low`` and ``high``, both included."""
        block = self._key + b"#" + str(self._count).encode()
        self._count += 1
        width = high - low + 1
        if width <= _NARROW:
            digest = hashlib.blake2b(block, digest_size=8).digest()
        else:
            digest = hashlib.shake_256(block).digest(8 + (width.bit_length() + 7) // 8)
        return low + int.from_bytes(digest, "big") % width

    def shuffled(self, items: Sequence[_Item]) -> list[_Item]:
        """Return the items in a drawn order (Fisher and Yates, from the end)."""
        order = list(items)
        for place in range(len(order) - 1, 0, -1):
            other = self.integer(0, place)
            order[place], order[other] = order[other], order[place]
        return order
