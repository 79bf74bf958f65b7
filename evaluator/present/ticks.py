"""Round numbers for axes."""

import math

_STEPS = (1, 2, 2.5, 5, 10)


def round_step(span: float) -> float:
    """Return a round distance between ticks, of which at most five fit; never below 0.01.

    Examples
    --------
    >>> round_step(1), round_step(0.3), round_step(730)
    (0.2, 0.1, 200)
    """
    least = max(span / 5, 0.01)
    power = 10.0 ** math.floor(math.log10(least))
    step = next(each * power for each in _STEPS if least <= each * power * (1 + 1e-9))
    return round(step) if step >= 5 else round(step, 3)


def log_ticks(least: float, most: float) -> list[float]:
    """Return round numbers in a range, for an axis of ratios; its start if there are none.

    Examples
    --------
    >>> log_ticks(0.5, 40)
    [0.5, 1.0, 2.0, 5.0, 10.0, 20.0]
    >>> log_ticks(3, 4)
    [3]
    """
    steps = (1, 2, 5) if most / least < 1000 else (1,)
    first, last = math.floor(math.log10(least)), math.ceil(math.log10(most))
    found = [float(step * 10.0**power) for power in range(first, last + 1) for step in steps]
    return [tick for tick in found if least / 1.001 <= tick <= most * 1.001] or [least]
