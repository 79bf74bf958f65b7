"""Files of a run's folder: whole or as they were, and one process at a time."""

import doctest

import pytest

from data.errors import MisuseError, StoreError
from evaluator.runs.folder import locked_folder
from stp import files, records
from stp.files import json_object, read_json, write_durably


def test_a_file_is_whole_or_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "made" / "values.json"
    write_durably(path, b"first")
    write_durably(path, b"second")
    assert path.read_bytes() == b"second"

    def full(number):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(StoreError, match=r"values\.json: the disk is full"):
        write_durably(path, b"third")
    assert path.read_bytes() == b"second"
    assert [entry.name for entry in path.parent.iterdir()] == ["values.json"]


def test_a_file_in_the_way_is_one_line(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StoreError, match="cannot be written"):
        write_durably(tmp_path / "file" / "values.json", b"")
    with pytest.raises(MisuseError, match="a file is in the way"), locked_folder(tmp_path / "file"):
        pass


def test_a_folder_is_held_by_one_and_free_afterwards(tmp_path):
    folder = tmp_path / "run"
    with locked_folder(folder), pytest.raises(StoreError, match="works"), locked_folder(folder):
        pass
    with locked_folder(folder):
        assert folder.is_dir()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "Expecting value"),
        (b"{", "Expecting property name"),
        (b'{"a": 1} {"b": 2}', "Extra data"),
        (b"[1, 2]", "holds no JSON object"),
        (b"null", "holds no JSON object"),
        (b"[" * 100_000, "recursion"),
        (b'{"a": ' * 100_000, "recursion"),
        (b'{"a": "\xff"}', "utf-8"),
        ('{"a": 1}'.encode("utf-16"), "utf-8"),
        (b'{"a": "\\ud800"}', "surrogates not allowed"),
        (b'{"\\udc80": 1}', "surrogates not allowed"),
        (b'{"a": NaN}', "NaN is not a number"),
        (b'{"a": -Infinity}', "-Infinity is not a number"),
        (b'{"a": 1e999}', "1e999 is not a number"),
        (b'{"a": ' + b"9" * 5000 + b"}", "digits"),
    ],
)
def test_what_is_no_json_object_is_one_line_that_names_it(tmp_path, content, message):
    path = tmp_path / "values.json"
    path.write_bytes(content)
    with pytest.raises(StoreError, match=rf"values\.json: cannot be read \(.*{message}") as said:
        read_json(path)
    assert "\n" not in str(said.value)
    with pytest.raises(StoreError, match=r"^lines\.jsonl, line 3: cannot be read"):
        json_object(content, "lines.jsonl, line 3")


def test_a_json_object_is_read_and_what_is_not_there_is_left_to_whoever_asks(tmp_path):
    path = tmp_path / "values.json"
    path.write_text('{"a": "\\ud83d\\ude00 é", "b": [1.5, 2, true, null]}\n', encoding="utf-8")
    assert read_json(path) == {"a": "\N{GRINNING FACE} é", "b": [1.5, 2, True, None]}
    with pytest.raises(FileNotFoundError):
        read_json(tmp_path / "another.json")
    for odd in (tmp_path, path / "below"):
        with pytest.raises(StoreError, match="cannot be read: "):
            read_json(odd)


@pytest.mark.parametrize("module", [files, records])
def test_examples_run(module):
    found = doctest.testmod(module)
    assert found.attempted > 0
    assert found.failed == 0
