"""Samples that are made in pieces: the same tokens as in one go, and each token computed once."""

from dataclasses import replace

import pytest

from stp.engines.admission import Gathering
from stp.engines.base import Branch, PromptTree, SamplingParameters
from stp.engines.fork_attention import Trunk
from stp.engines.signals import Continuation, SignalTree
from stp.engines.transformers import TransformersEngine
from stp.formats import ThinkingFormat, get_family
from stp.segmentation import boundary_token_ids
from stp.tokenizers import load_tokenizer

DEMO = "data/demo_model"
PROMPTS = ("What is 4 + 7 + 2 + 9 + 5?", "Which is larger, 8 + 5 + 9 or 7 + 6 + 4?")
SAMPLINGS = (
    SamplingParameters(temperature=1.0),
    SamplingParameters(temperature=0.8, top_p=0.9),
    SamplingParameters(temperature=1.0, top_k=20, presence_penalty=0.7),
)


@pytest.fixture(scope="module")
def engine():
    made = TransformersEngine(DEMO, device="cpu", threads=1)
    yield made
    made.close()


@pytest.fixture(scope="module")
def format():
    return ThinkingFormat(get_family("demo"), load_tokenizer(DEMO))


def whole_tree(format, prompt, seed, sampling):
    ids = format.prompt_ids(prompt)
    return PromptTree(
        trunk_ids=ids,
        branches=(Branch(cut=len(ids), suffix_ids=(), seeds=(seed,)),),
        max_tokens=120,
        stop_ids=format.thinking_stop_ids,
        sampling=sampling,
    )


def piece_of(tree, output, boundary_ids, session, pause_after):
    """Return the tree that continues after ``output``."""
    ids = tree.trunk_ids + output
    branch = tree.branches[0]
    if output:
        branch = replace(branch, cut=len(ids) - 1, suffix_ids=ids[-1:], drawn=len(output))
    return replace(
        tree,
        trunk_ids=ids,
        branches=(branch,),
        max_tokens=tree.max_tokens - len(output),
        pause_ids=boundary_ids,
        pause_after=pause_after,
        session=session,
        grows=True,
    )


def in_pieces(engine, trees, boundary_ids, *, pause_after=4):
    """Return the outputs of trees that go on in pieces side by side, and the number of pieces."""
    outputs = [()] * len(trees)
    going = list(range(len(trees)))
    pieces = 0
    while going:
        asked = [piece_of(trees[i], outputs[i], boundary_ids, i, pause_after) for i in going]
        for i, ((sample,),) in zip(list(going), engine.generate(asked), strict=True):
            pieces += 1
            outputs[i] += sample.token_ids
            if sample.token_ids[-1] not in boundary_ids or len(outputs[i]) == trees[i].max_tokens:
                going.remove(i)
            else:
                assert len(sample.token_ids) >= pause_after
    for i in range(len(trees)):
        engine.end_session(i)
    return outputs, pieces


@pytest.mark.parametrize("sampling", SAMPLINGS, ids=("plain", "nucleus", "penalised"))
def test_pieces_are_the_sample_made_in_one_go(engine, format, sampling):
    boundary_ids = boundary_token_ids(format.tokenizer)
    trees = [
        whole_tree(format, prompt, seed, sampling) for prompt in PROMPTS for seed in range(1, 6)
    ]
    whole = [tree[0][0].token_ids for tree in engine.generate(trees)]
    for pause_after in (1, 16):
        outputs, pieces = in_pieces(engine, trees, boundary_ids, pause_after=pause_after)
        assert outputs == whole
        assert pieces > len(trees)


def test_a_session_computes_nothing_twice(engine, format):
    boundary_ids = boundary_token_ids(format.tokenizer)
    trees = [whole_tree(format, PROMPTS[0], 3, SAMPLINGS[0])]
    before = engine.usage.copy()
    outputs, pieces = in_pieces(engine, trees, boundary_ids)
    used = engine.usage - before
    assert pieces > 3
    # The prompt once, and a token for every piece but the first: the newest of the one before.
    assert used.prefill_tokens == len(trees[0].trunk_ids) + pieces - 1
    assert used.generated_tokens == len(outputs[0])


def test_what_a_session_forks_is_what_a_new_tree_gives(engine, format):
    """Answers and signals after a prefix, from the session and from the beginning."""
    boundary_ids = boundary_token_ids(format.tokenizer)
    tree = whole_tree(format, PROMPTS[1], 5, SAMPLINGS[0])
    first = piece_of(tree, (), boundary_ids, 1, 16)
    ((sample,),) = engine.generate([first])[0:1][0]
    ids = tree.trunk_ids + sample.token_ids
    closed = Branch(cut=len(ids) - 1, suffix_ids=format.close_ids, seeds=(1, 2, 3))
    answers = PromptTree(
        trunk_ids=ids, branches=(closed,), max_tokens=8, stop_ids=format.answer_stop_ids
    )
    read = SignalTree(
        trunk_ids=ids,
        cuts=(len(ids),),
        end_id=format.end_ids[0],
        layers=(1,),
        continuations=(Continuation(cut=len(ids) - 1, suffix_ids=format.close_ids),),
    )
    before = engine.usage.copy()
    forked = engine.generate([replace(answers, session=1)])
    assert (engine.usage - before).prefill_tokens == len(format.close_ids)
    assert forked == engine.generate([answers])
    before = engine.usage.copy()
    (seen,) = engine.signals([replace(read, session=1)])
    assert (engine.usage - before).prefill_tokens == 2 + len(format.close_ids)
    (anew,) = engine.signals([read])
    engine.end_session(1)
    for name in ("end_logprob", "entropy", "other_logprob"):
        assert getattr(seen, name) == pytest.approx(getattr(anew, name), abs=1e-5)
    assert seen.suffix_entropies[0] == pytest.approx(anew.suffix_entropies[0], abs=1e-5)
    assert seen.hidden[1].astype(float) == pytest.approx(anew.hidden[1].astype(float), abs=2e-2)


