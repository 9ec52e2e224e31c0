"""What a child gives up: limits for good, capabilities, root's uid, namespaces of the host."""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import signal
import struct
from collections.abc import Callable, Mapping
from typing import Any

# Beyond the ranges that distributions hand out.
FIRST_UID = 0x70000000
_UIDS_APART, _DRAWS = 1 << 16, 4095  # more apart than there are workers; up to 0x7FFEFFFF
# Tasks are processes and threads. So many may a program have where its user has no others, and
# so many more than there are may its user have where they are counted together.
TASKS, TASKS_TOGETHER = 256, 4096
_FEW, _MOST_TASKS = 4, 1 << 22  # a zygote by itself; what no kernel exceeds

READ_ANY_FILE = 1 << 2  # CAP_DAC_READ_SEARCH
_CAPABILITY_VERSION = 0x20080522
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_KEEPCAPS = 1, 4, 8

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


def set_limits(*, address_space: int, cpu_s: int, output: int, tasks: int | None) -> None:
    """Set a program's own limits.

    Args:
        address_space: bytes.
        cpu_s: whole CPU seconds, a backstop to the supervisor's clock.
        output: the most bytes of any file it writes.
        tasks: the most threads and processes of its user; None for no limit.
    """
    wanted = {
        resource.RLIMIT_AS: address_space,
        resource.RLIMIT_CPU: cpu_s,
        resource.RLIMIT_FSIZE: output,
    }
    if tasks is not None:
        wanted[resource.RLIMIT_NPROC] = tasks
    _limit(wanted)


def tasks_allowed() -> int:
    """How many tasks to allow the user of the calling process, so that programs have enough.

    The kernel counts them per user, since Linux 5.14 apart in each user namespace. How many
    there are is found by trying: /proc shows neither those of other containers nor, at times,
    one's own. It does not count those of the host's root at all.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    most = _MOST_TASKS if hard == resource.RLIM_INFINITY else hard
    tried = 2
    try:
        while tried < most:
            resource.setrlimit(resource.RLIMIT_NPROC, (tried, hard))
            if _can_fork():
                break
            tried *= 2
    finally:
        resource.setrlimit(resource.RLIMIT_NPROC, (soft, hard))
    return tried + (TASKS if tried <= _FEW else TASKS_TOGETHER)


def _can_fork() -> bool:
    try:
        child = os.fork()
    except BlockingIOError:
        return False
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return True


def _limit(wanted: Mapping[int, int]) -> None:
    """Set limits of the calling process, hard ones too, so that nothing can raise them again."""
    for limit, value in wanted.items():
        _, hard = resource.getrlimit(limit)
        if hard != resource.RLIM_INFINITY:
            value = min(value, hard)
        resource.setrlimit(limit, (value, value))


def reset_signals() -> None:
    """Every signal as a fresh interpreter has it, but for SIGXFSZ, which Python ignores.

    Here it ends a program that writes too much, at once.
    """
    kept = {signal.SIGKILL, signal.SIGSTOP}
    handlers: dict[int, Any] = {
        signal.SIGINT: signal.default_int_handler,
        signal.SIGPIPE: signal.SIG_IGN,
    }
    for number in signal.valid_signals() - kept:
        signal.signal(number, handlers.get(number, signal.SIG_DFL))
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def drop_capabilities(kept: int = 0) -> None:
    """Give up every capability. uid 0 without them owns root's files and can do no more.

    Args:
        kept: a mask of capabilities below 32 to keep.

    Raises:
        OSError: the kernel refuses.
    """
    header = struct.pack("Ii", _CAPABILITY_VERSION, 0)
    if _libc.capset(header, struct.pack("6I", kept, kept, 0, 0, 0, 0)) != 0:
        raise _error("capset")


def drawn_uid(first: int) -> int:
    """An unused uid, drawn: users with the same uid would share its limit of tasks.

    Args:
        first: ``FIRST_UID`` plus the number of a worker.
    """
    return first + _UIDS_APART * (int.from_bytes(os.urandom(2), "big") % _DRAWS)


def become(uid: int, kept: int = 0) -> None:
    """Turn the calling process, which is root, into an ordinary one.

    Args:
        uid: taken as user and as only group.
        kept: see :func:`drop_capabilities`.

    Raises:
        OSError: it may not.
    """
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    if kept and _libc.prctl(_PR_SET_KEEPCAPS, ctypes.c_ulong(1), 0, 0, 0) != 0:
        raise _error("prctl(PR_SET_KEEPCAPS)")
    os.setresuid(uid, uid, uid)
    drop_capabilities(kept)


def succeeds(attempt: Callable[[], object]) -> bool:
    """Whether an attempt raises nothing; it is made in a child, and changes the child only."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            attempt()
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

    Raises:
        OSError: a user namespace can be entered, and not be used. Some distributions have it
            so for ordinary users; the process is without a uid then.
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
