"""One worker: a zygote process, seen from the parent."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from flexmg.errors import InfraError

from . import protocol
from .jobs import DRIVERS, Job, as_bytes, infra_error, judged
from .landlock import hidden_paths, readable_paths
from .limits import Execution
from .memory import content, empty, sealed
from .privileges import FIRST_UID

FOLDER = Path(__file__).resolve().parent
START_SECONDS = 60.0
LONGEST_SECONDS = 1e6  # that a socket can wait
MOST_COMPLAINT = 2000  # bytes of a zygote's stderr in an error
ENVIRONMENT = {
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    "PYTHONHASHSEED": "0",
    "PYTHONINTMAXSTRDIGITS": "0",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


class Broken(Exception):
    """The zygote is gone, or does not answer."""


class Slot:
    """Starts a zygote when first needed, and again whenever it has died.

    A zygote dies with the thread that started it, so a slot belongs to one thread.

    Args:
        number: of the slot; chooses the uid of its programs.
        isolation: ``"strict"`` or ``"unsafe"``.
        files: who keeps the files shut: ``"landlock"`` or ``"bwrap"``.
    """

    def __init__(self, number: int, isolation: str, files: str) -> None:
        self.number = number
        self.isolation = isolation
        self.files = files
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._complaints = -1

    @property
    def pid(self) -> int | None:
        """Of the zygote that runs now."""
        return None if self._process is None else self._process.pid

    def run(self, job: Job) -> Execution:
        """Run a job; once more on a fresh zygote when this one broke.

        Raises:
            InfraError: no zygote can be started.
        """
        for last in (False, True):
            try:
                return self._attempt(job)
            except Broken as broken:
                self.stop()
                if last or job.channel is not None:
                    often = "twice in a run" if last else "in a run that cannot be repeated"
                    return infra_error(f"the sandbox's process broke {often}: {broken}")
            except BaseException:
                # Its next answer would be the one to this job.
                self.stop()
                raise
        raise AssertionError("unreachable")

    def _attempt(self, job: Job) -> Execution:
        control = self._started()
        program = as_bytes(job.program)
        cap = int(job.limits.output_kb * 1024)
        outputs = ("stdout", "stderr", "result")
        opened = []
        try:
            opened.append(sealed("program", program, job.request))
            opened.append(sealed("stdin", as_bytes(job.stdin)))
            opened += [empty(name) for name in outputs]
            channel = [] if job.channel is None else [job.channel]
            # Twice as long as the run can last: only a zygote that hangs takes longer.
            patience = 2 * job.limits.wall * job.calls + START_SECONDS
            control.settimeout(min(patience, LONGEST_SECONDS))
            try:
                socket.send_fds(control, [job.record(len(program))], opened + channel)
                data = control.recv(protocol.MESSAGE_BYTES)
            except OSError as error:
                raise Broken(self._complaint(error)) from error
            if not data:
                raise Broken(self._complaint("it ended"))
            found = {
                name: content(descriptor, cap)
                for name, descriptor in zip(outputs, opened[2:], strict=True)
            }
        finally:
            for descriptor in opened:
                os.close(descriptor)
        overflown = next((name for name in outputs if found[name][1]), None)
        texts = {name: text for name, (text, _) in found.items()}
        return judged(protocol.Reply.unpack(data), job, texts, overflown)

    def _started(self) -> socket.socket:
        if self._process is not None and self._process.poll() is not None:
            # It died while it had nothing to do: no run is lost by that.
            self.stop()
        if self._control is not None:
            return self._control
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # A file, unlike a pipe, never blocks a zygote whose complaints nobody reads.
        self._complaints = empty("complaints")
        try:
            self._process = subprocess.Popen(
                [*self._wrapping(), *self._command(theirs.fileno())],
                env=ENVIRONMENT,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._complaints,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        except OSError as error:
            ours.close()
            self.stop()
            raise InfraError(f"the sandbox's process cannot be started: {error}") from error
        finally:
            theirs.close()
        self._control = ours
        ours.settimeout(START_SECONDS)
        try:
            ready = ours.recv(protocol.MESSAGE_BYTES) == protocol.READY
            why = "it ended"
        except OSError as error:
            ready, why = False, str(error)
        if not ready:
            complaint = self._complaint(why)
            self.stop()
            raise InfraError(f"the sandbox's process does not start: {complaint}")
        return ours

    def _command(self, descriptor: int) -> list[str]:
        return [
            os.path.realpath(sys.executable),
            *("-s", "-S", "-P", "-B", "-X", "utf8"),
            str(FOLDER / "launch.py"),
            "zygote",
            str(descriptor),
            self.isolation,
            self.files,
            str(FIRST_UID + self.number),
            str(DRIVERS),
        ]

    def _wrapping(self) -> list[str]:
        """A bubblewrap around the zygote, where it has to stand in for Landlock."""
        if self.isolation != "strict" or self.files != "bwrap":
            return []
        library = [path for path in readable_paths() if not path.startswith("/dev/")]
        hidden = hidden_paths(library)
        # flexmg itself may be among the hidden packages.
        own = [str(FOLDER), str(DRIVERS), os.path.realpath(sys.executable)]
        links = [path for path in ("/lib", "/lib64") if os.path.islink(path)]
        return [
            shutil.which("bwrap") or "bwrap",
            # No /proc: the zygote's memory is in there.
            *("--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"),
            *("--dev", "/dev"),
            *(part for path in library for part in ("--ro-bind", path, path)),
            *(part for path in hidden for part in ("--tmpfs", path)),
            *(part for path in own for part in ("--ro-bind", path, path)),
            *(part for path in hidden for part in ("--remount-ro", path)),
            *(part for path in links for part in ("--symlink", os.readlink(path), path)),
            *("--remount-ro", "/", "--remount-ro", "/dev", "--chdir", "/", "--"),
        ]

    def _complaint(self, reason: object) -> str:
        said, _ = content(self._complaints, 2**20)
        tail = said.decode(errors="replace").strip()[-MOST_COMPLAINT:]
        return f"{reason}; it said: {tail}" if tail else str(reason)

    def stop(self) -> None:
        """End the zygote, and with it whatever it runs. May be called again."""
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None
        if self._complaints >= 0:
            os.close(self._complaints)
            self._complaints = -1
