"""A release that is refused, or that fails: what is said, and that nothing of it is left."""

import errno
from fractions import Fraction

import pytest

from data.errors import MisuseError, StoreError
from evaluator.otbench import release as release_module
from evaluator.otbench.load import load_release
from evaluator.otbench.release import write_release
from evaluator.otbench.splits import SplitRule, check_splits
from stp.cli.main import main
from tests.otbench.campaigns import campaign, with_signals


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    return campaign(tmp_path_factory.mktemp("refused") / "campaign", models=1, questions=(8, 8))


@pytest.fixture
def place(tmp_path):
    folder = tmp_path / "place"
    folder.mkdir()
    return folder


def tree(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


def breaks(monkeypatch, name, error):
    def broken(*arguments, **options):
        raise error

    monkeypatch.setattr(release_module, name, broken)


FAILURES = [
    ("_signals_of", StoreError("signals of model-0 are missing"), StoreError),
    ("write_cell", OSError(errno.ENOSPC, "No space left on device"), StoreError),
    ("write_manifest", OSError(errno.ENOSPC, "No space left on device"), StoreError),
    ("dataset_card", KeyboardInterrupt(), KeyboardInterrupt),
]


@pytest.mark.parametrize(("name", "error", "raised"), FAILURES)
@pytest.mark.parametrize("before", ["nothing", "empty", "partial", "no parent"])
def test_nothing_is_left_and_what_was_there_stays(
    url, place, monkeypatch, name, error, raised, before
):
    folder = place / "deep" / "er" / "r" if before == "no parent" else place / "r"
    if before == "empty":
        folder.mkdir()
    if before == "partial":
        (place / "r.partial").mkdir()
        (place / "r.partial" / "mine.txt").write_text("somebody's own")
    there = tree(place)
    with monkeypatch.context() as patch:
        breaks(patch, name, error)
        with pytest.raises(raised):
            write_release([url], folder)
    assert tree(place) == there
    write_release([url], folder)
    assert there.items() <= tree(place).items()
    assert load_release(folder).curves.trajectories == 48


def test_a_folder_that_cannot_be_taken_stays_as_it_was(url, place, monkeypatch):
    """Somebody puts a file there while the release is written."""
    card = release_module.dataset_card

    def late(content):
        (place / "r" / "late.txt").write_text("late")
        return card(content)

    (place / "r").mkdir()
    monkeypatch.setattr(release_module, "dataset_card", late)
    with pytest.raises(StoreError, match="the release cannot be written"):
        write_release([url], place / "r")
    assert tree(place) == {"r": None, "r/late.txt": b"late"}


@pytest.mark.parametrize("arguments", [(), ("--train", "99/100", "--validation", "0")])
def test_the_command_leaves_nothing(url, place, monkeypatch, capsys, arguments):
    with_signals(monkeypatch)
    breaks(monkeypatch, "write_manifest", OSError(errno.ENOSPC, "No space left on device"))
    with pytest.raises(SystemExit) as ended:
        main(["release", url, "--out", str(place / "r"), *arguments])
    assert ended.value.code == (2 if arguments else 1)
    found = capsys.readouterr()
    assert found.out == ""
    assert len(found.err.strip().splitlines()) == 1
    assert tree(place) == {}


@pytest.mark.parametrize("split", ["train", "validation"])
def test_a_fraction_of_nothing_is_refused_before_anything_is_read(place, split):
    rule = SplitRule(**{split: Fraction(0)})
    message = f"--{split} 0 leaves no {split} questions, .* as --train 1/2 --validation 1/5$"
    with pytest.raises(MisuseError, match=message):
        write_release([str(place / "no campaign")], place / "r", rule=rule)


def test_a_split_that_comes_out_empty_is_refused_with_the_fix(url, place):
    rule = SplitRule(train=Fraction(97, 100), validation=Fraction(1, 100))
    with pytest.raises(
        MisuseError,
        match=(
            "no validation questions of model-0: its 16 questions of AIME, MATH are 16 train and "
            "0 test; give other fractions, as --train 1/2 --validation 1/5, or measure more"
        ),
    ):
        write_release([url], place / "r", rule=rule)
    assert tree(place) == {}
    write_release([url], place / "r", rule=rule, allow_empty_splits=True)
    assert load_release(place / "r").in_split("validation").size == 0


def test_every_model_needs_every_split():
    full = ["train", "validation", "test"]
    with pytest.raises(MisuseError, match="no test questions of b: its 2 questions of Y are 1"):
        check_splits({"a": {"X": full, "Y": full[:2]}, "b": {"Y": full[:2]}})
    assert check_splits({"a": {"X": full}}) == []


def test_a_small_benchmark_beside_a_large_one_is_a_note(place):
    url = campaign(place / "c", models=2, questions=(14, 1))
    summary = write_release([url], place / "r")
    notes = [note for note in summary.notes if note.startswith("MATH has no")]
    assert len(notes) == 2
    assert any("MATH has no validation questions (1 question): it has" in note for note in notes)
    assert set(notes) <= set(load_release(place / "r").manifest["notes"])
    assert all(note in (place / "r" / "README.md").read_text() for note in notes)
