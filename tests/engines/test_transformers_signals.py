"""Signals in one pass, against a plain pass of the library's own attention for every position."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from data.errors import MisuseError
from stp.engines.base import Branch, PromptTree
from stp.engines.signals import Continuation, SignalTree
from tests.engines.models import CONTEXT, FORKABLE, VOCABULARY


def plain(model, ids):
    """Return next-token log-probabilities [V] and all hidden states at the last id."""
    with torch.inference_mode():
        output = model(input_ids=torch.tensor([ids]), use_cache=False, output_hidden_states=True)
    log = torch.log_softmax(output.logits[0, -1].double(), -1).numpy()
    return log, [state[0, -1].numpy() for state in output.hidden_states]


def entropy(log):
    return -(np.exp(log) * log).sum()


def random_tree(seed: int, *, trunk: int = 70, layers=(0, 1, 2), continuations=True) -> SignalTree:
    draws = np.random.default_rng(seed)
    ids = tuple(draws.integers(VOCABULARY, size=trunk).tolist())
    cuts = tuple(sorted(set(draws.integers(1, trunk + 1, size=9).tolist()) | {1, trunk}))
    items = tuple(
        Continuation(
            cut=int(draws.integers(1, trunk + 1)),
            suffix_ids=tuple(draws.integers(VOCABULARY, size=draws.integers(1, 9)).tolist()),
        )
        for _ in range(7)
    )
    return SignalTree(
        trunk_ids=ids,
        cuts=cuts,
        end_id=int(draws.integers(VOCABULARY)),
        layers=layers,
        continuations=items if continuations else (),
    )


@pytest.mark.parametrize("kind", FORKABLE)
@pytest.mark.parametrize(
    "options", [{}, {"trunk_chunk_tokens": 7, "suffix_chunk_tokens": 5}], ids=["whole", "chunks"]
)
def test_one_pass_shows_what_a_pass_per_position_shows(kind, options, engine_of, naive_of):
    engine, model = engine_of(kind, **options), naive_of(kind).model
    trees = [random_tree(seed) for seed in range(2)]
    for tree, found in zip(trees, engine.signals(trees), strict=True):
        for k, cut in enumerate(tree.cuts):
            log, states = plain(model, tree.trunk_ids[:cut])
            others = np.delete(log, tree.end_id)
            assert found.end_logprob[k] == pytest.approx(log[tree.end_id], abs=2e-4)
            assert found.other_logprob[k] == pytest.approx(others.max(), abs=2e-4)
            assert log[found.other_id[k]] == pytest.approx(others.max(), abs=2e-4)
            assert found.other_id[k] != tree.end_id
            assert found.entropy[k] == pytest.approx(entropy(log), abs=5e-4)
            for layer in tree.layers:
                assert found.hidden[layer].dtype == np.float16
                assert np.allclose(found.hidden[layer][k], states[layer], rtol=2e-3, atol=2e-3)
        for item, seen, spread in zip(
            tree.continuations, found.suffix_logprobs, found.suffix_entropies, strict=True
        ):
            for j, token in enumerate(item.suffix_ids):
                before = tree.trunk_ids[: item.cut] + item.suffix_ids[:j]
                assert seen[j] == pytest.approx(plain(model, before)[0][token], abs=5e-4)
                after, _ = plain(model, (*before, token))
                assert spread[j] == pytest.approx(entropy(after), abs=1e-3)


@pytest.mark.parametrize("kind", FORKABLE)
@pytest.mark.parametrize("options", [{}, {"suffix_chunk_tokens": 9}], ids=["whole", "chunks"])
def test_ends_of_sessions_are_read_together_as_each_from_its_beginning(kind, options, engine_of):
    """Trunks of several lengths and layers; one session is unknown, one has too little."""
    engine, draws = engine_of(kind, **options), np.random.default_rng(5)
    trees = []
    for session, length in enumerate((20, 33, 47, 61)):
        ids = tuple(draws.integers(VOCABULARY, size=length).tolist())
        branch = Branch(cut=length, suffix_ids=(), seeds=(session,))
        tree = PromptTree(
            trunk_ids=ids, branches=(branch,), max_tokens=4, session=session, grows=session != 3
        )
        if session:
            ((made,),) = engine.generate([tree])[0]
            ids += made.token_ids
        cuts = {0: (1, len(ids)), 1: (len(ids),)}.get(session, (len(ids) - 1, len(ids)))
        items = tuple(
            Continuation(cut=len(ids) - back, suffix_ids=tuple(range(1, 2 + size)))
            for back, size in ((1, 5), (2, 1), (1, 2))[: session + 1]
        )
        trees.append(
            SignalTree(
                trunk_ids=ids,
                cuts=cuts,
                end_id=3,
                layers=((), (0, 2), (1,), (2,))[session],
                continuations=items if session != 2 else (),
                session=session,
            )
        )
    alone = engine.signals([replace(tree, session=None) for tree in trees])
    before = engine.usage.prefill_tokens
    together = engine.signals(trees)
    spent = engine.usage.prefill_tokens - before
    assert spent < len(trees[0].trunk_ids) + len(trees[3].trunk_ids) + 40
    for session in range(4):
        engine.end_session(session)
    for one, other in zip(alone, together, strict=True):
        assert other.other_id.tolist() == one.other_id.tolist()
        for name in ("end_logprob", "entropy", "other_logprob"):
            assert getattr(other, name) == pytest.approx(getattr(one, name), abs=3e-4)
        assert other.hidden.keys() == one.hidden.keys()
        for layer, states in one.hidden.items():
            assert other.hidden[layer] == pytest.approx(states, abs=3e-2)
        for name in ("suffix_logprobs", "suffix_entropies"):
            for mine, theirs in zip(getattr(other, name), getattr(one, name), strict=True):
                assert mine == pytest.approx(theirs, abs=5e-4)


def test_a_trunk_is_read_once(engine_of):
    engine = engine_of("qwen3")
    tree = random_tree(3)
    before = engine.usage.prefill_tokens
    engine.signals([tree])
    suffixes = sum(len(item.suffix_ids) for item in tree.continuations)
    assert engine.usage.prefill_tokens - before == len(tree.trunk_ids) + suffixes


def test_the_last_layer_is_the_engines_number_of_layers(engine_of):
    assert engine_of("qwen3").layers == 2
    with pytest.raises(MisuseError, match="layer 3 is not one"):
        engine_of("qwen3").signals([random_tree(0, layers=(3,))])


def test_what_cannot_be_read_is_refused(engine_of):
    engine = engine_of("qwen3")

    def tree(**values):
        return SignalTree(**{"trunk_ids": (1, 2, 3), "cuts": (1,), "end_id": 0, **values})

    for bad, message in (
        (tree(cuts=(0,)), "cut is not one of 1..3"),
        (tree(cuts=(2, 2)), "must rise"),
        (tree(end_id=VOCABULARY), "vocabulary"),
        (tree(trunk_ids=(1,) * (CONTEXT + 1)), "do not fit the context"),
        (tree(continuations=(Continuation(cut=4, suffix_ids=(1,)),)), "needs a cut"),
        (tree(continuations=(Continuation(cut=1, suffix_ids=()),)), "and ids"),
    ):
        with pytest.raises(MisuseError, match=message):
            engine.signals([bad])
    assert engine.signals([]) == []


def test_nothing_asked_is_nothing_shown(engine_of):
    (found,) = engine_of("qwen3").signals([SignalTree(trunk_ids=(1,), cuts=(), end_id=0)])
    assert found.end_logprob.shape == (0,) and found.hidden == {}
