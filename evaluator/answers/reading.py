r"""From the text of an answer to its form, down to single values (`single_values`).

One text can have two readings (``12,450`` is a number or two), so `read_forms` gives all of them,
the likeliest first.
"""

import itertools
import re

from evaluator.answers.forms import (
    Equation,
    Form,
    Interval,
    Listing,
    Matrix,
    Opaque,
    Ranges,
    Value,
    Words,
    as_ranges,
    is_infinite,
)
from evaluator.answers.latex import normalise
from evaluator.answers.numbers import sort_key
from evaluator.answers.single_values import PLAIN_WORDS, read_value, with_unit
from evaluator.answers.trees import Operation

MAX_ITEMS = 200
_MAX_NESTING = 4

_GROUPED = re.compile(
    r"(?:\\dollar |\\euro |\\pound )?[-+]?(?:\\dollar )?\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\d,])",
    re.ASCII,
)
_SEPARATOR = re.compile(
    r"\\text\{ {0,3}(?:and|or|,) {0,3}\}|\\(?:lor|land|vee|wedge|quad)(?![a-zA-Z])"
    r"|(?<![a-zA-Z\\])(?:and|or)(?![a-zA-Z])|, {0,2}\\text\{ {0,3}(?:and|or) {0,3}\}|[,;]"
)
_AND = re.compile(r"\band\b|\\land|\\wedge")
_OPENING = {"(": ")", "[": "]", r"\{": r"\}", r"\langle": r"\rangle"}
_BRACKET = re.compile(
    r"\\\{|\\\}|\\langle|\\rangle|[()\[\]{}]|\\begin ?\{[a-zA-Z]{1,12}\*?\}|\\end "
    r"?\{[a-zA-Z]{1,12}\*?\}"
)
_MATRIX = re.compile(
    r"\\begin ?\{([a-zA-Z]{0,2}matrix|array)\*?\}(?: ?\{[clr| ]{1,20}\})?(.*)\\end ?\{\1\*?\}",
    re.DOTALL,
)
_FACTOR_OF_MATRIX = re.compile(
    r"([-+]?(?:\d|\\frac|\\sqrt)[^&=,;]{0,60}?) ?\*? ?(?=\\begin ?\{[a-zA-Z]?(?:matrix|array))"
)
_RELATION = re.compile(r"\\approx|\\le |\\ge |\\ne |\\in(?![a-zA-Z])|[=<>]")
_LABEL_TEXT = re.compile(r"\\text\{([^{}]{0,80})\} ?[:=]? ?")
_CHANGING_LABEL = re.compile(
    r"\b(?:at (?:least|most)|(?:more|less|fewer|greater) than|not|no|between|minus|up to|over|"
    r"under)\b",
    re.IGNORECASE,
)
_LABEL_WORDS = re.compile(
    r"(?:the )?(?:final |correct )?(?:answer|result|solution)s? (?:is|are|=|:) ?(?=\S|$)|"
    r"(?:option|choice) ",
    re.IGNORECASE,
)


def read_forms(text: str) -> tuple[Form, ...]:
    """Read an answer; the likeliest reading first. Never raises, bounded in time."""
    text = normalise(text)
    form = _read(text, 0)
    if _GROUPED.fullmatch(text) or re.fullmatch(r"\((?:\d{1,3}(?:,\d{3})+)\)", text):
        return (read_value(text.replace(",", "")), form)
    if _GROUPED.match(text) and "," not in text[_GROUPED.match(text).end() :]:  # type: ignore[union-attr]
        return (_read(text.replace(",", ""), 0), form)
    if isinstance(form, Value):
        measured = with_unit(text)
        if measured is not None:
            return (form, measured)
    return (form,)


