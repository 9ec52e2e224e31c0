"""The training loop: collect, learn, log, checkpoint; resumable at any point.

Nothing random is carried from one iteration to the next: every draw is keyed by (seed,
iteration). A run that was killed and resumed therefore continues exactly as it would have
(same machine, same number of threads; on a GPU up to what its kernels guarantee).

A run folder::

    config.yaml        all settings
    metrics.jsonl      one row per iteration
    validation.jsonl   one row per look at the validation problems, if any
    evaluation.json    held-out accuracy before and after
    diagnostics.jsonl  one row per look at gradients and texts
    outcome.json       what ended the run, and what it cost
    checkpoint/        the last one, with every adapter as a PEFT folder
    checkpoint-best/   that of the best look, if there are any
    episodes/          transcripts (JSON lines): before, after, and some of each iteration
    report.html        curves, table, three replayable episodes
"""

from __future__ import annotations

import copy
import dataclasses
import json
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import flexmg
from flexmg.baselines.algorithms.learner import Learner
from flexmg.baselines.algorithms.registry import algorithm, configure
from flexmg.baselines.diagnostics import look as diagnostics
from flexmg.baselines.diagnostics.cliff import Cliff
from flexmg.baselines.diagnostics.updates import Updates
from flexmg.baselines.evaluation import evaluate
from flexmg.baselines.generation.endpoint import EndpointSettings
from flexmg.baselines.rollout.collector import AgentSampling, Collector, RolloutSettings
from flexmg.baselines.rollout.turns import Batch
from flexmg.baselines.rollout.workers import (
    Collects,
    Recipe,
    RolloutWorkers,
    cores,
    fastest,
)
from flexmg.baselines.training import checkpoint, files, report, validation
from flexmg.baselines.training.config import RunConfig
from flexmg.baselines.training.loggers import Logger, figures, open_loggers
from flexmg.baselines.training.problems import Curriculum, held_out_problems, other_problems
from flexmg.baselines.training.progress import Progress
from flexmg.baselines.training.records import (
    METRICS,
    OUTCOME,
    Row,
    RunRecords,
    describe,
    evaluation_row,
    plain,
)
from flexmg.baselines.training.teams import BEST, CHECKPOINT, build_team, use_threads
from flexmg.errors import InvalidArgument

# Streams of a run's keys: training iterations count from 1, evaluation has its own.
# (validation's is 2).
TRAINING, EVALUATING, MEASURING = 0, 1, 3
COSTS = ("tokens", "episodes", "seconds")


