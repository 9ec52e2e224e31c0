"""The terms of the objective, each a function of tensors and nothing else.

Shapes: B turns, L tokens of the longest action. ``mask`` is bool [B, L], True on the
action's own tokens, the closing EOS included, and False on padding, whose numbers never
count. Probabilities are natural logarithms. What is said of ratios and advantages holds
elementwise: [B] at the action level, [B, L] at the token level.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import torch
from torch import Tensor

from flexmg.baselines.rollout.turns import SampledTurn

Normalisation = Literal["sum", "token", "word"]
NORMALISATIONS: tuple[Normalisation, ...] = get_args(Normalisation)
Aggregation = Literal["turn-sum", "turn-mean", "token-mean"]
AGGREGATIONS: tuple[Aggregation, ...] = get_args(Aggregation)

# Half-width of the clip for action-level ratios. Only `sum` is an importance weight; the
# other two are its n-th root, n tokens or words, so that 0.2 would hardly ever clip them.
# Their defaults are about 0.2 / sqrt(n) for an action of some 40 tokens.
DEFAULT_CLIP: dict[Normalisation, float] = {"sum": 0.2, "token": 0.03, "word": 0.04}
TOKEN_CLIP = 0.2  # of the ratios of single tokens


def masked_sum(tokens: Tensor, mask: Tensor) -> Tensor:
    """Sum over each action's own tokens: [B, L] -> [B]. Padding may hold anything, even NaN."""
    return torch.where(mask, tokens, torch.zeros_like(tokens)).sum(dim=1)


def lengths(
    turns: Sequence[SampledTurn], mask: Tensor, normalisation: Normalisation
) -> Tensor | float:
    """What the summed log-prob of each action is divided by: 1, its tokens, or its words.

    An empty text counts as one word, an action without tokens as one token.
    """
    if normalisation == "sum":
        return 1.0
    if normalisation == "token":
        return mask.sum(dim=1).clamp(min=1).to(torch.float32)
    words = [max(1, len(turn.text.split())) for turn in turns]
    return torch.tensor(words, dtype=torch.float32, device=mask.device)


def clipped_surrogate(
    ratio: Tensor, advantages: Tensor, low: float, high: float
) -> tuple[Tensor, Tensor]:
    """PPO's clipped objective, negated: ``-min(rho A, clip(rho, 1 - low, 1 + high) A)``.

    Args:
        ratio: rho = pi_new / pi_old.
        advantages: A, or M A with an importance factor M > 0, of the same shape.
        low: half-width of the clip below 1; ``math.inf`` turns it off.
        high: half-width above 1.

    Returns:
        The loss, and where the clip stopped the gradient (bool), both elementwise.
    """
    free = ratio * advantages
    bound = ratio.clamp(1.0 - low, 1.0 + high) * advantages
    return -torch.minimum(free, bound), (bound < free).detach()


def aggregate(tokens: Tensor, mask: Tensor, aggregation: Aggregation) -> Tensor:
    """Losses of tokens [B, L] as one term per turn [B], to be summed and divided.

    The divisor of a minibatch is its number of turns, or for ``token-mean`` its number of
    tokens: see :func:`divisor`. (A minibatch may come in several forward passes.)
    """
    total = masked_sum(tokens, mask)
    return total / mask.sum(dim=1).clamp(min=1) if aggregation == "turn-mean" else total


def divisor(mask: Tensor, aggregation: Aggregation) -> int:
    """What the terms of a minibatch with this mask [B, L] are divided by."""
    return max(1, int(mask.sum())) if aggregation == "token-mean" else len(mask)


def value_loss(
    values: Tensor, old_values: Tensor, targets: Tensor, *, clip: float, huber: float
) -> Tensor:
    """The critic's loss per turn, [B]: Huber in the error, pessimistic about large moves.

    The larger of the losses of V and of V moved at most ``clip`` away from its old
    value. Symmetric: an error of +e costs what -e costs.

    Args:
        values: V, with gradient.
        old_values: V before the update.
        targets: A + V.
        clip: the most a value may move with gradient, in units of reward.
        huber: the error at which the loss turns from quadratic to linear.
    """

    def loss(estimate: Tensor) -> Tensor:
        return torch.nn.functional.huber_loss(estimate, targets, reduction="none", delta=huber)

    moved = old_values + (values - old_values).clamp(-clip, clip)
    return torch.maximum(loss(values), loss(moved))


def k3(log_probs: Tensor, reference: Tensor) -> Tensor:
    """Schulman's k3 estimate per token of KL(pi || reference), for tokens sampled from pi.

    ``exp(d) - 1 - d`` with ``d = reference - log_probs``: never negative, unbiased, low
    variance. Same shape as the arguments; differentiable in both.
    """
    difference = reference - log_probs
    return torch.expm1(difference) - difference
