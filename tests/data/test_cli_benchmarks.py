"""``stp benchmarks`` and ``stp benchmarks show``."""

import typer
from typer.testing import CliRunner

from data import benchmark_names
from stp.cli.benchmarks import register
from tests.data.made import write_jsonl
from tests.requirements import require_question_files

runner = CliRunner()


def app() -> typer.Typer:
    application = typer.Typer()
    register(application)
    application.command("other")(lambda: None)
    return application


def invoke(*arguments: str, columns: int = 250):
    return runner.invoke(app(), ["benchmarks", *arguments], env={"COLUMNS": str(columns)})


def test_the_list_names_every_benchmark_and_where_it_is(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "empty"))
    write_jsonl(tmp_path / "hmmt_feb_2025.jsonl", [{"x": 1}])
    result = invoke("--data-dir", str(tmp_path))
    assert result.exit_code == 0
    lines = {line.split()[0]: line for line in result.output.splitlines()}
    assert set(benchmark_names()) <= set(lines)
    assert "hmmt_feb_2025.jsonl" in lines["hmmt_feb_2025"]
    assert "CC-BY-NC-SA-4.0" in lines["hmmt_feb_2025"]
    assert "on the hub" in lines["gsm8k"]
    assert "1,319" in lines["gsm8k"] and "openai/gsm8k@740312a" in lines["gsm8k"]
    assert "generated" in lines["think-sum"]


def test_names_are_whole_at_any_width():
    for columns in (30, 80):
        lines = invoke(columns=columns).output.splitlines()
        assert set(benchmark_names()) <= {line.split()[0] for line in lines}
    assert all(len(line) <= 80 for line in lines)
    assert "source and licence: stp benchmarks show NAME" in lines[-1]


def test_show_gives_instruction_questions_and_references():
    result = invoke("show", "think-sorting", "--n", "2")
    assert result.exit_code == 0
    assert "\\boxed{}" in result.output
    assert result.output.count("Sort this list") == 2
    assert "[296, -487, -272, 308, -806, 658, 775, -713]" in result.output
    assert "reference  [-806, -713, -487, -272, 296, 308, 658, 775]" in result.output


def test_show_takes_a_users_own_benchmark(tmp_path):
    rows = [{"question": f"[b]{'?' * n}", "answer": "9" * 3000} for n in range(1, 6)]
    write_jsonl(tmp_path / "q.jsonl", rows)
    (tmp_path / "mine.toml").write_text('path = "q.jsonl"\nanswer_kind = "math"\n')
    result = invoke("show", str(tmp_path / "mine.toml"), "--n", "1")
    assert result.exit_code == 0
    assert "[b]?" in result.output
    assert "9" * 400 + "…(3,000characters)" in "".join(result.output.split())
    assert "mine-2" not in result.output


def test_show_real_questions():
    folder = require_question_files()
    result = invoke("show", "aime2025", "--n", "30", "--data-dir", str(folder))
    assert result.exit_code == 0
    assert "aime2025-30" in result.output
