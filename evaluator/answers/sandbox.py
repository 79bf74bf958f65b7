"""Running an untrusted program on one test, in a bubblewrap sandbox.

Knows programs, inputs and limits; what the right output is, it does not know. In the sandbox there
is no network, no file but the standard library and one small temporary folder, no environment of
ours, no other process, and no way to start one (`seccomp`). Time, memory, output, open files and
file sizes are limited, and when the program ends or is killed, nothing of it is left: its process
namespace and its folder vanish with it.
"""

import contextlib
import functools
import json
import os
import select
import selectors
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from data.code_tests import LONGEST_OUTPUT_CHARACTERS
from evaluator.answers import sandbox_runner
from evaluator.answers.deadline import Deadline
from evaluator.answers.errors import CheckerError, SandboxMissingError
from evaluator.answers.seccomp import filter_program
from evaluator.answers.verdict import TIME_LIMIT

MEMORY_BYTES = 2 * 2**30
FILE_BYTES = 16 * 2**20
FOLDER_BYTES = 64 * 2**20
OUTPUT_BYTES = LONGEST_OUTPUT_CHARACTERS
_ERROR_BYTES = 4096
_GRACE_SECONDS = 2.0
_START_SECONDS = 60.0
_GOING_SECONDS = 10.0
_PACKAGES = ("site-packages", "dist-packages")
_OPTIONS = ("-s", "-S", "-P", "-B")
"""No folder of packages. Not ``-I``, which would leave the hash seed to chance."""
_FIXED = {"PYTHONHASHSEED": "0"}
_RUNNER = Path(sandbox_runner.__file__).resolve()


@dataclass(frozen=True, slots=True)
class SandboxRun:
    """How one run of a program ended.

    Attributes
    ----------
    output
        What it printed.
    value
        For a function, what it returned as `sandbox_runner.spelled`; None if it never returned.
    trouble
        None if it ended by itself without an error; else one of ``"time limit"``,
        ``"output limit"``, or the last line of its error.
    """

    output: bytes
    value: str | None
    trouble: str | None


def run_program(
    program: str,
    function: str | None,
    test_input: str,
    limit_seconds: float,
    *,
    unsandboxed: bool = False,
) -> SandboxRun:
    """Run a program once.

    Parameters
    ----------
    program
        Python source.
    function
        Name of the function to call with the values in `test_input`; None to run the program with
        `test_input` as its standard input.
    test_input
        See `data.code_tests`.
    limit_seconds
        CPU time. The wall-clock limit is twice as long and two seconds more; time in which the
        program has to wait for a processor does not count; see `Deadline`.
    unsandboxed
        Allow a run without the sandbox if bubblewrap is missing.

    Raises
    ------
    SandboxMissingError
        There is no bubblewrap, and `unsandboxed` is False.
    CheckerError
        The sandbox does not start.
    """
    bwrap = shutil.which("bwrap")
    if bwrap is None and not unsandboxed:
        raise SandboxMissingError(
            "programs are not run without a sandbox: install bubblewrap "
            "(Debian: apt-get install bubblewrap), or give --unsandboxed if you trust them"
        )
    with contextlib.ExitStack() as stack:
        source = stack.enter_context(file_with(program.encode("utf-8", "surrogatepass")))
        given = stack.enter_context(file_with(test_input.encode("utf-8", "surrogatepass")))
        reply_end, reply_start = os.pipe()
        replies = stack.enter_context(os.fdopen(reply_end, "rb", buffering=0))
        reply_writer = stack.enter_context(os.fdopen(reply_start, "wb", buffering=0))
        info_end, info_start = os.pipe()
        info = stack.enter_context(os.fdopen(info_end, "rb", buffering=0))
        info_writer = stack.enter_context(os.fdopen(info_start, "wb", buffering=0))
        descriptors = [source.fileno(), reply_writer.fileno(), info_writer.fileno()]
        if bwrap is not None:
            prefix, more = _sandbox_command(bwrap, source, info_writer, stack)
            descriptors += more
            runner, path, folder = "/runner.py", "/program.py", None
        else:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="stp-program-"))
            prefix, runner, path = [], str(_RUNNER), str(Path(folder) / "program.py")
            Path(path).write_text(program, encoding="utf-8", errors="surrogatepass")
        limits = [max(1, round(limit_seconds)), MEMORY_BYTES, FILE_BYTES, reply_writer.fileno()]
        command = [*prefix, _python(), *_OPTIONS, runner, function or "stdin", path]
        command += [str(limit) for limit in limits]
        try:
            process = subprocess.Popen(
                command,
                stdin=given,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=descriptors,
                cwd=folder or "/",
                env={} if bwrap is not None else {"PATH": os.defpath, "LANG": "C.UTF-8", **_FIXED},
                start_new_session=True,
            )
        except OSError as error:
            raise CheckerError(f"cannot run {command[0]}: {error}") from error
        reply_writer.close()
        info_writer.close()
        first = FirstProcess(info)
        return _watch(process, replies, first, 2 * limit_seconds + _GRACE_SECONDS)


