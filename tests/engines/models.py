"""Tiny random models: each has something that attention must get right."""

from pathlib import Path

import torch
import transformers

VOCABULARY = 61
CONTEXT = 128

_COMMON = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": CONTEXT,
    "tie_word_embeddings": True,
    "pad_token_id": 0,
    "bos_token_id": 0,
    "eos_token_id": 0,
    # Wide enough that the next token depends on the whole prompt.
    "initializer_range": 0.4,
}
_ZEROS = {"pad_token_id": 0, "bos_token_id": 0, "eos_token_id": 0}
_MOE = {"num_experts_per_tok": 2, "num_local_experts": 4}


def _without_head_dim(**others) -> dict:
    return {key: value for key, value in _COMMON.items() if key != "head_dim"} | others


def build(kind: str, folder: Path) -> Path:
    """Write a tiny model of a kind to a new folder and return the folder."""
    torch.manual_seed(sum(kind.encode()))
    _BUILDERS[kind]().save_pretrained(folder)
    return folder


_BUILDERS = {
    "qwen3": lambda: transformers.Qwen3ForCausalLM(transformers.Qwen3Config(**_COMMON)),
    "llama": lambda: transformers.LlamaForCausalLM(transformers.LlamaConfig(**_COMMON)),
    # Every layer looks back 8 tokens only.
    "mistral": lambda: transformers.MistralForCausalLM(
        transformers.MistralConfig(**_COMMON, sliding_window=8)
    ),
    # Attention sinks, and a window in every other layer.
    "gpt_oss": lambda: transformers.GptOssForCausalLM(
        transformers.GptOssConfig(
            **_COMMON,
            **_MOE,
            sliding_window=8,
            layer_types=["sliding_attention", "full_attention"],
            rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
        )
    ),
    # Soft caps on scores and logits.
    "gemma2": lambda: transformers.Gemma2ForCausalLM(
        transformers.Gemma2Config(
            **_COMMON, sliding_window=8, query_pre_attn_scalar=8, attn_logit_softcapping=2.0
        )
    ),
    # Keys and values of different sizes.
    "deepseek_v3": lambda: transformers.DeepseekV3ForCausalLM(
        transformers.DeepseekV3Config(
            **_without_head_dim(num_key_value_heads=4),
            q_lora_rank=16,
            kv_lora_rank=16,
            qk_rope_head_dim=8,
            qk_nope_head_dim=8,
            v_head_dim=12,
            n_routed_experts=4,
            num_experts_per_tok=2,
            n_group=1,
            topk_group=1,
            moe_intermediate_size=16,
            first_k_dense_replace=1,
        )
    ),
    # Learned positions, and queries whose rows and heads do not lie one after the other.
    "gpt2": lambda: transformers.GPT2LMHeadModel(
        transformers.GPT2Config(
            vocab_size=VOCABULARY,
            n_embd=32,
            n_layer=2,
            n_head=4,
            n_positions=CONTEXT,
            initializer_range=0.4,
            **_ZEROS,
        )
    ),
    "opt": lambda: transformers.OPTForCausalLM(
        transformers.OPTConfig(
            vocab_size=VOCABULARY,
            hidden_size=32,
            word_embed_proj_dim=32,
            ffn_dim=48,
            num_hidden_layers=2,
            num_attention_heads=4,
            max_position_embeddings=CONTEXT,
            init_std=0.4,
            **_ZEROS,
        )
    ),
    "biogpt": lambda: transformers.BioGptForCausalLM(
        transformers.BioGptConfig(
            vocab_size=VOCABULARY,
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=2,
            num_attention_heads=4,
            max_position_embeddings=CONTEXT,
            initializer_range=0.4,
            **_ZEROS,
        )
    ),
    "mamba": lambda: transformers.MambaForCausalLM(
        transformers.MambaConfig(vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=2)
    ),
    "bloom": lambda: transformers.BloomForCausalLM(
        transformers.BloomConfig(vocab_size=VOCABULARY, hidden_size=32, n_layer=2, n_head=4)
    ),
    "falcon": lambda: transformers.FalconForCausalLM(
        transformers.FalconConfig(
            vocab_size=VOCABULARY,
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            alibi=True,
        )
    ),
    "longrope": lambda: transformers.Phi3ForCausalLM(
        transformers.Phi3Config(
            **_without_head_dim(
                original_max_position_embeddings=64,
                rope_parameters={
                    "rope_type": "longrope",
                    "rope_theta": 1e4,
                    "short_factor": [1.0] * 4,
                    "long_factor": [2.0] * 4,
                },
            )
        )
    ),
}

FORKABLE = (
    "qwen3",
    "llama",
    "mistral",
    "gpt_oss",
    "gemma2",
    "deepseek_v3",
    "gpt2",
    "opt",
    "biogpt",
)
NOT_FORKABLE = ("mamba", "bloom", "falcon", "longrope")
