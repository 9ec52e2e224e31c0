"""The inner loop that MARFT and Independent PPO share, and the settings both have.

:func:`update_policy` optimises one policy on its own turns with the clipped surrogate;
:func:`update_critic` fits one value head. What differs between the algorithms (whose
advantages, in which order, with which importance factors) is in their own files.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from flexmg.baselines.algorithms.losses import (
    DEFAULT_CLIP,
    NORMALISATIONS,
    Normalisation,
    clipped_surrogate,
    k3,
    lengths,
    masked_sum,
    value_loss,
)
from flexmg.baselines.algorithms.protocol import Metrics, Team
from flexmg.baselines.rollout.turns import SampledTurn
from flexmg.errors import FlexMGError, InvalidArgument


class DivergenceError(FlexMGError, ArithmeticError):
    """A loss or gradient is not finite; nothing of the broken step was applied."""


@dataclass(frozen=True, kw_only=True)
class PPOConfig:
    """What MARFT and Independent PPO have in common, with the same defaults.

    Args:
        lr: AdamW step size of the policies (constant, no weight decay).
        critic_lr: AdamW step size of the value heads.
        epochs: passes over a policy's turns per iteration.
        critic_epochs: passes of a value head over its turns per iteration.
        minibatches: optimiser steps per pass.
        micro_batch_tokens: the most tokens (prompt and action, padding included) in one
            forward pass with gradient; bounds memory, never changes the result.
        normalisation: how the token log-probs of an action make one log-prob: ``sum``
            (the only one whose ratio is an importance weight), ``token`` or ``word``
            (divided by the number of tokens, or of white-space words).
        clip: half-width of the ratio's clip; None for the default of the normalisation,
            ``inf`` for none.
        gamma: discount per env step.
        lam: GAE lambda per env step.
        standardise: ``policy`` standardises advantages per policy and role, ``global``
            over all turns (an ablation).
        value_clip: the most a value may move per iteration, in units of reward.
        huber: error at which the value loss turns from quadratic to linear.
        max_grad_norm: gradients are scaled down to this norm, per policy and per critic.
        target_kl: a policy stops its update once the k3 estimate per token of its move in
            this iteration exceeds this; None never stops.
        kl_coefficient: weight of the k3 estimate per token of KL(policy || base model).
        entropy_coefficient: weight of the mean token entropy, as a bonus.
        engine_cap: turns are weighted by min(pi_old / mu, engine_cap), mu being the
            generation engine's own probability; 1 everywhere for an exact engine.
    """

    lr: float = 1e-3
    critic_lr: float = 1e-3
    epochs: int = 2
    critic_epochs: int = 4
    minibatches: int = 2
    micro_batch_tokens: int = 4_096
    normalisation: Normalisation = "sum"
    clip: float | None = None
    gamma: float = 0.99
    lam: float = 0.95
    standardise: Literal["policy", "global"] = "policy"
    value_clip: float = 0.2
    huber: float = 1.0
    max_grad_norm: float = 1.0
    target_kl: float | None = 0.05
    kl_coefficient: float = 0.0
    entropy_coefficient: float = 0.0
    engine_cap: float = 2.0

    def __post_init__(self) -> None:
        positive = (
            "lr critic_lr epochs critic_epochs minibatches micro_batch_tokens value_clip huber "
            "max_grad_norm engine_cap"
        )
        for name in positive.split():
            if not getattr(self, name) > 0:
                raise InvalidArgument(f"{name} must be positive, not {getattr(self, name)!r}")
        for name in ("clip", "target_kl"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise InvalidArgument(f"{name} must be positive or none, not {value!r}")
        for name in ("gamma", "lam"):
            require_fraction(name, getattr(self, name))
        for name in ("kl_coefficient", "entropy_coefficient"):
            if not 0 <= getattr(self, name) < math.inf:
                raise InvalidArgument(f"{name} must not be negative, not {getattr(self, name)!r}")
        if self.normalisation not in NORMALISATIONS:
            raise InvalidArgument(
                f"normalisation {self.normalisation!r} is not one of {NORMALISATIONS}"
            )
        if self.standardise not in ("policy", "global"):
            raise InvalidArgument(f"standardise {self.standardise!r} is not 'policy' or 'global'")

    @property
    def ratio_clip(self) -> float:
        """The clip in force."""
        return DEFAULT_CLIP[self.normalisation] if self.clip is None else self.clip


def require_fraction(name: str, value: float) -> None:
    """Refuse a discount or lambda outside [0, 1] with ``InvalidArgument``."""
    if not 0.0 <= value <= 1.0:
        raise InvalidArgument(f"{name} must be between 0 and 1, not {value!r}")


@dataclass(frozen=True)
class Recorded:
    """The turns of one policy, and their token log-probs under the policy that sampled them.

    Args:
        turns: in the order of the batch.
        index: int64, their places among all turns of the batch.
        log_probs: pi_old, float32 [B, L], 0 on padding.
        mask: bool [B, L], True on real tokens.
    """

    turns: list[SampledTurn]
    index: NDArray[np.int64]
    log_probs: Tensor
    mask: Tensor

    def engine_ratio(self) -> Tensor:
        """pi_old / mu per turn, [B], mu being the engine's own probability of the action."""
        mu = torch.zeros_like(self.log_probs)
        for row, turn in enumerate(self.turns):
            mu[row, : len(turn.log_probs)] = torch.from_numpy(turn.log_probs)
        return masked_sum(self.log_probs - mu, self.mask).exp()


