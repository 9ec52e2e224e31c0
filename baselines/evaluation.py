"""How good is a team? Plays problems and counts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from flexmg.baselines.accuracy import clustered_interval, pass_at_k, powers_up_to
from flexmg.baselines.generation.protocol import Engine
from flexmg.baselines.models.team import Team
from flexmg.baselines.rollout.collector import Collector, RolloutSettings
from flexmg.baselines.rollout.turns import Batch, Episode, SampledTurn


@dataclass(frozen=True, slots=True)
class RoleReport:
    """What the turns of one role looked like.

    Args:
        turns: how many there were.
        tokens: mean length of an action.
        fallback: share of actions that the workflow's parse rule could not read.
        cut: share of actions that ended at the token limit.
        empty: share of actions without any text.
        truncated: share of prompts that lost tokens.
    """

    turns: int
    tokens: float
    fallback: float
    cut: float
    empty: float
    truncated: float


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The result of :func:`evaluate`.

    Args:
        accuracy: share of graded episodes that are correct; NaN when none was graded.
        interval: its 95 % interval, (low, high), with problems as clusters: see
            :func:`flexmg.baselines.accuracy.clustered_interval`.
        n: graded episodes. ``infra_errors`` were not graded, and are in no figure.
        score: mean score of graded episodes.
        pass_at: k -> pass@k, unbiased, for k = 1, 2, 4 ... and the samples per problem.
        statuses: how many episodes ended with each status, infra errors included.
        calls: mean number of actions per graded episode.
        tokens: mean generated tokens per graded episode, over all agents.
        prompt_tokens: mean tokens read, counted anew for every action.
        critical_path: mean of :func:`critical_path`.
        roles: per role.
        per_problem: accuracy on each problem, in the order asked for; None where every
            episode was an infra error.
        episodes: the episodes.
    """

    accuracy: float
    interval: tuple[float, float]
    n: int
    infra_errors: int
    score: float
    pass_at: dict[int, float]
    statuses: dict[str, int]
    calls: float
    tokens: float
    prompt_tokens: float
    critical_path: float
    roles: dict[str, RoleReport]
    per_problem: list[float | None]
    episodes: Batch


def evaluate(
    env: str | Callable[[], Any],
    env_kwargs: Mapping[str, Any] | None,
    team: Team,
    problems: Sequence[int],
    key: tuple[int, ...],
    *,
    samples: int = 1,
    settings: RolloutSettings | None = None,
    engine: Engine | None = None,
) -> Evaluation:
    """Play problems with a team and report how it does.

    Args:
        env: id of an environment, or a function that makes one.
        env_kwargs: for ``flexmg.make``.
        team: who plays; it is not changed.
        problems: indices in the environment's source.
        key: non-negative integers; all randomness comes from them.
        samples: episodes per problem.
        settings: how episodes are played; by default sampling at temperature 1.
        engine: what generates.

    Raises:
        InfraError: every episode failed.
    """
    settings = replace(settings or RolloutSettings(), states=False)
    collector = Collector(env, team, engine, settings, env_kwargs)
    batch = collector.collect(problems, samples, key)
    return summarise(batch, samples)


def summarise(batch: Batch, samples: int) -> Evaluation:
    """The evaluation of episodes that have been played, ``samples`` of each problem."""
    graded = [episode for episode in batch.episodes if not episode.infra_error]
    outcomes = [
        [e.status == "correct" for e in batch.episodes[i : i + samples] if not e.infra_error]
        for i in range(0, len(batch.episodes), samples)
    ]
    return Evaluation(
        accuracy=_mean([right for own in outcomes for right in own]),
        interval=clustered_interval(outcomes),
        n=len(graded),
        infra_errors=len(batch.episodes) - len(graded),
        score=_mean([episode.score or 0.0 for episode in graded]),
        statuses=dict(Counter(episode.status for episode in batch.episodes)),
        pass_at={k: pass_at_k(outcomes, k) for k in powers_up_to(samples)},
        calls=_mean([len(episode.turns) for episode in graded]),
        tokens=_mean([sum(len(t.action_ids) for t in episode.turns) for episode in graded]),
        prompt_tokens=_mean([sum(len(t.prompt_ids) for t in e.turns) for e in graded]),
        critical_path=_mean([critical_path(episode) for episode in graded]),
        roles=role_reports([turn for episode in graded for turn in episode.turns]),
        per_problem=[_mean(own) if own else None for own in outcomes],
        episodes=batch,
    )


def role_reports(turns: Sequence[SampledTurn]) -> dict[str, RoleReport]:
    """What the turns of each role looked like, by role."""
    by_role: dict[str, list[SampledTurn]] = {}
    for turn in turns:
        by_role.setdefault(turn.role, []).append(turn)
    return {
        role: RoleReport(
            turns=len(own),
            tokens=_mean([len(turn.action_ids) for turn in own]),
            fallback=_mean([bool(turn.fallback) for turn in own]),
            cut=_mean([turn.ended == "length" for turn in own]),
            empty=_mean([not turn.text.strip() for turn in own]),
            truncated=_mean([turn.prompt_truncated > 0 for turn in own]),
        )
        for role, own in by_role.items()
    }


def critical_path(episode: Episode) -> int:
    """Generated tokens on the longest chain through D: what a parallel deployment waits for.

    Within an env step an action begins when all actions that it sees are there; a step
    begins when the one before is over. (Reading prompts is not counted.)
    """
    total = 0
    for step in dict.fromkeys(turn.step for turn in episode.turns):
        finished: dict[str, int] = {}
        for turn in (turn for turn in episode.turns if turn.step == step):
            begun = max((finished.get(agent, 0) for agent in turn.sees), default=0)
            finished[turn.agent] = begun + len(turn.action_ids)
        total += max(finished.values())
    return total


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else math.nan
