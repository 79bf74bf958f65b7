"""Releases, and where methods stop a trajectory: in OTBench runs and in live ones."""

import json
from collections import Counter

import numpy as np
import pytest

from evaluator.explorer.campaign import CampaignSource
from evaluator.explorer.opening import open_sources
from evaluator.explorer.otbench import MethodsSource
from evaluator.explorer.release import ReleaseSource
from evaluator.explorer.source import NoPieceError, Sources, TrajectoryKey
from evaluator.explorer.static import write_static
from evaluator.live.run import GRADED, KIND
from evaluator.otbench.asked import parse_method
from evaluator.otbench.decisions import DECISIONS_FOLDER
from evaluator.otbench.load import load_release
from evaluator.otbench.run import evaluate, split_curves
from evaluator.otbench.session import run_methods
from evaluator.runs.record import RunRecord, finish_run
from stp.files import json_lines
from tests.evaluator.synthetic import undrawn
from tests.explorer.browser import browser
from tests.explorer.made import campaign, columns_of
from tests.otbench.campaigns import released

METHODS = ["constant_cap", "answer_convergence"]


@pytest.fixture(scope="module", autouse=True)
def _undrawn():
    with undrawn():
        yield


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stops")
    url = campaign(folder / "campaign")
    release = released(folder / "release", url)
    run_methods(release, METHODS, folder / "otb", replicates=0)
    return url, release, folder / "otb"


def live_run(folder, source, *, shift=0):
    """Write a live run of the first trajectory; ``shift`` makes its steps other ones."""
    key, piece = source.key(0, 0), source.piece("t/0/0")
    last = min(2, len(piece["tokens"]) - 1)
    decided = [
        {"position": k, "tokens": piece["tokens"][k], "score": score, "stops": k == last}
        for k, score in zip(range(last + 1), (0.25, "inf", 0.96), strict=False)
    ]
    row = {
        "benchmark": key.benchmark,
        "question": key.question,
        "trajectory": key.sample,
        "lengths": [
            length + shift * (k > 0) for k, length in enumerate(piece["tokens"][: last + 1])
        ],
        "thinking_ids": [],
        "answer_ids": [1, 2],
        "answer_finish": "stop",
        "answer": "It is <b>4</b>.",
        "right": True,
        "verdict": "right: 4",
        "seconds": 1.0,
    }
    full = {"arm": "full", "reason": "end", "position": last, "tokens": piece["tokens"][-1]}
    own = {"arm": "method", "reason": "method", "position": last, "tokens": piece["tokens"][last]}
    folder.mkdir()
    rows = [
        row | full | {"signal_tokens": 0, "decisions": []},
        row | own | {"signal_tokens": 7, "decisions": decided},
    ]
    (folder / GRADED).write_bytes(json_lines(rows))
    finish_run(
        folder,
        RunRecord(
            kind=KIND,
            name="model-0, deer",
            asked={"method": "deer", "setting": 0.95, "release": None},
            models={"model": {"name": key.model, "family": "plain"}},
        ),
    )
    return folder


def test_a_release_shows_the_curves_of_its_campaign(made):
    url, folder, _ = made
    theirs, ours = CampaignSource(url), ReleaseSource(folder)
    cells = {(c["model"], c["benchmark"]): place for place, c in enumerate(ours.index()["cells"])}
    for place, cell in enumerate(theirs.index()["cells"]):
        own = cells[cell["model"], cell["benchmark"]]
        a, b = theirs.piece(f"cell/{place}"), ours.piece(f"cell/{own}")
        assert a["count"] == b["count"] == cell["trajectories"]
        rows = []
        for piece in (a, b):
            columns = columns_of(piece)
            names = [piece["questions"][q][0] for q in columns["q"]]
            kept = [columns[name] for name in ("s", "n", "L", "k", "c0", "cn", "fall", "own")]
            rows.append(sorted(zip(names, *kept, strict=True)))
        assert rows[0] == rows[1]
        assert theirs.piece(f"means/{place}")["means"] == ours.piece(f"means/{own}")["means"]
        by_key = {theirs.key(place, row): row for row in range(a["count"])}
        for row in (0, b["count"] - 1):
            one = theirs.piece(f"t/{place}/{by_key[ours.key(own, row)]}")
            other = ours.piece(f"t/{own}/{row}")
            assert (one["tokens"], one["correct"]) == (other["tokens"], other["correct"])
            assert other["steps"] is None
            for mine, their in zip(other["answers"], one["answers"], strict=True):
                assert sum(count for _, _, count, *_ in mine) == one["probes"]
                none = Counter(answer for answer, _, count, *_ in their for _ in range(count))[None]
                assert none == sum(count for answer, _, count, *_ in mine if answer is None)
    for name in Sources([ours]).names():
        json.dumps(Sources([ours]).piece(name), allow_nan=False)
    with pytest.raises(NoPieceError):
        ours.piece("texts/0/0")


