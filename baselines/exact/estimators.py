"""Bias, variance and improvement of gradient estimators and update schemes, on a game tree.

An estimator turns a group of episodes into advantages; its policy gradient is
``sum_k A_k grad log pi(a_k)``, averaged over the episodes of the group. On a tree its
expectation and covariance are sums over all episodes (or all pairs of them): no sampling.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from flexmg.baselines.algorithms.advantages import action_advantages
from flexmg.baselines.algorithms.grpo import Member, compare, group_labels
from flexmg.baselines.algorithms.protocol import Algorithm
from flexmg.baselines.algorithms.streams import agent_streams, central_stream
from flexmg.baselines.exact.team import TabularTeam
from flexmg.baselines.exact.tree import GameTree
from flexmg.baselines.rollout.turns import Batch, Episode

Floats = NDArray[np.float64]
# Of a group of episodes and their leaf numbers in the tree, one advantage per turn.
Estimator = Callable[[Sequence[Episode], Sequence[int]], Floats]


@dataclass(frozen=True, slots=True)
class Moments:
    """Of an estimator's gradient from one group, against the exact gradient of J.

    Args:
        bias: ||E g - grad J|| / ||grad J||.
        cosine: of E g and grad J: 1 when the direction is right whatever the length.
        deviation: sqrt(E ||g - E g||^2 x episodes of the group) / ||grad J||: the noise that
            one episode brings, to be divided by the square root of a batch's size.
    """

    bias: float
    cosine: float
    deviation: float


def moments(tree: GameTree, team: TabularTeam, estimator: Estimator, group: int = 1) -> Moments:
    """Exact moments of an estimator.

    Args:
        tree: of the game.
        team: at whose parameters.
        estimator: the advantages.
        group: episodes of one problem that it compares; all groups are enumerated, so the
            cost is episodes ** group.
    """
    chances = tree.log_probabilities(team).exp().detach().numpy()
    exact = np.concatenate([g.reshape(-1).numpy() for g in tree.gradient(team).values()])
    directions = [_scores(tree, team, leaf) for leaf in range(len(tree.episodes))]
    first, second = np.zeros_like(exact), 0.0
    for leaves in itertools.product(range(len(tree.episodes)), repeat=group):
        chosen = [tree.episodes[leaf] for leaf in leaves]
        if len({episode.problem for episode in chosen}) > 1:
            continue
        # All episodes of a group are of one problem: its chance counts once.
        chance = float(np.prod(chances[list(leaves)]) / tree.chances[leaves[0]] ** (group - 1))
        rows = np.concatenate([directions[leaf] for leaf in leaves])
        gradient = estimator(chosen, leaves) @ rows / group
        first += chance * gradient
        second += chance * float(gradient @ gradient)
    size = float(np.linalg.norm(exact))
    length = float(np.linalg.norm(first))
    variance = max(0.0, second - length**2)
    return Moments(
        bias=float(np.linalg.norm(first - exact)) / size,
        cosine=float(first @ exact) / (size * length) if length > 0 else math.nan,
        deviation=math.sqrt(variance * group) / size,
    )


def estimators(tree: GameTree, team: TabularTeam) -> dict[str, tuple[Estimator, int]]:
    """The estimators of the algorithms here, each with the size of its groups.

    Values are 0, or exact: V of the central critic's state, or of an agent's observation.
    """
    values = _exact_values(tree, team)

    def central(known: bool, **discounts: float) -> Estimator:
        def estimate(episodes: Sequence[Episode], leaves: Sequence[int]) -> Floats:
            stream = central_stream(episodes, np.zeros(len(episodes)), **discounts)
            rows = [int(turn.state_ids[-1]) for e in episodes for turn in e.turns]
            return action_advantages(stream, values[rows] if known else np.zeros(len(rows)))

        return estimate

    def own(known: bool, **discounts: float) -> Estimator:
        def estimate(episodes: Sequence[Episode], leaves: Sequence[int]) -> Floats:
            stream = agent_streams(episodes, [{} for _ in episodes], **discounts)
            rows = [int(turn.prompt_ids[-1]) for e in episodes for turn in e.turns]
            return action_advantages(stream, values[rows] if known else np.zeros(len(rows)))

        return estimate

    def relative(stats: str) -> Estimator:
        def estimate(episodes: Sequence[Episode], leaves: Sequence[int]) -> Floats:
            members = [
                Member(turn, number, float(episode.step_rewards.sum()), label)
                for number, episode in enumerate(episodes)
                for turn, label in zip(
                    episode.turns, group_labels(episode, "task-role"), strict=True
                )
            ]
            return compare(members, per_turn=stats == "turns")[0].advantages

        return estimate

    ones = {"gamma": 1.0, "gamma_a": 1.0, "lam": 1.0, "lam_a": 1.0}
    default = {"gamma": 0.99, "gamma_a": 1.0, "lam": 0.95, "lam_a": 0.95}
    hops = {"gamma": 0.99, "gamma_a": 0.99, "lam": 0.95, "lam_a": 0.95}
    return {
        "MARFT, V = 0, no discount": (central(False, **ones), 1),
        "MARFT, exact V, no discount": (central(True, **ones), 1),
        "MARFT, V = 0, defaults": (central(False, **default), 1),
        "MARFT, exact V, defaults": (central(True, **default), 1),
        "MARFT, exact V, one gamma for every hop": (central(True, **hops), 1),
        "IPPO, V = 0, defaults": (own(False, gamma=0.99, lam=0.95), 1),
        "IPPO, exact V, no discount": (own(True, gamma=1.0, lam=1.0), 1),
        "IPPO, exact V, defaults": (own(True, gamma=0.99, lam=0.95), 1),
        "GRPO, pairs, over episodes": (relative("episodes"), 2),
        "GRPO, pairs, over turns": (relative("turns"), 2),
    }


def improvements(
    tree: GameTree,
    make_team: Callable[[], TabularTeam],
    make_learner: Callable[[TabularTeam], Algorithm],
    *,
    episodes: int,
    batches: int,
) -> Floats:
    """J after one update minus J before, exactly, for several sampled batches.

    Args:
        tree: of the game.
        make_team: a fresh team at the parameters of interest.
        make_learner: an algorithm on it.
        episodes: per batch.
        batches: how many.
    """
    gains = []
    for number in range(batches):
        team = make_team()
        before = tree.value(team)
        learner = make_learner(team)

        def collect(place: int, team: TabularTeam = team, number: int = number) -> Batch:
            return tree.sample(team, episodes, number, place)

        learner.update(collect(0), (number,), collect)
        gains.append(tree.value(team) - before)
    return np.array(gains)


def _scores(tree: GameTree, team: TabularTeam, leaf: int) -> Floats:
    """Grad log pi of every turn of an episode, one row per turn over all tables."""
    offsets, total = {}, 0
    for policy, table in team.tables.items():
        offsets[policy] = total
        total += table.numel()
    rows = []
    for turn in tree.episodes[leaf].turns:
        logits = team.tables[turn.policy].detach().double()
        state, action = int(turn.prompt_ids[-1]), int(turn.action_ids[0])
        row = np.zeros(total)
        start = offsets[turn.policy] + state * logits.shape[1]
        row[start : start + logits.shape[1]] = -torch.softmax(logits[state], dim=-1).numpy()
        row[start + action] += 1.0
        rows.append(row)
    return np.array(rows)


def _exact_values(tree: GameTree, team: TabularTeam) -> Floats:
    """E[R | row] for every observation and critic state, weighted by how often it is visited."""
    chances = tree.log_probabilities(team).exp().detach().numpy()
    outcomes = tree.outcomes()
    mass, paid = np.zeros(tree.states), np.zeros(tree.states)
    for episode, chance, outcome in zip(tree.episodes, chances, outcomes, strict=True):
        for turn in episode.turns:
            for row in (int(turn.prompt_ids[-1]), int(turn.state_ids[-1])):
                mass[row] += chance
                paid[row] += chance * outcome
    return np.divide(paid, mass, out=np.zeros_like(paid), where=mass > 0)
