"""Rollouts in several processes of one thread each.

Small matrix products gain nothing from a second thread and lose much beside a busy
neighbour; a second *process* plays half of the problems meanwhile. Every process has its own
base model, engine and games. What crosses the boundary is plain, picklable data: problems,
a key and the adapters as tensors one way, episodes the other. A worker on another machine
would get and give the same.

Who plays a problem decides nothing: every draw is keyed by problem, sample, agent and turn.
Episodes equal those of one process but for the rounding of other batches (see
``LocalEngine``).
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from time import perf_counter
from typing import Any, Protocol

from flexmg.baselines.generation.endpoint import Usage
from flexmg.baselines.models.team import Team
from flexmg.baselines.rollout.collector import Collector, RolloutSettings
from flexmg.baselines.rollout.turns import Batch, Episode
from flexmg.errors import FlexMGError, InfraError, InvalidArgument

# A process is worth its memory when it saves at least this share of the time.
WORTH = 0.9
CLOSING_SECONDS = 5.0


class Collects(Protocol):
    """What a trainer needs of a collector, in one process or several."""

    def collect(self, problems: Sequence[int], samples: int, key: tuple[int, ...]) -> Batch:
        """See :meth:`flexmg.baselines.rollout.collector.Collector.collect`."""
        ...

    def usage(self) -> dict[str, Usage]:
        """What each endpoint has cost since the last call."""
        ...


@dataclass(frozen=True)
class Recipe:
    """What a worker is made of; picklable.

    Args:
        make_team: makes a team with the policies of the learner's; its critics are not used.
        env: id of the environment. ``env_args``: for ``flexmg.make``.
        settings: how episodes are played.
        prepare: called first, such as to register an environment.
    """

    make_team: Callable[[], Team]
    env: str
    env_args: Mapping[str, Any]
    settings: RolloutSettings
    prepare: Callable[[], None] | None = None


class RolloutWorkers:
    """Collects like a ``Collector``, in processes that live until :meth:`close`.

    Args:
        team: the learner's; its adapters are sent before every collection.
        recipe: of a worker.
        count: number of processes.

    Raises:
        InfraError: a process cannot be started.
    """

    def __init__(self, team: Team, recipe: Recipe, count: int) -> None:
        if count < 1:
            raise InvalidArgument(f"rollouts need at least 1 worker, not {count}")
        self.team = team
        self._usage: dict[str, Usage] = {}
        # Never a fork: torch's threads do not survive one.
        context = multiprocessing.get_context("spawn")
        self._workers: list[tuple[Any, Connection]] = []
        threads = {name: os.environ.get(name) for name in THREADS}
        os.environ.update(dict.fromkeys(THREADS, "1"))
        try:
            for number in range(count):
                ours, theirs = context.Pipe()
                process = context.Process(
                    target=_work, args=(theirs, recipe), name=f"rollouts-{number}", daemon=True
                )
                process.start()
                theirs.close()
                self._workers.append((process, ours))
        finally:
            for name, value in threads.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value
        try:
            for number in range(count):
                self._receive(number)
        except FlexMGError:
            self.close()
            raise

    def collect(self, problems: Sequence[int], samples: int, key: tuple[int, ...]) -> Batch:
        """See :meth:`flexmg.baselines.rollout.collector.Collector.collect`.

        Raises:
            InfraError: a worker died; or every episode failed.
        """
        state = self.team.state()
        count = min(len(self._workers), len(problems))
        for number in range(count):
            order = (list(problems[number::count]), samples, key)
            self._send(number, (order, state["policies"], state["versions"]))
        # Every answer is fetched, also after a failure: none may be left for the next call.
        answers, failures = [], []
        for number in range(count):
            try:
                answers.append(self._receive(number))
            except FlexMGError as error:
                failures.append(error)
        if failures:
            raise failures[0]
        played: dict[int, list[Episode]] = {}
        for number, (own, usage) in enumerate(answers):
            for place, problem in enumerate(range(number, len(problems), count)):
                played[problem] = own[place * samples : (place + 1) * samples]
            for name, spent in usage.items():
                self._usage.setdefault(name, Usage()).add(spent)
        return Batch([one for problem in sorted(played) for one in played[problem]])

    def usage(self) -> dict[str, Usage]:
        """What each endpoint has cost since the last call."""
        spent, self._usage = self._usage, {}
        return spent

    def close(self) -> None:
        """End all processes."""
        for _, connection in self._workers:
            connection.close()
        for process, _ in self._workers:
            process.join(CLOSING_SECONDS)
            if process.is_alive():
                process.kill()
                process.join()
        self._workers = []

    def _send(self, number: int, message: Any) -> None:
        process, connection = self._workers[number]
        try:
            connection.send(message)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise _dead(number, process) from error

    def _receive(self, number: int) -> Any:
        process, connection = self._workers[number]
        try:
            kind, content = connection.recv()
        except (EOFError, ConnectionResetError) as error:
            raise _dead(number, process) from error
        if kind == "error":
            raise pickle.loads(content)
        return content


THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class DeadWorker(InfraError):
    """A rollout process ended by itself, or was killed."""


def _dead(number: int, process: Any) -> DeadWorker:
    process.join(CLOSING_SECONDS)
    code = process.exitcode
    how = f"by signal {-code}" if code is not None and code < 0 else f"with exit code {code}"
    return DeadWorker(
        f"rollout worker {number} ended {how} (a lack of memory kills with signal 9); its episodes "
        "are lost, and nothing was learnt from the others: continue with --resume, with fewer "
        "rollout workers if memory is short"
    )


def _work(connection: Connection, recipe: Recipe) -> None:
    """A worker's life: make a team, then play what is asked until the line is cut."""
    import signal

    import torch

    # Ctrl-C reaches the whole group; the trainer decides what becomes of it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)
    try:
        if recipe.prepare is not None:
            recipe.prepare()
        team = recipe.make_team()
        collector = Collector(
            recipe.env, team, settings=recipe.settings, env_kwargs=recipe.env_args
        )
        connection.send(("ready", None))
    except Exception as error:
        connection.send(("error", _packed(error)))
        return
    while True:
        try:
            order, policies, versions = connection.recv()
        except (EOFError, OSError):
            return
        try:
            for policy, state in policies.items():
                team.adapters_of(policy).load_state(policy, state)
            team.versions.update(versions)
            batch = collector.collect(*order)
            answer: tuple[str, Any] = ("episodes", (batch.episodes, collector.usage()))
        except Exception as error:
            answer = ("error", _packed(error))
        try:
            connection.send(answer)
        except (BrokenPipeError, OSError):
            return


def _packed(error: Exception) -> bytes:
    """An error as bytes; one that cannot travel, or is not ours, as an InfraError."""
    if isinstance(error, FlexMGError):
        try:
            return pickle.dumps(error)
        except (pickle.PicklingError, TypeError, AttributeError):
            pass
    lines = "".join(traceback.format_exception(error)).strip().splitlines()
    return pickle.dumps(
        InfraError(f"a rollout worker failed with {lines[-1]} ({lines[-3].strip()})")
    )


def cores() -> int:
    """CPU cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def fastest(
    one: Collects, several: Collects, problems: Sequence[int], samples: int, key: tuple[int, ...]
) -> tuple[bool, float, float]:
    """Whether several processes are worth it, measured by playing the same problems twice.

    Args:
        one: in this process.
        several: in processes of their own.
        problems: to play.
        samples: episodes of each.
        key: of the draws.

    Returns:
        The verdict, and the seconds of one process and of several.
    """
    seconds = []
    for collector in (one, several):
        # The first games and caches are not what is to be measured.
        collector.collect(problems[:2], 1, key)
        started = perf_counter()
        collector.collect(problems, samples, key)
        seconds.append(perf_counter() - started)
    return seconds[1] < WORTH * seconds[0], seconds[0], seconds[1]
