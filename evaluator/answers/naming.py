r"""What the left side of an equation names, and the values of several named unknowns."""

import re

from evaluator.answers.forms import Equation, Form, Listing, Value, Words
from evaluator.answers.intervals import VARIABLE
from evaluator.answers.trees import renamed, variables

_FUNCTION_OF_NAMES = re.compile(r"([a-zA-Z](?:_\{?\w+\}?)?'{0,2}) ?\(([a-zA-Z](?:, ?[a-zA-Z])*)\)")
_POINTS = r"(?:\\triangle ?|m ?\\angle ?|\\angle ?)?\{?[A-Z]'?(?:[A-Z]'?){0,4}\}?"
_SIMPLE = rf"(?:{VARIABLE.pattern}'{{0,2}}|[a-zA-Z]_\{{[^{{}}=]{{1,12}}\}}|{_POINTS})"
_NAME = re.compile(
    rf"(?:m ?)?\\angle ?[A-Z]{{1,3}}|\\angle ?\d|{_SIMPLE}"
    rf"|\\?\| ?(?:{_SIMPLE}) ?\\?\||\[ ?[A-Z]{{2,6}} ?\]"
    r"|(?:\\text\{[^{}]{1,40}\}|[a-zA-Z]{1,3}'{0,2}(?:_\{?\w+\}?)?(?:\^\{?-?1\}?)?) ?"
    r"(?:\([^()=]{1,40}\)|\[[^\[\]=]{1,40}\])"
    r"|(?:\\(?:sin|cos|tan|cot|sec|csc|ln|log|det|deg|gcd|lcm|max|min|arg|Re|Im) ?)"
    rf"\(?(?:\\angle ?)?{_SIMPLE}(?:, ?{_SIMPLE})?\)?"
    rf"|\\frac ?\{{ ?{_SIMPLE} ?\}} ?\{{ ?{_SIMPLE} ?\}}|{_SIMPLE} ?/ ?{_SIMPLE}"
    rf"|{_SIMPLE}(?: ?: ?{_SIMPLE}){{1,3}}"
    r"|\\(?:lim|int|sum|prod)(?![a-zA-Z]).{1,200}"
)
_COORDINATES = ("x", "y", "z", "w")


def is_name(form: Form) -> bool:
    """Whether a form is a single name."""
    return isinstance(form, Value) and VARIABLE.fullmatch(form.text) is not None


def names_something(form: Form) -> bool:
    r"""Whether the left side of an equation only names what the right side is.

    Names are ``x``, ``f(x)``, ``|AC|``, ``\angle PQR``, ``V_1 : V_2``, words; ``2x + 3`` is not
    one.
    """
    if isinstance(form, Words):
        return True
    return isinstance(form, Value) and _NAME.fullmatch(form.text) is not None


def same_bound_names(gold: Equation, answer: Equation) -> Equation:
    """Give the answer's bound variables the reference's names: f(t) = 4t and f(x) = 4x."""
    sides = (gold.left, answer.left)
    matches = [
        _FUNCTION_OF_NAMES.fullmatch(side.text) if isinstance(side, Value) else None
        for side in sides
    ]
    if matches[0] is None or matches[1] is None or matches[0].group(1) != matches[1].group(1):
        return answer
    gold_names, answer_names = (
        [name.strip() for name in match.group(2).split(",")] for match in matches if match
    )
    right = answer.right
    if (
        len(gold_names) != len(answer_names)
        or not isinstance(right, Value)
        or right.tree is None
        or (set(gold_names) - set(answer_names)) & variables(right.tree)
    ):
        return answer
    names = dict(zip(answer_names, gold_names, strict=True))
    return Equation(gold.left, Value("", renamed(right.tree, names)), "")


def named_values(form: Form) -> dict[str, Form] | None:
    """Values of unknowns with different names, in the order written; None if there are none such.

    ``u=6, v=-11`` and ``(u,v)=(6,-11)`` are the same.
    """
    if isinstance(form, Equation):
        return _of_tuple(form)
    if not isinstance(form, Listing) or len(form.items) < 2:
        return None
    values: dict[str, Form] = {}
    for item in form.items:
        if not (isinstance(item, Equation) and names_something(item.left)):
            return None
        assert isinstance(item.left, Value | Words)
        name = item.left.text if isinstance(item.left, Value) else item.left.words
        if name in values:
            return None
        values[name] = item.right
    return values


def _of_tuple(equation: Equation) -> dict[str, Form] | None:
    left, right = equation.left, equation.right
    if not (isinstance(left, Listing) and isinstance(right, Listing)):
        return None
    if len(left.items) != len(right.items) or not all(is_name(item) for item in left.items):
        return None
    names = [item.text for item in left.items if isinstance(item, Value)]
    return dict(zip(names, right.items, strict=True)) if len(set(names)) == len(names) else None


def in_natural_order(values: dict[str, Form]) -> list[Form]:
    """Values as a tuple: coordinates and neighbouring letters by their names, others as written."""
    names = list(values)
    if set(names) <= set(_COORDINATES) and "x" in names:
        return [values[name] for name in _COORDINATES if name in values]
    codes = sorted(ord(name) for name in names if len(name) == 1)
    if len(codes) == len(names) and codes[-1] - codes[0] == len(codes) - 1:
        return [values[chr(code)] for code in codes]
    return list(values.values())


def plain_items(items: tuple[Form, ...]) -> tuple[Form, ...]:
    """Drop the name from ``n = 1, 2, 3``, of which only the first item has it."""
    first = items[0] if items else None
    if (
        isinstance(first, Equation)
        and len(items) > 1
        and names_something(first.left)
        and not any(isinstance(item, Equation) for item in items[1:])
    ):
        return (first.right, *items[1:])
    return items