def _read(text: str, nesting: int) -> Form:
    text = text.strip()
    label = _LABEL_TEXT.match(text)
    if label is not None and _CHANGING_LABEL.search(label.group(1)) and label.end() < len(text):
        return Opaque()  # "at least 7": nothing that symbolic equality should see
    text = _unwrapped(_without_label(text))
    if nesting > _MAX_NESTING or not text:
        return Opaque(text)
    if text in (r"\emptyset", r"\{\}", r"\{ \}"):
        return Words("no solution")
    matrix = _MATRIX.fullmatch(text)
    if matrix is not None:
        return _read_matrix(matrix.group(2), nesting)
    factor = _FACTOR_OF_MATRIX.match(text)
    if factor is not None:
        return _read_scaled_matrix(factor.group(1), text[factor.end() :], nesting)
    if r"\cup" in text:
        return _read_union(text, nesting)
    reals = _read_reals(text, nesting)
    if reals is not None:
        return reals
    if not PLAIN_WORDS.fullmatch(text):
        items, joined_by_and = _split(text)
        if len(items) > MAX_ITEMS:
            return Opaque(text)
        if len(items) > 1:
            forms = tuple(_read(item, nesting + 1) for item in items)
            return _combined(forms, joined_by_and)
    relation = _read_relation(text, nesting)
    if relation is not None:
        return relation
    wrapped = _read_wrapped(text, nesting)
    if wrapped is not None:
        return wrapped
    if r"\pm" in text or r"\mp" in text:
        return _read_plus_minus(text, nesting)
    return read_value(text)


def _without_label(text: str) -> str:
    label = _LABEL_TEXT.match(text)
    if label is not None:
        rest = text[label.end() :]
        if rest and _LABEL_WORDS.match(label.group(1).strip() + " "):
            return rest.strip()
        if re.search(r"\d|\\(?!text)", rest) and not re.fullmatch(r" ?\^.{1,5}", rest):
            return rest.strip()
    words = _LABEL_WORDS.match(text)
    return text[words.end() :].strip() if words is not None else text


def _unwrapped(text: str) -> str:
    """Drop braces around the whole text."""
    for _ in range(4):
        if not (text.startswith("{") and text.endswith("}") and _closing(text) == len(text) - 1):
            break
        text = text[1:-1].strip()
    return text


def _closing(text: str) -> int:
    """Index of the bracket that closes the one with which the text starts; -1 if none."""
    depth = 0
    for token in _BRACKET.finditer(text):
        bracket = token.group()
        depth += 1 if _opens(bracket) else -1
        if depth == 0:
            return token.end() - 1
    return -1


def _opens(bracket: str) -> bool:
    return bracket in ("(", "[", "{", r"\{", r"\langle") or bracket.startswith(r"\begin")


def _split(text: str) -> tuple[list[str], bool]:
    """Split at top-level commas, semicolons, "and", "or"; also whether an "and" was there."""
    depths = _depths(text)
    items, start, joined_by_and = [], 0, False
    for separator in _SEPARATOR.finditer(text):
        if depths(separator.start()) == 0:
            items.append(text[start : separator.start()])
            start = separator.end()
            joined_by_and = joined_by_and or _AND.search(separator.group()) is not None
    items.append(text[start:])
    return [item.strip() for item in items if item.strip()], joined_by_and


class _Depths:
    """Nesting depth at increasing positions of a text."""

    def __init__(self, text: str) -> None:
        self._brackets = _BRACKET.finditer(text)
        self._pending = next(self._brackets, None)
        self._depth = 0

    def __call__(self, position: int) -> int:
        while self._pending is not None and self._pending.start() < position:
            bracket = self._pending.group()
            self._depth += 1 if _opens(bracket) else -1
            self._pending = next(self._brackets, None)
        return self._depth


def _depths(text: str) -> _Depths:
    return _Depths(text)


def _combined(forms: tuple[Form, ...], joined_by_and: bool) -> Form:
    """Join the items of a list: intervals to their union, lists of ± to one list."""
    if all(isinstance(form, Ranges) for form in forms):
        intervals = [i for form in forms if isinstance(form, Ranges) for i in form.intervals]
        if joined_by_and and len(intervals) == 2:
            return _intersection(intervals[0], intervals[1])
        return Ranges(tuple(intervals))
    items: list[Form] = []
    for form in forms:
        if isinstance(form, Listing) and form.brackets == "":
            items.extend(form.items)
        else:
            items.append(form)
    return Listing(tuple(items))


def _intersection(first: Interval, second: Interval) -> Form:
    """Two rays that point at each other bound one interval."""
    if first.low is None and second.high is None:
        first, second = second, first
    if first.high is None and second.low is None:
        return Ranges((Interval(first.low, second.high, first.low_closed, second.high_closed),))
    return Opaque()