def _python() -> str:
    """Path of the interpreter itself: no virtual environment, none of its packages."""
    return os.path.realpath(sys.executable)


@contextlib.contextmanager
def file_with(content: bytes) -> Iterator[IO[bytes]]:
    """Open a file without a name that holds a content, at its start; for a descriptor to read."""
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.flush()
        file.seek(0)
        yield file


def _sandbox_command(
    bwrap: str, source: IO[bytes], info: IO[bytes], stack: contextlib.ExitStack
) -> tuple[list[str], list[int]]:
    """Build bubblewrap's command line, and the descriptors that it needs."""
    command = [bwrap, "--unshare-all", "--unshare-user", "--die-with-parent", "--new-session"]
    command += ["--cap-drop", "ALL", "--uid", "65534", "--gid", "65534", "--hostname", "sandbox"]
    command += ["--clearenv", "--setenv", "PATH", "/usr/bin:/bin", "--setenv", "LANG", "C.UTF-8"]
    for name, value in {"HOME": "/tmp", **_FIXED}.items():
        command += ["--setenv", name, value]
    for path in _interpreter_paths():
        command += ["--ro-bind", path, path]
    for path in _package_folders():
        command += ["--tmpfs", path, "--remount-ro", path]
    command += library_links()
    for device in ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom"):
        command += ["--dev-bind", device, device]
    command += ["--ro-bind", str(_RUNNER), "/runner.py"]
    command += ["--ro-bind-data", str(source.fileno()), "/program.py"]
    command += ["--size", str(FOLDER_BYTES), "--tmpfs", "/tmp", "--chdir", "/tmp"]
    command += ["--remount-ro", "/", "--info-fd", str(info.fileno())]
    descriptors: list[int] = []
    filter_bytes = filter_program()
    if filter_bytes is not None:
        file = stack.enter_context(file_with(filter_bytes))
        command += ["--seccomp", str(file.fileno())]
        descriptors.append(file.fileno())
    return [*command, "--"], descriptors


def library_links() -> list[str]:
    """Return bubblewrap's arguments for the system's libraries outside ``/usr``."""
    arguments = []
    for link in ("/lib", "/lib64", "/lib32"):
        if Path(link).is_symlink():
            arguments += ["--symlink", str(Path(link).readlink()), link]
        elif Path(link).is_dir():
            arguments += ["--ro-bind", link, link]
    return arguments


@functools.cache
def _interpreter_paths() -> tuple[str, ...]:
    """Paths that an interpreter needs to start: its library and the system's."""
    prefix = Path(sys.base_prefix).resolve()
    several = Path("/usr/lib", sysconfig.get_config_var("MULTIARCH") or "-")
    system = several if several.is_dir() else Path("/usr/lib")
    paths = [system, Path("/usr/lib64"), Path(_python())]
    if prefix != Path("/usr"):
        paths += [prefix / "lib", prefix / "lib64"]
    paths.append(Path(sysconfig.get_path("stdlib")))
    return tuple(dict.fromkeys(str(path) for path in paths if path.exists()))


@functools.cache
def _package_folders() -> tuple[str, ...]:
    """Folders of installed packages in what is shown: which there are differs by machine."""
    shown = [Path(path) for path in _interpreter_paths()]
    found = [
        folder.resolve()
        for path in shown
        for name in _PACKAGES
        for depth in ("", "*/", "*/*/")
        for folder in path.glob(f"{depth}{name}")
    ]
    inside = [folder for folder in found if any(map(folder.is_relative_to, shown))]
    return tuple(dict.fromkeys(map(str, inside)))


