"""Equality of values and forms: laws over generated expressions, and an exact naive twin."""

import math
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from data.question import Question
from evaluator.answers import check
from evaluator.answers.expressions import NotAnExpressionError, parse
from evaluator.answers.judge import CannotDecideError
from evaluator.answers.latex import normalise
from evaluator.answers.math_equality import Reference
from evaluator.answers.number_words import number_from_words
from evaluator.answers.reading import read_forms
from evaluator.answers.trees import variables
from evaluator.answers.units import NotAUnitError, read_unit
from evaluator.answers.values import NotRationalError, NoValueError, TooLargeError, exact, inexact

integers = st.integers(-(10**6), 10**6)
fractions = st.fractions(min_value=-1000, max_value=1000, max_denominator=999)


def equals(gold: str, answer: str) -> bool:
    """By the exact rules alone."""
    return Reference(gold).equals(answer)


# An expression with its value, built together: the twin of parser and evaluation.
def expressions() -> st.SearchStrategy[tuple[str, Fraction]]:
    leaves = st.integers(0, 60).map(lambda n: (str(n), Fraction(n))) | st.tuples(
        st.integers(0, 40), st.integers(1, 99)
    ).map(lambda pair: (f"{pair[0]}.{pair[1]:02d}", pair[0] + Fraction(pair[1], 100)))

    def extend(
        inner: st.SearchStrategy[tuple[str, Fraction]],
    ) -> st.SearchStrategy[tuple[str, Fraction]]:
        pairs = st.tuples(inner, inner)
        return st.one_of(
            pairs.map(lambda p: (f"({p[0][0]} + {p[1][0]})", p[0][1] + p[1][1])),
            pairs.map(lambda p: (f"({p[0][0]}-{p[1][0]})", p[0][1] - p[1][1])),
            pairs.map(lambda p: (rf"{p[0][0]} \cdot {p[1][0]}", p[0][1] * p[1][1])),
            pairs.map(lambda p: (rf"\left({p[0][0]}\right)({p[1][0]})", p[0][1] * p[1][1])),
            pairs.filter(lambda p: p[1][1] != 0).map(
                lambda p: (rf"\frac{{{p[0][0]}}}{{{p[1][0]}}}", p[0][1] / p[1][1])
            ),
            inner.map(lambda p: (f"(-{p[0]})", -p[1])),
            inner.map(lambda p: (f"({p[0]})^{{2}}", p[1] ** 2)),
            inner.map(lambda p: (rf"\sqrt{{({p[0]})^2}}", abs(p[1]))),
            inner.map(lambda p: (rf"\left|{p[0]}\right|", abs(p[1]))),
        )

    return st.recursive(leaves, extend, max_leaves=8)


@given(expressions())
def test_values_are_exact(pair: tuple[str, Fraction]) -> None:
    text, value = pair
    assume(abs(value) < 10**40)
    assert exact(parse(normalise(text))) == value
    assert float(inexact(parse(normalise(text)))) == pytest.approx(float(value))


@given(fractions)
def test_a_fraction_equals_all_its_spellings_and_not_its_neighbour(value: Fraction) -> None:
    above, below = value.numerator, value.denominator
    gold = rf"\frac{{{above}}}{{{below}}}"
    sign, size = ("-" if value < 0 else ""), abs(value)
    whole, rest = divmod(size.numerator, size.denominator)
    spellings = [
        f"{above}/{below}",
        rf"{sign}\dfrac{{{abs(above)}}}{{{below}}}",
        rf"\frac{{{3 * above}}}{{{3 * below}}}",
        f"x = {above}/{below}",
        rf"\text{{The answer is }} {above}/{below}",
    ]
    if rest and whole:
        spellings += [
            rf"{sign}{whole}\frac{{{rest}}}{{{size.denominator}}}",
            f"{sign}{whole} {rest}/{size.denominator}",
        ]
    for spelling in spellings:
        assert equals(gold, spelling), spelling
        assert not equals(f"{above + 1}/{below}", spelling), spelling
    assert not equals(gold, f"{above + 1}/{below}")
    assert equals(gold, f"{-above}/{below}") == (above == 0)