def _read_wrapped(text: str, nesting: int) -> Form | None:
    r"""Read what is wholly inside one pair of brackets; None if the text is not, or is a value."""
    opening = next((mark for mark in _OPENING if text.startswith(mark)), None)
    if opening is None or _closing(text) != len(text) - 1:
        return None
    closing = next((mark for mark in (r"\}", r"\rangle", ")", "]") if text.endswith(mark)), None)
    if closing is None:
        return None
    inside = text[len(opening) : -len(closing)].strip()
    brackets = {"(": "(", "[": "[", r"\{": "{", r"\langle": "<"}[opening]
    brackets += {")": ")", "]": "]", r"\}": "}", r"\rangle": ">"}[closing]
    if brackets == "{}" and re.search(r"\||:", inside):
        return Opaque(text)
    items, _ = _split(inside)
    if len(items) > MAX_ITEMS:
        return Opaque(text)
    if len(items) <= 1:
        if brackets in ("{}", "<>", "[]"):
            if not items:
                return Words("no solution") if brackets == "{}" else Listing((), brackets)
            return Listing((_read(items[0], nesting + 1),), brackets)
        return _read(inside, nesting + 1) if items and brackets == "()" else None
    forms = tuple(_read(item, nesting + 1) for item in items)
    if brackets in ("{}", ""):
        forms = tuple(
            itertools.chain.from_iterable(
                form.items if isinstance(form, Listing) and form.brackets == "" else (form,)
                for form in forms
            )
        )
    if brackets == "[]" and all(isinstance(f, Listing) and f.brackets == "[]" for f in forms):
        return Matrix(tuple(form.items for form in forms if isinstance(form, Listing)))
    listing = Listing(forms, brackets)
    if brackets in ("[)", "(]") or any(is_infinite(item) for item in items):
        return as_ranges(listing) or Opaque(text)
    return listing


def _read_union(text: str, nesting: int) -> Form:
    intervals: list[Interval] = []
    for part in text.split(r"\cup"):
        part = part.strip()
        membership = re.match(r"[a-zA-Z] ?(?:\\in(?![a-zA-Z])|=)", part)
        form = _read(part[membership.end() :] if membership else part, nesting + 1)
        ranges = as_ranges(form)
        if ranges is None:
            return Opaque(text)
        intervals.extend(ranges.intervals)
    return Ranges(tuple(intervals))


def _read_reals(text: str, nesting: int) -> Form | None:
    r"""Read ``\R``, and ``\R \setminus \{a, b\}``."""
    text = re.sub(r"^[a-zA-Z] ?(?:\\in |=)", "", text).strip()
    if text in (r"\R", "R"):
        return Ranges((Interval(None, None, False, False),)) if text == r"\R" else None
    if re.fullmatch(r"(?:\\text\{)?all real numbers?\}?|(?:\\text\{)?all reals?\}?", text):
        return Ranges((Interval(None, None, False, False),))
    match = re.fullmatch(r"\\R ?\\setminus ?(\\\{.{1,100}\\\})", text)
    if match is None:
        return None
    holes = _read(match.group(1), nesting + 1)
    if not isinstance(holes, Listing) or not all(isinstance(i, Value) for i in holes.items):
        return Opaque(text)
    return _without_points([item for item in holes.items if isinstance(item, Value)])


def _without_points(points: list[Value]) -> Form:
    keys = {id(point): sort_key(point.tree) for point in points}
    if any(key is None for key in keys.values()):
        return Opaque()
    ordered: list[Value | None] = [
        None,
        *sorted(points, key=lambda point: keys[id(point)] or 0.0),
        None,
    ]
    return Ranges(
        tuple(Interval(low, high, False, False) for low, high in itertools.pairwise(ordered))
    )


def _read_matrix(body: str, nesting: int) -> Form:
    rows = [row for row in body.split(r"\cr") if row.strip()]
    if len(rows) > MAX_ITEMS:
        return Opaque(body)
    return Matrix(
        tuple(tuple(_read(entry, nesting + 1) for entry in row.split("&")) for row in rows)
    )


def _read_scaled_matrix(factor: str, matrix: str, nesting: int) -> Form:
    """Read a number before a matrix: each entry times the number."""
    scale, form = read_value(factor), _read(matrix, nesting + 1)
    if not (isinstance(scale, Value) and scale.tree is not None and isinstance(form, Matrix)):
        return Opaque(factor + matrix)
    rows: list[tuple[Form, ...]] = []
    for row in form.rows:
        entries = [entry for entry in row if isinstance(entry, Value) and entry.tree is not None]
        if len(entries) != len(row):
            return Opaque(factor + matrix)
        rows.append(
            tuple(Value("", Operation("*", (scale.tree, e.tree))) for e in entries if e.tree)
        )
    return Matrix(tuple(rows))


