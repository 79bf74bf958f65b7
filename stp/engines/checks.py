"""What every engine checks before it starts to work: trees, and the model's folder."""

import hashlib
import json
import logging
from pathlib import Path
from typing import Any

from data.errors import MisuseError
from stp.engines.base import PromptTree, SamplingParameters
from stp.tokenizers import padding_ids

_LOG = logging.getLogger(__name__)
_HASH_CHUNK_BYTES = 1 << 22
_MOST = {
    **dict.fromkeys(("num_hidden_layers", "num_layers", "n_layer", "n_layers"), 2_000),
    **dict.fromkeys(("num_attention_heads", "num_key_value_heads", "n_head", "head_dim"), 2**16),
    **dict.fromkeys(("num_experts", "num_local_experts", "n_routed_experts"), 2**14),
    **dict.fromkeys(("hidden_size", "intermediate_size", "n_embd", "n_inner"), 2**22),
    **dict.fromkeys(("moe_intermediate_size", "shared_expert_intermediate_size"), 2**22),
    "vocab_size": 2**26,
    "max_position_embeddings": 2**36,
}
"""Far more than any model's, by the names of config.json."""
_LFS_POINTER = b"version https://git-lfs"


def check_model_folder(model_path: str | Path) -> Path:
    """Return the folder of a Hugging Face model, or say in one line what is missing.

    Raises
    ------
    data.errors.MisuseError
        If the folder, its ``config.json`` or its safetensors files are missing, a file of it is a
        pipe or a device, or ``config.json`` has sizes that no model has.
    """
    folder = Path(model_path)
    if not folder.is_dir():
        raise MisuseError(
            f"model folder {folder} does not exist; give the path of a Hugging Face model"
        )
    if not (folder / "config.json").is_file():
        raise MisuseError(f"model folder {folder} has no config.json; is it a Hugging Face model?")
    weights = sorted(folder.glob("*.safetensors"))
    if not weights:
        raise MisuseError(f"model folder {folder} has no *.safetensors file with weights")
    for path in folder.iterdir():
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise MisuseError(f"{path} is a pipe or a device, not a file of a model")
    for path in (*weights, folder / "tokenizer.json", folder / "config.json"):
        _refuse_pointer(path)
    _refuse_sizes(folder / "config.json")
    return folder


def _refuse_sizes(path: Path) -> None:
    """Refuse sizes that no model has: what is missing in the weights would be made in memory."""
    values = config_values(path.parent)
    for section in (values, *values.values()):
        for name, most in _MOST.items() if isinstance(section, dict) else ():
            found = section.get(name)
            if isinstance(found, int | float) and not 0 <= found <= most:
                raise MisuseError(
                    f"{path}: {name} is {found!r:.20}; no model has more than {most:,}; "
                    "is the file damaged?"
                )


def config_values(folder: Path) -> dict[str, Any]:
    """Return what a model's ``config.json`` says.

    Raises
    ------
    data.errors.MisuseError
        If it cannot be read.
    """
    path = folder / "config.json"
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise MisuseError(f"{path}: cannot be read: {error}") from error
    if not isinstance(values, dict):
        raise MisuseError(f"{path}: it is no configuration of a model")
    return values


def _refuse_pointer(path: Path) -> None:
    """Refuse what git leaves in a large file's place where git-lfs did not fetch it."""
    if not path.is_file():
        return
    with path.open("rb") as file:
        if file.read(len(_LFS_POINTER)) == _LFS_POINTER:
            raise MisuseError(
                f"{path} is a git-lfs pointer, not the file itself: run `git lfs pull` in "
                f"{path.parent}, or download the model again"
            )


