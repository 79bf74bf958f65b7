"""Two phases, one phase, and limits: what an engine is asked, and what becomes of its output."""

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from stp.campaign.asks import answered
from stp.campaign.config import CampaignConfig
from stp.campaign.generate import generate_unit
from stp.campaign.prepare import Subject
from stp.campaign.tables import make_table
from stp.campaign.units import Cell, Unit
from stp.engines.base import Completion, SamplingParameters
from stp.formats import ThinkingFormat, get_family
from tests.campaign.fakes import BatchEngine

MARKERS = (
    *("<|channel|>", "<|message|>", "<|start|>", "<|end|>", "<|return|>", "<|call|>"),
    *("<|endoftext|>", "<|im_end|>", "<think>", "</think>"),
)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(alphabet)}, merges=[]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([AddedToken(text, special=True) for text in MARKERS])
    return made


class Canned(BatchEngine):
    """Gives the texts it was made with, one per sample, cut and stopped as an engine does."""

    def __init__(self, tokenizer, *texts):
        super().__init__()
        self.trees = []
        self._tokenizer = tokenizer
        self._texts = list(texts)

    context_limit = 1000

    def describe(self):
        return {}

    def work(self, trees):
        self.trees += trees
        return [
            tuple(tuple(self._sample(tree) for _ in branch.seeds) for branch in tree.branches)
            for tree in trees
        ]

    def _sample(self, tree):
        ids = tuple(self._tokenizer.encode(self._texts.pop(0), add_special_tokens=False).ids)
        kept = []
        for token in ids[: tree.max_tokens]:
            kept.append(token)
            text = self._tokenizer.decode(kept, skip_special_tokens=False)
            if token in tree.stop_ids or any(stop in text for stop in tree.stop_texts):
                return Completion(token_ids=tuple(kept), finish="stop")
        return Completion(token_ids=tuple(kept), finish="length")


@pytest.fixture
def generate(tokenizer):
    def run(family, *texts, trajectories=1, thinking_limit=40, answer_tokens=10, context=1000):
        config = CampaignConfig.model_validate(
            {
                "models": [{"path": "m"}],
                "benchmarks": [{"name": "b"}],
                "generation": {
                    "trajectories": trajectories,
                    "thinking_limit": thinking_limit,
                    "answer_tokens": answer_tokens,
                },
            }
        )
        subject = Subject(
            name="m",
            format=ThinkingFormat(get_family(family), tokenizer),
            boundary_ids=frozenset(),
            content_ids={},
            sampling=SamplingParameters(),
            context_limit=context,
        )
        questions = make_table(
            "questions",
            {
                "model": ["m"],
                "benchmark": ["b"],
                "question": [0],
                "question_id": ["q"],
                "prompt": ["?"],
                "reference": ["1"],
                "answer_kind": ["math"],
                "choices": [[]],
                "prompt_ids": [[1, 2, 3]],
                "fit": ["whole"],
                "thinking_limit": [thinking_limit],
            },
        )
        unit = Unit(
            cell=Cell(model="m", benchmark="b", questions=1),
            number=0,
            question_start=0,
            question_stop=1,
            trajectory_start=0,
            trajectory_stop=trajectories,
        )
        engine = Canned(tokenizer, *texts)
        rows = answered(generate_unit(unit, questions, subject=subject, config=config), engine)
        return rows.to_pylist(), engine

    def show(row, name):
        return tokenizer.decode(row[name], skip_special_tokens=False)

    run.show = show
    return run


def test_thinking_then_the_models_own_answer(generate):
    rows, engine = generate(
        "demo", "sum it</think>", "</think>", "\n\n7<|im_end|>", "8<|im_end|>", trajectories=2
    )
    assert [generate.show(row, "thinking_ids") for row in rows] == ["sum it", ""]
    assert [row["thinking_finish"] for row in rows] == ["end", "end"]
    # The opening that the family knows is no part of the answer, and its lack is no error.
    assert [generate.show(row, "answer_ids") for row in rows] == ["7<|im_end|>", "8<|im_end|>"]
    assert [row["answer_finish"] for row in rows] == ["stop", "stop"]
    think, first, second = engine.trees
    assert (think.max_tokens, len(think.branches[0].seeds)) == (40, 2)
    assert (first.max_tokens, second.max_tokens) == (10, 10)
    assert first.trunk_ids[:3] == (1, 2, 3) == second.trunk_ids[:3]
    assert len(second.trunk_ids) == 4


