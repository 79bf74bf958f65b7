"""LiveCodeBench's evaluator, rule by rule: what is the same here, and what differs on purpose.

The rules are those of ``lcb_runner/evaluation/testing_util.py`` and
``compute_code_generation_metrics.py`` of LiveCodeBench/LiveCodeBench; docs/answers.md lists them.
"""

import pytest

from data.question import Question
from evaluator.answers import Checker, CodeTests
from evaluator.answers.code import outputs_equal, values_equal
from evaluator.answers.sandbox_runner import spelled
from tests.requirements import require_bubblewrap

ADD = "print(sum(map(int, input().split())))"


@pytest.fixture(scope="module")
def checker():
    require_bubblewrap()
    with Checker(workers=2) as made:
        yield made


def is_right(checker, program, tests):
    question = Question(id="q", prompt="", reference=tests.to_json(), answer_kind="code")
    return checker.check(question, f"```python\n{program}\n```\n").right


def printing(output, given="1 2\n"):
    return CodeTests(None, (given,), (output,), 4.0)


def returning(value, given="1\n2", name="f"):
    return CodeTests(name, (given,), (value,), 4.0)


SAME_OUTPUTS = {
    "white space around a line and around all lines does not count": ("\n 1 \n2\t\n\n", "1\n2"),
    "a carriage return at the end of a line is white space": ("1\r\n2\r\n", "1\n2"),
    "numbers are compared as decimals": ("1.50 2e3", "1.5 2000"),
    "underscores and other digits are those of Decimal": ("1_000 ١", "1000 1"),
    "infinities are numbers": ("inf", "Infinity"),
    "a text is compared before numbers are": ("nan sNaN", "nan sNaN"),
    "nothing equals nothing": (" \n", ""),
}
OTHER_OUTPUTS = {
    "as many lines": ("1\n\n2", "1\n2"),
    "no tolerance": ("0.30000000000000004", "0.3"),
    "as many elements": ("1 2 3", "1 2"),
    "white space inside counts where a line is no numbers": ("a  b", "a b"),
    "case counts": ("yes", "YES"),
    "one word makes a line no numbers": ("3 x", "3.0 x"),
    "not a number equals nothing": ("NaN", "nan"),
    "a signalling NaN raises nothing": ("sNaN", "1"),
    "digits beyond a float's count": ("50000000000000000", "50000000000000001"),
}


@pytest.mark.parametrize(("output", "expected"), SAME_OUTPUTS.values(), ids=SAME_OUTPUTS)
def test_outputs_that_are_equal(output, expected):
    assert outputs_equal(output, expected)


@pytest.mark.parametrize(("output", "expected"), OTHER_OUTPUTS.values(), ids=OTHER_OUTPUTS)
def test_outputs_that_differ(output, expected):
    assert not outputs_equal(output, expected)


SAME_VALUES = {
    "a tuple counts as a list at the top": ((1, 2), "[1, 2]"),
    "integers, floats and booleans of one value are one": ([1, 1.0, True], "[1.0, true, 1]"),
    "dictionaries have no order": ({"b": 1, "a": 2}, '{"a": 2, "b": 1}'),
    "minus zero is zero": (-0.0, "0"),
    "infinity": (float("inf"), "Infinity"),
    "null": (None, "null"),
    "texts": ("é\ud83d", '"é\\ud83d"'),
}
OTHER_VALUES = {
    "a tuple inside is no list": ([(1, 2)], "[[1, 2]]"),
    "keys that are numbers are no texts": ({1: 2}, '{"1": 2}'),
    "a text is no number": ("1", "1"),
    "no tolerance": (0.1 + 0.2, "0.3"),
    "a set is no list": ({1}, "[1]"),
    "none is no text": (None, '"null"'),
    "order counts": ([2, 1], "[1, 2]"),
    "integers are exact": (2**53, str(2**53 + 1)),
    "not a number equals nothing": ([float("nan")], "[NaN]"),
}


@pytest.mark.parametrize(("value", "expected"), SAME_VALUES.values(), ids=SAME_VALUES)
def test_values_that_are_equal(value, expected):
    assert values_equal(spelled(value), expected)


@pytest.mark.parametrize(("value", "expected"), OTHER_VALUES.values(), ids=OTHER_VALUES)
def test_values_that_differ(value, expected):
    if "NaN" in expected:
        with pytest.raises(Exception, match="NaN, which equals nothing"):
            returning(expected)
    else:
        assert not values_equal(spelled(value), expected)


