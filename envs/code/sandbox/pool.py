"""Workers that run programs side by side; the front door of the sandbox."""

from __future__ import annotations

import atexit
import os
import queue
import threading
import warnings
from collections.abc import Iterable
from concurrent.futures import Future
from types import TracebackType
from typing import Literal

from flexmg.errors import FlexMGError, InvalidArgument

from .jobs import Job, infra_error
from .limits import Execution
from .probe import require
from .slot import Slot

__all__ = ["Isolation", "Job", "Pool", "PoolClosed", "Purpose", "shared_pool"]

Isolation = Literal["strict", "unsafe"]
Purpose = Literal["candidates", "referees"]
WAITING_PER_WORKER = 64


class PoolClosed(FlexMGError, RuntimeError):
    """A pool was asked to run something after it was closed."""


class Pool:
    """Workers, each with a zygote of its own, that share a queue.

    Usable from any thread, and from asyncio by ``asyncio.wrap_future``.

    Args:
        workers: how many; by default one per usable core.
        isolation: ``"strict"``; ``"unsafe"`` runs programs without isolation, and warns.
        waiting: the most jobs that wait; ``submit`` blocks while there are as many.

    Raises:
        SandboxUnavailable: programs cannot be run safely on this machine.
        InvalidArgument: a setting that makes no sense.
    """

    def __init__(
        self,
        workers: int | None = None,
        *,
        isolation: Isolation = "strict",
        waiting: int | None = None,
    ) -> None:
        if isolation not in ("strict", "unsafe"):
            raise InvalidArgument(f"isolation={isolation!r} is neither 'strict' nor 'unsafe'")
        count = len(os.sched_getaffinity(0)) if workers is None else workers
        if count < 1:
            raise InvalidArgument(f"workers={workers}: a pool needs at least one")
        files = require(isolation)
        if isolation == "unsafe":
            warnings.warn(
                "sandbox='unsafe': programs run without isolation. They can read and write your "
                "files, reach the network and end your processes",
                stacklevel=2,
            )
        self.workers = count
        self._owner = os.getpid()
        self._closed = False
        self._lock = threading.Lock()
        self._jobs: queue.Queue[tuple[Job, Future[Execution]] | None] = queue.Queue(
            WAITING_PER_WORKER * count if waiting is None else waiting
        )
        self.slots = [Slot(number, isolation, files) for number in range(count)]
        self._threads = [
            threading.Thread(target=self._work, args=(slot,), name="flexmg sandbox", daemon=True)
            for slot in self.slots
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, job: Job) -> Future[Execution]:
        """Have a job run; blocks while too many wait.

        The future never raises for what a program does; our own failures are executions
        with the status ``infra_error``.

        Raises:
            PoolClosed: the pool is closed, or belongs to the process that this one is a
                fork of.
        """
        future: Future[Execution] = Future()
        if os.getpid() != self._owner:
            raise PoolClosed("this pool belongs to the process that forked; make one of your own")
        with self._lock:
            if self._closed:
                raise PoolClosed("the pool of sandboxes is closed; open another one")
        self._jobs.put((job, future))
        return future

    def run(self, job: Job) -> Execution:
        """Run a job and wait for it; raises as :meth:`submit` does."""
        return self.submit(job).result()

    def run_all(self, jobs: Iterable[Job]) -> list[Execution]:
        """Run jobs side by side; the executions in their order."""
        return [future.result() for future in [self.submit(job) for job in jobs]]

    def close(self) -> None:
        """Run what waits, then end all workers. May be called again."""
        with self._lock:
            if self._closed or os.getpid() != self._owner:
                return
            self._closed = True
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()
        # What slipped in between the last look at the flag and the end.
        while not self._jobs.empty():
            if (item := self._jobs.get_nowait()) is not None:
                item[1].set_result(infra_error("the pool of sandboxes was closed"))

    def __enter__(self) -> Pool:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _work(self, slot: Slot) -> None:
        try:
            while (item := self._jobs.get()) is not None:
                job, future = item
                if not future.set_running_or_notify_cancel():
                    continue
                try:
                    future.set_result(slot.run(job))
                except FlexMGError as error:
                    future.set_result(infra_error(str(error)))
                except BaseException as error:
                    future.set_exception(error)
                # Neither a job nor its outcome outlives its run in here.
                del item, job, future
        finally:
            slot.stop()


_pools: dict[tuple[int, Isolation, Purpose], Pool] = {}
_making = threading.Lock()


def shared_pool(isolation: Isolation = "strict", purpose: Purpose = "candidates") -> Pool:
    """The process's own pool, started when first needed and closed at its end.

    Referees run trusted test code that talks to a candidate; they have a pool of their own, so
    that two runs which wait for each other never wait for one worker.

    Args:
        isolation: ``"strict"`` or ``"unsafe"``.
        purpose: ``"candidates"`` or ``"referees"``.
    """
    key = (os.getpid(), isolation, purpose)
    with _making:
        if key not in _pools:
            _pools[key] = Pool(isolation=isolation)
        return _pools[key]


@atexit.register
def _close_all() -> None:
    for (owner, _, _), pool in list(_pools.items()):
        if owner == os.getpid():
            pool.close()


def _fresh_lock() -> None:
    global _making
    _making = threading.Lock()


os.register_at_fork(after_in_child=_fresh_lock)
