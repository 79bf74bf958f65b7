"""The shipped demo model: a real trajectory, probed at every step, against full passes."""

import pytest
from tokenizers import Tokenizer

from stp.engines.base import Branch, PromptTree, SamplingParameters
from stp.segmentation import boundary_token_ids, segment

CLOSE = "</think>\n"


@pytest.fixture(scope="module")
def demo(model_folder):
    return Tokenizer.from_file(str(model_folder("demo") / "tokenizer.json"))


@pytest.fixture(scope="module")
def trajectory(demo, engine_of):
    """Return prompt ids, thinking ids and L(0..n) of one trajectory."""
    prompt = demo.encode(
        "<|im_start|>user\nWhat is 4 + 7 + 2 + 9 + 5?\n"
        "Put the final answer in \\boxed{}.<|im_end|>\n"
        "<|im_start|>assistant\n<think>\n"
    ).ids
    stop = demo.token_to_id("</think>")
    tree = PromptTree(
        trunk_ids=tuple(prompt),
        branches=(Branch(cut=len(prompt), suffix_ids=(), seeds=(7,)),),
        max_tokens=300,
        stop_ids=frozenset({stop}),
    )
    ((((sample),),),) = engine_of("demo").generate([tree])
    thinking = [token for token in sample.token_ids if token != stop]
    return prompt, thinking, segment(thinking, boundary_token_ids(demo), step_tokens=8)


def probe_tree(demo, trajectory, seeds, **fields) -> PromptTree:
    prompt, thinking, lengths = trajectory
    close = tuple(demo.encode(CLOSE).ids)
    return PromptTree(
        trunk_ids=(*prompt, *thinking),
        branches=tuple(
            Branch(cut=len(prompt) + int(length), suffix_ids=close, seeds=seeds)
            for length in lengths
        ),
        stop_ids=frozenset({demo.token_to_id("<|im_end|>")}),
        **fields,
    )


def test_the_demo_model_thinks_in_steps(trajectory):
    assert len(trajectory[2]) > 3


def test_greedy_answers_at_every_position_are_those_of_full_passes(
    demo, trajectory, engine_of, naive_of
):
    tree = probe_tree(
        demo, trajectory, (0,), max_tokens=10, sampling=SamplingParameters(temperature=0.0)
    )
    engine = engine_of("demo")
    before = engine.usage.prefill_tokens
    (completions,) = engine.generate([tree])
    suffixes = sum(len(branch.suffix_ids) for branch in tree.branches)
    assert engine.usage.prefill_tokens - before == len(tree.trunk_ids) + suffixes
    assert completions == naive_of("demo").generate(tree, 1024)


def test_sampled_answers_are_those_of_full_passes(demo, trajectory, engine_of, naive_of):
    tree = probe_tree(demo, trajectory, (11, 12), max_tokens=10)
    (completions,) = engine_of("demo", dtype="float64").generate([tree])
    assert completions == naive_of("demo", "float64").generate(tree, 1024)