def micro_batches(
    turns: Sequence[SampledTurn], chosen: Sequence[int], most_tokens: int
) -> Iterator[list[int]]:
    """Split ``chosen`` turns into forward passes of at most ``most_tokens`` padded tokens.

    Turns of similar length go together, so that little is padding. One turn that is too
    long by itself is a pass of its own.
    """

    def size(k: int) -> tuple[int, int]:
        return len(turns[k].prompt_ids), len(turns[k].action_ids)

    batch: list[int] = []
    longest = (0, 0)
    for k in sorted(chosen, key=lambda k: (sum(size(k)), k)):
        grown = (max(longest[0], size(k)[0]), max(longest[1], size(k)[1]))
        if batch and sum(grown) * (len(batch) + 1) > most_tokens:
            yield batch
            batch, grown = [], size(k)
        batch.append(k)
        longest = grown
    if batch:
        yield batch


@torch.no_grad()
def score(
    team: Team,
    policy: str,
    turns: list[SampledTurn],
    index: NDArray[np.int64],
    config: PPOConfig,
    temperature: float,
) -> Recorded:
    """Score recorded turns with a policy as it is now; no gradient."""
    width = max((len(turn.action_ids) for turn in turns), default=0)
    log_probs = torch.zeros(len(turns), width)
    mask = torch.zeros(len(turns), width, dtype=torch.bool)
    for rows in micro_batches(turns, range(len(turns)), config.micro_batch_tokens):
        scores = team.log_probs(policy, [turns[k] for k in rows], temperature=temperature)
        columns = scores.log_probs.shape[1]
        known = scores.mask.cpu()
        log_probs[rows, :columns] = scores.log_probs.float().cpu().masked_fill(~known, 0.0)
        mask[rows, :columns] = known
    return Recorded(turns, index, log_probs, mask)


def update_policy(
    team: Team,
    policy: str,
    optimizer: torch.optim.Optimizer,
    old: Recorded,
    weights: Tensor,
    rows: NDArray[np.int64],
    config: PPOConfig,
    *,
    temperature: float,
    rng: np.random.Generator,
) -> Metrics:
    """Optimise min(rho M A, clip(rho) M A) over one policy's turns, all its epochs.

    The loss of a minibatch is the mean over its turns. It stops early at ``target_kl``.

    Args:
        team: whose policy is updated.
        policy: its name.
        optimizer: of its parameters.
        old: its turns, with pi_old.
        weights: M A per turn (any engine correction included), float32 [B].
        rows: int64, the turns to learn from; the others' advantages are unusable.
        config: the settings.
        temperature: that the actions were sampled at.
        rng: shuffles the minibatches.

    Returns:
        ``loss``, ``clip_fraction`` (of turns), ``grad_norm`` (before scaling) and
        ``entropy`` (None without a bonus) as means over optimiser steps, ``steps`` and
        ``stopped`` (whether the KL stop fired).

    Raises:
        DivergenceError: a loss or gradient is not finite.
    """
    parameters = team.policy_parameters(policy)
    records: list[tuple[float, float, float, float]] = []
    stopped = False
    for _ in range(config.epochs):
        for chunk in np.array_split(rng.permutation(rows), min(config.minibatches, len(rows))):
            optimizer.zero_grad(set_to_none=True)
            total = clipped = moved = entropy = 0.0
            for part in micro_batches(old.turns, chunk.tolist(), config.micro_batch_tokens):
                terms = _policy_terms(team, policy, old, part, weights, config, temperature)
                loss = terms["loss"].sum() / len(chunk)
                if not torch.isfinite(loss):
                    raise DivergenceError(
                        f"the loss of policy {policy!r} is {loss.item()}; lower lr or "
                        "target_kl and resume from the last checkpoint"
                    )
                loss.backward()
                total += loss.item()
                clipped += terms["clipped"].sum().item() / len(chunk)
                moved += terms["kl"].sum().item()
                entropy += terms["entropy"].sum().item() / len(chunk)
            tokens = int(old.mask[chunk].sum())
            if config.target_kl is not None and moved > config.target_kl * max(tokens, 1):
                optimizer.zero_grad(set_to_none=True)
                stopped = True
                break
            norm = _clip_gradients(parameters, config.max_grad_norm, f"policy {policy!r}")
            optimizer.step()
            records.append((total, clipped, norm, entropy))
        if stopped:
            break
    team.versions[policy] += len(records) > 0
    return _summary(records, stopped, config)


