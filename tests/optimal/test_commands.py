"""The commands as they are typed, in one process; and a campaign whose answers a model judges."""

import csv
import json
import subprocess
import sys

import pandas as pd
import pytest

from data import Question
from data.optimal.general import load_general
from evaluator.answers import CheckerError
from evaluator.optimal.bridging import (
    bridge,
    campaign_rows,
    method_rows,
    released_benchmarks,
    sides_of,
)
from evaluator.optimal.judge import ModelJudge
from evaluator.optimal.scores import MEASURES, over_models, score
from evaluator.optimal.selection import task_names
from evaluator.optimal.subsets import Item, load_items
from evaluator.otbench.load import load_release
from stp.asking.function import CallableResponder
from stp.campaign import load_curves
from stp.campaign.config import parse_config
from stp.campaign.run import grade_campaign, run_campaign
from stp.cli.main import main
from tests.otbench.campaigns import campaign, released

MODEL = '''
def ask(prompt, settings):
    """Right on easy sums only where it thinks; talks of everything else."""
    thinks = settings.thinking == "on"
    return {"text": "\\\\boxed{41}" if thinks else "It is Paris.", "thinking_tokens": 60 * thinks}

def judge(prompt):
    return "They agree.\\nVerdict: yes" if "Paris" in prompt else "Verdict: no"

def questions(prompt):
    if "single word" not in prompt:
        return "[]"
    return '[{"question": "What is the capital of France, dear reader?", "answer": "Paris"}]'
'''


@pytest.fixture
def model(tmp_path):
    (tmp_path / "mine.py").write_text(MODEL)
    return tmp_path / "mine.py"


def stp(*arguments, code=0):
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    assert (ended.value.code or 0) == code


@pytest.mark.slow
def test_run_score_and_compare(model, tmp_path, capsys):
    for name in ("one", "two"):
        stp(
            *("optimal", "run", f"{model}:ask", "--out", tmp_path / name, "--name", name),
            *("--subsets", "ovt-general,ovt:demo,ut:think-sum", "--general", "sample"),
            *("--limit", 2, "--seeds", 2, "--size", 1.5),
        )
    assert "Next: stp optimal score" in capsys.readouterr().out
    stp("optimal", "score", tmp_path / "one", code=2)
    assert "--judge MODEL" in capsys.readouterr().err
    for name in ("one", "two"):
        stp(
            *("optimal", "score", tmp_path / name, "--judge", f"{model}:judge"),
            *("--judge-repeats", 2, "--replicates", 20),
        )
    out = capsys.readouterr().out
    assert "OptimalThinkingBench" in out
    assert all(len(line) <= 80 for line in out.splitlines() if "Report:" not in line)
    page = (tmp_path / "one" / "report" / "report.html").read_text()
    assert "answers judged repeatedly" in page
    stp(
        *("optimal", "compare", tmp_path / "one", tmp_path / "two", "--replicates", 20),
        *("--out", tmp_path / "both"),
    )
    with (tmp_path / "both" / "tables" / "methods.csv").open() as file:
        rows = {row["method"]: row for row in csv.DictReader(file)}
    assert rows["thinking"]["models"] == "2"
    assert set(rows) == {"thinking", "no-thinking", "oracle-router"}


def test_build_makes_a_data_set_that_run_takes(model, tmp_path, capsys):
    stp(
        *("optimal", "build", tmp_path / "general", "--generator", f"{model}:questions"),
        *("--answerer", f"{model}:judge", "--judge", f"{model}:judge"),
        *("--domains", "Geography", "--types", "short,numeric", "--per-pair", 1, "--k", 2),
    )
    assert "1 questions of 2 wanted" in capsys.readouterr().out
    (question,) = load_general(str(tmp_path / "general"))
    assert question.answer == "Paris"
    stp("optimal", "build", tmp_path / "x", "--generator", "m:a", "--types", "essay", code=2)
    assert "no answer type 'essay'" in capsys.readouterr().err
    for types in ("", "short,short"):
        stp("optimal", "build", tmp_path / "x", "--generator", "m:a", "--types", types, code=2)
        assert "answer types must be named, each once" in capsys.readouterr().err
    stp(
        *("optimal", "build", tmp_path / "y", "--generator", f"{model}:questions"),
        *("--domains", "Geografy", "--types", "short", "--per-pair", 1, "--k", 1),
    )
    assert "a domain of your own; did you mean 'Geography'?" in capsys.readouterr().err


def test_select_writes_its_table(model, tmp_path, capsys):
    stp(
        *("optimal", "select", f"{model}:ask", f"{model}:ask", "--out", tmp_path / "s"),
        *("--tasks", "letter_counting,chain_sum", "--limit", 2, "--seeds", 1, "--lambda", 0.3),
    )
    out = capsys.readouterr().out
    assert "lambda = 0.3" in out
    assert "Kept: none" in out
    assert len((tmp_path / "s" / "selection.csv").read_text().splitlines()) == 3


