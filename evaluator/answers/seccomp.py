"""A system call filter for untrusted programs: no new processes, no new kinds of memory.

A program keeps threads, files in its own folder, and its pipes. What it loses fails with EPERM, as
LiveCodeBench's own guard makes ``os.fork`` and ``subprocess`` fail; changes of modes, owners and
dates succeed without effect. This bounds what a fork bomb
can do even for a grader that runs as root, for whom RLIMIT_NPROC does not count.

Nor does a program leave anything in the kernel for one that runs after it. A file that it may only
read has an inode that outlives it: hints of `fcntl`, flags and caches of `ioctl`, and which of its
pages are in memory, and on which node of it. So of calls that take a command, those are allowed
that are known to end with the process.
"""

import errno
import platform
import struct
from collections.abc import Sequence

_LOAD, _JUMP_EQUAL, _JUMP_GREATER_EQUAL, _JUMP_SET, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_AND = 0x54
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER_OFFSET, _ARCHITECTURE_OFFSET, _FIRST_ARGUMENT_OFFSET = 0, 4, 16
_SECOND_ARGUMENT_OFFSET, _THIRD_ARGUMENT_OFFSET = 24, 32
_CLONE_THREAD = 0x00010000
_CLONE_NAMESPACES = 0x7E020000

_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_CLONE = {"x86_64": 56, "aarch64": 220}
_CLONE3 = 435
_DENIED: dict[str, dict[str, int]] = {
    "x86_64": {
        "fork": 57, "vfork": 58, "ptrace": 101, "shmget": 29, "semget": 64, "msgget": 68,
        "mount": 165, "umount2": 166, "unshare": 272, "setns": 308, "keyctl": 250, "add_key": 248,
        "request_key": 249, "bpf": 321, "perf_event_open": 298, "userfaultfd": 323,
        "memfd_create": 319, "memfd_secret": 447, "process_vm_readv": 310,
        "process_vm_writev": 311, "io_uring_setup": 425, "io_uring_enter": 426, "pivot_root": 155,
        "chroot": 161, "socket": 41, "socketpair": 53, "mq_open": 240, "open_by_handle_at": 304,
        "personality": 135, "mincore": 27, "preadv2": 327, "cachestat": 451, "quotactl": 179,
        "quotactl_fd": 443, "process_madvise": 440, "fanotify_init": 300,
    },
    "aarch64": {
        "ptrace": 117, "shmget": 194, "semget": 190, "msgget": 186, "mount": 40, "umount2": 39,
        "unshare": 97, "setns": 268, "keyctl": 219, "add_key": 217, "request_key": 218,
        "bpf": 280, "perf_event_open": 241, "userfaultfd": 282, "memfd_create": 279,
        "memfd_secret": 447, "process_vm_readv": 270, "process_vm_writev": 271,
        "io_uring_setup": 425, "io_uring_enter": 426, "pivot_root": 41, "chroot": 51,
        "socket": 198, "socketpair": 199, "mq_open": 180, "open_by_handle_at": 265,
        "personality": 92, "mincore": 232, "preadv2": 286, "cachestat": 451, "quotactl": 60,
        "quotactl_fd": 443, "process_madvise": 440, "fanotify_init": 262,
    },
}  # fmt: skip
_PRETENDED: dict[str, tuple[int, ...]] = {
    "x86_64": (
        *(90, 91, 92, 93, 94, 132, 187, 188, 189, 190, 197, 198, 199, 221, 235, 260, 261, 268, 280),
    ),
    "aarch64": (5, 6, 7, 14, 15, 16, 52, 53, 54, 55, 88, 213, 223),
}
_PRETENDED_EVERYWHERE = (452, 463, 466, 469)
"""chmod, chown, utime, setxattr and their kind: devices are the host's, and so are their dates; and
fadvise and readahead: so is the memory in which files are kept."""
_MISSING: dict[str, tuple[int, ...]] = {
    "x86_64": (237, 238, 239, 256, 279, 450),
    "aarch64": (235, 236, 237, 238, 239, 450),
}
"""mbind, the memory policies, migrate_pages, move_pages: to libraries a machine of one node. They
tell, and set, on which node the pages of a file lie."""
_COMMANDS = {"x86_64": {"fcntl": 72, "ioctl": 16, "madvise": 28, "socket": 41},
             "aarch64": {"fcntl": 25, "ioctl": 29, "madvise": 233, "socket": 198}}  # fmt: skip
