"""The system-call filter: what a confined program may ask of the kernel.

An allow-list; any other call fails with EPERM, so that a program sees an ordinary error. A
call of another architecture (``int 0x80``, x32) kills the process, because its numbers mean
other things there. Not allowed, and what that stops: fork, vfork, execve (no second process,
so nothing to hunt afterwards), socket (no network, named or abstract sockets), ptrace,
process_vm_*, kill of others (no hand on another process), bpf, io_uring, memfd_create,
userfaultfd, perf_event_open, keyctl, mount, unshare, setns (odd corners of the kernel), chmod,
chown, utime, xattr, truncate (which Landlock does not govern, or not in every version), flock,
fcntl locks, mincore and fadvise (by which two programs could whisper). ``clone`` makes threads
only.

``mmap`` with PROT_EXEC stays: loading an extension module needs it. Machine code can call no
more of the kernel than Python code can.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .syscalls import ARCHITECTURES

_LOAD, _JUMP, _EQUAL, _GREATER_EQUAL, _AND, _RETURN = 0x20, 0x05, 0x15, 0x35, 0x54, 0x06
_ALLOW, _KILL = 0x7FFF0000, 0x80000000
_EPERM = 0x00050000 | errno.EPERM
_ENOSYS = 0x00050000 | errno.ENOSYS
_NUMBER, _ARCHITECTURE = 0, 4
_X32 = 0x40000000
_ALLOWED, _DENIED, _FOREIGN = "allowed", "denied", "foreign"  # what becomes of a call

_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 38, 22, 2

OWN_PID = -1
"""Stands in a rule for the pid of the process that installs the filter."""

_CLONE_THREAD = 0x00010000
_CLONE_NAMESPACES = 0x7E020080  # NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET, NEWTIME
_SOCK_FLAGS = 0x80800  # SOCK_CLOEXEC | SOCK_NONBLOCK
# Access modes of open with which Landlock asks for the right to write before a file is
# truncated. Its first two versions let O_TRUNC pass with O_RDONLY on a file that may be read,
# and with mode 3, which opens for neither reading nor writing, on any file at all.
_ACCESS_AND_TRUNCATE = 0x203  # O_ACCMODE | O_TRUNC
_OPENINGS = (0, 1, 2, 0x201, 0x202)


@dataclass(frozen=True)
class Check:
    """A condition on one argument: ``argument & mask`` is one of ``values``.

    Only the lower 32 bits are looked at: every argument checked here is an int or a pid_t, of
    which the kernel, too, takes no more.
    """

    argument: int
    values: tuple[int, ...]
    mask: int = 0xFFFFFFFF


# Calls that are allowed when all their checks hold; every other allowed call is free.
CHECKED: dict[str, tuple[Check, ...]] = {
    "clone": (Check(0, (_CLONE_THREAD,), _CLONE_THREAD | _CLONE_NAMESPACES),),
    "kill": (Check(0, (OWN_PID,)),),
    "tgkill": (Check(0, (OWN_PID,)),),
    "prlimit64": (Check(0, (0, OWN_PID)),),
    # DUPFD, GETFD, SETFD, GETFL, SETFL, DUPFD_CLOEXEC, GETPIPE_SZ, GET_SEALS: no locks.
    "fcntl": (Check(1, (0, 1, 2, 3, 4, 1030, 1032, 1034)),),
    # TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX: what file objects ask.
    "ioctl": (Check(1, (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)),),
    "open": (Check(1, _OPENINGS, _ACCESS_AND_TRUNCATE),),
    "openat": (Check(2, _OPENINGS, _ACCESS_AND_TRUNCATE),),
    # Connected stream pairs, which asyncio wakes itself by; a datagram pair could be pointed
    # at a socket with a name.
    "socketpair": (Check(0, (1,)), Check(1, (1,), 0xFFFFFFFF & ~_SOCK_FLAGS)),
    # GET_DUMPABLE, SET_NAME, GET_NAME, GET_SECCOMP, CAPBSET_READ, GET_TIMERSLACK,
    # GET_NO_NEW_PRIVS, SET_VMA (glibc names its heaps).
    "prctl": (Check(0, (3, 15, 16, 21, 23, 30, 39, 0x53564D41)),),
}
# glibc falls back to clone, whose flags a filter can see, when clone3 does not exist.
MISSING = ("clone3",)


@dataclass(frozen=True)
class _Instruction:
    code: int
    k: int
    then: str = ""
    otherwise: str = ""


class _Assembler:
    """A list of BPF instructions with labels.

    All jumps go ahead; those that depend on a condition reach 255 instructions.
    """

    def __init__(self) -> None:
        self.instructions: list[_Instruction] = []
        self._labels: dict[str, int] = {}

    def add(self, code: int, k: int, then: str = "", otherwise: str = "") -> None:
        self.instructions.append(_Instruction(code, k, then, otherwise))

    def label(self, name: str) -> None:
        self._labels[name] = len(self.instructions)

    def _distance(self, place: int, label: str, longest: int) -> int:
        if not label:
            return 0
        distance = self._labels[label] - place - 1
        if not 0 <= distance <= longest:
            raise ValueError(f"the jump to {label} spans {distance} instructions")
        return distance

    def _packed(self, place: int, one: _Instruction) -> bytes:
        if one.code == _JUMP:
            return struct.pack("<HBBI", _JUMP, 0, 0, self._distance(place, one.then, 1 << 16))
        then = self._distance(place, one.then, 255)
        otherwise = self._distance(place, one.otherwise, 255)
        return struct.pack("<HBBI", one.code, then, otherwise, one.k & 0xFFFFFFFF)

    def assemble(self) -> bytes:
        return b"".join(self._packed(place, one) for place, one in enumerate(self.instructions))


class Filter:
    """The filter for this machine, built once; installing it patches the pid in.

    Args:
        machine: ``platform.machine()`` of the filter; by default of this machine.

    Raises:
        OSError: there is no table of system calls for it.
    """

    def __init__(self, machine: str | None = None) -> None:
        machine = machine or platform.machine()
        if machine not in ARCHITECTURES:
            raise OSError(
                f"no system-call table for {machine}; there are {', '.join(ARCHITECTURES)}"
            )
        architecture, table = ARCHITECTURES[machine]
        program = _Assembler()
        program.add(_LOAD, _ARCHITECTURE)
        program.add(_EQUAL, architecture, otherwise=_FOREIGN)
        program.add(_LOAD, _NUMBER)
        _add_search(program, _segments(table, machine))
        for action, verdict in ((_FOREIGN, _KILL), (_ALLOWED, _ALLOW), (_DENIED, _EPERM)):
            program.label(action)
            program.add(_RETURN, verdict)
        for name in MISSING:
            program.label(name)
            program.add(_RETURN, _ENOSYS)
        for name, checks in CHECKED.items():
            if name in table:
                _add_checked(program, name, checks)
        self._code = bytearray(program.assemble())
        self._slots = [
            8 * place + 4
            for place, one in enumerate(program.instructions)
            if one.code == _EQUAL and one.k == OWN_PID
        ]
        self._buffer = (ctypes.c_char * len(self._code)).from_buffer(self._code)
        self._program = struct.pack("@HP", len(self._code) // 8, ctypes.addressof(self._buffer))
        self._libc = ctypes.CDLL(None, use_errno=True)

    def code(self, pid: int) -> bytes:
        """The BPF program for a process with this pid."""
        for slot in self._slots:
            struct.pack_into("<I", self._code, slot, pid)
        return bytes(self._code)

    def install(self, pid: int) -> None:
        """Confine the calling thread, and all it will ever start, for good.

        Args:
            pid: the calling process, as it sees itself.

        Raises:
            OSError: the kernel refuses.
        """
        for slot in self._slots:
            struct.pack_into("<I", self._code, slot, pid)
        _prctl(self._libc, _PR_SET_NO_NEW_PRIVS, 1)
        _prctl(self._libc, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, self._program)


def _segments(table: Mapping[str, int], machine: str) -> list[tuple[int, str]]:
    """(first number, action) of each range of system calls that are treated alike."""
    actions = {
        number: name if name in CHECKED or name in MISSING else _ALLOWED
        for name, number in table.items()
    }
    found = [(0, actions.get(0, _DENIED))]
    for number in range(1, max(actions) + 2):
        action = actions.get(number, _DENIED)
        if action != found[-1][1]:
            found.append((number, action))
    if machine == "x86_64":
        found.append((_X32, _FOREIGN))
    return found


def _add_search(program: _Assembler, segments: Sequence[tuple[int, str]]) -> None:
    """A binary search for the segment of the number: the kernel runs a filter at every call."""
    if len(segments) == 1:
        program.add(_JUMP, 0, then=segments[0][1])
        return
    middle = len(segments) // 2
    first = segments[middle][0]
    above = f"from {first}"
    program.add(_GREATER_EQUAL, first, then=above)
    _add_search(program, segments[:middle])
    program.label(above)
    _add_search(program, segments[middle:])


def _add_checked(program: _Assembler, name: str, checks: Sequence[Check]) -> None:
    program.label(name)
    for place, check in enumerate(checks):
        program.add(_LOAD, 16 + 8 * check.argument)
        if check.mask != 0xFFFFFFFF:
            program.add(_AND, check.mask)
        for value in check.values:
            program.add(_EQUAL, value, then=f"{name} {place}")
        program.add(_RETURN, _EPERM)
        program.label(f"{name} {place}")
    program.add(_RETURN, _ALLOW)


def _prctl(libc: ctypes.CDLL, option: int, argument: int, pointer: bytes | None = None) -> None:
    if libc.prctl(option, ctypes.c_ulong(argument), pointer or ctypes.c_ulong(0), 0, 0) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"prctl({option}): {errno.errorcode.get(code, code)}")