def _policy_terms(
    team: Team,
    policy: str,
    old: Recorded,
    rows: list[int],
    weights: Tensor,
    config: PPOConfig,
    temperature: float,
) -> dict[str, Tensor]:
    """Loss, clip indicator, summed k3 and mean token entropy of some turns, each [len(rows)]."""
    turns = [old.turns[k] for k in rows]
    scores = team.log_probs(
        policy, turns, temperature=temperature, entropy=config.entropy_coefficient > 0
    )
    mask = scores.mask
    device, columns = mask.device, mask.shape[1]
    new = scores.log_probs.masked_fill(~mask, 0.0)
    before = old.log_probs[rows, :columns].to(device)
    count = mask.sum(dim=1).clamp(min=1)
    ratio = (masked_sum(new - before, mask) / lengths(turns, mask, config.normalisation)).exp()
    loss, clipped = clipped_surrogate(ratio, weights[rows].to(device), config.ratio_clip)
    entropy = torch.zeros_like(loss)
    if scores.entropy is not None:
        entropy = masked_sum(scores.entropy, mask) / count
        loss = loss - config.entropy_coefficient * entropy
    if config.kl_coefficient > 0:
        base = team.base_log_probs(turns, temperature=temperature)
        reference = base.log_probs.masked_fill(~base.mask, 0.0)
        loss = loss + config.kl_coefficient * masked_sum(k3(new, reference), mask) / count
    moved = masked_sum(k3(before, new.detach()), mask)
    return {"loss": loss, "clipped": clipped, "kl": moved, "entropy": entropy.detach()}


def _clip_gradients(parameters: list[torch.nn.Parameter], most: float, whose: str) -> float:
    norm = torch.nn.utils.clip_grad_norm_(parameters, most).item()
    if not math.isfinite(norm):
        raise DivergenceError(
            f"the gradient of {whose} is not finite; lower its learning rate and resume from "
            "the last checkpoint"
        )
    return norm


def _summary(
    records: list[tuple[float, float, float, float]], stopped: bool, config: PPOConfig
) -> Metrics:
    names = ("loss", "clip_fraction", "grad_norm", "entropy")
    means: Metrics = dict.fromkeys(names)
    if records:
        means = dict(zip(names, np.mean(records, axis=0).tolist(), strict=True))
    if config.entropy_coefficient == 0:
        means["entropy"] = None
    return {**means, "steps": len(records), "stopped": stopped}


def update_critic(
    team: Team,
    critic: str,
    optimizer: torch.optim.Optimizer,
    features: Tensor,
    old_values: NDArray[np.float64],
    targets: NDArray[np.float64],
    config: PPOConfig,
    *,
    rng: np.random.Generator,
) -> float:
    """Fit one value head to its targets; returns the mean loss over optimiser steps.

    Args:
        team: whose critic is updated.
        critic: its name.
        optimizer: of its parameters.
        features: [B, H].
        old_values: [B], V before the update, in units of reward.
        targets: [B], A + V.
        config: the settings.
        rng: shuffles the minibatches.

    Raises:
        DivergenceError: a loss or gradient is not finite.
    """
    parameters = team.critic_parameters(critic)
    before = torch.from_numpy(old_values).to(features.device, torch.float32)
    goal = torch.from_numpy(targets).to(features.device, torch.float32)
    losses = []
    for _ in range(config.critic_epochs):
        shuffled = rng.permutation(len(features))
        for chunk in np.array_split(shuffled, min(config.minibatches, len(features))):
            optimizer.zero_grad(set_to_none=True)
            rows = torch.from_numpy(chunk).to(features.device)
            values = team.values(critic, features[rows])
            loss = value_loss(
                values, before[rows], goal[rows], clip=config.value_clip, huber=config.huber
            ).mean()
            loss.backward()
            _clip_gradients(parameters, config.max_grad_norm, f"critic {critic!r}")
            optimizer.step()
            losses.append(loss.item())
    return float(np.mean(losses))


def adamw(parameters: list[torch.nn.Parameter], lr: float) -> torch.optim.AdamW:
    """AdamW without weight decay, which would pull adapters to the base undeclared."""
    return torch.optim.AdamW(parameters, lr=lr, weight_decay=0.0, eps=1e-5)


def explained_variance(values: NDArray[np.float64], targets: NDArray[np.float64]) -> float | None:
    """``1 - Var(target - V) / Var(target)``, or None when the targets do not vary."""
    spread = float(np.var(targets))
    return None if spread < 1e-12 else 1.0 - float(np.var(targets - values)) / spread
