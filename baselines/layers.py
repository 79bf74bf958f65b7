"""Which stored layer a method reads."""

from collections.abc import Sequence

import numpy as np

from data.errors import MisuseError
from stp.ragged import Array, FloatArray


def place_of_layer(layer: int | None, layers: Sequence[int], default: int, *, method: str) -> int:
    """Return the place of a layer among those stored.

    Parameters
    ----------
    layer
        The layer's number, or None.
    layers
        Numbers of the stored layers.
    default
        The place taken for None.

    Raises
    ------
    data.errors.MisuseError
        If the layer is not stored.
    """
    if layer is None:
        return range(len(layers))[default]
    if layer not in layers:
        raise MisuseError(
            f"{method}: layer {layer} is not in the release; it holds {', '.join(map(str, layers))}"
        )
    return list(layers).index(layer)


def states(values: Array, place: int) -> FloatArray:
    """Return the states of one layer; float64 ``(rows, width)`` of ``(rows, layers, width)``."""
    return np.asarray(values[:, place], np.float64)
