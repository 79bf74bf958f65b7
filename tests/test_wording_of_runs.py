"""`stp think` and `stp optimal` in the words of a file: what is sent, kept, shown and refused."""

import json

import pytest

from data.errors import StoreMismatchError
from data.prompts import load_prompts
from evaluator.optimal import OptimalPlan
from evaluator.optimal import run as run_plan
from evaluator.optimal.methods import MODES
from evaluator.thinkbench import ThinkConfig
from evaluator.thinkbench import run as run_think
from evaluator.thinkbench.comparison import compare_runs
from evaluator.thinkbench.tables import comparison_tables, run_table
from stp.asking import CallableResponder, Settings

WORDS = """
name = "theirs"
[prompts]
style-concise = "Box only."
no-overthinking = "Quickly!"
answer = "Box the answer."
router = "Simple or complex? $question"
[questions]
sum = "Add up: $numbers"
"""


@pytest.fixture
def prompts(tmp_path):
    (tmp_path / "words.toml").write_text(WORDS)
    return load_prompts(tmp_path / "words.toml")


class Listener(CallableResponder):
    """Answers everything with a box, and keeps what it was asked."""

    def __init__(self, reply="\\boxed{1}"):
        self.asked = []
        super().__init__(self._hear, name="listener")
        self._reply = reply

    def _hear(self, prompt):
        self.asked.append(prompt)
        return {"text": self._reply, "thinking_tokens": 0, "output_tokens": 4}


def test_think_asks_in_these_words_and_says_so(prompts, tmp_path):
    config = ThinkConfig(
        tasks=("mean", "sum"), samples=2, folds=1, sizes=(8,), style="concise", prompts=prompts
    )
    model = Listener()
    done = run_think(model, tmp_path / "run", config)
    assert all(prompt.endswith("\n\nBox only.") for prompt in model.asked)
    sums = [prompt for prompt in model.asked if prompt.startswith("Add up: [")]
    assert len(sums) == 2
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["asked"]["prompts"]["name"] == "theirs"
    assert record["asked"]["prompts"]["version"] == prompts.version
    assert f"wording theirs (version {prompts.version})" in run_table(done).note
    # The same questions in our words are another run, and may be compared with a warning.
    own = ThinkConfig(tasks=("mean", "sum"), samples=2, folds=1, sizes=(8,), style="concise")
    with pytest.raises(StoreMismatchError, match=r"prompts"):
        run_think(Listener(), tmp_path / "run", own)
    other = run_think(Listener(), tmp_path / "own", own, name="other")
    assert "wording own (version 1)" in run_table(other).note
    tables = comparison_tables(compare_runs([done, other], replicates=10))
    board = next(table for table in tables if table.name == "leaderboard")
    assert "own (version 1), theirs" in board.note
    assert "do not compare" in board.note


def test_optimal_asks_in_these_words(prompts, tmp_path):
    def plan(**changes):
        return OptimalPlan(
            name="listener",
            subsets=("ovt-general", "ut:demo"),
            methods=("thinking", "no-thinking", "no-overthinking", "router"),
            general="sample",
            limit=1,
            seeds=1,
            prompts=prompts,
            **changes,
        )

    model, router = Listener(), Listener("Route: simple")
    run_plan(model, tmp_path / "run", plan(), router=router)
    assert any(prompt.endswith("Box the answer.") for prompt in model.asked)
    assert any(prompt.endswith("Quickly!") for prompt in model.asked)
    assert all(prompt.startswith("Simple or complex? ") for prompt in router.asked)
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["asked"]["prompts"]["version"] == prompts.version
    with pytest.raises(StoreMismatchError, match=r"prompts"):
        own = OptimalPlan(
            name="listener",
            subsets=("ut:demo",),
            methods=("thinking",),
            general="sample",
            limit=1,
            seeds=1,
        )
        run_plan(Listener(), tmp_path / "run", own)


def test_a_mode_has_its_suffix_in_the_runs_words(prompts):
    mode = MODES["no-overthinking"].settings(Settings(), prompts)
    assert (mode.thinking, mode.prompt_suffix) == ("on", "Quickly!")


def test_a_run_says_how_many_responses_were_parted(tmp_path):
    config = ThinkConfig(tasks=("sum",), samples=2, folds=1, sizes=(8,))
    model = CallableResponder(lambda prompt: "<think>1 + 1</think>\\boxed{2}")
    done = run_think(model, tmp_path / "run", config)
    assert done.measures.overall.parted == 2
    assert "thinking of 2 responses was written as text" in run_table(done).note
