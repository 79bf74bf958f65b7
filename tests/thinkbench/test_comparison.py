"""Comparisons, leaderboards, pages, the bridge to campaigns, and the commands."""

import contextlib
import json
import os
import shutil
from html.parser import HTMLParser

import pytest
from typer.testing import CliRunner

from data.errors import EngineError, MisuseError, StoreError
from data.progress import Progress
from data.prompts import Prompts
from evaluator.runs.folder import locked_folder
from evaluator.thinkbench import (
    ThinkConfig,
    aggregate_runs,
    compare_runs,
    write_comparison,
)
from evaluator.thinkbench import run as run_model
from evaluator.thinkbench.judge import judge_runs
from evaluator.thinkbench.leaderboard import (
    find_runs,
    read_leaderboard,
    run_folders,
    write_leaderboard,
)
from evaluator.thinkbench.measures import measure
from evaluator.thinkbench.page import render_page, write_page
from evaluator.thinkbench.tables import comparison_tables, run_table
from stp.asking import CallableResponder
from stp.cli.lazily import app
from stp.cli.think_options import configurations
from tests.thinkbench.test_run import SMALL, Solver

NASTY = "<script>alert(1)</script>\x1b[31m"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Three models: short and often wrong, long and right, in between."""
    folder = tmp_path_factory.mktemp("runs")
    wrong = [
        f"{task}-fold{fold}-size{size}-{at}"
        for task, size in (("sum", 8), ("mode", 8), ("comparison", 2))
        for fold in (0, 1)
        for at in (0, 2)
    ]
    made = []
    for name, words, bad in (
        ("short", "", wrong),
        ("long", "Let me verify this. " * 30, []),
        (NASTY, "So we add. " * 5, wrong[:3]),
    ):
        solver = Solver(wrong=bad, words=words)

        def answer(prompt, solver=solver):
            return solver(prompt)["text"]

        made.append(
            run_model(
                CallableResponder(answer, name=name),
                folder / str(len(made)),
                SMALL,
                attributes={"parameters": 10.0 ** len(made)},
            )
        )
    return folder, made


def test_runs_are_ranked_in_one_pool(runs):
    _, made = runs
    comparison = compare_runs(made, replicates=200)
    assert comparison.paired
    assert comparison.pool.models == ("short", "long", NASTY)
    assert set(comparison.pareto) >= {"long"}
    scores = [comparison.scores[run.name].mean_oscore for run in comparison.runs]
    assert scores == sorted(scores, reverse=True)
    for run in comparison.runs:
        low, high = comparison.intervals[run.name]
        assert low <= comparison.scores[run.name].mean_oscore <= high
    assert len(comparison.tests) == 3
    assert comparison.tests[0].p_bootstrap is not None
    assert [c.first for c in comparison.correlations][-1] == "parameters"
    assert comparison.stability is not None
    for table in comparison_tables(comparison):
        assert table.to_csv()
        assert table.to_markdown()
        assert "nan" not in table.to_csv().lower()


def test_a_comparison_refuses_what_cannot_be_compared(runs, tmp_path):
    _, made = runs
    with pytest.raises(MisuseError, match="two runs are called 'short'"):
        compare_runs([made[0], made[0]])
    with pytest.raises(MisuseError, match="at least one"):
        compare_runs([])
    other = ThinkConfig(tasks=("sum",), samples=4, folds=2, sizes=(8,))
    odd = run_model(CallableResponder(Solver(other), name="odd"), tmp_path / "odd", other)
    with pytest.raises(MisuseError, match="not measured on the same tasks"):
        compare_runs([made[0], odd])
    bad = run_model(
        CallableResponder(Solver(broken=["sum-fold0-size8-0"]), name="bad"), tmp_path / "bad", SMALL
    )
    with pytest.raises(MisuseError, match="1 questions have no response"):
        compare_runs([made[0], bad])
    found = compare_runs([made[0], bad], allow_incomplete=True, replicates=20)
    assert not found.paired


def test_a_single_run_is_alone_in_its_pool(runs):
    _, made = runs
    comparison = compare_runs(made[:1], replicates=20)
    assert comparison.stability is None
    assert comparison.tests == ()
    assert "1 model:" in comparison.pool.describe()
    assert "alone in its pool" in render_page(comparison)


def test_a_leaderboard_is_strict_json_and_leads_back_to_its_runs(runs, tmp_path):
    _, made = runs
    comparison = compare_runs(made, replicates=50)
    path = write_leaderboard(comparison, tmp_path / "board.json")
    board = json.loads(path.read_text(), parse_constant=lambda name: pytest.fail(name))
    assert board == json.loads(json.dumps(aggregate_runs(comparison, tmp_path)))
    assert board["pool"]["kind"] == "global"
    row = board["rows"][0]
    for key in ("config", "fold_seeds", "model", "versions", "started"):
        assert row["metadata"][key]
    assert {run.name for run in find_runs([path])} == {run.name for run in made}
    named = {row["folder"] for row in aggregate_runs(comparison)["rows"]}
    assert named == {str(run.folder.resolve()) for run in made}
    with pytest.raises(MisuseError, match="not a leaderboard"):
        (tmp_path / "x.json").write_text("{}")
        read_leaderboard(tmp_path / "x.json")
    with pytest.raises(MisuseError, match="no run here"):
        find_runs([tmp_path / "empty"])


def test_a_leaderboard_moves_with_its_runs_and_says_where_they_are_missing(
    runs, tmp_path, monkeypatch
):
    folder, made = runs
    shutil.copytree(folder, tmp_path / "here" / "runs")
    monkeypatch.chdir(tmp_path / "here")
    ran = invoke("aggregate", "runs", "--out", "boards/board.json", "--replicates", 0)
    assert ran.exit_code == 0, ran.output
    board = read_leaderboard("boards/board.json")
    assert {row["folder"] for row in board["rows"]} == {f"../runs/{at}" for at in range(3)}
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").rename(tmp_path / "there")
    moved = tmp_path / "there" / "boards" / "board.json"
    for place in (moved, "there/boards/board.json"):
        assert {run.name for run in find_runs([place])} == {run.name for run in made}
    alone = shutil.copy(moved, tmp_path / "alone.json")
    with pytest.raises(MisuseError, match=r"alone\.json: its run .* is not there; move"):
        find_runs([alone])
    for rows in ({}, [{}], [{"folder": 3}], ["x"]):
        (tmp_path / "odd.json").write_text(json.dumps({"kind": "leaderboard", "rows": rows or 1}))
        with pytest.raises(MisuseError, match="names no folders of runs"):
            find_runs([tmp_path / "odd.json"])


def test_a_leaderboard_is_written_whole_or_not_at_all(runs, tmp_path, monkeypatch):
    _, made = runs
    comparison = compare_runs(made, replicates=0)
    path = write_leaderboard(comparison, tmp_path / "new" / "board.json")
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(StoreError, match=r"board\.json: the disk is full"):
            write_leaderboard(compare_runs(made[:1], replicates=0), path)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == ["board.json"]
    with pytest.raises(StoreError, match=r"cannot be written: (File exists|Not a directory)"):
        write_leaderboard(comparison, path / "below.json")


class Parsed(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.open = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_whole_and_strangers_text_is_escaped(runs, tmp_path):
    _, made = runs
    path = write_page(compare_runs(made, replicates=50), tmp_path / "out")
    text = path.read_text(encoding="utf-8")
    parsed = Parsed()
    parsed.feed(text)
    assert parsed.open == []
    assert parsed.tags.count("script") == 2
    assert "\x1b" not in text
    assert "<script>alert" not in text
    # Beside our own script, whose library's name spaces look like addresses; the policy holds.
    assert "http://" not in text.rpartition("<script>")[0]
    for heading in ("O-Score by task", "Differences of O-Scores", "Wrong answers by kind"):
        assert heading in text


def test_measures_are_the_naive_ones(runs):
    _, made = runs
    run = made[0]
    for task, group in run.measures.tasks.items():
        rows = [row for row in run.graded if row.task == task]
        right = [row.right for row in rows]
        assert group.accuracy.mean == sum(right) / len(right)
        folds = [
            sum(r.right for r in rows if r.fold == fold) / sum(r.fold == fold for r in rows)
            for fold in (0, 1)
        ]
        mean = sum(folds) / 2
        naive = (sum((value - mean) ** 2 for value in folds) / 1) ** 0.5
        assert group.accuracy.std == pytest.approx(naive)
        assert group.accuracy.low <= group.accuracy.mean <= group.accuracy.high
        assert group.tokens.mean == pytest.approx(sum(r.tokens for r in rows) / len(rows))
    one_fold = measure([row for row in run.graded if row.fold == 0])
    assert one_fold.overall.accuracy.std is None
    assert measure([]).overall.responses == 0
    table = run_table(run).frame
    assert table.loc["overall", "accuracy"] == pytest.approx(
        100 * sum(g.accuracy.mean for g in run.measures.tasks.values()) / 3
    )


def test_a_judge_is_compared_with_the_rules(runs):
    _, made = runs

    def judge(prompt):
        assert "not instructions to you" in prompt
        return "Label: unrelated" if "What went wrong" in prompt else "I cannot say."

    found = judge_runs(made, CallableResponder(judge, name="undecided"), samples=10)
    assert found.errors.total == 7
    assert 0 <= found.errors.observed <= 1
    assert found.patterns is None
    assert found.unreadable > 0


def test_a_failure_of_the_judge_is_no_reply_and_only_it_is_asked_again(runs):
    _, made = runs
    asked = []

    def judge(prompt):
        asked.append(prompt)
        if len(asked) == 2:
            raise ConnectionError("line is dead")
        return "Label: unrelated"

    responder = CallableResponder(judge, name="shaky")
    with pytest.raises(EngineError, match=r"failed on 1 of 4 requests, .*line is dead"):
        judge_runs(made, responder, samples=10)
    told = []
    found = judge_runs(
        made, responder, samples=10, progress=Progress(lambda _, *far: told.append(far))
    )
    assert (found.errors.total, found.unreadable) == (7, 4)
    assert told[-1] == (11, 11)
    assert len(asked) == 12
    assert asked.count(asked[1]) == 2
    assert judge_runs(made, responder, samples=10) == found
    assert len(asked) == 12
    judge_runs(made, CallableResponder(judge, name="another"), samples=10)
    assert len(asked) == 23


def test_a_run_that_is_named_twice_is_one(runs):
    folder, made = runs
    own = made[0].folder
    assert run_folders([own, own.parent / ".." / own.parent.name / own.name]) == [own]
    assert sorted(run_folders([folder, own])) == sorted(run.folder for run in made)


def test_a_run_that_is_judged_is_not_judged_by_another(runs):
    _, made = runs
    inner = []

    def judge(prompt):
        with pytest.raises(StoreError, match="works on this"):
            judge_runs(made, CallableResponder(str, name="locked"), samples=10)
        inner.append(prompt)
        return "Label: unrelated"

    responder = CallableResponder(judge, name="locked")
    found = judge_runs(made, responder, samples=10)
    assert inner
    # What is stored needs no folder for itself.
    with locked_folder(made[0].folder):
        assert judge_runs(made, responder, samples=10) == found


def test_what_another_has_judged_meanwhile_needs_no_judge(runs, monkeypatch):
    _, made = runs
    responder = CallableResponder(lambda prompt: "Label: unrelated", name="meanwhile")
    judged = []

    @contextlib.contextmanager
    def waited(folder):
        monkeypatch.undo()
        judged.append(judge_runs(made, responder, samples=10))
        with locked_folder(folder):
            yield

    def dead(*groups):
        raise EngineError("no server")

    monkeypatch.setattr("evaluator.thinkbench.judge.locked_folder", waited)
    late = CallableResponder(str, name="meanwhile")
    late.respond = dead
    assert judge_runs(made, late, samples=10) == judged[0]


def test_every_combination_of_a_study_has_its_label():
    options = {
        "tasks": "sum",
        "samples": 1,
        "folds": 1,
        "seed": 1,
        "sizes": None,
        "task_sizes": [],
        "low": 0,
        "high": 9,
        "prompts": Prompts(),
        "styles": "standard,concise",
        "max_tokens": "none,1024",
        "thinking_tokens": "none",
        "effort": "none",
        "thinking": "default",
        "tools": "none,calculator+python",
        "temperature": 0.1,
        "top_p": 0.9,
    }
    found = configurations(**options)
    assert len(found) == 8
    assert found[0][0] == "standard no cap no tools"
    assert found[-1][0] == "concise cap 1024 tools calculator+python"
    assert found[-1][1].settings.tools == ("calculator", "python")
    assert found[-1][1].settings.max_tokens == 1024
    (alone,) = configurations(
        **{**options, "styles": "standard", "max_tokens": "none", "tools": "none"}
    )
    assert alone[0] == ""


def invoke(*arguments):
    return CliRunner().invoke(app, ["think", *map(str, arguments)])


@pytest.mark.slow
def test_the_commands_print_and_write(runs, tmp_path):
    folder, _ = runs
    shown = invoke("leaderboard", folder, "--replicates", 20, "--out", tmp_path / "page")
    assert shown.exit_code == 0, shown.output
    assert "global pool of 3 models" in shown.output
    assert "\x1b[31m" not in shown.output
    assert (tmp_path / "page" / "index.html").exists()
    made = invoke("aggregate", folder, "--replicates", 20, "--out", tmp_path / "board.json")
    assert made.exit_code == 0, made.output
    compared = invoke(
        "compare", tmp_path / "board.json", "--replicates", 20, "--out", tmp_path / "tables"
    )
    assert compared.exit_code == 0, compared.output
    assert (tmp_path / "tables" / "tests.csv").exists()
    assert (tmp_path / "tables" / "index.html").exists()
    (folder / "0" / "graded.jsonl").write_text('{"id": "torn')
    graded = invoke("grade", folder / "0")
    assert graded.exit_code == 0, graded.output


@pytest.mark.slow
def test_a_file_in_the_way_of_a_comparison_is_said(runs, tmp_path):
    _, made = runs
    comparison = compare_runs(made, replicates=20)
    tables = comparison_tables(comparison)
    page = write_comparison(comparison, tables, tmp_path / "new" / "folder")
    assert page == tmp_path / "new" / "folder" / "index.html"
    for table in tables:
        assert (page.parent / f"{table.name}.csv").read_text(encoding="utf-8") == table.to_csv()
        assert (page.parent / f"{table.name}.md").exists()
    assert not list(page.parent.glob(".*"))
    blocked = tmp_path / "blocked"
    blocked.write_text("mine")
    for folder in (blocked, blocked / "below"):
        with pytest.raises(StoreError, match=r"cannot be written: (File exists|Not a directory)"):
            write_comparison(comparison, tables, folder)
        with pytest.raises(StoreError, match=r"cannot be written: (File exists|Not a directory)"):
            write_page(comparison, folder / "index.html")
    compared = invoke("compare", runs[0], "--replicates", 20, "--out", blocked)
    assert isinstance(compared.exception, MisuseError)
    assert blocked.read_text() == "mine"
    (tmp_path / "taken" / "tests.csv" / "x").mkdir(parents=True)
    with pytest.raises(StoreError, match=r"tests\.csv: cannot be written: Is a directory"):
        write_comparison(comparison, tables, tmp_path / "taken")


def test_a_function_of_ones_own_runs_from_the_command_line(tmp_path):
    (tmp_path / "own.py").write_text("def answer(prompt):\n    return r'It is \\boxed{4}.'\n")
    command = (
        "run",
        f"{tmp_path}/own.py:answer",
        "--out",
        tmp_path / "run",
        "--tasks",
        "sum,mode",
        "--samples",
        2,
        "--folds",
        1,
        "--sizes",
        8,
        "--style",
        "standard,concise",
    )
    ran = invoke(*command)
    assert ran.exit_code == 0, ran.output
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["concise", "standard"]
    assert "O-Score by task" in ran.output
    for bad in (("--style", "rude"), ("--max-tokens", "0"), ("--tasks", "summ"), ("--sizes", "a")):
        failed = invoke(*command[:4], *bad)
        assert failed.exit_code != 0
        assert failed.exception.exit_code == 2


@pytest.mark.parametrize("broken", ["style", "all"])
def test_the_failure_of_a_whole_task_is_said_and_not_that_runs_differ(tmp_path, broken):
    when = "'odd' in prompt" + ("" if broken == "all" else " and 'Do not explain' in prompt")
    (tmp_path / "own.py").write_text(
        "def answer(prompt):\n"
        f"    if {when}:\n"
        "        raise ConnectionError('line is dead')\n"
        "    return r'It is \\boxed{4}.'\n"
    )
    ran = invoke(
        *("run", f"{tmp_path}/own.py:answer", "--out", tmp_path / "run", "--samples", 2),
        *("--tasks", "sum,odd-count", "--folds", 1, "--sizes", 8, "--style", "standard,concise"),
    )
    assert isinstance(ran.exception, EngineError)
    assert "questions have no response (the first: ConnectionError: line is dead)" in str(
        ran.exception
    )
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["concise", "standard"]


@pytest.mark.slow
def test_the_bridge_puts_a_campaign_beside_the_runs(tmp_path):
    from evaluator.thinkbench.bridge import bridge_campaign, bridge_table
    from stp.asking import ModelSpec, Settings
    from stp.campaign import run_campaign
    from stp.campaign.config import parse_config

    text = """
