"""Runs: asked once, resumed, graded, written strictly; one bad response costs only itself."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from data.errors import ConfigError, EngineError, MisuseError, StoreError, StoreMismatchError
from data.puzzles import get_puzzle
from data.tasks import TaskParameters, get_task, task_names
from data.tasks.base import make_questions
from evaluator.runs.plain import from_plain, to_plain
from evaluator.thinkbench import ThinkConfig, grade, load_run
from evaluator.thinkbench import run as run_model
from evaluator.thinkbench.questions import make_request, plan_questions
from stp.asking import CallableResponder, ModelSpec, Settings
from tests.requirements import require_module

SMALL = ThinkConfig(tasks=("sum", "mode", "comparison"), samples=4, folds=2, sizes=(8,))


class Solver:
    """Answers as told: right for some, in some words; counts its calls."""

    def __init__(self, config=SMALL, *, wrong=(), broken=(), words=""):
        self.references = {
            make_request(item, config).prompt: item for item in plan_questions(config)
        }
        self.wrong, self.broken, self.words = set(wrong), set(broken), words
        self.calls = Counter()

    def __call__(self, prompt):
        item = self.references[prompt]
        self.calls[item.id] += 1
        if item.id in self.broken:
            raise ConnectionError("line is dead")
        reference = item.question.reference.split(" or ")[0]
        answer = "1234567" if item.id in self.wrong else reference
        return {"text": f"{self.words}\\boxed{{{answer}}}", "output_tokens": 10 + len(self.calls)}


def strict(text):
    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def test_a_run_writes_what_it_was_and_what_came_out(tmp_path):
    wrong = ("sum-fold0-size8-1", "sum-fold1-size8-0")
    solver = Solver(wrong=wrong)
    run = run_model(
        CallableResponder(solver, name="solver"),
        tmp_path,
        SMALL,
        attributes={"parameters": 7e9},
    )
    assert run.complete
    overall = run.measures.overall
    assert overall.responses == 24
    assert overall.right == 22
    assert run.measures.tasks["sum"].accuracy.mean == 6 / 8
    assert overall.accuracy.mean == pytest.approx((6 / 8 + 1 + 1) / 3)
    assert run.measures.categories["statistics"].tasks == ("mode",)
    record = strict((tmp_path / "run.json").read_text())
    assert record["asked"]["seed"] == SMALL.seed
    assert record["models"]["model"]["model"] == "solver"
    assert record["attributes"] == {"parameters": 7e9}
    assert record["started"] <= record["finished"]
    assert "stp-engine" in record["versions"]
    for name in ("responses.jsonl", "graded.jsonl", "questions.jsonl"):
        lines = (tmp_path / name).read_text().splitlines()
        assert len([strict(line) for line in lines]) == 24
    strict((tmp_path / "measures.json").read_text())
    assert (tmp_path / "tasks.csv").read_text().startswith("task,n,accuracy")
    loaded = load_run(tmp_path)
    assert loaded.measures == run.measures
    assert loaded.graded == run.graded
    assert set(solver.calls.values()) == {1}


def test_a_second_run_asks_nothing_and_another_configuration_is_refused(tmp_path):
    solver = Solver()
    responder = CallableResponder(solver, name="solver")
    first = run_model(responder, tmp_path, SMALL)
    again = run_model(responder, tmp_path, SMALL)
    assert first.graded == again.graded
    assert set(solver.calls.values()) == {1}
    other = ThinkConfig(tasks=SMALL.tasks, samples=4, folds=2, sizes=(8,), seed=1)
    with pytest.raises(StoreMismatchError, match="seed is 20260721 in the folder and 1 now"):
        run_model(responder, tmp_path, other)
    with pytest.raises(StoreMismatchError, match=r'model\.model is "solver"'):
        run_model(CallableResponder(solver, name="someone else"), tmp_path, SMALL)


def test_one_bad_response_costs_only_itself_and_is_asked_again(tmp_path):
    bad = "mode-fold1-size8-2"
    solver = Solver(broken=[bad])
    responder = CallableResponder(solver, name="solver")
    run = run_model(responder, tmp_path, SMALL)
    assert run.failed == {bad: "ConnectionError: line is dead"}
    assert run.measures.overall.responses == 23
    # A failure is no wrong answer.
    assert run.measures.overall.right == 23
    solver.broken = set()
    mended = run_model(responder, tmp_path, SMALL)
    assert mended.complete
    assert mended.measures.overall.responses == 24
    assert solver.calls[bad] == 2
    assert sum(solver.calls.values()) == 25


def test_separators_of_unicode_in_an_answer_do_not_break_a_run(tmp_path):
    def strange(prompt):
        return {"text": "\\boxed{\u20281\u20282\x85 3}", "output_tokens": 3}

    run = run_model(CallableResponder(strange, name="strange"), tmp_path, SMALL)
    assert run.complete
    assert load_run(tmp_path).measures.overall == run.measures.overall


def test_a_model_that_always_fails_stops_the_run_and_keeps_what_there_is(tmp_path):
    items = plan_questions(SMALL)
    solver = Solver(broken=[item.id for item in items[6:]])
    with pytest.raises(EngineError, match="10 requests in a row"):
        run_model(CallableResponder(solver, name="solver"), tmp_path, SMALL)
    solver.broken = set()
    run = run_model(CallableResponder(solver, name="solver"), tmp_path, SMALL)
    assert run.complete
    assert all(solver.calls[item.id] == 1 for item in items[:6])


KILLED = """
import sys, time
from evaluator.thinkbench import run as run_model
from stp.asking import CallableResponder
from tests.thinkbench.test_run import SMALL, Solver
solver = Solver()
def hanging(prompt):
    if sum(solver.calls.values()) == 12:
        time.sleep(1000)
    return solver(prompt)
