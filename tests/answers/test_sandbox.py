"""Programs in the sandbox: right ones pass, attacks fail, and the next program runs as usual."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import pytest

from data.question import Question
from evaluator.answers import (
    BadReferenceError,
    Checker,
    CheckerError,
    CodeTests,
    SandboxMissingError,
    sandbox,
)
from evaluator.answers.code import outputs_equal, values_equal
from evaluator.answers.sandbox import run_program
from evaluator.answers.sandbox_runner import spelled
from evaluator.answers.seccomp import filter_program
from tests.answers.attacks import ATTACKS, SUM
from tests.requirements import require_bubblewrap

LIMIT = 1.0


def response(program: str) -> str:
    return f"Here it is:\n```python\n{program}\n```\n"


def question(tests: CodeTests) -> Question:
    return Question(id="q", prompt="", reference=tests.to_json(), answer_kind="code")


def sum_question(limit: float = LIMIT) -> Question:
    return question(CodeTests(None, ("1 2\n", "30 4\n"), ("3\n", "34\n"), limit))


def children() -> set[int]:
    """Processes that descend from this one."""
    parents = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = entry.read_text(errors="replace").rpartition(")")[2].split()[:2]
        except OSError:
            continue  # it ended meanwhile
        if state != "Z":
            parents[int(entry.parent.name)] = int(parent)
    family = {os.getpid()}
    while True:
        more = {child for child, parent in parents.items() if parent in family} - family
        if not more:
            return family - {os.getpid()}
        family |= more


@pytest.fixture(scope="module")
def checker():
    require_bubblewrap()
    with Checker(workers=2) as made:
        yield made


HARMLESS = {"kill_parent"}
"""The parent is the sandbox's own first process: it cannot be killed, and the program goes on."""


@pytest.mark.bubblewrap
@pytest.mark.parametrize("name", ATTACKS)
def test_no_attack_succeeds(
    name: str, checker: Checker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("whole")
    monkeypatch.setenv("STP_SECRET", "secret")
    before = children()
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.0)
        program = ATTACKS[name].format(
            victim=str(victim), port=server.getsockname()[1], grader=os.getpid()
        )
        start = time.monotonic()
        attacked, next_one = checker.check_many(
            [(sum_question(), response(program)), (sum_question(), response(f"{SUM}  # {name}"))]
        )
        with pytest.raises(BlockingIOError):
            server.accept()
    if name not in HARMLESS:
        assert not attacked.right, attacked
        assert attacked.reason.startswith("wrong: test 1 of 2: ")
    assert next_one.right, next_one
    assert victim.read_text() == "whole"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["victim"]
    assert children() <= before
    assert time.monotonic() - start < 120


@pytest.mark.bubblewrap
def test_right_programs_pass(checker: Checker) -> None:
    programs = (
        SUM,
        "import sys\nprint(sum(int(x) for x in sys.stdin.read().split()))",
        "def main():\n    a, b = map(int, input().split())\n    print(a + b)\nif __name__ == "
        "'__main__':\n    main()",
        "import threading\nthreading.stack_size(1 << 26)\n"
        f"def main():\n    {SUM}\nt = threading.Thread(target=main)\nt.start()\nt.join()",
        f"open('/tmp/x', 'w').write('mine')\nassert open('/tmp/x').read() == 'mine'\n{SUM}",
        f"{SUM}\nexit()",
        "import sys\nsys.setrecursionlimit(10**6)\n"
        "def depth(n):\n    return 0 if n == 0 else 1 + depth(n - 1)\n"
        f"assert depth(20000) == 20000\n{SUM}",
        f"d = defaultdict(int)\nq = deque([1])\nassert gcd(4, 6) == 2 and List[int]\n{SUM}",
    )
    verdicts = checker.check_many([(sum_question(), response(program)) for program in programs])
    for program, verdict in zip(programs, verdicts, strict=True):
        assert verdict.right, (program, verdict.reason)
        assert verdict.reason == "right: all 2 tests passed"


@pytest.mark.bubblewrap
def test_a_program_that_never_ends_next_to_one_that_needs_half_its_limit(checker: Checker) -> None:
    limit = 2.0
    busy = f"import time\nwhile time.process_time() < {limit / 2}:\n    pass\n{SUM}"
    start = time.monotonic()
    endless, right = checker.check_many(
        [
            (sum_question(limit), response("while True:\n    pass")),
            (sum_question(limit), response(busy)),
        ]
    )
    assert endless.reason == "wrong: test 1 of 2: time limit"
    assert right.right, right
    assert time.monotonic() - start < 120


