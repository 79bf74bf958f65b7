"""A system call filter for untrusted programs: no new processes, no new kinds of memory.

A program keeps threads, files in its own folder, and its pipes. What it loses fails with EPERM, as
LiveCodeBench's own guard makes ``os.fork`` and ``subprocess`` fail; changes of modes, owners and
dates succeed without effect. This bounds what a fork bomb
can do even for a grader that runs as root, for whom RLIMIT_NPROC does not count.
"""

import errno
import platform
import struct

_LOAD, _JUMP_EQUAL, _JUMP_GREATER_EQUAL, _JUMP_SET, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER_OFFSET, _ARCHITECTURE_OFFSET, _FIRST_ARGUMENT_OFFSET = 0, 4, 16
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
        "personality": 135, "mincore": 27, "preadv2": 327, "cachestat": 451,
    },
    "aarch64": {
        "ptrace": 117, "shmget": 194, "semget": 190, "msgget": 186, "mount": 40, "umount2": 39,
        "unshare": 97, "setns": 268, "keyctl": 219, "add_key": 217, "request_key": 218,
        "bpf": 280, "perf_event_open": 241, "userfaultfd": 282, "memfd_create": 279,
        "memfd_secret": 447, "process_vm_readv": 270, "process_vm_writev": 271,
        "io_uring_setup": 425, "io_uring_enter": 426, "pivot_root": 41, "chroot": 51,
        "socket": 198, "socketpair": 199, "mq_open": 180, "open_by_handle_at": 265,
        "personality": 92, "mincore": 232, "preadv2": 286, "cachestat": 451,
    },
}  # fmt: skip
_PRETENDED: dict[str, tuple[int, ...]] = {
    "x86_64": (
        *(90, 91, 92, 93, 94, 132, 187, 188, 189, 190, 197, 198, 199, 221, 235, 260, 261, 268, 280),
    ),
    "aarch64": (5, 6, 7, 14, 15, 16, 52, 53, 54, 55, 88, 213, 223),
}
_PRETENDED_EVERYWHERE = (452, 463, 466)
"""chmod, chown, utime, setxattr and their kind: devices are the host's, and so are their dates; and
fadvise and readahead: so is the memory in which files are kept."""
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