class Trainer:
    """One run in one folder.

    Args:
        config: the settings.
        folder: of the run; created if need be.
        progress: where to report to.

    Raises:
        FlexMGError: an environment, model, algorithm or setting that cannot be used.
    """

    def __init__(self, config: RunConfig, folder: Path, progress: Progress) -> None:
        use_threads(config)
        self.config = config
        self.folder = folder
        self.progress = progress
        learner = algorithm(config.algorithm)
        settings = configure(config.algorithm, config.algorithm_args)
        self.game = flexmg.make(config.env, **config.env_args).unwrapped
        self.team = build_team(config, self.game.possible_agents)
        if not self.team.policies:
            raise InvalidArgument(
                "no policy of this team learns: all are frozen or guests; leave one out of freeze, "
                "or use `flexmg eval`"
            )
        self.algorithm = learner(self.team, settings, temperature=config.temperature)
        self.held_out_args = other_problems(config.env_args, config.held_out)
        self.held_out: list[int] = []
        hashes: set[str] = set()
        if config.eval_problems:
            source = flexmg.make(config.env, **self.held_out_args).unwrapped.source
            self.held_out = held_out_problems(source, config.eval_problems)
            hashes = {source.get(index).content_hash for index in self.held_out}
        self.settings = RolloutSettings(
            temperature=config.temperature,
            games=config.games,
            max_turns=config.max_turns,
            max_prompt_tokens=config.max_prompt_tokens,
            transcripts=True,
            agents={name: AgentSampling(stop=tuple(own)) for name, own in config.stop.items()},
            endpoint=EndpointSettings(
                config.endpoint_timeout, config.endpoint_retries, config.endpoint_concurrency
            ),
        )
        self._workers: RolloutWorkers | None = None
        self.records = RunRecords(folder)
        self.validation = validation.Validation(
            config, self.team, self.settings, self.records, hashes
        )
        self.curriculum = Curriculum(
            self.game.source, config.seed, config.problems, hashes | self.validation.hashes
        )
        self.collector: Collects = self._collector()
        self.updates = Updates(self.team)
        self.finished = 0
        self.totals = dict.fromkeys(COSTS, 0.0)
        self.loggers: list[Logger] = []
        self._unsaved: tuple[int, dict[str, Any]] | None = None

    def _collector(self) -> Collects:
        """In this process or in several, as configured; ``auto`` is settled here."""
        config = self.config
        own = Collector(config.env, self.team, settings=self.settings, env_kwargs=config.env_args)
        wanted = config.rollout_workers
        count = cores() if wanted == "auto" else wanted
        alone = wanted == "auto" and self.team.base.device.type != "cpu"
        if count == 1 or alone:
            self.config = dataclasses.replace(config, rollout_workers=1)
            return own
        # Learners alone need critics, and every worker has one thread.
        lean = dataclasses.replace(config, threads=1, algorithm="grpo", algorithm_args={})
        make = partial(build_team, lean, list(self.game.possible_agents))
        recipe = Recipe(make, config.env, config.env_args, self.settings)
        self.progress.phase("starting rollout workers")
        workers = RolloutWorkers(self.team, recipe, count)
        if wanted == "auto":
            self.progress.phase("measuring rollout workers")
            problems = self.curriculum(1)[: 8 * count]
            key = (config.seed, MEASURING)
            better, one, several = fastest(own, workers, problems, config.samples, key)
            self.progress.note(
                f"rollouts: {one:.1f} s in one process, {several:.1f} s in {count}; "
                f"{count if better else 1} it is"
            )
            self.config = dataclasses.replace(config, rollout_workers=count if better else 1)
            if not better:
                workers.close()
                return own
        self._workers = workers
        return workers

    def resume(self) -> int:
        """Continue from the last checkpoint, or from the beginning if there is none.

        Returns:
            The number of finished iterations.

        Raises:
            CheckpointError: the checkpoint is broken, or of another team.
        """
        if checkpoint.exists(self.folder / CHECKPOINT):
            self.finished, state = checkpoint.load(self.folder / CHECKPOINT)
            self._restore(state)
        for name in (METRICS, validation.FILE, diagnostics.FILE):
            self.records.forget_after(self.finished, name)
        rows = self.records.rows()
        self.updates.resume(rows)
        for row in rows[-1:]:
            self.totals = {name: row[f"total_{name}"] for name in COSTS}
        return self.finished

    def run(self) -> dict[str, Row]:
        """Train until a limit is reached, or accuracy has fallen off a cliff.

        Returns:
            The evaluations ``before`` and ``after``; none without held-out problems.

        Raises:
            CheckpointError: something cannot be written.
            KeyboardInterrupt: the user stopped it; every finished iteration is saved.
            FlexMGError: whatever else goes wrong; the last checkpoint is intact.
        """
        self.records.replace(files.FILE, files.text(self.config))
        self.loggers = open_loggers(self.config.log, self.folder, dataclasses.asdict(self.config))
        if self.curriculum.excluded:
            self.progress.note(
                f"{self.curriculum.excluded} training problems are held out and not trained on"
            )
        if self.held_out and "before" not in self.records.evaluations():
            self._evaluate("before")
        try:
            ended = self._train()
        except KeyboardInterrupt:
            self._rescue()
            raise
        finally:
            for logger in self.loggers:
                logger.close()
            if self._workers is not None:
                self._workers.close()
        done = self.records.evaluations().get("after", {}).get("iteration")
        if self.held_out and done != self.finished:
            self._evaluate("after")
        self._conclude(ended)
        self.progress.phase("report")
        report.write(self.folder, self.config)
        return self.records.evaluations()

    def _train(self) -> str | Cliff:
        """Iterate; what ended it."""
        while True:
            limit = self.config.reached(self.finished, self.totals)
            ended = limit or (self.validation.cliff() if self.config.stop_on_cliff else None)
            if ended:
                if self._unsaved is not None:
                    self._save(CHECKPOINT)
                return ended
            row = self._iteration(self.finished + 1)
            # One assignment: an interrupt comes before it or after it, never in between.
            self._unsaved = (self.finished + 1, copy.deepcopy(self._state()))
            self.finished += 1
            self.records.add(row)
            if self.validation.due(self.finished):
                self.progress.phase("validation")
                look = self.validation.look(self.finished)
                row = {**row, "validation_accuracy": look["accuracy"]}
                if self.validation.best() == self.finished:
                    self._save(BEST)
            if self.finished % self.config.checkpoint_every == 0:
                self._save(CHECKPOINT)
            self.progress.iteration(row)
            for logger in self.loggers:
                logger.log(self.finished, figures(row))

    def _iteration(self, number: int) -> Row:
        started = perf_counter()
        key = (self.config.seed, TRAINING, number)
        self.progress.phase("rollouts")
        problems = self.curriculum(number)
        batch = self.collector.collect(problems, self.config.samples, key)
        played = perf_counter()
        fresh: list[Batch] = []

        def collect(place: int) -> Batch:
            self.progress.phase(f"rollouts (fresh batch {place})")
            # The algorithm's own draws use words after the key, this one a number.
            again = self.collector.collect(problems, self.config.samples, (*key, place))
            fresh.append(again)
            self.progress.phase("update")
            return again

        self.progress.phase("update")
        look = self._look(number)
        with look or nullcontext():
            metrics = self.algorithm.update(batch, key, collect)
        learned = perf_counter()
        steps = self.updates.step()
        if look is not None:
            row = look.row(number, batch, steps, self.updates.accumulation())
            self.records.add(row, diagnostics.FILE)
        self.records.add_episodes(
            f"iteration-{number:05d}", batch.episodes[: self.config.logged_episodes]
        )
        described = describe(batch)
        for extra in map(describe, fresh):
            # Their accuracy is of a team in the middle of an update; what they cost counts.
            for name in ("tokens", "episodes", "infra_errors"):
                described[name] += extra[name]
        row = {
            "iteration": number,
            **described,
            "seconds": learned - started,
            "rollout_seconds": played - started,
            "update_seconds": learned - played,
            "tokens_per_s": described["tokens"] / (learned - started),
        }
        if spent := self.collector.usage():
            row["guests"] = {name: dataclasses.asdict(usage) for name, usage in spent.items()}
        self.totals = {name: self.totals[name] + row[name] for name in COSTS}
        totals = {f"total_{name}": value for name, value in self.totals.items()}
        return {**row, **totals, "steps": steps, **metrics}

    def _look(self, number: int) -> diagnostics.Look | None:
        """Diagnostics of this iteration, where they are due and the algorithm can be observed."""
        every = self.config.diagnose_every
        if every and number % every == 0 and isinstance(self.algorithm, Learner):
            return diagnostics.Look(self.algorithm)
        return None

    def _state(self) -> dict[str, Any]:
        return {"team": self.team.state(), "algorithm": self.algorithm.state()}

    def _restore(self, state: dict[str, Any]) -> None:
        self.team.load_state(state["team"])
        self.algorithm.load_state(state["algorithm"])

    def _save(self, name: str) -> None:
        self.progress.phase("checkpoint")
        checkpoint.save(self.folder / name, self._state(), self.finished, self.team.save_adapters)
        if name == CHECKPOINT:
            self._unsaved = None

    def _rescue(self) -> None:
        """Save the last finished iteration, whatever an unfinished one has done since."""
        if self._unsaved is not None:
            self.finished, state = self._unsaved
            self._restore(state)
            self._save(CHECKPOINT)

    def _conclude(self, ended: str | Cliff) -> None:
        outcome: Row = {"ended_by": ended, "iterations": self.finished, "totals": self.totals}
        if isinstance(ended, Cliff):
            outcome |= {"ended_by": "cliff", "cliff": dataclasses.asdict(ended)}
            self.progress.note(
                f"stopped at a cliff: validation accuracy fell from {ended.high:.1%} (iteration "
                f"{ended.peak}) to {ended.low:.1%}; {BEST} holds the best team"
            )
        elif ended != "iterations":
            self.progress.note(
                f"ended by {ended} = {getattr(self.config, ended)} after iteration {self.finished}"
            )
        text = json.dumps(plain(outcome), indent=1, allow_nan=False)
        self.records.replace(OUTCOME, text + "\n")

    def _evaluate(self, name: str) -> None:
        self.progress.phase(f"evaluation {name}")
        result = evaluate(
            self.config.env,
            self.held_out_args,
            self.team,
            self.held_out,
            # The same key before and after: equal luck, so that the difference is training.
            (self.config.seed, EVALUATING),
            samples=self.config.eval_samples,
            settings=self.settings,
        )
        self.records.add_episodes(name, result.episodes.episodes)
        self.records.add_evaluation(name, evaluation_row(result, self.finished))


def is_run(folder: Path) -> bool:
    """Whether a folder holds the beginnings of a run."""
    return any((folder / name).exists() for name in (files.FILE, CHECKPOINT, METRICS))
