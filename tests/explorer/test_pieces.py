"""Pieces say what the campaign's own readers say."""

import itertools
import json
import os
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.errors import MisuseError
from evaluator.analysis.falls import largest_falls
from evaluator.analysis.frontiers import cell_frontiers
from evaluator.analysis.overthinking import STATISTICS, per_trajectory, summarise
from evaluator.explorer.campaign import CampaignSource
from evaluator.explorer.frontiers import action_shares
from evaluator.explorer.opening import open_sources
from evaluator.explorer.source import NoPieceError, Sources, piece_script
from oracle.actions import STRATEGIES
from oracle.frontier import exact_frontier, grid_budgets, stopping_positions
from stp.campaign import load_curves
from stp.campaign.reader import CampaignReader
from stp.campaign.units import Unit
from stp.curves import Curves
from tests.explorer.made import HOSTILE, campaign, columns_of, hostile_campaign, naive_counts


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return campaign(tmp_path_factory.mktemp("made") / "campaign", questions=(4, 3))


@pytest.fixture(scope="module")
def source(folder):
    return CampaignSource(folder)


curves_of_counts = st.lists(
    st.lists(st.integers(0, 4), min_size=1, max_size=9), min_size=1, max_size=6
)


@given(curves_of_counts)
def test_the_largest_fall_is_the_naive_one(counts):
    curves = Curves(
        tokens=[place for each in counts for place in range(len(each))],
        correct=[value for each in counts for value in each],
        trajectory_offsets=np.cumsum([0, *map(len, counts)]),
        question=range(len(counts)),
        probes=4,
    )
    falls = largest_falls(curves)
    for s, each in enumerate(counts):
        lost, step = 0, 0
        for k in range(1, len(each)):
            if each[k - 1] - each[k] > lost:
                lost, step = each[k - 1] - each[k], k
        assert (falls.probes[s], falls.step[s]) == (lost, step)


def test_a_cell_has_the_numbers_of_its_curves(source, folder):
    everything = load_curves(folder)
    probes = everything.probes
    for place, cell in enumerate(source.index()["cells"]):
        piece, figures = source.piece(f"cell/{place}"), source.piece(f"means/{place}")
        curves = everything.cell(
            model=everything.model_names.index(cell["model"]),
            benchmark=everything.benchmark_names.index(cell["benchmark"]),
        )
        frame, columns = per_trajectory(curves), columns_of(piece)
        ids = [piece["questions"][q][0] for q in columns["q"]]
        assert ids == [everything.question_names[q] for q in curves.question]
        assert columns["s"] == curves.sample.tolist()
        assert columns["L"] == frame["full_tokens"].tolist()
        assert columns["k"] == frame["k_star"].tolist()
        assert columns["kt"] == frame["k_star_tokens"].tolist()
        assert columns["own"] == curves.original_correct.tolist()
        for name, column in (("c0", "zero"), ("cn", "full"), ("cb", "best")):
            assert np.allclose(np.array(columns[name]) / probes, frame[f"{column}_accuracy"])
        for s in range(curves.trajectories):
            own = curves.select([s]).correct.tolist()
            falls = [a - b for a, b in itertools.pairwise(own)]
            assert columns["fall"][s] == max(0, *falls, 0)
            assert columns["flat"][s] == (len(set(own)) == 1)
            assert columns["up"][s] == (own == sorted(own))
        means = summarise(frame).overall
        for name in STATISTICS:
            assert figures["means"][name] == pytest.approx(means[name], abs=1e-6)
        assert piece["missing"] == 0


def test_a_trajectory_has_the_texts_of_the_reader(source, folder):
    reader = CampaignReader(folder)
    cell = source.piece("cell/1")
    record = source.manifest.cells[1]
    for row in (0, 4, cell["count"] - 1):
        piece = source.piece(f"t/1/{row}")
        view = reader.trajectory(
            piece["id"], piece["sample"], model=record.model, benchmark=record.benchmark
        )
        assert piece["tokens"] == list(view.tokens)
        assert piece["correct"] == list(view.correct) == naive_counts(reader, view)
        assert piece["steps"] == list(view.steps)
        assert piece["own"]["right"] == view.original.right
        for position, answers in enumerate(piece["answers"]):
            probes = reader.probes_at(view, position)
            assert sum(count for _, _, count, *_ in answers) == len(probes) == piece["probes"]
            for answer, right, count, reply, _ in answers:
                same = [p for p in probes if p.answer == answer and int(p.right) == right]
                assert (count, reply) == (len(same), same[0].text.strip())


def test_frontiers_are_exact(source, folder):
    everything = load_curves(folder)
    piece = source.piece("frontier/0")
    cell = cell_frontiers(everything.cell(model=0, benchmark=0))[0]
    assert (piece["tokens"], piece["probes"]) == (cell.full_cost, cell.probes)
    for line, states in zip(piece["lines"], cell.states, strict=True):
        known = dict(zip(states.cost.tolist(), states.reward.tolist(), strict=True))
        assert [known[cost] for cost in line["tokens"]] == line["right"]
        assert line["right"][-1] == states.reward[-1]
    average = source.piece("frontier/all")
    assert [len(line["x"]) for line in average["lines"]] == [401] * 3


def test_what_is_not_graded_is_left_out_and_counted(tmp_path):
    url = campaign(tmp_path / "part", questions=(6, 2), models=1)
    source = CampaignSource(url)
    unit: Unit = source.store.plan(source.config, source.manifest.cells[0])[1]
    source.store.remove(unit.shard("verdicts"))
    piece = source.piece("cell/0")
    assert piece["missing"] == unit.trajectories
    assert piece["count"] == len(columns_of(piece)["q"]) == 6 * 3 - unit.trajectories
    for rest in source.store.plan(source.config, source.manifest.cells[0])[:1]:
        source.store.remove(rest.shard("verdicts"))
    empty = CampaignSource(url).piece("cell/0")
    assert (empty["columns"], empty["count"]) == ({}, 0)
    assert CampaignSource(url).piece("means/0") == {"means": None, "missing": 18}
    assert list(CampaignSource(url).names())


