"""What is paid to whom, and how it fades: trajectories of turns.

A :class:`Stream` lays trajectories end to end. For every turn on them it says what is paid
(r_k), how the value of the next turn is discounted (g_k) and how far an advantage reaches
back (l_k). Two ways to make one from recorded episodes:

* :func:`central_stream`, for MARFT: one trajectory per episode, through the turns of *all*
  agents, on the central rewards (one scalar per env step, on the step's last turn), with a
  discount of its own for a hop to the next layer of D;
* :func:`agent_streams`, for Independent PPO: one trajectory per *agent name*, through its
  own turns, receiving the outcome once.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flexmg.baselines.rollout.turns import Episode, SampledTurn
from flexmg.errors import InvalidArgument

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Stream:
    """Trajectories over K turns, laid end to end; all arrays have K entries.

    Args:
        index: each turn's place among all turns of the batch.
        rewards: r_k, in units of reward.
        discounts: g_k, to the next turn of the trajectory or the state after its last.
        lambdas: l_k; 0 on the last turn of every trajectory, which keeps them apart.
        ends: True on the last turn of every trajectory.
        final_values: on last turns V of the state that follows, 0 elsewhere.
    """

    index: Indices
    rewards: Floats
    discounts: Floats
    lambdas: Floats
    ends: NDArray[np.bool_]
    final_values: Floats


def flatten(episodes: Sequence[Episode]) -> list[SampledTurn]:
    """All turns of all episodes, end to end."""
    return [turn for episode in episodes for turn in episode.turns]


def central_stream(
    episodes: Sequence[Episode],
    final_values: ArrayLike,
    *,
    gamma: float,
    gamma_a: float,
    lam: float,
    lam_a: float,
) -> Stream:
    """MARFT's stream: every turn of every episode, in the order of the batch.

    From turn k to turn k+1 the discount is 1 within a layer of D, ``gamma_a`` to the next
    layer, ``gamma ** (t_{k+1} - t_k)`` to another env step, and 0 when turn k ended a
    terminated episode; the lambdas follow the same cases. A truncated episode bootstraps
    from the value of its final state, which counts as the start of the next env step.

    Args:
        episodes: in the batch's order, none of them without turns.
        final_values: one per episode, V of the final state; used when it was truncated.
        gamma: discount per env step.
        gamma_a: discount per layer within a step.
        lam: GAE lambda per env step.
        lam_a: GAE lambda per layer within a step.

    Raises:
        InvalidArgument: an episode is malformed (see :func:`check_episode`).
    """
    for episode in episodes:
        check_episode(episode)
    turns = flatten(episodes)
    lengths = [len(episode.turns) for episode in episodes]
    last = np.cumsum(lengths) - 1
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
    discounts[last] = np.where(terminated, 0.0, gamma)
    lambdas[last] = 0.0
    ends = np.zeros(len(turns), dtype=bool)
    ends[last] = True
    finals = np.zeros(len(turns))
    finals[last] = np.where(terminated, 0.0, np.asarray(final_values, dtype=np.float64))

    closes_step = (hop != 0) | ends
    offsets = np.cumsum([0] + [len(episode.step_rewards) for episode in episodes[:-1]])
    paid = np.concatenate([episode.step_rewards for episode in episodes])
    rewards = np.where(closes_step, paid[steps + np.repeat(offsets, lengths)], 0.0)
    return Stream(np.arange(len(turns)), rewards, discounts, lambdas, ends, finals)


def agent_streams(
    episodes: Sequence[Episode],
    final_values: Sequence[Mapping[str, float]],
    *,
    gamma: float,
    lam: float,
) -> Stream:
    """Independent PPO's streams: one trajectory per agent name and episode, on its own turns.

    From own turn k to own turn k', ``r~_k`` is the discounted sum of the rewards of env
    steps t_k to t_k' - 1 (to the end of the episode for the last turn), the discount is
    ``gamma ** (t_k' - t_k)`` and lambda likewise. Bootstrapping only if truncated.

    Args:
        episodes: in the batch's order, none of them without turns.
        final_values: one mapping per episode, agent name -> value of its final
            observation; looked at only when the episode was truncated.
        gamma: discount per env step.
        lam: GAE lambda per env step.

    Raises:
        InvalidArgument: an episode is malformed, or truncated without a final value.
    """
    parts: list[Stream] = []
    start = 0
    for episode, finals in zip(episodes, final_values, strict=True):
        check_episode(episode)
        for agent in dict.fromkeys(turn.agent for turn in episode.turns):
            parts.append(_agent_stream(episode, agent, start, finals, gamma, lam))
        start += len(episode.turns)
    names = ("index", "rewards", "discounts", "lambdas", "ends", "final_values")
    return Stream(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def _agent_stream(
    episode: Episode,
    agent: str,
    start: int,
    finals: Mapping[str, float],
    gamma: float,
    lam: float,
) -> Stream:
    own = [k for k, turn in enumerate(episode.turns) if turn.agent == agent]
    paid = agent_rewards(episode, agent)
    bounds = np.array([episode.turns[k].step for k in own] + [len(paid)])
    rewards = np.array(
        [
            np.sum(gamma ** np.arange(until - since) * paid[since:until])
            for since, until in itertools.pairwise(bounds)
        ]
    )
    span = np.diff(bounds)
    discounts, lambdas = gamma**span, lam**span
    lambdas[-1] = 0.0
    final_values = np.zeros(len(own))
    if episode.terminated:
        discounts[-1] = 0.0
    elif agent in finals:
        final_values[-1] = finals[agent]
    else:
        raise InvalidArgument(
            f"{where(episode)} was truncated, and agent {agent!r} has no final "
            "observation to bootstrap from; record one in the collector"
        )
    ends = np.zeros(len(own), dtype=bool)
    ends[-1] = True
    return Stream(np.array(own) + start, rewards, discounts, lambdas, ends, final_values)


def agent_rewards(episode: Episode, agent: str) -> Floats:
    """What one agent is paid at each env step; sums to its total reward.

    An agent that is paid what the team is paid gets it when the team does. Any other
    total (reward modes ``designated``, ``local``, ``mixed``) is known only once the
    episode is graded, and is paid in the last env step.

    Raises:
        InvalidArgument: the episode has no reward for this agent.
    """
    if agent not in episode.agent_rewards:
        raise InvalidArgument(f"{where(episode)} has no reward for agent {agent!r}")
    total = episode.agent_rewards[agent]
    if np.isclose(total, episode.step_rewards.sum(), rtol=0.0, atol=1e-9):
        return np.asarray(episode.step_rewards, dtype=np.float64)
    stream = np.zeros(len(episode.step_rewards))
    stream[-1] = total
    return stream


def check_episode(episode: Episode) -> None:
    """Refuse an episode whose credit would be wrong.

    Raises:
        InvalidArgument: no turns, an action without tokens, turns out of order, an env step
            without a reward entry, a reward that is not finite, or a reward in a step in
            which nobody acted.
    """
    if not episode.turns:
        raise InvalidArgument(f"{where(episode)} has no turns")
    for turn in episode.turns:
        if len(turn.action_ids) == 0:
            raise InvalidArgument(
                f"{where(episode)} has an action of {turn.agent!r} without any token; the "
                "closing EOS belongs to the action, so that even an empty text has one"
            )
    order = [(turn.step, turn.layer) for turn in episode.turns]
    if order != sorted(order):
        raise InvalidArgument(f"{where(episode)} has turns out of (step, layer) order: {order}")
    rewards = np.asarray(episode.step_rewards, dtype=np.float64)
    if order[-1][0] >= len(rewards):
        raise InvalidArgument(
            f"{where(episode)} has a turn in step {order[-1][0]}, but {len(rewards)} step rewards"
        )
    if not (np.isfinite(rewards).all() and np.isfinite(list(episode.agent_rewards.values())).all()):
        raise InvalidArgument(f"{where(episode)} has a reward that is not finite")
    unclaimed = set(np.flatnonzero(rewards)) - {step for step, _ in order}
    if unclaimed:
        raise InvalidArgument(
            f"{where(episode)} pays a reward in step {min(unclaimed)}, in which nobody acted"
        )


def where(episode: Episode) -> str:
    """Names an episode in messages."""
    return f"episode (problem {episode.problem!r}, sample {episode.sample})"
