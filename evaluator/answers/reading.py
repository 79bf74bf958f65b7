r"""From the text of an answer to its form, down to single values (`single_values`).

One text can have two readings (``5 m`` is a length or a product), so `read_forms` gives all of
them, the likeliest first.

`_read` tries the forms from the outside in: a label is taken off, then what holds other forms is
taken apart (matrices, unions, lists, relations, brackets), and each part is read again, one level
deeper; what is left is one value. The order matters where a text fits two forms: a matrix has
commas of its own, so it comes before lists; ``x = 1, y = 2`` is a list of relations, so lists come
before relations; and ``x = (1, 2)`` is a relation with brackets, so relations come before brackets.

Nothing is lost on the way: what cannot be taken apart becomes `Opaque`, which is compared as text
or by symbolic equality, and never a part of the text that could be read. Depth and the number of
items are bounded, since a model's answer can hold anything.
"""

import functools
import re

from evaluator.answers.brackets import inside, split, unwrapped
from evaluator.answers.forms import (
    Form,
    Listing,
    Opaque,
    Ranges,
    Read,
    Value,
    Words,
    as_ranges,
    is_infinite,
)
from evaluator.answers.intervals import intersection, read_builder, read_reals, read_union
from evaluator.answers.latex import normalise
from evaluator.answers.matrices import as_matrix, read_cases, read_matrix
from evaluator.answers.relations import read_relation
from evaluator.answers.single_values import PLAIN_WORDS, compound_quantity, read_value, with_unit
from evaluator.answers.trees import Operation

MAX_ITEMS = 200
_MAX_NESTING = 4

# A number in groups of three, which is not a list: "12,450", "-1,000,000.5".
GROUPED = re.compile(
    r"(?:\\dollar |\\euro |\\pound )?[-+]?(?:\\dollar )?\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\d,])",
    re.ASCII,
)
_LABEL_TEXT = re.compile(r"\\text\{([^{}]{0,80})\} ?[:=]? ?")
# Words in a label that change the value after it: without them 7 would be as good as "at least 7".
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
_LONG_RATIO = re.compile(r"[^:]{1,30}(?::[^:]{1,30}){2,5}")
_POINT = re.compile(r"[A-Z]'?(?:_\{?\w\}?)? ?[:=]? ?(?=\()")


def read_forms(text: str, *, as_reference: bool = False) -> tuple[Form, ...]:
    """Read an answer; the likeliest reading first. Never raises, bounded in time.

    ``12,450`` is a number; only in a reference it may also be a list of two.
    """
    return read_normalised(normalise(text), as_reference=as_reference)


@functools.lru_cache(maxsize=64)  # one answer is compared with each option's value
def read_normalised(text: str, *, as_reference: bool = False) -> tuple[Form, ...]:
    """Read what `normalise` has spelled, as `read_forms` does."""
    grouped = GROUPED.match(text)
    if grouped is not None and "," not in text[grouped.end() :]:
        forms = _readings(grouped.group().replace(",", "") + text[grouped.end() :])
        return (*forms, _read(text, 0)) if as_reference else forms
    return _readings(text)


def _readings(text: str) -> tuple[Form, ...]:
    forms = [_read(text, 0)]
    if isinstance(forms[0], Value):
        measured = with_unit(text)
        if measured is not None:
            forms.append(measured)
    if any(character.isdigit() for character in text):
        quantity = compound_quantity(text)
        if quantity is not None:
            forms.append(quantity)
    return tuple(forms)


def _read(text: str, nesting: int) -> Form:
    text = text.strip()
    label = _LABEL_TEXT.match(text)
    if label is not None and _CHANGING_LABEL.search(label.group(1)) and label.end() < len(text):
        return Opaque()  # "at least 7": nothing that symbolic equality should see
    text = unwrapped(_without_label(text))
    if nesting > _MAX_NESTING or not text:
        return Opaque(text)
    if text in (r"\emptyset", r"\{\}", r"\{ \}"):
        return Words("no solution")

    def read(part: str) -> Form:
        return _read(part, nesting + 1)

    if r"\begin" in text or "^" in text:
        matrix = read_matrix(text, read) or read_cases(text, read)
        if matrix is not None:
            return matrix
    if r"\cup" in text:
        return read_union(text, read)
    reals = read_reals(text, read)
    if reals is not None:
        return reals
    if not PLAIN_WORDS.fullmatch(text):
        items, joined_by_and = split(text)
        if len(items) > MAX_ITEMS:
            return Opaque(text)
        if len(items) > 1:
            return _combined([read(item) for item in items], joined_by_and)
    relation = read_relation(text, read)
    if relation is not None:
        return relation
    point = _POINT.match(text)
    if point is not None and "," in text:
        wrapped = _read_wrapped(text[point.end() :], read)
        if isinstance(wrapped, Listing):
            return wrapped
    wrapped = _read_wrapped(text, read)
    if wrapped is not None:
        return wrapped
    if _LONG_RATIO.fullmatch(text):
        return _read_long_ratio(text, read)
    if r"\pm" in text or r"\mp" in text:
        return _read_plus_minus(text, read)
    return read_value(text)


