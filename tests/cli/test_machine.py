"""What a user's machine can be in the way with: one line with the cure, never "a defect"."""

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stp.machine import machine_trouble
from tests.requirements import require_bubblewrap

ROOT = Path(__file__).resolve().parents[2]


def run(*arguments, cwd=None, path=(), environment=(), stdout=subprocess.PIPE):
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join([*map(str, path), str(ROOT)])}
    return subprocess.run(
        [sys.executable, "-m", "stp.cli.main", *map(str, arguments)],
        cwd=cwd,
        env={**variables, **dict(environment)},
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        check=False,
    )


def one_line(done, *parts):
    # A busy machine makes a command say that it is at work.
    lines = [line for line in done.stderr.splitlines() if not line.startswith("at work: ")]
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("stp: error: ")
    assert "defect" not in lines[0]
    for part in parts:
        assert part in lines[0]


@pytest.mark.parametrize("name", ["data", "evaluator", "oracle", "baselines"])
@pytest.mark.parametrize("kind", ["file", "package"])
def test_a_file_of_ones_own_in_the_way(tmp_path, name, kind):
    file = tmp_path / f"{name}.py"
    if kind == "package":
        (tmp_path / name).mkdir()
        file = tmp_path / name / "__init__.py"
    file.write_text("x = 1\n")
    one_line(run("status", "x", cwd=tmp_path, path=[tmp_path]), str(file), "rename")


def test_a_folder_without_a_module_is_not_in_the_way(tmp_path):
    (tmp_path / "data").mkdir()
    assert run("--version", cwd=tmp_path, path=[tmp_path]).returncode == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("arguments", [["--help"], ["families"], ["benchmarks"]])
def test_a_full_device(arguments):
    with Path("/dev/full").open("w") as full:
        done = run(*arguments, stdout=full)
    assert done.returncode == 1
    one_line(done, "no space is left")


@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONIOENCODING": "ascii"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ],
)
def test_a_terminal_without_utf_8(tmp_path, environment):
    done = run("status", tmp_path / "no-such-\u00e9\u4e2d", environment=environment.items())
    assert done.returncode == 2
    one_line(done, "no-such-")
    assert run("families", environment=environment.items()).returncode == 0


def test_a_read_only_installation_without_a_home(tmp_path):
    require_bubblewrap()
    code = "from oracle import exact_frontier; from stp.segmentation import segment; " + (
        "print(segment([5, 9, 5], boundary_ids={9}, step_tokens=1).tolist())"
    )
    box = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"]
    if str(ROOT).startswith("/tmp"):
        box += ["--ro-bind", str(ROOT), str(ROOT)]
    box += ["--setenv", "HOME", "/nowhere", "--unsetenv", "XDG_CACHE_HOME"]
    box += ["--setenv", "PYTHONPATH", str(ROOT), "--chdir", "/"]
    done = subprocess.run(
        [*box, sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "[0, 2, 3]", done.stderr


@pytest.mark.parametrize(
    ("error", "cure"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "make room"),
        (OSError(errno.EMFILE, "Too many open files"), "ulimit -n"),
        (PermissionError(errno.EACCES, "Permission denied", "/x"), "/x: Permission denied"),
        (OSError(errno.EROFS, "Read-only file system", "/x"), "can be written"),
        (FileNotFoundError(errno.ENOENT, "No usable temporary directory found"), "TMPDIR"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "run the same command again"),
        (MemoryError(), "memory is not enough"),
        (RuntimeError("can't start new thread"), "ulimit -u"),
        (RuntimeError("cannot cache function 'f': no locator available"), "NUMBA_CACHE_DIR"),
        (RuntimeError("Could not determine home directory."), "HOME"),
        (ImportError("libstdc++.so.6: version not found"), "install it again"),
        (UnicodeEncodeError("ascii", "\u00e9", 0, 1, "no"), "PYTHONUTF8=1"),
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), "nobody reads"),
    ],
)
def test_what_libraries_raise(error, cure):
    assert cure in machine_trouble(error)
    outer = ValueError("something else")
    outer.__cause__ = error
    assert cure in machine_trouble(outer)


@pytest.mark.parametrize("error", [KeyError("x"), ValueError("x"), RuntimeError("x"), TypeError()])
def test_defects_stay_defects(error):
    assert machine_trouble(error) is None


@pytest.mark.slow
def test_a_git_lfs_pointer(tmp_path):
    import data

    model = tmp_path / "model"
    shutil.copytree(Path(data.__file__).parent / "demo_model", model)
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 15\n"
    (model / "model.safetensors").write_text(pointer)
    config = tmp_path / "c.toml"
    config.write_text(
        f'[[models]]\npath = "{model}"\nfamily = "demo"\n[[benchmarks]]\nname = "demo"\nlimit = 1\n'
    )
    done = run("run", config, "--out", tmp_path / "c")
    assert done.returncode == 2
    assert "is a git-lfs pointer, not the file itself: run `git lfs pull`" in done.stderr
    assert not (tmp_path / "c" / "manifest.json").exists()


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="no /proc here")
@pytest.mark.parametrize(
    "command",
    [
        ("report", "{0}", "--out"),
        ("analyze", "{0}", "--out"),
        ("release", "{0}", "--out"),
        ("explore", "{0}", "--static"),
        ("leaderboard", "build", "{0}", "--out"),
        ("think", "compare", "{0}", "--out"),
        ("optimal", "compare", "{0}", "--out"),
    ],
)
def test_a_place_that_cannot_be_written_is_found_before_anything_is_computed(command, tmp_path):
    # There is no campaign either: whoever reads it first would say that.
    done = run(*(part.format(tmp_path / "none") for part in command), "/proc/nowhere/out")
    assert done.returncode == 1
    one_line(done, "/proc/nowhere/out: cannot be written")
