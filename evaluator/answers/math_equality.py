"""Is an extracted expression equal to a reference: the rules, form by form.

Exact rules decide whatever is built from numbers: values, lists, sets, intervals, matrices. What
they cannot read goes to symbolic equality (math-verify, gold first), value by value, so that its
looser rules for brackets, lists and equations never see more than one value.
"""

import itertools
import re
from collections.abc import Callable, Sequence
from fractions import Fraction

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
)
from evaluator.answers.judge import CannotDecideError
from evaluator.answers.latex import normalise
from evaluator.answers.numbers import proportional, same_constant, same_function, sort_key
from evaluator.answers.reading import read_forms
from evaluator.answers.single_values import words_of
from evaluator.answers.trees import Name, Number, Operation, Tree, variables

SymbolicEqual = Callable[[str, str], bool]

_NUMBER = re.compile(r"[-+]?(?:\d{1,400}(?:\.\d{0,400})?|\.\d{1,400})", re.ASCII)
_OPTION = re.compile(r"\(?(?:\\text\{)?\(?([A-Z])[).:]?\}?\)?(?=[ :.)}]|\\|$)")
_PUNCTUATION = re.compile(r"[ {}]|\.(?!\d)")
_MAX_SYMBOLIC_CHARACTERS = 400


def plain_number(text: str) -> Fraction | None:
    """Read a plain integer or decimal exactly; None if the text is anything else."""
    return Fraction(text) if _NUMBER.fullmatch(text) else None


class Reference:
    """A reference, read once, to compare answers with.

    Parameters
    ----------
    reference
        The right answer, LaTeX or plain text.
    prompt
        The question; it tells whether a bare number is meant in per cent.
    """

    def __init__(self, reference: str, prompt: str = "") -> None:
        self._text = normalise(reference)
        self._forms = read_forms(reference)
        self._number = plain_number(self._text)
        self._percent = re.search(r"per ?cent|%", prompt, re.IGNORECASE) is not None
        likeliest = self._forms[0]
        self.parts = len(likeliest.items) if isinstance(likeliest, Listing) else 1

    def equals(self, answer: str, symbolic_equal: SymbolicEqual | None = None) -> bool:
        """Compare an answer.

        Raises
        ------
        CannotDecideError
            The exact rules do not decide, and there is no `symbolic_equal`.
        """
        if self._number is not None:
            number = plain_number(answer)
            if number is not None and (number == self._number or "." not in answer + self._text):
                return number == self._number
        text = normalise(answer)
        if _squeezed(text) == _squeezed(self._text) or _same_text(self._text, text):
            return True
        comparison = _Comparison(symbolic_equal, self._percent)
        undecided = False
        for gold, read in itertools.product(self._forms, read_forms(answer)):
            try:
                if comparison.same(gold, read):
                    return True
            except CannotDecideError:
                undecided = True
        if undecided:
            raise CannotDecideError
        return self._is_option(text)

    def _is_option(self, answer: str) -> bool:
        """Whether the reference is an option's letter with which the answer starts."""
        letter = self._forms[0]
        if not (isinstance(letter, Words) and len(letter.words) == 1):
            return False
        option = _OPTION.match(answer)
        return option is not None and option.group(1).lower() == letter.words


def _same_text(gold: str, answer: str) -> bool:
    """Whether two texts with words in them (``June 20``, ``3:45 PM``) are the same but for case."""
    if not re.search(r"[a-zA-Z]{2}", gold) or "\\" in gold.replace(r"\text", ""):
        return False
    return (
        _PUNCTUATION.sub("", gold.replace(r"\text", "")).lower()
        == _PUNCTUATION.sub("", answer.replace(r"\text", "")).lower()
    )


def _squeezed(text: str) -> str:
    return text.replace(" ", "")


