"""The driver: every unit once, resumed where it was, and nothing of ours graded as an answer."""

import json
import shutil
import threading
from pathlib import Path

import pytest

from data.errors import EngineError, MisuseError, StoreError, StoreMismatchError
from evaluator.answers import Checker, CheckerError
from stp.campaign import run
from stp.campaign.curves import load_curves
from stp.campaign.graded import graded_answers
from stp.campaign.reader import CampaignReader
from stp.campaign.run import SilentObserver, grade_campaign, run_campaign
from stp.campaign.status import campaign_status
from stp.campaign.store import Store
from tests.campaign.fakes import write_model_folder, write_questions
from tests.campaign.rows import rows_of, table_rows


@pytest.fixture(scope="module")
def unbroken(configure, tmp_path_factory):
    """The folder of a campaign that ran through."""
    from tests.campaign.fakes import ScriptedEngine

    folder = tmp_path_factory.mktemp("unbroken") / "campaign"
    result = run_campaign(configure(), folder, open_model=lambda name, path: ScriptedEngine(path))
    assert result.finished
    return folder


@pytest.fixture
def copy(unbroken, tmp_path):
    return shutil.copytree(unbroken, tmp_path / "copy")


def test_a_campaign_has_every_row_once(unbroken):
    trajectories = table_rows(unbroken, "trajectories")
    keys = [(row["question"], row["trajectory"]) for row in trajectories]
    assert sorted(keys) == [(q, t) for q in range(10) for t in range(3)]
    positions = {
        (row["question"], row["trajectory"], row["position"]): row["tokens"]
        for row in table_rows(unbroken, "positions")
    }
    probes = [
        (row["question"], row["trajectory"], row["position"], row["sample"])
        for row in table_rows(unbroken, "probes")
    ]
    assert len(set(probes)) == len(probes)
    assert sorted(probes) == sorted((*key, sample) for key in positions for sample in range(4))
    verdicts = [
        (row["question"], row["trajectory"], row["position"], row["sample"])
        for row in table_rows(unbroken, "verdicts")
    ]
    assert sorted(verdicts) == sorted([*probes, *((*key, -1, 0) for key in keys)])
    for row in trajectories:
        own = {k: v for k, v in positions.items() if k[:2] == (row["question"], row["trajectory"])}
        lengths = [own[key] for key in sorted(own)]
        assert (lengths[0], lengths[-1]) == (0, len(row["thinking_ids"]))
        assert lengths == sorted(set(lengths))


def test_seeds_are_all_different(unbroken):
    seeds = [row["seed"] for row in table_rows(unbroken, "probes")]
    seeds += [row["seed"] for row in table_rows(unbroken, "trajectories")]
    assert len(set(seeds)) == len(seeds)


def test_a_cut_trajectory_keeps_its_thinking_and_has_no_answer(unbroken):
    finishes = {"end": 0, "limit": 0, "stop": 0}
    reasons = {
        (row["question"], row["trajectory"]): row
        for row in table_rows(unbroken, "verdicts")
        if row["position"] == -1
    }
    for row in table_rows(unbroken, "trajectories"):
        finishes[row["thinking_finish"]] += 1
        verdict = reasons[row["question"], row["trajectory"]]
        if row["thinking_finish"] == "end":
            assert row["answer_ids"]
            assert row["answer_finish"] == "stop"
            continue
        assert row["answer_ids"] == [] and row["answer_finish"] == "none"
        assert (verdict["right"], verdict["answer"]) == (False, None)
        assert verdict["reason"].startswith("wrong: no answer: ")
        if row["thinking_finish"] == "limit":
            assert len(row["thinking_ids"]) == 60
    assert all(finishes.values()), f"the script should give every kind of ending: {finishes}"


def test_nothing_is_done_twice(copy, configure, opener):
    before = rows_of(copy)
    result = run_campaign(configure(), copy, open_model=opener)
    assert (result.finished, result.units, opener.calls) == (True, 0, 0)
    assert rows_of(copy) == before


def test_stages_one_by_one_give_the_same_rows(unbroken, configure, opener, tmp_path):
    for stage in ("generate", "probe", "grade"):
        assert run_campaign(
            configure(), tmp_path / "c", stages=(stage,), open_model=opener
        ).finished
    assert rows_of(tmp_path / "c") == rows_of(unbroken)


