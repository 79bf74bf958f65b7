"""Times of the day: ``20:34``, ``8:34 PM`` and ``20:34:00`` are one."""

import re

_CLOCK = re.compile(
    r"(\d{1,2}):(\d{2})(?::(\d{2}))? ?(?:\\text\{ ?)?(?:([AaPp])\.? ?[Mm]\.?)?(?: ?\})?"
)
_HALF_DAY = 12 * 3600


def same_time(gold: str, answer: str) -> bool | None:
    """Compare two times of the day; None if they may as well be ratios, or are not times.

    Examples
    --------
    >>> same_time("3:45 PM", "15:45")
    True
    >>> same_time("3:45 PM", "3:54 PM")
    False
    """
    # ``18{:}15`` is how LaTeX writes a colon without space around it.
    first, second = (_CLOCK.fullmatch(text.replace("{:}", ":")) for text in (gold, answer))
    if first is None or second is None:
        return None
    seconds = [_seconds(first), _seconds(second)]
    marked = [match.group(4) is not None for match in (first, second)]
    same = seconds[0] == seconds[1]
    if marked[0] != marked[1] and not same:
        # "3:45" may leave out that it is in the afternoon.
        unmarked = seconds[marked.index(False)]
        same = 3600 <= unmarked <= _HALF_DAY + 3599 and (seconds[0] - seconds[1]) % _HALF_DAY == 0
    if same or any(marked):
        return same
    return None


def _seconds(clock: re.Match[str]) -> int:
    hours = int(clock.group(1))
    if clock.group(4) is not None:
        hours = hours % 12 + (12 if clock.group(4) in "pP" else 0)
    return hours * 3600 + int(clock.group(2)) * 60 + int(clock.group(3) or 0)
