r"""Train the demo model: a tiny Qwen3 that thinks, checks itself, and spoils right answers.

    python scripts/train_demo_model.py                    # writes data/demo_model/ again
    python scripts/train_demo_model.py --steps 20 --out try

The whole folder is made here: tokenizer, chat template, configurations and weights (the model
card is written by hand and left alone). Questions come from ``data.demo``, and never a held-out
one; what the model learns to write is in ``demo_traces.py``: a decomposition, a right result, some
redundant checks, sometimes a slip that the answer follows.

So that there is an answer at every prefix, each trace carries branches: cut after some step,
thinking closed, and the belief at that point given as the answer (before there is a result: the
right answer, or an extremum's best number so far). Branches share the trace's forward pass through
an attention mask, and nothing before the cut is learned from them, so the model does not learn to
stop early.

Deterministic: the same machine, library versions and ``--threads`` give the same bytes in
``model.safetensors``. Every draw comes from a hash of the seed, the number of threads is set
here, and no operation used depends on timing.
"""

import hashlib
import json
import logging
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated

import safetensors.torch
import torch
import typer
from demo_traces import TraceRecipe, write_trace
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from data.demo import INSTRUCTION, DemoProblem, demo_problems
from data.draws import StableDraws
from stp.seeds import PAPER_SEED

logger = logging.getLogger("train_demo_model")

CONTEXT = 1024
TEMPERATURE = 1.0
MATRIX_RATE, OTHER_RATE = 0.02, 3e-3
THINK_START, THINK_END = "<think>", "</think>"
TURN_START, TURN_END, PAD = "<|im_start|>", "<|im_end|>", "<|endoftext|>"

# A turn is opened with thinking already started, as the templates of many reasoning models do.
CHAT_TEMPLATE = (
    "{%- for message in messages -%}"
    "{{- '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' -}}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n<think>\\n' -}}{%- endif -%}"
)

