r"""A grammar of nasty expressions: nested constructs, and long runs of words, digits, operators.

Nothing in it is meant to be an answer; no text may make a rule raise, hang or change its verdict.
"""

import random

ATOMS = (
    "0", "7", "12", "3.14", ".5", "1,000", "12 450", "9" * 25, "x", "y", "n", "e", "i", "ab", "cat",
    "km", "m/s", "apples", r"\pi", r"\infty", r"\alpha", r"\theta", r"\text{or}", r"\text{ cm}",
    r"\text{27 cats}", "½", "²", "√2", "𝟓", "５", "平方米", "°", "%", r"\%", r"\$", "€", r"\degree",
    r"\dots", "...", r"\mathbb{R}", r"\emptyset", "no solution", "A", "(B)", "1e5", "0x1F",
    "1011_2",
    "2b_{16}", "5:12", r"\overline{3}", "0.", "=", "<", r"\le", r"\ne", r"\in", r"\approx", r"\pm",
)  # fmt: skip
WRAPPERS = (
    ("(", ")"), ("[", "]"), ("{", "}"), (r"\{", r"\}"), ("|", "|"), ("[", ")"), (r"\left(",
    r"\right)"),
    (r"\frac{", "}{2}"), (r"\frac{1}{", "}"), (r"\sqrt{", "}"), (r"\sqrt[3]{", "}"), ("2^{", "}"),
    ("x_{", "}"), ("-", ""), ("", "!"), ("", r"\%"), ("", r"^\circ"), (r"\sin(", ")"),
    (r"\log_2(", ")"),
    (r"\gcd(4,", ")"), (r"\max\{", r",1\}"), (r"\binom{", "}{2}"), (r"\text{", "}"), (r"\mathrm{",
    "}"),
    (r"\boxed{", "}"), ("$", "$"), ("**", "**"), (r"\begin{pmatrix}", r"\end{pmatrix}"),
    (r"\begin{cases}", r"\end{cases}"), (r"\begin{vmatrix} 1 & ", r" \\ 2 & 3 \end{vmatrix}"),
    (r"\lfloor ", r"\rfloor"), ("f(x)=", ""), ("x \\in ", ""), (r"\{x \mid x > ", r"\}"),
    ("|AC| = ", ""),
    ("", r" \bmod 7"), ("", r"\text{ hours } 15 \text{ minutes}"), (r"\hat{", "}"), ("", "^T"),
    ("Answer: ", ""), ("the answer is ", "."), ("答案是", "。"), ("<think>", "</think>"),
    ("\\boxed{",
    ""),
)  # fmt: skip
JOINTS = (
    "+", "-", "*", "/", "^", "_", " ", ",", ", ", ";", " and ", r"\text{ and }", r"\cup ",
    r"\cdot ",
    "=", "<", r"\le ", ":", "&", r"\\", "|", r"\to ", r"\setminus ", "\n", ". ", " or ", "x",
    r"\pm ",
)  # fmt: skip
RUNS = (
    "cat ", "go ", "a", "x", "7", "1 ", "12,", "9,999,", "+", "-", "*", "/", "^", "_", "!", "%",
    "(",
    ")", "[", "]", "{", "}", "|", "=", "<", ",", ";", ":", ".", "...", r"\frac", r"\sqrt", r"\sin ",
    r"\text{a}", r"\pi", r"\{", r"\left(", "1+", "x^", "2^{", r"\frac{1}{", "1/", "f(", "&", r"\\ ",
    "Wait, ", "answer is ", "1 hour ", "5 m ", "km ", "\\boxed{", "½", "𝟓", "平", "\u0661",
    "\ud800", "'",
    "x' ", "0.1", "12:30 ", "or ", "and ", r"\cup", r"\pm", "$", "#### ", "**", "½ ",
)  # fmt: skip


def expression(source: random.Random, depth: int) -> str:
    """A random expression, nested up to `depth`."""
    choice = source.random()
    if depth <= 0 or choice < 0.25:
        return source.choice(ATOMS)
    if choice < 0.6:
        opening, closing = source.choice(WRAPPERS)
        return opening + expression(source, depth - 1) + closing
    if choice < 0.92:
        joint = source.choice(JOINTS)
        count = source.randrange(2, 4)
        return joint.join(expression(source, depth - 1) for _ in range(count))
    return source.choice(RUNS) * source.randrange(1, 40)


def nasty(source: random.Random) -> str:
    """An expression, one wrapped many times, or a long run of one thing."""
    choice = source.random()
    if choice < 0.9:
        return expression(source, source.randrange(1, 5))
    if choice < 0.96:
        opening, closing = source.choice(WRAPPERS)
        count = source.randrange(2, 200)
        return opening * count + source.choice(ATOMS) + closing * count
    return source.choice(RUNS) * source.randrange(50, 600)