@given(integers, st.sampled_from([",", "{,}", r"\,", r"\ ", ",\\!", " ", "'", "\u202f", "~", "_"]))
def test_thousands_in_all_spellings(value: int, separator: str) -> None:
    spelled = f"{abs(value):,}".replace(",", separator)
    spelled = ("−" if value < 0 else "") + spelled
    assert equals(str(value), spelled)
    assert not equals(str(value + 1), spelled)


@given(st.integers(-999, 999), st.integers(1, 3))
def test_leading_zeros_and_trailing_ones(value: int, zeros: int) -> None:
    sign = "-" if value < 0 else ""
    assert equals(str(value), f"{sign}{'0' * zeros}{abs(value)}")
    assert equals(str(value), f"{value}.{'0' * zeros}")
    assert not equals(str(value), f"{value}.{'0' * zeros}1")


@given(fractions.filter(lambda f: f.denominator not in (1, 2, 4, 5, 8, 10)), st.integers(4, 9))
def test_a_decimal_answers_a_fraction_if_it_is_right_to_its_digits(
    value: Fraction, digits: int
) -> None:
    assume(abs(value) >= 1)
    rounded = Fraction(round(value * 10**digits), 10**digits)
    text = f"{float(rounded):.{digits}f}"
    gold = f"{value.numerator}/{value.denominator}"
    assert equals(gold, text)
    wrong = rounded + Fraction(2, 10**digits)
    assert not equals(gold, f"{float(wrong):.{digits}f}")


@given(st.integers(1, 9), st.integers(5, 300))
def test_the_tolerance_is_relative(digit: int, places: int) -> None:
    gold = f"0.{'0' * places}{digit}"
    assert equals(gold, rf"{digit} \times 10^{{-{places + 1}}}")
    assert not equals(gold, f"0.{'0' * places}{digit % 9 + 1}")
    assert not equals(gold, "0")
    assert not equals(gold, f"0.{'0' * (places + 1)}{digit}")


@given(
    integers,
    integers,
    st.sampled_from(["()", "[]", "[)", "(]"]),
    st.sampled_from(["()", "[]", "[)", "(]"]),
)
def test_intervals_need_their_brackets(low: int, width: int, gold: str, answer: str) -> None:
    high = low + abs(width) + 1
    given_interval = rf"\left{answer[0]}{low}, {high}\right{answer[1]}"
    reference = f"{gold[0]}{low},{high}{gold[1]}"
    assert equals(reference, given_interval) == (gold == answer)
    if gold == "[)":
        assert equals(reference, rf"{low} \le x < {high}")
        assert not equals(reference, rf"{low} < x < {high}")


@given(
    st.lists(st.integers(-50, 50), min_size=2, max_size=6, unique=True),
    st.randoms(use_true_random=False),
)
def test_lists_in_any_order_tuples_in_theirs(values: list[int], source: object) -> None:
    shuffled = list(values)
    source.shuffle(shuffled)  # type: ignore[attr-defined]
    bare, mixed = ", ".join(map(str, values)), ", ".join(map(str, shuffled))
    assert equals(bare, mixed)
    assert equals(bare, rf"\{{{mixed}\}}")
    assert equals(f"({bare})", f"({mixed})") == (values == shuffled)
    shorter = ", ".join(map(str, shuffled[:-1]))
    assert not equals(bare, shorter)
    assert not equals(bare, f"{mixed}, 77")
    assert not equals(bare, f"{shorter}, {shuffled[0]}")


@given(st.lists(st.lists(st.integers(-9, 9), min_size=2, max_size=2), min_size=2, max_size=3))
def test_matrices_entry_by_entry(rows: list[list[int]]) -> None:
    body = r" \\ ".join(" & ".join(map(str, row)) for row in rows)
    gold = rf"\begin{{pmatrix}}{body}\end{{pmatrix}}"
    assert equals(gold, rf"\begin{{bmatrix}} {body} \end{{bmatrix}}")
    assert equals(gold, str(rows))
    changed = [list(row) for row in rows]
    changed[-1][0] += 1
    assert not equals(gold, str(changed))


