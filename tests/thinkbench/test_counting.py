"""Tokens that nobody counted: tiktoken, the run's own tokens per word, 1.33."""

import builtins
import logging

import pytest

from evaluator.explorer.submission import check_submission
from evaluator.thinkbench import ThinkConfig, load_run, run
from evaluator.thinkbench.grading import FEWEST_COUNTED, grade_responses
from evaluator.thinkbench.questions import plan_questions
from evaluator.thinkbench.tables import run_table
from stp.asking import Responder, Response
from stp.asking.counting import encoding_name, text_counter
from tests.requirements import require_module

tiktoken = require_module("tiktoken")

GPT = {"engine": "api", "model": "openai/gpt-4.1-mini"}


@pytest.fixture
def bytes_for(monkeypatch):
    """Give a name of an encoding to a small one: a token is a byte, or the word "the"."""
    from tiktoken import registry

    def give(name):
        ranks = {bytes([value]): value for value in range(256)} | {b"th": 256, b"the": 257}
        small = tiktoken.Encoding(
            name=name,
            pat_str=r"\w+|\W",
            mergeable_ranks=ranks,
            special_tokens={"<|endoftext|>": 258},
        )
        monkeypatch.setitem(registry.ENCODINGS, name, small)

    return give


@pytest.mark.parametrize(
    ("model", "encoding"),
    [
        ("openai/gpt-4.1-mini", "o200k_base"),
        ("openai/GPT-4-0613", "cl100k_base"),
        ("openrouter/openai/gpt-4o", "o200k_base"),
        ("openai/not-known-yet", "cl100k_base"),
        ("anthropic/claude-sonnet-4-5", "cl100k_base"),
        ("openrouter/google/gemini-2.5-pro", "cl100k_base"),
        ("openai-api/local/gpt-oss-20b", "o200k_harmony"),
        ("openai-api/local/openai/own-model", None),
        ("together/meta-llama/Llama-3-8B", None),
    ],
)
def test_which_encoding_a_model_has(model, encoding):
    assert encoding_name({"engine": "api", "model": model}) == encoding
    assert encoding_name({"engine": "function", "model": model}) is None
    assert encoding_name({}) is None


def test_special_tokens_and_long_texts_are_text(bytes_for):
    bytes_for("o200k_base")
    counter = text_counter(GPT)
    assert counter.name == "tiktoken o200k_base"
    assert counter.count("the <|endoftext|>") == 2 + len("<|endoftext|>")
    assert counter.count("") == 0
    assert counter.count(" " * 1_000_001) == 1_000_001


@pytest.mark.parametrize("error", [ConnectionError("no way\nout"), ValueError("wrong hash")])
def test_an_encoding_that_cannot_be_loaded_is_one_line(error, monkeypatch, caplog):
    def fails(name):
        raise error

    monkeypatch.setattr(tiktoken, "get_encoding", fails)
    with caplog.at_level(logging.WARNING):
        assert text_counter(GPT) is None
    (record,) = caplog.records
    line = record.getMessage()
    assert "o200k_base cannot be loaded" in line and "TIKTOKEN_CACHE_DIR" in line
    assert "\n" not in line


def test_without_tiktoken_one_line_says_how_to_get_it(monkeypatch, caplog):
    whole = builtins.__import__

    def without(name, *arguments):
        if name.startswith("tiktoken"):
            raise ImportError(name)
        return whole(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", without)
    with caplog.at_level(logging.WARNING):
        assert text_counter(GPT) is None
        assert text_counter({"engine": "function", "model": "gpt-4o"}) is None
    (record,) = caplog.records
    assert "pip install 'stp-engine[api]'" in record.getMessage()


def planned(samples):
    return plan_questions(ThinkConfig(tasks=("sum",), samples=samples, folds=1, sizes=(8,)))


def graded(counts, model, text="So the sum is the five"):
    """Grade one response for each count; None is one that nobody counted."""
    items = planned(len(counts))
    responses = {
        item.id: Response(id=item.id, text=text, thinking="hm, the", output_tokens=count)
        for item, count in zip(items, counts, strict=True)
    }
    return grade_responses(items, responses, model)


def test_a_known_encoding_counts_what_the_model_wrote(bytes_for):
    bytes_for("o200k_base")
    counted, estimated = graded([70, None], GPT)
    assert (counted.tokens, counted.estimated, counted.estimated_by) == (70, False, "")
    # 22 + 1 + 7 characters, of which "the" three times is one token.
    assert (estimated.tokens, estimated.estimated) == (30 - 3 * 2, True)
    assert estimated.estimated_by == "tiktoken o200k_base"


def test_nothing_is_loaded_where_all_is_counted(monkeypatch):
    def fails(name):
        raise AssertionError(name)

    monkeypatch.setattr(tiktoken, "get_encoding", fails)
    assert [row.tokens for row in graded([3, 4], GPT)] == [3, 4]


def test_enough_counted_responses_give_the_run_its_own_factor():
    """Equation 51: the mean of the responses' ratios, here of 8 words each."""
    counts = [16, 32] * (FEWEST_COUNTED // 2)
    last = graded([*counts, None], {})[-1]
    naive = sum(count / 8 for count in counts) / len(counts)
    assert naive == 3.0
    assert (last.tokens, last.estimated_by) == (round(8 * naive), "words × 3")
    few = graded([*counts[1:], None], {})[-1]
    assert (few.tokens, few.estimated_by) == (round(8 * 1.33), "words × 1.33")


def test_counts_of_nothing_say_nothing_of_a_word():
    last = graded([0] * FEWEST_COUNTED + [None], {})[-1]
    assert last.estimated_by == "words × 1.33"


class Api(Responder):
    """An API that counts nothing."""

    def respond(self, *groups):
        for group in groups:
            for request in group.requests:
                group.on_response(Response(id=request.id, text="the"))

    def describe(self):
        return {**GPT, "base_url": None}


def test_a_run_says_how_its_tokens_were_estimated(tmp_path, bytes_for, monkeypatch):
    bytes_for("o200k_base")
    config = ThinkConfig(tasks=("sum",), samples=2, folds=1, sizes=(8,))
    done = run(Api(), tmp_path, config)
    assert [row.tokens for row in done.graded] == [1, 1]
    assert done.measures.overall.estimated == 2
    assert "2 responses are estimated by tiktoken o200k_base" in run_table(done).note
    assert load_run(tmp_path).graded == done.graded
    # Another machine may have no encoding: its words are no reason to doubt the rows.
    monkeypatch.setattr("evaluator.thinkbench.grading.text_counter", lambda model: None)
    findings = {found.check: found for found in check_submission(tmp_path)}
    assert findings["scores"].holds