class _Comparison:
    """Compares a gold form with an answer's form."""

    def __init__(self, symbolic_equal: SymbolicEqual | None, percent: bool) -> None:
        self._symbolic_equal = symbolic_equal
        self._percent = percent

    def same(self, gold: Form, answer: Form) -> bool:
        if isinstance(answer, Equation) and not isinstance(gold, Equation):
            return self._same_as_value_of(gold, answer)
        if isinstance(gold, Words) or isinstance(answer, Words):
            return _same_words(gold, answer)
        if isinstance(gold, Equation):
            return self._same_equation(gold, answer)
        if isinstance(gold, Ranges) or isinstance(answer, Ranges):
            gold_ranges, answer_ranges = as_ranges(gold), as_ranges(answer)
            if gold_ranges is None or answer_ranges is None:
                return self._opaque(gold, answer)
            return self._same_ranges(gold_ranges, answer_ranges)
        if isinstance(gold, Matrix) or isinstance(answer, Matrix):
            return self._same_matrix(gold, answer)
        if isinstance(gold, Listing) or isinstance(answer, Listing):
            return self._same_listing(gold, answer)
        if isinstance(gold, Value) and isinstance(answer, Value):
            return self._same_value(gold, answer)
        return self._opaque(gold, answer)

    def _opaque(self, gold: Form, answer: Form) -> bool:
        """Compare where one side could not be read."""
        if not isinstance(gold, Opaque) and not isinstance(answer, Opaque):
            return False
        if isinstance(gold, Opaque | Value) and isinstance(answer, Opaque | Value):
            return self._symbolic(gold.text, answer.text)
        return False

    def _symbolic(self, gold: str, answer: str) -> bool:
        if max(len(gold), len(answer)) > _MAX_SYMBOLIC_CHARACTERS or not gold or not answer:
            return False
        if self._symbolic_equal is None:
            raise CannotDecideError
        return self._symbolic_equal(gold, answer)

    def _same_as_value_of(self, gold: Form, answer: Equation) -> bool:
        """Compare a value with an equation in a box: ``x = 4``, ``100 + (-30) = 70``, ``4 = x``."""
        left = answer.left
        if isinstance(left, Value) and not _names_something(left) and _is_zero(answer.right):
            # "5x + 4 = 0" is an equation to be solved, not the value 0.
            return False
        if self.same(gold, answer.right):
            return True
        right_is_name = isinstance(answer.right, Value) and _is_name(answer.right)
        return right_is_name and self.same(gold, answer.left)

    def _same_equation(self, gold: Equation, answer: Form) -> bool:
        if not isinstance(answer, Equation):
            return _names_something(gold.left) and self.same(gold.right, answer)
        left_names = _names_something(gold.left) and _names_something(answer.left)
        if left_names and gold.left == answer.left:
            return self.same(gold.right, answer.right)
        sides = [_as_value(side) for side in (gold.left, gold.right, answer.left, answer.right)]
        trees = [side.tree for side in sides if side is not None and side.tree is not None]
        if len(trees) == 4:
            same = proportional(
                Operation("-", (trees[0], trees[1])), Operation("-", (trees[2], trees[3]))
            )
            if same is not None:
                return same
        if left_names and isinstance(gold.right, Value) and isinstance(answer.right, Value):
            # f(x) = 2x and y = 2x are one answer, a = 4 and b = 4 are two.
            depends = gold.right.tree is not None and bool(variables(gold.right.tree))
            return depends and self.same(gold.right, answer.right)
        return self._symbolic(gold.text, answer.text)

    def _same_ranges(self, gold: Ranges, answer: Ranges) -> bool:
        if len(gold.intervals) != len(answer.intervals):
            return False
        pairs = zip(_sorted_intervals(gold), _sorted_intervals(answer), strict=True)
        return all(self._same_interval(first, second) for first, second in pairs)

    def _same_interval(self, gold: Interval, answer: Interval) -> bool:
        if (gold.low_closed, gold.high_closed) != (answer.low_closed, answer.high_closed):
            return False
        ends = ((gold.low, answer.low), (gold.high, answer.high))
        for first, second in ends:
            if (first is None) != (second is None):
                return False
        return all(
            first is None or second is None or self._same_value(first, second)
            for first, second in ends
        )

    def _same_matrix(self, gold: Form, answer: Form) -> bool:
        if isinstance(gold, Matrix) and isinstance(answer, Matrix):
            if [len(row) for row in gold.rows] != [len(row) for row in answer.rows]:
                return False
            entries = zip(itertools.chain(*gold.rows), itertools.chain(*answer.rows), strict=True)
            return all(self.same(first, second) for first, second in entries)
        gold_vector, answer_vector = _as_vector(gold), _as_vector(answer)
        if gold_vector is None or answer_vector is None:
            return self._opaque(gold, answer)
        return self._same_items(gold_vector, answer_vector)

    def _same_listing(self, gold: Form, answer: Form) -> bool:
        gold_items = gold.items if isinstance(gold, Listing) else (gold,)
        answer_items = answer.items if isinstance(answer, Listing) else (answer,)
        gold_brackets = gold.brackets if isinstance(gold, Listing) else ""
        answer_brackets = answer.brackets if isinstance(answer, Listing) else ""
        if isinstance(gold, Opaque) or isinstance(answer, Opaque):
            return False
        if "{}" in (gold_brackets, answer_brackets):
            gold_items, answer_items = self._distinct(gold_items), self._distinct(answer_items)
        if len(gold_items) == 1 and answer_brackets == "":
            # "1/2 or 0.5" says one thing twice.
            return all(self.same(gold_items[0], item) for item in answer_items)
        if len(gold_items) != len(answer_items):
            return False
        if isinstance(gold, Listing) and gold.ordered:
            if answer_brackets not in ("", gold_brackets) and not (
                {gold_brackets, answer_brackets} <= {"()", "<>"}
            ):
                return False
            return self._same_items(gold_items, answer_items)
        return self._same_in_some_order(gold_items, answer_items)

    def _same_items(self, gold: Sequence[Form], answer: Sequence[Form]) -> bool:
        if len(gold) != len(answer):
            return False
        return all(self.same(first, second) for first, second in zip(gold, answer, strict=True))

    def _same_in_some_order(self, gold: Sequence[Form], answer: Sequence[Form]) -> bool:
        """Match values of two lists whose order does not matter, each with another one."""
        remaining = list(answer)
        undecided = False
        for item in gold:
            for index, candidate in enumerate(remaining):
                try:
                    found = self.same(item, candidate)
                except CannotDecideError:
                    found, undecided = False, True
                if found:
                    del remaining[index]
                    break
            else:
                if undecided:
                    raise CannotDecideError
                return False
        return True

    def _distinct(self, items: Sequence[Form]) -> tuple[Form, ...]:
        kept: list[Form] = []
        for item in items:
            if not any(self._certainly_same(item, other) for other in kept):
                kept.append(item)
        return tuple(kept)

    def _certainly_same(self, first: Form, second: Form) -> bool:
        try:
            return self.same(first, second)
        except CannotDecideError:
            return False

    def _same_value(self, gold: Value, answer: Value) -> bool:
        if answer.base is not None and gold.base is not None and answer.base != gold.base:
            return False
        if gold.base is not None and answer.base is None:
            return _squeezed(gold.text) == _squeezed(answer.text)
        if gold.unit is not None and answer.unit is not None and gold.unit != answer.unit:
            same_kind = (gold.unit.dimension, gold.unit.power) == (
                answer.unit.dimension,
                answer.unit.power,
            )
            if not same_kind:
                return False
            gold, answer = _in_base_units(gold), _in_base_units(answer)
        if (gold.percent and answer.unit is not None) or (answer.percent and gold.unit is not None):
            return False
        if gold.percent or answer.percent:
            return self._same_percent(gold, answer)
        return self._same_number(gold, answer)

    def _same_number(self, gold: Value, answer: Value) -> bool:
        if gold.tree is None or answer.tree is None:
            return self._symbolic(gold.text, answer.text)
        if not variables(gold.tree) and not variables(answer.tree):
            decided = same_constant(gold.tree, gold.text, answer.tree, answer.text)
        else:
            decided = same_function(gold.tree, answer.tree)
            if decided is False and variables(gold.tree) != variables(answer.tree):
                decided = self._same_in_lower_case(gold, answer)
        return self._symbolic(gold.text, answer.text) if decided is None else decided

    def _same_in_lower_case(self, gold: Value, answer: Value) -> bool:
        """Compare where the two name their variables in another case: ``X^2`` and ``x^2``."""
        assert gold.tree is not None
        assert answer.tree is not None
        names = {name.lower() for name in variables(gold.tree)}
        if names != {name.lower() for name in variables(answer.tree)} or len(names) != len(
            variables(gold.tree)
        ):
            return False
        return same_function(_lowered(gold.tree), _lowered(answer.tree)) is True

    def _same_percent(self, gold: Value, answer: Value) -> bool:
        """Compare where a per cent sign is on one side or both."""
        if gold.percent and answer.percent:
            return self._same_number(gold, answer)
        if gold.percent:
            # The sign may be left out, or the share be given as a number.
            return self._same_number(gold, answer) or self._same_number(_share(gold), answer)
        if self._same_number(gold, _share(answer)):
            return True
        size = sort_key(gold.tree)
        meant_in_percent = self._percent or (size is not None and abs(size) > 1)
        return meant_in_percent and self._same_number(gold, answer)