def weights_hash(folder: Path) -> str:
    """Return the sha256 (hex) over names and contents of a folder's safetensors files."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.safetensors")):
        digest.update(path.name.encode() + b"\0")
        with path.open("rb") as file:
            while chunk := file.read(_HASH_CHUNK_BYTES):
                digest.update(chunk)
    return digest.hexdigest()


class TreeChecker:
    """Refuses trees that no engine could run.

    Parameters
    ----------
    context_limit
        Most ids, prompt and generation together.
    vocabulary
        Number of ids that the model knows.
    """

    def __init__(self, *, context_limit: int, vocabulary: int) -> None:
        self._context_limit = context_limit
        self._vocabulary = vocabulary
        self._warned = False

    def __call__(self, tree: PromptTree) -> None:
        """Check a tree; the first that the context may cut short is worth a warning.

        Raises
        ------
        data.errors.MisuseError
            If a prompt does not fit the context, an id is outside the vocabulary, or a field of
            the tree is out of its range.
        """
        if _check_tree(tree, self._context_limit, self._vocabulary) and not self._warned:
            self._warned = True
            _LOG.warning(
                "a prompt leaves less than max_tokens (%d) in the context of %d; its samples, and "
                'others like them, may end there, with finish "length"',
                tree.max_tokens,
                self._context_limit,
            )


def _check_tree(tree: PromptTree, context_limit: int, vocabulary: int) -> int:
    """Check one tree; return the number of branches that max_tokens could take over the context."""
    if not tree.branches:
        raise MisuseError("it has no branches")
    if tree.max_tokens < 1:
        raise MisuseError(f"max_tokens is {tree.max_tokens}, but must be at least 1")
    _check_sampling(tree.sampling)
    _check_ids(tree.trunk_ids, vocabulary)
    if tree.grows and sum(len(branch.seeds) for branch in tree.branches) != 1:
        raise MisuseError("a tree that a session grows by has one sample")
    cut_short = 0
    previous = 0
    for branch in tree.branches:
        if not previous <= branch.cut <= len(tree.trunk_ids):
            raise MisuseError(
                f"cut {branch.cut} is not in rising order within 0..{len(tree.trunk_ids)}"
            )
        previous = branch.cut
        _check_ids(branch.suffix_ids, vocabulary)
        prompt_tokens = branch.cut + len(branch.suffix_ids)
        if prompt_tokens < 1:
            raise MisuseError("a branch has an empty prompt")
        if prompt_tokens >= context_limit:
            raise MisuseError(
                f"a prompt of {prompt_tokens} tokens leaves no room to generate in the context of "
                f"{context_limit}"
            )
        cut_short += prompt_tokens + tree.max_tokens > context_limit
        if not 0 <= branch.drawn <= prompt_tokens:
            raise MisuseError(
                f"a branch has drawn {branch.drawn} of its {prompt_tokens} prompt ids"
            )
        if any(not 0 <= seed < 2**63 for seed in branch.seeds):
            raise MisuseError("a seed is outside 0..2**63-1")
    return cut_short


def _check_ids(ids: tuple[int, ...], vocabulary: int) -> None:
    if ids and (min(ids) < 0 or max(ids) >= vocabulary):
        bad = next(token for token in ids if not 0 <= token < vocabulary)
        raise MisuseError(f"token id {bad} is outside the model's vocabulary of {vocabulary}")


def _check_sampling(sampling: SamplingParameters) -> None:
    if not 0.0 <= sampling.temperature < float("inf"):
        raise MisuseError(f"temperature is {sampling.temperature}, but must be at least 0")
    if not 0.0 < sampling.top_p <= 1.0:
        raise MisuseError(f"top_p is {sampling.top_p}, but must be in (0, 1]")
    if sampling.top_k < 0:
        raise MisuseError(f"top_k is {sampling.top_k}, but must be at least 0")


def padding_bias(folder: Path, vocabulary: int) -> dict[int, float] | None:
    """Return what keeps vLLM from sampling ids that stand for no text: the least bias it takes.

    None if a vocabulary is not padded, so that nothing is added to any logit.
    """
    return dict.fromkeys(padding_ids(folder, vocabulary), -100.0) or None


def check_vllm_sampling(sampling: SamplingParameters) -> None:
    """Refuse sampling parameters that vLLM does not take, in process or as a server.

    Raises
    ------
    data.errors.MisuseError
        Naming the parameter and its range.
    """
    if not -2.0 <= sampling.presence_penalty <= 2.0:
        raise MisuseError("vLLM takes presence penalties between -2 and 2 only")
    if sampling.temperature > 2.0:
        raise MisuseError("vLLM takes temperatures up to 2 only")
