"""What this machine has to confine programs with, found by trying each out.

Started by :mod:`launch`, like the zygote: it forks, which a process with threads must not.
Prints one JSON object: name -> what went wrong, empty where it works.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

from . import privileges
from .landlock import Ruleset
from .seccomp import Filter


def in_a_child(attempt: Callable[[], None]) -> str:
    """Run in a child of its own; what went wrong, empty if nothing."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            attempt()
        except RuntimeError as finding:
            os.write(writing, str(finding).encode()[:1000])
        except BaseException as error:
            os.write(writing, f"{type(error).__name__}: {error}".encode()[:1000])
        finally:
            os._exit(0)
    os.close(writing)
    _, status = os.waitpid(child, 0)
    said = os.read(reading, 1000).decode(errors="replace")
    os.close(reading)
    return said or ("" if status == 0 else f"its child ended with status {status}")


def must_fail(what: str, attempt: Callable[[], object]) -> None:
    """Raise unless an attempt is refused by the kernel."""
    try:
        attempt()
    except OSError:
        return
    raise RuntimeError(f"{what} is still possible")


def memory_files() -> None:
    """Memory files that can be sealed."""
    descriptor = os.memfd_create("probe", os.MFD_ALLOW_SEALING)
    os.write(descriptor, b"x")
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE)
    must_fail("writing to a sealed file", lambda: os.write(descriptor, b"x"))


def process_files() -> None:
    """/proc, by which a process learns its own size; process descriptors."""
    if not Path("/proc/self/statm").read_text():
        raise RuntimeError("/proc/self/statm is empty")
    os.close(os.pidfd_open(os.getpid()))


def seccomp() -> None:
    """The system-call filter."""
    Filter().install(os.getpid())
    must_fail("fork", os.fork)
    must_fail("a socket", socket.socket)


def landlock() -> None:
    """Landlock."""
    Ruleset().restrict()
    must_fail("reading /proc", Path("/proc/self/statm").read_bytes)
    must_fail("writing to /tmp", lambda: Path("/tmp/flexmg-probe").write_bytes(b""))
    Path(os.__file__).read_bytes()


def namespaces() -> None:
    """Namespaces of one's own; a second line of defence."""
    entered = privileges.enter_namespaces()
    if "net" not in entered:
        raise RuntimeError("the kernel grants no network namespace")


def bubblewrap() -> None:
    """bubblewrap, which can stand in for Landlock."""
    path = shutil.which("bwrap")
    if path is None:
        raise RuntimeError("not installed")
    command = [path, "--ro-bind", "/", "/", "--unshare-all", "true"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    if run.returncode:
        raise RuntimeError(run.stderr.strip() or f"exit code {run.returncode}")


def main(arguments: list[str]) -> None:
    """See the module; there are no arguments."""
    attempts = (memory_files, process_files, seccomp, landlock, bubblewrap, namespaces)
    print(json.dumps({attempt.__name__: in_a_child(attempt) for attempt in attempts}))