def test_cut_thinking_and_a_turn_ended_within_it_have_no_answer(generate):
    rows, engine = generate("demo", "x" * 60, "hm<|im_end|>", trajectories=2)
    assert [row["thinking_finish"] for row in rows] == ["limit", "stop"]
    assert [len(row["thinking_ids"]) for row in rows] == [40, 2]
    assert [(row["answer_ids"], row["answer_finish"]) for row in rows] == [([], "none")] * 2
    assert len(engine.trees) == 1


def test_an_answer_is_cut_at_its_own_limit(generate):
    ((row,), _) = generate("demo", "a</think>", "y" * 50)
    assert (len(row["answer_ids"]), row["answer_finish"], row["answer_limit"]) == (10, "length", 10)


def test_an_answer_gets_what_the_context_leaves(generate):
    ((row,), engine) = generate("demo", "abc</think>", "y" * 50, context=3 + 4 + 6)
    assert (len(row["answer_ids"]), row["answer_limit"]) == (6, 6)
    ((row,), engine) = generate("demo", "abc</think>", context=3 + 4)
    assert (row["answer_ids"], row["answer_finish"], row["answer_limit"]) == ([], "none", 0)
    assert len(engine.trees) == 1


def test_written_tags_end_thinking_by_text(generate):
    ((row,), engine) = generate("written-tags", "so it is</think>", "7<|im_end|>", answer_tokens=30)
    assert engine.trees[0].stop_texts == ("</think>",)
    assert generate.show(row, "thinking_ids") == "so it is"
    assert row["thinking_finish"] == "end"
    assert generate.show(row, "answer_ids").startswith("7")


FINAL = "<|start|>assistant<|channel|>final<|message|>"
AGAIN = "<|end|><|start|>assistant<|channel|>analysis<|message|>"


def test_several_analysis_messages_are_all_thinking(generate):
    text = f"one{AGAIN}two<|end|>{FINAL}7<|return|>"
    ((row,), engine) = generate("gpt-oss", text, thinking_limit=60)
    assert len(engine.trees) == 1
    assert generate.show(row, "thinking_ids") == f"one{AGAIN}two"
    assert row["thinking_finish"] == "end"
    assert generate.show(row, "answer_ids") == "7<|return|>"
    assert row["answer_finish"] == "stop"


def test_analysis_without_a_final_channel_is_all_thinking(generate):
    ((row,), _) = generate("gpt-oss", f"one{AGAIN}two<|return|>", thinking_limit=60)
    assert generate.show(row, "thinking_ids") == f"one{AGAIN}two"
    assert (row["thinking_finish"], row["answer_ids"], row["answer_finish"]) == ("stop", [], "none")


def test_one_phase_is_cut_at_both_limits(generate):
    ((row,), engine) = generate("gpt-oss", "z" * 80 + f"<|end|>{FINAL}7<|return|>")
    assert (len(row["thinking_ids"]), row["thinking_finish"]) == (40, "limit")
    assert (row["answer_ids"], row["answer_finish"]) == ([], "none")
    ((row,), engine) = generate("gpt-oss", f"z<|end|>{FINAL}" + "7" * 60)
    assert (len(row["answer_ids"]), row["answer_finish"]) == (10, "length")
    assert engine.trees[0].trunk_ids == (1, 2, 3)


@pytest.mark.parametrize(("family", "end"), [("demo", "</think>"), ("gpt-oss", f"<|end|>{FINAL}")])
def test_thinking_that_fills_its_limit_is_cut_in_one_phase_as_in_two(generate, family, end):
    close = "<|return|>" if family == "gpt-oss" else "<|im_end|>"
    for length, finish in ((39, "end"), (40, "limit"), (41, "limit")):
        texts = ("z" * length + end, f"7{close}")
        ((row,), _) = generate(family, *(texts if family == "demo" else ["".join(texts)]))
        assert (len(row["thinking_ids"]), row["thinking_finish"]) == (min(length, 40), finish)
        assert (row["answer_finish"] == "none") == (finish == "limit")


@pytest.mark.parametrize(("left", "finish"), [(0, "none"), (4, "length"), (99, "length")])
def test_one_phase_knows_what_the_context_leaves_an_answer(generate, left, finish):
    text = f"zz<|end|>{FINAL}"
    before = 3 + len("zz") + 1 + 1 + len("assistant") + 1 + len("final") + 1
    ((row,), _) = generate("gpt-oss", text + "7" * 60, context=before + left)
    assert row["thinking_finish"] == "end"
    assert row["answer_limit"] == len(row["answer_ids"]) == min(left, 10)
    assert row["answer_finish"] == finish