_FCNTL = (*range(12), 15, 16, 36, 37, 38, 1027, *range(1030, 1035))
"""Descriptors, status flags, locks, owners, pipes, seals. Not leases (1024), notes of a folder's
changes (1026) and the hints of a file's use (1035 to 1038), which stay with the file."""
_IOCTL_TYPES = (0x00, 0x46, 0x4B, 0x54, 0x64)
"""Terminals and pipes, and GPUs. Not those of files and file systems (f, X, v, 0x94)."""
_MADVISE_PRETENDED = (3, 14, 20, 21, 25)
"""WILLNEED, HUGEPAGE, COLD, PAGEOUT, COLLAPSE: they read a file into memory, push it out of it, or
make large pages of it."""
_SOCKETS = (1, 2, 10, 16)
"""UNIX, INET, INET6 and NETLINK: what a network namespace holds. VSOCK and others go around it."""
_OF_PROCESSES = frozenset(
    (
        "fork",
        "vfork",
        "shmget",
        "semget",
        "msgget",
        "memfd_create",
        "socket",
        "socketpair",
        "mq_open",
    )
)
"""What several processes of one program start and talk by."""


def filter_program(machine: str | None = None, *, processes: bool = False) -> bytes | None:
    """Assemble the filter for ``bwrap --seccomp``.

    Parameters
    ----------
    machine
        As in ``platform.machine()``, the default.
    processes
        Allow new processes, and what they talk by; not new namespaces.

    Returns
    -------
    bytes or None
        A classic BPF program; None for a machine whose system calls are not listed here.
    """
    machine = machine or platform.machine()
    if machine not in _ARCHITECTURES:
        return None
    deny = _ERRNO | errno.EPERM
    program = [
        (_LOAD, 0, 0, _ARCHITECTURE_OFFSET),
        (_JUMP_EQUAL, 1, 0, _ARCHITECTURES[machine]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER_OFFSET),
    ]
    if machine == "x86_64":  # the x32 numbers would go around the list
        program += [(_JUMP_GREATER_EQUAL, 0, 1, 0x40000000), (_RETURN, 0, 0, deny)]
    denied = _DENIED[machine]
    for number in (denied[name] for name in denied if not (processes and name in _OF_PROCESSES)):
        program += [(_JUMP_EQUAL, 0, 1, number), (_RETURN, 0, 0, deny)]
    for number in (*_PRETENDED[machine], *_PRETENDED_EVERYWHERE):
        program += [(_JUMP_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ERRNO)]
    for number in _MISSING[machine]:
        program += [(_JUMP_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ERRNO | errno.ENOSYS)]
    program += _commands(_COMMANDS[machine])
    # clone3 hides its flags in memory; without it the C library falls back to clone.
    program += [(_JUMP_EQUAL, 0, 1, _CLONE3), (_RETURN, 0, 0, _ERRNO | errno.ENOSYS)]
    flags = (_JUMP_SET, 0, 1, _CLONE_NAMESPACES) if processes else (_JUMP_SET, 1, 0, _CLONE_THREAD)
    program += [
        (_JUMP_EQUAL, 0, 3, _CLONE[machine]),
        (_LOAD, 0, 0, _FIRST_ARGUMENT_OFFSET),
        flags,
        (_RETURN, 0, 0, deny),
        (_RETURN, 0, 0, _ALLOW),
    ]
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in program)


def _commands(numbers: dict[str, int]) -> list[tuple[int, int, int, int]]:
    """Assemble the rules for calls that are told what to do by an argument."""
    invalid, no_such = _ERRNO | errno.EINVAL, _ERRNO | errno.ENOTTY
    types = [kind << 8 for kind in _IOCTL_TYPES]
    kinds, second = _ERRNO | errno.EAFNOSUPPORT, (_LOAD, 0, 0, _SECOND_ARGUMENT_OFFSET)
    return [
        *_by_value(numbers["fcntl"], [second], _FCNTL, _ALLOW, invalid),
        *_by_value(numbers["ioctl"], [second, (_AND, 0, 0, 0xFF00)], types, _ALLOW, no_such),
        *_by_value(
            numbers["madvise"],
            [(_LOAD, 0, 0, _THIRD_ARGUMENT_OFFSET)],
            _MADVISE_PRETENDED,
            _ERRNO,
            _ALLOW,
        ),
        *_by_value(
            numbers["socket"],
            [(_LOAD, 0, 0, _FIRST_ARGUMENT_OFFSET)],
            _SOCKETS,
            _ALLOW,
            kinds,
        ),
    ]


def _by_value(
    number: int,
    load: Sequence[tuple[int, int, int, int]],
    values: Sequence[int],
    listed: int,
    other: int,
) -> list[tuple[int, int, int, int]]:
    """Assemble the rule of one call: one end where a value is in a list, another where not."""
    compared = [(_JUMP_EQUAL, len(values) - place, 0, value) for place, value in enumerate(values)]
    decided = [*load, *compared, (_RETURN, 0, 0, other), (_RETURN, 0, 0, listed)]
    return [(_JUMP_EQUAL, 0, len(decided), number), *decided]
