"""The process in which math-verify runs, so that it can be killed.

Reads one JSON line per job from standard input, ``{"gold": str, "answer": str, "seconds": float}``,
and writes one line per verdict to standard output, ``{"equal": bool, "seconds": float}``: what the
job may use of CPU time, and what it used. It first writes ``{"ready": true}``.
math-verify's own time limits work by signals and are switched off: this process is limited by the
kernel (CPU seconds, memory) and killed by its owner (wall time). See ``symbolic.SymbolicWorker``.
"""

import json
import logging
import os
import resource
import signal
import sys
import time


def _limit_cpu(seconds: float) -> None:
    """Let the kernel end this process by a signal once it has used so much CPU time."""
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, seconds)


def main() -> None:
    """Serve jobs until standard input ends. Argument: memory in bytes."""
    memory_bytes = int(sys.argv[1])
    # What the libraries print must not reach the protocol's pipe.
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    logging.disable(logging.CRITICAL)

    from math_verify import LatexExtractionConfig, parse, verify

    config = [LatexExtractionConfig(boxed_match_priority=0)]

    def read(text: str) -> list[object]:
        return list(parse(rf"$\boxed{{{text}}}$", config, parsing_timeout=None))

    read("1+x")  # the first parse builds the grammar's tables; it belongs to the start
    if memory_bytes:
        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    replies.write('{"ready": true}\n')
    replies.flush()
    for line in sys.stdin:
        job = json.loads(line)
        started = time.process_time()
        _limit_cpu(job["seconds"])
        try:
            equal = bool(verify(read(job["gold"]), read(job["answer"]), timeout_seconds=None))
        except MemoryError:
            os._exit(1)  # out of its limit, which is trouble and no finding on this pair
        except Exception:
            # Whatever the library raises on a pair is no equality that it could show.
            logging.getLogger(__name__).exception("math-verify failed on a pair")
            equal = False
        _limit_cpu(0)
        used = time.process_time() - started
        replies.write(json.dumps({"equal": equal, "seconds": used}) + "\n")
        replies.flush()


if __name__ == "__main__":
    main()
