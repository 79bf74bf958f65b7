"""Is one value the same answer as another: numbers, units, per cent signs, bases, degrees."""

from collections.abc import Callable
from fractions import Fraction

from evaluator.answers.expressions import GREEK
from evaluator.answers.forms import Value
from evaluator.answers.numbers import same_constant, same_function, sort_key
from evaluator.answers.trees import Number, Operation, Tree, operators, renamed, variables
from evaluator.answers.units import conversion

_IN_FUNCTIONS = frozenset(["sin", "cos", "tan", "cot", "sec", "csc"])


class ValueComparison:
    """Compares a gold value with an answer's value.

    Parameters
    ----------
    symbolic
        ``(gold, answer) -> bool`` for two texts that the exact rules cannot read.
    percent
        Whether the question asks for per cent.
    """

    def __init__(self, symbolic: Callable[[str, str], bool], percent: bool) -> None:
        self._symbolic = symbolic
        self._percent = percent

    def same(self, gold: Value, answer: Value) -> bool:
        """Whether two values are one answer."""
        if answer.base is not None and gold.base is not None and answer.base != gold.base:
            return False
        if gold.base is not None and answer.base is None:
            return gold.text.replace(" ", "") == answer.text.replace(" ", "").upper()
        if gold.unit is not None and answer.unit is not None and gold.unit != answer.unit:
            change = conversion(gold.unit, answer.unit)
            if change is None or gold.tree is None:
                return False
            if change.factor != 1 or change.offset:
                scaled = Operation("*", (gold.tree, Number(change.factor)))
                gold = Value("", Operation("+", (scaled, Number(change.offset))), answer.unit)
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
                decided = _same_in_lower_case(gold.tree, answer.tree)
        if not decided and _degrees_agree(gold.tree, answer.tree):
            return True
        return self._symbolic(gold.text, answer.text) if decided is None else decided

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


def _same_in_lower_case(gold: Tree, answer: Tree) -> bool:
    """Compare where the two name their variables in another case: ``X^2`` and ``x^2``."""
    gold, answer, named = _lowered(gold), _lowered(answer), len(variables(gold))
    # Two variables that differ in case alone stay two.
    if variables(gold) != variables(answer) or len(variables(gold)) != named:
        return False
    return same_function(gold, answer) is True


def _lowered(tree: Tree) -> Tree:
    r"""Lower Latin letters; ``\Delta`` and ``\delta`` are two symbols, each with its meaning."""
    return renamed(
        tree,
        {
            name: name if name.partition("_")[0] in GREEK else name.lower()
            for name in variables(tree)
        },
    )


def _degrees_agree(gold: Tree, answer: Tree) -> bool:
    r"""Compare where only one side says that it is in degrees: ``60 - x/2``, ``60^\circ - x/2``."""
    if "degree" not in operators(gold) and "degree" not in operators(answer):
        return False
    gold, answer = _without_degrees(gold), _without_degrees(answer)
    if variables(gold) or variables(answer):
        return same_function(gold, answer) is True
    return same_constant(gold, "", answer, "") is True


def _without_degrees(tree: Tree) -> Tree:
    """Drop degree signs, but not inside of functions of angles."""
    if not isinstance(tree, Operation) or tree.operator in _IN_FUNCTIONS:
        return tree
    if tree.operator == "degree":
        return tree.arguments[0]
    return Operation(tree.operator, tuple([_without_degrees(part) for part in tree.arguments]))


def _share(value: Value) -> Value:
    tree: Tree | None = None
    if value.tree is not None:
        tree = Operation("/", (value.tree, Number(Fraction(100))))
    return Value(value.text if tree is None else "", tree, value.unit)
