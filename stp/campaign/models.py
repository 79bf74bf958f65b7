"""From a model's name in a campaign file to its folder, its hashes and its tokenizer's files.

Knows Hugging Face folders; runs no model.
"""

import hashlib
import importlib.util
import json
import logging
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from data.errors import MissingDependencyError, MisuseError, StoreError
from data.hints import nearest
from stp.campaign.manifest import ModelRecord
from stp.campaign.sections import ModelConfig
from stp.campaign.store import Store
from stp.engines.checks import check_model_folder, config_values, weights_hash
from stp.formats import ModelFamily, family_for_model, get_family
from stp.formats.finding import family_by_name
from stp.formats.turn_end import TurnEnd, find_turn_end
from stp.tokenizers import backend, load_tokenizer

_LOG = logging.getLogger(__name__)

DEMO = "demo"
"""The path that means the model shipped with the project; a folder of this name is ./demo."""

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")

_COMMIT = re.compile(r"[0-9a-f]{40}")
_INDEX = "model.safetensors.index.json"
_SMALL_FILES = ("*.json", "*.jinja", "*.txt", "*.model")

_TOKENIZER = "tokenizer.json"
_TOKENIZER_FILES = (
    _TOKENIZER,
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "chat_template.jinja",
    "chat_template.json",
    "vocab.json",
    "merges.txt",
    "tokenizer.model",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocatedModel:
    """A model whose folder was found."""

    name: str
    folder: Path
    revision: str | None
    family: ModelFamily


def locate_model(config: ModelConfig) -> LocatedModel:
    """Find a model's folder (a hub id is fetched) and its family.

    Raises
    ------
    data.errors.MisuseError
        If there is no such folder or hub id, or no family for it.
    data.errors.MissingDependencyError
        If a hub id is given and huggingface_hub is not installed.
    """
    _check_path(config)
    # The family comes before a hub id's weights are fetched: without one they are of no use.
    family = _family(config)
    folder = check_model_folder(_folder(config))
    return LocatedModel(name=config.name, folder=folder, revision=config.revision, family=family)


def record_model(model: LocatedModel, *, context_limit: int) -> ModelRecord:
    """Return what the manifest keeps of a model; reads all of its weights for their hash.

    ``context_limit`` is what the campaign asks for; the model's own limit counts if it is lower.
    """
    return ModelRecord(
        name=model.name,
        path=str(model.folder),
        revision=model.revision,
        weights_hash=weights_hash(model.folder),
        tokenizer_hash=tokenizer_hash(model.folder),
        context_limit=min(context_limit, own_context(model.folder) or context_limit),
        family=model.family.model_dump(mode="json"),
        turn_end={name: list(ids) for name, ids in turn_end_of(model).sources.items()},
        made_tokenizer_hash=""
        if _has_own(model.folder)
        else _sha256(_made_tokenizer(model.folder)),
    )


def turn_end_of(model: LocatedModel) -> TurnEnd:
    """Return what ends the model's answers."""
    return find_turn_end(model.family, load_tokenizer(model.folder))


def tokenizer_hash(folder: Path) -> str:
    """Return the SHA-256 over names and contents of a folder's tokenizer files."""
    return files_hash((path.name, path.read_bytes()) for path in _tokenizer_files(folder))


def stored_tokenizer(store: Store, record: ModelRecord) -> bytes:
    """Return the ``tokenizer.json`` that a campaign keeps of a model; all its files are checked.

    Raises
    ------
    data.errors.StoreError
        If a file is gone, or the files are not those that the campaign began with.
    """
    kept = tokenizer_folder(record.name)
    names = [name for name in _TOKENIZER_FILES if store.exists(f"{kept}/{name}")]
    files = {name: store.read_bytes(f"{kept}/{name}") for name in names}
    content = files.get(_TOKENIZER)
    whole = files_hash(files.items()) == record.tokenizer_hash
    if content is not None and not whole:
        # It may be one that was made for reading the campaign, where the model has none itself.
        del files[_TOKENIZER]
        made = record.made_tokenizer_hash in ("", _sha256(content))
        whole = made and files_hash(files.items()) == record.tokenizer_hash
    if content is None or not whole:
        raise StoreError(
            f"{store.url}/{kept}: the tokenizer is not the one that this campaign began with; "
            f"`stp run {store.argument}` copies it from the model again"
        )
    return content


def files_hash(files: Iterable[tuple[str, bytes]]) -> str:
    """Return the SHA-256 over names and contents of files."""
    digest = hashlib.sha256()
    for name, content in files:
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _has_own(folder: Path) -> bool:
    return (folder / _TOKENIZER).is_file()


def _made_tokenizer(folder: Path) -> bytes:
    """Return ``tokenizer.json``, made for a model that has only older forms."""
    text: str = backend(load_tokenizer(folder)).to_str()
    return text.encode()


def copy_tokenizer(model: LocatedModel, store: Store) -> None:
    """Copy a model's tokenizer files into the campaign."""
    for path in _tokenizer_files(model.folder):
        store.write_bytes(f"{tokenizer_folder(model.name)}/{path.name}", path.read_bytes())
    if not _has_own(model.folder):
        made = _made_tokenizer(model.folder)
        store.write_bytes(f"{tokenizer_folder(model.name)}/{_TOKENIZER}", made)


def tokenizer_folder(model_name: str) -> str:
    """Return where the campaign keeps a model's tokenizer."""
    return f"tokenizer/{model_name}"


def _tokenizer_files(folder: Path) -> list[Path]:
    return [folder / name for name in _TOKENIZER_FILES if (folder / name).is_file()]


def _family(config: ModelConfig) -> ModelFamily:
    """Return a model's family: the one that is named, or what name, path and template say."""
    if config.family is not None:
        return get_family(config.family)
    for name in (config.name, config.path):
        if family_by_name(name) is not None:
            return family_for_model(name)
    folder = _folder(config, weights=False)
    family = family_for_model(config.name, load_tokenizer(folder), folder)
    _LOG.warning(
        "%s: its name fits no model family; by its chat template it thinks between %s and %s "
        "(`family` in the campaign file names another)",
        config.name,
        family.thinking_start.strip(),
        family.thinking_end,
    )
    return family


def _folder(config: ModelConfig, *, weights: bool = True) -> Path:
    """Return a model's folder; a hub id is fetched, without its weights if none are needed."""
    if config.path == DEMO:
        spec = importlib.util.find_spec("data")
        locations = spec.submodule_search_locations if spec is not None else None
        return Path(next(iter(locations or ["data"]))) / "demo_model"
    path = _local(config)
    return _fetch(config, weights=weights) if path is None else path


def _local(config: ModelConfig) -> Path | None:
    """Return the folder that a path names, or None if there is none."""
    try:
        path = Path(config.path).expanduser()
        return path if path.is_dir() else None
    # A home that is not known, a name longer than the system has.
    except (OSError, RuntimeError):
        return None


def _check_path(config: ModelConfig) -> None:
    """Refuse what is neither a folder nor can be a hub id."""
    if config.path == DEMO or _local(config) is not None or _HUB_ID.fullmatch(config.path):
        return
    near = nearest(config.path, [DEMO, *_neighbours(config)])
    hint = f"did you mean {near!r}? Else " if near else ""
    raise MisuseError(
        f"model {config.path!r}: no such folder; {hint}give the folder of a Hugging Face model, "
        f"a hub id such as Qwen/Qwen3-8B, or {DEMO!r}"
    )


def _neighbours(config: ModelConfig) -> list[str]:
    """Return the folders that lie where the path says that one lies."""
    parent = Path(config.path).parent
    try:
        return [str(path) for path in parent.iterdir() if path.is_dir()]
    except (OSError, ValueError):
        return []


def _fetch(config: ModelConfig, *, weights: bool) -> Path:
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise MissingDependencyError(
            f"model {config.path!r} is not a folder here, and fetching it needs huggingface_hub: "
            "pip install 'stp-engine[hub]'"
        ) from error

    def fetch(files: Sequence[str], revision: str | None) -> Path:
        # Nothing in a folder of the repository is loaded: there lie other formats and originals.
        return Path(
            snapshot_download(
                config.path,
                revision=revision,
                allow_patterns=list(files),
                ignore_patterns=["*/*"],
            )
        )

    try:
        folder = fetch(_SMALL_FILES, config.revision)
        if not weights:
            return folder
        # The very same version: the name of a snapshot's folder is its commit.
        commit = folder.name if _COMMIT.fullmatch(folder.name) else config.revision
        return fetch(_weight_files(folder), commit)
    # What hub, network and disk raise share no base class but these.
    except (OSError, ValueError, RuntimeError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else repr(error)
        raise MisuseError(
            f"model {config.path!r} is not a folder here and cannot be fetched from the hub: "
            f"{reason}"
        ) from error


def _weight_files(folder: Path) -> list[str]:
    """Return the names of the files that hold a model's weights, as its index says."""
    try:
        index = json.loads((folder / _INDEX).read_text(encoding="utf-8"))
        return sorted(set(map(str, index["weight_map"].values())))
    except FileNotFoundError:
        return ["model.safetensors"]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"{_INDEX} is not an index of weights") from error


def own_context(folder: Path) -> int | None:
    """Return the positions that the model was made for, or None if its config does not say.

    Raises
    ------
    data.errors.MisuseError
        If the folder's ``config.json`` cannot be read.
    """
    values = config_values(folder)
    for section in (values, values.get("text_config")):
        found = section.get("max_position_embeddings") if isinstance(section, dict) else None
        if isinstance(found, int) and found > 0:
            return found
    return None