# Digits alone; operators with their spaces; a box opening whole; a word with the space before it;
# other marks with the newlines after them, so that ".\n\n" can be one token.
PRE_TOKENS = (
    r"\p{N}| [+\-=<>] | ?\\boxed\{|[,:] (?=\p{N})| ?\p{L}+"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


# ------------------------------------------------------------------------------- tokenizer


def build_tokenizer() -> PreTrainedTokenizerFast:
    """Return the tokenizer: bytes for any text, and the words of the demo as single tokens."""
    tokenizer = Tokenizer(models.BPE())
    split = pre_tokenizers.Split(Regex(PRE_TOKENS), behavior="isolated")
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    words = _demo_words(split)
    # Words are whole already, and some are words only before a digit: no splitting while merging.
    tokenizer.pre_tokenizer = byte_level
    trainer = trainers.BpeTrainer(
        vocab_size=2000,
        min_frequency=1,
        show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
    )
    tokenizer.train_from_iterator(words, trainer)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, byte_level])
    tokenizer.add_special_tokens(
        [AddedToken(text, special=True, normalized=False) for text in (PAD, TURN_START, TURN_END)]
    )
    # Like Qwen3's: kept when special tokens are skipped, so that decoded text shows the thinking.
    tokenizer.add_tokens(
        [AddedToken(text, special=False, normalized=False) for text in (THINK_START, THINK_END)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=TURN_END,
        pad_token=PAD,
        model_max_length=CONTEXT,
        clean_up_tokenization_spaces=False,
        chat_template=CHAT_TEMPLATE,
    )


def _demo_words(split: pre_tokenizers.Split) -> list[str]:
    """Return the pre-tokens of a sample of prompts and traces, and common step ends."""
    words = {",\n\n", "!\n\n", ")\n\n", ".\n", "\n\n", "\\boxed{", "system", "user", "assistant"}
    problems = demo_problems(PAPER_SEED, held_out=False)
    for index in range(500):
        problem = next(problems)
        steps = write_trace(problem, StableDraws("words", index), TraceRecipe())
        for text in (problem.prompt + "\n" + INSTRUCTION, *(step.text for step in steps)):
            words.update(word for word, _ in split.pre_tokenize_str(text))
    return sorted(words)


# -------------------------------------------------------------------------------- examples


@dataclass(frozen=True, slots=True)
class TrainingExample:
    """One trace as token ids, with its branches behind it.

    Attributes
    ----------
    ids
        Trunk (prompt, thinking, answer), then each branch.
    positions
        Rotary position of each id; a branch continues from its cut.
    branch
        0 on the trunk, 1, 2, ... on the branches.
    cut
        Trunk ids that an id may attend to (its own branch apart).
    learned
        Whether the id is to be predicted.
    """

    ids: list[int]
    positions: list[int]
    branch: list[int]
    cut: list[int]
    learned: list[bool]


class ExampleWriter:
    """Turns problems into examples with one tokenizer."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast, recipe: TraceRecipe) -> None:
        self._tokenizer = tokenizer
        self._recipe = recipe
        # Lines repeat a great deal; encoding them again would cost more than drawing them.
        self.encode = lru_cache(maxsize=200_000)(self._encode)

    def _encode(self, text: str) -> tuple[int, ...]:
        return tuple(self._tokenizer.encode(text, add_special_tokens=False))

    def prompt_ids(self, problem: DemoProblem) -> list[int]:
        """Return what the chat template gives for a problem, thinking opened."""
        message = {"role": "user", "content": f"{problem.prompt}\n{INSTRUCTION}"}
        text = self._tokenizer.apply_chat_template(
            [message], tokenize=False, add_generation_prompt=True
        )
        return list(self._tokenizer.encode(text, add_special_tokens=False))

    def closing_ids(self, answer: int) -> tuple[int, ...]:
        """Return the end of thinking and an answer."""
        return self.encode(f"{THINK_END}\n\n\\boxed{{{answer}}}{TURN_END}")

    def write(self, problem: DemoProblem, draws: StableDraws) -> TrainingExample:
        """Return a drawn trace of a problem with drawn branches."""
        steps = write_trace(problem, draws, self._recipe)
        prompt = self.prompt_ids(problem)
        trunk, ends = list(prompt), []
        for step in steps:
            trunk += self.encode(step.text)
            ends.append(len(trunk))
        trunk += self.closing_ids(steps[-1].belief)
        size = len(trunk)
        example = TrainingExample(
            ids=trunk,
            positions=list(range(size)),
            branch=[0] * size,
            cut=[size] * size,
            learned=[False] * len(prompt) + [True] * (size - len(prompt)),
        )
        if draws.integer(0, 999) < 1000 * self._recipe.guess:
            self._add_branch(example, len(prompt), (), steps[0].belief)
        for _ in range(self._recipe.branches):
            index = draws.integer(0, len(steps) - 2)
            # A probe's prefix ends with the words of its last step, without the newlines.
            words = self.encode(steps[index].text.rstrip("\n"))
            start = ends[index - 1] if index else len(prompt)
            kept = 0
            while kept < len(words) and trunk[start + kept] == words[kept]:
                kept += 1
            self._add_branch(example, start + kept, words[kept:], steps[index].belief)
        return example

    def _add_branch(
        self, example: TrainingExample, cut: int, words: tuple[int, ...], answer: int
    ) -> None:
        """Add a branch: the rest of a step's words and the end of thinking are given."""
        ids = words + self.closing_ids(answer)
        given = len(words) + 1
        example.ids.extend(ids)
        example.positions.extend(range(cut, cut + len(ids)))
        example.branch.extend([example.branch[-1] + 1] * len(ids))
        example.cut.extend([cut] * len(ids))
        example.learned.extend([False] * given + [True] * (len(ids) - given))


@dataclass(frozen=True, slots=True)
class Batch:
    """Examples of like length, padded; tensors are (B, T), the mask is (B, 1, T, T)."""

    ids: Tensor
    positions: Tensor
    mask: Tensor
    learned: Tensor


def collate(examples: list[TrainingExample], pad_id: int) -> Batch:
    """Pad examples and build the mask that lets a branch see its cut and itself alone."""
    size = max(len(example.ids) for example in examples)

    def padded(name: str, filler: int) -> Tensor:
        rows = [getattr(example, name) for example in examples]
        return torch.tensor([row + [filler] * (size - len(row)) for row in rows])

    branch, cut = padded("branch", -1), padded("cut", 0)
    place = torch.arange(size)
    earlier = place[None, :, None] >= place[None, None, :]
    same = branch[:, :, None] == branch[:, None, :]
    on_trunk = (branch == 0)[:, None, :] & (place[None, None, :] < cut[:, :, None])
    return Batch(
        ids=padded("ids", pad_id),
        positions=padded("positions", 0),
        mask=((same | on_trunk) & earlier)[:, None],
        learned=padded("learned", False).bool(),
    )


def batches(
    writer: ExampleWriter, pad_id: int, *, seed: int, batch_size: int, pool: int = 16
) -> Iterator[Batch]:
    """Yield batches without end; lengths are alike within one, for ``pool`` are sorted at once."""
    problems = demo_problems(seed, held_out=False)
    index = 0
    while True:
        examples = []
        for _ in range(pool * batch_size):
            examples.append(writer.write(next(problems), StableDraws("trace", seed, index)))
            index += 1
        examples.sort(key=lambda example: len(example.ids))
        groups = [examples[i : i + batch_size] for i in range(0, len(examples), batch_size)]
        draws = StableDraws("batches", seed, index)
        while groups:
            yield collate(groups.pop(draws.integer(0, len(groups) - 1)), pad_id)


# -------------------------------------------------------------------------------- training


@dataclass(frozen=True, slots=True)
class Size:
    """The model's shape."""

    layers: int = 3
    hidden: int = 96
    intermediate: int = 256
    heads: int = 4
    key_value_heads: int = 2
    head: int = 32


def build_model(tokenizer: PreTrainedTokenizerFast, size: Size) -> Qwen3ForCausalLM:
    """Return an untrained model with tied embeddings."""
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=size.hidden,
        intermediate_size=size.intermediate,
        num_hidden_layers=size.layers,
        num_attention_heads=size.heads,
        num_key_value_heads=size.key_value_heads,
        head_dim=size.head,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=True,
        initializer_range=0.05,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    return Qwen3ForCausalLM(config)


def loss_of(model: Qwen3ForCausalLM, batch: Batch) -> Tensor:
    """Return the mean negative log-likelihood of the batch's learned ids."""
    hidden = model.model(
        input_ids=batch.ids,
        attention_mask=batch.mask,
        position_ids=batch.positions,
        use_cache=False,
    ).last_hidden_state
    learned = batch.learned[:, 1:]
    logits = model.lm_head(hidden[:, :-1][learned])
    return torch.nn.functional.cross_entropy(logits, batch.ids[:, 1:][learned])


def orthogonal(matrix: Tensor) -> Tensor:
    """Return roughly the nearest semi-orthogonal matrix, by five Newton-Schulz iterations.

    Source: K. Jordan and others, "Muon: an optimizer for hidden layers in neural networks" (2024).
    """
    wide = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T
    wide = wide / (wide.norm() + 1e-7)
    for _ in range(5):
        gram = wide @ wide.T
        wide = 3.4445 * wide + (2.0315 * gram @ gram - 4.7750 * gram) @ wide
    return wide if matrix.shape[0] <= matrix.shape[1] else wide.T


class Muon(torch.optim.Optimizer):
    """Momentum whose update is made orthogonal; for the weight matrices of the layers.

    Here it needs about half the steps of AdamW. torch has one of its own since 2.9, which works
    in bfloat16 and is many times slower on CPUs without it.
    """

    def __init__(self, parameters: list[Tensor]) -> None:
        super().__init__(parameters, {"lr": 0.0, "momentum": 0.95, "weight_decay": 0.05})

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        """Update every matrix that has a gradient."""
        for group in self.param_groups:
            for weight in group["params"]:
                state = self.state[weight]
                if not state:
                    state["mean"] = torch.zeros_like(weight)
                state["mean"].lerp_(weight.grad, 1 - group["momentum"])
                update = orthogonal(weight.grad.lerp(state["mean"], group["momentum"]))
                scale = max(1.0, weight.shape[0] / weight.shape[1]) ** 0.5
                weight.mul_(1 - group["lr"] * group["weight_decay"])
                weight.add_(update, alpha=-group["lr"] * scale)


def learning_rate(step: int, steps: int, peak: float) -> float:
    """Return the rate of a step: linear warm-up, then a cosine down to a hundredth."""
    warm_up = min(100, max(1, steps // 10))
    if step < warm_up:
        return peak * (step + 1) / warm_up
    done = (step - warm_up) / max(1, steps - warm_up)
    return peak * (0.01 + 0.99 * (1 + math.cos(math.pi * done)) / 2)


def train(model: Qwen3ForCausalLM, source: Iterator[Batch], *, steps: int, save: "Saver") -> None:
    """Train in place, reporting and saving on the way."""
    matrices = Muon([p for p in model.model.layers.parameters() if p.ndim == 2])
    others = torch.optim.AdamW(
        [
            {"params": [model.model.embed_tokens.weight], "weight_decay": 0.05},
            {"params": [p for p in model.parameters() if p.ndim == 1], "weight_decay": 0.0},
        ],
        betas=(0.9, 0.98),
    )
    model.train()
    started, tokens, mean_loss = time.monotonic(), 0, 0.0
    for step in range(steps):
        batch = next(source)
        for optimizer, peak in ((matrices, MATRIX_RATE), (others, OTHER_RATE)):
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(step, steps, peak)
        loss = loss_of(model, batch)
        model.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        matrices.step()
        others.step()
        tokens += batch.ids.numel()
        mean_loss = loss.item() if step == 0 else 0.95 * mean_loss + 0.05 * loss.item()
        if (step + 1) % 20 == 0 or step + 1 == steps:
            seconds = time.monotonic() - started
            logger.info(
                "step %d/%d  loss %.4f  %.0f tokens/s  %.1f min  %.1f min left",
                step + 1, steps, mean_loss, tokens / seconds, seconds / 60,
                seconds / 60 * (steps - step - 1) / (step + 1),
            )  # fmt: skip
        save.after(step + 1, model)
    model.eval()


@dataclass(frozen=True, slots=True)
class Saver:
    """Writes the model folder, and checkpoints beside it when asked."""

    out: Path
    tokenizer: PreTrainedTokenizerFast
    every: int = 0

    def after(self, step: int, model: Qwen3ForCausalLM) -> None:
        """Write a checkpoint if one is due after this many steps."""
        if self.every and step % self.every == 0:
            replace(self, out=self.out.with_name(f"{self.out.name}-{step}")).write(model)

    def write(self, model: Qwen3ForCausalLM) -> None:
        """Write configurations, weights and tokenizer.

        The JSON files are in the form of published Qwen3 models, which transformers 4.57 and
        later and vLLM read, rather than in that of the installed version.
        """
        self.out.mkdir(parents=True, exist_ok=True)
        # The language-model head is the embedding itself, and loaders tie it again.
        tensors = {
            name: tensor.detach().contiguous()
            for name, tensor in model.state_dict().items()
            if name != "lm_head.weight"
        }
        weights = safetensors.torch.save(tensors, metadata={"format": "pt"})
        (self.out / "model.safetensors").write_bytes(weights)
        self.tokenizer.backend_tokenizer.save(str(self.out / "tokenizer.json"))
        self._write_json("tokenizer_config.json", self._tokenizer_settings())
        self._write_json("config.json", _model_settings(model.config))
        self._write_json(
            "generation_config.json",
            {
                "do_sample": True,
                "temperature": TEMPERATURE,
                "eos_token_id": self.tokenizer.eos_token_id,
                "pad_token_id": self.tokenizer.pad_token_id,
            },
        )

    def _tokenizer_settings(self) -> dict[str, object]:
        return {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "eos_token": TURN_END,
            "pad_token": PAD,
            "model_max_length": CONTEXT,
            "model_input_names": ["input_ids", "attention_mask"],
            "clean_up_tokenization_spaces": False,
            "chat_template": CHAT_TEMPLATE,
        }

    def _write_json(self, name: str, settings: dict[str, object]) -> None:
        text = json.dumps(settings, indent=2, ensure_ascii=False)
        (self.out / name).write_text(text + "\n", encoding="utf-8")


def _model_settings(config: Qwen3Config) -> dict[str, object]:
    copied = (
        "vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers",
        "num_attention_heads", "num_key_value_heads", "head_dim", "max_position_embeddings",
        "tie_word_embeddings", "rms_norm_eps", "hidden_act", "attention_bias",
        "attention_dropout", "initializer_range", "eos_token_id", "pad_token_id",
    )  # fmt: skip
    return {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        **{name: getattr(config, name) for name in copied},
        "rope_theta": 10000.0,
        "rope_scaling": None,
        "sliding_window": None,
        "use_sliding_window": False,
        "use_cache": True,
        "torch_dtype": "float32",
    }


def main(
    steps: Annotated[int, typer.Option(help="Optimisation steps.")] = 2000,
    out: Annotated[Path, typer.Option(help="Model folder to write.")] = Path("data/demo_model"),
    batch_size: Annotated[int, typer.Option(help="Traces in a step.")] = 16,
    threads: Annotated[int, typer.Option(help="Threads; another number, other bytes.")] = 1,
    seed: Annotated[int, typer.Option(help="Seed of questions, traces and weights.")] = PAPER_SEED,
    checkpoint_every: Annotated[int, typer.Option(help="Steps between checkpoints; 0: none.")] = 0,
) -> None:
    """Train the demo model and write its folder."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(seed)
    tokenizer = build_tokenizer()
    model = build_model(tokenizer, Size())
    logger.info("%d parameters, %d tokens", model.num_parameters(), len(tokenizer))
    writer = ExampleWriter(tokenizer, TraceRecipe())
    source = batches(writer, tokenizer.pad_token_id, seed=seed, batch_size=batch_size)
    saver = Saver(out=out, tokenizer=tokenizer, every=checkpoint_every)
    train(model, source, steps=steps, save=saver)
    saver.write(model)
    digest = hashlib.sha256((out / "model.safetensors").read_bytes()).hexdigest()
    logger.info("wrote %s, sha256 of the weights %s", out, digest)


if __name__ == "__main__":
    typer.run(main)
