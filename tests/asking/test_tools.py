import time

import pytest

from evaluator.answers import SandboxMissingError
from stp.asking import tools
from stp.asking.tools import calculate, get_tools, run_python, use, written_call, written_request
from tests.requirements import require_bubblewrap


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("45 * 67 * 89", "268335"),
        ("-3--4", "1"),
        ("2^10 + 2**3", "1032"),
        ("7 / 2", "3.5"),
        ("1 / 3", "1/3 = 0.333333333333"),
        ("0.1 + 0.2", "0.3"),
        ("sum([309, -772, -949, 518])", "-894"),
        ("sum([1, 2, 3]) / len([1, 2, 3])", "2"),
        ("mean([1, 2])", "1.5"),
        ("max(3, -9, 12)", "12"),
        ("sorted([3, 1, 2])", "[1, 2, 3]"),
        ("abs(-7) + abs(7)", "14"),
        ("sqrt(2)", "1.41421356237"),
        ("347 × 28 − 6 ÷ 2", "9713"),
        ("17 // 5 + 17 % 5", "5"),
        ("999999999999999999 * 999999999999999999", "999999999999999998000000000000000001"),
        ("`3 * 4 =`", "12"),
    ],
)
def test_the_calculator_is_exact(expression, value):
    assert calculate(expression) == value


@pytest.mark.parametrize(
    "expression",
    [
        "45 * 67 *",
        "",
        "hanoi(5)",
        "__import__('os').system('true')",
        "(1).__class__",
        "'a' * 9",
        "True + 1",
        "1 / 0",
        "9 ** 9 ** 9",
        "2 ** -999999999",
        "(-8) ** 0.5",
        "10 ** 400 * 1.5 ** 0.5",
        "[1, 2] + 3",
        "1 if 2 else 3",
        "lambda: 1",
        "x = 4",
        "(" * 500 + "1" + ")" * 500,
        "1" * 30_000,
    ],
)
def test_nonsense_is_a_line_that_says_so(expression):
    started = time.process_time()
    assert calculate(expression).startswith("Error: ")
    assert time.process_time() - started < 1


def test_a_long_chain_of_products_ends():
    assert calculate("*".join(["99999999999"] * 1600)).startswith(("Error: ", "9"))


@pytest.mark.bubblewrap
class TestPython:
    @pytest.fixture(autouse=True)
    def _bubblewrap(self):
        require_bubblewrap()

    def test_what_a_program_prints_comes_back(self):
        assert run_python("print(sorted([3, -1, 2]))") == "[-1, 2, 3]"
        assert run_python("```python\nx = 6 * 7\nx\n```") == "42"
        assert run_python("print(1)\n2 + 2") == "1\n4"
        assert run_python("x = 1") == "(no output)"

    def test_errors_come_back_as_text(self):
        assert "ZeroDivisionError" in run_python("1 / 0")
        assert "SyntaxError" in run_python("for")
        assert "network" not in run_python("print('ok')")

    def test_there_is_no_way_out(self):
        assert "Error" in run_python("import socket; socket.create_connection(('1.1.1.1', 53), 1)")
        assert "passwd" not in run_python("print(open('/etc/passwd').read())").splitlines()[:1]

    def test_output_is_cut(self):
        assert len(run_python("print('a' * 100000)")) < 2100


def test_without_a_sandbox_python_is_refused(monkeypatch):
    monkeypatch.setattr(tools.shutil, "which", lambda name: None)
    with pytest.raises(SandboxMissingError, match="bubblewrap"):
        get_tools(("calculator", "python"))
    assert [tool.name for tool in get_tools(("calculator",))] == ["calculator"]


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("Thought: multiply.\nAction: calculator\nAction Input: 6 * 7\nObservation:", "6 * 7"),
        ("**Action:** `calculator`\n**Action Input:** 6 * 7", "6 * 7"),
        ("Action: Calculator\nAction Input:\n6 * 7\n", "6 * 7"),
        (
            "Action: calculator\nAction Input: 1\nObservation: 1\nAction: calculator\n"
            "Action Input: 2 + 2\nObservation:",
            "2 + 2",
        ),
        ("Action: calculator", None),
        ("The action: I add.", None),
        ("It is 42.", None),
        ("", None),
    ],
)
def test_written_calls_are_read(text, call):
    found = written_call(text)
    assert found == (None if call is None else ("calculator", call))


def test_an_unknown_tool_is_named():
    known = get_tools(("calculator",))
    assert use(known, "code_executor", "1") == (
        "Error: no tool code_executor; there are calculator"
    )
    assert "- calculator:" in written_request(known)
