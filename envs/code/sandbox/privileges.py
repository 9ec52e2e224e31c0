"""What a child gives up: limits for good, capabilities, root's uid, namespaces of the host."""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import signal
import struct
from collections.abc import Mapping, Sequence

STACK_BYTES = 64 << 20
# Beyond the ranges that distributions hand out; one per worker slot.
FIRST_UID = 0x70000000
_CAPABILITY_VERSION = 0x20080522
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE = 1, 4

_CLONE_NEWNS, _CLONE_NEWUTS, _CLONE_NEWIPC = 0x00020000, 0x04000000, 0x08000000
_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
NAMESPACES = {
    "net": _CLONE_NEWNET,
    "ipc": _CLONE_NEWIPC,
    "uts": _CLONE_NEWUTS,
    "mnt": _CLONE_NEWNS,
}

_libc = ctypes.CDLL(None, use_errno=True)


def fix_limits() -> None:
    """Set the limits that are the same for every program; children inherit them."""
    _limit(
        {
            resource.RLIMIT_NOFILE: 64,
            resource.RLIMIT_CORE: 0,
            resource.RLIMIT_MEMLOCK: 0,
            resource.RLIMIT_MSGQUEUE: 0,
            resource.RLIMIT_SIGPENDING: 256,
        }
    )


def set_limits(*, address_space: int, cpu_s: int, output: int) -> None:
    """Set a program's own limits.

    Args:
        address_space: bytes.
        cpu_s: whole CPU seconds, a backstop to the supervisor's clock.
        output: the most bytes of any file it writes.
    """
    _limit(
        {
            resource.RLIMIT_AS: address_space,
            resource.RLIMIT_CPU: cpu_s,
            resource.RLIMIT_FSIZE: output,
        }
    )


def _limit(wanted: Mapping[int, int]) -> None:
    """Set limits of the calling process, hard ones too, so that nothing can raise them again."""
    for limit, value in wanted.items():
        _, hard = resource.getrlimit(limit)
        if hard != resource.RLIM_INFINITY:
            value = min(value, hard)
        resource.setrlimit(limit, (value, value))


def reset_signals() -> None:
    """Every signal as a fresh process has it; Python itself ignores SIGXFSZ and SIGPIPE."""
    for number in (signal.SIGXFSZ, signal.SIGPIPE, signal.SIGTERM, signal.SIGCHLD, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def drop_capabilities() -> None:
    """Give up every capability. uid 0 without them owns root's files and can do no more.

    Raises:
        OSError: the kernel refuses.
    """
    header = struct.pack("Ii", _CAPABILITY_VERSION, 0)
    if _libc.capset(header, bytes(24)) != 0:
        raise _error("capset")


def become(uid: int) -> None:
    """Turn the calling process, which is root, into an ordinary one.

    Raises:
        OSError: it may not.
    """
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def can_read_as(uid: int, paths: Sequence[str]) -> bool:
    """Whether an ordinary user could read these files; tried in a child of its own."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            become(uid)
            for path in paths:
                os.close(os.open(path, os.O_RDONLY))
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def end_with_parent() -> None:
    """Have the kernel kill the calling process when its parent ends."""
    if _libc.prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL), 0, 0, 0) != 0:
        raise _error("prctl(PR_SET_PDEATHSIG)")


def hide_memory() -> None:
    """Keep other processes of the same user from looking into the calling process."""
    if _libc.prctl(_PR_SET_DUMPABLE, ctypes.c_ulong(0), 0, 0, 0) != 0:
        raise _error("prctl(PR_SET_DUMPABLE)")


def enter_namespaces() -> tuple[str, ...]:
    """Move the calling process into namespaces of its own, as many as the kernel grants.

    An empty network above all. Root needs no user namespace for it; others enter one first,
    in which they stay who they are. No pid namespace: a program that is its first process
    could ignore SIGKILL and SIGSTOP from itself, and its death would look like success.

    Returns:
        The kinds entered; none at all is no error, since filter and Landlock suffice.
    """
    entered = []
    if os.geteuid() != 0:
        uid, gid = os.geteuid(), os.getegid()
        if _libc.unshare(_CLONE_NEWUSER) != 0:
            return ()
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{uid} {uid} 1")
        _write("/proc/self/gid_map", f"{gid} {gid} 1")
        entered.append("user")
    for name, flag in NAMESPACES.items():
        if _libc.unshare(flag) == 0:
            entered.append(name)
    return tuple(entered)


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def _error(what: str) -> OSError:
    code = ctypes.get_errno()
    return OSError(code, f"{what}: {errno.errorcode.get(code, code)}")
