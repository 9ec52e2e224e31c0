"""How good is a team? Plays problems and counts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from flexmg.baselines.generation.protocol import Engine
from flexmg.baselines.models.team import Team
from flexmg.baselines.rollout.collector import Collector, RolloutSettings
from flexmg.baselines.rollout.turns import Batch, Episode, SampledTurn

Z95 = 1.96


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
        interval: 95 % Wilson score interval of the accuracy, (low, high). With several
            samples of a problem it counts problems, not episodes, as samples of one problem
            are alike: it is then on the wide side.
        n: graded episodes. ``infra_errors`` were not graded, and are in no figure.
        score: mean score of graded episodes.
        statuses: how many episodes ended with each status, infra errors included.
        tokens: mean generated tokens per graded episode, over all agents.
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
    statuses: dict[str, int]
    tokens: float
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
    per_problem = [
        _accuracy(batch.episodes[i : i + samples]) for i in range(0, len(batch.episodes), samples)
    ]
    return summarise(batch, per_problem)


def summarise(batch: Batch, per_problem: Sequence[float | None]) -> Evaluation:
    """The evaluation of episodes that have been played."""
    graded = [episode for episode in batch.episodes if not episode.infra_error]
    accuracy = _accuracy(graded)
    known = [value for value in per_problem if value is not None]
    return Evaluation(
        accuracy=math.nan if accuracy is None else accuracy,
        interval=wilson(math.nan if accuracy is None else accuracy, len(known)),
        n=len(graded),
        infra_errors=len(batch.episodes) - len(graded),
        score=_mean([episode.score or 0.0 for episode in graded]),
        statuses=dict(Counter(episode.status for episode in batch.episodes)),
        tokens=_mean([sum(len(t.action_ids) for t in episode.turns) for episode in graded]),
        roles=role_reports([turn for episode in graded for turn in episode.turns]),
        per_problem=list(per_problem),
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


def wilson(share: float, n: int, z: float = Z95) -> tuple[float, float]:
    """Wilson's score interval of a share among n (Wilson 1927); (0, 1) when n is 0.

    Unlike the share plus or minus z standard errors it stays within [0, 1] and says
    something at shares of 0 and 1.
    """
    if n == 0:
        return 0.0, 1.0
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)


def _accuracy(episodes: Sequence[Episode]) -> float | None:
    graded = [episode.status == "correct" for episode in episodes if not episode.infra_error]
    return _mean(graded) if graded else None


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else math.nan
