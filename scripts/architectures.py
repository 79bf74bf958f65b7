"""Try every decoder class of transformers, built tiny, on the transformers engine.

    python scripts/architectures.py --out docs/architectures.md
    python scripts/architectures.py gpt2 opt

A class is built from its own configuration with small sizes and random weights, saved, opened, and
asked for greedy samples of a prompt tree; those must be what the model's own plain passes give,
token by token. What comes out is "works", or the line with which the engine refuses it at load, or
why it could not be built here. A class that loads and then fails or differs is a defect: the
program ends with 1.
"""

import argparse
import contextlib
import io
import logging
import sys
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from data.errors import StpError
from stp.engines import Branch, PromptTree, SamplingParameters, open_engine

VOCABULARY = 61
CONTEXT = 96
MOST_PARAMETERS = 30_000_000
TRUNK = tuple(range(3, 33))
CUTS = ((4, (1, 2, 5)), (17, (1,)), (30, ()))
NEW_TOKENS = 6
TOLERANCE = 1e-3

SIZES: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "n_embd": 32,
    "d_model": 32,
    "word_embed_proj_dim": 32,
    "intermediate_size": 48,
    "ffn_dim": 48,
    "ffn_hidden_size": 48,
    "d_ff": 48,
    "n_inner": 48,
    "moe_intermediate_size": 16,
    "shared_expert_intermediate_size": 16,
    "num_hidden_layers": 2,
    "num_layers": 2,
    "n_layer": 2,
    "decoder_layers": 2,
    "encoder_layers": 1,
    "num_attention_heads": 4,
    "n_head": 4,
    "decoder_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "rotary_dim": 8,
    "q_lora_rank": 16,
    "kv_lora_rank": 16,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8,
    "v_head_dim": 8,
    "num_experts": 4,
    "num_local_experts": 4,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "n_group": 1,
    "topk_group": 1,
    "first_k_dense_replace": 1,
    "max_position_embeddings": CONTEXT,
    "n_positions": CONTEXT,
    "n_ctx": CONTEXT,
    "sliding_window": 8,
    "initializer_range": 0.4,
    "pad_token_id": 0,
    "bos_token_id": 0,
    "eos_token_id": 0,
}


@dataclass(frozen=True, slots=True)
class Found:
    """What came of one architecture: ``"works"``, ``"refused"``, ``"not built"``, ``"DEFECT"``."""

    kind: str
    name: str
    outcome: str
    detail: str


def architectures() -> Iterator[tuple[str, str]]:
    """Yield the kind and the class name of every decoder that transformers knows."""
    for kind, name in sorted(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.items()):
        yield kind, name if isinstance(name, str) else name[0]


def tiny(kind: str) -> Any:
    """Return a tiny model of a kind, with random weights.

    Which sizes a configuration has, and which go together, is its own affair: those are set that
    it knows, and where it refuses them, fewer.
    """
    config_class = transformers.CONFIG_MAPPING[kind]
    known = set(config_class().to_dict()) | set(config_class.attribute_map)
    sizes = {name: value for name, value in SIZES.items() if name in known}
    without = ({}, {"head_dim"}, {"num_key_value_heads"}, {"head_dim", "num_key_value_heads"})
    reason: Exception | None = None
    for left_out in without:
        chosen = {name: value for name, value in sizes.items() if name not in left_out}
        try:
            config = config_class(**chosen)
            _few_layers(config)
            with torch.device("meta"):
                shape = transformers.AutoModelForCausalLM.from_config(config)
            if (count := sum(p.numel() for p in shape.parameters())) > MOST_PARAMETERS:
                raise ValueError(f"{count:,} parameters even when built small")
            torch.manual_seed(0)
            return transformers.AutoModelForCausalLM.from_config(config).float().eval()
        except Exception as error:  # noqa: BLE001 (strangers' code: anything may come)
            reason = error
    assert reason is not None
    raise reason


def _few_layers(config: Any) -> None:
    """Cut lists of one entry a layer to the number of layers."""
    layers = getattr(config, "num_hidden_layers", 2)
    for name in ("layer_types", "mlp_layer_types", "layers_block_type"):
        entries = getattr(config, name, None)
        if isinstance(entries, list) and len(entries) > layers:
            setattr(config, name, entries[:layers])


@torch.no_grad()
def plain(model: Any, prompt: tuple[int, ...]) -> list[torch.Tensor]:
    """Return the logits after the prompt and after each greedy token, by whole passes."""
    ids, found = list(prompt), []
    for _ in range(NEW_TOKENS):
        logits = model(input_ids=torch.tensor([ids]), use_cache=False).logits[0, -1].float()
        found.append(logits)
        ids.append(int(logits.argmax()))
    return found


