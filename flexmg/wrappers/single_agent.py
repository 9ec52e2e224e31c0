"""One role learns, given policies play the others: a ``gymnasium.Env``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium

from flexmg.agents import AGENT_NAME, Policy, role_of
from flexmg.errors import GameError, InvalidArgument

PATIENCE = 100  # episodes in a row that may end without the learner being called


class SingleAgent(gymnasium.Env):
    """A single-agent view of a team: for algorithms that know of one agent only.

    ``reset`` and ``step`` return when the learner is to act, or when the episode is over;
    in between the others act by their policies. The reward of a step is what the learner
    has earned since its last action, that of its dead step included, so that an episode's
    rewards add up to what the game pays it. Episodes in which the learner is never called
    (an orchestrator may call fewer workers) are played to the end and left out;
    ``info["skipped"]`` counts them.

    A role of several agents is played by one learner: they act in turn, ``info["agent"]``
    names the one who is to act, and the reward is the mean over those of them who have
    been called, so that the team's outcome is still paid once.

    Args:
        env: a PettingZoo AEC environment.
        learner: an agent's name (``"worker_0"``) or a role (``"worker"``).
        policies: for everybody else: one for all, or by agent name or role.

    Raises:
        InvalidArgument: no such agent, agents of the role with different spaces, or
            somebody without a policy.
    """

    metadata = {"render_modes": ["ansi", "human", "html"]}

    def __init__(self, env: Any, learner: str, policies: Policy | Mapping[str, Policy]) -> None:
        by_name = AGENT_NAME.match(learner) is not None
        self.learners = tuple(
            a for a in env.possible_agents if learner == (a if by_name else role_of(a))
        )
        if not self.learners:
            raise InvalidArgument(
                f"nobody is called {learner!r}; the agents are {list(env.possible_agents)}"
            )
        self.env = env
        self.render_mode = getattr(env, "render_mode", None)
        self.observation_space = env.observation_space(self.learners[0])
        self.action_space = env.action_space(self.learners[0])
        for agent in self.learners[1:]:
            if (
                env.observation_space(agent) != self.observation_space
                or env.action_space(agent) != self.action_space
            ):
                raise InvalidArgument(
                    f"{agent} and {self.learners[0]} have different spaces; name one of them as "
                    "the learner"
                )
        self._policies: dict[str, Policy] = {}
        for agent in env.possible_agents:
            if agent in self.learners:
                continue
            policy = (
                policies.get(agent, policies.get(role_of(agent)))
                if isinstance(policies, Mapping)
                else policies
            )
            if policy is None:
                raise InvalidArgument(f"{agent} has no policy; give one for its name or role")
            self._policies[agent] = policy
        self._last: dict[str, Any] = {}
        self._called: set[str] = set()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode and play to the learner's first action.

        Args:
            seed: of the episode, and of ``np_random``; see ``FlexMarkovGame.reset``.
            options: likewise.

        Raises:
            GameError: the learner was not called in 100 episodes in a row.
        """
        super().reset(seed=seed)
        for skipped in range(PATIENCE):
            self.env.reset(seed=seed, options=options)
            self._last, self._called = {}, set()
            # A reward before the first action belongs to no action.
            _, over = self._advance()
            if not over:
                return self._last["observation"], {**self._info(), "skipped": skipped}
            seed = None
        raise GameError(
            f"{' or '.join(self.learners)} was not called in {PATIENCE} episodes in a row; let the "
            "policies of the others call it, or choose another learner"
        )

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Act for the learner and play on to its next action, or to the end.

        Raises:
            GameError: before ``reset``, or after the end.
        """
        if not self._last or not self.env.agents:
            raise GameError("the episode is over or has not begun; call reset() first")
        self.env.step(action)
        reward, over = self._advance()
        cut = over and self._last["cut"]
        return self._last["observation"], reward, over and not cut, cut, self._info()

    def render(self) -> Any:
        """What the environment renders."""
        return self.env.render()

    def close(self) -> None:
        """Close the environment."""
        self.env.close()

    def _info(self) -> dict[str, Any]:
        return {**self._last["info"], "agent": self._last["agent"]}

    def _advance(self) -> tuple[float, bool]:
        """Play until a learner is to act; what the learners were paid, and whether it is over."""
        paid: dict[str, float] = {}
        while self.env.agents:
            agent = self.env.agent_selection
            learning = agent in self.learners
            observation, reward, terminated, truncated, info = self.env.last(
                observe=learning or not self._dead(agent)
            )
            if learning:
                self._called.add(agent)
                paid[agent] = paid.get(agent, 0.0) + float(reward)
                self._last = {
                    "agent": agent,
                    "observation": observation,
                    "info": info,
                    "cut": truncated and not terminated,
                }
            if terminated or truncated:
                self.env.step(None)
            elif learning:
                return self._mean(paid), False
            else:
                self.env.step(self._policies[agent](agent, observation))
        return self._mean(paid), True

    def _dead(self, agent: str) -> bool:
        return self.env.terminations[agent] or self.env.truncations[agent]

    def _mean(self, paid: Mapping[str, float]) -> float:
        return sum(paid.values()) / max(1, len(self._called))