def _without_label(text: str) -> str:
    label = _LABEL_TEXT.match(text)
    if label is not None:
        rest = text[label.end() :]
        if rest and _LABEL_WORDS.match(label.group(1).strip() + " "):
            return rest.strip()
        # Words before something with a value are its label; before an exponent they are its base.
        if re.search(r"\d|\\(?!text)", rest) and not re.fullmatch(r" ?\^.{1,5}", rest):
            return rest.strip()
    words = _LABEL_WORDS.match(text)
    return text[words.end() :].strip() if words is not None else text


def _combined(forms: list[Form], joined_by_and: bool) -> Form:
    """Join the items of a list: intervals to their union, lists of ± to one list."""
    ranges = [form for form in forms if isinstance(form, Ranges)]
    if len(ranges) == len(forms):
        intervals = [interval for form in ranges for interval in form.intervals]
        # "x > 1 and x < 3" is where both hold; "x < 1, x > 3" are the two parts of a union.
        if joined_by_and and len(intervals) == 2:
            return intersection(intervals[0], intervals[1])
        return Ranges(tuple(intervals))
    return Listing(_flattened(forms))


def _flattened(forms: list[Form]) -> tuple[Form, ...]:
    # A list without brackets comes from a ± within a list: its values stand beside the others.
    items: list[Form] = []
    for form in forms:
        if isinstance(form, Listing) and form.brackets == "":
            items.extend(form.items)
        else:
            items.append(form)
    return tuple(items)


def _read_wrapped(text: str, read: Read) -> Form | None:
    r"""Read what is wholly inside one pair of brackets; None if the text is not, or is a value."""
    parts = inside(text)
    if parts is None:
        return None
    content, brackets = parts
    if brackets == "{}" and re.search(r"\||:|\\text\{ ?such", content):
        return read_builder(content, read) or Opaque(text)
    items, _ = split(content)
    if len(items) > MAX_ITEMS:
        return Opaque(text)
    if not items:
        if brackets == "{}":
            return Words("no solution")
        return Listing((), brackets) if brackets in ("<>", "[]") else None
    forms = [read(item) for item in items]
    if len(items) == 1:
        if brackets in ("{}", "<>", "[]"):
            return Listing(_flattened(forms) if brackets == "{}" else tuple(forms), brackets)
        return forms[0] if brackets == "()" else None
    listing = Listing(_flattened(forms) if brackets == "{}" else tuple(forms), brackets)
    if brackets == "[]":
        return as_matrix(listing)
    # (0, 1) may be a point or an interval, so it stays a list; comparison decides by the reference.
    if brackets in ("[)", "(]") or any(is_infinite(item) for item in items):
        return as_ranges(listing) or Opaque(text)
    return listing


def _read_long_ratio(text: str, read: Read) -> Form:
    """Read ``3:4:5`` as the parts beside the first one."""
    parts = [read(part) for part in text.split(":")]
    trees = [part.tree for part in parts if isinstance(part, Value) and part.tree is not None]
    if len(trees) != len(parts):
        return Opaque(text)
    return Listing(tuple(Value("", Operation("/", (tree, trees[0]))) for tree in trees), ":")


def _read_plus_minus(text: str, read: Read) -> Form:
    if text.count(r"\pm") + text.count(r"\mp") > 3:
        return Opaque(text)
    # One sign at a time: signs that are left over double the values again.
    upper = text.replace(r"\pm", "+", 1).replace(r"\mp", "-", 1)
    lower = text.replace(r"\pm", "-", 1).replace(r"\mp", "+", 1)
    return Listing(_flattened([read(variant.strip()) for variant in (upper, lower)]))
