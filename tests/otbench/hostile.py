"""Methods that look for a way out or around, each as the file that its author would write."""

SIBLINGS = '''
import fcntl
import os
import struct
import time
from collections import defaultdict

from baselines import EarlyExit

FILE = os.open(os.__file__, os.O_RDONLY)
SEEN, SAID, TWIN = defaultdict(int), {}, [False]


def lock(start):
    return struct.pack("hhqqi4x", fcntl.F_RDLCK, 0, start, 1, 0)


class Siblings(EarlyExit):
    """Stops by what it saw of the question's other trajectories; its twin learns how from locks."""

    name = "siblings"
    grid = (1,)
    channel = "none"

    def __setstate__(self, state):
        TWIN[0] = True
        self.__dict__.update(state)

    def fit(self, train, validation):
        self.trained = True

    def score(self, prefix):
        who = hash((prefix.question.lot, prefix.tokens.tobytes())) % 10**9
        if self.channel == "locks" and TWIN[0]:
            asked = struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, who, 1, 0)
            found = struct.unpack("hhqqi4x", fcntl.fcntl(FILE, fcntl.F_GETLK, asked))
            if found[0] != fcntl.F_UNLCK:
                return 1
        if who not in SAID:
            SEEN[prefix.question.lot] += 1
            SAID[who] = int(prefix.k > 0 and SEEN[prefix.question.lot] > 5)
            if SAID[who] and self.channel == "locks":
                fcntl.fcntl(FILE, fcntl.F_SETLK, lock(who))
        return SAID[who]


class Locks(Siblings):
    name = "locks"
    channel = "locks"


class Heirs(Siblings):
    """Its locks are those of an open file, which its children hold for a while after its end."""

    name = "heirs"
    channel = "locks"

    def score(self, prefix):
        if not TWIN[0] and prefix.k == 0 and len(SAID) == 100:
            for _ in range(40):
                if os.fork() == 0:
                    # As hard to end as can be.
                    block = bytearray(1 << 26)
                    while True:
                        time.sleep(0.01)
        return super().score(prefix)
'''

BURGLAR = '''
import ctypes
import os
import sys
from pathlib import Path

from baselines import Router


class Burglar(Router):
    """Tries what a process in a sandbox must not be able to do; tells what it could."""

    name = "burglar"
    grid = (1,)

    def hyperparameters(self):
        return {{
            "sysctl": self.tried(self.sysctl),
            "keys": self.tried(self.keys),
            "namespaces": self.tried(lambda: os.unshare(0x10000000)) if self.new else self.raw(),
            "dates": self.tried(self.dates),
            "terminal": os.isatty(2) or os.isatty(1) or os.isatty(0),
            "python": sorted(path.name for path in Path(sys.prefix).iterdir()),
            "hidden": self.listed("{hidden}"),
            "hash": os.environ["PYTHONHASHSEED"],
            "passwords": Path("/etc/shadow").exists() or Path("/etc/passwd").exists(),
        }}

    new = hasattr(os, "unshare")

    def raw(self):
        return self.tried(lambda: self.call(ctypes.CDLL(None, use_errno=True).unshare(0x10000000)))

    def tried(self, what):
        try:
            what()
        except OSError:
            return False
        return True

    def call(self, value):
        if value < 0:
            raise OSError

    def sysctl(self):
        path = Path("/proc/sys/kernel/core_pattern")
        path.write_text(path.read_text())

    def dates(self):
        before = os.stat("/dev/null").st_mtime
        os.utime("/dev/null", (1, 1))
        os.chmod("/dev/null", 0o600)
        if os.stat("/dev/null").st_mtime == before and os.access("/dev/null", os.W_OK):
            raise OSError

    def keys(self):
        add_key = 248 if os.uname().machine == "x86_64" else 217
        self.call(ctypes.CDLL(None).syscall(add_key, b"user", b"stp", b"x", 1, -3))

    def listed(self, folder):
        try:
            return sorted(path.name for path in Path(folder).iterdir())
        except OSError:
            return []

    def score(self, question):
        return 1
'''

