r"""Expressions as trees: a parser for the LaTeX and the plain text that answers are written in.

Reads one value at a time (no commas, no relations; see `forms` for those), in the spelling of
`latex.normalise`. A tree holds numbers exactly. Anything outside the grammar is a `SyntaxError`
of ours, `NotAnExpressionError`: symbolic equality has to judge it.
"""

import re
from dataclasses import dataclass
from fractions import Fraction

MAX_DEPTH = 40
MAX_TOKENS = 600
MAX_DIGITS = 2000

CONSTANTS = {
    **dict.fromkeys((r"\pi", "pi"), "pi"),
    **dict.fromkeys((r"\infty", "infinity", "oo", "inf"), "infinity"),
    **dict.fromkeys(("e", r"\e"), "e"),
    **dict.fromkeys(("i", r"\i", r"\imath"), "i"),
}
FUNCTIONS = (
    "sin", "cos", "tan", "cot", "sec", "csc", "arcsin", "arccos", "arctan", "asin", "acos", "atan",
    "sinh", "cosh", "tanh", "ln", "log", "lg", "exp", "abs", "floor", "ceil", "gcd", "lcm", "max",
    "min",
)  # fmt: skip
_ONE_ARGUMENT = frozenset(FUNCTIONS) - {"gcd", "lcm", "max", "min"}
_SAME_FUNCTION = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "lg": "log10"}
_GREEK = frozenset(
    rf"\{name}"
    for name in [
        "alpha",
        "beta",
        "gamma",
        "delta",
        "epsilon",
        "zeta",
        "eta",
        "theta",
        "iota",
        "kappa",
        "lambda",
        "mu",
        "nu",
        "xi",
        "rho",
        "sigma",
        "tau",
        "upsilon",
        "phi",
        "chi",
        "psi",
        "omega",
        "Gamma",
        "Delta",
        "Theta",
        "Lambda",
        "Xi",
        "Sigma",
        "Phi",
        "Psi",
        "Omega",
        "ell",
    ]
)
_TOKEN = re.compile(r"(\d+\.?\d*|\.\d+)|(\\?[a-zA-Z]+)|([-+*/^_(){}\[\]|!%])|\s+", re.ASCII)
_MIXED_PLAIN = re.compile(r"(?<![\d./*^({])(\d{1,9}) (\d{1,9})/(\d{1,9})(?![\d.(])", re.ASCII)
_REPEATING = re.compile(
    r"(\d{0,40})\.(\d{0,40})\\(?:overline|bar|dot|overbar) ?(?:\{ ?(\d{1,40}) ?\}|(\d))", re.ASCII
)
_SCIENTIFIC = re.compile(
    r"(?<![\d.a-zA-Z])(\d+\.\d*(?=[eE])|\d+(?=E)|\d+(?=e[-+]?\d\d)|1(?=e)|\d+(?=e\d))[eE]([-+]?\d{1,6})"
    r"(?![\d.a-zA-Z])",
    re.ASCII,
)


class NotAnExpressionError(Exception):
    """The text is not in the grammar of this parser."""


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
    text = _REPEATING.sub(_repeating_fraction, text)
    text = _MIXED_PLAIN.sub(r"\1\\frac{\2}{\3}", text)
    text = _SCIENTIFIC.sub(r"\1*10^{\2}", text)
    return _Parser(_tokens(text)).whole()


def variables(tree: Tree) -> frozenset[str]:
    """Names of the variables in a tree, constants excluded."""
    if isinstance(tree, Name):
        return frozenset() if tree.constant else frozenset([tree.name])
    if isinstance(tree, Operation):
        return frozenset().union(*(variables(argument) for argument in tree.arguments))
    return frozenset()


def _repeating_fraction(match: re.Match[str]) -> str:
    whole, fixed, period = match.group(1), match.group(2), match.group(3) or match.group(4)
    scale = 10 ** len(fixed)
    value = Fraction(int((whole or "0") + fixed), scale) + Fraction(
        int(period), scale * (10 ** len(period) - 1)
    )
    return rf"(\frac{{{value.numerator}}}{{{value.denominator}}})"


def _tokens(text: str) -> list[str]:
    tokens: list[str] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None or len(tokens) >= MAX_TOKENS or match.end() - position > MAX_DIGITS:
            raise NotAnExpressionError(text[position : position + 20])
        position = match.end()
        if not match.group().isspace():
            tokens.append(match.group())
    return tokens


def _is_number(token: str) -> bool:
    return token[0].isdigit() or (token[0] == "." and len(token) > 1)


