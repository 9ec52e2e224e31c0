"""The settings that algorithms have in common, with the same defaults."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from flexmg.baselines.algorithms.losses import (
    AGGREGATIONS,
    DEFAULT_CLIP,
    NORMALISATIONS,
    TOKEN_CLIP,
    Aggregation,
    Normalisation,
)
from flexmg.errors import InvalidArgument

Level = Literal["action", "token"]
LEVELS: tuple[Level, ...] = get_args(Level)


@dataclass(frozen=True, kw_only=True)
class PolicyConfig:
    """How a policy is optimised on its turns, whatever its advantages are.

    Args:
        lr: AdamW step size of the policies (constant, no weight decay).
        epochs: passes over a policy's turns per iteration.
        minibatches: optimiser steps per pass.
        micro_batch_tokens: the most tokens (prompt and action, padding included) in one
            forward pass with gradient; bounds memory, never changes the result.
        level: ``action`` (a whole action is one decision, with one ratio) or ``token``.
        normalisation: at the action level, how the token log-probs of an action make one
            log-prob: ``sum`` (the only one whose ratio is an importance weight), ``token``
            or ``word`` (divided by the number of tokens, or of white-space words).
        aggregation: at the token level, how the losses of tokens make one loss:
            ``turn-sum`` (summed over each turn, mean over turns), ``turn-mean`` (mean of
            turn means) or ``token-mean`` (mean over all tokens); None for the algorithm's
            default.
        clip: half-width of the ratio's clip; None for the default of level and
            normalisation, ``inf`` for none.
        clip_high: another half-width above 1; None for the algorithm's default, which is the
            same, or GRPO's 1.4 times it.
        max_grad_norm: gradients are scaled down to this norm, per policy and per critic.
        target_kl: a policy stops its update once the k3 estimate per token of its move in
            this iteration exceeds this; None never stops.
        kl_coefficient: weight of the k3 estimate per token of KL(policy || base model).
        entropy_coefficient: weight of the mean token entropy, as a bonus.
        engine_cap: turns (tokens, at the token level) are weighted by
            min(pi_old / mu, engine_cap), mu being the generation engine's own probability;
            1 everywhere for an exact engine.
    """

    default_aggregation: ClassVar[Aggregation] = "turn-sum"
    high_share: ClassVar[float] = 1.0

    lr: float = 1e-3
    epochs: int = 2
    minibatches: int = 2
    micro_batch_tokens: int = 4_096
    level: Level = "action"
    normalisation: Normalisation = "sum"
    aggregation: Aggregation | None = None
    clip: float | None = None
    clip_high: float | None = None
    max_grad_norm: float = 1.0
    target_kl: float | None = 0.05
    kl_coefficient: float = 0.0
    entropy_coefficient: float = 0.0
    engine_cap: float = 2.0

    def __post_init__(self) -> None:
        require_positive(
            self, "lr", "epochs", "minibatches", "micro_batch_tokens", "max_grad_norm", "engine_cap"
        )
        for name in ("clip", "clip_high", "target_kl"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise InvalidArgument(f"{name} must be positive or none, not {value!r}")
        for name in ("kl_coefficient", "entropy_coefficient"):
            if not 0 <= getattr(self, name) < math.inf:
                raise InvalidArgument(f"{name} must not be negative, not {getattr(self, name)!r}")
        require_one_of(self, "level", LEVELS)
        require_one_of(self, "normalisation", NORMALISATIONS)
        if self.level == "token" and self.normalisation != "sum":
            raise InvalidArgument(
                f"normalisation {self.normalisation!r} is of whole actions, and at the token level "
                "every token has a ratio of its own; leave it out, or use level 'action'"
            )
        if self.aggregation is not None:
            require_one_of(self, "aggregation", AGGREGATIONS)
            if self.level == "action":
                raise InvalidArgument(
                    f"aggregation {self.aggregation!r} is of token losses, and at the action level "
                    "a turn has one; leave it out, or use level 'token'"
                )

    @property
    def token_aggregation(self) -> Aggregation:
        """The aggregation in force at the token level."""
        return self.aggregation or self.default_aggregation

    @property
    def ratio_clip(self) -> tuple[float, float]:
        """The clip in force: half-widths below and above 1."""
        default = TOKEN_CLIP if self.level == "token" else DEFAULT_CLIP[self.normalisation]
        low = default if self.clip is None else self.clip
        # Rounded, so that 1.4 times 0.2 is 0.28.
        return low, round(low * self.high_share, 9) if self.clip_high is None else self.clip_high


@dataclass(frozen=True, kw_only=True)
class PPOConfig(PolicyConfig):
    """What MARFT and Independent PPO have in common; the rest is :class:`PolicyConfig`'s.

    Args:
        critic_lr: AdamW step size of the critics.
        critic_epochs: passes of a critic over its turns per iteration.
        gamma: discount per env step.
        gamma_w: discount from token to token within an action; at the token level only.
        lam: GAE lambda per env step.
        lam_w: GAE lambda within an action; at the token level only.
        standardise: ``policy`` standardises advantages per policy and role, ``global``
            over all turns (an ablation).
        value_clip: the most a value may move per iteration, in units of reward.
        huber: error at which the value loss turns from quadratic to linear.
    """

    critic_lr: float = 1e-3
    critic_epochs: int = 4
    gamma: float = 0.99
    gamma_w: float = 1.0
    lam: float = 0.95
    lam_w: float = 1.0
    standardise: Literal["policy", "global"] = "policy"
    value_clip: float = 0.2
    huber: float = 1.0

    def __post_init__(self) -> None:
        PolicyConfig.__post_init__(self)
        require_positive(self, "critic_lr", "critic_epochs", "value_clip", "huber")
        require_fraction(self, "gamma", "gamma_w", "lam", "lam_w")
        require_one_of(self, "standardise", ("policy", "global"))
        if self.level == "action" and (self.gamma_w, self.lam_w) != (1.0, 1.0):
            raise InvalidArgument(
                "gamma_w and lam_w work within actions, at level 'token' only; at the action "
                "level leave them at 1"
            )


def require_positive(config: object, *names: str) -> None:
    """Refuse settings that are not above 0 with ``InvalidArgument``."""
    for name in names:
        if not getattr(config, name) > 0:
            raise InvalidArgument(f"{name} must be positive, not {getattr(config, name)!r}")


def require_fraction(config: object, *names: str) -> None:
    """Refuse discounts or lambdas outside [0, 1] with ``InvalidArgument``."""
    for name in names:
        if not 0.0 <= getattr(config, name) <= 1.0:
            raise InvalidArgument(f"{name} must be between 0 and 1, not {getattr(config, name)!r}")


def require_one_of(config: object, name: str, choices: tuple[str, ...]) -> None:
    """Refuse a setting that is none of its choices with ``InvalidArgument``."""
    if getattr(config, name) not in choices:
        known = ", ".join(map(repr, choices))
        raise InvalidArgument(f"{name} {getattr(config, name)!r} is not one of {known}")
