"""Question files: what is read, and how damage is named."""

import pytest

from data.errors import MisuseError
from data.files import read_rows, text_of


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("a.jsonl", b'{"x": 1}\n{"x": \n', "line 2: not valid JSON"),
        ("a.jsonl", b'{"x": 1}\n\n[2]\n', "row 3: expected an object"),
        ("a.jsonl", b'{"x": "\xff"}\n', "not UTF-8"),
        ("a.jsonl", b'{"x": ' + b"[" * 100_000 + b"\n", "line 1: not valid JSON"),
        ("a.jsonl", b'{"x": ' + b"9" * 5_000 + b"}\n", "line 1: not valid JSON"),
        ("a.csv", b'x,y\n"' + b"a" * 100, "line 2: expected 2 fields"),
        ("a.json", b'{"x": 1}', "expected a JSON list"),
        ("a.parquet", b"nothing", "not a readable Parquet file"),
        ("a.csv", b"x,y\n1,2\n3\n", "line 3: expected 2 fields"),
        ("a.csv", b"x,y\n1,2\n3,4,5\n", "line 3: expected 2 fields"),
        ("a.txt", b"", "unknown kind of file; expected one of .jsonl"),
    ],
)
def test_damage_is_named(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(MisuseError) as caught:
        read_rows(path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_byte_order_mark_and_odd_line_ends_do_no_harm(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes('\ufeff{"x": "a\u2028b"}\r\n\r\n{"x": "c"}'.encode())
    assert read_rows(path) == [{"x": "a\u2028b"}, {"x": "c"}]


def test_a_csv_field_may_be_long_and_have_lines(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('x,y\n"' + "long\n" * 100_000 + '",2\n', encoding="utf-8")
    assert read_rows(path) == [{"x": "long\n" * 100_000, "y": "2"}]


@pytest.mark.parametrize("value", [None, "", " \n", float("nan"), float("inf"), True, [], {}])
def test_no_text_is_no_text(value):
    with pytest.raises(MisuseError, match="here: column 'x'"):
        text_of({"x": value}, "x", "here")


@pytest.mark.parametrize("value, text", [(" a ", "a"), (3, "3"), (0, "0"), (0.5, "0.5")])
def test_plain_values_are_text(value, text):
    assert text_of({"x": value}, "x", "here") == text


def test_columns_of_one_name_are_refused(tmp_path):
    path = tmp_path / "q.csv"
    path.write_text("id,answer,answer\n1,2,3\n")
    with pytest.raises(MisuseError, match="two columns are called 'answer'"):
        read_rows(path)
