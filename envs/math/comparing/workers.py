"""A pool of killable worker processes for symbolic work.

Workers are started as ``sys.executable -m flexmg.envs.math.comparing.worker``: nothing of the
caller's ``__main__`` is imported again, so grading works in a REPL, in a script without a
guard, under ``python -`` and from any thread. They start when first needed.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import select
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections import OrderedDict
from dataclasses import dataclass
from typing import IO, Literal

from flexmg.errors import InfraError, MissingDependency

HEADER = struct.Struct(">I")
START_SECONDS = 60.0
MOST_REMEMBERED = 4096
# Signals by which a process ends on its own account: a stack or memory overrun in C code.
OWN_FAULTS = {-signal.SIGSEGV, -signal.SIGABRT, -signal.SIGBUS, -signal.SIGILL, -signal.SIGFPE}

Outcome = Literal["settled", "timeout", "crash"]


@dataclass(frozen=True, slots=True)
class Settlement:
    """What came of one request: ``equal`` is None when symbolic work could not tell."""

    outcome: Outcome
    equal: bool | None = None
    detail: str = ""


class WorkerEnded(Exception):
    """The worker process is gone; its exit status tells why."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Worker:
    """One worker process and its two pipes.

    Args:
        megabytes: memory that a request may use.
        seconds: after which a worker whose parent is gone ends itself.

    Raises:
        MissingDependency: sympy or math-verify is not installed.
        InfraError: the process does not start.
    """

    def __init__(self, megabytes: int, seconds: int) -> None:
        # A file, unlike a pipe, never blocks a worker whose messages nobody reads.
        descriptor, path = tempfile.mkstemp(prefix="flexmg-worker-")
        os.unlink(path)
        self.errors: IO[bytes] = os.fdopen(descriptor, "w+b")
        command = [sys.executable, "-P", "-m", "flexmg.envs.math.comparing.worker"]
        threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        try:
            self.process = subprocess.Popen(
                [*command, str(megabytes), str(seconds)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self.errors,
                bufsize=0,
                env={**os.environ, **threads},
                start_new_session=True,  # Ctrl-C is for the caller
            )
        except OSError as error:
            raise InfraError(f"a grading worker cannot be started: {error}") from error
        try:
            greeting = self.receive(START_SECONDS)
        except WorkerEnded as error:
            raise InfraError(f"a grading worker ended while it started: {error}") from error
        if greeting is None:
            self.kill()
            raise InfraError(f"a grading worker did not start within {START_SECONDS:g} s")
        if not greeting["ready"]:
            self.kill()
            raise MissingDependency(
                "this answer needs symbolic grading, which is not installed "
                f"({greeting['missing']}); run: pip install 'flexmg[math]'"
            )

    def ask(self, gold: str, answer: str, seconds: float) -> dict[str, object] | None:
        """The worker's reply, or None when it took too long (then kill it)."""
        body = json.dumps({"gold": gold, "answer": answer}).encode()
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(HEADER.pack(len(body)) + body)
        except BrokenPipeError as error:
            raise self.ended() from error
        return self.receive(seconds)

    def receive(self, seconds: float) -> dict[str, object] | None:
        """One message, or None when it does not come in time."""
        deadline = time.monotonic() + seconds
        header = self.read(HEADER.size, deadline)
        if header is None:
            return None
        body = self.read(HEADER.unpack(header)[0], deadline)
        return None if body is None else json.loads(body)

    def read(self, size: int, deadline: float) -> bytes | None:
        """``size`` bytes from the worker, or None when the deadline passes first."""
        assert self.process.stdout is not None
        descriptor = self.process.stdout.fileno()
        data = b""
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        while len(data) < size:
            left = deadline - time.monotonic()
            if left <= 0 or not poll.poll(left * 1000):
                return None
            chunk = os.read(descriptor, size - len(data))
            if not chunk:
                raise self.ended()
            data += chunk
        return data

    def ended(self) -> WorkerEnded:
        """Why the process is gone."""
        status = self.process.wait()
        self.errors.seek(0)
        last = self.errors.read()[-2000:].decode(errors="replace").strip().rpartition("\n")[2]
        self.close()
        return WorkerEnded(status, f"exit status {status}. {last}".strip())

    def kill(self) -> None:
        """End the process at once and collect it."""
        self.process.kill()
        self.process.wait()
        self.close()

    def close(self) -> None:
        """Close the pipes; an idle worker ends when its input closes."""
        for stream in (self.process.stdin, self.process.stdout, self.errors):
            if stream is not None:
                stream.close()


class WorkerPool:
    """Workers on demand, at most ``size`` of them, shared by all threads.

    Settled requests are remembered: in a group of samples the same answers come back.

    Args:
        size: the most workers at a time.
        seconds: wall time of one request, from the moment a worker gets it.
        megabytes: memory of one request.
    """

    def __init__(self, size: int, seconds: float, megabytes: int) -> None:
        self.size = size
        self.seconds = seconds
        self.megabytes = megabytes
        self.renew()
        _POOLS.add(self)

    def renew(self) -> None:
        """Start with no workers; a forked child leaves those of its parent alone."""
        self._turns = threading.BoundedSemaphore(self.size)
        self._lock = threading.Lock()
        self._idle: list[Worker] = []
        self._settled: OrderedDict[tuple[str, str], Settlement] = OrderedDict()

    def settle(self, gold: str, answer: str) -> Settlement:
        """Let a worker compare an extracted answer with the gold answer.

        A worker that dies is replaced and the request tried once more.

        Raises:
            InfraError: the workers die or do not start.
            MissingDependency: the ``math`` extra is not installed.
        """
        with self._lock:
            known = self._settled.get((gold, answer))
        if known is not None:
            return known
        with self._turns:
            try:
                settlement = self._attempt(gold, answer)
            except WorkerEnded:
                settlement = self._second_attempt(gold, answer)
        if settlement.outcome == "settled":  # a timeout may be the machine's fault
            with self._lock:
                self._settled[gold, answer] = settlement
                if len(self._settled) > MOST_REMEMBERED:
                    self._settled.popitem(last=False)
        return settlement

    def _second_attempt(self, gold: str, answer: str) -> Settlement:
        try:
            return self._attempt(gold, answer)
        except WorkerEnded as error:
            if error.status in OWN_FAULTS:
                return Settlement("crash", detail=f"symbolic work ended with {error}")
            raise InfraError(f"two grading workers died in a row: {error}") from error

    def _attempt(self, gold: str, answer: str) -> Settlement:
        with self._lock:
            worker = self._idle.pop() if self._idle else None
        if worker is None:
            worker = Worker(self.megabytes, int(2 * self.seconds) + 5)
        try:
            reply = worker.ask(gold, answer, self.seconds)
        except WorkerEnded:
            raise
        except BaseException:
            worker.kill()  # interrupted: a late reply must not answer the next request
            raise
        if reply is None:
            worker.kill()
            return Settlement("timeout", detail=f"not decided within {self.seconds:g} s")
        if "error" in reply:
            worker.kill()  # what is left of it may be broken
            if reply["error"] == "memory":
                return Settlement("crash", detail=f"needs more than {self.megabytes} MB")
            return Settlement("crash", detail="nested too deeply")
        with self._lock:
            self._idle.append(worker)
        equal = reply["equal"]
        return Settlement("settled", equal if isinstance(equal, bool) else None)

    def close(self) -> None:
        """End all idle workers; the pool starts new ones when it is used again."""
        with self._lock:
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.kill()


_POOLS: weakref.WeakSet[WorkerPool] = weakref.WeakSet()


@functools.cache
def shared_pool() -> WorkerPool:
    """The pool of this process: up to 4 workers, 3 s and 512 MB a request."""
    return WorkerPool(min(4, os.cpu_count() or 1), 3.0, 512)


def _close_all() -> None:
    for pool in list(_POOLS):
        pool.close()


def _renew_all() -> None:
    for pool in list(_POOLS):
        pool.renew()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_renew_all)
