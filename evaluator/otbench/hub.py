"""A release on the Hugging Face hub, as a dataset repository."""

import contextlib
import importlib
from pathlib import Path

from data.errors import MissingDependencyError, MisuseError, StoreError, one_line
from evaluator.otbench.integrity import read_manifest, verify


def push_release(folder: Path, repository: str, *, private: bool = False) -> str:
    """Send a verified release to the hub and return its address.

    Parameters
    ----------
    folder
        The release.
    repository
        ``user/name``; made if it is not there. Credentials are those of ``hf auth login`` or of
        the environment (``HF_TOKEN``).
    private
        Make a new repository private.

    Raises
    ------
    data.errors.MissingDependencyError
        If ``huggingface_hub`` is not installed.
    data.errors.MisuseError
        If the name is not valid, or the hub refuses.
    data.errors.StoreError
        If the release is damaged, or the hub cannot be reached.
    """
    try:
        import huggingface_hub
        from huggingface_hub import errors
    except ImportError as error:
        raise MissingDependencyError(
            'sending to the hub needs huggingface_hub; install it: pip install "stp-engine[hub]"'
        ) from error
    manifest, checksum = read_manifest(folder)
    verify(folder, manifest)
    hub = huggingface_hub.HfApi()
    try:
        made = hub.create_repo(repository, repo_type="dataset", private=private, exist_ok=True)
        hub.upload_folder(
            folder_path=str(folder),
            repo_id=made.repo_id,
            repo_type="dataset",
            commit_message=f"Release {manifest['name']} ({checksum[:12]})",
        )
    except errors.HfHubHTTPError as error:
        raise MisuseError(f"{repository}: the hub refuses: {one_line(error)}") from error
    except (ValueError, errors.LocalTokenNotFoundError) as error:
        raise MisuseError(f"{repository}: {one_line(error)}") from error
    except _unreachable() as error:
        raise StoreError(f"{repository}: the hub cannot be reached: {one_line(error)}") from error
    return str(made.url)


def _unreachable() -> tuple[type[Exception], ...]:
    """Return what a lost connection raises: it depends on the client's version."""
    kinds: list[type[Exception]] = [OSError]
    for name in ("httpx", "httpx2"):
        with contextlib.suppress(ImportError):
            kinds.append(importlib.import_module(name).HTTPError)
    return tuple(kinds)
