"""The whole tree of a small game: every episode, and its probability under a tabular team.

The tree is made by driving the real environment with ``snapshot`` and ``restore``, and its
episodes are recorded by the collector's own functions: what is computed on it is about the
records that algorithms see, not about a model of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

import flexmg
from flexmg.baselines.exact.team import TabularTeam
from flexmg.baselines.generation.protocol import Generation
from flexmg.baselines.rollout.recording import (
    Sampled,
    record_outcome,
    record_states,
    record_turns,
)
from flexmg.baselines.rollout.turns import Batch, Episode
from flexmg.errors import InvalidArgument
from flexmg.seeding import stream

MOST_EPISODES = 100_000


class GameTree:
    """All episodes of a game, over all its problems, drawn with equal chances.

    Attributes:
        episodes: one per leaf, without sampling log-probs.
        chances: float64, one per episode: that of its problem.
        policies: names of the policies, by agent.
        states: number of different observations and critic inputs; a tabular team for this
            game has so many rows.
        actions: the letters that are played; token k is the k-th.

    Args:
        env: id of the environment, or a function that makes one.
        letters: what every agent chooses from.
        policy_of: agent to policy; each agent its own by default.
        **env_args: for ``flexmg.make``.

    Raises:
        InvalidArgument: a source without an end, or more than 100,000 episodes.
    """

    def __init__(
        self,
        env: str | Callable[[], Any],
        letters: Sequence[str] = ("A", "B"),
        policy_of: Mapping[str, str] | None = None,
        **env_args: Any,
    ) -> None:
        made = flexmg.make(env, **env_args) if isinstance(env, str) else env()
        self.game = made.unwrapped
        self.actions = tuple(letters)
        agents = self.game.possible_agents
        self.policies = dict(policy_of or {agent: agent for agent in agents})
        self._rows: dict[tuple[str, ...], int] = {}
        self.episodes: list[Episode] = []
        chances: list[float] = []
        size = self.game.source.size
        if size is None:
            raise InvalidArgument("a game whose problems have no end cannot be enumerated")
        for problem in range(size):
            self.game.reset(seed=0, options={"problem": problem})
            before = len(self.episodes)
            self._grow({})
            chances += [1 / size] * (len(self.episodes) - before)
        self.chances = np.array(chances)

    @property
    def states(self) -> int:
        """Rows that a table for this game needs."""
        return len(self._rows)

    def team(self, critics: Sequence[str] = ("central",), seed: int | None = None) -> TabularTeam:
        """A team for this game: uniform, or with random logits by seed."""
        policies = tuple(dict.fromkeys(self.policies.values()))
        team = TabularTeam(policies, critics, states=self.states, actions=len(self.actions))
        if seed is not None:
            for policy in policies:
                noise = stream("tabular", seed, policy).normal(size=team.tables[policy].shape)
                team.tables[policy].data += torch.from_numpy(noise).float()
        return team

    def log_probabilities(self, team: TabularTeam) -> Tensor:
        """Log-probability of every episode, float64 [episodes], differentiable in the tables."""
        logs = {p: torch.log_softmax(t.double(), dim=-1) for p, t in team.tables.items()}
        totals = [
            torch.stack(
                [logs[t.policy][int(t.prompt_ids[-1]), int(t.action_ids[0])] for t in e.turns]
            ).sum()
            for e in self.episodes
        ]
        return torch.stack(totals) + torch.from_numpy(np.log(self.chances))

    def outcomes(self) -> NDArray[np.float64]:
        """R of every episode."""
        return np.array([episode.step_rewards.sum() for episode in self.episodes])

    def value(self, team: TabularTeam) -> float:
        """J: the expected outcome."""
        with torch.no_grad():
            return float(self.log_probabilities(team).exp() @ torch.from_numpy(self.outcomes()))

    def gradient(self, team: TabularTeam) -> dict[str, Tensor]:
        """The exact gradient of J, one table per policy, float64."""
        expected = self.log_probabilities(team).exp() @ torch.from_numpy(self.outcomes())
        tables = list(team.tables.values())
        found = torch.autograd.grad(expected, tables, allow_unused=True)
        return {
            policy: torch.zeros_like(table).double() if g is None else g.double()
            for (policy, table), g in zip(team.tables.items(), found, strict=True)
        }

    def sample(self, team: TabularTeam, count: int, *key: int) -> Batch:
        """Episodes as a collector would bring them, with the engine's log-probs."""
        with torch.no_grad():
            chances = self.log_probabilities(team).exp().numpy()
        picks = stream("exact", *key).choice(len(chances), size=count, p=chances / chances.sum())
        logs = {p: torch.log_softmax(t.detach(), dim=-1) for p, t in team.tables.items()}
        batch = []
        for number, pick in enumerate(picks):
            leaf = self.episodes[pick]
            turns = []
            for turn in leaf.turns:
                row, action = int(turn.prompt_ids[-1]), int(turn.action_ids[0])
                played = logs[turn.policy][row, action].reshape(1).numpy()
                turns.append(replace(turn, log_probs=played))
            batch.append(replace(leaf, turns=turns, sample=number))
        return Batch(batch)

    def _row(self, *key: str) -> int:
        return self._rows.setdefault(key, len(self._rows))

    def _grow(self, sampled: dict[str, list[Sampled]]) -> None:
        if self.game.finished:
            self._record(sampled)
            return
        agent = self.game.ready[0]
        row = self._row("observation", agent, str(self.game.observe(agent)["messages"]))
        before = self.game.snapshot()
        for token, letter in enumerate(self.actions):
            action = Sampled(
                policy=self.policies[agent],
                version=0,
                prompt_ids=np.array([row], dtype=np.int32),
                cut=0,
                generation=Generation(
                    np.array([token], dtype=np.int32), np.zeros(1, dtype=np.float32), "eos"
                ),
                text=letter,
            )
            self.game.select(agent)
            self.game.step(letter)
            self._grow({**sampled, agent: [*sampled.get(agent, []), action]})
            self.game.restore(before)

    def _record(self, sampled: dict[str, list[Sampled]]) -> None:
        if len(self.episodes) == MOST_EPISODES:
            raise InvalidArgument(f"the game has more than {MOST_EPISODES} episodes")

        def state(known: Mapping[str, Any], agent: str, policy: str) -> NDArray[np.int32]:
            said = [f"{turn['agent']} {turn['text']}" for turn in known["turns"]]
            row = self._row("state", known["statement"], agent, *said)
            return np.array([row], dtype=np.int32)

        turns = record_turns(self.game, sampled, ())
        record_states(turns, self.game.problem.statement, state)
        self.episodes.append(record_outcome(self.game, len(self.episodes), turns, None))