def test_rows_are_kept_until_a_shard_changes(tmp_path, monkeypatch, cache):
    from evaluator.explorer import campaign as module

    url = campaign(tmp_path / "kept", questions=(4, 2), models=1)
    read = []
    monkeypatch.setattr(
        module,
        "read_cell",
        lambda *asked, real=module.read_cell: (read.append(asked[2].benchmark), real(*asked))[1],
    )

    def names_read():
        read.clear()
        piece = CampaignSource(url).piece("cell/0")
        return list(read), piece

    first, piece = names_read()
    again, same = names_read()
    assert (first, again) == (["AIME"], [])
    assert same == piece
    kept = sorted(
        (cache / "stp-engine" / "explorer").iterdir(), key=lambda path: path.stat().st_mtime
    )
    for content in (b"", b"no archive", kept[-1].read_bytes()[:200]):
        kept[-1].write_bytes(content)
        assert names_read() == (["AIME"], piece)
    shard = next((tmp_path / "kept" / "verdicts").rglob("*.parquet"))
    os.utime(shard, ns=(1, 1))
    assert names_read() == (["AIME"], piece)
    before = sorted(path for path in (tmp_path / "kept").rglob("*"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(shard))
    assert names_read() == names_read() == (["AIME"], piece)
    assert sorted(path for path in (tmp_path / "kept").rglob("*")) == before


def test_texts_to_search_are_the_thinking_of_all_rows(source):
    piece = source.piece("cell/0")
    found = {}
    for unit in range(source.index()["cells"][0]["units"]):
        texts = source.piece(f"texts/0/{unit}")
        found |= dict(zip(texts["rows"], texts["texts"], strict=True))
    assert sorted(found) == list(range(piece["count"]))
    for row, text in found.items():
        assert text == "".join(source.piece(f"t/0/{row}")["steps"])


@given(curves_of_counts)
def test_shares_of_actions_are_the_naive_ones(counts):
    curves = Curves(
        tokens=[3 * place for each in counts for place in range(len(each))],
        correct=[value for each in counts for value in each],
        trajectory_offsets=np.cumsum([0, *map(len, counts)]),
        question=[place // 2 for place in range(len(counts))],
        probes=4,
    )
    last = [len(each) - 1 for each in counts]
    for strategy in STRATEGIES:
        states = exact_frontier(curves, strategy)
        none, whole = action_shares(curves, states, strategy)
        budgets = grid_budgets(states.full_cost)
        for j in (0, 37, 100):
            rows = states.actions_within(int(budgets[j]))
            stops = stopping_positions(curves, strategy, states.actions.choice[rows]).tolist()
            units = (
                [[s] for s in range(len(counts))]
                if strategy == "early_exit"
                else [
                    [s for s in range(len(counts)) if s // 2 == q]
                    for q in range((len(counts) + 1) // 2)
                ]
            )
            idle = [all(stops[s] == 0 for s in unit) for unit in units]
            full = [
                not out and all(stops[s] == last[s] for s in unit)
                for out, unit in zip(idle, units, strict=True)
            ]
            assert none[j] == pytest.approx(sum(idle) / len(units))
            assert whole[j] == pytest.approx(sum(full) / len(units))


def test_bands_hold_the_frontier_of_a_cell(source):
    bands, frontier = source.piece("bands/0"), source.piece("frontier/0")
    for band, line in zip(bands["lines"], frontier["lines"], strict=True):
        assert band["strategy"] == line["strategy"]
        assert all(low <= high for low, high in zip(band["low"], band["high"], strict=True))
        assert band["low"][0] <= line["y"][0] <= band["high"][0]
        assert all(0 <= a + b <= 1 for a, b in zip(band["none"], band["all"], strict=True))


@pytest.mark.parametrize(
    "name",
    [
        "x",
        "cell/99",
        "cell/-1",
        "cell/1e3",
        "cell/../../etc/passwd",
        "t/0/99999",
        "t/0",
        "t/0/1/2",
        "frontier/77",
        "cell/\u0661",
        "",
    ],
)
def test_names_of_no_piece_are_refused(source, name):
    with pytest.raises(NoPieceError):
        source.piece(name)
    for prefix in ("0/", "7/", "../", "00000/"):
        with pytest.raises(NoPieceError):
            Sources([source]).piece(prefix + name)


def test_every_name_is_a_piece(source):
    sources = Sources([source])
    names = list(sources.names())
    assert len(names) == len(set(names))
    for name in names:
        json.dumps(sources.piece(name), allow_nan=False)


def test_a_script_is_one_call_whatever_the_texts(tmp_path):
    sources = open_sources([hostile_campaign(tmp_path / "hostile")])
    for name in sources.names():
        script = piece_script(name, sources.piece(name))
        assert not re.search("[<>&\u2028\u2029]", script)
        body = script.removeprefix(f"stpPiece({json.dumps(name)},").removesuffix(");\n")
        json.loads(body)
    prompts = [question[1] for question in sources.piece("0/cell/0")["questions"]]
    assert prompts == list(HOSTILE[:3])


def test_folders_of_no_kind_are_refused(tmp_path):
    with pytest.raises(MisuseError, match="at least one folder"):
        open_sources([])
    with pytest.raises(MisuseError, match="no such folder"):
        open_sources([tmp_path / "none"])
    with pytest.raises(MisuseError, match="neither a campaign"):
        open_sources([tmp_path])