@pytest.mark.bubblewrap
def test_functions(checker: Checker) -> None:
    tests = CodeTests("f", ('[1, 2]\n"a b"', "[]\nnull"), ('[[1, 2], "a b"]', "[[], null]"), LIMIT)
    programs = {
        "def f(a, b):\n    return [a, b]": True,
        "def f(a, b):\n    return (a, b)": True,
        "class Solution:\n    def f(self, a, b):\n        print(a)\n        return [a, b]": True,
        "f = lambda a, b: [a, b]": True,
        "def f(a, b):\n    return [tuple(a), b]": False,
        "def f(a, b):\n    return [a, b, None]": False,
        "def f(a, b):\n    return {1, 2}": False,
        "def f(a, b):\n    return f(a, b)": False,
        "def g(a, b):\n    return [a, b]": False,
        "import os\ndef f(a, b):\n    os.write(3, b'x')\n    os._exit(0)": False,
    }
    verdicts = checker.check_many([(question(tests), response(program)) for program in programs])
    for (program, right), verdict in zip(programs.items(), verdicts, strict=True):
        assert verdict.right == right, (program, verdict.reason)


@pytest.mark.bubblewrap
def test_all_tests_are_run_and_the_failing_one_is_named(checker: Checker) -> None:
    count = 7
    tests = CodeTests(
        None,
        tuple(f"{n} 1\n" for n in range(count)),
        tuple(f"{n + 1}\n" for n in range(count)),
        LIMIT,
    )
    program = "a, b = map(int, input().split())\nprint(a + b if a < 5 else 0)"
    verdict = checker.check(question(tests), response(program))
    assert verdict.reason == "wrong: test 6 of 7: another output"
    assert verdict.answer == program + "\n"


@pytest.mark.bubblewrap
def test_unicode_and_large_inputs(checker: Checker) -> None:
    text = "é漢字🙂" * 50_000
    tests = CodeTests(None, (text + "\n",), (str(len(text)),), LIMIT)
    assert checker.check(question(tests), response("print(len(input()))")).right
    echo = CodeTests(None, (text,), (text,), LIMIT)
    assert checker.check(question(echo), response("print(input())  # é")).right


WHAT_IS_THERE = """
import os, pkgutil, sys
names = {module.name for module in pkgutil.iter_modules()} | set(sys.builtin_module_names)
print(*sorted(names - set(sys.stdlib_module_names)))
print(*(os.path.join(folder, name) for folder, names, _ in os.walk('/') for name in names
        if name.endswith('-packages') and os.listdir(os.path.join(folder, name))))
print(sys.flags.no_site, hash('a'))
"""
OF_PYTHON_ITSELF = re.compile(
    r"__(?:hello|phello)__|_distutils_system_mod|_sysconfigdata\w*(?:-\w+)*|sitecustomize|test|"
    r"_ctypes_test|_test\w+|_xx\w+|xx\w+"
)


@pytest.mark.bubblewrap
def test_nothing_but_the_standard_library_can_be_imported() -> None:
    require_bubblewrap()
    runs = [run_program(WHAT_IS_THERE, None, "", 20.0) for _ in range(2)]
    assert runs[0].trouble is None, runs[0]
    names, folders, _ = runs[0].output.decode().split("\n", 2)
    assert [name for name in names.split() if not OF_PYTHON_ITSELF.fullmatch(name)] == []
    assert folders == ""
    # The order of a set is the same in every run: so is the verdict.
    assert runs[0].output == runs[1].output
    for package in ("numpy", "sympy", "pip", "yaml", "pytest", "torch"):
        run = run_program(f"import {package}", None, "", 20.0)
        assert run.trouble is not None
        assert run.trouble.startswith("ModuleNotFoundError")


@pytest.mark.bubblewrap
@pytest.mark.parametrize(
    "program",
    [
        "import time\nwhile True:\n    start = time.process_time()\n"
        "    while time.process_time() - start < 0.02:\n        pass\n    time.sleep(0.98)",
        "import time\nwhile True:\n    print('x', flush=True)\n    time.sleep(0.01)",
        "import threading, time\nfor _ in range(30):\n"
        "    threading.Thread(target=time.sleep, args=(1000,)).start()",
    ],
)
def test_who_uses_little_of_a_processor_has_no_more_time(program: str) -> None:
    require_bubblewrap()
    start = time.monotonic()
    assert run_program(program, None, "", 1.0).trouble == "time limit"
    # Four seconds, and what a busy machine took from them; not eleven times as long.
    assert time.monotonic() - start < 40


