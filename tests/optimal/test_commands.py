"""The commands as they are typed, in one process; and a campaign whose answers a model judges."""

import csv
import json
import subprocess
import sys

import pytest

from data.optimal.general import load_general
from evaluator.answers import CheckerError
from evaluator.optimal.bridging import bridge, method_rows, sides_of
from evaluator.optimal.judge import ModelJudge
from evaluator.optimal.scores import over_models, score
from stp.asking.function import CallableResponder
from stp.campaign import load_curves
from stp.campaign.config import parse_config
from stp.campaign.run import grade_campaign, run_campaign
from stp.cli.main import main
from tests.otbench.campaigns import campaign

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


def test_select_writes_its_table(model, tmp_path, capsys):
    stp(
        *("optimal", "select", f"{model}:ask", f"{model}:ask", "--out", tmp_path / "s"),
        *("--tasks", "letter_counting,chain_sum", "--limit", 2, "--seeds", 1, "--lambda", 0.3),
    )
    out = capsys.readouterr().out
    assert "lambda = 0.3" in out
    assert "Kept: none" in out
    assert len((tmp_path / "s" / "selection.csv").read_text().splitlines()) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "demo", "--out", "x", "--subsets", "nothing"], "no subset 'nothing'"),
        (["run", "demo", "--out", "x", "--methods", "fast"], "no method 'fast'"),
        (["run", "demo", "--out", "x", "--methods", "router"], "name both"),
        (["score", "nowhere"], "no run of"),
        (["compare", "nowhere"], "is not graded"),
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


def test_methods_of_otbench_are_rows_of_the_same_table(tmp_path):
    from evaluator.otbench.load import load_release
    from evaluator.otbench.release import write_release

    write_release([campaign(tmp_path / "campaign")], tmp_path / "release")
    release = load_release(tmp_path / "release")
    sides = sides_of(release.curves.benchmark_names, ovt=["MATH"], ut=["AIME"])
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
