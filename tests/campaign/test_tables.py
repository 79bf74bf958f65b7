"""Shards as bytes: whole, or found torn."""

import random
from io import BytesIO

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stp.campaign.tables import (
    SCHEMAS,
    TornShardError,
    Work,
    content_digest,
    decode_shard,
    encode_shard,
    make_table,
    shard_info,
)
from stp.engines.base import Usage

WORK = Work(usage=Usage(prefill_tokens=9, prefill_least_tokens=7, generated_tokens=5), samples=3)


def probes(answers, digits=1):
    count = len(answers)
    return make_table(
        "probes",
        {
            "model": ["m"] * count,
            "benchmark": ["b"] * count,
            "question": list(range(count)),
            "trajectory": [0] * count,
            "position": [1] * count,
            "sample": [0] * count,
            "seed": [2**63 - 1 - index for index in range(count)],
            "answer_ids": answers,
            "finish": ["stop"] * count,
            "answer_limit": [digits] * count,
        },
    )


def encode(table, name="probes"):
    return encode_shard(name, table, digest=content_digest(table), source="from", work=WORK)


def decode(content, name="probes"):
    return decode_shard(name, pa.BufferReader(content), path="p")


@given(st.lists(st.lists(st.integers(0, 2**31 - 1), max_size=5), max_size=6))
def test_a_shard_reads_back(answers):
    table = probes(answers)
    found, info = decode(encode(table))
    assert found.equals(table)
    assert (info.rows, info.source, info.work) == (len(answers), "from", WORK)
    assert shard_info("probes", pa.BufferReader(encode(table)), path="p") == info


@given(
    st.lists(st.lists(st.integers(0, 9), max_size=3), max_size=4),
    st.lists(st.lists(st.integers(0, 9), max_size=3), max_size=4),
)
def test_digests_are_equal_exactly_for_equal_rows(first, second):
    assert (content_digest(probes(first)) == content_digest(probes(second))) == (first == second)


def test_a_digest_does_not_depend_on_how_rows_are_held():
    table = probes([[1, 2], [], [3]])
    pieces = pa.concat_tables([table.slice(0, 1), table.slice(1)])
    assert content_digest(pieces) == content_digest(table)


def test_a_shard_cut_off_anywhere_is_torn():
    content = encode(probes([[1, 2, 3], [], [4]]))
    for length in range(len(content)):
        with pytest.raises(TornShardError, match="torn shard"):
            decode(content[:length])


def test_a_flipped_bit_is_found_or_harmless():
    table = probes([[1, 2, 3], [], list(range(500))])
    content = encode(table)
    draws = random.Random(1)
    torn = 0
    for _ in range(400):
        damaged = bytearray(content)
        damaged[draws.randrange(len(damaged))] ^= 1 << draws.randrange(8)
        try:
            assert decode(bytes(damaged))[0].equals(table)
        except TornShardError:
            torn += 1
    assert torn > 100


def test_a_shard_of_another_table_is_refused():
    with pytest.raises(TornShardError, match="not a shard of positions"):
        decode(encode(probes([[1]])), name="positions")


def test_an_error_is_one_line_with_the_file_and_the_fix():
    with pytest.raises(TornShardError) as caught:
        decode(b"")
    assert str(caught.value).startswith("p: torn shard")
    assert "stp run" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("table", SCHEMAS)
def test_a_torn_shard_names_the_command_that_makes_it(table):
    of_signals = table in ("signals", "prompt_signals")
    with pytest.raises(TornShardError) as caught:
        shard_info(table, BytesIO(b"PAR1"), path="p")
    command = "stp signals" if of_signals else "stp run"
    assert f"`{command}` on this campaign sets it aside and redoes it" in str(caught.value)