@given(st.integers(-9, 9), st.integers(1, 9), st.integers(-9, 9))
def test_polynomials_in_another_order_and_factored(a: int, b: int, c: int) -> None:
    gold = f"{b}x^2 + ({a})x + ({c})"
    assert equals(gold, f"({c}) + ({a})x + {b}x^{{2}}")
    assert equals(gold, f"x({b}x + ({a})) + ({c})")
    assert not equals(gold, f"{b}x^2 + ({a})x + ({c + 1})")
    assert not equals(gold, f"{b + 1}x^2 + ({a})x + ({c})")
    assert equals(f"y = {gold}", gold)


@given(st.text(alphabet="0123456789+-*/^(){}[]\\fracsqrt pi,.=<>%$&_|!", max_size=40))
def test_an_answer_equals_itself_and_equality_is_symmetric_for_values(text: str) -> None:
    assume(text.strip())
    assert Reference(text).equals(text)
    for form in read_forms(text):
        assert form == read_forms(text)[0] or form in read_forms(text)


@given(expressions(), expressions())
def test_equality_of_values_is_equality_of_numbers(
    first: tuple[str, Fraction], second: tuple[str, Fraction]
) -> None:
    assume(max(abs(first[1]), abs(second[1])) < 10**40)
    assume("." not in first[0] + second[0])
    assert equals(first[0], second[0]) == (first[1] == second[1])


def test_what_is_too_large_is_no_hang() -> None:
    for text in ("3^{3^{3^{3^{3}}}}", "9^{9^{9^{9}}}", "10^{10^{10}}", "1000000!", "(10^{100})!"):
        with pytest.raises((TooLargeError, NotRationalError)):
            exact(parse(text))
        assert not equals("5", text)
    assert equals("3^{100000}", "9^{50000}")
    assert not equals("3^{100000}", "3^{100001}")


def test_what_has_no_value() -> None:
    for text in (r"\frac{1}{0}", "0^{-1}", "(-1)!", r"\infty"):
        with pytest.raises((NoValueError, NotRationalError)):
            exact(parse(text))
    with pytest.raises(NoValueError):
        inexact(parse(r"\tan(10^{30})"))


def test_small_is_not_zero_but_what_cancels_is() -> None:
    assert not equals("0", "e^{-1000}")
    assert equals("0", r"\sqrt{2}^2 - 2")
    assert equals("0", r"\sin(\pi)")
    assert equals(r"\sqrt{2}-\sqrt{2}", "0")


def test_symbolic_equality_is_asked_only_where_rules_end() -> None:
    for gold, answer in ((r"\sum_{k=1}^{10} k", "55"), ("|x|", "x")):
        with pytest.raises(CannotDecideError):
            equals(gold, answer)
    asked = []

    def symbolic(gold: str, answer: str) -> bool:
        asked.append((gold, answer))
        return True

    assert Reference(r"\sum_{k=1}^{10} k").equals("55", symbolic)
    assert asked == [(r"\sum_{k=1}^{10} k", "55")]
    assert not Reference("7").equals(r"7 \text{ or more}", symbolic)
    assert len(asked) == 1


def test_per_cent_depends_on_what_is_asked() -> None:
    assert not Reference("0.5").equals(r"0.5\%")
    assert Reference("0.5", "What percent is that?").equals(r"0.5\%")
    assert Reference("0.5").equals(r"50\%")


def test_variables_and_constants() -> None:
    assert variables(parse("2x + e^{i t} + a_1")) == {"x", "t", "a_1"}
    for text in ("f(x", "1 2", "+", "", r"\foo", "sentence here", "(((((" * 20):
        with pytest.raises(NotAnExpressionError):
            parse(text)


def test_units() -> None:
    assert read_unit("square inches") == read_unit("in", 2)
    assert read_unit("miles per hour") == read_unit("miles/hour") == read_unit("mph")
    assert read_unit("miles per hour") != read_unit("hours per mile")
    for words in ("or more", "and a half", "not", "x 3 y"):
        with pytest.raises(NotAUnitError):
            read_unit(words)
    assert equals(r"100 \text{ cm}", r"1 \text{ m}")
    assert not equals(r"100 \text{ cm}", r"1 \text{ m}^2")


