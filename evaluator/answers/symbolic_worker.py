"""The process in which math-verify or Reasoning Gym's verifiers run, so that it can be killed.

Reads one JSON line per job from standard input, ``{"seconds": float}`` with ``gold`` and ``answer``
(math-verify) or ``reference`` and ``answer`` (Reasoning Gym), and writes one line per job to
standard output, ``{"equal": bool, "seconds": float}`` or ``{"credit": float, "seconds": float}``:
what was found, and the CPU time that it used of what it may use; or ``failed`` with an error's
name. It first writes ``{"ready": true}``. math-verify's own time limits work by signals and are
switched off: this process is limited by the kernel (CPU seconds, memory) and killed by its owner
(wall time). See ``symbolic.SymbolicWorker``.
"""

import functools
import json
import logging
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from typing import Any


def _limit_cpu(seconds: float) -> None:
    """Let the kernel end this process by a signal once it has used so much CPU time."""
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, seconds)


def _equality() -> Callable[[dict[str, Any]], bool]:
    """Return what compares ``gold`` with ``answer``."""
    from math_verify import LatexExtractionConfig, parse, verify

    config = [LatexExtractionConfig(boxed_match_priority=0)]

    def read(text: str) -> list[object]:
        return list(parse(rf"$\boxed{{{text}}}$", config, parsing_timeout=None))

    read("1+x")  # the first parse builds the grammar's tables; it belongs to the start

    def equal(job: dict[str, Any]) -> bool:
        try:
            return bool(verify(read(job["gold"]), read(job["answer"]), timeout_seconds=None))
        except MemoryError:
            raise
        except Exception:
            # Whatever the library raises on a pair is no equality that it could show.
            logging.getLogger(__name__).exception("math-verify failed on a pair")
            return False

    return equal


def _credit() -> Callable[[dict[str, Any]], float]:
    """Return what gives ``answer`` the credit of the task that ``reference`` is of."""
    from data.question import Question
    from data.reasoning_gym_tasks import ANSWER_KIND, gym_module
    from evaluator.answers.reasoning_gym import GymJudge

    gym_module()

    @functools.lru_cache(maxsize=64)
    def judge(reference: str) -> GymJudge:
        return GymJudge(Question(id="", prompt="", reference=reference, answer_kind=ANSWER_KIND))

    return lambda job: judge(job["reference"]).credit(job["answer"])


def serve(
    work: str,
    start: Callable[[], Callable[[dict[str, Any]], object]],
    memory_bytes: int,
    failure: Callable[[Exception], str] = lambda error: type(error).__name__,
) -> None:
    """Serve jobs until standard input ends.

    Parameters
    ----------
    work
        The key of what was found.
    start
        Imports what is needed, and returns what does a job.
    memory_bytes
        What this process may use from then on.
    failure
        What is told of an error that was raised.
    """
    # What the libraries print must not reach the protocol's pipe.
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    logging.disable(logging.CRITICAL)
    answer = start()
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    replies.write('{"ready": true}\n')
    replies.flush()
    for line in sys.stdin:
        job = json.loads(line)
        started = time.process_time()
        _limit_cpu(job["seconds"])
        reply: dict[str, object] = {}
        try:
            reply[work] = answer(job)
        except MemoryError:
            os._exit(1)  # out of its limit, which is trouble and no finding on this answer
        except Exception as error:  # noqa: BLE001 (raised again by the owner)
            reply["failed"] = failure(error)
        _limit_cpu(0)
        reply["seconds"] = time.process_time() - started
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


if __name__ == "__main__":
    serve(sys.argv[1], {"equal": _equality, "credit": _credit}[sys.argv[1]], int(sys.argv[2]))
