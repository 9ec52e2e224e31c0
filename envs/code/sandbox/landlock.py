"""Landlock: which files a confined program may open.

Read only, and only the standard library, shared libraries, time zones and two devices; not the
packages that are installed beside the standard library, since there may lie the solutions of a
benchmark, or our own generators. Nothing can be written, made, removed, renamed or truncated, no
TCP port bound or reached, no abstract socket reached, and no process outside signalled, as far as
the kernel's version of Landlock goes (the system-call filter stops all of that, too). Landlock
looks at ``open`` and the like: ``stat`` still tells whether a path exists, the names of installed
packages can be listed, and files that are open already stay open.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
import sysconfig
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # on every architecture
_PATH_BENEATH = 1
_VERSION = 1  # flag of create_ruleset: which ABI is there?
_PR_SET_NO_NEW_PRIVS = 38

_WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 1, 1 << 2, 1 << 3
# Rights over files by the ABI that brought them: 13 at first, then REFER, TRUNCATE, IOCTL_DEV.
_FILE_RIGHTS = {1: (1 << 13) - 1, 2: 1 << 13, 3: 1 << 14, 5: 1 << 15}
_TCP_ABI, _TCP_RIGHTS = 4, 0b11
_SCOPE_ABI, _SCOPES = 6, 0b11  # abstract sockets, signals


class _RulesetAttributes(ctypes.Structure):
    _fields_ = (
        ("files", ctypes.c_uint64),
        ("network", ctypes.c_uint64),
        ("scopes", ctypes.c_uint64),
    )


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def readable_paths() -> list[str]:
    """What a Python program needs to read: folders and files that exist here, without links.

    Of the base interpreter, also when called in a virtual environment. What lies in these
    folders and is still not to be read is in :func:`hidden_paths`.
    """
    base = sys.base_exec_prefix
    wanted = [
        os.path.dirname(os.__file__),
        sysconfig.get_path("platstdlib", "posix_prefix", vars={"platbase": base}),
        "/lib",
        "/lib64",
        "/usr/lib",
        "/usr/lib64",
        "/usr/share/zoneinfo",
        "/etc/localtime",
        "/dev/urandom",
        # Where an interpreter brings its own libraries, as conda's does.
        *map(str, sorted(Path(base, "lib").glob("*.so*"))),
    ]
    found: list[str] = []
    for path in map(os.path.realpath, filter(os.path.exists, wanted)):
        if not any(path == one or path.startswith(one + os.sep) for one in found):
            found.append(path)
    return found


def hidden_paths(readable: Iterable[str]) -> list[str]:
    """Folders of installed packages beneath readable ones."""
    patterns = ("site-packages", "dist-packages", "python*/site-packages", "python*/dist-packages")
    found = {
        str(path)
        for folder in readable
        for pattern in patterns
        for path in Path(folder).glob(pattern)
    }
    return sorted(found)


class Ruleset:
    """The rules, built once; every child restricts itself by them.

    Args:
        paths: what may be read, with all beneath it but :func:`hidden_paths`; by default
            :func:`readable_paths`.

    Attributes:
        abi: the kernel's version of Landlock.

    Raises:
        OSError: this kernel has no Landlock, or it is switched off.
    """

    def __init__(self, paths: Iterable[str] | None = None) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self.abi = self._call("Landlock", _CREATE_RULESET, None, 0, _VERSION)
        files = sum(right for abi, right in _FILE_RIGHTS.items() if abi <= self.abi)
        network = _TCP_RIGHTS if self.abi >= _TCP_ABI else 0
        scopes = _SCOPES if self.abi >= _SCOPE_ABI else 0
        try:
            self.descriptor = self._create(files, network, scopes)
        except OSError:
            # Some kernels count scopes in their ABI and do not have them.
            self.descriptor = self._create(files, network, 0)
        readable = readable_paths() if paths is None else list(paths)
        hidden = hidden_paths(readable)
        for path in readable:
            self._allow_reading(path, hidden)
        self._allow("/dev/null", _READ_FILE | _WRITE_FILE)

    def restrict(self) -> None:
        """Confine the calling thread, and all it will ever start, for good.

        Raises:
            OSError: the kernel refuses.
        """
        if self._libc.prctl(_PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), *[ctypes.c_ulong(0)] * 3):
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_NO_NEW_PRIVS)")
        self._call("landlock_restrict_self", _RESTRICT_SELF, self.descriptor, 0)

    def close(self) -> None:
        """Forget the rules."""
        os.close(self.descriptor)

    def _create(self, files: int, network: int, scopes: int) -> int:
        attributes = _RulesetAttributes(files, network, scopes)
        # An older kernel refuses bytes that it does not know, unless they are 0.
        return self._call(
            "landlock_create_ruleset",
            _CREATE_RULESET,
            ctypes.byref(attributes),
            ctypes.sizeof(attributes),
            0,
        )

    def _allow_reading(self, path: str, hidden: Sequence[str]) -> None:
        if path in hidden:
            return
        if not any(one.startswith(path + os.sep) for one in hidden):
            self._allow(path, _READ_FILE | _READ_DIR)
            return
        # A rule holds for all beneath. So the folder may be listed, as imports need, and each
        # neighbour of what is hidden be read.
        self._allow(path, _READ_DIR)
        with os.scandir(path) as entries:
            for entry in entries:
                # A file may go while others install something.
                with suppress(FileNotFoundError):
                    if not entry.is_symlink():
                        self._allow_reading(entry.path, hidden)

    def _allow(self, path: str, rights: int) -> None:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            if not os.path.isdir(path):
                rights &= ~_READ_DIR
            rule = _PathBeneath(rights, descriptor)
            self._call(
                f"landlock_add_rule for {path}",
                _ADD_RULE,
                self.descriptor,
                _PATH_BENEATH,
                ctypes.byref(rule),
                0,
            )
        finally:
            os.close(descriptor)

    def _call(self, what: str, number: int, *arguments: object) -> int:
        plain = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
        result = self._libc.syscall(ctypes.c_long(number), *plain)
        if result < 0:
            code = ctypes.get_errno()
            raise OSError(code, f"{what}: {errno.errorcode.get(code, code)}")
        return int(result)
