"""Building an environment once more, here or in another process: from its spec, or by pickle."""

from __future__ import annotations

import importlib.util
import json
import os
import pickle
import pickletools
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from flexmg.errors import ConformanceError, UnregisteredEnv
from flexmg.game import FlexMarkovGame
from flexmg.registry import EnvSpec, make, register, spec

from .trace import Trace, in_order, play

CHILD = (
    "import json, sys; sys.path[:] = json.loads(open(sys.argv[1], encoding='utf-8').read());"
    "from flexmg.testing.blueprint import replay_all; replay_all(sys.argv[2], sys.argv[3])"
)
PATIENCE = 600  # seconds for another process


@dataclass(frozen=True)
class Blueprint:
    """How to build an environment again.

    Args:
        spec: what its id stands for; None to unpickle it.
        kwargs: those given to ``flexmg.make``.
        pickled: the environment itself, when it has no spec.
    """

    spec: EnvSpec | None
    kwargs: dict[str, Any]
    pickled: bytes = b""

    @classmethod
    def of(cls, game: FlexMarkovGame) -> Blueprint:
        """The blueprint of a game.

        Raises:
            ConformanceError: it has no spec and cannot be pickled.
        """
        if game.spec is not None:
            return cls(spec(game.spec.id), dict(game.spec.kwargs))
        try:
            return cls(None, {}, pickle.dumps(game))
        except Exception as error:
            raise ConformanceError(
                f"rebuilding: the environment has no spec and cannot be pickled ({error}); "
                "register it and make it with flexmg.make, or keep lambdas and open files out of it"
            ) from error

    def modules(self) -> dict[str, str | None]:
        """The loaded modules that the environment takes something from, and their files.

        ``__main__``, the running script or notebook, is out of reach of other processes.
        """
        parcels = [self.pickled] if self.pickled else []
        try:
            parcels.append(pickle.dumps(self))
        except Exception:
            return {}  # whoever sends it somewhere says why it cannot be sent
        named = {
            argument
            for parcel in parcels
            for _, argument, _ in pickletools.genops(parcel)
            if isinstance(argument, str) and argument in sys.modules
        }
        return {name: getattr(sys.modules[name], "__file__", None) for name in sorted(named)}

    def build(self) -> FlexMarkovGame:
        """The environment once more.

        Raises:
            ConformanceError: it cannot be built again.
        """
        try:
            if self.spec is None:
                return pickle.loads(self.pickled)
            return make(self.spec.id, **self.kwargs)
        except Exception as error:
            raise ConformanceError(
                f"rebuilding: {type(error).__name__}: {error}; an environment must be built again "
                "from its spec, or by pickle"
            ) from error


def replay_elsewhere(blueprint: Blueprint, traces: Sequence[Trace], hash_seed: int) -> list[Trace]:
    """Play recorded episodes in another process, global generators disturbed between steps.

    Args:
        blueprint: of the environment.
        traces: the episodes; their actions are played again.
        hash_seed: ``PYTHONHASHSEED`` there.

    Raises:
        ConformanceError: the environment cannot be sent there, or the process failed.
    """
    episodes = [(trace.name, trace.seed, trace.actions) for trace in traces]
    try:
        parcel = pickle.dumps((blueprint.modules(), pickle.dumps((blueprint, episodes))))
    except Exception as error:
        raise ConformanceError(
            f"rebuilding: the environment cannot be sent to another process: {error}"
        ) from error
    with tempfile.TemporaryDirectory(prefix="flexmg-check-") as folder:
        path, job, result = (Path(folder) / name for name in ("path", "job", "result"))
        path.write_text(json.dumps(sys.path), encoding="utf-8")
        job.write_bytes(parcel)
        try:
            done = subprocess.run(
                [sys.executable, "-c", CHILD, str(path), str(job), str(result)],
                env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=PATIENCE,
            )
        except subprocess.TimeoutExpired as error:
            raise ConformanceError(
                f"determinism: episodes replayed in another process took over {PATIENCE} s"
            ) from error
        if done.returncode or not result.exists():
            reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
            raise ConformanceError(
                f"determinism: the episodes cannot be played in another process: {reason}"
            )
        answers = json.loads(result.read_text(encoding="utf-8"))
    return [Trace(**answer) for answer in answers]


def replay_all(job: str, result: str) -> None:
    """What the other process does: build the environment, play, write the traces down."""
    modules, parcel = pickle.loads(Path(job).read_bytes())
    for name, file in modules.items():
        _import(name, file)
    blueprint, episodes = pickle.loads(parcel)
    if blueprint.spec is not None:
        try:
            spec(blueprint.spec.id)
        except UnregisteredEnv:
            found = blueprint.spec
            register(
                found.id,
                found.entry_point,
                kwargs=found.kwargs,
                description=found.description,
                requires=found.requires,
            )
    game = blueprint.build()
    answers = []
    for name, seed, actions in episodes:
        recorded = Trace(name, seed, actions=list(actions))
        trace = play(
            game,
            name,
            seed,
            recorded.recorded(beyond),
            choose=in_order(recorded),
            disturbed=True,
        )
        answers.append(vars(trace))
    Path(result).write_text(json.dumps(answers), encoding="utf-8")


def _import(name: str, file: str | None) -> None:
    """Import a module by its name, else (a test module that pytest imported ...) from its file."""
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        found = importlib.util.spec_from_file_location(name, file) if file else None
        if found is None or found.loader is None:
            return  # unpickling says what lacks, if anything does
        # Whoever imports "a.b" is given "a", which has no file here.
        sys.modules.setdefault(name.partition(".")[0], ModuleType(name.partition(".")[0]))
        module = sys.modules[name] = importlib.util.module_from_spec(found)
        found.loader.exec_module(module)


def beyond(game: FlexMarkovGame, agent: str, turn: int) -> str:
    """What an agent writes where a replay asks for more turns than the record has."""
    del game
    return f"turn {turn} of {agent}, which the recorded episode does not have"
