"""Arguments and options that several commands have."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

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


def filled_by(name: str, make: Callable[..., Any]) -> Callable[[Callable[..., None]], Any]:
    """Give a command another function's options; what that makes of them is its argument ``name``.

    So commands that share options list them once. A parameter that both have is declared by the
    command, and given to both.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own, theirs = inspect.signature(command).parameters, inspect.signature(make).parameters

        def run(**given: Any) -> None:
            made = make(**{key: given[key] for key in theirs})
            command(**{name: made}, **{key: given[key] for key in own if key != name})

        listed = {**theirs, **own}
        del listed[name]
        run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [entry.replace(kind=inspect.Parameter.KEYWORD_ONLY) for entry in listed.values()]
        )
        run.__annotations__ = {key: entry.annotation for key, entry in listed.items()}
        run.__name__, run.__doc__ = command.__name__, command.__doc__
        return run

    return decorate


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
