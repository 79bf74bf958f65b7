"""Problems of a user's machine, found before they cause failures elsewhere.

This module is the first of the project that is loaded; it loads nothing but the standard library.
"""

import errno
import os
import sys
from importlib.util import find_spec
from pathlib import Path

_PACKAGES = ("data", "evaluator", "oracle", "baselines")
"""Import packages of this project beside ``stp``. Their names are common ones."""


class ShadowedError(ImportError):
    """A file of the user's has the name of a package of this project, and is found before it."""


def prepare() -> None:
    """See that this project's packages are found, and that compiled code can be kept somewhere.

    Raises
    ------
    ShadowedError
        If another file or folder is found under the name of one of the packages.
    """
    _refuse_shadows(Path(__file__).resolve().parent.parent)
    _keep_compiled_code(Path(__file__).resolve().parent)


def _refuse_shadows(home: Path) -> None:
    for name in _PACKAGES:
        loaded = sys.modules.get(name)
        spec = find_spec(name) if loaded is None else loaded.__spec__
        place = spec.origin if spec is not None else None
        if place is None or Path(place).resolve().parent.parent == home:
            continue
        sys.excepthook = _one_line
        raise ShadowedError(
            f"{place} is in the way: stp has a package {name!r} of its own; rename that file, or "
            "work in another folder"
        )


def _one_line(kind: type[BaseException], error: BaseException, trace: object) -> None:
    """Print an error of this module as one line; its traceback would not help."""
    if isinstance(error, ShadowedError):
        sys.stderr.write(f"stp: error: {error}\n")
    else:
        sys.__excepthook__(kind, error, trace)  # type: ignore[arg-type]


def _keep_compiled_code(package: Path) -> None:
    """Give numba a folder for this process where it can write neither here nor in the home."""
    if os.environ.get("NUMBA_CACHE_DIR") or _can_write(package / "__pycache__"):
        return
    named = os.environ.get("XDG_CACHE_HOME")
    try:
        caches = Path(named) if named else Path.home() / ".cache"
    except RuntimeError:  # A user without a home.
        caches = None
    if caches is not None and _can_write(caches / "numba"):
        return
    # Seldom needed, and not for nothing.
    import atexit
    import shutil
    import tempfile

    try:
        folder = tempfile.mkdtemp(prefix="stp-numba-")
    except OSError:  # Then numba says what it needs.
        return
    os.environ["NUMBA_CACHE_DIR"] = folder
    atexit.register(shutil.rmtree, folder, ignore_errors=True)


def _can_write(folder: Path) -> bool:
    """Return whether a folder is there or can be made, and can be written."""
    try:
        while not folder.exists():
            if folder == folder.parent:
                return False
            folder = folder.parent
        return os.access(folder, os.W_OK)
    except OSError:
        return False


def machine_trouble(error: BaseException) -> str | None:
    """Return a problem of the machine and its remedy as one line; None for other errors.

    Errors that this project raises on purpose are not handled here, only those of libraries: what a
    disk, the memory, an installation or a terminal can cause is not a defect of the program.
    """
    seen: BaseException | None = error
    while seen is not None:
        for said in (_of_files, _of_memory, _of_installation, _of_text):
            if (line := said(seen)) is not None:
                return line
        seen = seen.__cause__ or seen.__context__
    return None


def _of_files(error: BaseException) -> str | None:
    if isinstance(error, BrokenPipeError):
        return "nobody reads the output any more; what was finished is kept"
    if isinstance(error, RuntimeError) and "cannot cache function" in str(error):
        return (
            "compiled code cannot be kept: neither the installation nor the home can be written; "
            "set NUMBA_CACHE_DIR to a folder that can"
        )
    if isinstance(error, RuntimeError) and "home directory" in str(error).lower():
        return "the home folder is not known; set HOME to a folder that can be written"
    if type(error).__module__ == "sqlite3":
        return f"a cache file cannot be used ({_line(error)}); set STP_CACHE_DIR to another folder"
    if not isinstance(error, OSError):
        return None
    where = f"{error.filename}: " if error.filename is not None else ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        what = where or "what the output goes to: "
        return f"{what}no space is left; make room, then run the same command again"
    cure = {
        errno.EMFILE: "raise the limit of open files (ulimit -n)",
        errno.ENFILE: "raise the limit of open files (ulimit -n)",
        errno.EACCES: "give yourself the right to it, or choose another folder",
        errno.EPERM: "give yourself the right to it, or choose another folder",
        errno.EROFS: "choose a folder that can be written (HOME, STP_CACHE_DIR, HF_HOME, TMPDIR)",
        errno.ENOENT: "see that it is there (TMPDIR, if it is a temporary file)",
    }.get(error.errno or 0, "see that disk and network are well, then run the same command again")
    return f"{where}{error.strerror or _line(error)}; {cure}"


def _of_memory(error: BaseException) -> str | None:
    full = isinstance(error, MemoryError) or type(error).__name__ in (
        "OutOfMemoryError",
        "ArrowMemoryError",
    )
    if full or "can't allocate memory" in str(error) or "not enough memory" in str(error):
        return (
            f"the memory is not enough ({_line(error)}); close other programs, or ask for less at "
            "once (shards, max_rows, workers)"
        )
    if "can't start new thread" in str(error):
        return "the system starts no more threads; raise the limit of processes (ulimit -u)"
    return None


def _of_installation(error: BaseException) -> str | None:
    if isinstance(error, ImportError):
        return (
            f"a package cannot be loaded ({_line(error)}); install it again: pip install "
            "--force-reinstall 'stp-engine[torch]', or see that no file of yours has its name"
        )
    return None


def _of_text(error: BaseException) -> str | None:
    if isinstance(error, UnicodeEncodeError):
        return (
            f"the terminal or file system cannot spell {error.object[error.start : error.end]!a}; "
            "set PYTHONUTF8=1"
        )
    return None


def _line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
