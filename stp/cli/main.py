"""The command ``stp``: its subcommands, and how errors are shown.

Every command lives in a module of its own that imports what it needs when it is called, so that
``stp --help`` and ``stp X --help`` load neither numpy nor torch.
"""

import io
import os
import sys
from collections.abc import Sequence

from data.errors import StpError
from stp.cli import first_help
from stp.machine import machine_trouble

_LONGEST_LINE = 2_000


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and end the process.

    An error that this project raises on purpose becomes one line and its own exit code: 2 for
    misuse, 1 for failure. ``--debug``, anywhere among the arguments, shows the traceback.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in given
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character shows its number.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        try:
            if given in (["--help"], ["-h"]):
                sys.stdout.write(first_help())
                raise SystemExit(0)
            from stp.cli.early_lines import early_lines
            from stp.cli.lazily import app

            with early_lines():
                app(args=_arguments(given), prog_name="stp")
        finally:
            # What cannot be written is said here, not after the end.
            sys.stdout.flush()
    except StpError as error:
        if debug:
            raise
        _fail(str(error), error.exit_code)
    except (SystemExit, KeyboardInterrupt) as ended:
        # Typer ends without a word where it is interrupted; before it is loaded nobody ends.
        if debug or not _interruption(ended):
            raise
        _fail(_interruption(ended), 130)
    except Exception as error:
        if debug:
            raise
        if (trouble := machine_trouble(error)) is not None:
            _fail(trouble, 1)
        kind = type(error).__name__
        first = (str(error).strip().splitlines() or [""])[0]
        _fail(f"unexpected {kind}: {first}; this is a defect: --debug shows where", 1)


def _open_closed_streams() -> None:
    """Let what was closed before the start be the null device.

    Else the next file that is opened has its number, and whatever prints by number prints into it.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123


def _interruption(ended: BaseException | None) -> str:
    """Return what is left of work that was interrupted; empty if it was not."""
    while ended is not None and not isinstance(ended, KeyboardInterrupt):
        ended = ended.__cause__ or ended.__context__
    if ended is None:
        return ""
    return f"stopped at once; {str(ended) or 'what was finished is kept'}"


def _arguments(given: Sequence[str]) -> list[str]:
    """Return the arguments for the application: its own options apart, ``--ray`` with an address.

    The library knows no option whose value may be left out. An address is ``auto``, ``local``, or
    holds a colon.
    """
    arguments: list[str] = []
    for index, argument in enumerate(given):
        if argument == "--debug":
            continue
        arguments.append(argument)
        value = given[index + 1] if index + 1 < len(given) else ""
        if argument == "--ray" and value not in ("auto", "local") and ":" not in value:
            arguments.append("auto")
    return arguments


def _fail(message: str, code: int) -> None:
    # What others say in several lines (a chat template, a library) is one here, as promised.
    line = " ".join(part.strip() for part in message.splitlines())
    if not line.isascii() or not line.isprintable():
        from stp.cli.seen import seen

        line = seen(line)
    if len(line) > _LONGEST_LINE:
        # A value of thousands of characters; what to do about it stands at the end.
        line = f"{line[: _LONGEST_LINE // 2]} ... {line[-_LONGEST_LINE // 2 :]}"
    sys.stderr.write(f"stp: error: {line}\n")
    try:
        sys.stdout.flush()
    except OSError:
        # Python would try once more to write what cannot be written, and complain in its own words.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise SystemExit(code)


if __name__ == "__main__":
    main()