def test_a_stage_waits_for_the_one_before(configure, opener, tmp_path):
    result = run_campaign(configure(), tmp_path / "c", stages=("probe",), open_model=opener)
    assert (result.finished, result.units, result.waiting, opener.calls) == (False, 0, 8, 0)


def test_an_object_store_holds_the_same_rows(unbroken, configure, opener):
    url = "memory://campaigns/one"
    assert run_campaign(configure(), url, open_model=opener).finished
    assert rows_of(url) == rows_of(unbroken)
    assert run_campaign(configure(), url, open_model=opener).units == 0


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"probes": 3}, "probing.probes is 4 in the folder and 3 now"),
        ({"step_tokens": 9}, "step_tokens"),
    ],
)
def test_another_configuration_is_refused(copy, configure, opener, values, key):
    before = rows_of(copy)
    with pytest.raises(StoreMismatchError, match=key):
        run_campaign(configure(**values), copy, open_model=opener)
    assert rows_of(copy) == before
    assert opener.calls == 0


def test_another_temperature_is_refused_and_other_threads_are_not(copy, configure, opener):
    with pytest.raises(StoreMismatchError, match=r"sampling\.temperature is null in the folder"):
        run_campaign(configure("[sampling]\ntemperature = 0.5\n"), copy, open_model=opener)
    threads = configure("[engine]\noptions = {threads = 2, max_rows = 3}\n")
    assert run_campaign(threads, copy, open_model=opener).finished


def test_other_weights_are_refused(copy, configure, opener, tmp_path):
    other = write_model_folder(tmp_path / "scripted")
    (other / "model.safetensors").write_bytes(b"trained on")
    with pytest.raises(StoreMismatchError, match="weights_hash differs"):
        run_campaign(configure(model=other), copy, open_model=opener)


@pytest.mark.parametrize("table", ["questions", "trajectories", "positions", "probes", "verdicts"])
def test_a_torn_shard_is_set_aside_and_made_again(table, copy, unbroken, configure, opener, caplog):
    store = Store(copy)
    name = next(name for name in store.files(table))
    path = copy / name
    path.write_bytes(path.read_bytes()[:-20])
    result = run_campaign(configure(), copy, open_model=opener)
    assert result.finished
    assert result.units == (table != "questions")
    assert rows_of(copy) == rows_of(unbroken)
    assert (copy / f"{name}.torn").exists()
    assert f"{name} is torn" in caplog.text


def test_a_deleted_shard_is_made_again(copy, unbroken, configure, opener):
    (copy / "trajectories/scripted/sevens/000003.parquet").unlink()
    result = run_campaign(configure(), copy, open_model=opener)
    # The trajectories come out as they were, so what was made from them still holds.
    assert (result.units, opener.calls) == (1, 2)
    assert rows_of(copy) == rows_of(unbroken)


def test_what_was_made_from_other_rows_is_out_of_date(copy, configure, opener, tmp_path):
    other = tmp_path / "other"
    run_campaign(configure("[sampling]\ntop_k = 3\n"), other, open_model=opener)
    name = "trajectories/scripted/sevens/000000.parquet"
    changed = Store(other).read_shard("trajectories", name)
    rows = changed.slice(0, changed.num_rows - 1)
    source = Store(copy).read_checked("trajectories", name)[1].source
    Store(copy).write_shard("trajectories", name, rows, source=source)
    result = run_campaign(configure(), copy, open_model=opener)
    assert result.units == 2
    probed = Store(copy).read_shard("probes", name.replace("trajectories/", "probes/"))
    kept = {(row["question"], row["trajectory"]) for row in rows.to_pylist()}
    assert {(r["question"], r["trajectory"]) for r in probed.to_pylist()} == kept
    assert (copy / (name.replace("trajectories/", "probes/") + ".outdated")).exists()


TABLES = ("trajectories", "positions", "probes", "verdicts")


@pytest.mark.parametrize("tables", [TABLES[:1], TABLES[1:2], TABLES[2:3], TABLES[3:], TABLES])
def test_shards_of_another_unit_are_not_taken_for_this_ones(
    copy, unbroken, configure, opener, tables
):
    for table in tables:
        first, second = (copy / table / f"scripted/sevens/00000{i}.parquet" for i in (0, 1))
        kept = first.read_bytes()
        first.write_bytes(second.read_bytes())
        second.write_bytes(kept)
    assert not campaign_status(copy).finished
    assert run_campaign(configure(), copy, open_model=opener).finished
    assert rows_of(copy) == rows_of(unbroken)


