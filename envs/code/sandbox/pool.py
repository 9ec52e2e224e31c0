"""Workers that run programs side by side; the front door of the sandbox."""

from __future__ import annotations

import atexit
import os
import threading
import warnings
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future
from types import TracebackType
from typing import TYPE_CHECKING, Literal

from flexmg.errors import FlexMGError, InvalidArgument

from .jobs import Job, infra_error
from .limits import Execution
from .probe import require

if TYPE_CHECKING:
    from .slot import Slot

__all__ = ["Isolation", "Job", "Pool", "PoolClosed", "Purpose", "shared_pool"]

Isolation = Literal["strict", "unsafe"]
Purpose = Literal["candidates", "referees"]
WAITING_PER_WORKER = 64


class PoolClosed(FlexMGError, RuntimeError):
    """A pool was asked to run something after it was closed."""


class Pool:
    """Workers, each with a zygote of its own, that share a queue.

    Usable from any thread, and from asyncio by ``asyncio.wrap_future``. Close it, or use it in
    a ``with`` statement.

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
        if workers is not None and workers < 1:
            raise InvalidArgument(f"workers={workers}: a pool needs at least one")
        if waiting is not None and waiting < 1:
            raise InvalidArgument(f"waiting={waiting}: a queue needs room for at least one job")
        files = require(isolation)
        # Elsewhere than on Linux this cannot even be imported.
        from .slot import Slot

        if isolation == "unsafe":
            warnings.warn(
                "sandbox='unsafe': programs run without isolation. They can read and write your "
                "files, reach the network and end your processes",
                stacklevel=2,
            )
        self.workers = workers or len(os.sched_getaffinity(0))
        self._room = waiting or WAITING_PER_WORKER * self.workers
        self._owner = os.getpid()
        self._closed = False
        self._jobs: deque[tuple[Job, Future[Execution]]] = deque()
        lock = threading.Lock()
        self._arrived, self._taken = threading.Condition(lock), threading.Condition(lock)
        self.slots = [Slot(number, isolation, files) for number in range(self.workers)]
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
        self._check_owner()
        with self._taken:
            while not self._closed and len(self._jobs) >= self._room:
                self._taken.wait()
            if self._closed:
                raise PoolClosed("the pool of sandboxes is closed; open another one")
            self._jobs.append((job, future))
            self._arrived.notify()
        return future

    def run(self, job: Job) -> Execution:
        """Run a job and wait for it; raises as :meth:`submit` does."""
        return self.submit(job).result()

    def run_all(self, jobs: Iterable[Job]) -> list[Execution]:
        """Run jobs side by side; the executions in their order."""
        return [future.result() for future in [self.submit(job) for job in jobs]]

    def close(self, *, finish: bool = True) -> None:
        """End all workers; returns when the runs that have begun are over. May be called again.

        Args:
            finish: run what waits, first; otherwise those futures are cancelled.
        """
        self._stop(finish)
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join()

    def __enter__(self) -> Pool:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close(finish=error is None)

    def _check_owner(self) -> None:
        if os.getpid() != self._owner:
            raise PoolClosed("this pool belongs to the process that forked; make one of your own")

    def _stop(self, finish: bool) -> None:
        """Take no more jobs, and let the workers end."""
        self._check_owner()
        with self._taken:
            self._closed = True
            dropped = [] if finish else list(self._jobs)
            if not finish:
                self._jobs.clear()
            self._arrived.notify_all()
            self._taken.notify_all()
        for _, future in dropped:
            future.cancel()

    def _next(self) -> tuple[Job, Future[Execution]] | None:
        """The job that has waited longest; None when the pool is closed and all are done."""
        with self._arrived:
            while not self._jobs:
                if self._closed:
                    return None
                self._arrived.wait()
            self._taken.notify()
            return self._jobs.popleft()

    def _work(self, slot: Slot) -> None:
        try:
            while (item := self._next()) is not None:
                job, future = item
                if not future.set_running_or_notify_cancel():
                    continue
                try:
                    future.set_result(slot.run(job))
                except (FlexMGError, OSError) as error:
                    # No zygote starts, or no descriptor is left for its files.
                    future.set_result(infra_error(f"{type(error).__name__}: {error}"))
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
            # Without waiting: the kernel ends each zygote with the thread that started it.
            pool._stop(finish=False)


def _fresh_lock() -> None:
    global _making
    _making = threading.Lock()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_fresh_lock)
