"""What runs inside the sandbox: sets limits, then runs one program on one test.

Standard library only; this file is shown to the sandbox alone, the package is not there. Arguments:
mode ("stdin" or the name of a function), path of the program, CPU seconds, memory bytes, file
bytes, descriptor for replies. The test's input is standard input. The expected output is never
here: the grader compares outside.

Replies: one byte ``s`` before the program starts, and for a function the JSON text of its value.
"""

import json
import os
import resource
import sys

PRELUDE = """
from string import *
from re import *
from datetime import *
from collections import *
from heapq import *
from bisect import *
from copy import *
from math import *
from random import *
from statistics import *
from itertools import *
from functools import *
from operator import *
from io import *
from sys import *
from json import *
from builtins import *
from typing import *
import string, re, datetime, collections, heapq, bisect, copy, math, random, statistics
import itertools, functools, operator, io, sys, json
sys.setrecursionlimit(50000)
"""
"""Names that LiveCodeBench's evaluator puts before each program."""

MAX_OPEN_FILES = 64


def set_limits(cpu_seconds: int, memory_bytes: int, file_bytes: int) -> None:
    """Set this process's limits for good: a program cannot raise them again."""
    for name, soft, hard in (
        (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_CPU, cpu_seconds, cpu_seconds + 1),
        (resource.RLIMIT_AS, memory_bytes, memory_bytes),
        (resource.RLIMIT_FSIZE, file_bytes, file_bytes),
        (resource.RLIMIT_NOFILE, MAX_OPEN_FILES, MAX_OPEN_FILES),
    ):
        resource.setrlimit(name, (soft, hard))


def plain(value: object, *, top: bool = True) -> object:
    """Give a value for JSON. A tuple counts as a list at the top only, as in LiveCodeBench."""
    if isinstance(value, tuple):
        items = [plain(item, top=False) for item in value]
        return items if top else {"tuple": items}
    if isinstance(value, list):
        return [plain(item, top=False) for item in value]
    if isinstance(value, dict):
        return {key: plain(item, top=False) for key, item in value.items()}
    return value


def main() -> None:
    """Run one program on one test."""
    mode, path = sys.argv[1], sys.argv[2]
    cpu_seconds, memory_bytes, file_bytes, reply_descriptor = map(int, sys.argv[3:7])
    arguments: list[object] = []
    if mode != "stdin":
        arguments = [json.loads(line) for line in sys.stdin.read().split("\n") if line.strip()]
    with open(path, encoding="utf-8", errors="surrogatepass") as file:  # noqa: PTH123 (light start)
        source = file.read()
    sys.argv = [path]
    namespace: dict[str, object] = {}
    exec(PRELUDE, namespace)
    ready_made = namespace.get(mode)
    namespace["__name__"] = "__main__" if mode == "stdin" else "solution"
    set_limits(cpu_seconds, memory_bytes, file_bytes)
    os.write(reply_descriptor, b"s")
    if mode == "stdin":
        os.close(reply_descriptor)
        exec(compile(source, path, "exec"), namespace)
        return
    exec(compile(source, path, "exec"), namespace)
    owner = namespace.get("Solution")
    function = getattr(owner(), mode) if isinstance(owner, type) else namespace.get(mode)
    if function is None or function is ready_made:
        raise NameError(f"the program defines no function {mode}")
    value = function(*arguments)  # type: ignore[operator]
    reply = json.dumps(plain(value)).encode()
    while reply:
        reply = reply[os.write(reply_descriptor, reply) :]


if __name__ == "__main__":
    main()
