"""A release: what is in it, that pandas alone reads it, and that a changed byte is named."""

import hashlib
import json
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from data.errors import MisuseError, StpError
from evaluator.otbench.answer_numbers import AnswerNumbers
from evaluator.otbench.integrity import ChangedReleaseError, write_manifest
from evaluator.otbench.load import by_appearance, load_release
from evaluator.otbench.release import write_release
from evaluator.otbench.splits import SPLITS, SplitRule, divide, prompt_digest
from stp.campaign import load_curves
from stp.campaign.store import Store
from tests.otbench.campaigns import campaign, released, signals_of, with_signals

KEYS = ["model", "benchmark", "question_id", "trajectory", "position"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return (campaign, release)."""
    root = tmp_path_factory.mktemp("release")
    url = campaign(root / "campaign")
    with pytest.MonkeyPatch.context() as patch:
        with_signals(patch)
        return url, released(root / "release", url)


@pytest.fixture
def copy(made, tmp_path):
    """Return a release that a test may damage."""
    folder = tmp_path / "copy"
    subprocess.run(["cp", "-r", made[1], folder], check=True)
    return folder


def test_what_comes_back_is_what_the_campaign_holds(made):
    url, folder = made
    curves, release = load_curves(url), load_release(folder)
    assert release.curves.model_names == curves.model_names
    for s in range(curves.trajectories):
        name = curves.question_names[curves.question[s]]
        inside = (release.curves.model == curves.model[s]) & (
            release.curves.sample == curves.sample[s]
        )
        names = np.array([i for _, i in release.question_ids])
        benchmarks = np.array([b for b, _ in release.question_ids])
        inside &= names[release.curves.question] == name
        benchmark = curves.benchmark_names[curves.benchmark[s]]
        inside &= benchmarks[release.curves.question] == benchmark
        (row,) = np.flatnonzero(inside)
        mine, there = (
            slice(*c.trajectory_offsets[i : i + 2]) for c, i in ((curves, s), (release.curves, row))
        )
        assert release.curves.tokens[there].tolist() == curves.tokens[mine].tolist()
        assert release.curves.correct[there].tolist() == curves.correct[mine].tolist()
        assert release.curves.original_correct[row] == curves.original_correct[s]


def test_signals_lie_beside_their_positions(made):
    url, folder = made
    curves, release = load_curves(url), load_release(folder)
    for model in range(2):
        own = curves.select(curves.model == model)
        signals = signals_of(own)
        expected = {}
        for s in range(own.trajectories):
            name = (own.benchmark_names[own.benchmark[s]], own.question_names[own.question[s]])
            for k in range(*own.trajectory_offsets[s : s + 2]):
                expected[name, int(own.sample[s]), k - int(own.trajectory_offsets[s])] = k
        prompt = {
            (own.benchmark_names[b], own.question_names[q]): row
            for row, q in enumerate(signals.prompt_question.tolist())
            for b in own.benchmark[own.question == q][:1].tolist()
        }
        for split in ("train", "validation", "test"):
            needs = ("end_logprob", "hidden", "prompt_hidden", "short_answer_logprob", "answer")
            data = release.measurements(model, split, needs)
            assert data.layers == data.prompt_layers == (2, 5)
            c = data.curves
            for s in range(c.trajectories):
                name = release.question_ids[c.question[s]]
                assert SPLITS[release.split_q[int(c.question[s])]] == split
                for k in range(*c.trajectory_offsets[s : s + 2]):
                    row = expected[name, int(c.sample[s]), k - int(c.trajectory_offsets[s])]
                    assert data["end_logprob"][k] == signals.end_logprob[row]
                    assert data["hidden"][k, 1].tolist() == signals.hidden[5][row].tolist()
                    assert data["answer"][k] in (0, 1)
            for place, question in enumerate(data.questions.tolist()):
                name = release.question_ids[question]
                states = signals.prompt_hidden[2][prompt[name]]
                assert data["prompt_hidden"][place, 0].tolist() == states.tolist()
                row = expected[name, 0, 0]
                assert data["short_answer_logprob"][place] == signals.trial_logprob[row]


def appearance(trajectories):
    """Return each trajectory's answers numbered as they come, the slow way."""
    out = []
    for answers in trajectories:
        known = {}
        out += [-1 if a < 0 else known.setdefault(a, len(known)) for a in answers]
    return out


@pytest.mark.parametrize("seed", range(300))
def test_dealt_numbers_of_answers_say_nothing_of_what_is_to_come(seed):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 9, rng.integers(0, 6))
    trajectories = [rng.integers(-1, rng.integers(1, 6), n).tolist() for n in lengths]
    answers = np.array([a for each in trajectories for a in each], np.int32)
    position = np.array([k for n in lengths for k in range(n)], np.int64)
    assert by_appearance(answers, position).tolist() == appearance(trajectories)