REAPED = """
import ctypes, os, sys, time
from pathlib import Path
from evaluator.answers.sandbox import run_program
assert ctypes.CDLL(None).prctl(36, 1, 0, 0, 0) == 0  # as the first process of a container
fork = "import os, time\\nif os.fork() == 0:\\n    time.sleep(1000)\\n"
programs = ["while True: pass", "import time; time.sleep(99)", "print('x' * 2**26)", "print(1)",
            "import os; os.kill(os.getpid(), 9)"]
programs += [fork + "while True: pass"] if sys.argv[1] == "False" else []
for program in programs:
    run_program(program, None, "", 0.5, unsandboxed=sys.argv[1] == "False")
time.sleep(0.2)
mine = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
print([Path(f"/proc/{child}/stat").read_text() for child in mine])
"""


@pytest.mark.bubblewrap
@pytest.mark.parametrize("sandboxed", [True, False])
def test_no_zombie_is_left(sandboxed: bool) -> None:
    require_bubblewrap()
    path = os.environ["PATH"] if sandboxed else str(Path(sys.executable).parent)
    run = subprocess.run(
        [sys.executable, "-c", REAPED, str(sandboxed)],
        env={**os.environ, "PATH": path, "PYTHONPATH": str(Path.cwd())},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert run.stdout.strip() == "[]", run.stdout


def test_without_bubblewrap_nothing_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sandbox.shutil, "which", lambda name: None)
    victim = tmp_path / "ran"
    with Checker() as checker, pytest.raises(SandboxMissingError, match="--unsandboxed"):
        checker.check(sum_question(), response(f"open({str(victim)!r}, 'w')\n{SUM}"))
    assert not victim.exists()


def test_unsandboxed_if_said_in_so_many_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox.shutil, "which", lambda name: None)
    before = children()
    fork = "import os, time\nif os.fork() == 0:\n    os.close(1); os.close(2); time.sleep(1000)\n"
    with Checker(unsandboxed=True) as checker:
        right, endless, wrong, parent = checker.check_many(
            [
                (sum_question(), response(SUM)),
                (sum_question(), response("while True:\n    pass")),
                (sum_question(), response("print(0)")),
                (sum_question(), response(fork + SUM)),
            ]
        )
    assert right.right
    assert endless.reason == "wrong: test 1 of 2: time limit"
    assert wrong.reason == "wrong: test 1 of 2: another output"
    assert parent.answer is not None
    assert children() <= before


def test_a_sandbox_that_does_not_start_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'bwrap: no permissions' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr(sandbox.shutil, "which", lambda name: str(broken))
    with pytest.raises(CheckerError, match="no permissions"):
        run_program(SUM, None, "1 2", 1.0)


def test_lines_are_compared_as_text_then_as_numbers() -> None:
    equal = (
        ("3\n", "3"),
        (" 3 \n\n", "3"),
        ("1.0 2", "1 2.00"),
        ("a\n b ", "a\nb"),
        ("1e3", "1000"),
    )
    different = (
        ("3", "4"), ("3\n4", "3"), ("", "3"), ("a b", "a  b"), ("1.0001", "1"), ("3 x", "3.0 x"),
        ("YES", "Yes"), ("1 2", "1\n2"),
    )  # fmt: skip
    for output, expected in equal:
        assert outputs_equal(output, expected), (output, expected)
    for output, expected in different:
        assert not outputs_equal(output, expected), (output, expected)


def test_values_are_compared_as_in_python() -> None:
    assert values_equal(spelled([1, 2.0]), "[1.0, 2]")
    assert values_equal(spelled(True), "1")
    assert not values_equal(spelled("1"), "1")
    assert not values_equal(None, "null")
    assert not values_equal("[", "[]")


