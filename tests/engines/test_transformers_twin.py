"""The forked engine against full passes without a cache."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from stp.engines.base import Branch, PromptTree, SamplingParameters
from stp.engines.fork_attention import RowsStep, Tails, Trunk, TrunkStep, plan_blocks
from tests.engines.models import CONTEXT, FORKABLE, VOCABULARY

GREEDY = SamplingParameters(temperature=0.0)
EVERY_ID = frozenset(range(VOCABULARY))


def tree_of(cuts, *, seeds=(1,), max_tokens=6, sampling=GREEDY, trunk=40, **others) -> PromptTree:
    generator = np.random.default_rng(trunk)
    return PromptTree(
        trunk_ids=tuple(generator.integers(VOCABULARY, size=trunk).tolist()),
        branches=tuple(
            Branch(
                cut=cut,
                suffix_ids=tuple(
                    generator.integers(VOCABULARY, size=1 if cut == 0 else (5 * k) % 4).tolist()
                ),
                seeds=seeds,
            )
            for k, cut in enumerate(cuts)
        ),
        max_tokens=max_tokens,
        sampling=sampling,
        **others,
    )


@pytest.mark.parametrize("kind", FORKABLE)
def test_greedy_tokens_of_every_branch_are_those_of_full_passes(kind, engine_of, naive_of):
    tree = tree_of((0, 1, 5, 9, 9, 20, 36, 40), seeds=(1, 2), max_tokens=16)
    (completions,) = engine_of(kind).generate([tree])
    assert completions == naive_of(kind).generate(tree, CONTEXT)


@pytest.mark.parametrize("kind", FORKABLE)
@pytest.mark.parametrize("waste", [0, 10**9])
def test_logits_of_forked_rows_are_those_of_full_passes(kind, waste, engine_of, naive_of):
    """Two trunks in chunks; uneven rows; suffixes with padding; then one decoded token."""
    model = engine_of(kind)._model
    generator = torch.Generator().manual_seed(5)
    trunks, trunk_ids = [], []
    for length in (30, 17):
        trunk, ids = Trunk(length), torch.randint(VOCABULARY, (length,), generator=generator)
        for start in range(0, length, 11):
            stop = min(start + 11, length)
            with torch.inference_mode():
                model.forward(
                    TrunkStep(trunk, most_scores=100),
                    ids[None, start:stop],
                    torch.arange(start, stop)[None],
                    torch.tensor([0]),
                )
            trunk.length = stop
        trunks.append(trunk)
        trunk_ids.append(ids.tolist())
    owners = [0, 0, 0, 1, 1, 0]
    cuts = np.array([0, 13, 29, 17, 17, 30])
    lengths = np.array([3, 1, 5, 2, 5, 4])
    width = 6
    ids = torch.randint(VOCABULARY, (len(cuts), width), generator=generator)
    tails = Tails(lengths, 7)

    def logits_after(new, tail_index, longest):
        step = RowsStep(
            tails=tails,
            blocks=plan_blocks(
                [trunks[i] for i in owners],
                cuts,
                queries_per_row=4,
                most_waste=waste,
                most_scores=10**9,
            ),
            cuts=torch.from_numpy(cuts),
            tail_index=tail_index,
            longest=longest,
            even=False,
        )
        positions = torch.from_numpy(cuts)[:, None] + tail_index.clamp_min(0)
        with torch.inference_mode():
            return model.forward(step, new, positions, torch.tensor([new.shape[1] - 1]))[:, 0]

    there = torch.from_numpy(lengths)[:, None]
    first = logits_after(ids[:, :5], torch.arange(5) - 5 + there, 5)
    second = logits_after(ids[:, 5:], there, 6)
    for row, (owner, cut, length) in enumerate(zip(owners, cuts, lengths, strict=True)):
        prompt = trunk_ids[owner][:cut] + ids[row, 5 - length : 5].tolist()
        expected = naive_of(kind).logits(prompt)
        torch.testing.assert_close(first[row].double(), expected, atol=1e-4, rtol=1e-4)
        expected = naive_of(kind).logits([*prompt, int(ids[row, 5])])
        torch.testing.assert_close(second[row].double(), expected, atol=1e-4, rtol=1e-4)


samplings = st.builds(
    SamplingParameters,
    temperature=st.sampled_from((0.0, 0.6, 1.0, 1.5)),
    top_p=st.sampled_from((1.0, 0.95, 0.5, 0.01)),
    top_k=st.sampled_from((0, 1, 3, 20, 1000)),
    presence_penalty=st.sampled_from((0.0, 0.0, 1.5, -0.5)),
)


@st.composite
def trees(draw):
    ids = st.integers(0, VOCABULARY - 1)
    trunk = tuple(draw(st.lists(ids, max_size=30)))
    branches = []
    for cut in sorted(draw(st.lists(st.integers(0, len(trunk)), min_size=1, max_size=5))):
        suffix = draw(st.lists(ids, min_size=0 if cut else 1, max_size=6))
        seeds = draw(st.lists(st.integers(0, 2**63 - 1), max_size=3))
        branches.append(Branch(cut=cut, suffix_ids=tuple(suffix), seeds=tuple(seeds)))
    return PromptTree(
        trunk_ids=trunk,
        branches=tuple(branches),
        max_tokens=draw(st.integers(1, 8)),
        stop_ids=frozenset(draw(st.lists(ids, max_size=8))),
        sampling=draw(samplings),
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["qwen3", "mistral"])
@settings(max_examples=20)
@given(forest=st.lists(trees(), min_size=1, max_size=3))
def test_random_trees_sample_what_the_twin_samples(kind, forest, engine_of, naive_of):
    """In float64, so that noise cannot move a draw; three rows at a time, small chunks."""
    engine = engine_of(
        kind, dtype="float64", max_rows=3, trunk_chunk_tokens=7, suffix_chunk_tokens=8
    )
    twin = naive_of(kind, "float64")
    assert engine.generate(forest) == [twin.generate(tree, CONTEXT) for tree in forest]


SAMPLED = SamplingParameters(temperature=1.0, top_p=0.95)


@pytest.mark.parametrize(
    "options",
    [
        {"max_rows": 1},
        {"max_rows": 7},
        {"max_rows": 5, "trunk_chunk_tokens": 3, "suffix_chunk_tokens": 2},
        # Room for some 90 tokens: rows must be sent back to the queue and come again.
        {"memory_bytes": 90 * 2 * 2 * 2 * 8 * 8},
    ],
)
def test_samples_do_not_depend_on_their_batch(options, engine_of):
    seeds = tuple(range(10**12, 10**12 + 3))
    forest = [
        tree_of((0, 5, 9, 30), seeds=seeds, max_tokens=24, sampling=SAMPLED, trunk=30),
        tree_of((1, 2, 20), seeds=seeds, max_tokens=15, sampling=SAMPLED, trunk=20),
    ]
    together = engine_of("qwen3", dtype="float64").generate(forest)
    other = engine_of("qwen3", dtype="float64", **options)
    assert other.generate(forest) == together
    assert [other.generate([tree])[0] for tree in forest] == together
    assert len({completion for branch in together[0] for completion in branch}) > 6


def misleading_forest() -> list[PromptTree]:
    """Return trees of which the first end at once and the last are long: too many are let in."""
    seeds = tuple(range(8))
    short = tree_of((4, 8), seeds=seeds, max_tokens=24, trunk=8, stop_ids=EVERY_ID)
    long = tree_of((5, 9, 30), seeds=(1, 2, 3), max_tokens=24, sampling=SAMPLED, trunk=30)
    return [short, long]


def test_rows_that_were_sent_back_are_counted_as_prefilled_again_and_go_on(engine_of):
    forest = misleading_forest()
    engine = engine_of("qwen3", dtype="float64", memory_bytes=90 * 2 * 2 * 2 * 8 * 8)
    before = engine.usage.prefill_tokens - engine.usage.prefill_least_tokens
    made = engine.generate(forest)
    assert engine.usage.prefill_tokens - engine.usage.prefill_least_tokens > before
    assert made == engine_of("qwen3", dtype="float64").generate(forest)


def test_a_small_memory_is_not_thrashed(engine_of):
    """Trunks and tails that do not fit together, long and short, all at hand at once."""
    tokens = 250
    engine = engine_of("qwen3", dtype="float64", memory_bytes=tokens * 2 * 2 * 2 * 8 * 8)
    forest = [
        tree_of(range(4, size, 8), seeds=(1, 2, 3), max_tokens=24, sampling=SAMPLED, trunk=size)
        for size in (90, 20, 90, 30, 90, 20)
    ]
    before = engine.usage.copy()
    engine.generate(forest)
    used = engine.usage - before
    assert used.generated_tokens > 4 * tokens
    assert used.prefill_amplification < 1.3


def test_one_call_is_repeatable_to_the_bit(engine_of):
    tree = tree_of((3, 9, 30), seeds=(1, 2, 3), max_tokens=30, sampling=SAMPLED)
    engine = engine_of("llama")
    assert engine.generate([tree]) == engine.generate([tree])


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_narrow_types_sample_plausible_tokens(dtype, engine_of, naive_of):
    """Every greedy token of a narrow type is within noise of the best in float32."""
    tree = tree_of((5, 20, 40), max_tokens=8)
    (completions,) = engine_of("qwen3", dtype=dtype).generate([tree])
    for branch, (completion,) in zip(tree.branches, completions, strict=True):
        prompt = [*tree.trunk_ids[: branch.cut], *branch.suffix_ids]
        for i, token in enumerate(completion.token_ids):
            logits = naive_of("qwen3").logits([*prompt, *completion.token_ids[:i]])
            assert logits[token] >= logits.max() - 0.1 * logits.abs().max()