@given(st.integers(0, 999_999))
def test_numbers_in_words(value: int) -> None:
    assert number_from_words(in_words(value)) == value


def in_words(value: int) -> str:
    """Spell a number, the obvious way."""
    small = [
        "zero",
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
        "thirteen",
        "fourteen",
        "fifteen",
        "sixteen",
        "seventeen",
        "eighteen",
        "nineteen",
    ]
    tens = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
    if value < 20:
        return small[value]
    if value < 100:
        unit = "" if value % 10 == 0 else f"-{small[value % 10]}"
        return tens[value // 10 - 2] + unit
    for size, name in ((1000, "thousand"), (100, "hundred")):
        if value >= size:
            rest = "" if value % size == 0 else f" and {in_words(value % size)}"
            return f"{in_words(value // size)} {name}{rest}"
    raise AssertionError


def test_roots_agree_with_floats() -> None:
    for number in range(1, 400):
        tree = parse(rf"\sqrt{{{number}}}")
        root = math.isqrt(number)
        if root * root == number:
            assert exact(tree) == root
        else:
            assert float(inexact(tree)) == pytest.approx(math.sqrt(number), rel=1e-15)


@pytest.mark.parametrize(
    ("gold", "answer", "same"),
    [
        (r"\Delta", r"\delta", False),
        (r"2\Phi + 1", r"2\phi + 1", False),
        (r"\Omega", r"\omega", False),
        ("Δ", "δ", False),
        (r"\phi", r"\varphi", True),
        (r"\Delta", "Δ", True),
        ("N^2", "n^2", True),
        ("a + 2A", "A + 2a", False),
        (r"\Delta X", r"\Delta x", True),
    ],
)
def test_greek_letters_have_two_cases_and_latin_ones_need_not(gold, answer, same):
    assert Reference(gold).equals(answer) is same


@pytest.mark.parametrize(
    ("prompt", "language", "comma"),
    [
        ("", "de", True),
        ("", "pt-BR", True),
        ("", "en", False),
        ("", "zh", False),
        ("", "", False),
        ("Wie viel ist die Hälfte von 25?", "", True),
        ("Wie viel ist die Hälfte von 25?", "en", False),
        ("Combien de litres y a-t-il dans la bouteille et le verre ?", "", True),
        ("What is half of 25?", "", False),
        (r"Let $a, b, o, e, i, y$ be real. Compute $e^o$.", "", False),
        ("Compute $x$ with a + o = e, a + e = o, da = do.", "", False),
        ("She sold pots for $2.74 per pot, 3 per box, in una con sono bag.", "", False),
        ("Equilateral triangles A B C, D E F: o e a é w z i y.", "", False),
    ],
)
def test_a_decimal_comma_only_where_the_language_has_one(
    prompt: str, language: str, comma: bool
) -> None:
    asked = Question(id="q", prompt=prompt, reference="12.5", answer_kind="math", language=language)
    assert check(asked, r"\boxed{12,5}").right == comma
    assert not check(asked, r"\boxed{125}").right


def test_a_point_where_decimals_have_a_comma() -> None:
    asked = Question(id="q", prompt="", reference="1.234", answer_kind="math", language="de")
    answers = ("1.234", "1,234", "1234", "1.234,0", "1.2355", "12,34", r"\frac{617}{500}")
    wanted = [True, True, True, True, False, False, True]
    assert [check(asked, rf"\boxed{{{answer}}}").right for answer in answers] == wanted


@pytest.mark.parametrize("sum_between", ["", "1+"])
def test_remainders_of_remainders_take_linear_time(sum_between: str) -> None:
    tree = parse(f"({sum_between}" * 25 + "x" + r" \bmod 7)" * 25)
    with pytest.raises(NotRationalError):  # two visits a level would be 2^25
        exact(tree)
    tree = parse(f"({sum_between}" * 25 + "5" + r" \bmod 7)" * 25)
    assert exact(tree) == (5 if not sum_between else (5 + 25) % 7)