def test_select_says_how_far_it_is(model, tmp_path, capsys, monkeypatch):
    # Without a terminal a line comes now and then; here, at every step.
    monkeypatch.setattr("stp.cli.progress.SECONDS_BETWEEN_LINES", 0)
    stp(
        *("optimal", "select", f"{model}:ask", f"{model}:ask", "--out", tmp_path / "s"),
        *("--tasks", "letter_counting,chain_sum,maze", "--limit", 2, "--seeds", 1),
    )
    err = capsys.readouterr().err
    for stage in (
        "small model, making the questions: 1 of 3",
        "small model, thinking: 6 of 6",
        "large model, no-thinking: 6 of 6",
        "large model, grading: 6 of 6",
        "comparing the models: 2 of 3",
    ):
        assert stage in err


def test_all_tasks_can_be_drawn_from():
    names = task_names(["all"])
    assert len(names) > 90
    assert not {"acre", "composite", "word_ladder"} & set(names)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--subsets", "ovt:demoo"], "no benchmark 'demoo'; did you mean 'demo'"),
        (["--subsets", "ovt-mth"], "no subset 'ovt-mth'; did you mean 'ovt-math'"),
        (["--subsets", "ut:gym:mazes"], "no task 'mazes'"),
        (["--subsets", "ovt-general"], "needs its questions"),
        (["--subsets", "ovt:demo"], "cannot be loaded: AttributeError"),
        (["--methods", "thinkin"], "no method 'thinkin'; did you mean 'thinking'"),
        (["--subsets", "ovt:demo", "--size", "nan"], "size must be a number of billions"),
        (["--subsets", "ovt:demo", "--size", "-3"], "size must be a number of billions"),
        (["--subsets", "ovt:demo", "--seeds", 10**12], "requests of each method; at most"),
    ],
)
def test_a_run_that_cannot_be_leaves_no_folder(arguments, message, model, tmp_path, capsys):
    stp("optimal", "run", f"{model}:aks", "--out", tmp_path / "x", *arguments, code=2)
    assert message in capsys.readouterr().err
    assert not (tmp_path / "x").exists()
    stp(
        *("optimal", "run", f"{model}:ask", "--out", tmp_path / "x", "--subsets", "ovt:demo"),
        *("--limit", 1, "--seeds", 1, "--methods", "thinking"),
    )


@pytest.mark.parametrize("t_max", [10**30, 10**9])
def test_a_t_max_that_no_curve_can_have_is_refused_before_anything(t_max, capsys, tmp_path):
    for arguments in (["score", tmp_path], ["compare", tmp_path]):
        stp("optimal", *arguments, "--t-max", t_max, code=2)
        err = capsys.readouterr().err
        assert "t_max must be" in err
        assert len(err.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "demo", "--out", "x", "--subsets", "nothing"], "no subset 'nothing'"),
        (["run", "demo", "--out", "x", "--methods", "fast"], "no method 'fast'"),
        (["run", "demo", "--out", "x", "--methods", "router"], "name both"),
        (["score", "nowhere"], "no run here"),
        (["compare", "nowhere"], "no run here"),
        (["compare"], "no runs"),
    ],
)
def test_misuse_is_one_line(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    stp("optimal", *arguments, code=2)
    err = capsys.readouterr().err
    assert message in err
    assert len(err.strip().splitlines()) == 1


def test_a_campaign_with_answers_in_words_is_graded_by_a_judge(tmp_path):
    rows = [q.as_row() for q in load_general("sample") if q.answer_type == "short"][:2]
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "questions.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in rows)
    )
    text = f"""
    name = "words"
    [[models]]
    path = "demo"
    [[benchmarks]]
    name = "ovt-general-short"
    data_dir = "{tmp_path / "data"}"
    [generation]
    trajectories = 1
    thinking_limit = 48
    answer_tokens = 8
    [probing]
    step_tokens = 16
    probes = 2
    answer_tokens = 8
    [engine.options]
    threads = 1
    """
    config = parse_config(text, source="words.toml")
    folder = tmp_path / "campaign"
    with pytest.raises(CheckerError, match="stp optimal grade"):
        run_campaign(config, folder)
    asked = []

    def says_yes(prompt):
        asked.append(prompt)
        return "Verdict: yes"

    judge = ModelJudge(CallableResponder(says_yes, name="judge"), tmp_path / "judge.jsonl")
    grade_campaign(folder, model_judge=judge.verdict)
    curves = load_curves(folder)
    assert asked
    # Whatever the demo model says is right to this judge: nothing was graded by anybody else.
    assert curves.full_correct_s.max() == curves.probes
    (cell,) = bridge(curves, replicates=10)
    assert cell.benchmark == "ovt-general-short"
    # Its questions are those that a run on the same data set asks.
    probed = campaign_rows(curves, sides=sides_of(curves.benchmark_names))
    asked = {item.key for item in load_items(["ovt-general"], general=str(tmp_path / "data"))}
    assert set(probed["question"]) == asked


PAPER = ("math500_level_1", "aime2025", "hmmt_feb_2025", "ut-maze")