def test_a_continuation_after_the_newest_token_is_read_without_a_copy_of_the_trunk(
    engine, format, monkeypatch
):
    """The newest token has been drawn and not been through the model: the session lacks it."""
    tree = whole_tree(format, PROMPTS[1], 5, SAMPLINGS[0])
    pieces = [piece_of(tree, (), boundary_token_ids(format.tokenizer), s, 16) for s in (1, 2)]
    made = [samples[0][0].token_ids for samples in engine.generate(pieces)]
    read = [
        SignalTree(
            trunk_ids=tree.trunk_ids + ids,
            cuts=(len(tree.trunk_ids + ids),),
            end_id=format.end_ids[0],
            continuations=tuple(
                Continuation(cut=len(tree.trunk_ids + ids) - back, suffix_ids=format.close_ids)
                for back in (0, 1)
            ),
            session=session,
        )
        for session, ids in enumerate(made, 1)
    ]
    anew = engine.signals([replace(one, session=None) for one in read])

    def copy(self, length, capacity):
        raise AssertionError(f"{length} tokens of a trunk are copied")

    before = engine.usage.copy()
    with monkeypatch.context() as patched:
        patched.setattr(Trunk, "copy", copy)
        seen = engine.signals(read)
    spent = (engine.usage - before).prefill_tokens
    # The end is read from the token before the first cut on, the newest one again before its
    # continuation.
    assert spent == 2 * (2 + 1 + 2 * len(format.close_ids))
    for session in (1, 2):
        engine.end_session(session)
    for mine, theirs in zip(seen, anew, strict=True):
        assert mine.end_logprob == pytest.approx(theirs.end_logprob, abs=1e-4)
        for name in ("suffix_logprobs", "suffix_entropies"):
            for one, other in zip(getattr(mine, name), getattr(theirs, name), strict=True):
                assert one == pytest.approx(other, abs=1e-4)


def waiting_read(format, session, prompt=PROMPTS[0]):
    ids = format.prompt_ids(prompt)
    return SignalTree(trunk_ids=ids, cuts=(len(ids),), end_id=format.end_ids[0], session=session)


def crowd(format, rows=40):
    """Return a tree whose samples run for a while."""
    tree = whole_tree(format, PROMPTS[0], 1, SAMPLINGS[0])
    branch = replace(tree.branches[0], seeds=tuple(range(rows)))
    return replace(tree, branches=(branch,), stop_ids=())


def test_a_tree_of_no_session_is_read_while_reads_of_sessions_wait(engine, format):
    engine.submit(crowd(format))
    engine.step()
    waits, other = (engine.submit(waiting_read(format, session)) for session in (1, None))
    (read,) = engine.step().trees
    assert read.ticket == other
    assert list(engine._to_read) == [waits]
    engine.drop()


def test_reads_that_are_dropped_do_not_count_for_the_next(engine, format):
    engine.submit(crowd(format))
    engine.step()
    ticket = engine.submit(waiting_read(format, 1))
    engine.step()
    assert engine._gathering.lost == 1
    engine.drop([ticket])
    assert engine._gathering == Gathering()
    engine.drop()


def test_samples_that_are_dropped_do_not_count_for_the_next(engine, format):
    engine.submit(crowd(format))
    engine.step()
    ticket = engine.submit(whole_tree(format, PROMPTS[1], 1, SAMPLINGS[0]))
    engine.step()
    assert engine._decoder._gathering.lost == 1
    engine.drop([ticket])
    assert engine._decoder._gathering == Gathering()
    engine.drop()


@pytest.mark.parametrize("session", [None, 1])
def test_one_tree_that_is_submitted_twice_is_counted_for_both_tickets(engine, format, session):
    tree = waiting_read(format, session)
    tickets = [engine.submit(tree) for _ in range(2)]
    ended = []
    while len(ended) < 2:
        ended += engine.step().trees
    assert [one.ticket for one in ended] == tickets
    first, second = (one.usage.prefill_tokens for one in ended)
    assert first == second == len(tree.trunk_ids)


def test_ids_that_are_not_the_sessions_are_read_anew(engine, format):
    tree = whole_tree(format, PROMPTS[0], 3, SAMPLINGS[0])
    other = whole_tree(format, PROMPTS[1], 3, SAMPLINGS[0])
    engine.generate([replace(tree, session=2, grows=True)])
    assert engine.generate([replace(other, session=2)]) == engine.generate([other])
    engine.end_session(2)


def test_engines_that_cannot_go_on_in_a_stream_take_another_one():
    branch = Branch(cut=1, suffix_ids=(), seeds=(7,))
    assert branch.stream_seed(7) == 7
    later = [replace(branch, drawn=drawn).stream_seed(7) for drawn in (1, 2)]
    assert len({7, *later}) == 3
    assert all(0 <= seed < 2**63 for seed in later)
