"""The commands on a scripted engine: what they print, how they end, and one line per error."""

import json
import multiprocessing
import os
import shlex
import signal
import sys
import time
from pathlib import Path

import pytest

from stp.campaign.store import Store
from stp.cli.main import main
from tests.campaign.rows import rows_of
from tests.cli.scripted import use_scripted_engine


def assert_one_line(outcome, code, *parts):
    assert outcome.code == code, outcome.err
    lines = outcome.err.strip().splitlines()
    errors = [line for line in lines if line.startswith("stp: error: ")]
    assert len(errors) == 1 and lines[-1] == errors[0], outcome.err
    assert "Traceback" not in outcome.err
    for part in parts:
        assert part in errors[0]


def test_run_says_how_far_it_is_and_what_comes_next(stp, campaign_file, campaign, tmp_path):
    outcome = stp("run", campaign_file, "--out", tmp_path / "c")
    assert outcome.code == 0, outcome.err
    for stage in ("generating", "probing", "grading"):
        assert f"{stage}: 0 of 20 trajectories are done" in outcome.err
        assert f"{stage}: 20 of 20 trajectories" in outcome.err
    assert f"next: stp report {tmp_path / 'c'}" in outcome.err
    assert rows_of(tmp_path / "c") == rows_of(campaign)
    again = stp("run", tmp_path / "c")
    assert again.code == 0
    assert "generating: 20 of 20 trajectories are done" in again.err


def test_a_stage_alone_and_then_the_rest(stp, campaign_file, campaign, tmp_path):
    folder = tmp_path / "c"
    assert stp("run", campaign_file, "--out", folder, "--stage", "generate").code == 0
    status = stp("status", folder)
    assert "not done" in status.out
    assert "20 of 20" in status.out and "0 of 20" in status.out
    assert "unknown" in status.out
    assert stp("run", folder, "--stage", "probe", "--stage", "grade").code == 0
    assert rows_of(folder) == rows_of(campaign)
    assert "complete" in stp("status", folder).out


def test_a_stage_before_its_time_waits(stp, campaign_file, tmp_path):
    outcome = stp("run", campaign_file, "--out", tmp_path / "c", "--stage", "grade")
    assert outcome.code == 0
    assert "5 units wait for the stage before" in outcome.err


def test_status_counts_samples_and_prefill(stp, campaign):
    out = stp("status", campaign).out
    probes = sum(len(rows) for name, rows in rows_of(campaign).items() if name.startswith("probes"))
    assert f"{probes:,}" in out
    assert "1.00 x" in out
    assert "scripted" not in out and "model on sevens: 10 questions" in out


def test_show_lists_reads_and_opens_a_position(stp, campaign):
    listed = stp("show", campaign).out
    assert listed.count("What is") == 10
    steps = stp("show", campaign, "--question", "sevens-4", "--trajectory", 1).out
    assert "k = 0   L = 0 tokens   P = " in steps
    assert "thinking ended by: " in steps
    position = stp("show", campaign, "-q", "sevens-4", "-t", 1, "-k", 0, "--ids").out
    assert "<think>" in position and "</think>" in position
    assert "3 answers" in position and "[stop]" in position
    row = Store(campaign).read_shard("questions", "questions/model/sevens.parquet").to_pylist()[3]
    assert " ".join(map(str, row["prompt_ids"][:20])) in position.replace("\n", " ")


def test_grade_again_gives_the_same_verdicts(stp, campaign):
    before = rows_of(campaign)
    outcome = stp("grade", campaign, "--again")
    assert outcome.code == 0
    assert "graded 5 units" in outcome.err
    assert rows_of(campaign) == before