def _same_words(gold: Form, answer: Form) -> bool:
    gold_words, answer_words = _words(gold), _words(answer)
    return gold_words is not None and gold_words == answer_words


def _words(form: Form) -> str | None:
    if isinstance(form, Words):
        return form.words
    if isinstance(form, Value) and form.unit is None and not form.percent:
        return words_of(form.text)
    return None


def _as_value(form: Form) -> Value | None:
    return form if isinstance(form, Value) else None


def _is_zero(form: Form) -> bool:
    return isinstance(form, Value) and form.tree == Number(Fraction(0))


def _is_name(value: Value) -> bool:
    return re.fullmatch(r"\\?[a-zA-Z]+(?:_\{?\w+\}?)?", value.text) is not None


def _names_something(form: Form) -> bool:
    """Whether the left side of an equation only names what the right side is: ``x``, ``f(x)``."""
    if isinstance(form, Words):
        return True
    return isinstance(form, Value) and (
        _is_name(form)
        or re.fullmatch(r"[a-zA-Z](?:_\{?\w+\}?)? ?\([a-zA-Z](?:, ?[a-zA-Z])*\)", form.text)
        is not None
    )


def _sorted_intervals(ranges: Ranges) -> list[Interval]:
    def key(interval: Interval) -> tuple[float, float]:
        low = float("-inf") if interval.low is None else sort_key(interval.low.tree)
        high = float("inf") if interval.high is None else sort_key(interval.high.tree)
        return (0.0 if low is None else low, 0.0 if high is None else high)

    return sorted(ranges.intervals, key=key)


def _as_vector(form: Form) -> tuple[Form, ...] | None:
    """Entries of a vector: one column or row of a matrix, or a tuple."""
    if isinstance(form, Matrix):
        if len(form.rows) == 1:
            return form.rows[0]
        return (
            tuple(row[0] for row in form.rows) if all(len(row) == 1 for row in form.rows) else None
        )
    if isinstance(form, Listing) and form.brackets in ("()", "<>", ""):
        return form.items
    return None


def _in_base_units(value: Value) -> Value:
    if value.tree is None or value.unit is None:
        return value
    scaled = Operation("*", (value.tree, Number(value.unit.scale())))
    return Value("", scaled)


def _share(value: Value) -> Value:
    tree: Tree | None = None
    if value.tree is not None:
        tree = Operation("/", (value.tree, Number(Fraction(100))))
    return Value(value.text if tree is None else "", tree, value.unit)


def _lowered(tree: Tree) -> Tree:
    if isinstance(tree, Name):
        return Name(tree.name.lower(), tree.constant)
    if isinstance(tree, Operation):
        return Operation(tree.operator, tuple(_lowered(argument) for argument in tree.arguments))
    return tree
