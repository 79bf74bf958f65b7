"""Small tokenizers for tests, built in memory: one word one token, bytes for everything else."""

from collections.abc import Sequence
from functools import cache

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

THINK_WORDS = (
    "So", " it", " is", " 4", ".", ".\n\n", "\n\n", "\n", ");\n\n//", ");", "Wait", ",", "Yes",
    " The", " answer", "<", "</", "think", ">", ".</", ">\n", ">The", "analysis", "final",
    "assistant", "user", "system",
)  # fmt: skip

CHATML = (
    "{%- for message in messages -%}"
    "{{- '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' -}}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}"
)
CHATML_OPEN = CHATML.replace("assistant\\n'", "assistant\\n<think>\\n'")
CHATML_CLOSED = CHATML.replace("assistant\\n'", "assistant\\n<think>\\n\\n</think>\\n\\n'")

# As GPT-OSS's: the date comes from inside a macro, and thinking is not opened.
HARMONY = (
    "{%- macro head() -%}{{- 'Current date: ' + strftime_now('%Y-%m-%d') + '\\n' -}}"
    "{{- 'Reasoning: ' + reasoning_effort -}}{%- endmacro -%}"
    "{{- '<|start|>system<|message|>' + head() + '<|end|>' -}}"
    "{%- for message in messages -%}"
    "{%- set role = 'developer' if message.role == 'system' else message.role -%}"
    "{{- '<|start|>' + role + '<|message|>' + message.content + '<|end|>' -}}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}<|start|>assistant{%- endif -%}"
)


def byte_level_tokenizer(
    words: Sequence[str | bytes] = THINK_WORDS,
    *,
    special: Sequence[str] = ("<|im_start|>", "<|im_end|>"),
    added: Sequence[str] = ("<think>", "</think>"),
) -> Tokenizer:
    """Return a byte-level tokenizer whose vocabulary is all bytes and ``words``, longest first."""
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    alphabet = byte_alphabet()
    vocabulary = {character: index for index, character in enumerate(alphabet)}
    for word in words:
        content = word.encode() if isinstance(word, str) else word
        vocabulary.setdefault("".join(alphabet[byte] for byte in content), len(vocabulary))
    tokenizer = Tokenizer(models.BPE(vocabulary, [], ignore_merges=True))
    texts = sorted((w for w in words if isinstance(w, str)), key=len, reverse=True)
    pattern = "|".join("".join(f"\\x{{{ord(c):x}}}" for c in text) for text in texts) or "(?!)"
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(pattern), behavior="isolated"), level]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in special])
    tokenizer.add_tokens([AddedToken(t, special=False, normalized=False) for t in added])
    return tokenizer


@cache
def byte_alphabet() -> tuple[str, ...]:
    """Return the character that stands for each byte in a byte-level vocabulary (GPT-2's)."""
    kept = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    moved = iter(range(0x100, 0x200))
    return tuple(chr(byte if byte in kept else next(moved)) for byte in range(256))


def with_template(
    tokenizer: Tokenizer, template: str | None, *, eos: str = "<|im_end|>", name: str = "tiny"
) -> PreTrainedTokenizerFast:
    """Return the tokenizer as transformers has it, with a chat template."""
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=eos)
    fast.chat_template = template
    fast.name_or_path = name
    return fast


def ids_of(tokenizer: Tokenizer, *tokens: str) -> tuple[int, ...]:
    """Return the ids of tokens given as text, each of which must be one token."""
    alphabet = byte_alphabet()
    ids = []
    for token in tokens:
        token_id = tokenizer.token_to_id(token)
        if token_id is None:
            token_id = tokenizer.token_to_id("".join(alphabet[byte] for byte in token.encode()))
        assert token_id is not None, token
        ids.append(token_id)
    return tuple(ids)