@pytest.mark.parametrize("columns", [30, 50, 80, 120])
def test_a_narrow_terminal_keeps_the_figures(stp, campaign, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    heading = stp("show", campaign).out.splitlines()[1].split()
    figures = ["question", "trajectories", "P(0)", "P(n)", "\u0394P", "AD", "own"]
    assert heading[:7] == figures
    assert ("prompt" in heading) == (columns > 50)


def test_a_step_stands_under_the_position_that_keeps_it(stp, campaign):
    shown = stp("show", campaign, "-q", "sevens-4", "-t", 1).out
    first = shown.index("k = 1 ")
    assert shown[shown.index("k = 0 ") : first].count("\n") == 1
    prefix = stp("show", campaign, "-q", "sevens-4", "-t", 1, "-k", 1).out
    step = shown[first:].splitlines()[1].strip()
    assert step and step[:20] in prefix


def test_verdicts_are_shown_and_compared_with_a_new_grading(stp, campaign):
    before = rows_of(campaign)
    shown = stp("show", "verdicts", campaign, "--wrong", "--n", 2)
    assert shown.code == 0
    assert shown.out.count("\n     reference  7\n") == 2
    assert stp("show", "campaign", campaign).out == stp("show", campaign).out
    assert "0 of" in stp("grade", campaign, "--diff").out
    both = stp("grade", campaign, "--diff", "--again")
    assert both.code == 2 and "give either --diff" in both.err
    assert "Missing argument" in stp("show").err
    assert rows_of(campaign) == before


def test_version_and_no_arguments(stp):
    assert stp("--version").out.startswith("stp-engine ")
    bare = stp()
    assert "Usage: stp" in bare.out + bare.err


def with_line(campaign_file, line, name="changed.toml"):
    path = campaign_file.with_name(name)
    path.write_text(campaign_file.read_text() + line)
    return path


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("probs = 3\n", "unknown key 'shards.probs'"),
        ("[engine]\nname = 'nosuch'\n", "engine"),
        ("[sampling]\ntop_p = 7\n", "sampling.top_p = 7"),
    ],
)
def test_a_bad_setting_is_misuse(stp, campaign_file, tmp_path, line, part, monkeypatch):
    from stp.campaign import run
    from stp.engines import open_engine

    monkeypatch.setattr(run, "open_engine", open_engine)
    outcome = stp("run", with_line(campaign_file, line), "--out", tmp_path / "c")
    assert_one_line(outcome, 2, part)


def test_misuse_is_one_line_and_exit_code_2(stp, campaign_file, campaign, tmp_path):
    text = campaign_file.read_text()
    negative = campaign_file.with_name("negative.toml")
    negative.write_text(text.replace("step_tokens = 8", "step_tokens = -8"))
    assert_one_line(stp("run", negative, "--out", tmp_path / "c"), 2, "probing.step_tokens = -8")
    nowhere = campaign_file.with_name("nowhere.toml")
    nowhere.write_text(text.replace('"model"', '"nowhere"'))
    assert_one_line(stp("run", nowhere, "--out", tmp_path / "c"), 2, "'nowhere': no such folder")
    unknown = campaign_file.with_name("unknown.toml")
    unknown.write_text(text.replace("sevens.toml", "gsm8"))
    assert_one_line(stp("run", unknown, "--out", tmp_path / "c"), 2, "no benchmark 'gsm8'", "gsm8k")
    assert_one_line(stp("run", tmp_path / "no.toml", "--out", tmp_path / "c"), 2, "no.toml")
    assert_one_line(stp("run", campaign_file), 2, "--out FOLDER")
    other = campaign_file.with_name("other.toml")
    other.write_text(text.replace("probes = 3", "probes = 2"))
    assert_one_line(
        stp("run", other, "--out", campaign), 2, "probing.probes is 3 in the folder and 2 now"
    )
    for command in (["status"], ["show"], ["grade"], ["report"]):
        assert_one_line(stp(*command, tmp_path / "nothing"), 2, "no campaign here")
    assert_one_line(stp("show", campaign, "-q", "sevens-77"), 2, "no question 'sevens-77'")


@pytest.mark.parametrize(("engine", "said"), [("server", True), ("transformers", False)])
def test_a_server_saves_nothing_by_ending_answers_at_their_box(stp, campaign_file, engine, said):
    text = campaign_file.read_text().replace("[probing]", '[probing]\nanswer_end = "box"')
    boxed = campaign_file.with_name(f"{engine}.toml")
    boxed.write_text(f'{text}\n[engine]\nname = "{engine}"\n')
    # Where the campaign goes is left out, so that nothing is run.
    lines = stp("run", str(boxed)).err.splitlines()
    assert any("no tokens are saved" in line for line in lines) == said


def test_usage_errors_exit_with_2(stp):
    for arguments in (["nosuch"], ["run"], ["run", "--stage", "think"], ["show", "x", "-k", "-1"]):
        assert stp(*arguments).code == 2


def test_a_defect_is_one_line_too_and_debug_shows_it(stp, campaign, monkeypatch):
    from stp.campaign import status

    def fail(url):
        raise ZeroDivisionError("half of nothing")

    monkeypatch.setattr(status, "campaign_status", fail)
    assert_one_line(stp("status", campaign), 1, "unexpected ZeroDivisionError: half of nothing")
    with pytest.raises(ZeroDivisionError):
        main(["status", str(campaign), "--debug"])


def test_a_folder_in_use_is_refused(stp, campaign):
    with Store(campaign).lock():
        assert_one_line(stp("run", campaign), 1, f"process {os.getpid()}", "works on this campaign")


fork = multiprocessing.get_context("fork")


def _run_slowly(arguments, err, seconds=0.3):
    with Path(err).open("w") as file:
        os.dup2(file.fileno(), 2)
        sys.stderr = file
        use_scripted_engine(seconds)
        main(arguments)


def _run_under_a_limit(arguments, err, bytes_):
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_, bytes_))
    _run_slowly(arguments, err, 0.0)