@pytest.mark.parametrize("tables", [TABLES[:1], TABLES[1:3], TABLES])
def test_shards_of_another_campaign_are_not_taken_for_this_ones(
    copy, unbroken, configure, opener, tmp_path, tables
):
    other = tmp_path / "other"
    # Other probes of the very same trajectories.
    extra = "[sampling]\ntop_k = 3\n" if tables != TABLES[1:3] else ""
    steps = {"step_tokens": 3} if tables == TABLES[1:3] else {}
    run_campaign(configure(extra, **steps), other, open_model=opener)
    for table in tables:
        name = f"{table}/scripted/sevens/000001.parquet"
        assert (copy / name).read_bytes() != (other / name).read_bytes()
        (copy / name).write_bytes((other / name).read_bytes())
    assert not campaign_status(copy).finished
    assert run_campaign(configure(), copy, open_model=opener).finished
    assert rows_of(copy) == rows_of(unbroken)


@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe", b"probes = ["])
def test_a_lost_campaign_file_is_said_and_written_again(copy, unbroken, configure, opener, content):
    path = copy / "campaign.toml"
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    for read in (campaign_status, load_curves, CampaignReader):
        with pytest.raises(StoreError, match="writes it again"):
            read(copy)
    assert run_campaign(configure(), copy, open_model=opener).units == 0
    assert Store(copy).read_campaign()[0] == configure()
    assert rows_of(copy) == rows_of(unbroken)


def test_a_campaign_file_changed_by_hand_is_refused(copy, configure):
    path = copy / "campaign.toml"
    path.write_text(path.read_text().replace("trajectories = 3", "trajectories = 4"))
    for read in (campaign_status, load_curves, CampaignReader, grade_campaign):
        with pytest.raises(StoreError, match=r"generation\.trajectories is 3 .* 4 in campaign"):
            read(copy)


@pytest.mark.parametrize("content", [None, b"{}"])
def test_a_lost_tokenizer_is_copied_again(copy, configure, opener, content):
    path = copy / "tokenizer/scripted/tokenizer.json"
    whole = path.read_bytes()
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    run_campaign(configure(), copy, open_model=opener)
    assert path.read_bytes() == whole


def test_a_folder_in_a_shards_place_is_one_line(copy, configure, opener):
    path = copy / "probes/scripted/sevens/000001.parquet"
    path.unlink()
    path.mkdir()
    for read in (campaign_status, load_curves):
        with pytest.raises(StoreError, match="cannot be read"):
            read(copy)


@pytest.mark.parametrize("text", ["[" * 100_000, "[]", "", '{"schema_version": 1}'])
def test_a_damaged_manifest_is_one_line(copy, text):
    (copy / "manifest.json").write_text(text)
    with pytest.raises(StoreError, match="not a whole manifest"):
        campaign_status(copy)


def _edited(folder, change, *, honest):
    """Change a folder's manifest; an honest change has the digest that fits it."""
    path = folder / "manifest.json"
    values = json.loads(path.read_text())
    change(values)
    if honest:
        del values["digest"]
    path.write_text(json.dumps(values))


def _claim_questions(values):
    values["cells"][0]["questions"] = 10**9


def _claim_more_questions(values):
    values["cells"][0]["questions"] += 1


def _claim_settings(values):
    values["config_hash"] = "0" * 64


def _claim_time(values):
    values["stages"]["probe"]["seconds"] += 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_claim_questions, "10000000"),
        (_claim_more_questions, "11 questions of .*the folder has 10"),
        (_claim_settings, "its config_hash"),
    ],
)
def test_a_manifest_that_cannot_be_is_refused_wherever_it_is_read(copy, change, message):
    _edited(copy, change, honest=True)
    for read in (campaign_status, load_curves, reading, grade_campaign):
        with pytest.raises(StoreError, match=message):
            read(copy)


@pytest.mark.parametrize("change", [_claim_questions, _claim_settings, _claim_time])
def test_a_manifest_that_was_changed_is_refused(copy, change):
    _edited(copy, change, honest=False)
    for read in (campaign_status, load_curves, reading, grade_campaign):
        with pytest.raises(StoreError, match="its content is not what was written"):
            read(copy)


