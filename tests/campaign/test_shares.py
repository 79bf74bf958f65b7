"""Shares of rows that are not what they are taken for, counted by rows and by a slow twin."""

import dataclasses
import json
import re
import shutil
import types

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data import Question
from evaluator.analysis.share_tables import share_notes, share_sentences, share_table
from evaluator.answers import Checker
from evaluator.answers.math_equality import Reference
from evaluator.answers.symbolic import SymbolicTimeoutError, SymbolicWorker
from evaluator.answers.verdict import TROUBLES
from stp.campaign.config import parse_config
from stp.campaign.merge import merge_campaigns
from stp.campaign.row_counts import _running_on, trouble_of
from stp.campaign.run import SilentObserver, run_campaign
from stp.campaign.status import campaign_shares, campaign_status
from stp.campaign.store import Store
from stp.campaign.tables import _COUNTS
from stp.engines.base import Completion
from stp.formats.turn_end import TurnEnd
from tests.campaign.fakes import ScriptedEngine
from tests.campaign.rows import table_rows

DEMO = """
[[models]]
path = "demo"

[[benchmarks]]
name = "demo"
limit = 3

[generation]
trajectories = 4
thinking_limit = {thinking}
answer_tokens = 32

[probing]
step_tokens = 16
probes = 4
answer_tokens = {answer}

[engine.options]
threads = 1
"""


class StrangeEngine(ScriptedEngine):
    """Its answers run on into the next turn, or hold ids that no tokenizer knows."""

    def _sample(self, tree, prompt, seed):
        made = super()._sample(tree, prompt, seed)
        if self._end in tree.stop_ids:
            return made
        stray = self._tokenizer.token_to_id("<|im_start|>")
        ids = {0: (*made.token_ids, stray, 70), 1: (4000, *made.token_ids)}.get(seed % 4)
        return made if ids is None else dataclasses.replace(made, token_ids=ids, finish="stop")


def slow_twin(folder):
    """Count by looking at every row with plain Python."""
    trajectories, probes = table_rows(folder, "trajectories"), table_rows(folder, "probes")
    verdicts = table_rows(folder, "verdicts")
    answered = [row for row in trajectories if row["answer_finish"] != "none"]
    asked = [row for row in probes if row["finish"] != "too_long"]
    return {
        "trajectories": len(trajectories),
        "thinking_cut": sum(row["thinking_finish"] == "limit" for row in trajectories),
        "never_closed": sum(row["thinking_finish"] == "stop" for row in trajectories),
        "answers": len(answered),
        "answers_cut": sum(row["answer_finish"] == "length" for row in answered),
        "probes": len(asked),
        "probes_cut": sum(row["finish"] == "length" for row in asked),
        "probes_unread": sum(
            row["position"] >= 0 and row["reason"] == "wrong: no answer found" for row in verdicts
        ),
        "answers_unread": sum(
            row["position"] < 0 and row["reason"] == "wrong: no answer found" for row in verdicts
        ),
        "verdicts": len(verdicts),
        "positions": sum(row["sample"] == 0 for row in probes),
    }


@pytest.mark.parametrize(
    ("thinking", "answer", "noticed"),
    [
        (20, 32, {"thinking_cut"}),
        (312, 3, {"probes_cut", "probes_unread"}),
        (312, 32, set()),
    ],
)
def test_on_the_demo_model(tmp_path, thinking, answer, noticed):
    config = parse_config(DEMO.format(thinking=thinking, answer=answer), source="test")
    folder = tmp_path / "campaign"
    run_campaign(config, folder)
    (cell,) = campaign_shares(folder)
    for name, count in slow_twin(folder).items():
        assert cell.counts[name] == count, name
    assert {share.kind.name for share in cell.shares if share.noticed} >= noticed
    assert ("thinking_cut" in noticed) == bool(cell.counts["thinking_cut"])
    assert campaign_status(folder).shares == [cell]


