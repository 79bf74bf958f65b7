"""Tools that a model may call: a calculator, and Python in the sandbox.

A tool takes text and returns text, whatever the text is: a call that makes no sense returns a line
that says so. Models with tools of their own call them through their API; others write a call as
text, in the style of ReAct, which is read here.
"""

import ast
import math
import operator
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from evaluator.answers import SandboxMissingError

MAX_INPUT_CHARACTERS: Final = 20_000
MAX_OUTPUT_CHARACTERS: Final = 2_000
PYTHON_SECONDS: Final = 5.0
OBSERVATION: Final = "Observation:"
"""What a tool's result starts with, and where a model that writes calls as text has to stop."""

_MAX_BITS: Final = 40_000
_CALL = re.compile(
    r"[ \t>*]*Action:\**[ \t]*`?(?P<tool>\w+)`?[^\n]*\n"
    r"[ \t>*]*Action Input:\**[ \t]*(?P<input>.*)",
    re.DOTALL,
)
_FENCE = re.compile(r"```(?:\w+)?[ \t]*\n(.*?)(?:\n```|\Z)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool: its name, what a model is told of it, what its input is called, and its work."""

    name: str
    description: str
    parameter: str
    run: Callable[[str], str]


class _RefusedError(ValueError):
    """An expression that is not calculated; the message is the tool's answer."""


def calculate(expression: str) -> str:
    """Return the value of an arithmetic expression, exactly where it is rational.

    Examples
    --------
    >>> calculate("45 * 67 * 89"), calculate("7 / 2"), calculate("1 / 3")
    ('268335', '3.5', '1/3 = 0.333333333333')
    >>> calculate("45 * 67 *")
    'Error: this is not an arithmetic expression'
    """
    text = expression.strip().strip("`").translate({0xD7: "*", 0xF7: "/", 0x2212: "-"})
    text = text.replace("^", "**").removesuffix("=").strip()
    if len(text) > MAX_INPUT_CHARACTERS:
        return "Error: the expression is too long"
    try:
        return _shown(_value(ast.parse(text, mode="eval").body))
    except _RefusedError as error:
        return f"Error: {error}"
    except (SyntaxError, RecursionError, MemoryError, ValueError, TypeError):
        return "Error: this is not an arithmetic expression"
    except ZeroDivisionError:
        return "Error: division by zero"
    except OverflowError:
        return "Error: the result is too large"


_Number = Fraction | float
_Value = _Number | list[_Number]

_OPERATORS: Final[dict[type[ast.operator], Callable[[_Number, _Number], _Number]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


def _value(node: ast.expr) -> _Value:
    match node:
        case ast.Constant(value=bool()):
            raise _RefusedError("only numbers can be calculated with")
        case ast.Constant(value=int() | float() as number):
            return Fraction(str(number)) if isinstance(number, float) else Fraction(number)
        case ast.UnaryOp(op=ast.USub()):
            return -_number(node.operand)
        case ast.UnaryOp(op=ast.UAdd()):
            return _number(node.operand)
        case ast.BinOp(op=ast.Pow()):
            return _power(_number(node.left), _number(node.right))
        case ast.BinOp():
            result = _OPERATORS.get(type(node.op))
            if result is None:
                raise _RefusedError("this operator is not known")
            return _bounded(result(_number(node.left), _number(node.right)))
        case ast.List() | ast.Tuple():
            return [_number(item) for item in node.elts]
        case ast.Call(func=ast.Name(id=name)) if not node.keywords:
            return _called(name, [_value(argument) for argument in node.args])
    raise _RefusedError("only numbers, + - * / // % **, lists and simple functions are known")


def _number(node: ast.expr) -> _Number:
    value = _value(node)
    if isinstance(value, list):
        raise _RefusedError("a number is needed here, not a list")
    return value


def _power(base: _Number, exponent: _Number) -> _Number:
    if isinstance(base, Fraction) and isinstance(exponent, Fraction) and exponent.denominator == 1:
        bits = max(base.numerator.bit_length(), base.denominator.bit_length())
        if bits * abs(exponent.numerator) > _MAX_BITS:
            raise _RefusedError("the result is too large")
        return base**exponent.numerator
    result = float(base) ** float(exponent)
    if isinstance(result, complex):
        raise _RefusedError("the result is not a real number")
    return float(result)


def _bounded(value: _Number) -> _Number:
    if isinstance(value, Fraction) and value.numerator.bit_length() > _MAX_BITS:
        raise _RefusedError("the result is too large")
    return value


def _called(name: str, arguments: list[_Value]) -> _Value:
    numbers = [item for part in arguments for item in (part if isinstance(part, list) else [part])]
    if name in ("sum", "min", "max", "len", "mean") and numbers:
        total: _Number = sum(numbers, Fraction(0))
        known: dict[str, _Number] = {
            "sum": total,
            "min": min(numbers),
            "max": max(numbers),
            "len": Fraction(len(numbers)),
            "mean": total / len(numbers),
        }
        return known[name]
    if name == "sorted" and numbers:
        return sorted(numbers)
    if len(numbers) == 1:
        (number,) = numbers
        if name == "abs":
            return max(number, -number)
        if name == "sqrt":
            if number < 0:
                raise _RefusedError("the root of a negative number")
            return math.sqrt(number)
        if name == "round":
            return Fraction(round(number))
        if name in ("int", "floor"):
            return Fraction(math.trunc(number) if name == "int" else math.floor(number))
    raise _RefusedError(f"no function {name} of {len(numbers)} numbers")


def _shown(value: _Value) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(_shown(item) for item in value) + "]"
    if isinstance(value, float):
        return f"{value:.12g}"
    if value.denominator == 1:
        return str(value.numerator)
    short = f"{float(value):.12g}"
    exact = re.fullmatch(r"-?\d+\.\d+", short) and Fraction(short) == value
    return short if exact else f"{value} = {short}"


def run_python(program: str) -> str:
    """Run a Python program in the sandbox and return what it prints.

    As at an interpreter's prompt, the value of a last line that is an expression is shown too.

    Raises
    ------
    evaluator.answers.CheckerError
        If the sandbox cannot be started: our own failure, not the program's.
    """
    from evaluator.answers.sandbox import run_program

    fenced = _FENCE.search(program)
    source = fenced[1] if fenced else program
    if len(source) > MAX_INPUT_CHARACTERS:
        return "Error: the program is too long"
    run = run_program(_showing_last(source), None, "", PYTHON_SECONDS)
    output = run.output.decode("utf-8", "replace").strip()
    if len(output) > MAX_OUTPUT_CHARACTERS:
        output = output[:MAX_OUTPUT_CHARACTERS] + " [cut]"
    trouble = f"Error: {run.trouble}" if run.trouble else ""
    return "\n".join(part for part in (output, trouble) if part) or "(no output)"


def _showing_last(source: str) -> str:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return source
    if not tree.body or not isinstance(last := tree.body[-1], ast.Expr):
        return source
    if isinstance(last.value, ast.Call) and getattr(last.value.func, "id", "") == "print":
        return source
    shown = ast.parse("(lambda _: None if _ is None else print(repr(_)))(0)").body[0]
    assert isinstance(shown, ast.Expr)
    assert isinstance(shown.value, ast.Call)
    shown.value.args = [last.value]
    tree.body[-1] = shown
    return ast.unparse(ast.fix_missing_locations(tree))


_TOOLS: Final = (
    Tool(
        "calculator",
        "evaluates one arithmetic expression exactly, such as 45 * 67 - (3 + 2) / 4",
        "expression",
        calculate,
    ),
    Tool("python", "runs a Python program and shows what it prints", "program", run_python),
)


def get_tools(names: Sequence[str]) -> tuple[Tool, ...]:
    """Return tools by their names.

    Raises
    ------
    evaluator.answers.SandboxMissingError
        If Python is among them and there is no sandbox to run it in.
    """
    if "python" in names and shutil.which("bwrap") is None:
        raise SandboxMissingError(
            "the tool python runs programs of a model, and there is no sandbox for them: install "
            "bubblewrap (Debian: apt-get install bubblewrap)"
        )
    return tuple(tool for tool in _TOOLS if tool.name in names)


def written_request(tools: Sequence[Tool]) -> str:
    """Return how a model is told to write calls as text."""
    described = "\n".join(f"- {tool.name}: {tool.description}." for tool in tools)
    return (
        f"You may use these tools:\n{described}\n"
        "To use one, write these two lines and stop:\n"
        "Action: NAME\n"
        "Action Input: INPUT\n"
        f'The result will follow after "{OBSERVATION}". When you know the answer, give it without '
        "an action."
    )


def written_call(text: str) -> tuple[str, str] | None:
    """Return the tool and the input of the call that a text ends with, or None.

    Examples
    --------
    >>> written_call("I multiply. Action: none" + chr(10) + "It is 4.") is None
    True
    >>> written_call("Action: calculator" + chr(10) + "Action Input: 6 * 7" + chr(10))
    ('calculator', '6 * 7')
    """
    at = text.rfind("Action:")
    if at < 0:
        return None
    start = text.rfind("\n", 0, at) + 1
    call = _CALL.match(text, start)
    if call is None:
        return None
    return call["tool"].lower(), call["input"].split(OBSERVATION)[0].strip()


def use(tools: Sequence[Tool], name: str, argument: str) -> str:
    """Return what a tool says, or that there is no such tool."""
    for tool in tools:
        if tool.name == name:
            return tool.run(argument)
    return f"Error: no tool {name[:40]}; there are {', '.join(tool.name for tool in tools)}"
