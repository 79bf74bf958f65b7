"""What runs inside the sandbox: sets limits, then runs one program on one test.

Standard library only; this file is shown to the sandbox alone, the package is not there. Arguments:
mode ("stdin" or the name of a function), path of the program, CPU seconds, memory bytes, file
bytes, descriptor for replies. The test's input is standard input. The expected output is never
here: the grader compares outside.

Replies: one byte ``s`` before the program starts, and for a function its value, as `spelled`.
"""

import contextlib
import json
import numbers
import os
import resource
import site
import sys
from collections.abc import Callable
from typing import Any

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
MOST_DIGITS = 50_000
"""Of an integer as text, as in LiveCodeBench's evaluator; Python's own limit is 4,300."""
_SHORT = 10**18


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


def spelled(value: object) -> str:
    r"""Spell a value such that two values are equal in Python where their spellings are.

    So the grader compares texts, and builds nothing of what a program sends. A tuple counts as a
    list at the top only, as in LiveCodeBench. What equals no value of JSON (NaN, a set, a tuple
    inside) has a spelling that no value of JSON has.

    Examples
    --------
    >>> spelled((1, 2.0, 0.5, True, "é")), spelled({"b": None, "a": [1]})
    ('[1,2,0.5,1,"\\u00e9"]', '{"a":[1],"b":null}')
    >>> spelled({1: 2}), spelled([(1,), {1}])
    ('{1:2}', '[(1),<set>]')
    """
    parts: list[str] = []
    _spell(list(value) if isinstance(value, tuple) else value, parts.append)
    return "".join(parts)


def _spell(value: object, write: Callable[[str], None]) -> None:
    if value is None:
        write("null")
    elif isinstance(value, str):
        write(json.dumps(value))
    elif isinstance(value, list | tuple):
        write("[" if isinstance(value, list) else "(")
        for place, item in enumerate(value):
            if place:
                write(",")
            _spell(item, write)
        write("]" if isinstance(value, list) else ")")
    elif isinstance(value, dict):
        write("{")
        spelt = sorted(
            ((spelled([key])[1:-1], item) for key, item in value.items()), key=lambda pair: pair[0]
        )
        for place, (key, item) in enumerate(spelt):
            write(f",{key}:" if place else f"{key}:")
            _spell(item, write)
        write("}")
    else:
        write(_number(value) if isinstance(value, numbers.Number) else f"<{type(value).__name__}>")


def _number(value: Any) -> str:
    """Spell a number: 1, 1.0, True and Fraction(2, 2) are one."""
    if type(value) is int and -_SHORT < value < _SHORT:
        return str(value)
    if isinstance(value, float) and not value.is_integer():
        return float.__repr__(value)
    if isinstance(value, complex) and value.imag == 0:
        value = value.real
    if not hasattr(value, "as_integer_ratio"):
        return f"<{type(value).__name__}>"
    above, below = value.as_integer_ratio()
    if below == 1:
        # Hexadecimal has no limit of digits.
        return str(int(above)) if -_SHORT < above < _SHORT else hex(above)
    near = above / below
    return repr(near) if near.as_integer_ratio() == (above, below) else f"{above}/{below}"


def main() -> None:
    """Run one program on one test."""
    mode, path = sys.argv[1], sys.argv[2]
    cpu_seconds, memory_bytes, file_bytes, reply_descriptor = map(int, sys.argv[3:7])
    sys.set_int_max_str_digits(MOST_DIGITS)
    arguments: list[object] = []
    if mode != "stdin":
        arguments = [json.loads(line) for line in sys.stdin.read().split("\n") if line.strip()]
    with open(path, encoding="utf-8", errors="surrogatepass") as file:  # noqa: PTH123 (light start)
        source = file.read()
    sys.argv = [path]
    site.setquit()  # exit and quit, which come with the packages that are hidden here
    namespace: dict[str, object] = {}
    exec(PRELUDE, namespace)
    ready_made = namespace.get(mode)
    namespace["__name__"] = "__main__" if mode == "stdin" else "solution"
    set_limits(cpu_seconds, memory_bytes, file_bytes)
    os.write(reply_descriptor, b"s")
    if mode == "stdin":
        os.close(reply_descriptor)
        # It may end itself with whatever status: what was printed is judged.
        with contextlib.suppress(SystemExit):
            exec(compile(source, path, "exec"), namespace)
        return
    exec(compile(source, path, "exec"), namespace)
    owner = namespace.get("Solution")
    function = getattr(owner(), mode) if isinstance(owner, type) else namespace.get(mode)
    if function is None or function is ready_made:
        raise NameError(f"the program defines no function {mode}")
    value = function(*arguments)  # type: ignore[operator]
    reply = spelled(value).encode()
    while reply:
        reply = reply[os.write(reply_descriptor, reply) :]


if __name__ == "__main__":
    main()
