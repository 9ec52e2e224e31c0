"""The inner loop of every algorithm here.

:func:`update_policy` optimises one policy on its own turns with the clipped surrogate;
:func:`update_critic` fits one critic. What differs between the algorithms (whose
advantages, in which order, with which importance factors) is in their own files.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from flexmg.baselines.algorithms.losses import (
    aggregate,
    clipped_surrogate,
    divisor,
    k3,
    lengths,
    masked_sum,
    value_loss,
)
from flexmg.baselines.algorithms.protocol import Metrics, Reading, Team
from flexmg.baselines.algorithms.settings import Level, PolicyConfig, PPOConfig
from flexmg.baselines.rollout.turns import SampledTurn
from flexmg.errors import FlexMGError


class DivergenceError(FlexMGError, ArithmeticError):
    """A loss or gradient is not finite; nothing of the broken step was applied."""


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

    def engine_ratio(self, level: Level = "action") -> Tensor:
        """pi_old / mu, mu being the engine's own probability: [B], or [B, L] of tokens."""
        mu = torch.zeros_like(self.log_probs)
        for row, turn in enumerate(self.turns):
            mu[row, : len(turn.log_probs)] = torch.from_numpy(turn.log_probs)
        gap = (self.log_probs - mu).masked_fill(~self.mask, 0.0)
        return gap.exp() if level == "token" else gap.sum(dim=1).exp()


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
    config: PolicyConfig,
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
    config: PolicyConfig,
    *,
    temperature: float,
    rng: np.random.Generator,
) -> Metrics:
    """Optimise min(rho M A, clip(rho) M A) over one policy's turns, all its epochs.

    The loss of a minibatch is the mean over its turns (over its tokens with the aggregation
    ``token-mean``). It stops early at ``target_kl``.

    Args:
        team: whose policy is updated.
        policy: its name.
        optimizer: of its parameters.
        old: its turns, with pi_old.
        weights: M A (any engine correction included), float32: [B] per turn at the action
            level, [B, L] per token at the token level.
        rows: int64, the turns to learn from; the others' advantages are unusable.
        config: the settings.
        temperature: that the actions were sampled at.
        rng: shuffles the minibatches.

    Returns:
        ``loss``, ``clip_fraction`` (of turns or tokens), ``grad_norm`` (before scaling) and
        ``entropy`` (None without a bonus) as means over optimiser steps, ``steps`` and
        ``stopped`` (whether the KL stop fired).

    Raises:
        DivergenceError: a loss or gradient is not finite.
    """
    parameters = team.policy_parameters(policy)
    aggregation = config.token_aggregation if config.level == "token" else "turn-sum"
    records: list[tuple[float, float, float, float]] = []
    stopped = False
    for _ in range(config.epochs):
        for chunk in np.array_split(rng.permutation(rows), min(config.minibatches, len(rows))):
            optimizer.zero_grad(set_to_none=True)
            total = clipped = moved = entropy = 0.0
            whole = divisor(old.mask[chunk], aggregation)
            for part in micro_batches(old.turns, chunk.tolist(), config.micro_batch_tokens):
                terms = policy_terms(team, policy, old, part, weights, config, temperature)
                loss = terms["surrogate"].sum() / whole + terms["extra"].sum() / len(chunk)
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


def policy_terms(
    team: Team,
    policy: str,
    old: Recorded,
    rows: list[int],
    weights: Tensor,
    config: PolicyConfig,
    temperature: float,
) -> dict[str, Tensor]:
    """What some turns add to the loss and the records, each [len(rows)].

    ``surrogate``, to be divided by the minibatch's divisor; ``extra`` (KL and entropy
    terms), by its turns; share ``clipped``, summed k3 ``kl``, mean token ``entropy``.
    """
    turns = [old.turns[k] for k in rows]
    scores = team.log_probs(
        policy, turns, temperature=temperature, entropy=config.entropy_coefficient > 0
    )
    mask = scores.mask
    device, columns = mask.device, mask.shape[1]
    new = scores.log_probs.masked_fill(~mask, 0.0)
    before = old.log_probs[rows, :columns].to(device)
    count = mask.sum(dim=1).clamp(min=1)
    if config.level == "token":
        own = weights[rows, :columns].to(device)
        tokens, stopped = clipped_surrogate((new - before).exp(), own, *config.ratio_clip)
        surrogate = aggregate(tokens, mask, config.token_aggregation)
        clipped = masked_sum(stopped.float(), mask) / count
    else:
        moved = masked_sum(new - before, mask) / lengths(turns, mask, config.normalisation)
        own = weights[rows].to(device)
        surrogate, clipped = clipped_surrogate(moved.exp(), own, *config.ratio_clip)
    extra = entropy = torch.zeros_like(surrogate)
    if scores.entropy is not None:
        entropy = masked_sum(scores.entropy, mask) / count
        extra = extra - config.entropy_coefficient * entropy
    if config.kl_coefficient > 0:
        base = team.base_log_probs(turns, temperature=temperature)
        reference = base.log_probs.masked_fill(~base.mask, 0.0)
        extra = extra + config.kl_coefficient * masked_sum(k3(new, reference), mask) / count
    return {
        "surrogate": surrogate,
        "extra": extra,
        "clipped": clipped,
        "kl": masked_sum(k3(before, new.detach()), mask),
        "entropy": entropy.detach(),
    }


def _clip_gradients(parameters: list[torch.nn.Parameter], most: float, whose: str) -> float:
    norm = torch.nn.utils.clip_grad_norm_(parameters, most).item()
    if not math.isfinite(norm):
        raise DivergenceError(
            f"the gradient of {whose} is not finite; lower its learning rate and resume from "
            "the last checkpoint"
        )
    return norm


def _summary(
    records: list[tuple[float, float, float, float]], stopped: bool, config: PolicyConfig
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
    reading: Reading,
    old_values: NDArray[np.float64],
    targets: NDArray[np.float64],
    config: PPOConfig,
    *,
    rng: np.random.Generator,
) -> float:
    """Fit one critic to its targets; returns the mean loss over optimiser steps.

    Args:
        team: whose critic is updated.
        critic: its name.
        optimizer: of its parameters.
        reading: the critic's inputs, one per turn; one position per turn or per token.
        old_values: V before the update at every position, in units of reward.
        targets: A + V, laid out like ``old_values``.
        config: the settings.
        rng: shuffles the minibatches of turns.

    Raises:
        DivergenceError: a loss or gradient is not finite.
    """
    parameters = team.critic_parameters(critic)
    before, goal = torch.from_numpy(old_values).float(), torch.from_numpy(targets).float()
    starts = np.cumsum(reading.lengths) - reading.lengths
    losses = []
    for _ in range(config.critic_epochs):
        shuffled = rng.permutation(len(reading))
        for chunk in np.array_split(shuffled, min(config.minibatches, len(reading))):
            optimizer.zero_grad(set_to_none=True)
            place = np.concatenate(
                [np.arange(starts[k], starts[k] + reading.lengths[k]) for k in chunk]
            )
            values = team.values(critic, reading[chunk])
            loss = value_loss(
                values,
                before[place].to(values.device),
                goal[place].to(values.device),
                clip=config.value_clip,
                huber=config.huber,
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
