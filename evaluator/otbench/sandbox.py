"""The sandbox for methods of others: bubblewrap, with Python and the method, and nothing else.

In it there is no network, no other process, and of files only the system's and Python's own, those
packages that the method may import, and its own file, all read-only, beside an empty temporary
folder. So a method can read neither the release nor a campaign from disk, nor the evaluator's
memory, and can change nothing.
"""

import functools
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from evaluator.answers.sandbox import library_links

_OURS = ("baselines", "data", "oracle", "stp")
_SYSTEM = ("/usr", "/etc", "/sys")
_DEVICES = ("nvidia*", "kfd", "dri")
_START_SECONDS = 30
_HOME = "/tmp/home"
# What a method might need of our environment; keys and tokens are not among it.
_KEPT = ("PATH", "LD_LIBRARY_PATH", "LANG", "TZ")
_KEPT_GROUPS = ("LC_", "OMP_", "MKL_", "OPENBLAS_", "NUMBA_", "CUDA_", "NVIDIA_", "HIP_", "TORCH_")


@functools.cache
def bubblewrap() -> str | None:
    """Return the path of bubblewrap, or None where there is none or it cannot start."""
    path = shutil.which("bwrap")
    if path is None:
        return None
    try:
        tried = subprocess.run(
            [path, "--ro-bind", "/", "/", "--unshare-all", *_own_kernel_files(), "true"],
            capture_output=True,
            check=False,
            timeout=_START_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return None if tried.returncode else path


def sandboxed(command: list[str], readable: Iterable[Path]) -> list[str]:
    """Return a command as it runs in the sandbox, or as it is where there is no bubblewrap.

    Parameters
    ----------
    command
        Of this Python.
    readable
        Files and folders that it may read besides Python and its packages.
    """
    bwrap = bubblewrap()
    if bwrap is None:
        return command
    around = [bwrap, "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    around += [*_own_kernel_files(), "--tmpfs", "/tmp", "--dir", _HOME]
    for path in _SYSTEM:
        around += ["--ro-bind-try", path, path]
    around += library_links()
    for link in ("/bin", "/sbin"):
        around += ["--ro-bind-try", link, link]
    for device in (str(path) for kind in _DEVICES for path in sorted(Path("/dev").glob(kind))):
        around += ["--dev-bind-try", device, device]
    for folder in (*_python_folders(), *readable):
        around += ["--ro-bind-try", str(folder), str(folder)]
    # Numba writes compiled code beside its source where it is not told otherwise.
    around += ["--setenv", "HOME", _HOME, "--setenv", "NUMBA_CACHE_DIR", _HOME]
    return [*around, "--chdir", "/tmp", "--", *command]


def environment() -> dict[str, str]:
    """Return the environment of the other Python, which finds packages where this one does."""
    kept = {
        key: value
        for key, value in os.environ.items()
        if key in _KEPT or key.startswith(_KEPT_GROUPS)
    }
    return {**kept, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}


def package_folders(module: str) -> tuple[Path, ...]:
    """Return where a module's top package lies, without importing any of it."""
    found = importlib.util.find_spec(module.partition(".")[0])
    if found is None:
        return ()
    if found.submodule_search_locations:
        return tuple(map(Path, found.submodule_search_locations))
    return (Path(found.origin),) if found.origin else ()


def _own_kernel_files() -> tuple[str, ...]:
    return ("--dev", "/dev", "--proc", "/proc")


def _python_folders() -> list[Path]:
    """Return where Python and its packages are; of a checkout only our packages."""
    folders = [Path(sys.prefix), Path(sys.base_prefix), Path(sys.executable).resolve().parent]
    folders += [Path(entry) for entry in sys.path if Path(entry).name.endswith("-packages")]
    folders += [folder for package in _OURS for folder in package_folders(package)]
    return list(dict.fromkeys(folders))
