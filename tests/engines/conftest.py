"""Engines and their twins on tiny models, built once."""

from functools import cache
from pathlib import Path

import pytest
from tokenizers import Tokenizer, decoders, models

import data
from stp.engines import open_engine
from tests.engines.models import VOCABULARY, build
from tests.engines.naive import NaiveEngine


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory):
    """Return a function from a kind of model to its folder; "demo" is the one we ship."""

    @cache
    def folder(kind: str):
        if kind == "demo":
            return Path(data.__file__).parent / "demo_model"
        path = build(kind, tmp_path_factory.mktemp("models") / kind)
        toy_tokenizer().save(str(path / "tokenizer.json"))
        return path

    return folder


@pytest.fixture(scope="session")
def engine_of(model_folder):
    """Return a function from a kind of model and options to an engine."""

    @cache
    def engine(kind: str, **options):
        return open_engine("transformers", model_folder(kind), device="cpu", **options)

    return engine


@pytest.fixture(scope="session")
def naive_of(model_folder):
    """Return a function from a kind of model to its twin."""

    @cache
    def naive(kind: str, dtype: str = "float32"):
        return NaiveEngine(model_folder(kind), dtype)

    return naive


def toy_tokenizer() -> Tokenizer:
    """Return a byte-level tokenizer whose token i is a letter, or a part of the letter é."""
    letters = [chr(ord("a") + i % 26) + ("" if i < 26 else str(i // 26)) for i in range(VOCABULARY)]
    # Byte-level names of the two bytes of "é": each alone decodes to a replacement character.
    letters[3], letters[4] = "Ã", "©"
    tokenizer = Tokenizer(
        models.BPE(vocab={letter: i for i, letter in enumerate(letters)}, merges=[])
    )
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer
