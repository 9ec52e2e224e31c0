"""The training loop: collect, learn, log, checkpoint; resumable at any point.

Nothing random is carried from one iteration to the next: every draw is keyed by (seed,
iteration). A run that was killed and resumed therefore continues exactly as it would have
(same machine, same number of threads; on a GPU up to what its kernels guarantee).

A run folder::

    config.yaml        all settings
    metrics.jsonl      one row per iteration
    evaluation.json    held-out accuracy before and after
    checkpoint/        the last one, with every adapter as a PEFT folder
    episodes/          transcripts (JSON lines): before, after, and some of each iteration
    report.html        curves, table, three replayable episodes
"""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import cast

import torch

import flexmg
from flexmg.baselines.algorithms.registry import algorithm, configure
from flexmg.baselines.evaluation import evaluate
from flexmg.baselines.models.adapters import LoraSettings
from flexmg.baselines.models.base import load_base
from flexmg.baselines.models.team import PolicyMap, Team, assign_policies
from flexmg.baselines.rollout.collector import Collector, RolloutSettings
from flexmg.baselines.rollout.turns import Batch
from flexmg.baselines.training import checkpoint, report
from flexmg.baselines.training.config import FILE as CONFIG
from flexmg.baselines.training.config import RunConfig
from flexmg.baselines.training.config import text as config_text
from flexmg.baselines.training.problems import Curriculum, held_out_problems, other_problems
from flexmg.baselines.training.progress import Progress
from flexmg.baselines.training.records import METRICS, Row, RunRecords, describe, evaluation_row

CHECKPOINT = "checkpoint"
# Streams of a run's keys: training iterations count from 1, evaluation has its own.
TRAINING, EVALUATING = 0, 1


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
        game = flexmg.make(config.env, **config.env_args).unwrapped
        self.team = build_team(config, game.possible_agents)
        self.algorithm = learner(self.team, settings, temperature=config.temperature)
        self.held_out_args = other_problems(config.env_args, config.held_out)
        self.held_out: list[int] = []
        hashes: set[str] = set()
        if config.eval_problems:
            source = flexmg.make(config.env, **self.held_out_args).unwrapped.source
            self.held_out = held_out_problems(source, config.eval_problems)
            hashes = {source.get(index).content_hash for index in self.held_out}
        self.curriculum = Curriculum(game.source, config.seed, config.problems, hashes)
        self.settings = RolloutSettings(
            temperature=config.temperature,
            games=config.games,
            max_turns=config.max_turns,
            max_prompt_tokens=config.max_prompt_tokens,
            transcripts=True,
        )
        self.collector = Collector(
            config.env, self.team, settings=self.settings, env_kwargs=config.env_args
        )
        self.records = RunRecords(folder)
        self.finished = 0

    def resume(self) -> int:
        """Continue from the last checkpoint, or from the beginning if there is none.

        Returns:
            The number of finished iterations.

        Raises:
            CheckpointError: the checkpoint is broken, or of another team.
        """
        if checkpoint.exists(self.folder / CHECKPOINT):
            self.finished, state = checkpoint.load(self.folder / CHECKPOINT)
            self.team.load_state(state["team"])
            self.algorithm.load_state(state["algorithm"])
        self.records.forget_after(self.finished)
        return self.finished

    def run(self) -> dict[str, Row]:
        """Train to the configured number of iterations.

        Returns:
            The evaluations ``before`` and ``after``; none without held-out problems.

        Raises:
            CheckpointError: something cannot be written.
            FlexMGError: whatever else goes wrong; the last checkpoint is intact.
        """
        self.records.replace(CONFIG, config_text(self.config))
        if self.curriculum.excluded:
            self.progress.note(
                f"{self.curriculum.excluded} training problems are held out and not trained on"
            )
        if self.held_out and "before" not in self.records.evaluations():
            self._evaluate("before")
        while self.finished < self.config.iterations:
            row = self._iteration(self.finished + 1)
            self.finished += 1
            self.records.add(row)
            if self._checkpoint_due():
                self._save()
            self.progress.iteration(row)
        done = self.records.evaluations().get("after", {}).get("iteration")
        if self.held_out and done != self.finished:
            self._evaluate("after")
        self.progress.phase("report")
        report.write(self.folder, self.config)
        return self.records.evaluations()

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
        metrics = self.algorithm.update(batch, key, collect)
        learned = perf_counter()
        self.records.add_episodes(
            f"iteration-{number:05d}", batch.episodes[: self.config.logged_episodes]
        )
        described = describe(batch)
        for extra in map(describe, fresh):
            # Their accuracy is of a team in the middle of an update; what they cost counts.
            for name in ("tokens", "episodes", "infra_errors"):
                described[name] += extra[name]
        return {
            "iteration": number,
            **described,
            "seconds": learned - started,
            "rollout_seconds": played - started,
            "update_seconds": learned - played,
            "tokens_per_s": described["tokens"] / (learned - started),
            **metrics,
        }

    def _checkpoint_due(self) -> bool:
        last = self.finished == self.config.iterations
        return last or self.finished % self.config.checkpoint_every == 0

    def _save(self) -> None:
        self.progress.phase("checkpoint")
        state = {"team": self.team.state(), "algorithm": self.algorithm.state()}
        checkpoint.save(self.folder / CHECKPOINT, state, self.finished, self.team.save_adapters)

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


def use_threads(config: RunConfig) -> None:
    """Give PyTorch as many CPU threads as the config says; see ``RunConfig.threads``."""
    threads = config.threads
    if threads is None:
        threads = 1 if config.model == "tiny" else 0
    if threads:
        torch.set_num_threads(threads)


def build_team(config: RunConfig, agents: list[str]) -> Team:
    """A fresh team as configured, for these agents.

    Raises:
        ModelError: the model cannot be loaded.
        InvalidArgument: a policy map that does not fit, or another bad setting.
    """
    policy_map = cast(PolicyMap, config.policies)
    policies = tuple(dict.fromkeys(assign_policies(agents, policy_map).values()))
    return Team(
        load_base(config.model, dtype=config.dtype, device=config.device),
        agents,
        policy_map=policy_map,
        critics=algorithm(config.algorithm).critics(policies),
        lora=LoraSettings(rank=config.lora_rank, alpha=config.lora_alpha),
        seed=config.seed,
    )


def load_team(config: RunConfig, folder: Path, agents: list[str]) -> Team:
    """The team of a run folder as its last checkpoint has it.

    Raises:
        CheckpointError: there is no checkpoint, it is broken, or of other agents.
    """
    _, state = checkpoint.load(folder / CHECKPOINT)
    team = build_team(config, agents)
    team.load_state(state["team"])
    return team


def is_run(folder: Path) -> bool:
    """Whether a folder holds the beginnings of a run."""
    return any((folder / name).exists() for name in (CONFIG, CHECKPOINT, METRICS))
