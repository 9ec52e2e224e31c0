"""Agent steps per second of a scripted ``math-orch-workers-v0``, against a bare AEC loop.

Five agents (orchestrator, three workers, synthesizer), one process, grading included;
target: 10,000 steps per second. Three cases take turns:

* ``recorded``: the agents' texts are known beforehand, so the environment alone is timed;
* ``scripted``: each text is written by ``demonstrate`` when it is needed;
* ``bare loop``: a PettingZoo environment of five agents that does nothing at all.

A step is an agent's action; the dead steps that end each episode take time but do not count.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

from gymnasium import spaces
from pettingzoo import AECEnv

import flexmg
from benchmarks.measure import interleaved, versions

ID = "math-orch-workers-v0"
# Work for all three workers; a demonstration may ask fewer of them.
ORDERS = "1. Work step by step.\n2. Compute each part first.\n3. Estimate, then compute."
TEAM = 5
EPISODES = 400
ROUNDS = 7


class BareLoop(AECEnv[str, str, str | None]):
    """Five agents say one word each: the bookkeeping that the AEC interface itself asks for."""

    metadata = {"name": "bare_loop_v0", "render_modes": []}

    def __init__(self) -> None:
        super().__init__()
        self.possible_agents = [f"agent_{i}" for i in range(TEAM)]
        self.render_mode = None
        self._space = spaces.Text(8)

    def observation_space(self, agent: str) -> spaces.Text:
        return self._space

    def action_space(self, agent: str) -> spaces.Text:
        return self._space

    def observe(self, agent: str) -> str:
        return "hello"

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        self.agents = list(self.possible_agents)
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in self.agents}
        self._skip_agent_selection: str | None = None
        self.agent_selection = self.agents[0]

    def step(self, action: str | None) -> None:
        agent = self.agent_selection
        if self.terminations[agent]:
            self._was_dead_step(action)
            return
        self._cumulative_rewards[agent] = 0.0
        self._clear_rewards()
        place = self.agents.index(agent)
        if place == TEAM - 1:
            self.rewards = dict.fromkeys(self.agents, 1.0)
            self.terminations = dict.fromkeys(self.agents, True)
        else:
            self.agent_selection = self.agents[place + 1]
        self._accumulate_rewards()
        self._deads_step_first()


def play(env: AECEnv, act: Callable[[str], str], episode: int) -> int:
    """One episode; how many actions it took."""
    env.reset(seed=episode)
    actions = 0
    for agent in env.agent_iter():
        _, _, termination, truncation, _ = env.last()
        if termination or truncation:
            env.step(None)
        else:
            env.step(act(agent))
            actions += 1
    return actions


def steps_per_second(env: AECEnv, acts: list[Callable[[str], str]]) -> float:
    start = perf_counter()
    actions = sum(play(env, act, episode) for episode, act in enumerate(acts))
    return actions / (perf_counter() - start)


def scripted(env: flexmg.FlexMarkovGame, agent: str) -> str:
    """What an agent says: the orchestrator its orders, the others their demonstration."""
    return ORDERS if agent == "orchestrator_0" else env.demonstrate(agent)


def recorded_texts(env: flexmg.FlexMarkovGame, episode: int) -> dict[str, str]:
    """What each agent says in one scripted episode."""
    texts: dict[str, str] = {}

    def act(agent: str) -> str:
        texts[agent] = scripted(env, agent)
        return texts[agent]

    play(env, act, episode)
    assert len(texts) == TEAM, f"seed {episode}: only {list(texts)} act"
    return texts


if __name__ == "__main__":
    game, bare = flexmg.make(ID), BareLoop()
    recorded = [recorded_texts(game, episode).__getitem__ for episode in range(EPISODES)]
    cases = {
        "recorded": partial(steps_per_second, game, recorded),
        "scripted": partial(steps_per_second, game, [partial(scripted, game)] * EPISODES),
        "bare loop": partial(steps_per_second, bare, [lambda agent: "hello"] * EPISODES),
    }
    medians = interleaved(cases, ROUNDS)
    print(f"{versions('flexmg', 'pettingzoo', 'math-verify')}; {ID}, medians of {ROUNDS}")
    for name, median in medians.items():
        print(f"{name:14} {median:9,.0f} steps/s")
    print(f"bare loop / recorded  {medians['bare loop'] / medians['recorded']:.1f}")
    print("target for recorded: 10,000 steps/s")
