"""The random stream of resampling: a draw depends on what it is for, and on nothing else.

Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011) is a function
from a key and a counter to four 32-bit words. Here the key is the seed and the counter says which
draw it is, so that replicates can be made in any order, by any number of workers:

=======  ==========================================================================
counter  meaning
=======  ==========================================================================
word 0   block b; its four words are draws 4b, 4b + 1, 4b + 2, 4b + 3
word 1   the question's place in its benchmark's draw (trajectories), else 0
word 2   benchmark + 2^12 x model + 2^30 x purpose, as places in sorted numbers
word 3   replicate
=======  ==========================================================================

Purposes are :data:`QUESTIONS` (model 0: all models share the draw), :data:`TRAJECTORIES` and
:data:`THINNING` (subsets without replacement; word 1 is the question's place in its benchmark). A
word w becomes an index below n as floor(w n / 2^32); its bias is below n / 2^32.
"""

# mypy: disallow-untyped-decorators=False

import numba as nb
import numpy as np
import numpy.typing as npt

QUESTIONS = 0
TRAJECTORIES = 1
THINNING = 2

# The constants of Philox4x32: two multipliers, and the steps of the key ("Weyl" constants). All
# arithmetic is in 64 bits with masks, because numba widens 32-bit integers.
_M0 = np.uint64(0xD2511F53)
_M1 = np.uint64(0xCD9E8D57)
_W0 = np.uint64(0x9E3779B9)
_W1 = np.uint64(0xBB67AE85)
_HALF = np.uint64(32)
_MASK = np.uint64(0xFFFFFFFF)


@nb.njit(cache=True, nogil=True, inline="always")
def philox(
    c0: np.uint64, c1: np.uint64, c2: np.uint64, c3: np.uint64, seed: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    """Return the four 32-bit words of Philox4x32-10 at a counter of four 32-bit words.

    The key's words are the low and the high half of ``seed``.
    """
    k0, k1 = seed & _MASK, seed >> _HALF
    for _ in range(10):
        p0 = _M0 * c0
        p1 = _M1 * c2
        c0 = (p1 >> _HALF) ^ c1 ^ k0
        c2 = (p0 >> _HALF) ^ c3 ^ k1
        c1, c3 = p1 & _MASK, p0 & _MASK
        k0 = (k0 + _W0) & _MASK
        k1 = (k1 + _W1) & _MASK
    return c0, c1, c2, c3


@nb.njit(cache=True, nogil=True)
def draw_indices(
    out: npt.NDArray[np.int64],
    n: int,
    purpose: int,
    model: int,
    benchmark: int,
    place: int,
    replicate: int,
    seed: np.uint64,
) -> None:
    """Fill ``out`` with indices below ``n``, independent and uniform."""
    c1, c3 = np.uint64(place), np.uint64(replicate)
    c2 = np.uint64(benchmark + (model << 12) + (purpose << 30))
    below = np.uint64(n)
    for i in range(0, out.size, 4):
        words = philox(np.uint64(i >> 2), c1, c2, c3, seed)
        for j in range(min(4, out.size - i)):
            out[i + j] = np.int64((words[j] * below) >> _HALF)


@nb.njit(cache=True, nogil=True)
def word_below(
    n: int,
    index: int,
    purpose: int,
    model: int,
    benchmark: int,
    place: int,
    replicate: int,
    seed: np.uint64,
) -> int:
    """Return draw number ``index`` of :func:`draw_indices` alone, below its own ``n``."""
    c2 = np.uint64(benchmark + (model << 12) + (purpose << 30))
    words = philox(np.uint64(index >> 2), np.uint64(place), c2, np.uint64(replicate), seed)
    return int((words[index & 3] * np.uint64(n)) >> _HALF)
