"""Responses, methods and leaderboards: pieces, commands, checks."""

import json
import shutil
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from data.errors import MisuseError
from evaluator.explorer.board import BoardRow, board_rows, headline, open_board
from evaluator.explorer.opening import open_sources
from evaluator.explorer.otbench import MethodsSource
from evaluator.explorer.responses import open_responses
from evaluator.explorer.static import write_static
from evaluator.explorer.submission import add_submission, check_submission, submissions
from evaluator.optimal.grading import grade as grade_optimal
from evaluator.optimal.judge import open_judge
from evaluator.optimal.running import run as run_optimal
from evaluator.optimal.stored import store_graded
from evaluator.otbench.compare import standings
from evaluator.otbench.page import lead
from evaluator.otbench.session import run_methods
from evaluator.thinkbench import run as run_model
from evaluator.thinkbench.stored import load_run
from stp.asking import CallableResponder
from stp.cli.lazily import app
from tests.evaluator.synthetic import undrawn
from tests.optimal.test_run import general_plan
from tests.otbench.campaigns import campaign, released
from tests.thinkbench.test_run import SMALL, Solver

NASTY = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module", autouse=True)
def _undrawn():
    with undrawn():
        yield


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two models on the same questions: one brief, one long; the second has a nasty name."""
    folder = tmp_path_factory.mktemp("runs")
    for place, (name, words) in enumerate((("brief", ""), (NASTY, "So we add. " * 9))):
        solver = Solver(words=words, wrong=["sum-fold0-size8-0"] if place else ())

        def answer(prompt, solver=solver):
            return solver(prompt)["text"]

        run_model(CallableResponder(answer, name=name), folder / str(place), SMALL)
    return [folder / "0", folder / "1"]


@pytest.fixture(scope="module")
def methods(tmp_path_factory):
    folder = tmp_path_factory.mktemp("otbench")
    release = released(folder / "release", campaign(folder / "campaign"))
    run_methods(release, ["constant_cap", "answer_convergence"], folder / "out", replicates=20)
    return release, folder / "out"


def test_responses_are_those_of_the_run(runs):
    responses, run = open_responses(runs[1]), load_run(runs[1])
    assert [row.key for row in responses.rows] == [graded.id for graded in run.graded]
    assert [row.right for row in responses.rows] == [graded.right for graded in run.graded]
    sources = open_sources(runs)
    rows = sources.piece("1/rows")
    wrong = rows["right"].index(False)
    assert rows["error"][wrong]
    said = sources.piece(f"1/r/{wrong}")
    assert said["prompt"].startswith(("What", "Add", "Find", "Calculate", "Compute", "Sum", ""))
    assert "So we add." in said["text"]
    for name in sources.names():
        json.dumps(sources.piece(name), allow_nan=False)


def invoke(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


def test_show_lists_reads_and_pairs(runs):
    first = open_responses(runs[0]).rows[0].key
    listed = invoke("think", "show", runs[0], "--limit", 3)
    assert listed.exit_code == 0
    assert first in listed.output
    wrong = invoke("think", "show", runs[1], "--wrong")
    assert wrong.output.count("wrong") == sum(not g.right for g in load_run(runs[1]).graded)
    whole = invoke("think", "show", runs[1], "-q", first, "--thinking")
    assert "So we add." in whole.output
    assert "reference" in whole.output
    pairs = invoke("think", "show", runs[0], "--against", runs[1], "--limit", 500)
    ratios = [float(line.split()[-1]) for line in pairs.output.splitlines()[1:-1] if line.strip()]
    assert ratios == sorted(ratios, reverse=True)
    assert ratios[0] > 1
    none = invoke("think", "show", runs[0], "-q", "nothing")
    assert isinstance(none.exception, MisuseError)


def test_runs_of_another_seed_are_not_paired(runs, tmp_path):
    """Their questions have the same names, and are others."""
    config = replace(SMALL, seed=SMALL.seed + 1)
    solver = Solver(config)
    run_model(
        CallableResponder(lambda prompt: solver(prompt)["text"], name="other"),
        tmp_path / "other",
        config,
    )
    sources = open_sources([runs[0], runs[1], tmp_path / "other"])
    first, second, other = (sources.piece(f"{place}/rows") for place in range(3))
    assert first["key"] == other["key"]
    assert first["asked"] == second["asked"]
    same = sum(a == b for a, b in zip(first["asked"], other["asked"], strict=True))
    prompts = [
        [sources.piece(f"{place}/r/{row}")["prompt"] for row in range(len(first["key"]))]
        for place in (0, 2)
    ]
    assert same == sum(a == b for a, b in zip(*prompts, strict=True)) < len(first["key"])
    refused = invoke("think", "show", runs[0], "--against", tmp_path / "other")
    if same:
        assert f"{len(first['key']) - same:,} left out" in refused.output
    else:
        assert isinstance(refused.exception, MisuseError)


def test_boards_rank_within_a_group_only(runs, tmp_path):
    rows = board_rows(runs)
    assert [row.board for row in rows] == ["think", "think"]
    assert len({row.group for row in rows}) == 1
    assert rows[0].values["oscore"] >= rows[1].values["oscore"]
    sources = open_board(runs)
    piece = sources.piece("0/rows")
    assert len(piece["headlines"]) == 1
    assert "leads 2 rows" in piece["headlines"][0]["text"]
    for row in piece["rows"]:
        assert sources.piece(f"{row['folder']}/index")["name"] == row["name"]
    other = tmp_path / "other"
    shutil.copytree(runs[0], other)
    record = json.loads((other / "run.json").read_text(encoding="utf-8"))
    record["asked"]["folds"] = 3
    (other / "run.json").write_text(json.dumps(record), encoding="utf-8")
    assert len({row.group for row in board_rows([*runs, other])}) == 2


def test_a_winner_needs_somebody_to_beat():
    def row(name, value):
        return BoardRow(
            board="think", group="g", name=name, folder=1, values={"oscore": value}, point=None
        )

    assert "alone" in headline("think", [row("a", 0.5)])
    assert "alone" in headline("think", [row("a", 0.5), row("b", None)])
    assert headline("think", [row("a", 0.5), row("b", 0.7)]).startswith("b leads 2 rows")
    assert "share the first place" in headline("think", [row("a", 0.5), row("b", 0.5)])


def test_a_sound_submission_is_added_and_a_changed_one_is_refused(runs, tmp_path):
    findings = check_submission(runs[0])
    assert all(finding.holds for finding in findings)
    assert {"files", "schema", "checksums", "scores"} <= {f.check for f in findings}
    board = tmp_path / "board"
    added = invoke("leaderboard", "add", runs[0], board, "--name", "brief")
    assert added.exit_code == 0, added.output
    assert submissions(board) == [board / "submissions" / "brief"]
    with pytest.raises(MisuseError, match="there already"):
        add_submission(runs[0], board, "brief")
    for name in ("../up", "/etc", ".hidden", "a b", ""):
        with pytest.raises(MisuseError, match="not a name"):
            add_submission(runs[0], board, name or " ")
    forged = tmp_path / "forged"
    shutil.copytree(runs[1], forged)
    graded = (forged / "graded.jsonl").read_text(encoding="utf-8")
    changed = graded.replace('"right": false', '"right": true').replace(
        '"right":false', '"right":true'
    )
    assert changed != graded
    (forged / "graded.jsonl").write_text(changed, encoding="utf-8")
    refused = invoke("leaderboard", "add", forged, board, "--name", "forged")
    assert refused.exit_code == 1
    assert "FAILS" in refused.output
    assert submissions(board) == [board / "submissions" / "brief"]
    site = invoke("leaderboard", "build", board, runs[1], "--out", tmp_path / "site")
    assert site.exit_code == 0, site.output
    assert (tmp_path / "site" / "index.html").is_file()


def test_scores_of_optimal_runs_are_made_again_without_their_judge(tmp_path):
    run_optimal(
        CallableResponder(lambda prompt: "\\boxed{in other words, 12}", name="m"),
        tmp_path / "run",
        general_plan(),
    )
    judge = CallableResponder(
        lambda prompt: f"Verdict: {'yes' if '2' in prompt else 'no'}", name="j"
    )
    run = grade_optimal(tmp_path / "run", judge=open_judge(judge, tmp_path / "run"), judge_name="j")
    assert run.judging.by_judge > 0
    found = {each.check: each for each in check_submission(tmp_path / "run")}
    assert all(each.holds for each in found.values()), found

    # Another judge is another setting.
    other = shutil.copytree(tmp_path / "run", tmp_path / "other")
    (other / "judge-replies.jsonl").unlink()
    stern = CallableResponder(lambda prompt: "Verdict: no", name="stern")
    grade_optimal(other, judge=open_judge(stern, other), judge_name="stern")
    assert len({row.group for row in board_rows([tmp_path / "run", other])}) == 2
    assert len({row.group for row in board_rows([tmp_path / "run", tmp_path / "run"])}) == 1

    def forged(name, **changes):
        folder = shutil.copytree(tmp_path / "run", tmp_path / name)
        rows = run.rows.copy()
        place = int(rows["by_judge"].to_numpy().argmax() if name == "judged" else 0)
        for column, value in changes.items():
            rows.loc[place, column] = value
        store_graded(folder, run.record, run.plan, rows, run.judging)
        return {each.check: each for each in check_submission(folder)}

    was = bool(run.rows["right"][int(run.rows["by_judge"].to_numpy().argmax())])
    for name, changes in (("judged", {"right": not was}), ("tokens", {"output_tokens": 1})):
        scores = forged(name, **changes)["scores"]
        assert scores.holds is False
        assert "1 rows come out otherwise" in scores.detail
    gone = shutil.copytree(tmp_path / "run", tmp_path / "gone")
    (gone / "judge-replies.jsonl").unlink()
    lost = check_submission(gone)[-1]
    assert lost.holds is False
    assert "replies of the judge are not kept" in lost.detail


def test_a_folder_without_results_is_no_submission(tmp_path):
    (finding,) = check_submission(tmp_path)
    assert finding.holds is False
    with pytest.raises(MisuseError, match="no board"):
        submissions(tmp_path)


def test_methods_have_their_points_and_are_made_again(methods):
    release, out = methods
    source = MethodsSource(out)
    piece = source.piece("rows")
    assert {row["label"] for row in piece["rows"]} == {row.label for row in source.rows}
    for row, shown in zip(source.rows, piece["rows"], strict=True):
        assert [(p["x"], p["y"]) for p in shown["points"]] == [
            (p.tokens_fraction, p.accuracy) for p in row.points
        ]
        for point, place in zip(shown["points"], range(len(row.points)), strict=True):
            assert point["tokens"] == sum(cell["tokens"][place] for cell in row.cells)
    findings = {f.check: f for f in check_submission(out, release=release)}
    assert findings["scores"].holds, findings["scores"].detail
    assert findings["isolation"].holds
    assert check_submission(out)[-1].holds is None
    assert standings(source.rows) == []


def test_a_method_from_elsewhere_is_told_where_it_stands(methods):
    _, out = methods
    rows = MethodsSource(out).rows
    real = next(row for row in rows if not row.method.trivial)
    mine = real.model_copy(
        update={
            "label": "mine",
            "method": real.method.model_copy(update={"spec": "mine.py:Mine"}),
            "summary": real.summary
            | {"curve_area": real.summary["curve_area"].model_copy(update={"value": -0.5})},
        }
    )
    (sentence,) = standings([*rows, mine])
    assert sentence.startswith("Yours, mine: 2nd of 2 early exit methods")
    assert f"points of area below {real.label}." in sentence
    assert lead([*rows, mine]).startswith(f"{sentence} {real.label} has the largest area")


@pytest.mark.browser
def test_the_pages_of_runs_and_boards(runs, methods, tmp_path):
    from tests.explorer.browser import browser

    page_file = write_static(open_board([*runs, methods[1]]), tmp_path / "site")
    with browser() as page:
        for view in ("/0", "/1", "/1/r/0", "/pair?a=0&b=1", "/3", "/0?board=think"):
            for width in (1400, 390):
                page.look(width, dark=width == 390)
                page.open(f"{page_file.as_uri()}#{view}")
                page.unfold()
                assert "[object" not in page.text("#view"), view
                assert page.count("[role=alert]") == 0, page.text("#view")
                assert page.overflow() <= 0, view
                assert page.violations() == [], view
        assert page.count("#view img") == 0
        assert page.console() == []
        page.look()
        page.open(f"{page_file.as_uri()}#/3")
        boxes = page.count(".switches input")
        assert boxes >= 2
        page.run("document.querySelector('.switches input').click()")
        assert "off=" in page.run("return location.hash")
        assert page.count(".switches input:checked") == boxes - 1
        # The report page of the run has the same view.
        for width in (1400, 390):
            page.look(width, dark=width == 390)
            page.open((methods[1] / "otbench.html").as_uri())
            assert page.count(".switches input") == boxes
            assert page.overflow() <= 0
            assert page.violations() == []
        assert page.console() == []