def test_a_full_disk_is_one_line_and_loses_nothing(campaign_file, tmp_path, stp):
    folder, err, whole = tmp_path / "c", tmp_path / "err", tmp_path / "whole"
    file = campaign_file.with_name("many-probes.toml")
    file.write_text(campaign_file.read_text().replace("probes = 3", "probes = 30"))
    assert stp("run", file, "--out", whole).code == 0
    sizes = sorted(path.stat().st_size for path in whole.rglob("*") if path.is_file())
    # Every file fits but the largest shards, which the system cuts off in their middle.
    limit = max(path.stat().st_size for path in whole.rglob("*.parquet")) - 100
    assert limit > sizes[len(sizes) // 2]
    assert limit > max(path.stat().st_size for path in (whole / "tokenizer").rglob("*.json"))
    process = fork.Process(
        target=_run_under_a_limit,
        args=(["run", str(file), "--out", str(folder)], str(err), limit),
    )
    process.start()
    process.join(60)
    assert process.exitcode == 1
    lines = [line for line in err.read_text().splitlines() if line.startswith("stp: error")]
    assert len(lines) == 1 and "the disk is full" in lines[0]
    assert "Traceback" not in err.read_text()
    assert not list(folder.rglob("*.tmp"))
    again = stp("run", folder)
    assert again.code == 0, again.err
    assert rows_of(folder) == rows_of(whole)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_after_the_unit_and_says_how_to_go_on(
    number, campaign_file, campaign, tmp_path, stp
):
    folder, err = tmp_path / "c", tmp_path / "err"
    # Forked, so that it starts at once with everything imported.
    process = fork.Process(
        target=_run_slowly, args=(["run", str(campaign_file), "--out", str(folder)], str(err))
    )
    process.start()
    deadline = time.monotonic() + 60
    while not Store(folder).files("trajectories") and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(process.pid, number)
    process.join(60)
    assert process.exitcode == 128 + number, err.read_text()
    assert "finishing the units under way" in err.read_text()
    assert f"continue: stp run {folder}" in err.read_text()
    assert 0 < len(Store(folder).files("trajectories")) < 5
    assert stp("run", folder).code == 0
    assert rows_of(folder) == rows_of(campaign)


def test_the_manifest_is_strict_json(campaign):
    def refuse(name):
        raise AssertionError(f"{name} in the manifest")

    json.loads((campaign / "manifest.json").read_text(), parse_constant=refuse)


def test_status_says_who_works_on_it(stp, campaign):
    assert "complete" in stp("status", campaign).out.splitlines()[0]
    with Store(campaign).lock():
        assert f"running (process {os.getpid()} on " in stp("status", campaign).out
    assert "running" not in stp("status", campaign).out


def test_options_that_would_do_nothing_are_refused(stp, campaign):
    assert_one_line(stp("show", campaign, "-t", 1), 2, "need a --question")
    for command in (["show"], ["show", "verdicts"]):
        for option in ("--model", "--benchmark"):
            outcome = stp(*command, campaign, option, "foo")
            assert_one_line(outcome, 2, f"no {option[2:]} 'foo' in this campaign; it has ")
    assert stp("show", campaign, "--model", "model").out == stp("show", campaign).out


def test_commands_that_are_suggested_can_be_typed(stp, campaign_file, tmp_path):
    folder = tmp_path / "it's [red] $HOME"
    assert f"next: stp report {shlex.quote(str(folder))}" in stp(
        "run", campaign_file, "--out", folder
    ).err.replace("\n", "")
    (folder / Store(folder).files("verdicts")[0]).unlink()
    assert f"continue: stp run {shlex.quote(str(folder))}" in stp("status", folder).out
    refused = stp("report", folder)
    assert refused.code == 1
    assert f"continue `stp run {shlex.quote(str(folder))}`" in refused.err


@pytest.mark.parametrize(
    "command",
    [
        ("report", "{campaign}", "--out"),
        ("analyze", "{campaign}", "--out"),
        ("explore", "{campaign}", "--static"),
        ("leaderboard", "build", "{campaign}", "--out"),
        ("optimal", "compare", "{campaign}", "--out"),
        ("think", "compare", "{campaign}", "--out"),
    ],
)
def test_what_is_no_place_to_write_into_is_said_first(stp, campaign, tmp_path, command):
    """A file, also above the folder; a release, whose files are checked."""
    file, release = tmp_path / "file", tmp_path / "release"
    file.touch()
    release.mkdir()
    (release / "manifest.sha256").touch()
    given = [part.format(campaign=campaign) for part in command]
    for place, words in ((file, "no folder"), (file / "x", "no folder"), (release, "a release")):
        found = stp(*given, place)
        assert found.code in (1, 2)
        (line,) = found.err.strip().splitlines()
        assert line.startswith(f"stp: error: {place}: ") and words in line
    assert [path.name for path in release.iterdir()] == ["manifest.sha256"]
