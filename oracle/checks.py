"""Single numbers at the edges of public functions: whole, and in their range."""

from operator import index

LARGEST_INT64 = 2**63 - 1
"""The largest number of tokens (int64). A larger budget is treated as this one."""

LARGEST_SEED = 2**64 - 1
"""Random streams are keyed by unsigned 64-bit integers."""


def whole_number(name: str, value: object, *, least: int, most: int | None = None) -> int:
    """Return a value as a Python integer.

    Raises
    ------
    ValueError
        If it is not an integer (True and False are not), or outside of ``least..most``.

    Examples
    --------
    >>> whole_number("steps", 100, least=1)
    100
    """
    try:
        # Python counts with True as with 1; as a number of anything it is a slip.
        number = None if isinstance(value, bool) else index(value)  # type: ignore[arg-type]
    except TypeError:
        number = None
    if number is None or number < least or (most is not None and number > most):
        wanted = f"in {least}..{most}"
        if most is None:
            wanted = "positive" if least == 1 else f"{least} or more"
        raise ValueError(f"{name} must be {wanted}, and an integer, not {value!r}")
    return number
