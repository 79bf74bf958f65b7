"""The checker: caches, workers that hang or die, trouble of ours, order and repeatability."""

import os
import resource
import shlex
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from data.question import Question
from evaluator.answers import (
    BadReferenceError,
    Checker,
    CheckerError,
    Verdict,
    check,
    deadline,
    symbolic,
)
from evaluator.answers.cache import VerdictFile
from evaluator.answers.mathematics import MathJudge
from evaluator.answers.symbolic import SymbolicTimeoutError, SymbolicWorker
from evaluator.answers.verdict import FALLBACK, RULE_FAILED, TIME_LIMIT, TIME_LIMIT_REASON
from stp.campaign.row_counts import trouble_of
from tests.effort import tries

HARD = r"\sum_{k=1}^{10} k"
"""A reference that only symbolic equality reads."""


def question(reference: str, kind: str = "math", choices: tuple[str, ...] = ()) -> Question:
    return Question(id="q", prompt="", reference=reference, answer_kind=kind, choices=choices)


def fake_worker(tmp_path: Path, body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put another program in the worker's place: ready, then `body` for each line ``job``."""
    program = tmp_path / "worker"
    program.write_text(
        "#!/usr/bin/env python3\nimport json, os, sys, time\n"
        "print(json.dumps({'ready': True}), flush=True)\n"
        "for line in sys.stdin:\n    job = json.loads(line)\n"
        + "".join(f"    {row}\n" for row in body.split("\n"))
    )
    program.chmod(0o755)
    monkeypatch.setattr(symbolic.sys, "executable", str(program))


def test_check_needs_no_worker_for_exact_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(symbolic.sys, "executable", "/no/such/python")
    assert check(question("9"), r"\boxed{9}") == Verdict(
        right=True, answer="9", reason="right: equal to the reference"
    )
    assert check(question("9"), "hm").reason == "wrong: no answer found"


def test_math_verify_judges_what_the_rules_leave_open() -> None:
    with Checker(workers=1) as checker:
        assert checker.check(question(HARD), r"\boxed{55}").right
        assert not checker.check(question(HARD), r"\boxed{54}").right


def test_verdicts_come_in_order_and_each_answer_is_judged_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_worker(
        tmp_path,
        f"open({str(tmp_path / 'jobs')!r}, 'a').write(job['answer'] + chr(10))\n"
        "print(json.dumps({'equal': job['answer'] == '55', 'seconds': 0.0}), flush=True)",
        monkeypatch,
    )
    answers = ["54", "55", "53", "55", "54"] * 20
    with Checker(workers=3) as checker:
        verdicts = checker.check_many([(question(HARD), rf"\boxed{{{a}}}") for a in answers])
        again = checker.check_many([(question(HARD), rf"so \boxed{{{a}}}.") for a in answers])
    assert [verdict.answer for verdict in verdicts] == answers
    assert [verdict.right for verdict in verdicts] == [a == "55" for a in answers]
    assert again == verdicts
    assert sorted((tmp_path / "jobs").read_text().split()) == ["53", "54", "55"]


@pytest.mark.parametrize(
    "trouble",
    [
        "time.sleep(1000)",
        "os._exit(3)",
        "os.kill(os.getpid(), 9)",
        "os.close(1); time.sleep(1000)",
    ],
)
def test_a_hang_or_a_crash_costs_one_answer(
    trouble: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_worker(
        tmp_path,
        f"if job['answer'] == '13': {trouble}\n"
        "print(json.dumps({'equal': job['answer'] == '55', 'seconds': 0.0}), flush=True)",
        monkeypatch,
    )
    answers = ["55", "13", "54", "55", "13"]
    start = time.monotonic()
    with Checker(workers=1, limit_seconds=0.5) as checker:
        verdicts = checker.check_many([(question(HARD), rf"\boxed{{{a}}}") for a in answers])
    assert [verdict.right for verdict in verdicts] == [True, False, False, True, False]
    assert verdicts[1].reason == verdicts[4].reason == "wrong: time limit"
    assert verdicts[2].reason == "wrong: differs from the reference"
    assert time.monotonic() - start < 60  # far from the thousand seconds of the hang


def test_a_worker_that_never_ends_a_line_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is always something to read from it, so nobody ever waits in vain."""
    start = time.monotonic()

    def ready(readers: list[int], *_: object) -> tuple[list[int], list[int], list[int]]:
        assert time.monotonic() - start < 30
        return readers, [], []

    worker = SymbolicWorker()
    worker._process = subprocess.Popen(
        ["cat", "/dev/zero"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    )
    monkeypatch.setattr(symbolic.select, "select", ready)
    try:
        assert worker._read_line(0.2) is None
    finally:
        worker.kill()


def test_waiting_for_a_processor_is_no_part_of_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel says how long a process waited; here it says what the test says."""
    waited = [0.0]
    monkeypatch.setattr(deadline, "_waited_seconds", lambda process_id: waited[0])
    limit = deadline.Deadline(os.getpid(), 0.2)
    waited[0] = 0.2
    time.sleep(0.21)
    assert not limit.is_over()
    assert 0.0 < limit.remaining() <= 0.2
    time.sleep(0.21)
    assert limit.is_over()
    # A process that always waits ends as well.
    limit = deadline.Deadline(os.getpid(), 0.01)
    waited[0] = 1e9
    time.sleep(0.01 * deadline.MOST_LIMITS)
    assert limit.is_over()


@pytest.mark.parametrize("children", ["listed", "not listed"])
def test_what_a_process_below_waited_counts_too(
    children: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes share one core, each below a shell: each waits half of the time.

    Not every kernel lists a process's children.
    """
    if children == "not listed":
        monkeypatch.setattr(deadline, "_OWN_CHILDREN", Path("/proc/none"))
    if not Path("/proc/self/schedstat").exists():
        pytest.skip("this kernel does not count how long processes wait")
    spin = "import time\nstart = time.monotonic()\nwhile time.monotonic() - start < 1.5: pass"
    core = min(os.sched_getaffinity(0))
    program = shlex.join([sys.executable, "-c", spin])
    processes = [
        subprocess.Popen(
            ["/bin/sh", "-c", f"{program}; true"],
            preexec_fn=lambda: os.sched_setaffinity(0, {core}),
        )
        for _ in range(2)
    ]
    waited = 0.0
    while processes[0].poll() is None:
        waited = max(waited, deadline._waited_seconds(processes[0].pid))
        time.sleep(0.02)
    processes[1].wait()
    assert waited > 0.2


def test_a_hang_in_the_real_worker_is_bounded() -> None:
    worker = SymbolicWorker()
    with pytest.raises(SymbolicTimeoutError):
        worker.equal("5", "((9^{9^{9}})^{9^{9}})!", 1.0)
    assert worker.equal("2x", "x+x", 5.0)[0]
    worker.kill()


def cpu_seconds_of(answer: str) -> float:
    """CPU time of an answer, its worker's start included: of this process and of its children."""

    def used() -> float:
        usages = [
            resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        ]
        return sum(usage.ru_utime + usage.ru_stime for usage in usages)

    start = used()
    with Checker(workers=1) as checker:
        checker.check(question(HARD), r"\boxed{\sum_{k=1}^{9} k}")  # starts the worker
        checker.check(question("5"), rf"\boxed{{{answer}}}")
    return used() - start


def test_no_answer_costs_more_than_six_seconds() -> None:
    start_seconds = cpu_seconds_of("5")
    endless = (
        r"2^{10^{18}} \bmod 1000000007",
        r"\int_0^1 x^{x^x} dx",
        r"\prod_{k=1}^{10^7} k",
        r"\sin(10^{10^{10}})",
        r"2^{2^{100}}",
        r"x^{100}-37x^{51}+\sin x=0",
    )
    for answer in endless[: tries(6, 2)]:
        assert cpu_seconds_of(answer) - start_seconds < 6, answer


def test_a_worker_that_cannot_start_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(symbolic.sys, "executable", "/bin/false")
    with Checker(workers=1) as checker:
        with pytest.raises(CheckerError, match="did not start"):
            checker.check(question(HARD), r"\boxed{55}")
        monkeypatch.setattr(symbolic.sys, "executable", "/no/such/python")
        with pytest.raises(CheckerError, match="cannot start"):
            checker.check(question(HARD), r"\boxed{55}")
        # Nothing was remembered as a verdict.
        monkeypatch.undo()
        assert checker.check(question(HARD), r"\boxed{55}").right


def test_the_checker_works_from_several_threads() -> None:
    found: list[list[bool]] = []
    with Checker(workers=2) as checker:
        pairs = [(question(HARD), rf"\boxed{{{a}}}") for a in (54, 55, 56)]

        def work() -> None:
            found.append([verdict.right for verdict in checker.check_many(pairs)])

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == [[False, True, False]] * 4


def test_verdicts_are_kept_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "cache" / "verdicts.sqlite"
    with Checker(workers=1, cache_path=path) as checker:
        first = checker.check_many(
            [(question(HARD), r"\boxed{55}"), (question(HARD), r"\boxed{5}")]
        )
    monkeypatch.setattr(symbolic.sys, "executable", "/no/such/python")
    with Checker(workers=1, cache_path=path) as checker:
        again = checker.check_many(
            [(question(HARD), r"\boxed{55}"), (question(HARD), r"\boxed{5}")]
        )
        assert again == first
        with pytest.raises(CheckerError):
            checker.check(question(HARD + "+0"), r"\boxed{55}")


def test_another_version_of_the_checker_does_not_see_old_verdicts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    old = VerdictFile.question_key(question("9"))
    monkeypatch.setattr("evaluator.answers.cache.CHECKER_VERSION", "0.0")
    assert VerdictFile.question_key(question("9")) != old


def test_a_question_key_tells_all_parts_apart() -> None:
    keys = {
        VerdictFile.question_key(item)
        for item in (
            question("9"),
            question("10"),
            question("9", "task:sum"),
            question("A", "choice", ("a", "bc")),
            question("A", "choice", ("ab", "c")),
        )
    }
    assert len(keys) == 5


@pytest.mark.parametrize("place", ["extract", "quick", "slow"])
def test_what_a_rule_raises_is_trouble_on_one_response(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = getattr(MathJudge, place)

    def failing(self: MathJudge, text: str, *more: object) -> object:
        if "13" in text:
            raise RecursionError
        return rule(self, text, *more)

    def undecided(self: MathJudge, answer: str) -> None:
        return None

    if place == "slow":
        monkeypatch.setattr(MathJudge, "quick", undecided)
    monkeypatch.setattr(MathJudge, place, failing)
    asked = question("9")
    with Checker(cache_path=tmp_path / "v", workers=1) as checker:
        right, *troubled, wrong = checker.check_many(
            [
                (asked, text)
                for text in (r"\boxed{9}", r"\boxed{13}", "So he has $13.", r"\boxed{8}")
            ]
        )
        assert right.right
        assert wrong.reason == "wrong: differs from the reference"
        assert [trouble_of(verdict.reason) for verdict in troubled] == [RULE_FAILED] * 2
    file = VerdictFile(tmp_path / "v")
    assert file.get(VerdictFile.question_key(asked), "13") is None
    file.close()


def test_a_time_limit_on_a_fallback_answer_is_trouble() -> None:
    assert trouble_of(TIME_LIMIT_REASON + FALLBACK) == TIME_LIMIT


def test_time_limits_are_not_kept_on_disk(tmp_path: Path) -> None:
    file = VerdictFile(tmp_path / "v")
    key = VerdictFile.question_key(question("9"))
    file.put(
        [
            (key, "a", Verdict(right=False, answer="a", reason="wrong: time limit")),
            (key, "b\ud800", Verdict(right=True, answer="b\ud800", reason="right: yes")),
        ]
    )
    assert file.get(key, "a") is None
    assert file.get(key, "b\ud800") == Verdict(right=True, answer="b\ud800", reason="right: yes")
    file.close()


def test_a_cache_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "bad").write_text("this is no database, " * 100)
    with pytest.raises(CheckerError, match="name another file"):
        Checker(cache_path=tmp_path / "bad")
    connection = sqlite3.connect(tmp_path / "other")
    connection.execute("CREATE TABLE verdicts (x)")
    connection.close()
    with Checker(cache_path=tmp_path / "other") as checker, pytest.raises(CheckerError):
        checker.check(question(HARD), r"\boxed{55}")


@pytest.mark.parametrize(
    "bad",
    [
        question("9", "essay"),
        question(" "),
        question("E", "choice", ("a", "b")),
        question("AB", "choice", ("a", "b")),
        question("", "sum"),
        question("{}", "code"),
        question("no json", "code"),
        question('{"fn_name": null, "inputs": [], "outputs": []}', "code"),
        question('{"fn_name": null, "inputs": ["1"], "outputs": []}', "code"),
        question('{"fn_name": 3, "inputs": ["1"], "outputs": ["1"]}', "code"),
        question('{"fn_name": null, "inputs": [1], "outputs": ["1"]}', "code"),
        question(
            '{"fn_name": null, "inputs": ["1"], "outputs": ["1"], "time_limit_seconds": 0}', "code"
        ),
    ],
)
def test_a_reference_that_judges_nothing_is_an_error(bad: Question) -> None:
    with Checker() as checker, pytest.raises(BadReferenceError, match="question q"):
        checker.check(bad, r"\boxed{9}")
