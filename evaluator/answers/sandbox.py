"""Running an untrusted program on one test, in a bubblewrap sandbox.

Knows programs, inputs and limits; what the right output is, it does not know. In the sandbox there
is no network, no file but the interpreter's own and one small temporary folder, no environment of
ours, no other process, and no way to start one (`seccomp`). Time, memory, output, open files and
file sizes are limited, and when the program ends or is killed, nothing of it is left: its process
namespace and its folder vanish with it.
"""

import contextlib
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from evaluator.answers import sandbox_runner
from evaluator.answers.errors import CheckerError, SandboxMissingError
from evaluator.answers.seccomp import filter_program
from evaluator.answers.verdict import TIME_LIMIT

MEMORY_BYTES = 2 * 2**30
FILE_BYTES = 16 * 2**20
FOLDER_BYTES = 64 * 2**20
OUTPUT_BYTES = 32 * 2**20
_ERROR_BYTES = 4096
_GRACE_SECONDS = 2.0
_START_SECONDS = 60.0
_BUSY_SHARE = 0.02
_MAX_EXTENSIONS = 10
_RUNNER = Path(sandbox_runner.__file__).resolve()


@dataclass(frozen=True, slots=True)
class SandboxRun:
    """How one run of a program ended.

    Attributes
    ----------
    output
        What it printed.
    value
        For a function, the JSON text of what it returned; None if it returned nothing that can be
        written so, or never returned.
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
        See `code_tests`.
    limit_seconds
        CPU time. The wall-clock limit is twice as long and two seconds more, for a program that
        does not use the processor in that time; see `_Clock`.
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
            "(Debian: apt-get install bubblewrap), or say --unsandboxed if you trust them"
        )
    with contextlib.ExitStack() as stack:
        source = stack.enter_context(file_with(program.encode("utf-8", "surrogatepass")))
        given = stack.enter_context(file_with(test_input.encode("utf-8", "surrogatepass")))
        reply_end, reply_start = os.pipe()
        replies = stack.enter_context(os.fdopen(reply_end, "rb", buffering=0))
        reply_writer = stack.enter_context(os.fdopen(reply_start, "wb", buffering=0))
        descriptors = [source.fileno(), reply_writer.fileno()]
        if bwrap is not None:
            prefix, more = _sandbox_command(bwrap, source, stack)
            descriptors += more
            runner, path, folder = "/runner.py", "/program.py", None
        else:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="stp-program-"))
            prefix, runner, path = [], str(_RUNNER), str(Path(folder) / "program.py")
            Path(path).write_text(program, encoding="utf-8", errors="surrogatepass")
        limits = [max(1, round(limit_seconds)), MEMORY_BYTES, FILE_BYTES, reply_writer.fileno()]
        command = [*prefix, _python(), "-I", "-B", runner, function or "stdin", path]
        command += [str(limit) for limit in limits]
        try:
            process = subprocess.Popen(
                command,
                stdin=given,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=descriptors,
                cwd=folder or "/",
                env={} if bwrap is not None else {"PATH": os.defpath, "LANG": "C.UTF-8"},
                start_new_session=True,
            )
        except OSError as error:
            raise CheckerError(f"cannot run {command[0]}: {error}") from error
        reply_writer.close()
        return _watch(process, replies, 2 * limit_seconds + _GRACE_SECONDS)


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
    bwrap: str, source: IO[bytes], stack: contextlib.ExitStack
) -> tuple[list[str], list[int]]:
    """Build bubblewrap's command line, and the descriptors that it needs."""
    command = [bwrap, "--unshare-all", "--unshare-user", "--die-with-parent", "--new-session"]
    command += ["--cap-drop", "ALL", "--uid", "65534", "--gid", "65534", "--hostname", "sandbox"]
    command += ["--clearenv", "--setenv", "PATH", "/usr/bin:/bin", "--setenv", "LANG", "C.UTF-8"]
    command += ["--setenv", "HOME", "/tmp", "--setenv", "PYTHONHASHSEED", "0"]
    for path in _interpreter_paths():
        command += ["--ro-bind", path, path]
    command += library_links()
    for device in ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom"):
        command += ["--dev-bind", device, device]
    command += ["--ro-bind", str(_RUNNER), "/runner.py"]
    command += ["--ro-bind-data", str(source.fileno()), "/program.py"]
    command += ["--size", str(FOLDER_BYTES), "--tmpfs", "/tmp", "--chdir", "/tmp"]
    command += ["--remount-ro", "/"]
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


