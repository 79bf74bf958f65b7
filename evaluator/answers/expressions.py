r"""Expressions as trees: a parser for the LaTeX and the plain text that answers are written in.

Reads one value at a time (no commas, no relations; see `forms` for those), in the spelling of
`latex.normalise`. A tree holds numbers exactly. Anything outside the grammar is a `SyntaxError`
of ours, `NotAnExpressionError`: symbolic equality has to judge it.
"""

import re
from fractions import Fraction

from evaluator.answers.numerals import NotANumeralError, spelled_out
from evaluator.answers.trees import Name, Number, Operation, Tree, balanced, depth

MAX_DEPTH = 80
"""Brackets, powers and functions inside each other; a bracket counts twice."""
MAX_TREE_DEPTH = 120
"""Trees are walked by recursion: two frames a level."""
MAX_TOKENS = 600
MAX_DIGITS = 2000
_MAX_SUBSCRIPT = 12

CONSTANTS = {
    **dict.fromkeys((r"\pi", "pi"), "pi"),
    **dict.fromkeys((r"\infty", "infinity", "oo", "inf"), "infinity"),
    **dict.fromkeys(("e", r"\e"), "e"),
    **dict.fromkeys(("i", r"\i", r"\imath"), "i"),
}
FUNCTIONS = frozenset([
    "sin", "cos", "tan", "cot", "sec", "csc", "arcsin", "arccos", "arctan", "arccot", "arcsec",
    "arccsc", "sinh", "cosh", "tanh", "coth", "sech", "csch", "arcsinh", "arccosh", "arctanh",
    "asin", "acos", "atan", "acot", "asinh", "acosh", "atanh", "arsinh", "arcosh", "artanh", "ln",
    "log", "lg", "exp", "abs", "floor", "ceil", "sgn", "sign", "gcd", "lcm", "max", "min",
])  # fmt: skip
_MANY_ARGUMENTS = frozenset(["gcd", "lcm", "max", "min"])
_SAME_FUNCTION = {
    "lg": "log10",
    "sign": "sgn",
    **{f"a{name}": f"arc{name}" for name in ("sin", "cos", "tan", "cot", "sinh", "cosh", "tanh")},
    **{f"ar{name}": f"arc{name}" for name in ("sinh", "cosh", "tanh")},
}
_GREEK = frozenset("\\" + name for name in [
    "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa",
    "lambda", "mu", "nu", "xi", "rho", "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega",
    "Gamma", "Delta", "Theta", "Lambda", "Xi", "Sigma", "Phi", "Psi", "Omega", "ell",
])  # fmt: skip
GREEK = frozenset(name[1:] for name in _GREEK)
"""Letters with a name, as they stand in trees."""
_MODULO = (r"\bmod", r"\mod", "mod")
_POSTFIX = {"!": "!", "%": "percent", r"\degree": "degree"}
_BRACKETS = {"(": ")", "[": "]", "{": "}"}
_ARGUMENT_BRACKETS = {"(": ")", "[": "]", r"\{": r"\}"}
_TOKEN = re.compile(
    r"(\d+\.?\d*|\.\d+)|(\\?[a-zA-Z]+'{0,3})|(\\[{}]|[-+*/^_(){}\[\]|!%,])|\s+", re.ASCII
)


class NotAnExpressionError(Exception):
    """The text is not in the grammar of this parser."""


def parse(text: str) -> Tree:
    r"""Parse one value.

    Raises
    ------
    NotAnExpressionError
        The text is not a single value in this grammar.

    Examples
    --------
    >>> parse(r"3\frac{x}{2}")  # doctest: +ELLIPSIS
    Operation(operator='*', arguments=(Number(value=Fraction(3, 1)), Operation(operator='/', ...
    """
    try:
        text = spelled_out(text)
    except NotANumeralError as error:
        raise NotAnExpressionError(str(error)) from error
    tree = _Parser(_tokens(text)).whole()
    if len(text) > MAX_TREE_DEPTH and depth(tree) > MAX_TREE_DEPTH:
        raise NotAnExpressionError("too deep")
    return tree


def _tokens(text: str) -> list[str]:
    tokens: list[str] = []
    position = 0
    for match in _TOKEN.finditer(text):
        start, end = match.span()
        if start != position or len(tokens) >= MAX_TOKENS or end - start > MAX_DIGITS:
            raise NotAnExpressionError(text[position : position + 20])
        position = end
        if match.lastindex is not None:
            tokens.append(match.group())
    if position != len(text):
        raise NotAnExpressionError(text[position : position + 20])
    return tokens


