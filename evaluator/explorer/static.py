"""The static form: the page, its files and every piece, for any web server or from disk."""

from pathlib import Path
from urllib.parse import quote

from data.errors import MisuseError, StoreError
from data.progress import NOBODY, Progress
from evaluator.explorer.page import FILES, page, page_file
from evaluator.explorer.source import Sources, piece_script
from stp.files import write_durably, write_error

PAGE = "index.html"


def write_static(sources: Sources, folder: Path, *, progress: Progress = NOBODY) -> Path:
    """Write everything into a new folder; returns where the page is.

    The page is written last: a folder that has it is whole.

    Parameters
    ----------
    sources
        What to show.
    folder
        New or empty.
    progress
        Called with pieces written and all.

    Raises
    ------
    data.errors.MisuseError
        If the folder holds something.
    data.errors.StoreError
        If a piece cannot be read, or a file cannot be written.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise MisuseError(f"{folder}: is there already and is not empty; choose a new folder")
    names = list(sources.names())
    for name in FILES:
        write_durably(folder / "app" / name, page_file(name))
    made: set[Path] = set()
    for done, name in enumerate(names, 1):
        path = folder / "pieces" / f"{quote(name)}.js"
        try:
            if path.parent not in made:
                path.parent.mkdir(parents=True, exist_ok=True)
                made.add(path.parent)
            # A hundred thousand files are not flushed one by one: the page, which is, comes last.
            path.write_text(piece_script(name, sources.piece(name)), encoding="utf-8")
        except OSError as error:
            raise StoreError(write_error(str(path), error)) from error
        progress(done, len(names))
    write_durably(folder / PAGE, page().encode())
    return folder / PAGE