def test_answers_of_probes_are_numbered_by_question(made):
    _, folder = made
    positions = pd.read_parquet(folder / "positions")
    answers = pd.read_parquet(folder / "answers").set_index(
        ["model", "benchmark", "question_id", "number"]
    )["answer"]
    rows = positions.sample(60, random_state=1)
    for row in rows.itertuples():
        texts = [answers[row.model, row.benchmark, row.question_id, n] for n in row.answers]
        assert texts.count("right") == row.correct
        assert set(texts) <= {"right", "wrong"}
    assert (positions["answer_tokens"] == 1).all()
    assert not positions["answer_hedged"].any()


def test_pandas_alone_reads_every_table(made):
    """In another process, with neither our code nor anything but pandas and its reader."""
    script = """
import sys
import pandas as pd
folder = sys.argv[1]
questions = pd.read_parquet(folder + "/questions.parquet")
tables = {n: pd.read_parquet(folder + "/" + n) for n in
          ("trajectories", "positions", "answers", "prompts", "hidden")}
positions = tables["positions"]
joined = positions.merge(questions, on=["benchmark", "question_id"], validate="many_to_one")
assert len(joined) == len(positions) == len(tables["hidden"])
assert len(tables["hidden"]["layer_5"].iloc[0]) == 6
ends = positions.groupby(["model", "benchmark", "question_id", "trajectory"])["tokens"].max()
full = tables["trajectories"].set_index(ends.index.names)["full_tokens"]
assert (ends.sort_index() == full.sort_index()).all()
assert not any(name.split(".")[0] in ("stp", "evaluator", "data") for name in sys.modules)
print(questions["split"].value_counts().to_dict())
"""
    done = subprocess.run(
        [sys.executable, "-I", "-c", script, str(made[1])],
        capture_output=True,
        text=True,
        check=True,
        cwd="/",
    )
    assert done.stdout.strip() == "{'train': 12, 'test': 7, 'validation': 5}"


def test_splits_are_by_question_stratified_and_the_same_again(made, tmp_path):
    url, folder = made
    questions = pd.read_parquet(folder / "questions.parquet")
    counts = questions.groupby(["benchmark", "split"]).size()
    assert counts["AIME"].to_dict() == {"test": 4, "train": 7, "validation": 3}
    assert counts["MATH"].to_dict() == {"test": 3, "train": 5, "validation": 2}
    trajectories = pd.read_parquet(folder / "trajectories")
    joined = trajectories.merge(questions, on=["benchmark", "question_id"])
    assert (joined["split_x"] == joined["split_y"]).all()
    again = pd.read_parquet(released(tmp_path / "again", url) / "questions.parquet")
    assert again.equals(questions)
    twice = released(tmp_path / "twice", url)
    assert load_release(twice).checksum == load_release(tmp_path / "again").checksum
    other = released(tmp_path / "other", url, rule=SplitRule(seed=5)) / "questions.parquet"
    assert not pd.read_parquet(other)["split"].equals(questions["split"])


def test_questions_with_the_same_text_are_on_one_side():
    texts = [prompt_digest(f"What is {i}?") for i in range(40)]
    twice = [prompt_digest(f"What  is {i}?\n") for i in range(0, 40, 2)]
    found = divide({"a": texts, "b": twice}, SplitRule(train=Fraction(2, 5)))
    side = dict(zip(texts, found["a"], strict=True))
    assert found["b"] == [side[text] for text in twice]
    assert [found["a"].count(s) for s in ("train", "validation", "test")] == [16, 8, 16]


def test_a_question_does_not_move_when_its_order_changes():
    texts = [prompt_digest(str(i)) for i in range(30)]
    found = dict(zip(texts, divide({"a": texts}, SplitRule())["a"], strict=True))
    backwards = divide({"a": texts[::-1]}, SplitRule())["a"]
    assert [found[text] for text in texts[::-1]] == backwards


@pytest.mark.parametrize(("train", "validation"), [("1", "0"), ("-1/4", "1/2"), ("0.6", "0.4")])
def test_splits_without_test_questions_are_refused(train, validation):
    with pytest.raises(MisuseError, match="must leave test questions"):
        SplitRule(train=Fraction(train), validation=Fraction(validation))


def test_a_leak_through_equal_texts_is_refused(copy):
    path = copy / "questions.parquet"
    questions = pd.read_parquet(path)
    train = questions.index[questions["split"] == "train"][0]
    test = questions.index[questions["split"] == "test"][0]
    questions.loc[test, "prompt_sha256"] = questions.loc[train, "prompt_sha256"]
    questions.to_parquet(path, index=False)
    reseal(copy)
    with pytest.raises(MisuseError, match=r"leak: question '.*' \(test\) has the same text"):
        load_release(copy)


