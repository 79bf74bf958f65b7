"""Is one form the same answer as another: the rules, form by form.

Exact rules decide whatever is built from numbers: values, lists, sets, intervals, matrices. What
they cannot read goes to symbolic equality (math-verify, gold first), value by value, so that its
looser rules for brackets, lists and equations never see more than one value.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction

from evaluator.answers.forms import (
    Equation,
    Form,
    Inequality,
    Interval,
    Listing,
    Matrix,
    Opaque,
    Ordering,
    Ranges,
    Value,
    Words,
    as_ranges,
)
from evaluator.answers.judge import CannotDecideError
from evaluator.answers.matrices import as_vector, entries
from evaluator.answers.naming import (
    in_natural_order,
    is_name,
    named_values,
    names_something,
    plain_items,
    same_bound_names,
)
from evaluator.answers.numbers import positive_multiple, proportional, sort_key
from evaluator.answers.single_values import words_of
from evaluator.answers.trees import Number, Operation, variables
from evaluator.answers.value_comparison import ValueComparison

SymbolicEqual = Callable[[str, str], bool]
_MAX_SYMBOLIC_CHARACTERS = 400


class FormComparison:
    """Compares a gold form with an answer's form.

    Parameters
    ----------
    symbolic_equal
        ``(gold, answer) -> bool`` for two texts; None if it is out of reach.
    percent
        Whether the question asks for per cent.
    """

    def __init__(self, symbolic_equal: SymbolicEqual | None, percent: bool) -> None:
        self._symbolic_equal = symbolic_equal
        self._values = ValueComparison(self._symbolic, percent)

    def same(self, gold: Form, answer: Form) -> bool:
        """Whether the answer's form is the gold one.

        Raises
        ------
        CannotDecideError
            The exact rules do not decide, and symbolic equality is out of reach.
        """
        gold_named, answer_named = named_values(gold), named_values(answer)
        if gold_named is not None or answer_named is not None:
            return self._same_named(gold, gold_named, answer, answer_named)
        if isinstance(answer, Equation) and not isinstance(gold, Equation):
            return self._same_as_value_of(gold, answer)
        if isinstance(gold, Equation):
            return self._same_equation(gold, answer)
        if isinstance(gold, Words) or isinstance(answer, Words):
            return _same_words(gold, answer)
        if isinstance(gold, Ranges) or isinstance(answer, Ranges):
            gold_ranges, answer_ranges = as_ranges(gold), as_ranges(answer)
            if gold_ranges is None or answer_ranges is None:
                return self._opaque(gold, answer)
            return self._same_ranges(gold_ranges, answer_ranges)
        if isinstance(gold, Inequality | Ordering) or isinstance(answer, Inequality | Ordering):
            return self._same_inequality(gold, answer)
        if isinstance(gold, Matrix) or isinstance(answer, Matrix):
            return self._same_matrix(gold, answer)
        if isinstance(gold, Listing) or isinstance(answer, Listing):
            return self._same_listing(gold, answer)
        if isinstance(gold, Value) and isinstance(answer, Value):
            return self._values.same(gold, answer)
        return self._opaque(gold, answer)

    def _opaque(self, gold: Form, answer: Form) -> bool:
        """Compare where one side could not be read."""
        if not _unread(gold) and not _unread(answer):
            return False
        readable = Opaque | Value | Matrix
        if isinstance(gold, readable) and isinstance(answer, readable):
            return self._symbolic(gold.text, answer.text)
        return False

    def _symbolic(self, gold: str, answer: str) -> bool:
        if max(len(gold), len(answer)) > _MAX_SYMBOLIC_CHARACTERS or not gold or not answer:
            return False
        if self._symbolic_equal is None:
            raise CannotDecideError
        return self._symbolic_equal(gold.replace(r"\cr ", r"\\ "), answer.replace(r"\cr ", r"\\ "))

    def _same_named(
        self,
        gold: Form,
        gold_named: dict[str, Form] | None,
        answer: Form,
        answer_named: dict[str, Form] | None,
    ) -> bool:
        """Compare the values of named unknowns: by name, or in the order of a tuple."""
        if gold_named is not None and answer_named is not None:
            if gold_named.keys() == answer_named.keys():
                return all(
                    self.same(value, answer_named[name]) for name, value in gold_named.items()
                )
            return False
        if answer_named is not None:
            ordered = (isinstance(gold, Listing) and gold.ordered) or isinstance(gold, Matrix)
            brackets = gold.brackets if isinstance(gold, Listing) else "()"
            items = in_natural_order(answer_named)
            return self.same(gold, Listing(tuple(items), brackets if ordered else ""))
        assert gold_named is not None
        if isinstance(answer, Listing) and answer.brackets == "{}":
            return False
        return self.same(Listing(tuple(gold_named.values()), "()"), answer)

    def _same_as_value_of(self, gold: Form, answer: Equation) -> bool:
        """Compare a value with an equation in a box: ``x = 4``, ``100 + (-30) = 70``, ``4 = x``."""
        if not names_something(answer.left) and _is_zero(answer.right):
            # "5x + 4 = 0" is an equation to be solved, not the value 0.
            return False
        if self.same(gold, answer.right):
            return True
        return is_name(answer.right) and self.same(gold, answer.left)

    def _same_equation(self, gold: Equation, answer: Form) -> bool:
        if not isinstance(answer, Equation):
            return names_something(gold.left) and self.same(gold.right, answer)
        answer = same_bound_names(gold, answer)
        gold_names, answer_names = names_something(gold.left), names_something(answer.left)
        if gold_names and gold.left == answer.left:
            return self.same(gold.right, answer.right)
        sides = [gold.left, gold.right, answer.left, answer.right]
        trees = [side.tree for side in sides if isinstance(side, Value) and side.tree is not None]
        if len(trees) == 4:
            same = proportional(
                Operation("-", (trees[0], trees[1])), Operation("-", (trees[2], trees[3]))
            )
            if same is not None:
                return same
        if gold_names and answer_names:
            return self._same_under_other_name(gold, answer)
        if gold.text and answer.text:
            return self._symbolic(gold.text, answer.text)
        return False

    def _same_under_other_name(self, gold: Equation, answer: Equation) -> bool:
        """Compare ``f(x) = 2x`` and ``y = 2x``: one answer. ``a = 4`` and ``b = 4`` are two."""
        if isinstance(gold.left, Words) or isinstance(answer.left, Words):
            return self.same(gold.right, answer.right)
        if not (isinstance(gold.right, Value) and isinstance(answer.right, Value)):
            return False
        depends = gold.right.tree is not None and bool(variables(gold.right.tree))
        return depends and self.same(gold.right, answer.right)

    def _same_inequality(self, gold: Form, answer: Form) -> bool:
        if isinstance(gold, Ordering) and isinstance(answer, Ordering):
            return gold.signs == answer.signs and self._same_items(gold.terms, answer.terms)
        if isinstance(gold, Inequality) and isinstance(answer, Inequality):
            same = positive_multiple(gold.difference, answer.difference)
            return gold.strict == answer.strict and same is True
        return False

    def _same_ranges(self, gold: Ranges, answer: Ranges) -> bool:
        if len(gold.intervals) != len(answer.intervals):
            return False
        pairs = zip(_sorted_intervals(gold), _sorted_intervals(answer), strict=True)
        return all(self._same_interval(first, second) for first, second in pairs)

    def _same_interval(self, gold: Interval, answer: Interval) -> bool:
        if (gold.low_closed, gold.high_closed) != (answer.low_closed, answer.high_closed):
            return False
        ends = ((gold.low, answer.low), (gold.high, answer.high))
        if any((first is None) != (second is None) for first, second in ends):
            return False
        return all(
            first is None or second is None or self._values.same(first, second)
            for first, second in ends
        )

    def _same_matrix(self, gold: Form, answer: Form) -> bool:
        if isinstance(gold, Matrix) and isinstance(answer, Matrix):
            if [len(row) for row in gold.rows] != [len(row) for row in answer.rows]:
                return False
            return self._same_items(entries(gold), entries(answer))
        gold_vector, answer_vector = as_vector(gold), as_vector(answer)
        if gold_vector is None or answer_vector is None:
            return self._opaque(gold, answer)
        return self._same_items(gold_vector, answer_vector)

    def _same_listing(self, gold: Form, answer: Form) -> bool:
        if isinstance(gold, Opaque) or isinstance(answer, Opaque):
            return False
        gold_items, gold_brackets = _items(gold)
        answer_items, answer_brackets = _items(answer)
        if gold_brackets == "{}" or answer_brackets == "{}":
            gold_items, answer_items = self._distinct(gold_items), self._distinct(answer_items)
        if len(gold_items) == 1 and answer_brackets == "":
            # "1/2 or 0.5" says one thing twice.
            return all(self.same(gold_items[0], item) for item in answer_items)
        if isinstance(gold, Value) and isinstance(answer, Listing) and answer.ordered:
            gold_vector = as_vector(gold)
            if gold_vector is not None:
                return self._same_items(gold_vector, answer.items)
        if isinstance(gold, Listing) and gold.ordered:
            vector = None if isinstance(answer, Listing) else as_vector(answer)
            if vector is not None:
                return self._same_items(gold.items, vector)
            if not _brackets_agree(gold_brackets, answer_brackets, len(gold_items)):
                return False
            return self._same_items(gold_items, answer_items)
        if len(gold_items) != len(answer_items):
            return False
        if gold_brackets == "{}" and answer_brackets not in ("", "{}"):
            return False  # {0, 1} is not a pair and no interval
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


def _unread(form: Form) -> bool:
    return isinstance(form, Opaque) or (isinstance(form, Value) and form.tree is None)


def _items(form: Form) -> tuple[tuple[Form, ...], str]:
    if isinstance(form, Listing):
        return plain_items(form.items), form.brackets
    return (form,), ""


def _brackets_agree(gold: str, answer: str, count: int) -> bool:
    """Whether two ordered lists may be the same: a pair in square brackets is an interval."""
    vectors = {"()", "<>", "[]"} if count > 2 else {"()", "<>"}
    return answer in ("", gold) or {gold, answer} <= vectors


def _same_words(gold: Form, answer: Form) -> bool:
    gold_words, answer_words = _words(gold), _words(answer)
    return gold_words is not None and gold_words == answer_words


def _words(form: Form) -> str | None:
    if isinstance(form, Words):
        return form.words
    if isinstance(form, Value) and form.unit is None and not form.percent:
        return words_of(form.text)
    return None


def _is_zero(form: Form) -> bool:
    return isinstance(form, Value) and form.tree == Number(Fraction(0))


def _sorted_intervals(ranges: Ranges) -> Sequence[Interval]:
    if len(ranges.intervals) < 2:
        return ranges.intervals

    def key(interval: Interval) -> tuple[float, float]:
        low = float("-inf") if interval.low is None else sort_key(interval.low.tree)
        high = float("inf") if interval.high is None else sort_key(interval.high.tree)
        return (0.0 if low is None else low, 0.0 if high is None else high)

    return sorted(ranges.intervals, key=key)