def test_a_damaged_tokenizer_is_seen_before_anything_is_decoded(copy):
    path = copy / "tokenizer/scripted/tokenizer.json"
    values = json.loads(path.read_text())
    vocabulary = values["model"]["vocab"]
    vocabulary["1"], vocabulary["7"] = vocabulary["7"], vocabulary["1"]
    path.write_text(json.dumps(values))
    before = rows_of(copy)
    for read in (
        lambda url: grade_campaign(url, again=True),
        lambda url: CampaignReader(url).trajectory(reading(url)[0].question_id),
        graded_answers,
    ):
        with pytest.raises(StoreError, match="not the one that this campaign began with"):
            read(copy)
    assert rows_of(copy) == before


def reading(url):
    return list(CampaignReader(url).summaries())


def test_a_folder_without_rows_takes_another_configuration(configure, opener, tmp_path):
    def broken(name, folder):
        raise MisuseError("no such engine")

    with pytest.raises(MisuseError, match="no such engine"):
        run_campaign(configure(), tmp_path / "c", open_model=broken)
    assert run_campaign(configure(probes=2), tmp_path / "c", open_model=opener).finished
    with pytest.raises(StoreMismatchError, match=r"probing\.probes is 2"):
        run_campaign(configure(probes=1), tmp_path / "c", open_model=opener)


def test_a_stop_ends_after_the_unit_in_work(configure, unbroken, opener, tmp_path):
    stop = threading.Event()

    class StopSoon(SilentObserver):
        finished = 0

        def unit_finished(self, stage, unit, work):
            self.finished += 1
            if self.finished == 3:
                stop.set()

    result = run_campaign(
        configure(), tmp_path / "c", open_model=opener, observer=StopSoon(), stop=stop
    )
    assert (result.finished, result.units) == (False, 3)
    stages = campaign_status(tmp_path / "c").stages
    # What has its trajectories is probed before others are begun.
    assert (stages["generate"].units, stages["probe"].units) == (2, 1)
    assert run_campaign(configure(), tmp_path / "c", open_model=opener).units == 21
    assert rows_of(tmp_path / "c") == rows_of(unbroken)


class Failing:
    """Raises on the calls with the given numbers, counted over all engines."""

    def __init__(self, *numbers, error=None):
        self.error = error or EngineError("the device fell over")
        self.numbers, self.count = numbers, 0

    def __call__(self, trees):
        self.count += 1
        if self.count in self.numbers:
            raise self.error


@pytest.mark.parametrize(
    "error", [EngineError("the device fell over"), RuntimeError("out of memory\nat 0x0")]
)
def test_an_engine_that_fails_once_is_tried_again(
    error, configure, unbroken, opener, tmp_path, caplog
):
    opener.options["before_call"] = Failing(3, 9, error=error)
    result = run_campaign(configure(), tmp_path / "c", open_model=opener, retry_seconds=0)
    assert result.finished
    assert len(opener.engines) == 3
    assert [engine.closed for engine in opener.engines] == [True] * 3
    assert rows_of(tmp_path / "c") == rows_of(unbroken)
    assert "attempt 1 on scripted on sevens, questions" in caplog.text


def test_an_engine_that_keeps_failing_stops_the_run_and_names_the_unit(
    configure, unbroken, opener, tmp_path
):
    opener.options["before_call"] = Failing(7, 8, 9)
    with pytest.raises(EngineError, match="failed 3 times on scripted on sevens, questions 3 to 5"):
        run_campaign(configure(), tmp_path / "c", open_model=opener, retry_seconds=0)
    assert table_rows(tmp_path / "c", "verdicts") == []
    assert len(Store(tmp_path / "c").files("trajectories")) == 2
    assert run_campaign(configure(), tmp_path / "c", open_model=opener).units == 20
    assert rows_of(tmp_path / "c") == rows_of(unbroken)


def test_a_request_that_the_engine_calls_wrong_is_not_tried_again(configure, opener, tmp_path):
    opener.options["before_call"] = Failing(1, error=MisuseError("no such thing"))
    with pytest.raises(MisuseError, match="no such thing"):
        run_campaign(configure(), tmp_path / "c", open_model=opener)
    assert opener.calls == 1


def test_an_engine_with_less_context_is_refused(configure, opener, tmp_path):
    opener.options["context"] = 200
    with pytest.raises(MisuseError, match=r"set generation\.context_limit = 200"):
        run_campaign(configure(), tmp_path / "c", open_model=opener)


