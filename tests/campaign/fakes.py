"""A tiny model folder and a scripted engine: a function of prompt and seed, with no model in it."""

import hashlib
import json
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from data.errors import EngineError
from stp.engines.base import (
    Branch,
    Completion,
    Engine,
    PromptTree,
    RequestError,
    TreeCompletions,
)

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>")
BOUNDARIES = ("\n\n", ".\n\n")

CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def write_model_folder(folder: Path, *, context: int = 4096) -> Path:
    """Write a model folder whose weights are a few bytes: enough for everything but an engine."""
    folder.mkdir(parents=True, exist_ok=True)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(text, special=True) for text in SPECIAL])
    tokenizer.add_tokens([AddedToken(text, special=False) for text in BOUNDARIES])
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(
        json.dumps(
            {
                "tokenizer_class": "PreTrainedTokenizerFast",
                "eos_token": "<|im_end|>",
                "pad_token": "<|endoftext|>",
                "chat_template": CHAT_TEMPLATE,
            }
        )
    )
    (folder / "config.json").write_text(
        json.dumps({"model_type": "qwen3", "max_position_embeddings": context})
    )
    (folder / "model.safetensors").write_bytes(b"scripted")
    return folder


class BatchEngine(Engine):
    """Works in each step on all trees that were submitted, and ends them: a step is a call.

    ``work`` is what a subclass does with them. A tree that it says has failed ends alone; the
    others are worked on in the next step.
    """

    rows = 1 << 20
    repeats_exactly = True

    def __init__(self) -> None:
        super().__init__()
        self.pending: dict[int, PromptTree] = {}

    def work(self, trees: Sequence[PromptTree]) -> list[TreeCompletions]:
        raise NotImplementedError

    @property
    def _waiting(self) -> int:
        return sum(len(branch.seeds) for tree in self.pending.values() for branch in tree.branches)

    def _take(self, ticket: int, tree: PromptTree) -> None:
        self.pending[ticket] = tree

    def _work(self) -> None:
        tickets = self._chosen()
        trees = [self.pending[ticket] for ticket in tickets]
        try:
            outcomes = self.work(trees)
        except RequestError as error:
            self._tree_failed(tickets[error.tree], error)
            return
        for ticket, tree, outcome in zip(tickets, trees, outcomes, strict=True):
            del self.pending[ticket]
            fresh = tree.prefill_least_tokens
            tokens = sum(len(sample.token_ids) for branch in outcome for sample in branch)
            self._count(ticket, prefill=fresh, least=fresh, block_least=fresh, generated=tokens)
            for branch, samples in enumerate(outcome):
                for number, sample in enumerate(samples):
                    self._sample_ended(ticket, branch, number, sample)

    def _chosen(self) -> list[int]:
        return list(self.pending)

    def _forget(self, tickets: frozenset[int]) -> None:
        for ticket in tickets:
            self.pending.pop(ticket, None)


class ScriptedEngine(BatchEngine):
    """Samples that depend on the prompt and the seed alone.

    Parameters
    ----------
    folder
        As :func:`write_model_folder` makes it.
    context
        Its context limit.
    before_call
        Called with the trees of each step before they are worked on; may raise or wait.
    seconds_per_call
        A wait that makes a run slow enough to be killed in its middle.
    """

    def __init__(
        self,
        folder: Path,
        *,
        context: int = 4096,
        before_call: Callable[[Sequence[PromptTree]], None] | None = None,
        seconds_per_call: float = 0.0,
    ) -> None:
        super().__init__()
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._context = context
        self._before_call = before_call
        self._seconds = seconds_per_call
        self._end = self._tokenizer.token_to_id("</think>")
        self._stop = self._tokenizer.token_to_id("<|im_end|>")
        self.calls = 0
        self.samples = 0
        self.closed = False

    @property
    def context_limit(self) -> int:
        return self._context

    def describe(self) -> dict[str, str | int | float | None]:
        return {"engine": "scripted"}

    def close(self) -> None:
        self.closed = True

    def work(self, trees: Sequence[PromptTree]) -> list[TreeCompletions]:
        self.calls += 1
        if self._before_call is not None:
            self._before_call(trees)
        if self._seconds:
            time.sleep(self._seconds)
        return [tuple(self._branch(tree, branch) for branch in tree.branches) for tree in trees]

    def _branch(self, tree: PromptTree, branch: Branch) -> tuple[Completion, ...]:
        prompt = tree.trunk_ids[: branch.cut] + branch.suffix_ids
        if len(prompt) + tree.max_tokens > self._context:
            raise EngineError("a sample could pass the context")
        return tuple(self._sample(tree, prompt, seed) for seed in branch.seeds)

    def _sample(self, tree: PromptTree, prompt: tuple[int, ...], seed: int) -> Completion:
        self.samples += 1
        key = hashlib.sha256(repr((prompt, seed)).encode()).digest()
        draws = random.Random(key)
        if self._end in tree.stop_ids:
            ids = self._ids(self._thought(draws))
            ids = (*ids, self._end if draws.random() < 0.9 else self._stop)
        else:
            # The longer the prompt, the likelier "7", so curves rise.
            answer = (
                7 if draws.random() < len(prompt) / (len(prompt) + 100) else draws.randint(0, 9)
            )
            ids = (*self._ids(rf"\boxed{{{answer}}}"), self._stop)
        if len(ids) > tree.max_tokens:
            ids = ids[: tree.max_tokens]
        finish = "stop" if ids[-1] in tree.stop_ids else "length"
        return Completion(token_ids=ids, finish=finish)

    def _thought(self, draws: random.Random) -> str:
        steps = draws.randint(0, 12)
        return "".join(
            "x" * draws.randint(1, 9) + draws.choice(BOUNDARIES) for _ in range(steps)
        ) + draws.choice(("", "so"))

    def _ids(self, text: str) -> tuple[int, ...]:
        return tuple(self._tokenizer.encode(text, add_special_tokens=False).ids)


class StreamingEngine(ScriptedEngine):
    """A scripted engine with few rows, whose trees end one by one and in no order.

    Attributes
    ----------
    steps, steps_with_room
        Steps so far, and those in which rows were free though more than one tree was to come.
    most_pending_trees
        Most trees that it held at once.
    """

    rows = 12
    repeats_exactly = False

    def __init__(self, folder: Path, *, seed: object = 0, **options) -> None:
        super().__init__(folder, **options)
        self._draws = random.Random(seed)
        self.steps = self.steps_with_room = self.most_pending_trees = 0

    @property
    def _waiting(self) -> int:
        return max(0, super()._waiting - self.rows)

    def _chosen(self) -> list[int]:
        self.steps += 1
        self.steps_with_room += super()._waiting < self.rows
        self.most_pending_trees = max(self.most_pending_trees, len(self.pending))
        running, samples = [], 0
        for ticket, tree in self.pending.items():
            running.append(ticket)
            samples += sum(len(branch.seeds) for branch in tree.branches)
            if samples >= self.rows:
                break
        return [self._draws.choice(running)]


def write_questions(folder: Path, count: int = 10, *, prompts: Sequence[str] = ()) -> Path:
    """Write a benchmark of one's own whose right answers are all 7, and return its TOML file."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = list(prompts) or [f"What is {number} + {7 - number}?" for number in range(count)]
    lines = [
        json.dumps({"id": f"q-{number}", "question": text, "answer": "7"})
        for number, text in enumerate(texts)
    ]
    (folder / "sevens.jsonl").write_text("\n".join(lines) + "\n")
    path = folder / "sevens.toml"
    path.write_text('path = "sevens.jsonl"\nanswer_kind = "math"\n')
    return path
