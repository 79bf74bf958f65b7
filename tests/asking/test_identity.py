"""What makes a model the same one: stored replies and runs are found by it, so nothing of it moves.

The values are those that stored files hold: a change here makes every judge judge again, or a run
refuse its own model.
"""

import doctest

import pytest

from evaluator.optimal.judge import Case, ModelJudge
from stp.asking import CallableResponder, base
from stp.asking.base import identity, reply_identity

LOCAL = {
    "engine": "vllm",
    "model": "m",
    "path": "/anywhere",
    "revision": None,
    "weights_hash": "w",
    "family": "qwen3",
    "dtype": "bfloat16",
    "vllm": "1",
}
FUNCTION = {"engine": "function", "model": "ask", "function": "own:ask", "source_hash": "s"}
API = {"engine": "api", "model": "openai/x", "base_url": "http://here:8000/v1"}


class Described(CallableResponder):
    def __init__(self, description):
        super().__init__(str)
        self.description = description

    def describe(self):
        return self.description


@pytest.mark.parametrize(
    ("description", "key", "pairs"),
    [
        (
            LOCAL,
            "4a86e5bf8d2f9f00c07be5e0799cf1d5",
            "[('model', 'm'), ('revision', None), ('weights_hash', 'w')]",
        ),
        (
            FUNCTION,
            "5bb8f5b45bef1ec14a2f65a82598312a",
            "[('model', 'ask'), ('revision', None), ('weights_hash', None), ('source_hash', 's')]",
        ),
        (
            API,
            "b47f79398a5570c0491be80876d6d0bb",
            "[('model', 'openai/x'), ('revision', None), ('weights_hash', None)]",
        ),
    ],
    ids=["local", "function", "api"],
)
def test_stored_replies_of_judges_keep_their_names(description, key, pairs, tmp_path):
    judge = Described(description)
    case = Case(question="q", reference="r", answer="a")
    assert ModelJudge(judge, tmp_path / "replies.jsonl").key(case) == key
    assert repr(reply_identity(description)) == pairs


def test_stored_runs_know_their_models():
    local = {key: LOCAL[key] for key in ("engine", "model", "weights_hash", "family", "dtype")}
    function = {key: FUNCTION[key] for key in ("engine", "model", "source_hash")}
    assert identity(LOCAL) == local
    assert identity(FUNCTION) == function
    # A run continues a server that has moved.
    assert identity(API) == {"engine": "api", "model": "openai/x"}


def test_examples_run():
    found = doctest.testmod(base)
    assert found.attempted > 0
    assert found.failed == 0