class _Parser:
    """Recursive descent over a list of tokens, which it consumes from the front."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens[::-1]
        self._depth = 0
        self._bars = 0

    def whole(self) -> Tree:
        tree = self._sum()
        if self._tokens:
            raise NotAnExpressionError(self._tokens[-1])
        return tree

    def _next(self) -> str:
        return self._tokens[-1] if self._tokens else ""

    def _take(self, expected: str | None = None) -> str:
        if not self._tokens or (expected is not None and self._tokens[-1] != expected):
            raise NotAnExpressionError(f"expected {expected or 'more'}")
        return self._tokens.pop()

    def _sum(self) -> Tree:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise NotAnExpressionError("too deep")
        tree = self._term()
        while self._next() in ("+", "-"):
            operator = self._take()
            tree = Operation(operator, (tree, self._term()))
        self._depth -= 1
        return tree

    def _term(self) -> Tree:
        # The sign is applied last, so that it belongs to a mixed number as a whole.
        negative = self._sign()
        tree = self._power()
        while True:
            token = self._next()
            if token in ("*", "/"):
                self._take()
                tree = Operation(token, (tree, self._signed()))
            elif self._starts_factor(token):
                if _is_number(token) and isinstance(tree, Number):
                    raise NotAnExpressionError("two numbers side by side")
                factor = self._power()
                mixed = _mixed_number(tree, factor) if token == r"\frac" else None
                tree = mixed or Operation("*", (tree, factor))
            else:
                return Operation("neg", (tree,)) if negative else tree

    def _starts_factor(self, token: str) -> bool:
        if not token or token in "+-*/^_)}]!%":
            return False
        if token == "|":
            return self._bars == 0
        return token not in (r"\rfloor", r"\rceil")

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
        base = self._postfix(self._primary())
        if self._next() != "^":
            return base
        self._take()
        return self._postfix(Operation("^", (base, self._script())))

    def _script(self) -> Tree:
        """Exponent or subscript: a group, or one token with its sign."""
        if self._next() == "{":
            return self._group("{", "}")
        if self._next() in ("+", "-"):
            return self._signed()
        return self._power()

    def _postfix(self, tree: Tree) -> Tree:
        while self._next() in ("!", "%", r"\degree"):
            operator = {"!": "!", "%": "percent", r"\degree": "degree"}[self._take()]
            tree = Operation(operator, (tree,))
        return tree

    def _group(self, opening: str, closing: str) -> Tree:
        self._take(opening)
        bars, self._bars = self._bars, 0
        tree = self._sum()
        self._bars = bars
        self._take(closing)
        return tree

    def _primary(self) -> Tree:
        token = self._next()
        if token == "(":
            return self._group("(", ")")
        if token == "[":
            return self._group("[", "]")
        if token == "{":
            return self._group("{", "}")
        token = self._take()
        if _is_number(token):
            return Number(Fraction(token.rstrip(".")))
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
            return Number(Fraction(token[0]))
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
        if exponent is not None and not (isinstance(exponent, Number) and exponent.value > 0):
            raise NotAnExpressionError("an inverse function or a power that is no number")
        if name not in _ONE_ARGUMENT:
            raise NotAnExpressionError(name)
        arguments: tuple[Tree, ...] = (self._function_argument(),)
        if base is not None:
            arguments = (*arguments, base)
        tree: Tree = Operation(name, arguments)
        return tree if exponent is None else Operation("^", (tree, exponent))

    def _function_argument(self) -> Tree:
        if self._next() in ("(", "{", "["):
            return self._power()
        tree = self._power()
        while self._starts_factor(self._next()) and self._next() not in ("(", "["):
            if self._next().removeprefix("\\") in FUNCTIONS:
                break
            tree = Operation("*", (tree, self._power()))
        return tree

    def _name(self, token: str) -> Tree:
        if token in CONSTANTS:
            return Name(CONSTANTS[token], constant=True)
        if token in _GREEK:
            return self._subscripted(token[1:])
        if token.isalpha() and len(token) <= 3:
            # Letters side by side are a product; a longer run is a word.
            self._tokens.extend(reversed(token[1:]))
            return self._subscripted(token[0])
        raise NotAnExpressionError(token)

    def _subscripted(self, name: str) -> Tree:
        if self._next() != "_":
            return Name(name)
        self._take()
        group = self._next() == "{"
        if group:
            self._take("{")
        subscript = self._take()
        if group:
            self._take("}")
        if not subscript.isalnum():
            raise NotAnExpressionError("subscript")
        return Name(f"{name}_{subscript}")


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