RIGHT = {
    "sys.exit with a status": (f"{ADD}\nimport sys\nsys.exit(1)", printing("3")),
    "sys.exit with a text": (f"{ADD}\nsys.exit('done')", printing("3")),
    "exit": (f"{ADD}\nexit()", printing("3")),
    "SystemExit raised in a function": (
        f"def main():\n    {ADD}\n    raise SystemExit(3)\nmain()",
        printing("3"),
    ),
    "the last block under __main__ runs": (
        f"def main():\n    {ADD}\nif __name__ == '__main__':\n    main()",
        printing("3"),
    ),
    "integers of 50,000 digits print": ("print('1' + str(10**49_998)[1:] + '1')",
                                        printing("1" + "0" * 49_998 + "1")),
    "integers of 50,000 digits are read": (
        "print(int(input()) % 10)", printing("7", "3" * 49_999 + "7\n")
    ),
    "integers of 50,000 digits return": (
        "def f(a, b):\n    return 10**49_999 + b", returning("1" + "0" * 49_998 + "2")
    ),
    "integers of 50,000 digits are arguments": (
        "def f(a):\n    return a % 10", returning("7", "1" * 49_999 + "7")
    ),
    "the names of its prelude are there": (
        "d = defaultdict(int); q = deque([1]); x: List[int] = []\n"
        "assert gcd(4, 6) == 2 and bisect_left([1, 2], 2) == 1 and inf > 1\n" + ADD,
        printing("3"),
    ),
    "the recursion limit is 50,000": (
        "def f(n):\n    return 0 if n == 0 else 1 + f(n - 1)\nf(40_000)\n" + ADD, printing("3")
    ),
    "what is written to the error stream does not count": (
        f"{ADD}\nsys.stderr.write('4')", printing("3")
    ),
    "a prompt is output": ("a = input('3')", printing("3")),
    "a method of Solution": (
        "class Solution:\n    def f(self, a, b):\n        return a + b", returning("3")
    ),
    "a function": ("def f(a, b):\n    return a + b", returning("3")),
    "what stands under __main__ does not run where a function is called": (
        "def f(a, b):\n    return a + b\nif __name__ == '__main__':\n    sys.exit()", returning("3")
    ),
    "what a function prints does not count": (
        "def f(a, b):\n    print('x')\n    return a + b", returning("3")
    ),
}  # fmt: skip
WRONG = {
    "an exception after right output": (f"{ADD}\n1 / 0", printing("3")),
    "a syntax error": (f"{ADD}\n)", printing("3")),
    "integers of 50,001 digits do not print": ("print(10**50_000)", printing("1" + "0" * 50_000)),
    "SystemExit in a function gives no value": (
        "def f(a, b):\n    raise SystemExit(0)",
        returning("3"),
    ),
    "a function of another name": ("def g(a, b):\n    return a + b", returning("3")),
    "__main__ does not run where a function is called": (
        "if __name__ == '__main__':\n    def f(a, b):\n        return a + b",
        returning("3"),
    ),
    "os._exit with a status": (f"{ADD}\nimport os\nsys.stdout.flush()\nos._exit(1)", printing("3")),
    "KeyboardInterrupt": (f"{ADD}\nraise KeyboardInterrupt", printing("3")),
    "one test that fails": ("print(3)", CodeTests(None, ("1 2", "2 2"), ("3", "4"), 4.0)),
}


@pytest.mark.bubblewrap
@pytest.mark.parametrize(("program", "tests"), RIGHT.values(), ids=RIGHT)
def test_programs_that_are_right_there_and_here(program, tests, checker):
    assert is_right(checker, program, tests)


@pytest.mark.bubblewrap
@pytest.mark.parametrize(("program", "tests"), WRONG.values(), ids=WRONG)
def test_programs_that_are_wrong_there_and_here(program, tests, checker):
    assert not is_right(checker, program, tests)


RIGHT_HERE_ALONE = {
    "the standard input is a real one": (
        "import os\nprint(sum(map(int, sys.stdin.buffer.readline().split())))", printing("3")
    ),
    "lines have their end": ("assert sys.stdin.readline() == '1 2\\n'\nprint(3)", printing("3")),
    "the input's end is empty, and EOFError for input()": (
        "input()\nassert sys.stdin.readline() == ''\ntry:\n    input()\nexcept EOFError:\n"
        "    print(3)", printing("3"),
    ),
    "output past print counts": (
        "import os\nos.write(1, b'3')\nsys.stdout.buffer.write(b'')", printing("3")
    ),
    "a program is a module: global is global": (
        "n = 0\ndef add():\n    global n\n    n += 3\nadd()\nprint(n)", printing("3")
    ),
    "quit is there": (f"{ADD}\nquit()", printing("3")),
    "os._exit(0) is judged by what was printed": (
        f"{ADD}\nimport os\nsys.stdout.flush()\nos._exit(0)", printing("3")
    ),
    "resource is there": (f"import resource\n{ADD}", printing("3")),
    "__main__ anywhere runs": (
        f"if __name__ == '__main__':\n    {ADD}\npass", printing("3")
    ),
    "each test is a process of its own": (
        "seen = []\ndef f(a):\n    seen.append(a)\n    return len(seen)",
        CodeTests("f", ("1", "2"), ("1", "1"), 4.0),
    ),
    "no argument at all": ("def f():\n    return 3", returning("3", "")),
}  # fmt: skip
WRONG_HERE_ALONE = {
    "a function has to be the program's own": ("x = 1", returning("2", "4\n6", "gcd")),
    "equality is Python's own, not one that a program brings": (
        "class E:\n    def __eq__(self, other):\n        return True\n"
        "def f(a, b):\n    return E()", returning("3"),
    ),
    "return outside of a function is a syntax error": (f"{ADD}\nreturn", printing("3")),
    "numpy is not there": (f"import numpy\n{ADD}", printing("3")),
    "more than 2 GiB of memory": (f"x = bytearray(3 * 2**30)\n{ADD}", printing("3")),
}  # fmt: skip


@pytest.mark.bubblewrap
@pytest.mark.parametrize(("program", "tests"), RIGHT_HERE_ALONE.values(), ids=RIGHT_HERE_ALONE)
def test_right_here_alone_on_purpose(program, tests, checker):
    assert is_right(checker, program, tests)


@pytest.mark.bubblewrap
@pytest.mark.parametrize(("program", "tests"), WRONG_HERE_ALONE.values(), ids=WRONG_HERE_ALONE)
def test_wrong_here_alone_on_purpose(program, tests, checker):
    assert not is_right(checker, program, tests)