@pytest.fixture(scope="module")
def released_folder(tmp_path_factory):
    """A release of four of the paper's benchmarks, which its curves have under other names."""
    folder = tmp_path_factory.mktemp("paper")
    url = campaign(folder / "campaign", names=PAPER, questions=(14, 10, 10, 10))
    return released(folder / "release", url)


def test_methods_of_otbench_are_rows_of_the_same_table(released_folder):
    release = load_release(released_folder)
    assert not set(release.curves.benchmark_names) & set(PAPER)
    sides = sides_of(released_benchmarks(release), ovt=PAPER[:1], ut=PAPER[1:])
    rows = method_rows(release, ["constant_fraction"], sides=sides)
    methods = set(rows["method"])
    assert {"constant_fraction", "always_think", "never_think"} <= methods
    assert rows[rows["method"] == "never_think"]["thinking_tokens"].eq(0).all()
    scores = score(rows, replicates=10)
    means = over_models(scores)
    assert means.loc["always_think", "models"] == 2
    never = means.loc["never_think"]
    # Without thinking the area is the accuracy.
    assert never["auc_oaa"] == pytest.approx(never["ovt_accuracy"])
    assert (means["f1"].between(0, 1)).all()
    # AIME and HMMT are one subset: accuracy is the mean of two subset means, not of three.
    full = rows[(rows["model"] == scores.rows[0][0]) & (rows["method"] == scores.rows[0][1])]
    mean = full.groupby(["subset", "question"])["right"].mean().groupby("subset").mean()
    assert set(mean.index) == {"ovt-math", "ut-math", "ut-reasoning"}
    assert scores.values[0, MEASURES.index("ut_accuracy")] == pytest.approx(
        (mean["ut-math"] + mean["ut-reasoning"]) / 2
    )


def test_rows_of_a_release_are_paired_with_those_of_a_run(released_folder):
    release = load_release(released_folder)
    sides = sides_of(released_benchmarks(release))
    rows = method_rows(release, ["never_think"], sides=sides)
    asked = {
        Item(
            subset=sides[benchmark][0],
            side=sides[benchmark][1],
            benchmark=benchmark,
            question=Question(id=name, prompt="?", reference="1", answer_kind="math"),
            instruction="",
        ).key
        for number, (benchmark, name) in enumerate(release.question_ids)
        if number in release.in_split("test")
    }
    assert set(rows["question"]) == asked
    # A run with the same outcomes, one a question: the same questions are drawn for both.
    mine = rows[(rows["model"] == "model-0") & (rows["sample"] == 0)]
    mine = mine[mine["method"] == "never_think"]
    run_rows = mine.assign(
        model="a run", question=mine["question"].map({key: str(key) for key in asked})
    )
    scores = score(pd.concat([mine, run_rows], ignore_index=True), replicates=50)
    assert scores.interval(0, "f1").low < scores.interval(0, "f1").high
    apart = scores.difference(0, 1, "f1")
    assert (apart.low, apart.high) == (0, 0)


def test_compare_takes_benchmarks_of_a_release_by_their_names(released_folder, tmp_path, capsys):
    arguments = ("optimal", "compare", "--release", released_folder, "--replicates", 20)
    stp(
        *(*arguments, "--otbench", "never_think", "--out", tmp_path / "with-otbench"),
        *("--ovt", "math500_level_1", "--ut", "ut-maze"),
    )
    with (tmp_path / "with-otbench" / "tables" / "methods.csv").open() as file:
        assert "never_think" in {row["method"] for row in csv.DictReader(file)}
    capsys.readouterr()
    stp(*arguments, "--ut", "AIME", code=2)
    err = capsys.readouterr().err
    assert "--ut AIME: no such benchmark; there are" in err
    assert "aime2025" in err


def test_campaigns_are_scored_together_and_none_is_counted_twice(tmp_path, capsys):
    urls = [
        campaign(tmp_path / name, names=(name,), questions=(6,), models=1) for name in ("a", "b")
    ]
    arguments = ("optimal", "compare", "--replicates", 0, "--out", tmp_path / "out")
    sides = ("--ovt", "a", "--ut", "b")
    stp(*arguments, "--campaign", urls[0], "--campaign", urls[1], *sides)
    with (tmp_path / "out" / "tables" / "scores.csv").open() as file:
        rows = list(csv.DictReader(file))
    # One row for each rule of stopping, with both sides: not one for each campaign.
    assert len(rows) == 4
    capsys.readouterr()
    stp(*arguments, "--campaign", urls[0], "--campaign", urls[0], "--ovt", "a", code=2)
    assert "one campaign only" in capsys.readouterr().err


@pytest.mark.parametrize("command", [[], ["run"], ["build"], ["score"], ["compare"], ["select"]])
def test_help_imports_nothing_heavy(command):
    from tests.cli.test_help import HEAVY, PROGRAM

    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "optimal", *command, "--help"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Usage: stp optimal" in done.stdout, done.stderr
    code, *loaded = done.stdout.rpartition("LOADED ")[2].split()
    assert code == "0"
    assert [module for module in HEAVY if module in loaded] == []