def test_the_demo_campaign_has_nothing_to_say(tmp_path):
    config = parse_config(DEMO.format(thinking=512, answer=32), source="test")
    run_campaign(config, tmp_path / "campaign")
    (cell,) = campaign_shares(tmp_path / "campaign")
    assert cell.sentences() == []
    assert share_sentences([cell]) == ()


@pytest.fixture
def strange(configure, tmp_path):
    folder = tmp_path / "strange"
    run_campaign(configure(), folder, open_model=lambda name, path: StrangeEngine(path))
    return folder


def test_answers_that_run_on_and_ids_without_a_token(strange):
    (cell,) = campaign_shares(strange)
    rows = [*table_rows(strange, "trajectories"), *table_rows(strange, "probes")]
    start = StoreTokenizer(strange)("<|im_start|>")
    assert cell.counts["ran_on"] == sum(start in row["answer_ids"] for row in rows) > 0
    assert cell.counts["unknown_ids"] == sum(4000 in row["answer_ids"] for row in rows) > 0
    assert cell.counts["outputs"] == len(rows)
    said = " ".join(cell.sentences())
    assert "run on into the next turn" in said
    assert "answer_stops" in said


class WritesOn(ScriptedEngine):
    """Every fourth of its answers goes on with the next turn, in ordinary text."""

    def _sample(self, tree, prompt, seed):
        made = super()._sample(tree, prompt, seed)
        if self._end in tree.stop_ids or seed % 4:
            return made
        later = self._tokenizer.encode("\nUSER: And 1 + 1?").ids
        return dataclasses.replace(made, token_ids=(*made.token_ids[:-1], *later, self._stop))


def test_answers_that_go_on_in_ordinary_text(configure, model_folder, tmp_path):
    written = tmp_path / "written"
    shutil.copytree(model_folder, written)
    values = json.loads((written / "tokenizer_config.json").read_text())
    template = "{% for m in messages %}{{ m.role | upper }}: {{ m.content }}\n{% endfor %}"
    values["chat_template"] = template
    (written / "tokenizer_config.json").write_text(json.dumps(values))
    folder = tmp_path / "campaign"
    run_campaign(configure(model=written), folder, open_model=lambda name, path: WritesOn(path))
    (cell,) = campaign_shares(folder)
    rows = [*table_rows(folder, "trajectories"), *table_rows(folder, "probes")]
    tokenizer = WritesOn(written)._tokenizer
    texts = [tokenizer.decode(row["answer_ids"]) for row in rows]
    assert cell.counts["ran_on"] == sum("\nUSER: " in text for text in texts) > 0
    assert "run on into the next turn" in " ".join(cell.sentences())


@pytest.mark.parametrize("strays", [frozenset(), frozenset({2, 5})])
@pytest.mark.parametrize("next_turn", [None, re.compile(rb"\nU:")])
def test_answers_that_run_on_are_counted_as_one_by_one(strays, next_turn):
    rng = np.random.default_rng(21)
    forms = [b"a", b"b", b"<s>", b"\n", b"U", b"<t>", b":", b""]
    answers = [rng.integers(0, 9, size).tolist() for size in rng.integers(0, 12, 3000)]
    answers += [[3, 4, 6], [], [0, 3], [4, 6], [900, 3, 4, 6]]
    turn_end = TurnEnd(stray_ids=strays, next_turn=next_turn)
    lists = pa.chunked_array([pa.array(part, pa.list_(pa.int32())) for part in (answers, [], [[]])])
    form = types.SimpleNamespace(turn_end=turn_end, forms=forms)
    expected = sum(turn_end.runs_on(ids, forms) for ids in answers)
    assert _running_on(lists, form) == expected
    assert bool(expected) == bool(strays or next_turn)


class StoreTokenizer:
    def __init__(self, folder):
        text = Store(folder).read_bytes("tokenizer/scripted/tokenizer.json")
        self._ids = {token["content"]: token["id"] for token in json.loads(text)["added_tokens"]}

    def __call__(self, token):
        return self._ids[token]


