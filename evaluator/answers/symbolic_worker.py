"""The process in which math-verify runs, so that it can be killed.

Reads one JSON line per job from standard input, ``{"gold": str, "answer": str}``, and writes one
line per verdict to standard output, ``{"equal": bool}``. It first writes ``{"ready": true}``.
math-verify's own time limits work by signals and are switched off: this process is limited by the
kernel (CPU seconds, memory) and killed by its owner (wall time). See ``symbolic.SymbolicWorker``.
"""

import json
import logging
import os
import resource
import sys


def _limit_cpu(seconds: int) -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    soft = int(used.ru_utime + used.ru_stime) + 1 + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.RLIM_INFINITY))


def main() -> None:
    """Serve jobs until standard input ends. Arguments: CPU seconds per job, memory in bytes."""
    cpu_seconds, memory_bytes = int(sys.argv[1]), int(sys.argv[2])
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
        _limit_cpu(cpu_seconds)
        equal = bool(verify(read(job["gold"]), read(job["answer"]), timeout_seconds=None))
        replies.write(json.dumps({"equal": equal}) + "\n")
        replies.flush()


if __name__ == "__main__":
    main()