def _read_plus_minus(text: str, nesting: int) -> Form:
    if text.count(r"\pm") + text.count(r"\mp") > 3:
        return Opaque(text)
    upper = text.replace(r"\pm", "+", 1).replace(r"\mp", "-", 1)
    lower = text.replace(r"\pm", "-", 1).replace(r"\mp", "+", 1)
    items: list[Form] = []
    for variant in (upper, lower):
        form = _read(variant.strip(), nesting + 1)
        items.extend(form.items if isinstance(form, Listing) else (form,))
    return Listing(tuple(items))


def _read_relation(text: str, nesting: int) -> Form | None:
    depths = _depths(text)
    marks = [mark for mark in _RELATION.finditer(text) if depths(mark.start()) == 0]
    if not marks:
        return None
    if len(marks) > 12:
        return Opaque(text)
    bounds = [0, *itertools.chain.from_iterable((m.start(), m.end()) for m in marks), len(text)]
    sides = [text[start:end].strip() for start, end in zip(bounds[::2], bounds[1::2], strict=True)]
    signs = [mark.group().strip() for mark in marks]
    if r"\approx" in signs:
        cut = signs.index(r"\approx")
        exact = text[: marks[cut].start()].strip()
        # "x \approx 1.41" says its value last, "\sqrt{2} \approx 1.41" first.
        if not exact or re.fullmatch(r"[a-zA-Z](?:_\{?\w\}?)?|[a-zA-Z]\([a-zA-Z]\)", exact):
            return _read(sides[cut + 1], nesting + 1)
        return _read(exact, nesting + 1)
    if signs[0] == r"\in" and len(signs) == 1:
        return _read(sides[1], nesting + 1)
    if all(sign == "=" for sign in signs):
        if not sides[0] or not sides[-1]:
            return _read(sides[-1] or sides[0], nesting + 1)
        right = _read(sides[-1], nesting + 1)
        return Equation(read_value(sides[0]), right, f"{sides[0]} = {sides[-1]}")
    return _read_inequality(sides, signs) or Opaque(text)


def _read_inequality(sides: list[str], signs: list[str]) -> Form | None:
    r"""Read ``x > 3``, ``3 < x``, ``1 \le x < 4`` and ``x \ne 2`` as intervals."""
    values = [value for value in map(read_value, sides) if isinstance(value, Value)]
    if len(values) != len(sides):
        return None
    is_variable = [re.fullmatch(r"[a-zA-Z](?:_\{?\w\}?)?", side) is not None for side in sides]
    flipped = {"<": ">", ">": "<", r"\le": r"\ge", r"\ge": r"\le"}
    if len(sides) == 2 and sum(is_variable) == 1:
        if is_variable[1]:
            if signs[0] not in flipped and signs[0] != r"\ne":
                return None
            signs, values = [flipped.get(signs[0], signs[0])], values[::-1]
        if signs[0] == r"\ne":
            return _without_points([values[1]])
        if signs[0] in (">", r"\ge"):
            return Ranges((Interval(values[1], None, signs[0] == r"\ge", False),))
        if signs[0] in ("<", r"\le"):
            return Ranges((Interval(None, values[1], False, signs[0] == r"\le"),))
    if len(sides) == 2 and re.fullmatch(r"\| ?[a-zA-Z] ?\|", sides[0]):
        return _read_absolute_bound(signs[0], values[1])
    if len(sides) == 3 and is_variable[1] and not is_variable[0] and not is_variable[2]:
        if all(sign in (">", r"\ge") for sign in signs):
            values, signs = values[::-1], [flipped[sign] for sign in signs[::-1]]
        if all(sign in ("<", r"\le") for sign in signs):
            low, high = values[0], values[2]
            return as_ranges(
                Listing(
                    (low, high),
                    ("[" if signs[0] == r"\le" else "(") + ("]" if signs[1] == r"\le" else ")"),
                )
            )
    return None


def _read_absolute_bound(sign: str, bound: Value) -> Form | None:
    """Read ``|x| < 3`` as the interval around 0, ``|x| > 3`` as what is outside of it."""
    if bound.tree is None:
        return None
    closed = sign in (r"\le", r"\ge")
    below = Value(f"-({bound.text})", Operation("neg", (bound.tree,)))
    if sign in ("<", r"\le"):
        return Ranges((Interval(below, bound, closed, closed),))
    if sign in (">", r"\ge"):
        return Ranges((Interval(None, below, False, closed), Interval(bound, None, closed, False)))
    return None
