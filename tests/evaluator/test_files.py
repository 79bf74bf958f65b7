"""Files of a run's folder: whole or as they were, and one process at a time."""

import pytest

from data.errors import MisuseError, StoreError
from evaluator.files import locked_folder, write_atomically


def test_a_file_is_whole_or_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "made" / "values.json"
    write_atomically(path, b"first")
    write_atomically(path, b"second")
    assert path.read_bytes() == b"second"

    def full(number):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(StoreError, match=r"values\.json: cannot be written: No space left"):
        write_atomically(path, b"third")
    assert path.read_bytes() == b"second"
    assert [entry.name for entry in path.parent.iterdir()] == ["values.json"]


def test_a_file_in_the_way_is_one_line(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StoreError, match="cannot be written"):
        write_atomically(tmp_path / "file" / "values.json", b"")
    with pytest.raises(MisuseError, match="a file is in the way"), locked_folder(tmp_path / "file"):
        pass


def test_a_folder_is_held_by_one_and_free_afterwards(tmp_path):
    folder = tmp_path / "run"
    with locked_folder(folder), pytest.raises(StoreError, match="works"), locked_folder(folder):
        pass
    with locked_folder(folder):
        assert folder.is_dir()
