"""Advantages at the action level: who gets how much credit for what was paid when.

Two estimators over recorded episodes, both generalised advantage estimates
(Schulman et al. 2016) on a stream of turns:

* :func:`central_advantages`, for MARFT: one stream per episode through the turns of
  *all* agents, on the central rewards (one scalar per env step, on its last turn), with
  separate discounts for a hop to the next layer of D and for a hop to another env step;
* :func:`agent_advantages`, for Independent PPO: one stream per *agent name* through its
  own turns, each receiving the outcome once.

Turns of all episodes are laid end to end, in the order of the batch; every array named
``values`` or returned here has that length. Values and advantages are in units of reward.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flexmg.baselines.rollout.turns import Episode, SampledTurn
from flexmg.errors import InvalidArgument

Floats = NDArray[np.float64]

# Below this spread all turns of a group have the same advantage but for rounding noise,
# which a division by sigma would blow up to unit size.
SMALLEST_SIGMA = 1e-6


def flatten(episodes: Sequence[Episode]) -> list[SampledTurn]:
    """All turns of all episodes, end to end."""
    return [turn for episode in episodes for turn in episode.turns]


def generalised_advantages(
    rewards: Floats, values: Floats, next_values: Floats, discounts: Floats, traces: Floats
) -> Floats:
    """The backward recursion over trajectories laid end to end.

    ``delta_k = r_k + g_k V_{k+1} - V_k`` and ``A_k = delta_k + g_k l_k A_{k+1}``.

    Args:
        rewards: r_k.
        values: V_k.
        next_values: V_{k+1} as turn k sees it (the final state's after the last turn).
        discounts: g_k.
        traces: g_k l_k; 0 on the last turn of every trajectory, which keeps trajectories apart.

    Returns:
        A_k, float64, the shape of ``rewards``.
    """
    advantages = rewards + discounts * next_values - values
    for k in range(len(advantages) - 2, -1, -1):
        advantages[k] += traces[k] * advantages[k + 1]
    return advantages


def central_advantages(
    episodes: Sequence[Episode],
    values: ArrayLike,
    final_values: ArrayLike,
    *,
    gamma: float,
    gamma_a: float,
    lam: float,
    lam_a: float,
) -> Floats:
    """MARFT's advantages at the action level, on the central stream.

    From turn k to turn k+1 the discount is 1 within a layer of D, ``gamma_a`` to the next
    layer, ``gamma ** (t_{k+1} - t_k)`` to another env step, and 0 when turn k ended a
    terminated episode; the lambdas follow the same cases. A truncated episode bootstraps
    from the value of its final state, which counts as the start of the next env step.

    Args:
        episodes: in the batch's order, none of them without turns.
        values: V_k of the central critic before each turn.
        final_values: one per episode, V of the final state; used when it was truncated.
        gamma: discount per env step.
        gamma_a: discount per layer within a step.
        lam: GAE lambda per env step.
        lam_a: GAE lambda per layer within a step.

    Returns:
        A_k, one per turn. The critic's target is ``A_k + V_k``.

    Raises:
        InvalidArgument: an episode is malformed (see :func:`check_episode`).
    """
    values = np.asarray(values, dtype=np.float64)
    final_values = np.asarray(final_values, dtype=np.float64)
    for episode in episodes:
        check_episode(episode)
    turns = flatten(episodes)
    lengths = [len(episode.turns) for episode in episodes]
    ends = np.cumsum(lengths) - 1
    steps = np.array([turn.step for turn in turns])
    layers = np.array([turn.layer for turn in turns])

    hop = np.diff(steps, append=0)
    same_layer = np.append(layers[1:] == layers[:-1], False)

    def by_case(per_step: float, per_layer: float) -> Floats:
        within = np.where(same_layer, 1.0, per_layer)
        # np.abs: at the seam between two episodes the hop is meaningless, and overwritten below.
        return np.where(hop == 0, within, per_step ** np.abs(hop))

    discounts, lambdas = by_case(gamma, gamma_a), by_case(lam, lam_a)
    terminated = np.array([episode.terminated for episode in episodes])
    discounts[ends] = np.where(terminated, 0.0, gamma)
    lambdas[ends] = 0.0
    next_values = np.append(values[1:], 0.0)
    next_values[ends] = np.where(terminated, 0.0, final_values)

    closes_step = hop != 0
    closes_step[ends] = True
    offsets = np.cumsum([0] + [len(episode.step_rewards) for episode in episodes[:-1]])
    stream = np.concatenate([episode.step_rewards for episode in episodes])
    paid = stream[steps + np.repeat(offsets, lengths)]
    rewards = np.where(closes_step, paid, 0.0)
    return generalised_advantages(rewards, values, next_values, discounts, discounts * lambdas)


def agent_advantages(
    episodes: Sequence[Episode],
    values: ArrayLike,
    final_values: Sequence[Mapping[str, float]],
    *,
    gamma: float,
    lam: float,
) -> Floats:
    """Independent PPO's advantages: one stream per agent name, on its own turns.

    From own turn k to own turn k', ``r~_k`` is the discounted sum of the rewards of env
    steps t_k to t_k' - 1 (to the end of the episode for the last turn), the discount is
    ``gamma ** (t_k' - t_k)`` and lambda likewise. Bootstrapping only if truncated.

    Args:
        episodes: in the batch's order, none of them without turns.
        values: V_i(o_k), each turn's value by its own agent's critic.
        final_values: one mapping per episode, agent name -> value of its final
            observation; looked at only when the episode was truncated.
        gamma: discount per env step.
        lam: GAE lambda per env step.

    Returns:
        A_k, one per turn. The critic's target is ``A_k + V_k``.

    Raises:
        InvalidArgument: an episode is malformed, or truncated without a final value.
    """
    values = np.asarray(values, dtype=np.float64)
    advantages = np.empty_like(values)
    start = 0
    for episode, finals in zip(episodes, final_values, strict=True):
        check_episode(episode)
        for agent in dict.fromkeys(turn.agent for turn in episode.turns):
            own = [k for k, turn in enumerate(episode.turns) if turn.agent == agent]
            index = np.array(own) + start
            stream = agent_stream(episode, agent)
            bounds = np.array([episode.turns[k].step for k in own] + [len(stream)])
            rewards = np.array(
                [
                    np.sum(gamma ** np.arange(until - since) * stream[since:until])
                    for since, until in itertools.pairwise(bounds)
                ]
            )
            span = np.diff(bounds)
            discounts, lambdas = gamma**span, lam**span
            lambdas[-1] = 0.0
            next_values = np.append(values[index[1:]], 0.0)
            if episode.terminated:
                discounts[-1] = 0.0
            elif agent in finals:
                next_values[-1] = finals[agent]
            else:
                raise InvalidArgument(
                    f"{_where(episode)} was truncated, and agent {agent!r} has no final "
                    "observation to bootstrap from; record one in the collector"
                )
            advantages[index] = generalised_advantages(
                rewards, values[index], next_values, discounts, discounts * lambdas
            )
        start += len(episode.turns)
    return advantages


def agent_stream(episode: Episode, agent: str) -> Floats:
    """What one agent is paid at each env step; sums to its total reward.

    An agent that is paid what the team is paid gets it when the team does. Any other
    total (reward modes ``designated``, ``local``, ``mixed``) is known only once the
    episode is graded, and is paid in the last env step.

    Raises:
        InvalidArgument: the episode has no reward for this agent.
    """
    if agent not in episode.agent_rewards:
        raise InvalidArgument(f"{_where(episode)} has no reward for agent {agent!r}")
    total = episode.agent_rewards[agent]
    if np.isclose(total, episode.step_rewards.sum(), rtol=0.0, atol=1e-9):
        return np.asarray(episode.step_rewards, dtype=np.float64)
    stream = np.zeros(len(episode.step_rewards))
    stream[-1] = total
    return stream


def check_episode(episode: Episode) -> None:
    """Refuse an episode whose credit would be wrong.

    Raises:
        InvalidArgument: no turns, turns out of order, an env step without a reward entry,
            a reward that is not finite, or a reward in a step in which nobody acted.
    """
    if not episode.turns:
        raise InvalidArgument(f"{_where(episode)} has no turns")
    order = [(turn.step, turn.layer) for turn in episode.turns]
    if order != sorted(order):
        raise InvalidArgument(f"{_where(episode)} has turns out of (step, layer) order: {order}")
    rewards = np.asarray(episode.step_rewards, dtype=np.float64)
    if order[-1][0] >= len(rewards):
        raise InvalidArgument(
            f"{_where(episode)} has a turn in step {order[-1][0]}, but {len(rewards)} step rewards"
        )
    if not (np.isfinite(rewards).all() and np.isfinite(list(episode.agent_rewards.values())).all()):
        raise InvalidArgument(f"{_where(episode)} has a reward that is not finite")
    unclaimed = set(np.flatnonzero(rewards)) - {step for step, _ in order}
    if unclaimed:
        raise InvalidArgument(
            f"{_where(episode)} pays a reward in step {min(unclaimed)}, in which nobody acted"
        )


def _where(episode: Episode) -> str:
    return f"episode (problem {episode.problem!r}, sample {episode.sample})"


@dataclass(frozen=True, slots=True)
class Standardised:
    """Advantages with zero mean and unit spread in each group.

    Args:
        advantages: float64, one per turn; 0 in skipped groups.
        used: bool, one per turn; False in skipped groups, which give no gradient.
        skipped: the groups whose advantages were all equal (sigma < 1e-6).
    """

    advantages: Floats
    used: NDArray[np.bool_]
    skipped: tuple[Hashable, ...]


def standardise(advantages: Floats, groups: Sequence[Hashable]) -> Standardised:
    """Subtract each group's mean and divide by its population standard deviation.

    Args:
        advantages: one per turn, of a whole iteration.
        groups: one label per turn: (policy, role) by default, one constant for the
            global ablation.
    """
    result = np.zeros_like(advantages)
    used = np.zeros(len(advantages), dtype=bool)
    skipped = []
    for group in dict.fromkeys(groups):
        members = np.fromiter((label == group for label in groups), dtype=bool, count=len(groups))
        chosen = advantages[members]
        sigma = chosen.std()
        if sigma < SMALLEST_SIGMA:
            skipped.append(group)
            continue
        result[members] = (chosen - chosen.mean()) / sigma
        used |= members
    return Standardised(result, used, tuple(skipped))