def test_shards_of_old_campaigns_are_counted_when_asked(strange):
    new = campaign_shares(strange)[0].counts
    for path in strange.rglob("*.parquet"):
        table = pq.read_table(path)
        metadata = {k: v for k, v in table.schema.metadata.items() if k != _COUNTS}
        pq.write_table(table.replace_schema_metadata(metadata), path)
    old = campaign_shares(strange)[0].counts
    of_ids = {"ran_on", "unknown_ids", "outputs", "all_answers"}
    assert old == {name: count for name, count in new.items() if name not in of_ids}


def test_merged_parts_keep_their_counts(configure, tmp_path, strange):
    merge_campaigns([strange], tmp_path / "merged")
    assert campaign_shares(tmp_path / "merged") == campaign_shares(strange)


def test_the_table_has_a_column_for_every_kind(strange):
    table = share_table(campaign_shares(strange))
    assert table.frame.notna().all().all()
    assert "Ran on" in table.to_markdown()


@pytest.mark.parametrize(
    ("reason", "trouble"),
    [
        ("wrong: time limit", "time limit"),
        ("wrong: test 3 of 4: killed: time limit", "time limit"),
        ("wrong: a rule failed on it (RecursionError)", "a rule failed on it"),
        ("wrong: test 1 of 2: RuntimeError: no worker", None),
        ("wrong: test 1 of 2: another value", None),
        ("wrong: differs from the reference", None),
        ("right: equal to the reference", None),
    ],
)
def test_trouble(reason, trouble):
    assert trouble_of(reason) == trouble


def test_trouble_is_found_in_what_the_checker_says(monkeypatch):
    question = Question(id="1", prompt="?", reference="2", answer_kind="math")

    def equal(self, *_):
        raise SymbolicTimeoutError  # A worker that dies, or runs out of its limits.

    def equals(self, *_):
        raise RecursionError

    monkeypatch.setattr(SymbolicWorker, "equal", equal)
    with Checker(workers=1) as checker:
        died = checker.check(question, r"\boxed{\int_0^2 x dx}")
        monkeypatch.setattr(Reference, "equals", equals)
        failed = checker.check(question, r"\boxed{3}")
    assert (trouble_of(died.reason), trouble_of(failed.reason)) == TROUBLES


def test_a_finish_of_an_answer_that_is_cut_is_told(configure, tmp_path):
    class Cut(ScriptedEngine):
        def _sample(self, tree, prompt, seed):
            made = super()._sample(tree, prompt, seed)
            if self._end in tree.stop_ids:
                return made
            return Completion(token_ids=made.token_ids[:-1], finish="length")

    run_campaign(configure(), tmp_path / "c", open_model=lambda name, path: Cut(path))
    (cell,) = campaign_shares(tmp_path / "c")
    assert cell.share("probes_cut").fraction == cell.share("answers_cut").fraction == 1.0


def test_what_is_cut_is_said_before_anything_is_probed(configure, opener, tmp_path, caplog):
    """Once for each kind, and while the run continues."""
    seen = []

    def said():
        lines = [r.message for r in caplog.records if "so far" in r.message]
        return [line for line in lines if "had their thinking cut at its limit" in line]

    class Watching(SilentObserver):
        def stage_finished(self, stage):
            seen.append(said())

        def unit_progressed(self, stage, unit, fraction, samples, tokens):
            if stage == "probe":
                seen.append(said())

    config = configure(thinking_limit=4, questions=4)
    run_campaign(config, tmp_path / "c", open_model=opener, observer=Watching())
    assert seen
    for lines in seen:
        (line,) = lines
        assert "raise generation.thinking_limit" in line
    caplog.clear()
    run_campaign(configure(thinking_limit=400), tmp_path / "whole", open_model=opener)
    assert not said()


def test_the_release_card_names_every_kind_that_occurs(strange):
    cells = campaign_shares(strange)
    (note,) = share_notes(cells)
    occurring = [share for share in cells[0].shares if share.count]
    assert occurring
    for share in occurring:
        assert share.sentence() in note
    assert note.count(";") >= len(occurring) - 1
