"""What models, benchmarks, questions and cells are called in what people read.

Names come from users, question files and models; :func:`visible` makes every hidden character of
them seen. Escaping for HTML, LaTeX or Markdown is done by whoever writes these.
"""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # Names alone do without tables.
    import pandas as pd

    from stp.curves import Curves

# Characters that a browser hides or that turn the reading direction: shown by name instead.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f"
    "\u2028\u2029\u202a-\u202e\u2060\u2066-\u2069\ufeff\ud800-\udfff]"
)


def _show(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    if 0xD800 <= code <= 0xDFFF:
        return "\ufffd"
    return f"\u27e8U+{code:04X}\u27e9"


def visible(text: str, limit: int = 6000) -> str:
    """Return ``text`` with hidden characters made visible, cut after ``limit`` characters.

    Newlines and tabs stay. A cut says how much is missing.

    Examples
    --------
    >>> visible("a" + chr(0) + "b") == "a" + chr(0x2400) + "b"
    True
    """
    if len(text) > limit:
        missing = len(text) - limit
        text = f"{text[:limit]} \u2026 [{missing:,} more characters]"
    return _HIDDEN.sub(_show, text)


def _name(names: tuple[str, ...], index: int, kind: str, limit: int) -> str:
    if index >= len(names):
        return f"{kind} {index}"
    name = visible(names[index])
    return name if len(name) <= limit else name[: limit - 1] + "\u2026"


def model_name(curves: "Curves", model: int, limit: int = 120) -> str:
    """Return a model's name, or ``"model 3"`` where it has none."""
    return _name(curves.model_names, model, "model", limit)


def benchmark_name(curves: "Curves", benchmark: int, limit: int = 120) -> str:
    """Return a benchmark's name, or ``"benchmark 3"`` where it has none."""
    return _name(curves.benchmark_names, benchmark, "benchmark", limit)


def question_name(curves: "Curves", question: int, limit: int = 120) -> str:
    """Return a question's name, or ``"question 3"`` where it has none."""
    return _name(curves.question_names, question, "question", limit)


def cell_name(curves: "Curves", model: int, benchmark: int) -> str:
    """Return ``"model · benchmark"``."""
    return f"{model_name(curves, model)} \u00b7 {benchmark_name(curves, benchmark)}"


def with_names(frame: "pd.DataFrame", curves: "Curves") -> "pd.DataFrame":
    """Return a frame with names where it has the indices of models, benchmarks and questions.

    Parameters
    ----------
    frame
        With any of ``model``, ``benchmark`` and ``question``, as columns or as levels of its index.
    curves
        What the indices are of.

    Examples
    --------
    >>> import pandas as pd
    >>> curves = Curves(tokens=[0], correct=[1], trajectory_offsets=[0, 1], question=[0], probes=4,
    ...                 model_names=("small",))
    >>> with_names(pd.DataFrame({"model": [0], "or": [0.5]}), curves)["model"].tolist()
    ['small']
    """
    named = {"model": model_name, "benchmark": benchmark_name, "question": question_name}
    levels = [str(name) for name in frame.index.names if name in named]
    found = frame.reset_index(level=levels) if levels else frame.copy()
    for column, name in named.items():
        if column in found:
            found[column] = [name(curves, int(index)) for index in found[column]]
    return found.set_index(levels) if levels else found
