"""Texts of the command line that need nothing heavy: times, rates, untrusted text."""


def printable(text: str) -> str:
    """Return a text that moves no cursor, with hidden characters made visible."""
    if text.isascii() and text.isprintable():
        return text
    from stp.cli.seen import seen

    return seen(text)


def duration(seconds: float) -> str:
    """Return a duration in words.

    Examples
    --------
    >>> duration(12.3), duration(125), duration(7300)
    ('12 s', '2 min 05 s', '2 h 01 min')
    """
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600:,} h {whole % 3600 // 60:02d} min"


def per_second(number: float) -> str:
    """Return a rate's number.

    Examples
    --------
    >>> per_second(1234.5), per_second(0.26)
    ('1,234', '0.3')
    """
    return f"{number:,.{0 if number >= 10 else 1}f}"
