"""Loading tokenizers, and looking at tokens as bytes."""

import pytest
from tokenizers import Tokenizer, models

from data.errors import ConfigError, MisuseError
from stp.tokenizers import backend, exact_ids, load_tokenizer, token_bytes
from tests.small_tokenizers import CHATML, byte_level_tokenizer, ids_of, with_template


def test_a_saved_tokenizer_loads_with_its_template(tmp_path):
    saved = with_template(byte_level_tokenizer(), CHATML)
    saved.save_pretrained(tmp_path)
    loaded = load_tokenizer(str(tmp_path))
    assert loaded.get_vocab() == saved.get_vocab()
    assert loaded.chat_template == CHATML
    assert loaded.eos_token == "<|im_end|>"
    assert token_bytes(loaded) == token_bytes(saved)


def test_a_missing_folder_is_one_clear_line(tmp_path):
    with pytest.raises(MisuseError, match=r"model folder .*nowhere does not exist") as caught:
        load_tokenizer(tmp_path / "nowhere")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [None, "{", '{"model": 1}'])
def test_a_folder_without_a_readable_tokenizer(tmp_path, content):
    if content is not None:
        (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(MisuseError, match=r"holds no tokenizer that can be read .*needs") as caught:
        load_tokenizer(tmp_path)
    assert "\n" not in str(caught.value)
    assert str(tmp_path) in str(caught.value)


def test_every_byte_is_the_decoders_byte():
    """Against the library: two-byte characters spelled byte by byte come back."""
    tokenizer = byte_level_tokenizer(())
    forms = token_bytes(tokenizer)
    by_form = {form: token_id for token_id, form in enumerate(forms)}
    for code in [*range(0x20, 0x7F), *range(0x80, 0x800), 0x20AC, 0x1F600, 0x10FFFF]:
        spelled = [by_form[bytes([byte])] for byte in chr(code).encode()]
        assert tokenizer.decode(spelled) == chr(code)
    assert sorted(forms[:256]) == [bytes([byte]) for byte in range(256)]


def test_exact_ids_take_bytes_that_are_no_text():
    tokenizer = byte_level_tokenizer(("ab", b"\xe2\x80"))
    forms = token_bytes(tokenizer)
    ids = exact_ids(tokenizer, b"ab\xe2\x80\xff")
    assert [forms[token_id] for token_id in ids] == [b"ab", b"\xe2\x80", b"\xff"]
    assert exact_ids(tokenizer, "") == ()
    assert exact_ids(tokenizer, "ab</think>") == ids_of(tokenizer, "ab", "</think>")


def test_a_vocabulary_that_cannot_spell_a_text():
    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0, "a": 1}, unk_token="[UNK]"))
    with pytest.raises(ConfigError, match="cannot spell 'ab'") as caught:
        exact_ids(tokenizer, "ab")
    assert "\n" not in str(caught.value)


def test_what_is_no_fast_tokenizer_is_refused():
    with pytest.raises(MisuseError, match="str is not a fast tokenizer"):
        backend("tokenizer.json")


def test_an_id_that_no_model_has_is_refused():
    tokenizer = Tokenizer(models.WordLevel({"a": 0, "b": 2**31}, unk_token="a"))
    with pytest.raises(MisuseError, match="has the id 2,147,483,648"):
        token_bytes(tokenizer)