def test_methods_stop_where_they_decide_to(made):
    url, folder, out = made
    release, source = load_release(folder), MethodsSource(out)
    curves = split_curves(release, "test")
    for row in source.rows:
        if row.method.name not in METHODS:
            continue
        result = evaluate(release, parse_method(row.label, release))
        for s, stop in enumerate(result.decided.stop[result.selected].tolist()):
            benchmark, question = release.question_ids[curves.question[s]]
            key = TrajectoryKey(
                curves.model_names[curves.model[s]], benchmark, question, int(curves.sample[s])
            )
            (found,) = [each for each in source.stops(key) if each["method"] == row.label]
            assert found["position"] == stop
            assert found["setting"] == str(row.selected.setting)
        shares = source.piece("rows")["rows"][source.rows.index(row)]["shares"]
        last = np.diff(curves.trajectory_offsets) - 1
        stops = result.decided.stop[result.selected]
        assert shares["none"] == pytest.approx(np.mean(stops == 0))
        assert shares["all"] == pytest.approx(np.mean((stops == last) & (stops > 0)))
    sources = open_sources([url, out])
    assert sources.piece("index")["stops"]
    known = [len(sources.piece(f"stops/0/0/{row}")["methods"]) for row in range(42)]
    # Questions of the training split were not decided on.
    assert set(known) == {0, len(source.rows)}
    for name in ("stops/0/0/999", "stops/0/9/0", "stops/7/0/0", "stops/1/0/0"):
        with pytest.raises(NoPieceError):
            sources.piece(name)
    assert not open_sources([url]).piece("index")["stops"]


def test_decisions_of_another_row_are_not_shown(made, tmp_path):
    import shutil

    from data.errors import StoreError

    out = shutil.copytree(made[2], tmp_path / "otb")
    names = sorted((out / DECISIONS_FOLDER).iterdir())
    names[0].write_bytes(names[1].read_bytes())
    key = next(iter(MethodsSource(made[2])._decided[0][1]))
    before = MethodsSource(made[2]).stops(TrajectoryKey(*key))
    assert len(MethodsSource(out).stops(TrajectoryKey(*key))) == len(before) - 1
    names[0].write_bytes(b"")
    with pytest.raises(StoreError, match="torn"):
        MethodsSource(out)


def test_a_live_run_shows_every_decision_beside_the_curve(made, tmp_path):
    url, _, _ = made
    folder = live_run(tmp_path / "live", CampaignSource(url))
    sources = open_sources([url, folder])
    (stop,) = sources.piece("stops/0/0/0")["methods"]
    assert (stop["method"], stop["setting"], stop["reason"]) == ("deer", "0.95", "method")
    assert [each[2:] for each in stop["decisions"]][:2] == [[0.25, False], ["inf", False]]
    assert stop["decisions"][-1][0] == stop["position"]
    assert sources.piece("stops/0/0/1")["methods"] == []
    rows = sources.piece("1/rows")
    assert rows["method"] == ["full", "method"]
    assert rows["asked"][0] == rows["asked"][1]
    assert "decisions" not in sources.piece("1/r/0")
    assert sources.piece("1/r/1")["decisions"] == stop["decisions"]


@pytest.mark.browser
def test_the_pages_of_releases_methods_and_live_runs(made, tmp_path):
    url, release, out = made
    source = CampaignSource(url)
    folders = [url, release, out, live_run(tmp_path / "live", source)]
    folders.append(live_run(tmp_path / "other", source, shift=1))
    site = write_static(open_sources(folders), tmp_path / "site").as_uri()
    decided = next(iter(MethodsSource(out)._decided[0][1]))
    keys = {source.key(cell, row): (cell, row) for cell, row in source.rows()}
    cell, row = keys[TrajectoryKey(*decided)]
    views = ("/", "/1", "/1/cell/0", "/1/t/0/0", "/1/frontiers", "/2", "/3", "/3/r/1", "/0/t/0/0")
    with browser() as page:
        for view in (*views, f"/0/t/{cell}/{row}", "/pair?a=0&b=1", "/compare?a=0&b=4"):
            for width in (1400, 390):
                page.look(width, dark=width == 390)
                page.open(f"{site}#{view}")
                page.unfold()
                assert "[object" not in page.text("#view")
                assert page.count("[role=alert]") == 0, page.text("#view")
                assert page.overflow() <= 0, view
                assert page.violations() == [], view
        assert page.console() == []
        page.look()
        page.open(f"{site}#/0/t/{cell}/{row}")
        page.run("document.querySelector('.stops details').open = true")
        stops = MethodsSource(out).stops(TrajectoryKey(*decided))
        assert page.count(".stops tbody tr") >= len(stops)
        first = min(each["position"] for each in stops)
        page.run("document.querySelector('.stops td button').click()")
        if (cell, row) != (0, 0):
            assert page.text(".position").startswith(f"k = {first} of")
        page.open(f"{site}#/0/t/0/0")
        assert "deer stopped, live" in page.text(".steps")
        page.unfold()
        said = page.text(".stops")
        assert "0.2500" in said
        assert "stops" in said
        assert "other steps than this one" in said
        assert page.count(".stops b") == 2
        page.open(f"{site}#/pair?a=0&b=1")
        assert "1 question in common" in page.text("#view")