def test_code_tests_are_written_and_read_back() -> None:
    tests = CodeTests("f", ("1\n2",), ("3",), 1.5)
    assert CodeTests.from_json(tests.to_json()) == tests
    document = json.loads(tests.to_json())
    assert sorted(document) == ["fn_name", "inputs", "outputs", "time_limit_seconds"]
    assert CodeTests.from_json(json.dumps({**document, "time_limit_seconds": 2})) == (
        CodeTests("f", ("1\n2",), ("3",), 2.0)
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"inputs": [], "outputs": []}, "empty"),
        ({"inputs": ["1"]}, "1 inputs but 2 outputs"),
        ({"inputs": "12", "outputs": "34"}, "lists of texts"),
        ({"inputs": [1, 2]}, "lists of texts"),
        ({"fn_name": 3}, "fn_name"),
        ({"fn_name": "a b"}, "is not a name of a function"),
        ({"fn_name": "f\0"}, "is not a name of a function"),
        ({"outputs": ["3", "yes"]}, "output 2 of function f is not JSON: 'yes'"),
        ({"outputs": ["3", ""]}, "output 2 of function f is not JSON"),
        ({"outputs": ["3", "[" * 100_000]}, "nested too deeply"),
        ({"outputs": ["3", "[NaN]"]}, "NaN, which equals nothing"),
        ({"outputs": ["3", "9" * 50_001]}, "more than 50,000 digits"),
        ({"inputs": ["1\n2", "1 2"]}, "input 2 of function f is not JSON"),
        ({"inputs": ["1\n2", "'a'"]}, "input 2 of function f is not JSON"),
        ({"time_limit_seconds": 0}, "greater than 0"),
        ({"time_limit_seconds": -1.0}, "greater than 0"),
        ({"time_limit_seconds": float("nan")}, "greater than 0"),
        ({"time_limit_seconds": float("inf")}, "at most 3600"),
        ({"time_limit_seconds": 10**400}, "at most 3600"),
        ({"time_limit_seconds": True}, "a number of seconds"),
        ({"time_limit_seconds": "6"}, "a number of seconds"),
        ({"time_limit_seconds": None}, "a number of seconds"),
    ],
)
def test_tests_that_no_program_could_pass_are_refused(change: dict, message: str) -> None:
    document = {"fn_name": "f", "inputs": ["1\n2", "2"], "outputs": ["3", "4"]} | change
    with pytest.raises(BadReferenceError, match=message) as caught:
        CodeTests.from_json(json.dumps(document))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("text", ["", "[]", "3", "null", "{", "[" * 100_000, '{"fn_name": "f"}'])
def test_what_is_no_document_of_tests_is_refused(text: str) -> None:
    with pytest.raises(BadReferenceError, match="must be a JSON object") as caught:
        CodeTests.from_json(text)
    assert "\n" not in str(caught.value)


def test_a_limit_beyond_floats_is_refused() -> None:
    text = '{"fn_name": null, "inputs": ["1"], "outputs": ["1"], "time_limit_seconds": 1e400}'
    with pytest.raises(BadReferenceError, match="time_limit_seconds"):
        CodeTests.from_json(text)


def test_spaces_around_a_line_of_output_do_not_count() -> None:
    assert outputs_equal("yes \n  no\t\nmaybe", "yes\nno\nmaybe ")
    assert not outputs_equal("y es\nno\nmaybe", "yes\nno\nmaybe")


def test_large_outputs_are_compared_in_little_memory() -> None:
    lines = ("1 " * 100_000, "1\n" * 100_000, "1 1\n" * 50_000)
    tracemalloc.start()
    try:
        for text in lines:
            for expected in (text + "1.0", text.replace("1", "1.0"), "1 1 2", "x"):
                tracemalloc.reset_peak()
                before = tracemalloc.get_traced_memory()[0]
                outputs_equal(text, expected)
                assert tracemalloc.get_traced_memory()[1] - before < 2**20
    finally:
        tracemalloc.stop()


def test_the_filter_is_a_whole_program() -> None:
    for machine in ("x86_64", "aarch64"):
        program = filter_program(machine)
        assert program is not None
        assert len(program) % 8 == 0
        assert len(program) // 8 < 4096
    assert filter_program("pdp11") is None


def test_the_runner_needs_nothing_but_the_standard_library(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text(SUM)
    read_end, write_end = os.pipe()
    run = subprocess.run(
        [sys.executable, "-I", "-S", str(Path(sandbox.__file__).with_name("sandbox_runner.py")),
         "stdin", str(tmp_path / "p.py"), "5", str(1 << 31), str(1 << 20), str(write_end)],
        input="1 2", capture_output=True, text=True, pass_fds=[write_end], check=False,
    )  # fmt: skip
    os.close(write_end)
    assert os.read(read_end, 10) == b"s"
    os.close(read_end)
    assert run.stdout == "3\n", run.stderr
    assert signal.SIGXCPU  # the limit's signal exists here
