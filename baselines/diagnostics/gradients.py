"""Where the gradient of an iteration comes from, by role and slot.

At theta_old, with the advantages that the policies are about to learn from: g_i is the
gradient of the mean policy loss of slot i (one agent name), for its policy's adapter only,
without clip, KL or entropy; w_i is its weight in the policy's loss, so that
``sum_i w_i g_i`` is the gradient of the first optimiser step on the whole batch.

A gradient of a sample is mostly noise. Each slot's is therefore computed on two disjoint
halves of the problems, A and B: noise is independent between them, so
``<g^A, g^B>`` estimates the squared norm of what they have in common without bias.

The workflow study (arXiv 2605.24202) names amplification and capture; the formulas here are
ours (docs/diagnostics.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from flexmg.baselines.algorithms.advantages import Standardised
from flexmg.baselines.algorithms.learner import Learner
from flexmg.baselines.algorithms.losses import divisor
from flexmg.baselines.algorithms.optimisation import (
    Recorded,
    micro_batches,
    policy_terms,
    score,
)
from flexmg.baselines.algorithms.streams import flatten
from flexmg.baselines.rollout.turns import Episode
from flexmg.seeding import draw

Block = dict[str, Any]


@dataclass(frozen=True, eq=False)
class SlotGradient:
    """The gradient of one agent name.

    Args:
        agent: its name. ``role``: its role.
        turns: that are learnt from.
        weight: w_i, its share in the loss of its policy.
        halves: g_i on the problems of half A and of half B, each [P]; zeros for a half
            without turns.
        shares: the shares of its turns in A and B; they sum to 1.
    """

    agent: str
    role: str
    turns: int
    weight: float
    halves: tuple[Tensor, Tensor]
    shares: tuple[float, float]

    @property
    def gradient(self) -> Tensor:
        """g_i on all problems, [P]."""
        return self.shares[0] * self.halves[0] + self.shares[1] * self.halves[1]


def slot_gradients(
    learner: Learner, policy: str, episodes: Sequence[Episode], standard: Standardised
) -> list[SlotGradient]:
    """The gradients of every agent that plays with a policy and has turns to learn from.

    One forward and backward pass over the policy's turns; parameters, optimisers and
    ``grad`` fields stay as they are.

    Args:
        learner: whose team and settings are used.
        policy: its name.
        episodes: of the iteration.
        standard: the advantages, laid out like the turns of the episodes.
    """
    turns = flatten(episodes)
    problems = [episode.problem for episode in episodes for _ in episode.turns]
    index = np.array(
        [k for k, turn in enumerate(turns) if turn.policy == policy and standard.used[k]], int
    )
    if not len(index):
        return []
    own = [turns[k] for k in index]
    halves = [draw(2, "half", problems[k]) for k in index]
    old = score(learner.team, policy, own, index, learner.config, learner.temperature)
    weights = learner.weights(old, standard)
    whole = _mass(learner, old, range(len(own)))
    found = []
    for agent in dict.fromkeys(turn.agent for turn in own):
        rows = [k for k, turn in enumerate(own) if turn.agent == agent]
        mass = _mass(learner, old, rows)
        parts = [[k for k in rows if halves[k] == half] for half in (0, 1)]
        masses = [_mass(learner, old, part) if part else 0 for part in parts]
        sums = [_gradient(learner, policy, old, part, weights) for part in parts]
        found.append(
            SlotGradient(
                agent=agent,
                role=own[rows[0]].role,
                turns=len(rows),
                weight=mass / whole,
                halves=(sums[0] / max(masses[0], 1), sums[1] / max(masses[1], 1)),
                shares=(masses[0] / mass, masses[1] / mass),
            )
        )
    return found


def _mass(learner: Learner, old: Recorded, rows: Sequence[int]) -> int:
    """What the summed loss of some turns is divided by: their number, or that of their tokens."""
    aggregation = learner.config.token_aggregation
    mask = old.mask[list(rows)]
    return divisor(mask, aggregation if learner.config.level == "token" else "turn-sum")


def _gradient(
    learner: Learner, policy: str, old: Recorded, rows: Sequence[int], weights: Tensor
) -> Tensor:
    """The gradient of the summed policy loss of some turns, [P], without a clip."""
    parameters = learner.team.policy_parameters(policy)
    bare = replace(
        learner.config, clip=math.inf, clip_high=None, kl_coefficient=0.0, entropy_coefficient=0.0
    )
    total = torch.zeros(sum(p.numel() for p in parameters), device=parameters[0].device)
    for part in micro_batches(old.turns, rows, bare.micro_batch_tokens):
        terms = policy_terms(learner.team, policy, old, part, weights, bare, learner.temperature)
        pieces = torch.autograd.grad(terms["surrogate"].sum(), parameters, allow_unused=True)
        total += torch.cat(
            [
                (torch.zeros_like(p) if g is None else g).reshape(-1).float()
                for p, g in zip(parameters, pieces, strict=True)
            ]
        )
    return total


def preconditioner(learner: Learner, policy: str) -> Tensor | None:
    """1 / (sqrt(v) + eps) of the policy's Adam, [P], v without bias; None before its first step."""
    optimizer = learner.policy_optimizers[policy]
    group = optimizer.param_groups[0]
    pieces = []
    for parameter in learner.team.policy_parameters(policy):
        state = optimizer.state.get(parameter)
        if not state or "exp_avg_sq" not in state:
            return None
        correction = 1 - group["betas"][1] ** float(state["step"])
        scale = (state["exp_avg_sq"] / correction).sqrt() + group["eps"]
        pieces.append(1 / scale.reshape(-1).float())
    return torch.cat(pieces)