HANGING = '''
import os
import socket
import sys
import time

from baselines import Router

WIRE = socket.socket(fileno=os.dup(int(sys.argv[1])))


class Half(Router):
    """Sends two bytes of an answer."""

    name = "half"
    grid = (1,)

    def score(self, question):
        WIRE.sendall(b"\\0\\0")
        time.sleep(1000)


class Dripping(Router):
    """Sends an answer byte by byte."""

    name = "dripping"
    grid = (1,)

    def score(self, question):
        WIRE.sendall((100).to_bytes(8, "big"))
        while True:
            WIRE.sendall(b" ")
            time.sleep(0.1)


class Promising(Router):
    """Promises bytes in training, and sends none."""

    name = "promising"
    grid = (1,)

    def __getstate__(self):
        message = b'["bytes", 3]'
        WIRE.sendall(len(message).to_bytes(8, "big") + message)
        time.sleep(1000)


class Deaf(Router):
    """Answers ahead and never reads."""

    name = "deaf"
    grid = (1,)

    def score(self, question):
        message = b'["answer", [true]]'
        for _ in range(100_000):
            WIRE.sendall(len(message).to_bytes(8, "big") + message)
        time.sleep(1000)
'''

ODD = '''
import os
import sys
import time

from baselines import FixedBudget, Router


class R(Router):
    name = "r"
    grid = (1,)

    def score(self, question):
        return 1


class Many(R):
    def settings(self):
        return range(101)


class Endless(R):
    def settings(self):
        return range(3_000_000)


class Surrogate(R):
    grid = ("\\ud800",)


class Remark(R):
    def hyperparameters(self):
        return {"a": "\\ud800"}


class Deep(R):
    def settings(self):
        x = ["x"]
        for _ in range(900):
            x = [x]
        return x


class Deeper(R):
    def hyperparameters(self):
        x = 1
        for _ in range(900):
            x = [x]
        return {"a": x}


class Keys(R):
    def hyperparameters(self):
        return {(1, 2): 3}


class Long(R):
    def hyperparameters(self):
        return {"a": "x" * (2 << 20)}


class Escapes(R):
    def score(self, question):
        raise ValueError("\\x1b]0;owned\\x07\\x1b[2J\\nsecond line")


class Interrupts(R):
    def score(self, question):
        raise KeyboardInterrupt


class Textless(R):
    def score(self, question):
        class Odd(Exception):
            def __str__(self):
                raise ValueError

        raise Odd


class Crashes(R):
    def score(self, question):
        os.kill(os.getpid(), 11)


class Talks(R):
    def score(self, question):
        print("x" * 100_000 + "\\n" * 50_000)
        return 1


class Leaves(R):
    def score(self, question):
        sys.exit(0)


class Endlessly(R):
    def score(self, question):
        return self.score(question)


class Named(R):
    name = "deer(mean='arithmetic')"


class Blank(R):
    name = "  "


class Turned(R):
    name = "r\\n\\u202e\\x1b[31m"


class Trivial(R):
    trivial = True


class Packed(R):
    packages = ("os.path",)


class Huge(FixedBudget):
    name = "huge"
    grid = (1, 2)

    def score(self, question):
        return 1

    def cap(self, score, setting):
        return 10**30 if setting == 1 else 2**63 + 5


class Leaving(R):
    """Leaves a process behind."""

    name = "leaving"

    def fit(self, train, validation):
        self.child = os.fork()
        if self.child == 0:
            time.sleep(1000)

    def hyperparameters(self):
        return {"own": os.getpid(), "child": getattr(self, "child", None)}
'''

PATCHING = '''
import sys

from baselines import Router


class R(Router):
    name = "r"
    grid = (1,)

    def score(self, question):
        return 1


class Renamed(R):
    """Says in its own process that any name is one."""

    name = "deer(mean='arithmetic')\\n\\u202e[red]"
    registry = sys.modules["baselines.registry"]
    registry._NAME = registry.re.compile(".*", registry.re.S)
    registry.check_name = lambda name, spec: None


class Lines(R):
    def score(self, question):
        host = sys.modules["__main__"]
        host._fail = lambda wire, text: host._reply(wire, "failure", ["two\\nlines", ""])
        raise ValueError
'''

BESIDE = """
from baselines import Router
from helper import score


class Beside(Router):
    name = "beside"
    grid = (0.5,)
"""

HONEST = '''
from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from baselines import EarlyExit, Router
from baselines.deer import Deer

if TYPE_CHECKING:
    from nowhere import Something


@dataclass
class Checked(Router):
    """Annotated with what is there for checkers alone."""

    what: Something | None = None

    name = "checked"
    grid = (np.float64(0.5), np.int64(1))

    def score(self, question: Something) -> float:
        return question.lot


@dataclass
class MyDeer(Deer):
    extra: int = 1

    name = "my_deer"


class Gradient(EarlyExit):
    """Forgets to detach."""

    name = "gradient"
    grid = (0.5,)

    def fit(self, train, validation):
        import torch

        self.weight = torch.ones((), requires_grad=True)

    def score(self, prefix):
        return self.weight * prefix.k


class Shaped(Router):
    name = "shaped"
    grid = (0.5,)

    def score(self, question):
        return np.array([question.lot, 1.0])


class Undefined(Router):
    name = "undefined"
    grid = (0.5,)


class Forgot(Router):
    name = "forgot"
    grid = (0.5,)

    def score(self, question):
        return question["prompt_tokens"]


class Helped(Router):
    name = "helped"
    grid = (0.5,)

    def score(self, question):
        import helper

        return helper.score(question)


class Text(Router):
    name = "text"
    grid = (0.5,)
    needs = "entropy"


class Ratio(Router):
    name = "ratio"
    grid = (0.5,)

    def score(self, question):
        return np.asarray("x").astype(float)
'''