def _is_number(token: str) -> bool:
    return token[0].isdigit() or (token[0] == "." and len(token) > 1)


class _Parser:
    """Recursive descent over a list of tokens, which it consumes from the front."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = ["", *reversed(tokens)]  # "" stands for the end
        self._depth = 0
        self._bars = 0

    def whole(self) -> Tree:
        tree = self._sum()
        if self._tokens[-1]:
            raise NotAnExpressionError(self._tokens[-1])
        return tree

    def _next(self) -> str:
        return self._tokens[-1]

    def _take(self, expected: str | None = None) -> str:
        if not self._tokens[-1] or (expected is not None and self._tokens[-1] != expected):
            raise NotAnExpressionError(f"expected {expected or 'more'}")
        return self._tokens.pop()

    def _deeper(self) -> None:
        """Count how deep the recursion is; every way around it passes through here."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise NotAnExpressionError("too deep")

    def _sum(self) -> Tree:
        terms = [self._term()]
        while self._tokens[-1] in ("+", "-"):
            negative = self._take() == "-"
            term = self._term()
            terms.append(Operation("neg", (term,)) if negative else term)
        return balanced("+", terms)

    def _term(self) -> Tree:
        # The sign is applied last, so that it belongs to a mixed number as a whole.
        negative = self._sign()
        above, below = [self._power()], list[Tree]()
        while True:
            token = self._tokens[-1]
            if token == "*":
                self._take()
                above.append(self._signed())
            elif token == "/":
                self._take()
                below.append(self._signed())
            elif token in _MODULO:
                self._take()
                above, below = [Operation("mod", (_quotient(above, below), self._signed()))], []
            elif self._starts_factor(token):
                if _is_number(token) and isinstance(above[-1], Number):
                    raise NotAnExpressionError("two numbers side by side")
                factor = self._power()
                alone = token == r"\frac" and len(above) == 1 and not below
                mixed = _mixed_number(above[0], factor) if alone else None
                if mixed is not None:
                    above = [mixed]
                else:
                    above.append(factor)
            else:
                tree = _quotient(above, below)
                return Operation("neg", (tree,)) if negative else tree

    def _starts_factor(self, token: str) -> bool:
        if not token or token in "+-*/^_)}]!%," or token in _MODULO:
            return False
        if token == "|":
            return self._bars == 0
        return token not in (r"\rfloor", r"\rceil", r"\}", r"\{")

    def _sign(self) -> bool:
        negative = False
        while self._next() in ("+", "-"):
            negative ^= self._take() == "-"
        return negative

    def _signed(self) -> Tree:
        negative = self._sign()
        tree = self._power()
        return Operation("neg", (tree,)) if negative else tree

    def _power(self) -> Tree:
        self._deeper()
        tree = self._postfix(self._primary())
        if self._next() == "^":
            self._take()
            tree = self._postfix(Operation("^", (tree, self._script())))
        self._depth -= 1
        return tree

    def _script(self) -> Tree:
        """Exponent or subscript: a group, or one token with its sign."""
        if self._next() == "{":
            return self._group("{", "}")
        if self._next() in ("+", "-"):
            return self._signed()
        return self._power()

    def _postfix(self, tree: Tree) -> Tree:
        while self._tokens[-1] in _POSTFIX:
            tree = Operation(_POSTFIX[self._take()], (tree,))
        return tree

    def _group(self, opening: str, closing: str) -> Tree:
        self._take(opening)
        bars, self._bars = self._bars, 0
        tree = self._sum()
        self._bars = bars
        self._take(closing)
        return tree

    def _primary(self) -> Tree:
        self._deeper()
        tree = self._undecorated()
        self._depth -= 1
        return tree

    def _undecorated(self) -> Tree:
        token = self._next()
        if token in _BRACKETS:
            return self._group(token, _BRACKETS[token])
        token = self._take()
        if _is_number(token):
            token = token.rstrip(".")
            # Text costs ten times as much to read as an integer.
            return Number(Fraction(int(token) if token.isdigit() else token))
        if token == "|":
            self._bars += 1
            tree = self._sum()
            self._take("|")
            self._bars -= 1
            return Operation("abs", (tree,))
        name = token.removeprefix("\\")
        if token in (r"\frac", r"\binom"):
            arguments = (self._argument(), self._argument())
            return Operation("/" if name == "frac" else "binom", arguments)
        if name == "sqrt":
            return self._root()
        if name in ("lfloor", "lceil"):
            tree = self._sum()
            self._take(r"\rfloor" if name == "lfloor" else r"\rceil")
            return Operation("floor" if name == "lfloor" else "ceil", (tree,))
        if name in FUNCTIONS:
            return self._function(_SAME_FUNCTION.get(name, name))
        return self._name(token)

    def _argument(self) -> Tree:
        """Read the argument of a LaTeX command: a group, or the next digit or command."""
        token = self._next()
        if token == "{":
            return self._group("{", "}")
        if token.isdigit():
            self._tokens.pop()
            if len(token) > 1:
                self._tokens.append(token[1:])
            return Number(Fraction(int(token[0])))
        return self._primary()

    def _root(self) -> Tree:
        degree: Tree = Number(Fraction(2))
        if self._next() == "[":
            degree = self._group("[", "]")
        return Operation("root", (self._primary(), degree))

    def _function(self, name: str) -> Tree:
        base = exponent = None
        for _ in range(2):
            if self._next() == "_" and name == "log":
                self._take()
                base = self._argument()
            elif self._next() == "^":
                self._take()
                exponent = self._argument() if self._next() != "-" else self._script()
        if exponent == Operation("neg", (Number(Fraction(1)),)) and f"arc{name}" in FUNCTIONS:
            name, exponent = f"arc{name}", None
        if exponent is not None and not (isinstance(exponent, Number) and exponent.value > 0):
            raise NotAnExpressionError("a power of a function that is no number")
        if name in _MANY_ARGUMENTS:
            arguments = self._several_arguments()
        else:
            arguments = (self._function_argument(),)
        if base is not None:
            arguments = (*arguments, base)
        tree: Tree = Operation(name, arguments)
        if exponent is not None:
            return Operation("^", (tree, exponent))
        return tree

    def _several_arguments(self) -> tuple[Tree, ...]:
        opening = self._take()
        if opening not in _ARGUMENT_BRACKETS:
            raise NotAnExpressionError("arguments in brackets")
        bars, self._bars = self._bars, 0
        arguments = [self._sum()]
        while self._next() == ",":
            self._take()
            arguments.append(self._sum())
        self._bars = bars
        self._take(_ARGUMENT_BRACKETS[opening])
        return tuple(arguments)

    def _function_argument(self) -> Tree:
        opening = self._next()
        if opening in _BRACKETS:
            # A power after the bracket belongs to the function's value: sin(t)^2 is sin^2 t.
            return self._postfix(self._group(opening, _BRACKETS[opening]))
        factors = [self._power()]
        while self._starts_factor(self._next()) and self._next() not in ("(", "["):
            if self._next().removeprefix("\\") in FUNCTIONS:
                break
            factors.append(self._power())
        return balanced("*", factors)

    def _name(self, token: str) -> Tree:
        if token in CONSTANTS:
            return Name(CONSTANTS[token], constant=True)
        if token in _GREEK:
            return self._subscripted(token[1:])
        letters = token.rstrip("'")
        if letters.isalpha() and letters != token and len(letters) == 1:
            return Name(token)
        if token.isalpha() and len(token) <= 3:
            # Letters side by side are a product; a longer run is a word.
            self._tokens.extend(reversed(token[1:]))
            if token[0] in CONSTANTS:
                return Name(CONSTANTS[token[0]], constant=True)
            return self._subscripted(token[0])
        raise NotAnExpressionError(token)

    def _subscripted(self, name: str) -> Tree:
        if self._next() != "_":
            return Name(name)
        self._take()
        if self._next() != "{":
            subscript = self._take()
        else:
            self._take("{")
            parts: list[str] = []
            while self._next() != "}" and len(parts) < _MAX_SUBSCRIPT:
                parts.append(self._take())
            self._take("}")
            subscript = "".join(parts)
        if not re.fullmatch(r"[\w+\-,]{1,20}", subscript):
            raise NotAnExpressionError("subscript")
        return Name(f"{name}_{subscript}")


def _quotient(above: list[Tree], below: list[Tree]) -> Tree:
    tree = balanced("*", above)
    return Operation("/", (tree, balanced("*", below))) if below else tree


def _mixed_number(whole: Tree, fraction: Tree) -> Tree | None:
    r"""``1\frac{4}{5}`` is a sum; None if the two are a product."""
    if not (isinstance(whole, Number) and whole.value.denominator == 1):
        return None
    if not (isinstance(fraction, Operation) and fraction.operator == "/"):
        return None
    above, below = fraction.arguments
    if not (isinstance(above, Number) and isinstance(below, Number)):
        return None
    if not (0 < above.value < below.value and (above.value + below.value).denominator == 1):
        return None
    return Number(whole.value + above.value / below.value)
