"""``stp families``: the model families, and which of them a model gets."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from stp.engines.base import SamplingParameters
    from stp.formats import ModelFamily


def families(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
            help="A model's name, its folder, or a family's name or TOML file.",
        ),
    ] = None,
) -> None:
    """List model families, or say which one a model gets, and why."""
    from stp.formats import family_names

    if not names:
        _list()
        return
    for name in names:
        if name in family_names() or name.endswith(".toml"):
            _show(name)
        else:
            _find(name)


def _list() -> None:
    from rich.console import Console
    from rich.table import Table

    from stp.formats import family_names, get_family

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("family", "models", "marks", "no thinking by", "settings from"):
        table.add_column(heading, overflow="fold")
    for family in map(get_family, family_names()):
        table.add_row(
            family.name,
            " ".join(family.patterns),
            f"{family.thinking_start.strip()} ({family.markers})",
            family.off_switch or "an empty thinking",
            family.source,
        )
    console = Console(highlight=False, markup=False)
    console.print(table)
    console.print(
        "stp families NAME: which one a model gets and why, or all of a family's settings"
    )


def _show(name: str) -> None:
    from stp.formats import get_family

    family = get_family(name)
    for line in _lines(family):
        typer.echo(line)


def _lines(family: "ModelFamily") -> list[str]:
    off = family.sampling_off or family.sampling
    asked = family.thinking_request and f"{family.thinking_request!r}"
    options = ", ".join(f"{key} = {value}" for key, value in family.template_options.items())
    unasked = "thinks" if family.thinks_unasked else "does not think"
    rows = {
        "names": " ".join(family.patterns),
        "thinking between": f"{family.thinking_start!r} and {family.thinking_end!r}, which are "
        f"{family.markers}",
        "answer opened by": repr(family.answer_open),
        "answer closed by": repr(family.answer_close),
        "instruction": family.instruction_place,
        "thinking by": ", ".join(part for part in (options, asked) if part) or "nothing",
        "no thinking by": family.off_switch or "an empty thinking",
        "unasked": unasked,
        "sampling": _sampling(family.sampling),
        "sampling without thinking": _sampling(off),
        "settings from": family.source,
    }
    return [family.name, *(f"  {key:<26}{value}" for key, value in rows.items())]


def _sampling(sampling: "SamplingParameters") -> str:
    top_k = f", top_k {sampling.top_k}" if sampling.top_k else ""
    penalty = sampling.presence_penalty
    more = f", presence_penalty {penalty}" if penalty else ""
    return f"temperature {sampling.temperature}, top_p {sampling.top_p}{top_k}{more}"


def _find(name: str) -> None:
    from stp.formats import find_family
    from stp.formats.finding import family_by_name

    folder = Path(name).expanduser()
    if family_by_name(name) is None and folder.is_dir():
        from stp.tokenizers import load_tokenizer

        found = find_family(folder.resolve().name, load_tokenizer(folder), folder)
    else:
        found = find_family(name)
    family = "no family" if found.family is None else found.family.name
    typer.echo(f"{name}: {family}, for {found.reason}")


def register(app: typer.Typer) -> None:
    """Add the command to an application."""
    app.command()(families)