class FirstProcess:
    """The first process in a sandbox: where it ends, all others in it end.

    It is a child of bubblewrap, which takes its exit status. Where bubblewrap was ended before it,
    it would remain as a zombie of the container's first process, which may be this one.

    Parameters
    ----------
    info
        What bubblewrap writes to ``--info-fd``.
    """

    def __init__(self, info: IO[bytes]) -> None:
        os.set_blocking(info.fileno(), False)
        self._info = info
        self._descriptor: int | None = None

    def find(self) -> None:
        """Hold on to it; to be called while bubblewrap runs."""
        if self._descriptor is None:
            with contextlib.suppress(ValueError, KeyError, OSError):
                found = json.loads(self._info.read() or b"")
                self._descriptor = os.pidfd_open(int(found["child-pid"]))

    def end(self, bubblewrap: subprocess.Popen[bytes], seconds: float) -> bool:
        """End it, and bubblewrap after it; whether both are gone within the given seconds."""
        gone = True
        self.find()
        if self._descriptor is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._descriptor, signal.SIGKILL)
            # Readable when it has ended, and with it everything in the sandbox.
            gone = bool(select.select([self._descriptor], [], [], seconds)[0])
            with contextlib.suppress(subprocess.TimeoutExpired):
                bubblewrap.wait(seconds)
        bubblewrap.kill()
        try:
            bubblewrap.wait(seconds)
        except subprocess.TimeoutExpired:
            gone = False
        self.let_go()
        return gone

    def let_go(self) -> None:
        """Take its exit status if it is left to us, and close the descriptor.

        To be called when bubblewrap has ended, which may be a moment before this one is gone.
        """
        self.find()
        if self._descriptor is not None:
            select.select([self._descriptor], [], [], _GOING_SECONDS)
            with contextlib.suppress(ChildProcessError):
                os.waitid(os.P_PIDFD, self._descriptor, os.WEXITED | os.WNOHANG)
            os.close(self._descriptor)
            self._descriptor = None


def _watch(
    process: subprocess.Popen[bytes],
    replies: IO[bytes],
    first: FirstProcess,
    wall_seconds: float,
) -> SandboxRun:
    """Read what a program writes until it ends or is over a limit; then nothing of it runs."""
    assert process.stdout is not None
    assert process.stderr is not None
    streams = (process.stdout, process.stderr, replies)
    received = [bytearray() for _ in streams]
    deadline, started = Deadline(process.pid, _START_SECONDS), False
    trouble: str | None = None
    total = 0
    with selectors.DefaultSelector() as selector:
        for number, stream in enumerate(streams):
            selector.register(stream, selectors.EVENT_READ, number)
        while selector.get_map() and trouble is None:
            events = selector.select(deadline.remaining())
            if deadline.is_over():
                trouble = TIME_LIMIT
            for key, _ in events:
                chunk = os.read(key.fd, 1 << 16)
                if not chunk:
                    selector.unregister(key.fileobj)
                    continue
                total += len(chunk)
                received[key.data].extend(chunk)
                if streams[key.data] is process.stderr:
                    del received[key.data][:-_ERROR_BYTES]
                elif streams[key.data] is replies:
                    if not started:
                        deadline, started = Deadline(process.pid, wall_seconds), True
                    first.find()
            if total > OUTPUT_BYTES:
                trouble = "output limit"
    code = _end(process, first, deadline.remaining() if trouble is None else 0.0)
    if code is None and trouble is None:
        trouble = TIME_LIMIT
    output, error_bytes, reply = map(bytes, received)
    error = error_bytes.decode("utf-8", "replace").strip()
    process.stdout.close()
    process.stderr.close()
    if not reply.startswith(b"s"):
        raise CheckerError(f"the sandbox did not start: {error or f'exit status {code}'}")
    if trouble is None and code:
        trouble = _trouble(code, error)
    return SandboxRun(output, reply[1:].decode("utf-8", "replace") or None, trouble)


def _end(
    process: subprocess.Popen[bytes], first: FirstProcess, patience_seconds: float
) -> int | None:
    """Wait for a process that closed its pipes, or kill it; its exit status, None if killed."""
    code: int | None = None
    with contextlib.suppress(subprocess.TimeoutExpired):
        if patience_seconds > 0:
            code = process.wait(patience_seconds)
    if code is None:
        first.end(process, _GOING_SECONDS)
    else:
        first.let_go()
    # In the sandbox the end of its first process has ended all others. Without it, this does.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    # What a program without a sandbox started may be ours by now.
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-process.pid, 0)
    return code


def _trouble(code: int, error: str) -> str:
    """Say why a program ended with a status that is not 0."""
    number = -code if code < 0 else code - 128
    if number == signal.SIGXCPU:
        return TIME_LIMIT
    if number == signal.SIGKILL:
        return f"killed: {TIME_LIMIT}"
    if number == signal.SIGXFSZ:
        return "file size limit"
    last = error.rsplit("\n", 1)[-1][:200]
    return last or f"exit status {code}"