def test_vllm_is_opened_for_the_campaigns_context_and_no_more(configure, monkeypatch):
    given = []
    monkeypatch.setattr(run, "open_engine", lambda name, folder, **options: given.append(options))
    for extra in (
        "",
        '[engine]\nname = "vllm"\n',
        '[engine]\nname = "vllm"\noptions.context_limit = 9\n',
    ):
        config = configure(extra)
        run.configured_engine(config)("scripted", Path(config.models[0].path))
    assert given == [{}, {"context_limit": 600}, {"context_limit": 9}]


def test_the_models_own_context_counts(configure, opener, tmp_path):
    model = write_model_folder(tmp_path / "small", context=300)
    run_campaign(configure(model=model), tmp_path / "c", open_model=opener)
    assert Store(tmp_path / "c").read_manifest().models[0].context_limit == 300


def test_trouble_of_the_checker_is_no_verdict(copy, configure, opener, monkeypatch):
    def fail(self, pairs):
        raise CheckerError("no worker starts")

    shutil.rmtree(copy / "verdicts")
    with monkeypatch.context() as patch:
        patch.setattr(Checker, "check_many", fail)
        with pytest.raises(CheckerError):
            run_campaign(configure(), copy, open_model=opener)
    assert Store(copy).files("verdicts") == []
    assert grade_campaign(copy).units == 8


def test_grading_again_needs_no_model(configure, unbroken, opener, tmp_path):
    model = write_model_folder(tmp_path / "gone")
    folder = tmp_path / "c"
    run_campaign(configure(model=model), folder, open_model=opener)
    shutil.rmtree(model)
    before = rows_of(folder)
    assert grade_campaign(folder).units == 0
    assert grade_campaign(folder, again=True).units == 8
    assert rows_of(folder) == before == rows_of(unbroken)


def test_verdicts_of_another_checker_are_made_again(copy, monkeypatch):
    monkeypatch.setattr("stp.campaign.workers.CHECKER_VERSION", "99.0")
    assert grade_campaign(copy).units == 8
    assert Store(copy).read_manifest().checker_version == "99.0"


def test_the_manifest_counts_the_work(unbroken):
    manifest = Store(unbroken).read_manifest()
    probes = manifest.stages["probe"]
    assert probes.units == 8
    assert probes.samples == len(table_rows(unbroken, "probes"))
    assert probes.generated_tokens == sum(
        len(row["answer_ids"]) for row in table_rows(unbroken, "probes")
    )
    assert probes.usage.prefill_amplification == 1.0
    assert manifest.models[0].engine == {"engine": "scripted"}
    assert "NaN" not in Store(unbroken).read_bytes("manifest.json").decode()


def test_questions_that_do_not_fit_are_recorded_and_not_run(configure, opener, tmp_path, caplog):
    prompts = ["short", "x" * 450, "x" * 700]
    questions = write_questions(tmp_path / "q", prompts=prompts)
    config = configure(benchmark=questions)
    assert run_campaign(config, tmp_path / "c", open_model=opener).finished
    rows = table_rows(tmp_path / "c", "questions")
    assert [row["fit"] for row in rows] == ["whole", "shortened", "too_long"]
    assert [len(row["prompt_ids"]) > 600 for row in rows] == [False, False, True]
    limits = [row["thinking_limit"] for row in rows]
    assert limits[0] == 60 and limits[2] == 0
    assert {row["question"] for row in table_rows(tmp_path / "c", "trajectories")} == {0, 1}
    for row in table_rows(tmp_path / "c", "trajectories"):
        assert len(row["thinking_ids"]) <= limits[row["question"]]
    assert "1 are too long" in caplog.text
    cell = Store(tmp_path / "c").read_manifest().cells[0]
    assert (cell.shortened, cell.too_long) == (1, 1)
    assert campaign_status(tmp_path / "c").too_long == {cell.cell.folder: (rows[2]["question_id"],)}


def test_a_prompt_with_room_for_one_thinking_token_gets_whole_answers(configure, opener, tmp_path):
    # The close takes two ids, a mended boundary two, an answer twenty.
    prompt_tokens = 600 - 2 - 2 - 20 - 1
    questions = write_questions(tmp_path / "q", prompts=["?"])
    config = configure(benchmark=questions)
    run_campaign(config, tmp_path / "probe", open_model=opener)
    frame = len(table_rows(tmp_path / "probe", "questions")[0]["prompt_ids"]) - 1
    questions = write_questions(tmp_path / "q2", prompts=["?" * (prompt_tokens - frame)])
    run_campaign(configure(benchmark=questions), tmp_path / "c", open_model=opener)
    (question,) = table_rows(tmp_path / "c", "questions")
    assert (question["fit"], question["thinking_limit"]) == ("shortened", 1)
    assert {row["answer_limit"] for row in table_rows(tmp_path / "c", "probes")} == {20}


def test_limits_that_leave_no_room_to_think_are_refused(configure, opener, tmp_path):
    config = configure(context_limit=100)
    with pytest.raises(MisuseError) as caught:
        run_campaign(config, tmp_path / "c", open_model=opener)
    text = str(caught.value)
    assert "scripted on sevens: no room to think: of a context of 100 tokens" in text
    assert "answer_tokens 20; " in text and "raise generation.context_limit" in text
    assert not Store(tmp_path / "c").is_campaign()
    assert run_campaign(configure(), tmp_path / "c", open_model=opener).finished


def test_a_control_token_in_a_question_is_said(configure, opener, tmp_path, caplog):
    questions = write_questions(tmp_path / "q", prompts=["short", "a </think> b"])
    run_campaign(configure(benchmark=questions), tmp_path / "c", open_model=opener)
    assert "1 questions hold text that the model reads as a control token" in caplog.text
    assert "</think> in sevens-2" in caplog.text


def test_a_reference_that_cannot_be_used_is_refused_before_the_run(configure, opener, tmp_path):
    (tmp_path / "rows.jsonl").write_text('{"question": "?", "answer": "{}"}\n')
    (tmp_path / "mine.toml").write_text('path = "rows.jsonl"\nanswer_kind = "code"\n')
    with pytest.raises(MisuseError, match=r"rows\.jsonl, row 1: code tests"):
        run_campaign(configure(benchmark=tmp_path / "mine.toml"), tmp_path / "c", open_model=opener)
    assert not opener.engines
    assert not Store(tmp_path / "c").is_campaign()


def test_an_unknown_benchmark_and_a_missing_model_leave_nothing(configure, opener, tmp_path):
    with pytest.raises(MisuseError, match="no benchmark 'sevns'"):
        run_campaign(configure(benchmark="sevns"), tmp_path / "c", open_model=opener)
    with pytest.raises(MisuseError, match="no such folder"):
        run_campaign(configure(model="nowhere"), tmp_path / "c", open_model=opener)
    assert not Store(tmp_path / "c").is_campaign()
    assert run_campaign(configure(), tmp_path / "c", open_model=opener).finished


def test_a_tokenizer_without_a_thinking_end_is_refused(configure, opener, tmp_path):
    model = write_model_folder(tmp_path / "m")
    text = (model / "tokenizer.json").read_text().replace("</think>", "<nothing>")
    (model / "tokenizer.json").write_text(text)
    with pytest.raises(MisuseError, match="</think>") as caught:
        run_campaign(configure(model=model), tmp_path / "c", open_model=opener)
    assert "\n" not in str(caught.value)


def test_questions_that_changed_are_refused_and_not_written(configure, opener, tmp_path):
    questions, folder = tmp_path / "questions", tmp_path / "c"
    config = configure(benchmark=write_questions(questions))
    run_campaign(config, folder, open_model=opener)
    before = rows_of(folder)
    shard = folder / "questions/scripted/sevens.parquet"
    shard.unlink()
    write_questions(questions, prompts=[f"What is {number} times 1?" for number in range(10)])
    with pytest.raises(StoreMismatchError, match="no longer those of this campaign"):
        run_campaign(config, folder, open_model=opener)
    assert not shard.exists()
    write_questions(questions)
    assert run_campaign(config, folder, open_model=opener).finished
    assert rows_of(folder) == before


def test_a_run_that_dies_has_recorded_its_engine(configure, opener, tmp_path):
    def die(trees):
        raise KeyboardInterrupt

    opener.options["before_call"] = die
    with pytest.raises(KeyboardInterrupt):
        run_campaign(configure(), tmp_path / "c", open_model=opener)
    (record,) = Store(tmp_path / "c").read_manifest().models
    assert record.engine == opener.engines[0].describe() != {}
