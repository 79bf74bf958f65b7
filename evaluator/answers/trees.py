"""Expression trees: numbers, names and operations, and what can be read off a tree alone."""

import functools
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

_MAX_REMEMBERED = 256
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Number:
    """A number, exact."""

    value: Fraction


@dataclass(frozen=True, slots=True)
class Name:
    """A variable, or one of the constants ``pi``, ``e``, ``i``, ``infinity``."""

    name: str
    constant: bool = False


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator or a function with its arguments."""

    operator: str
    arguments: tuple["Tree", ...]


Tree = Number | Name | Operation


def remembered(function: Callable[..., T]) -> Callable[..., T]:
    """Keep the last results of a function of a tree, by the tree object and further arguments.

    A reference's tree is asked for again with every answer. Comparing objects is much cheaper
    than hashing trees; each result is kept with its tree, so that no other object has its id.
    """
    known: dict[tuple[Hashable, ...], tuple[Tree, T]] = {}

    @functools.wraps(function)
    def result(tree: Tree, *more: Hashable) -> T:
        key = (id(tree), *more)
        found = known.get(key)
        if found is None:
            if len(known) >= _MAX_REMEMBERED:
                known.clear()
            found = known[key] = (tree, function(tree, *more))
        return found[1]

    return result


def nodes(tree: Tree) -> Iterator[Tree]:
    """Yield all nodes of a tree, without recursion."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, Operation):
            waiting.extend(node.arguments)


def depth(tree: Tree) -> int:
    """Length of the longest way down a tree, without recursion."""
    deepest = 0
    waiting = [(tree, 1)]
    while waiting:
        node, level = waiting.pop()
        deepest = max(deepest, level)
        if isinstance(node, Operation):
            waiting.extend((argument, level + 1) for argument in node.arguments)
    return deepest


@remembered
def variables(tree: Tree) -> frozenset[str]:
    """Names of the variables in a tree, constants excluded."""
    found: set[str] = set()
    _add_variables(tree, found)
    return frozenset(found)


def _add_variables(tree: Tree, found: set[str]) -> None:
    """Walk a tree by recursion, which is faster than `nodes`; the parser bounds its depth."""
    if isinstance(tree, Operation):
        for argument in tree.arguments:
            _add_variables(argument, found)
    elif isinstance(tree, Name) and not tree.constant:
        found.add(tree.name)


@remembered
def operators(tree: Tree) -> frozenset[str]:
    """Names of the operators and functions in a tree."""
    return frozenset(node.operator for node in nodes(tree) if isinstance(node, Operation))


def renamed(tree: Tree, names: dict[str, str]) -> Tree:
    """Give variables other names."""
    if isinstance(tree, Name):
        return tree if tree.constant else Name(names.get(tree.name, tree.name))
    if isinstance(tree, Operation):
        arguments = tuple([renamed(argument, names) for argument in tree.arguments])
        return Operation(tree.operator, arguments)
    return tree


def balanced(operator: str, items: list[Tree]) -> Tree:
    """Join many terms or factors to a tree whose depth grows with the logarithm of their number.

    ``1 + 1 + 1 + ...`` is then no deeper than what recursion bears.
    """
    while len(items) > 1:
        items = [
            Operation(operator, tuple(items[index : index + 2]))
            if index + 1 < len(items)
            else items[index]
            for index in range(0, len(items), 2)
        ]
    return items[0]


def substituted(tree: Tree, name: str, value: Tree) -> Tree:
    """Put a value in the place of a variable."""
    if isinstance(tree, Name):
        return value if tree == Name(name) else tree
    if isinstance(tree, Operation):
        arguments = tuple([substituted(argument, name, value) for argument in tree.arguments])
        return Operation(tree.operator, arguments)
    return tree


def ordered(tree: Tree) -> Tree:
    """Sort the arguments of operations whose order does not matter: one tree for both orders."""
    if not isinstance(tree, Operation):
        return tree
    arguments = [ordered(argument) for argument in tree.arguments]
    if tree.operator in ("+", "*", "gcd", "lcm", "max", "min"):
        arguments.sort(key=repr)
    return Operation(tree.operator, tuple(arguments))
