"""What was asked may not change under a campaign; references alone may, on request."""

import json
import shutil

import pytest

from data.errors import MisuseError, StoreError, StoreMismatchError
from stp.campaign.curves import load_curves
from stp.campaign.run import grade_campaign, run_campaign
from stp.campaign.store import Store
from tests.campaign.fakes import write_questions
from tests.campaign.rows import rows_of, table_rows


@pytest.fixture(scope="module")
def begun(configure, tmp_path_factory):
    """A finished campaign over a question file of its own."""
    from tests.campaign.fakes import ScriptedEngine

    base = tmp_path_factory.mktemp("asked")
    path = write_questions(base / "q", 4)
    path.write_text(path.read_text() + '[columns]\nid = "id"\n')
    config = configure(benchmark=path, questions=2)
    run_campaign(config, base / "c", open_model=lambda name, folder: ScriptedEngine(folder))
    return base


@pytest.fixture
def place(begun, tmp_path):
    """A copy of it, so that it can be changed."""
    shutil.copytree(begun / "c", tmp_path / "c")
    shutil.copytree(begun / "q", tmp_path / "q")
    return tmp_path


@pytest.fixture
def again(configure, place, opener):
    """Goes on with the copy; the question file is the copy's too."""

    def go_on():
        config = configure(benchmark=place / "q" / "sevens.toml", questions=2)
        return run_campaign(config, place / "c", open_model=opener)

    return go_on


def change(place, make):
    path = place / "q" / "sevens.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("\n".join(map(json.dumps, make(rows))) + "\n")


def edited(number, **values):
    return lambda rows: [*rows[:number], {**rows[number], **values}, *rows[number + 1 :]]


def test_nothing_changed(again):
    assert again().units == 0


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (edited(1, answer="8"), "the reference of 'q-1' differs: '7' before, '8' now"),
        (edited(2, question="What is 9?"), "the text of 'q-2' differs"),
        (edited(3, id="q-9"), "question 4 was 'q-3' and is 'q-9' now"),
        (lambda rows: rows[::-1], "in another order: question 1 was 'q-0' and is 'q-3' now"),
        (lambda rows: rows[:-1], "4 questions before, 3 now"),
        (lambda rows: [*rows, {"id": "n", "question": "?", "answer": "1"}], "5 now"),
    ],
)
def test_a_question_that_changed(place, again, make, said):
    before = rows_of(place / "c")
    change(place, make)
    with pytest.raises(StoreMismatchError) as caught:
        again()
    assert said in str(caught.value)
    assert "--references" in str(caught.value)
    assert rows_of(place / "c") == before


def test_another_instruction(place, again):
    path = place / "q" / "sevens.toml"
    path.write_text('instruction = "Say it in a \\\\boxed{}."\n' + path.read_text())
    with pytest.raises(StoreMismatchError, match=r"the prompt \(the benchmark's instruction"):
        again()


def test_a_file_that_is_gone(place, again):
    (place / "q" / "sevens.jsonl").unlink()
    with pytest.raises(MisuseError, match="no such file"):
        again()


def test_mended_references_are_taken_on_request(place, again):
    folder, path = place / "c", place / "q" / "sevens.jsonl"
    right = [row["right"] for row in table_rows(folder, "verdicts") if row["question"] == 1]
    change(place, edited(1, answer="8"))
    assert grade_campaign(folder, again=True, references=path).finished
    verdicts = [row for row in table_rows(folder, "verdicts") if row["question"] == 1]
    assert [row["right"] for row in verdicts] != right
    assert all(row["right"] == (row["answer"] == "8") for row in verdicts if row["answer"])
    (record,) = Store(folder).read_manifest().cells
    assert record.references == {"q-1": "8"}
    assert [mending.changed for mending in record.mendings] == [["q-1"]]
    load_curves(folder)
    assert again().units == 0, "the mended file is the campaign's now"
    change(place, edited(1, answer="7"))
    assert again().units == 0, "and so is the file from before"
    change(place, edited(1, answer="9"))
    with pytest.raises(StoreMismatchError, match="'8' before, '9' now"):
        again()
    (folder / "questions/scripted/sevens.parquet").unlink()
    change(place, edited(1, answer="7"))
    assert again().units == 0
    assert table_rows(folder, "questions")[1]["reference"] == "8"


def test_a_mending_that_was_stopped_is_gone_on_with(place, monkeypatch):
    folder, path = place / "c", place / "q" / "sevens.jsonl"
    change(place, edited(1, answer="8"))

    def fail(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("stp.campaign.store.Store.write_shard", fail)
        with pytest.raises(KeyboardInterrupt):
            grade_campaign(folder, again=True, references=path)
    with pytest.raises(StoreError, match="before they were corrected"):
        load_curves(folder)
    with pytest.raises(StoreError, match="were being corrected when a run was stopped"):
        grade_campaign(folder)
    assert grade_campaign(folder, again=True, references=path).finished
    load_curves(folder)


def test_verdicts_on_the_references_from_before_are_not_read(place, monkeypatch):
    folder, path = place / "c", place / "q" / "sevens.jsonl"
    change(place, edited(1, answer="8"))
    with monkeypatch.context() as patched:
        patched.setattr("stp.campaign.run.run_stages", lambda *_: None)
        grade_campaign(folder, again=True, references=path)
    with pytest.raises(StoreError, match="before they were corrected"):
        load_curves(folder)
    assert grade_campaign(folder).units == 2 * 2
    load_curves(folder)


def test_a_file_that_holds_others_is_said(place, caplog):
    change(place, edited(1, answer="8"))
    toml = place / "q" / "sevens.toml"
    config = Store(place / "c").read_config()
    values = config.model_copy(
        update={"benchmarks": (config.benchmarks[0].model_copy(update={"name": str(toml)}),)}
    )
    Store(place / "c").write_config(values)
    grade_campaign(place / "c", again=True)
    assert "has other references than this campaign for 1 questions, such as q-1" in caplog.text


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ('{"id": "other", "answer": "1"}', "none of its ids is a question of sevens"),
        ('{"id": "q-1", "answer": ""}', "is empty"),
        ('{"id": "q-1", "answer": "1"}\n{"id": "q-1", "answer": "2"}', "stands there twice"),
        ('{"id": "q-1", "answer": "so 5 it is"}', "no answer can equal"),
        ('{"number": "q-1"}', "no column 'id'"),
    ],
)
def test_files_that_cannot_be_taken(place, lines, said):
    path = place / "new.jsonl"
    path.write_text(lines)
    before = rows_of(place / "c")
    with pytest.raises(MisuseError, match=said):
        grade_campaign(place / "c", again=True, references=path)
    assert rows_of(place / "c") == before
    assert not Store(place / "c").read_manifest().cells[0].mendings
