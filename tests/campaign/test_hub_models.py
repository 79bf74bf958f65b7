"""Of a model on the hub only what is loaded is fetched."""

import fnmatch
import json

import pytest

from data.errors import MisuseError
from stp.campaign.models import locate_model
from stp.campaign.sections import ModelConfig
from tests.campaign.fakes import write_model_folder

COMMIT = "0123456789abcdef0123456789abcdef01234567"
BESIDE = (
    "original/consolidated.00.pth",
    "original/params.json",
    "original/tokenizer.model",
    "consolidated.safetensors",
    "model.fp16.safetensors",
    "pytorch_model.bin",
    "onnx/model.safetensors",
    "gguf/model.gguf",
    "README.md",
)


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A hub of one model, which copies what is asked for and remembers it."""
    import huggingface_hub

    repository = write_model_folder(tmp_path / "hub")
    for name in BESIDE:
        (repository / name).parent.mkdir(exist_ok=True)
        (repository / name).write_text("big")
    fetched: list[str] = []
    revisions: list[str | None] = []

    def snapshot_download(name, *, revision, allow_patterns, ignore_patterns):
        revisions.append(revision)
        folder = tmp_path / "snapshots" / COMMIT
        for path in sorted(repository.rglob("*")):
            relative = path.relative_to(repository).as_posix()
            if not path.is_file() or any(fnmatch.fnmatch(relative, p) for p in ignore_patterns):
                continue
            if any(fnmatch.fnmatch(relative, pattern) for pattern in allow_patterns):
                fetched.append(relative)
                (folder / relative).parent.mkdir(parents=True, exist_ok=True)
                (folder / relative).write_bytes(path.read_bytes())
        return str(folder)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    return repository, fetched, revisions


MODEL = ModelConfig(path="someone/model", family="demo")


def test_one_file_of_weights(hub):
    _, fetched, revisions = hub
    locate_model(MODEL)
    assert sorted(fetched) == [
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    ]
    assert revisions == [None, COMMIT]


def test_weights_in_parts(hub):
    repository, fetched, _ = hub
    parts = [f"model-0000{number}-of-00002.safetensors" for number in (1, 2)]
    for part in parts:
        (repository / part).write_text("weights")
    index = {"weight_map": {"a": parts[0], "b": parts[1], "c": parts[0]}}
    (repository / "model.safetensors.index.json").write_text(json.dumps(index))
    locate_model(MODEL)
    assert [name for name in fetched if name.endswith(".safetensors")] == parts


def test_a_damaged_index(hub):
    repository, _, _ = hub
    (repository / "model.safetensors.index.json").write_text("[]")
    with pytest.raises(MisuseError, match="not an index of weights"):
        locate_model(MODEL)
