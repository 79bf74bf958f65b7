"""Arguments that several commands have: a campaign's folder, and how models are named."""

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