def _interpreter_paths() -> list[str]:
    """Paths that an interpreter needs to start: its library and the system's."""
    prefix = Path(sys.base_prefix).resolve()
    paths = ["/usr/lib", "/usr/lib64", "/usr/lib32", _python()]
    paths += [str(prefix / "lib"), str(prefix / "lib64")]
    return list(dict.fromkeys(path for path in paths if Path(path).exists()))


def _watch(process: subprocess.Popen[bytes], replies: IO[bytes], wall_seconds: float) -> SandboxRun:
    """Read what a program writes until it ends or is over a limit; then nothing of it runs."""
    assert process.stdout is not None
    assert process.stderr is not None
    streams = (process.stdout, process.stderr, replies)
    received = [bytearray() for _ in streams]
    clock = _Clock(process.pid, wall_seconds)
    trouble: str | None = None
    total = 0
    with selectors.DefaultSelector() as selector:
        for number, stream in enumerate(streams):
            selector.register(stream, selectors.EVENT_READ, number)
        while selector.get_map() and trouble is None:
            events = selector.select(clock.remaining())
            if not events and not clock.extend():
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
                    clock.start()
            if total > OUTPUT_BYTES:
                trouble = "output limit"
    code = _end(process, clock.remaining() if trouble is None else 0.0)
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


class _Clock:
    """Wall-clock limit of one run, which starts anew when the program itself starts.

    On a busy machine a program gets more of it as long as it uses the processor: the limit on CPU
    time, which the kernel keeps, then ends it. One that only sleeps is over at once.
    """

    def __init__(self, process_id: int, wall_seconds: float) -> None:
        self._process_id = process_id
        self._wall_seconds = wall_seconds
        self._deadline = time.monotonic() + _START_SECONDS
        self._used_seconds = 0.0
        self._extensions = 0
        self._started = False

    def start(self) -> None:
        if not self._started:
            self._started = True
            self._deadline = time.monotonic() + self._wall_seconds

    def remaining(self) -> float:
        return max(0.0, self._deadline - time.monotonic())

    def extend(self) -> bool:
        """Grant more time to a program that is at work; False if it is not, or had enough."""
        if time.monotonic() < self._deadline:
            return True
        used = _cpu_seconds(self._process_id)
        busy = used - self._used_seconds > _BUSY_SHARE * self._wall_seconds
        self._used_seconds = used
        self._extensions += 1
        self._deadline = time.monotonic() + self._wall_seconds
        return busy and self._extensions <= _MAX_EXTENSIONS


def _cpu_seconds(ancestor: int) -> float:
    """CPU time of a process and its descendants so far; 0 where there is no /proc."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue  # it ended meanwhile
        process_id = int(entry.parent.name)
        parents[process_id], ticks[process_id] = int(fields[1]), int(fields[11]) + int(fields[12])
    family = {ancestor}
    while True:
        children = {child for child, parent in parents.items() if parent in family} - family
        if not children:
            break
        family |= children
    return sum(ticks.get(member, 0) for member in family) / os.sysconf("SC_CLK_TCK")


def _end(process: subprocess.Popen[bytes], patience_seconds: float) -> int | None:
    """Wait for a process that closed its pipes, or kill it; its exit status, None if killed."""
    code: int | None = None
    with contextlib.suppress(subprocess.TimeoutExpired):
        if patience_seconds > 0:
            code = process.wait(patience_seconds)
    # In the sandbox the end of its first process has ended all others. Without it, this does.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    if code is None:
        process.kill()
        process.wait()
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
