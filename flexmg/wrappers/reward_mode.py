"""Another reward over the same environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pettingzoo.utils import BaseWrapper

from flexmg.game import Outcome
from flexmg.reward import Reward
from flexmg.transcript import Transcript


class RewardMode(BaseWrapper):
    """Pays the agents of a game by another mode, and leaves the game itself as it is.

    Several of these may stand over games that are made alike, so that reward modes can be
    compared on the very same episodes. ``outcome`` and ``transcript`` tell the new
    rewards; ``infos`` tell all terms anyway.

    Args:
        env: a Flexible Markov Game, wrapped or not.
        mode: ``"team"``, ``"designated"``, ``"local"``, ``"mixed"``, or weights of terms, see
            :class:`flexmg.reward.Reward`.

    Raises:
        InvalidArgument: an unknown mode or term.
    """

    def __init__(self, env: Any, mode: str | Mapping[str, float]) -> None:
        super().__init__(env)
        self.mode = mode if isinstance(mode, str) else dict(mode)
        self.reward = Reward.of(mode)
        self.rewards: dict[str, float] = {}
        self._cumulative_rewards: dict[str, float] = {}

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Begin an episode; see :meth:`flexmg.game.FlexMarkovGame.reset`."""
        self.env.reset(seed=seed, options=options)
        self.rewards = dict.fromkeys(self.env.agents, 0.0)
        self._cumulative_rewards = dict(self.rewards)

    def step(self, action: Any) -> None:
        """Act; when that ends the episode, every agent is paid by the mode."""
        agent = self.env.agent_selection
        was_over = self.env.finished
        self.env.step(action)
        if not was_over:
            self._cumulative_rewards[agent] = 0.0
        ended = self.env.finished and not was_over
        paid = self.outcome.rewards if ended and self.outcome is not None else {}
        self.rewards = {a: paid.get(a, 0.0) for a in self.env.agents}
        self._cumulative_rewards = {
            a: self._cumulative_rewards.get(a, 0.0) + self.rewards[a] for a in self.env.agents
        }

    @property
    def outcome(self) -> Outcome | None:
        """What came of the episode, paid by the mode; None until it is finished."""
        outcome = self.env.outcome
        if outcome is None:
            return None
        if outcome.infra_error:
            rewards, central = dict.fromkeys(outcome.rewards, 0.0), 0.0
        else:
            rewards = self.reward.agent_rewards(outcome.terms)
            central = self.reward.central(outcome.verdict.score, outcome.terms)
        steps = (*outcome.step_rewards[:-1], central)
        return replace(outcome, rewards=rewards, step_rewards=steps)

    def transcript(self) -> Transcript:
        """The episode so far, as a game that was made with ``reward=mode`` records it."""
        record = self.env.transcript()
        record = replace(record, kwargs={**record.kwargs, "reward": self.mode})
        outcome = self.outcome
        if outcome is None:
            return record
        return replace(record, rewards=dict(outcome.rewards), step_rewards=outcome.step_rewards)

    def snapshot(self) -> tuple[Any, dict[str, float], dict[str, float]]:
        """The whole state, to go back to."""
        return self.env.snapshot(), dict(self.rewards), dict(self._cumulative_rewards)

    def restore(self, snapshot: tuple[Any, dict[str, float], dict[str, float]]) -> None:
        """Go back to a snapshot."""
        inner, rewards, cumulative = snapshot
        self.env.restore(inner)
        self.rewards, self._cumulative_rewards = dict(rewards), dict(cumulative)