run_model(CallableResponder(hanging, name="solver"), sys.argv[1], SMALL)
"""


def test_a_killed_run_goes_on_where_it_was(tmp_path):
    root = Path(__file__).parents[2]
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path)],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        stdout=subprocess.PIPE,
    )
    responses = tmp_path / "responses.jsonl"
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if responses.exists() and responses.read_bytes().count(b"\n") >= 5:
            break
        time.sleep(0.01)
    else:
        raise AssertionError("five responses did not come")
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    kept = responses.read_bytes().count(b"\n")
    assert 5 <= kept < 24
    with responses.open("ab") as file:
        file.write(b'{"id": "mode-fold0')
    solver = Solver()
    run = run_model(CallableResponder(solver, name="solver"), tmp_path, SMALL)
    assert run.complete
    assert sum(solver.calls.values()) == 24 - kept


def test_a_run_that_is_at_work_is_not_disturbed(tmp_path):
    inner = {}

    def nosy(prompt):
        try:
            run_model(CallableResponder(Solver(), name="solver"), tmp_path, SMALL)
        except StoreError as error:
            inner["error"] = str(error)
        return "\\boxed{1}"

    run_model(CallableResponder(nosy, name="solver"), tmp_path, SMALL)
    assert "works on this" in inner["error"]


def test_grading_again_needs_no_model(tmp_path):
    run = run_model(CallableResponder(Solver(), name="solver"), tmp_path, SMALL)
    (tmp_path / "graded.jsonl").unlink()
    with pytest.raises(MisuseError, match="is not graded; `stp think grade"):
        load_run(tmp_path)
    assert grade(tmp_path).measures == run.measures
    with pytest.raises(MisuseError, match="no run here"):
        load_run(tmp_path / "nowhere")
    (tmp_path / "run.json").write_text("{}")
    with pytest.raises(StoreError, match="not a record"):
        load_run(tmp_path)


def test_a_box_is_told_from_another_mark(tmp_path):
    config = ThinkConfig(tasks=("sum",), samples=2, folds=1, sizes=(8,))
    items = {make_request(item, config).prompt: item for item in plan_questions(config)}
    run = run_model(
        CallableResponder(lambda prompt: f"The answer is {items[prompt].question.reference}."),
        tmp_path,
        config,
    )
    assert run.measures.overall.accuracy.mean == 1
    assert run.measures.overall.following.mean == 0
    # Nobody counted tokens: they are an estimate, and say so.
    assert run.measures.overall.estimated == 2
    assert run.graded[0].tokens == round(4 * 1.33)
    assert run.measures.overall.thinking_tokens is None


def test_questions_are_those_of_the_benchmarks_and_ids_are_unique():
    config = ThinkConfig(samples=6, folds=2)
    items = plan_questions(config)
    assert len({item.id for item in items}) == len(items) == 14 * 6 * 2
    parameters = TaskParameters(samples=6, fold=1)
    expected = make_questions(get_task("sum"), parameters, 6)
    assert [i.question for i in items if i.task == "sum" and i.fold == 1] == expected
    assert {item.size for item in items if item.task == "multiplication"} == {2, 4, 8}
    seeds = {make_request(item, config).seed for item in items}
    assert len(seeds) == len(items)


def test_configurations_go_to_json_and_back():
    config = ThinkConfig(
        tasks=("sum", "sorting", "tower_of_hanoi"),
        samples=3,
        task_sizes={"sorting": (4, 5)},
        sizes=(8,),
        style="ultra-concise",
        settings=Settings(tools=("calculator",), thinking_tokens=50),
    )
    assert from_plain(ThinkConfig, json.loads(json.dumps(to_plain(config))), "x") == config
    same = from_plain(ThinkConfig, {**to_plain(config), "style": "concise"}, "x")
    assert same.questions_hash() == config.questions_hash()
    with pytest.raises(ConfigError, match="x: tasks is empty"):
        from_plain(ThinkConfig, {**to_plain(config), "tasks": []}, "x")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"tasks": ()}, "tasks is empty"),
        ({"tasks": ("summ",)}, "no task 'summ'; did you mean 'sum'"),
        ({"tasks": ("n_quens",)}, "no task 'n_quens'; did you mean 'n_queens'"),
        ({"style": "standart"}, "no prompt style 'standart'; did you mean 'standard'"),
        ({"folds": 0}, "folds"),
        ({"folds": 10**12}, "questions .* at most 10,000,000"),
        ({"samples": float("inf")}, "samples is inf; a whole number"),
        ({"seed": "3"}, "seed is '3'; a whole number"),
        ({"style": "rude"}, "no prompt style"),
        ({"low": 5, "high": 5}, "range"),
        ({"tasks": ("sum",), "task_sizes": {"mode": (8,)}}, "not among the tasks"),
    ],
)
def test_configurations_that_cannot_be_are_refused(values, message):
    with pytest.raises(MisuseError, match=message):
        ThinkConfig(**values)


def test_the_styles_ask_for_less_and_less():
    lengths = []
    for style in ("standard", "concise", "ultra-concise"):
        config = ThinkConfig(tasks=("sum",), samples=1, folds=1, style=style)
        request = make_request(plan_questions(config)[0], config)
        assert "\\boxed" in request.prompt
        lengths.append(len(request.prompt))
    assert len(set(lengths)) == 3


@pytest.mark.slow
def test_all_fourteen_tasks_run_on_the_demo_model(tmp_path):
    config = ThinkConfig(
        samples=1, folds=1, sizes=(8,), settings=Settings(max_tokens=150, temperature=0.1)
    )
    run = run_model(ModelSpec(model="demo"), tmp_path, config)
    assert run.complete
    assert set(run.measures.tasks) == set(task_names())
    assert run.measures.overall.thinking_tokens.mean > 10
    for row in run.graded:
        assert row.tokens >= row.thinking_tokens + row.answer_tokens
        assert row.right == (row.error is None)


HANOI = json.dumps({"disks": 2, "pegs": 3, "start": 2, "target": 1})
MOVES = "\n".join(
    (
        "Move disk 1 from peg 2 to peg 3",
        "Move disk 2 from peg 2 to peg 1",
        "Move disk 1 from Peg 3 to Peg 1",
    )
)


@pytest.mark.parametrize(
    ("text", "answered", "right"),
    [
        (MOVES, True, True),
        (
            f"First:\nMove disk 1 from peg 2 to peg 1\nNow:\n\n```\n{MOVES}\n```\nDone.",
            True,
            True,
        ),
        ("1. " + MOVES.replace("\n", ".\n2. ") + ".", True, True),
        (MOVES.replace("to peg 3", "to peg 1"), True, False),
        ("Move disk 2 from peg 2 to peg 1", True, False),
        ("Move disk 1 from peg 9 to peg 1", True, False),
        (MOVES.rsplit("\n", 1)[0], True, False),
        ("It takes three moves.", False, False),
        ("", False, False),
    ],
)
def test_towers_are_played(text, answered, right):
    judged = get_puzzle("tower_of_hanoi").judge(HANOI, text)
    assert (judged.answer is not None, judged.right) == (answered, right)


BOARD = json.dumps(["_ Q _ _", "_ _ _ _", "_ _ _ _", "_ _ _ _"])


@pytest.mark.parametrize(
    ("text", "answered", "right"),
    [
        ("_ Q _ _\n_ _ _ Q\nQ _ _ _\n_ _ Q _", True, True),
        ("The board:\n```\n. Q . .\n. . . Q\nQ . . .\n. . Q .\n```\nAll fit.", True, True),
        ("_Q__\n___Q\nQ___\n__Q_", True, True),
        ("_ _ Q _\nQ _ _ _\n_ _ _ Q\n_ Q _ _", True, False),
        ("_ Q _ _\n_ _ Q _\nQ _ _ _\n_ _ _ Q", True, False),
        ("_ Q _ _\n_ _ _ Q\nQ _ _ _", False, False),
        ("__import__('os').system('true')", False, False),
    ],
)
def test_boards_are_looked_at(text, answered, right):
    judged = get_puzzle("n_queens").judge(BOARD, text)
    assert (judged.answer is not None, judged.right) == (answered, right)


def test_puzzles_come_from_reasoning_gym_and_their_own_solutions_are_right(tmp_path):
    gym = require_module("reasoning_gym")
    config = ThinkConfig(
        tasks=("n_queens", "tower_of_hanoi"),
        samples=3,
        folds=1,
        task_sizes={"n_queens": (6,), "tower_of_hanoi": (3, 4)},
    )
    items = plan_questions(config)
    assert [item.size for item in items] == [6, 6, 6, 3, 4, 3]
    again = plan_questions(config)
    assert [item.question for item in again] == [item.question for item in items]
    dataset = gym.create_dataset("tower_of_hanoi", size=5, seed=3, min_disks=4, max_disks=4)
    puzzle = get_puzzle("tower_of_hanoi")
    for entry in dataset:
        if entry["metadata"]["num_pegs"] == 3:
            _, reference = puzzle.ask(entry["metadata"])
            assert puzzle.judge(reference, entry["answer"]).right
    board = gym.create_dataset("n_queens", size=5, seed=3, n=6, min_remove=5, max_remove=5)
    for entry in board:
        _, reference = get_puzzle("n_queens").ask(entry["metadata"])
        assert get_puzzle("n_queens").judge(reference, entry["answer"]).right
    run = run_model(CallableResponder(lambda prompt: "I do not know."), tmp_path, config)
    assert run.measures.overall.errors["unrelated"] == 6
    with pytest.raises(MisuseError, match="size 99"):
        plan_questions(ThinkConfig(tasks=("n_queens",), samples=1, sizes=(99,)))


def _edited(lines):
    row = json.loads(lines[0])
    return [json.dumps({**row, "right": not row["right"]}), *lines[1:]]


@pytest.mark.parametrize(
    "change",
    [
        _edited,
        lambda lines: [*lines, lines[0]],
        lambda lines: lines[1:],
        lambda lines: [line.replace('"tokens": 1', '"tokens": -1') for line in lines],
        lambda lines: [*lines, lines[0].replace("comparison", "nonsense")],
        lambda lines: [*lines[:-1], lines[-1][:20]],
    ],
    ids=["verdict", "duplicate", "missing", "negative", "never asked", "torn"],
)
def test_graded_rows_that_were_changed_are_made_anew(tmp_path, caplog, change):
    wrong = ("sum-fold0-size8-1",)
    run = run_model(CallableResponder(Solver(wrong=wrong), name="solver"), tmp_path, SMALL)
    path = tmp_path / "graded.jsonl"
    path.write_text("\n".join(change(path.read_text().split("\n")[:-1])) + "\n")
    loaded = load_run(tmp_path)
    assert loaded.graded == run.graded
    assert loaded.measures == run.measures
    (said,) = caplog.messages
    assert "is not as it was written" in said and "graded again" in said
    grade(tmp_path)
    caplog.clear()
    assert load_run(tmp_path).graded == run.graded
    assert not caplog.messages


def test_graded_rows_follow_their_responses_and_the_parser(tmp_path, caplog, monkeypatch):
    run_model(CallableResponder(Solver(), name="solver"), tmp_path, SMALL)
    responses = tmp_path / "responses.jsonl"
    lines = responses.read_text().split("\n")
    row = json.loads(lines[0])
    responses.write_text("\n".join([json.dumps({**row, "text": "nothing"}), *lines[1:]]))
    assert load_run(tmp_path).measures.overall.right == 23
    assert "responses.jsonl: has changed since the run was graded" in caplog.text
    grade(tmp_path)
    (tmp_path / "grading.json").unlink()
    load_run(tmp_path)
    assert "nothing says what the rows are made from" in caplog.text
    grade(tmp_path)
    grading = tmp_path / "grading.json"
    values = json.loads(grading.read_text())
    values["made_from"]["further"] = None
    grading.write_text(json.dumps(values))
    load_run(tmp_path)
    assert "does not say what this version's rows are made from" in caplog.text
    grade(tmp_path)
    monkeypatch.setattr("evaluator.runs.graded.CHECKER_VERSION", "another")
    load_run(tmp_path)
    assert "another version of the answer checker" in caplog.text


def test_a_run_without_its_responses_is_refused_and_keeps_its_grades(tmp_path):
    run_model(CallableResponder(Solver(), name="solver"), tmp_path, SMALL)
    before = (tmp_path / "graded.jsonl").read_bytes()
    (tmp_path / "responses.jsonl").unlink()
    for read in (load_run, grade):
        with pytest.raises(StoreError, match=r"responses\.jsonl: is not there"):
            read(tmp_path)
    assert (tmp_path / "graded.jsonl").read_bytes() == before


def test_a_run_grows_into_what_a_fresh_one_would_be_and_never_shrinks(tmp_path):
    more = ThinkConfig(tasks=SMALL.tasks, samples=6, folds=3, sizes=(8,))

    def ask(folder, config):
        calls = []

        def answer(prompt):
            calls.append(prompt)
            return rf"\boxed{{{len(prompt)}}}"

        return run_model(CallableResponder(answer, name="counter"), folder, config), calls

    small, _ = ask(tmp_path / "grown", SMALL)
    grown, calls = ask(tmp_path / "grown", more)
    fresh, _ = ask(tmp_path / "fresh", more)
    assert len(calls) == len(plan_questions(more)) - len(plan_questions(SMALL))
    timeless = [[replace(row, seconds=0.0) for row in run.graded] for run in (grown, fresh)]
    assert timeless[0] == timeless[1]
    assert {row.id for row in small.graded} < {row.id for row in grown.graded}
    assert load_run(tmp_path / "grown").config == more
    with pytest.raises(StoreMismatchError, match="has 6 samples, and 4 are asked for"):
        ask(tmp_path / "grown", SMALL)


def test_a_function_of_another_file_does_not_go_on_with_a_run(tmp_path):
    config = ThinkConfig(tasks=("sum",), samples=1, folds=1, sizes=(8,))
    for folder, answer in (("a", 1), ("b", 2)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "own.py").write_text(
            f"def ask(prompt):\n    return '\\\\boxed{{{answer}}}'\n"
        )
    run_model(f"{tmp_path}/a/own.py:ask", tmp_path / "run", config)
    with pytest.raises(StoreMismatchError, match=r'model\.source_hash is "'):
        run_model(f"{tmp_path}/b/own.py:ask", tmp_path / "run", config)
    assert run_model(f"{tmp_path}/a/own.py:ask", tmp_path / "run", config).complete


def test_a_folder_without_an_answer_takes_another_configuration(tmp_path):
    solver = Solver(broken=[item.id for item in plan_questions(SMALL)])
    with pytest.raises(EngineError):
        run_model(CallableResponder(solver, name="slover"), tmp_path, SMALL)
    config = ThinkConfig(tasks=("sum",), samples=4, folds=2, sizes=(8,))
    run = run_model(CallableResponder(Solver(), name="solver"), tmp_path, config)
    assert run.complete
    assert load_run(tmp_path).config == config
    with pytest.raises(StoreMismatchError):
        run_model(CallableResponder(Solver(), name="slover"), tmp_path, SMALL)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"asked": {"tasks": ["sum"]}}, "no ThinkConfig of this version .folds is missing"),
        ({"asked": {**to_plain(SMALL), "samples": -1}}, "samples must be at least 1"),
        ({"asked": {**to_plain(SMALL), "tasks": [3]}}, "no ThinkConfig of this version .tasks.0: "),
        ({"asked": 3}, "not a record of a run"),
        ({"models": 3}, "not a record of a run"),
        ({"attributes": []}, "not a record of a run"),
        ({"name": None}, "not a record of a run"),
    ],
)
def test_a_record_that_was_changed_is_named(tmp_path, change, message):
    run_model(CallableResponder(Solver(), name="solver"), tmp_path, SMALL)
    path = tmp_path / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    for read in (load_run, grade):
        with pytest.raises((ConfigError, StoreError), match=rf"run\.json: .*{message}"):
            read(tmp_path)


def test_json_without_end_is_no_defect_of_ours(tmp_path):
    run = run_model(CallableResponder(Solver(), name="solver"), tmp_path, SMALL)
    (tmp_path / "grading.json").write_text("[" * 100_000)
    assert load_run(tmp_path).graded == run.graded
    (tmp_path / "run.json").write_text("[" * 100_000)
    with pytest.raises(StoreError, match=r"run\.json: cannot be read"):
        load_run(tmp_path)


@pytest.mark.parametrize(
    ("held", "said"),
    [
        (
            "plan.json",
            "is not a run of stp think run and is not empty \\(it holds plan.json\\); choose",
        ),
        ("questions.jsonl", "not empty \\(it holds questions.jsonl\\); choose a new folder"),
        ("run.json", "is not a record of a run"),
    ],
)
def test_a_folder_of_something_else_is_refused_as_it_is(tmp_path, held, said):
    (tmp_path / held).write_text('{"subsets": []}')
    solver = Solver()
    with pytest.raises((MisuseError, StoreError), match=said):
        run_model(CallableResponder(solver, name="solver"), tmp_path, SMALL)
    assert not solver.calls
    assert [path.name for path in tmp_path.iterdir()] == [held]
    assert (tmp_path / held).read_text() == '{"subsets": []}'


def test_a_folder_that_only_was_locked_is_empty(tmp_path):
    (tmp_path / "run.lock").touch()
    (tmp_path / ".run.json.17.tmp").write_text("{")
    assert run_model(CallableResponder(Solver(), name="solver"), tmp_path, SMALL).complete