def agrees(token_ids: tuple[int, ...], logits: list[torch.Tensor]) -> bool:
    """Return whether greedy tokens are the likeliest ones, up to rounding."""
    for token, row in zip(token_ids, logits, strict=True):
        if int(row.argmax()) != token:
            # Two tokens as likely: from here on both texts are right.
            return float(row.max() - row[token]) <= TOLERANCE * float(row.abs().max())
    return True


def tried(kind: str, name: str) -> Found:
    """Build, save, open and sample one architecture."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            model = tiny(kind)
            model.save_pretrained(folder)
        except Exception as error:  # noqa: BLE001 (strangers' code: anything may come)
            return Found(kind, name, "not built", _line(error))
        try:
            engine = open_engine("transformers", folder, threads=1, context_limit=CONTEXT)
        except StpError as error:
            reason = _line(error).replace(folder, kind)
            return Found(kind, name, "refused", reason.partition(": ")[2].partition("; run")[0])
        except Exception as error:  # noqa: BLE001 (strangers' code: anything may come)
            return Found(kind, name, "DEFECT", f"at load: {type(error).__name__}: {_line(error)}")
        tree = PromptTree(
            trunk_ids=TRUNK,
            branches=tuple(Branch(cut=c, suffix_ids=s, seeds=(0, 1)) for c, s in CUTS),
            max_tokens=NEW_TOKENS,
            sampling=SamplingParameters(temperature=0.0),
        )
        try:
            (branches,) = engine.generate([tree])
        except Exception as error:  # noqa: BLE001 (strangers' code: anything may come)
            return Found(kind, name, "DEFECT", f"in a run: {type(error).__name__}: {_line(error)}")
        finally:
            engine.close()
        # What was saved counts, not what was built: the library may tie or round weights.
        own = transformers.AutoModelForCausalLM.from_pretrained(
            folder, attn_implementation="eager", dtype=torch.float32
        ).eval()
        for (cut, suffix), samples in zip(CUTS, branches, strict=True):
            logits = plain(own, TRUNK[:cut] + suffix)
            if not all(agrees(sample.token_ids, logits) for sample in samples):
                return Found(kind, name, "DEFECT", f"another token than a plain pass, cut {cut}")
    return Found(kind, name, "works", "")


def table(found: list[Found]) -> str:
    """Return the findings as Markdown."""
    counts = {outcome: sum(f.outcome == outcome for f in found) for outcome in OUTCOMES}
    lines = [
        "# Architectures",
        "",
        "Every decoder class of transformers was built tiny with random weights, opened by "
        "the transformers engine and",
        "asked for greedy samples of a prompt tree; these must equal the model's own plain "
        "passes. Made by",
        f"`scripts/architectures.py`, transformers {transformers.__version__}, torch "
        f"{torch.__version__.partition('+')[0]}: "
        + ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count)
        + ".",
        "",
        '- works: can be used with `engine = "transformers"`.',
        "- refused: the engine says so when the model is loaded, before anything runs; vLLM "
        "may run it.",
        "- not built: no tiny model of this class could be made here; the same check is made when "
        "a model is loaded.",
        "",
        "| kind | class | outcome | why |",
        "| --- | --- | --- | --- |",
    ]
    for f in sorted(found, key=lambda f: (OUTCOMES.index(f.outcome), f.kind)):
        detail = f.detail.replace("|", "\\|")[:160]
        lines.append(f"| {f.kind} | {f.name} | {f.outcome} | {detail} |")
    return "\n".join(lines) + "\n"


OUTCOMES = ("DEFECT", "works", "refused", "not built")


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__


def main() -> None:
    """Try what is asked for, print it, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("kinds", nargs="*", help="model types; all if left out")
    parser.add_argument("--out", type=Path, help="where the table goes")
    asked = parser.parse_args()
    warnings.filterwarnings("ignore")
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    found = []
    for kind, name in architectures():
        if asked.kinds and kind not in asked.kinds:
            continue
        with contextlib.redirect_stdout(io.StringIO()):
            found.append(tried(kind, name))
        print(f"{kind:28} {found[-1].outcome:10} {found[-1].detail[:120]}", flush=True)
    if asked.out is not None:
        asked.out.write_text(table(found), encoding="utf-8")
    sys.exit(any(item.outcome == "DEFECT" for item in found))


if __name__ == "__main__":
    main()
