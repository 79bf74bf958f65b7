"""Packed texts: what they may hold, and everything that they must not."""

import base64
import contextlib
import os
import pickle
import sys
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.packed import PackedTestsError, unpack_text


def packed(pickled: bytes) -> str:
    return base64.b64encode(zlib.compress(pickled)).decode()


@given(st.text(), st.integers(0, pickle.HIGHEST_PROTOCOL))
def test_any_text_under_any_protocol_comes_back(text, protocol):
    assert unpack_text(packed(pickle.dumps(text, protocol=protocol))) == text


def test_bytes_are_read_as_utf8():
    assert unpack_text(packed(pickle.dumps("é".encode()))) == "é"
    with pytest.raises(PackedTestsError, match="UTF-8"):
        unpack_text(packed(pickle.dumps(b"\xff")))


class _Runs:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_that_calls_a_function_is_refused_and_not_run(tmp_path, protocol):
    target = tmp_path / "made"
    with pytest.raises(PackedTestsError, match="instruction"):
        unpack_text(packed(pickle.dumps(_Runs(target), protocol=protocol)))
    assert not target.exists()


@pytest.mark.parametrize(
    "value", [1, 1.5, None, True, ["text"], {"a": "b"}, ("a", "b"), {"a"}, sys.getsizeof, {}]
)
def test_anything_but_one_text_is_refused(value):
    with pytest.raises(PackedTestsError):
        unpack_text(packed(pickle.dumps(value)))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no base64 at all!",
        base64.b64encode(b"no zlib stream").decode(),
        packed(b""),
        packed(b"\x80\x04"),
        packed(b"\x80\x04\x8c\x05ab"),
        packed(b"."),
        packed(pickle.dumps("whole")[:-1]),
        base64.b64encode(zlib.compress(pickle.dumps("cut off"))[:-6]).decode(),
    ],
)
def test_damage_is_refused(text):
    with pytest.raises(PackedTestsError):
        unpack_text(text)


@given(st.binary(max_size=60))
def test_random_pickles_never_do_anything_else(pickled):
    with contextlib.suppress(PackedTestsError):
        assert isinstance(unpack_text(packed(pickled)), str)


def test_a_bomb_is_refused_before_it_is_unpacked():
    bomb = packed(pickle.dumps("0" * 3_000_000))
    assert len(bomb) < 10_000
    with pytest.raises(PackedTestsError, match="more than 1000000 bytes"):
        unpack_text(bomb, max_bytes=1_000_000)
