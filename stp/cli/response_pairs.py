"""Two models on one question, on a terminal: a list by ratio of tokens, texts in columns."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from data.errors import MisuseError
from stp.cli.seen import seen

if TYPE_CHECKING:
    from rich.console import Console

    from evaluator.explorer.responses import ResponseRow, Responses
    from evaluator.runs.pairs import Pair

    ResponseSide = tuple[Responses, Sequence[tuple[int, ResponseRow]]]

_NARROW = 72
"""On a narrower terminal two texts are shown one below the other."""


def show_pairs(
    console: "Console",
    first: "ResponseSide",
    second: "ResponseSide",
    *,
    cases: int,
    limit: int,
    thinking: bool,
) -> None:
    """Show two runs, or two methods of one, on the questions that both were asked.

    Parameters
    ----------
    console
        Where to.
    first, second
        Responses, and the rows chosen of them with their places.
    cases
        How many pairs are shown as texts, those with the largest ratio first.
    limit
        Lines of the list, which is shown without texts.
    thinking
        Whether texts have the thinking too.

    Raises
    ------
    data.errors.MisuseError
        If they have no question in common, or a side has several methods for one question.
    """
    from evaluator.runs.pairs import pair_responses

    ours, theirs = _by_key(first), _by_key(second)
    common = [key for key in ours if key in theirs]
    same = [key for key in common if ours[key][1].asked == theirs[key][1].asked]
    if not same:
        raise MisuseError(
            "the two have no response to the same question in common; name runs of one benchmark "
            "with the same seed and sizes"
        )
    pairs = pair_responses(
        {key: ours[key][1] for key in same}, {key: theirs[key][1] for key in same}
    )
    names = _names(first, second, pairs[0])
    if cases:
        for pair in pairs[:cases]:
            places = ours[pair.key][0], theirs[pair.key][0]
            _show_texts(console, (first[0], second[0]), places, pair, names, thinking)
    else:
        _show_list(console, pairs[:limit], names)
    if len(pairs) > (cases or limit):
        option = "--cases" if cases else "--limit"
        console.print(f"{cases or limit} of {len(pairs):,} questions; {option} shows more")
    if len(same) < len(common):
        console.print(f"{len(common) - len(same):,} left out: asked otherwise in the other run")
    console.print(seen(f"ratio: tokens of {names[1]} over those of {names[0]}"))


def _by_key(side: "ResponseSide") -> "dict[str, tuple[int, ResponseRow]]":
    """Return the rows of a side by question and sample: one method, or one each."""
    responses, rows = side
    found: dict[str, tuple[int, ResponseRow]] = {}
    for place, row in rows:
        if row.key in found:
            methods = sorted({each.method for _, each in rows})
            raise MisuseError(
                f"{responses.folder}: has several methods ({', '.join(methods)}); name one with "
                "--method, and with --against-method the other run's"
            )
        found[row.key] = place, row
    return found


def _names(
    first: "ResponseSide", second: "ResponseSide", pair: "Pair[ResponseRow]"
) -> tuple[str, str]:
    """Return what the two sides are called: runs, and methods if there are any."""

    def name(responses: "Responses", row: "ResponseRow") -> str:
        return f"{responses.name}, {row.method}" if row.method else responses.name

    return name(first[0], pair.first), name(second[0], pair.second)


def _show_list(
    console: "Console", pairs: "Sequence[Pair[ResponseRow]]", names: tuple[str, str]
) -> None:
    from rich.table import Table
    from rich.text import Text

    from evaluator.present.numbers import as_text

    table = Table(box=None, pad_edge=False, header_style="bold")
    # A key is whole at any width: it is given back with --question.
    keys = [seen(pair.key) for pair in pairs]
    table.add_column("response", no_wrap=True, min_width=max(map(len, keys)))
    for name in names:
        table.add_column(Text(seen(name)), overflow="fold")
    table.add_column("ratio", justify="right", no_wrap=True)
    for key, pair in zip(keys, pairs, strict=True):
        sides = (Text(_counted(row)) for row in (pair.first, pair.second))
        table.add_row(Text(key), *sides, Text(as_text(pair.ratio, ".2f")))
    console.print(table)


def _show_texts(
    console: "Console",
    runs: "tuple[Responses, Responses]",
    places: tuple[int, int],
    pair: "Pair[ResponseRow]",
    names: tuple[str, str],
    thinking: bool,
) -> None:
    """Show a question and its two responses in two columns."""
    from rich.table import Table
    from rich.text import Text

    from evaluator.present.numbers import as_text

    asked = runs[0].text(places[0])
    ratio = as_text(pair.ratio, ".2f")
    console.rule(Text(seen(f"{pair.key}  ratio {ratio}")), align="left")
    console.print(Text(seen(asked.prompt)))
    console.print(Text.assemble(("reference  ", "dim"), (seen(asked.reference), "green")))
    columns = []
    rows = (pair.first, pair.second)
    for name, run, place, row in zip(names, runs, places, rows, strict=True):
        found = run.text(place)
        column = Text.assemble((seen(name), "bold"), "\n", (_counted(row), "bold"), "\n")
        if row.pattern:
            column.append(f"pattern: {row.pattern}\n")
        if thinking:
            column.append(f"{seen(found.thinking or '(thinking not known)')}\n\n", style="dim")
        column.append(seen(found.text or "(empty)"))
        columns.append(column)
    if console.width < _NARROW:
        for column in columns:
            console.print(column)
            console.print()
        return
    grid = Table.grid(expand=True, padding=(0, 2))
    grid.add_column(ratio=1, overflow="fold")
    grid.add_column(ratio=1, overflow="fold")
    grid.add_row(*columns)
    console.print(grid)


def _counted(row: "ResponseRow") -> str:
    """Return verdict and tokens of a response in a few words."""
    verdict = {None: "undecided", True: "right", False: "wrong"}[row.right]
    return f"{verdict}, {'?' if row.tokens is None else format(row.tokens, ',')} tokens"