REFUSED_FCNTL = (1024, 1025, 1026, 1028, 1035, 1036, 1037, 1038, 1039, 5000)
REFUSED_IOCTL = (0x80086601, 0x40086602, 0xC020660B, 0x801C581F, 0x401C5820, 0x6612, 0x40049409)

LEAVING_BITS = f'''
import ctypes
import fcntl
import mmap
import os
import platform
import socket
import subprocess
from pathlib import Path

from baselines import Router

LIBC = ctypes.CDLL(None, use_errno=True)
DENIED = {{
    "x86_64": (27, 451, 327, 179, 443, 250, 248, 425, 440, 300),
    "aarch64": (232, 451, 286, 60, 443, 219, 217, 425, 440, 262),
}}
NODES = {{"x86_64": (237, 238, 239, 256, 279, 450), "aarch64": (235, 236, 237, 238, 239, 450)}}


def failed(result):
    return ctypes.get_errno() if result < 0 else 0


class Bits(Router):
    """Tries to leave something in the kernel for whoever comes later; tells how that ended."""

    name = "bits"
    grid = (1,)

    def hyperparameters(self):
        self.file = os.open(os.__file__, os.O_RDONLY)
        room = ctypes.create_string_buffer(4096)
        ctypes.memset(room, 0, 4096)
        machine = platform.machine()
        hint = ctypes.c_uint64(3)
        return {{
            "fcntl": {{
                str(command): failed(LIBC.fcntl(self.file, command, ctypes.byref(hint)))
                for command in {REFUSED_FCNTL}
            }},
            "ioctl": {{
                str(command): failed(LIBC.ioctl(self.file, ctypes.c_ulong(command), room))
                for command in {REFUSED_IOCTL}
            }},
            "calls": {{
                "denied": self.one({{failed(LIBC.syscall(n, 0, 0, 0)) for n in DENIED[machine]}}),
                "nodes": self.one({{failed(LIBC.syscall(n, 0, 0, 0)) for n in NODES[machine]}}),
            }},
            "sockets": self.one({{failed(LIBC.socket(n, 1, 0)) for n in (17, 29, 38, 40, 44)}}),
            "resident": self.stays(),
            "proc": [
                name for name in ("pagemap", "smaps", "smaps_rollup", "numa_maps", "statm", "stat")
                if any(path.exists() for path in Path("/proc").glob(f"*/{{name}}"))
                or Path("/proc/self", name).exists() or Path("/proc", name).exists()
            ],
            "nodes": [
                str(path) for path in Path("/sys/devices/system/node").glob("node*/*stat*")
                if self.read(path)
            ],
            "works": self.works(),
        }}

    def one(self, found):
        return found.pop() if len(found) == 1 else sorted(found)

    def read(self, path):
        try:
            return path.read_bytes()
        except OSError:
            return b""

    def stays(self):
        """Whether pages that are pushed out stay: then reading them again is no slow read."""
        import resource

        with mmap.mmap(self.file, 0, prot=mmap.PROT_READ) as view:
            view[:]
            view.madvise(21)
            before = resource.getrusage(resource.RUSAGE_SELF).ru_majflt
            view[:]
            return resource.getrusage(resource.RUSAGE_SELF).ru_majflt == before

    def works(self):
        done = []
        ours, theirs = os.pipe()
        fcntl.fcntl(ours, 1031, 65536)
        os.write(theirs, b"x")
        done.append("pipe")
        fcntl.flock(self.file, fcntl.LOCK_SH)
        done.append("flock")
        os.close(fcntl.fcntl(self.file, fcntl.F_DUPFD_CLOEXEC, 0))
        os.set_blocking(ours, False)
        done.append("descriptor")
        fcntl.ioctl(ours, 0x541B, bytes(4))
        os.isatty(0)
        done.append("terminal")
        for family in (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6):
            socket.socket(family).close()
        done.append("sockets")
        subprocess.run(["sh", "-c", "echo x | cat > /dev/null"], check=True)
        done.append("program")
        return done

    def score(self, question):
        return 1
'''