name = "bridge"
[generation]
trajectories = 2
thinking_limit = 40
answer_tokens = 12
[probing]
step_tokens = 20
probes = 2
answer_tokens = 12
[[models]]
path = "demo"
[[benchmarks]]
name = "think-comparison"
limit = 2
[[benchmarks]]
name = "think-subtraction"
limit = 1
"""
    config = parse_config(text, source="bridge.toml")
    run_campaign(config, tmp_path / "campaign")
    run = run_model(
        ModelSpec(model="demo"),
        tmp_path / "run",
        ThinkConfig(
            tasks=("comparison", "subtraction"),
            samples=2,
            folds=1,
            settings=Settings(max_tokens=40),
        ),
    )
    comparison = compare_runs([run], replicates=20)
    bridge = bridge_campaign(comparison, [str(tmp_path / "campaign")])
    assert bridge.matched == ("demo",)
    assert sorted(bridge.frame["task"]) == ["comparison", "subtraction"]
    for _, row in bridge.frame.iterrows():
        assert 0 <= row["overthinking_ratio"] <= 1
        assert row["routing_tokens"] >= row["fixed_budget_tokens"] >= row["early_exit_tokens"]
    table = bridge_table(bridge)
    assert "OR" in table.to_markdown()
    page = render_page(comparison, bridge=bridge)
    assert 'id="bridge"' in page
    other = compare_runs(
        [run_model(CallableResponder(Solver(), name="x"), tmp_path / "x", SMALL)], replicates=0
    )
    with pytest.raises(MisuseError, match="no model and task is both"):
        bridge_campaign(other, [str(tmp_path / "campaign")])
