"""The sandbox for third-party methods: bubblewrap, with Python and the method, and nothing else.

In it there is no network, no other process, no key ring, no GPU, and of files only the system's
programs and libraries, Python's own, those packages that the method may import, and its own file,
all read-only, beside an empty temporary folder. So a method can read neither the release nor a
campaign from disk, nor the evaluator's memory, and can change nothing.
"""

import contextlib
import functools
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from evaluator.answers.sandbox import file_with, library_links
from evaluator.answers.seccomp import filter_program

_OURS = ("baselines", "data", "oracle", "stp")
_SYSTEM = (
    *("/usr/bin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec", "/usr/share"),
    *("/usr/local/bin", "/usr/local/lib", "/usr/local/cuda", "/bin", "/sbin"),
    *("/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d"),
    *("/etc/localtime", "/sys/devices/system/cpu", "/sys/devices/system/node"),
)
_OF_PYTHON = ("bin", "lib", "lib64", "include", "share", "pyvenv.cfg")
# Of /proc what says how the machine is made. Not the counters of the whole machine, by which a
# process could tell a later one something, and not what a process sees of its own memory there
# (pagemap, smaps): which pages of a file are in memory is left by whoever read it before. A GPU's
# driver needs them, and its memory is a store of its own: so no GPU is shown.
_OF_MACHINE = ("cpuinfo", "filesystems", "meminfo", "version")
_NODE_COUNTERS = ("meminfo", "numastat", "vmstat")
_START_SECONDS = 30
_FOLDER_BYTES = 2**30
_HOME = "/tmp/home"
# What a method might need of our environment; keys and tokens are not among it.
_KEPT = ("PATH", "LD_LIBRARY_PATH", "LANG", "TZ")
_KEPT_GROUPS = ("LC_", "OMP_", "MKL_", "OPENBLAS_", "NUMBA_", "TORCH_")


@functools.cache
def bubblewrap() -> str | None:
    """Return the path of bubblewrap; None if there is none, it is too old, or cannot start."""
    path = shutil.which("bwrap")
    if path is None:
        return None
    try:
        with contextlib.ExitStack() as stack:
            walls, descriptors = _walls(path, stack)
            tried = subprocess.run(
                [*walls, "--remount-ro", "/", "--", "true"],
                capture_output=True,
                check=False,
                timeout=_START_SECONDS,
                pass_fds=descriptors,
            )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return None if tried.returncode else path


def sandboxed(
    command: list[str],
    readable: Iterable[Path],
    hidden: Iterable[Path],
    stack: contextlib.ExitStack,
    info: int,
) -> tuple[list[str], list[int]]:
    """Return a command as it runs in the sandbox, or as it is if there is no bubblewrap.

    Parameters
    ----------
    command
        Of this Python.
    readable
        Files and folders that it may read besides Python and its packages.
    hidden
        Folders that it must not read, wherever they are.
    stack
        Holds what must be open until the command has started.
    info
        Descriptor where bubblewrap writes which process is the first in the sandbox, as JSON.

    Returns
    -------
    tuple
        The command, and the descriptors that it needs.
    """
    bwrap = bubblewrap()
    if bwrap is None:
        return command, []
    around, descriptors = _walls(bwrap, stack)
    shown = [*_python_folders(), *readable]
    for folder in shown:
        around += ["--ro-bind-try", str(folder), str(folder)]
    for folder in _wherever(hidden, shown):
        around += ["--tmpfs", str(folder)]
    # Numba writes compiled code beside its source where it is not told otherwise.
    around += ["--setenv", "HOME", _HOME, "--setenv", "NUMBA_CACHE_DIR", _HOME]
    # Its pools of processes look their processes up in /proc.
    around += ["--setenv", "JOBLIB_MULTIPROCESSING", "0"]
    around += ["--info-fd", str(info), "--remount-ro", "/", "--chdir", "/tmp", "--"]
    return [*around, *command], [*descriptors, info]


def _walls(bwrap: str, stack: contextlib.ExitStack) -> tuple[list[str], list[int]]:
    """Return the options of every command: no process, network or key of ours; system files."""
    around = [bwrap, "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    around += ["--dev", "/dev"]
    for path in (f"/proc/{name}" for name in _OF_MACHINE):
        around += ["--ro-bind-try", path, path]
    around += ["--size", str(_FOLDER_BYTES), "--tmpfs", "/tmp", "--dir", _HOME]
    around += library_links()
    for path in _SYSTEM:
        around += ["--ro-bind-try", path, path]
    for node in Path("/sys/devices/system/node").glob("node*"):
        for counter in (str(node / name) for name in _NODE_COUNTERS):
            around += ["--ro-bind-try", "/dev/null", counter]
    rules = filter_program(processes=True)
    if rules is None:
        return around, []
    file = stack.enter_context(file_with(rules))
    return [*around, "--seccomp", str(file.fileno())], [file.fileno()]


def _wherever(hidden: Iterable[Path], shown: Iterable[Path]) -> list[Path]:
    """Return hidden folders under every name that they have where something is shown."""
    real = [folder.resolve() for folder in hidden]
    names = list(real)
    for folder in shown:
        there = folder.resolve()
        names += [folder / each.relative_to(there) for each in real if each.is_relative_to(there)]
    return list(dict.fromkeys(names))


def environment() -> dict[str, str]:
    """Return the environment of the other Python, which finds packages where this one does."""
    kept = {
        key: value
        for key, value in os.environ.items()
        if key in _KEPT or key.startswith(_KEPT_GROUPS)
    }
    path = os.pathsep.join(entry for entry in sys.path if entry)
    # Sets of texts come in the same order each time, so that a row can be made again.
    # What is printed is there at once: the process may be ended at any moment.
    return {**kept, "PYTHONPATH": path, "PYTHONHASHSEED": "0", "PYTHONUNBUFFERED": "1"}


def package_folders(value: str) -> tuple[Path, ...]:
    """Return where the top package of ``module:Class`` lies, without importing any of it."""
    try:
        found = importlib.util.find_spec(value.partition(":")[0].partition(".")[0])
    except (ImportError, ValueError):
        return ()
    if found is None:
        return ()
    if found.submodule_search_locations:
        return tuple(map(Path, found.submodule_search_locations))
    return (Path(found.origin),) if found.origin else ()


def _python_folders() -> list[Path]:
    """Return where Python and its packages are; of a checkout only our packages."""
    prefixes = dict.fromkeys((Path(sys.prefix), Path(sys.base_prefix)))
    folders = [prefix / name for prefix in prefixes for name in _OF_PYTHON]
    folders += [Path(sys.executable).resolve().parent]
    folders += [Path(entry) for entry in sys.path if Path(entry).name.endswith("-packages")]
    folders += [folder for package in _OURS for folder in package_folders(package)]
    return list(dict.fromkeys(folders))
