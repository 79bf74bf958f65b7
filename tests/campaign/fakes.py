"""A tiny model folder and a scripted engine: a function of prompt and seed, with no model in it."""

import hashlib
import json
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from data.errors import EngineError
from stp.engines.base import Branch, Completion, Engine, PromptTree, TreeCompletions, Usage

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


class ScriptedEngine(Engine):
    """Samples that depend on the prompt and the seed alone.

    Parameters
    ----------
    folder
        As :func:`write_model_folder` makes it.
    context
        Its context limit.
    before_call
        Called with each list of trees before it is worked on; may raise or wait.
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
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._context = context
        self._before_call = before_call
        self._seconds = seconds_per_call
        self._end = self._tokenizer.token_to_id("</think>")
        self._stop = self._tokenizer.token_to_id("<|im_end|>")
        self.usage = Usage()
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

    def generate(self, trees, *, on_progress=None) -> list[TreeCompletions]:
        self.calls += 1
        if self._before_call is not None:
            self._before_call(trees)
        if self._seconds:
            time.sleep(self._seconds)
        return [self._tree(tree, on_progress) for tree in trees]

    def _tree(self, tree: PromptTree, on_progress) -> TreeCompletions:
        longest = max(branch.cut for branch in tree.branches)
        fresh = longest + sum(len(branch.suffix_ids) for branch in tree.branches)
        self.usage.prefill_tokens += fresh
        self.usage.prefill_least_tokens += fresh
        self.usage.prefill_block_least_tokens += fresh
        outcome = tuple(self._branch(tree, branch) for branch in tree.branches)
        if on_progress is not None:
            on_progress(sum(map(len, outcome)))
        return outcome

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
        self.usage.generated_tokens += len(ids)
        return Completion(token_ids=ids, finish=finish)

    def _thought(self, draws: random.Random) -> str:
        steps = draws.randint(0, 12)
        return "".join(
            "x" * draws.randint(1, 9) + draws.choice(BOUNDARIES) for _ in range(steps)
        ) + draws.choice(("", "so"))

    def _ids(self, text: str) -> tuple[int, ...]:
        return tuple(self._tokenizer.encode(text, add_special_tokens=False).ids)


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
