"""Symbolic equality by math-verify, and Reasoning Gym's verifiers, in workers that can be killed.

Chat templates run in such a worker too. Knows nothing of questions or responses. A pair on which a
worker hangs or dies costs that pair and nothing else: the worker is killed and the next pair gets a
new one.
"""

import contextlib
import json
import os
import queue
import select
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

from evaluator.answers.deadline import Deadline
from evaluator.answers.errors import CheckerError

START_SECONDS = 120.0
GRACE_SECONDS = 2.0
MEMORY_BYTES = 4 * 2**30
_PACKAGE_ROOT = Path(__file__).resolve().parents[2]


class SymbolicTimeoutError(Exception):
    """A pair ran out of its time or memory, or crashed its worker."""


class RuleFailedError(Exception):
    """What runs in the worker raised something that nobody expected."""


SymbolicWork = Literal["equal", "credit"]
"""What a worker does: math-verify's equality, or the credit of Reasoning Gym's verifiers."""


class SymbolicWorker:
    """One worker process, started when first needed.

    A process that had to be killed is started again at once, so that the next pair need not wait.

    Parameters
    ----------
    work
        What it does: its first argument, and the key of its replies.
    module
        What runs there, by `symbolic_worker.serve`.
    memory_bytes
        What it may use.
    """

    def __init__(
        self,
        work: str = "equal",
        *,
        module: str = "evaluator.answers.symbolic_worker",
        memory_bytes: int = MEMORY_BYTES,
    ) -> None:
        self._work = work
        self._module = module
        self._memory_bytes = memory_bytes
        self._process: subprocess.Popen[bytes] | None = None
        self._ready = False
        self._buffer = b""

    def equal(self, gold: str, answer: str, limit_seconds: float) -> tuple[bool, float]:
        """Ask math-verify whether two LaTeX expressions are equal.

        Parameters
        ----------
        gold, answer
            The expressions.
        limit_seconds
            CPU time for this pair. The wall-clock limit is twice as long and two seconds more;
            time in which the worker has to wait for a processor does not count (see `Deadline`),
            so that a busy machine does not turn a slow answer into a wrong one.

        Returns
        -------
        (bool, float)
            Whether they are equal, and the CPU time in seconds that it took.

        Raises
        ------
        SymbolicTimeoutError
            The worker ran out of its limits or died on this pair.
        CheckerError
            No worker could be started.
        """
        value, used_seconds = self.ask({"gold": gold, "answer": answer}, limit_seconds)
        return bool(value), used_seconds

    def ask(self, job: dict[str, Any], limit_seconds: float) -> tuple[Any, float]:
        """Have one job done; as `equal`.

        Raises
        ------
        RuleFailedError
            What does it raised.
        """
        process = self._started()
        line = json.dumps({**job, "seconds": limit_seconds}) + "\n"
        try:
            assert process.stdin is not None
            process.stdin.write(line.encode())
            process.stdin.flush()
            reply = self._read_line(2 * limit_seconds + GRACE_SECONDS)
        except OSError:
            reply = None
        if reply is None:
            self.kill()
            self._launch()
            raise SymbolicTimeoutError
        values = json.loads(reply)
        if "failed" in values:
            raise RuleFailedError(values["failed"])
        return values[self._work], float(values["seconds"])

    def kill(self) -> None:
        """Kill the process, if there is one. A later call of `equal` starts another."""
        if self._process is None:
            return
        process, self._process = self._process, None
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def _started(self) -> subprocess.Popen[bytes]:
        """Give a process that is ready for a pair."""
        process = self._process if self._process is not None else self._launch()
        if not self._ready:
            if self._read_line(START_SECONDS) is None:
                self.kill()
                command = shlex.join(self._command())
                raise CheckerError(f"a worker did not start: run '{command}' to see why")
            self._ready = True
        return process

    def _command(self) -> list[str]:
        words = ["-P", "-m", self._module, self._work, str(self._memory_bytes)]
        return [sys.executable, *words]

    def _launch(self) -> subprocess.Popen[bytes]:
        """Start a process without waiting until it is ready."""
        environment = dict(os.environ, PYTHONPATH=str(_PACKAGE_ROOT), OMP_NUM_THREADS="1")
        self._buffer = b""
        self._ready = False
        try:
            self._process = subprocess.Popen(
                self._command(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            raise CheckerError(f"cannot start a worker ({sys.executable}): {error}") from error
        return self._process

    def _read_line(self, limit_seconds: float) -> bytes | None:
        """Read one line of the worker; None if it ends, or if the wall time is over."""
        assert self._process is not None
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        deadline = Deadline(self._process.pid, limit_seconds)
        while b"\n" not in self._buffer:
            if select.select([descriptor], [], [], deadline.remaining())[0]:
                chunk = os.read(descriptor, 65536)
                if not chunk:
                    return None
                self._buffer += chunk
            # A reply that is whole counts: it may have lain there while this process had to wait.
            if b"\n" not in self._buffer and deadline.is_over():
                return None
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line


class SymbolicPool:
    """A fixed number of workers, borrowed one at a time; safe to use from several threads.

    Parameters
    ----------
    workers
        How many.
    limit_seconds
        CPU time for one answer, however many pairs it takes.
    work
        What the workers do.
    """

    def __init__(self, workers: int, limit_seconds: float, work: SymbolicWork = "equal") -> None:
        self.size = workers
        self._limit_seconds = limit_seconds
        self._all = [SymbolicWorker(work) for _ in range(workers)]
        self._idle: queue.LifoQueue[SymbolicWorker] = queue.LifoQueue()
        for worker in self._all:
            self._idle.put(worker)

    def for_one_answer(self) -> Callable[[str, str], bool]:
        """Give ``(gold, answer) -> bool`` for the pairs of one answer, which share its time.

        It raises as `SymbolicWorker.equal` does.
        """
        left_seconds = self._limit_seconds

        def equal(gold: str, answer: str) -> bool:
            nonlocal left_seconds
            if left_seconds <= 0:
                raise SymbolicTimeoutError
            with self._borrowed() as worker:
                same, used_seconds = worker.equal(gold, answer, left_seconds)
            left_seconds -= used_seconds
            return same

        return equal

    def credit(self, reference: str, answer: str) -> float:
        """Return the credit of an answer; raises as `SymbolicWorker.ask` does."""
        with self._borrowed() as worker:
            job = {"reference": reference, "answer": answer}
            return float(worker.ask(job, self._limit_seconds)[0])

    def close(self) -> None:
        """Kill all workers. The pool can be used again: it starts new ones."""
        for worker in self._all:
            worker.kill()

    @contextlib.contextmanager
    def _borrowed(self) -> Iterator[SymbolicWorker]:
        worker = self._idle.get()
        try:
            yield worker
        finally:
            self._idle.put(worker)