def describe(slots: Sequence[SlotGradient], scale: Tensor | None = None) -> Block:
    """The figures of one policy, JSON-serialisable.

    Args:
        slots: of its agents, at least one.
        scale: every gradient is multiplied by it elementwise (Adam's preconditioner).

    Returns:
        ``slots``: per agent ``role, turns, weight, norm, common`` (<g^A, g^B>);
        ``roles``: per role :func:`coherence` of its slots, and ``mass``, the norm of what
        the role adds to the policy's gradient, with its ``share`` and ``common_mass``;
        ``capture`` (largest share), ``capturing`` (whose), ``effective_roles``,
        ``cosines`` (of pairs of slots) and ``conflict_rate`` (share of negative ones).
    """
    own = [_scaled(slot, scale) for slot in slots]
    roles: dict[str, list[SlotGradient]] = {}
    for slot in own:
        roles.setdefault(slot.role, []).append(slot)
    blocks = {role: coherence(members) for role, members in roles.items()}
    masses = {role: block["mass"] for role, block in blocks.items()}
    total = sum(masses.values())
    shares = {role: mass / total if total > 0 else 0.0 for role, mass in masses.items()}
    for role, block in blocks.items():
        block["share"] = shares[role]
    cosines = _cosines(own)
    largest = max(shares, key=shares.__getitem__)
    return {
        "slots": {
            slot.agent: {
                "role": slot.role,
                "turns": slot.turns,
                "weight": slot.weight,
                "norm": _norm(slot.gradient),
                "common": _dot(*slot.halves),
            }
            for slot in own
        },
        "roles": blocks,
        "capture": shares[largest],
        "capturing": largest,
        "effective_roles": effective_number(list(shares.values())),
        "cosines": cosines,
        "conflict_rate": float(np.mean([c < 0 for c in cosines.values()])) if cosines else None,
    }


def coherence(slots: Sequence[SlotGradient]) -> Block:
    """How much the gradients of some slots add up to.

    Returns:
        ``copies`` N; ``turns`` per slot (mean); ``mass`` ||sum w_i g_i||; ``coherence``, that
        over sum w_i ||g_i||, in [0, 1]; ``amplification``, N times it (N: all push one way, 0:
        they cancel); ``null``, what orthogonal gradients of these sizes have (sqrt(N) when
        alike); ``common_mass`` and ``common_sizes``: <sum w g^A, sum w g^B> and the
        <g_i^A, g_i^B>, weighted, from which noise-free values are made over several looks.
    """
    weighted = [slot.weight * slot.gradient for slot in slots]
    sizes = [_norm(one) for one in weighted]
    mass, total = _norm(sum(weighted[1:], weighted[0])), sum(sizes)
    count = len(slots)
    halves = [
        sum((s.weight * s.halves[h] for s in slots[1:]), slots[0].weight * slots[0].halves[h])
        for h in (0, 1)
    ]
    return {
        "copies": count,
        "turns": float(np.mean([slot.turns for slot in slots])),
        "mass": mass,
        "coherence": mass / total if total > 0 else 0.0,
        "amplification": count * mass / total if total > 0 else 0.0,
        "null": count * math.hypot(*sizes) / total if total > 0 else 0.0,
        "common_mass": _dot(*halves),
        "common_sizes": {s.agent: s.weight**2 * _dot(*s.halves) for s in slots},
    }


def noise_free_amplification(looks: Sequence[Block]) -> float | None:
    """Amplification of what the halves have in common, over several looks at one role.

    Args:
        looks: results of :func:`coherence`.

    Returns:
        N sqrt(mean common mass) / sum_i sqrt(mean common size of i); None where an estimate
        is not positive, which is to say that noise still hides it.
    """
    agents = set.intersection(*(set(look["common_sizes"]) for look in looks))
    sizes = [float(np.mean([look["common_sizes"][agent] for look in looks])) for agent in agents]
    mass = float(np.mean([look["common_mass"] for look in looks]))
    if not sizes or min(sizes) <= 0 or mass <= 0:
        return None
    return len(sizes) * math.sqrt(mass) / sum(map(math.sqrt, sizes))


def noise_free_capture(looks: Sequence[dict[str, Block]]) -> dict[str, float] | None:
    """Shares of the roles in what the halves have in common, over several looks at a policy.

    Args:
        looks: the ``roles`` of :func:`describe`.

    Returns:
        Share per role; None where a role's estimate is not positive.
    """
    roles = set.intersection(*(set(look) for look in looks))
    masses = {r: float(np.mean([look[r]["common_mass"] for look in looks])) for r in roles}
    if not masses or min(masses.values()) <= 0:
        return None
    roots = {role: math.sqrt(mass) for role, mass in sorted(masses.items())}
    return {role: root / sum(roots.values()) for role, root in roots.items()}


def effective_number(shares: Sequence[float]) -> float:
    """exp(entropy) of shares that sum to 1: how many equal ones they are worth."""
    return math.exp(-sum(s * math.log(s) for s in shares if s > 0))


def _scaled(slot: SlotGradient, scale: Tensor | None) -> SlotGradient:
    if scale is None:
        return slot
    return replace(slot, halves=(slot.halves[0] * scale, slot.halves[1] * scale))


def _cosines(slots: Sequence[SlotGradient]) -> dict[str, float]:
    found = {}
    for i, one in enumerate(slots):
        for other in slots[i + 1 :]:
            size = _norm(one.gradient) * _norm(other.gradient)
            if size > 0:
                found[f"{one.agent} {other.agent}"] = _dot(one.gradient, other.gradient) / size
    return found


def _norm(vector: Tensor) -> float:
    return float(vector.double().norm())


def _dot(one: Tensor, other: Tensor) -> float:
    return float(one.double() @ other.double())
