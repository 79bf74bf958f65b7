"""Arguments and options that several commands have."""

from pathlib import Path
from typing import Annotated

import typer

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