def reseal(folder):
    manifest = json.loads((folder / "manifest.json").read_text())
    del manifest["files"], manifest["schema_version"]
    write_manifest(folder, manifest)


def test_a_changed_byte_is_named(copy):
    path = next((copy / "positions").iterdir())
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(ChangedReleaseError, match=f"{path.name}: changed since it was written"):
        load_release(copy)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / "questions.parquet").unlink(), "questions.parquet: missing"),
        (lambda f: (f / "README.md").write_text("short"), "README.md: changed since it"),
        (lambda f: (f / "manifest.sha256").unlink(), "manifest.sha256: missing"),
        (lambda f: (f / "manifest.json").unlink(), "no release .manifest.json is missing."),
        (
            lambda f: (f / "manifest.json").write_text(
                (f / "manifest.json").read_text().replace("train", "brain", 1)
            ),
            "manifest.json: changed since it was written",
        ),
    ],
)
def test_damage_is_named(copy, damage, message):
    damage(copy)
    with pytest.raises(StpError, match=message):
        load_release(copy)


def test_the_manifest_names_every_file_with_its_digest(made):
    url, folder = made
    manifest = json.loads((folder / "manifest.json").read_text())
    there = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
    assert set(manifest["files"]) == there - {"manifest.json", "manifest.sha256"}
    for name, entry in manifest["files"].items():
        content = (folder / name).read_bytes()
        assert entry["sha256"] == hashlib.sha256(content).hexdigest()
    checksum = hashlib.sha256((folder / "manifest.json").read_bytes()).hexdigest()
    assert (folder / "manifest.sha256").read_text() == f"{checksum}  manifest.json\n"
    settings = Store(url).read_manifest().settings
    assert manifest["campaigns"][0]["settings"] == settings
    assert settings


def test_the_card_describes_every_column(made):
    _, folder = made
    card = (folder / "README.md").read_text()
    assert card.startswith("---\nlicense: other\n")
    for table in ("positions", "trajectories", "answers", "prompts"):
        for column in pd.read_parquet(folder / table).columns:
            assert f"| `{column}` |" in card or column.startswith("layer_")
    assert "12 train, 5 validation, 7 test" in card


def test_without_signals_the_release_says_so(tmp_path):
    url = campaign(tmp_path / "c", models=1, questions=(10, 10))
    summary = write_release([url], tmp_path / "r")
    assert summary.signals == ()
    assert "has no signals: methods that need them cannot run" in summary.notes[0]
    release = load_release(tmp_path / "r")
    assert release.lacking(("hidden", "answer", "entropy")) == ("hidden", "entropy")
    with pytest.raises(MisuseError, match="holds no entropy; make the campaign's signals with"):
        release.measurements(0, "test", ("entropy",))


def test_several_campaigns_make_one_release_and_a_cell_comes_from_one(tmp_path):
    first = campaign(tmp_path / "a", models=1, questions=(12, 8))
    second = campaign(tmp_path / "b", models=1, questions=(12, 8), names=("GPQA", "LCB"), seed=2)
    write_release([first, second], tmp_path / "r")
    release = load_release(tmp_path / "r")
    assert release.curves.benchmark_names == ("AIME", "MATH", "GPQA", "LCB")
    assert release.curves.trajectories == 2 * 20 * 3
    with pytest.raises(MisuseError, match=r"model-0 on AIME is in .* and in .*; a cell can be"):
        write_release([first, first], tmp_path / "twice")


def test_a_folder_that_is_not_free_is_refused(tmp_path):
    url = campaign(tmp_path / "c", models=1, questions=(6, 6))
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "x").touch()
    with pytest.raises(MisuseError, match="a release needs a new folder"):
        write_release([url], tmp_path / "r")


def test_equal_answers_have_equal_numbers():
    numbers = AnswerNumbers("math")
    given = ["1/2", r"\frac{1}{2}", "0.5", None, "2", "x+1", "1+x", " 2 ", r"\frac12", "2.0"]
    found = [numbers.number(answer) for answer in given]
    assert found[:3] == [0, 0, 0]
    assert found[3] == -1
    assert found[4] == found[7] == found[9] != 0
    assert found[5] == found[6]
    assert found[8] == 0
    assert numbers.answers == ("1/2", "2", "x+1")
    texts = AnswerNumbers("choice")
    assert [texts.number(a) for a in ("A", "B", "A", " A\n", "1/2", "0.5")] == [0, 1, 0, 0, 2, 3]
