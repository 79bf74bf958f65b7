"""Arguments and options that several commands have."""

from pathlib import Path
from typing import Annotated

import typer

from data.errors import MisuseError

Folder = Annotated[
    str, typer.Argument(metavar="FOLDER", help="A campaign's folder: a path or an fsspec URL.")
]
MODEL_HELP = (
    "'demo', a model folder or hub id, provider/model of an API, file.py:function; MODEL@URL for "
    "an OpenAI-compatible server; further ';KEY=VALUE' (family, engine, revision, batch, options); "
    "or a TOML file with these."
)
PromptsOption = Annotated[
    Path | None, typer.Option("--prompts", help="Use the words of this file (docs/prompts.md).")
]
ReplicatesOption = Annotated[
    int,
    typer.Option(
        "--replicates", min=0, max=1_000_000, help="Bootstrap replicates; 0: no intervals."
    ),
]
AllowIncompleteOption = Annotated[
    bool, typer.Option("--allow-incomplete", help="Score what is there, and say what is missing.")
]


def out_folder(path: Path) -> Path:
    """Return the folder that a command writes into, with ``~`` replaced, before any work is done.

    Raises
    ------
    data.errors.MisuseError
        If it is a file, or a release: what is added to one would be taken for a change of it.
    data.errors.StoreError
        If it cannot be written.
    """
    from stp.files import check_writable

    path = path.expanduser()
    if path.exists() and not path.is_dir():
        raise MisuseError(f"{path}: is no folder; name another one to write into")
    if (path / "manifest.sha256").exists():
        raise MisuseError(f"{path}: is a release, and stays as it is; name another folder")
    return check_writable(path)
