"""Generalised advantage estimates (Schulman et al. 2016) on streams of turns or tokens.

At the **action level** a whole action is one decision, with one value before it::

    delta_k = r_k + g_k V_{k+1} - V_k ;       A_k = delta_k + g_k l_k A_{k+1}

At the **token level** every token is one (POAD's backup within actions, arXiv 2405.15821)::

  inside an action   delta = gamma_w V_{k,j+1} - V_{k,j} ;      A = delta + gamma_w lam_w A_{k,j+1}
  its last token     delta = r_k + g_k V_{k+1,0} - V_{k,last} ; A = delta + g_k l_k A_{k+1,0}

r, g and l come from a :class:`~flexmg.baselines.algorithms.streams.Stream`: MARFT's central
one, or Independent PPO's agent streams. Turns of all episodes are laid end to end, in the
order of the batch; at the token level, so are the tokens of every turn. Values and
advantages are float64, in units of reward.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flexmg.baselines.algorithms.streams import Floats, Indices, Stream
from flexmg.baselines.ragged import places

# Below this spread all turns of a group have the same advantage but for rounding noise,
# which a division by sigma would blow up to unit size.
SMALLEST_SIGMA = 1e-6


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


def action_advantages(stream: Stream, values: ArrayLike) -> Floats:
    """A_k of every turn.

    Args:
        stream: over all turns of the batch.
        values: V_k before each turn, in the order of the batch.

    Returns:
        One per turn, in the order of the batch. The critic's target is ``A_k + V_k``.
    """
    own = np.asarray(values, dtype=np.float64)[stream.index]
    following = np.append(own[1:], 0.0)
    following[stream.ends] = stream.final_values[stream.ends]
    advantages = np.empty_like(own)
    advantages[stream.index] = generalised_advantages(
        stream.rewards, own, following, stream.discounts, stream.discounts * stream.lambdas
    )
    return advantages


def token_advantages(
    stream: Stream, values: ArrayLike, lengths: Indices, *, gamma_w: float, lam_w: float
) -> Floats:
    """A_{k,j} of every token of every turn.

    Args:
        stream: over all turns of the batch.
        values: V_{k,j} at the position that predicts each token, all tokens of all turns end
            to end in the order of the batch.
        lengths: tokens of each turn in the order of the batch, at least 1.
        gamma_w: discount from one token to the next within an action.
        lam_w: GAE lambda within an action.

    Returns:
        One per token, laid out like ``values``. The critic's target is ``A + V``.
    """
    place = places(stream.index, lengths)
    own = np.asarray(values, dtype=np.float64)[place]
    last = np.cumsum(lengths[stream.index]) - 1
    rewards = np.zeros_like(own)
    discounts = np.full_like(own, gamma_w)
    traces = np.full_like(own, gamma_w * lam_w)
    rewards[last] = stream.rewards
    discounts[last] = stream.discounts
    traces[last] = stream.discounts * stream.lambdas
    following = np.append(own[1:], 0.0)
    following[last[stream.ends]] = stream.final_values[stream.ends]
    advantages = np.empty_like(own)
    advantages[place] = generalised_advantages(rewards, own, following, discounts, traces)
    return advantages


@dataclass(frozen=True, slots=True)
class Standardised:
    """Advantages as the policies learn from them.

    Args:
        advantages: float64, laid out like those that were given; 0 in groups left out.
        lengths: int64, advantages per turn: 1, or its tokens.
        used: bool, one per turn; False in groups left out, which give no gradient.
        skipped: the groups left out, and why.
    """

    advantages: Floats
    lengths: Indices
    used: NDArray[np.bool_]
    skipped: dict[Hashable, str]


def standardise(
    advantages: Floats, groups: Sequence[Hashable], lengths: Indices | None = None
) -> Standardised:
    """Subtract each group's mean and divide by its population standard deviation.

    Every turn has the same weight, however many tokens it has: token-level advantages that
    are constant within each action are standardised like action-level ones.

    Args:
        advantages: of a whole iteration, one per turn or per token.
        groups: one label per turn: (policy, role) by default, one constant for the
            global ablation.
        lengths: tokens per turn; None when there is one advantage per turn.
    """
    if lengths is None:
        lengths = np.ones(len(groups), dtype=np.int64)
    result = np.zeros_like(advantages)
    used = np.zeros(len(groups), dtype=bool)
    skipped: dict[Hashable, str] = {}
    for group in dict.fromkeys(groups):
        members = np.fromiter((label == group for label in groups), dtype=bool, count=len(groups))
        place = places(np.flatnonzero(members), lengths)
        chosen, weights = advantages[place], np.repeat(1.0 / lengths[members], lengths[members])
        weights /= weights.sum()
        centred = chosen - weights @ chosen
        sigma = np.sqrt(weights @ centred**2)
        if sigma < SMALLEST_SIGMA:
            skipped[group] = "all its advantages are equal"
            continue
        result[place] = centred / sigma
        used |= members
    return Standardised(result, lengths, used, skipped)
