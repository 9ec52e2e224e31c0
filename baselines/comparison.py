"""What the base model does alone with as many calls as a team makes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import flexmg
from flexmg.baselines.accuracy import clustered_interval
from flexmg.baselines.evaluation import evaluate
from flexmg.baselines.models.team import Team
from flexmg.baselines.rollout.collector import RolloutSettings
from flexmg.baselines.rollout.turns import Episode
from flexmg.errors import UnregisteredEnv

# What describes problems and their grading, and so means the same in another workflow.
OF_PROBLEMS = (
    *("source", "split", "level", "limit", "mapping", "on_malformed", "source_options"),
    *("sandbox", "score"),
)


def single_agent(
    env: str,
    env_args: Mapping[str, Any],
    make_team: Callable[[list[str]], Team],
    problems: Sequence[int],
    key: tuple[int, ...],
    *,
    calls: float,
    settings: RolloutSettings,
) -> dict[str, Any] | None:
    """Let one agent answer the same problems by itself, several times each.

    Args:
        env: id of the team's environment, ``DOMAIN-WORKFLOW-vN``; alone is ``DOMAIN-single-vN``.
        env_args: of the team's environment.
        make_team: makes the team of one, for given agents.
        problems: indices in the source.
        key: all randomness comes from it.
        calls: calls per problem that the team made; rounded up.
        settings: how episodes are played.

    Returns:
        ``calls`` per problem, ``single_agent`` (accuracy of a single answer, and its
        interval, over all of them) and ``majority_vote`` (accuracy of the answer that most
        of them hold by the environment's own comparison; of equals the first given), with
        mean ``tokens`` per problem; None where there is no such environment.
    """
    alone = _single(env)
    if alone is None:
        return None
    kept = {name: value for name, value in env_args.items() if name in OF_PROBLEMS}
    game = flexmg.make(alone, **kept).unwrapped
    count = max(1, math.ceil(calls - 1e-9))
    result = evaluate(
        alone,
        kept,
        make_team(game.possible_agents),
        problems,
        key,
        samples=count,
        # Equal answers of a greedy agent are one answer.
        settings=replace(settings, greedy=False),
    )
    episodes = result.episodes.episodes
    votes = [
        majority(game, problem, episodes[i * count : (i + 1) * count])
        for i, problem in enumerate(problems)
    ]
    known = [[vote] for vote in votes if vote is not None]
    return {
        "calls": count,
        "tokens": result.tokens * count,
        "single_agent": {"accuracy": result.accuracy, "interval": result.interval},
        "majority_vote": {
            "accuracy": sum(vote for (vote,) in known) / len(known) if known else math.nan,
            "interval": clustered_interval(known),
        },
    }


def majority(game: Any, problem: int, episodes: Sequence[Episode]) -> bool | None:
    """Whether the answer that most episodes hold is right; None when none was graded."""
    graded = [episode for episode in episodes if not episode.infra_error]
    if not graded:
        return None
    posed = game.source.get(problem)
    domain = game.workflow.domain
    keys = [domain.answer_key(posed, episode.turns[-1].text) for episode in graded]
    votes = Counter(key for key in keys if key is not None)
    if not votes:
        return False
    # Counter keeps the order of first votes, and max() the first of equals.
    winner = max(votes, key=votes.__getitem__)
    return graded[keys.index(winner)].status == "correct"


def _single(env: str) -> str | None:
    name = f"{env.partition('-')[0]}-single-{env.rpartition('-')[2]}"
    try:
        flexmg.spec(name)
    except UnregisteredEnv:
        return None
    return name
