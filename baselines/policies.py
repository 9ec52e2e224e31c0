"""Policies that play one agent at a time: scripted, random, or a language model.

They satisfy :class:`flexmg.agents.Policy`, for ``flexmg play``, ``SingleAgent`` and loops
of one's own. To play many episodes, use a ``Collector``: it batches.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from flexmg.agents import AgentSpec, Policy, Profile
from flexmg.seeding import stream
from flexmg.spaces import LONGEST_SAMPLE, SAMPLE_CHARACTERS, ObservationSpace, Utterance
from flexmg.workflow import LONGEST_ACTION, LONGEST_MESSAGE

if TYPE_CHECKING:
    from flexmg.baselines.generation.protocol import Engine
    from flexmg.baselines.models.team import Team

PLAYER = "player_0"  # who a model is when it may be anybody
PLAYER_TOKENS = 256


class ScriptedPolicy:
    """Plays correctly on problems that carry their solution (the synthetic ones).

    Args:
        game: the game being played (``env.unwrapped``); it knows the solution.
    """

    def __init__(self, game: Any) -> None:
        self.game = game

    def __call__(self, agent: str, observation: Mapping[str, Any]) -> str:
        """The demonstration for this agent; its observation is the game's own already.

        Raises:
            InvalidArgument: the problem or the workflow has no demonstrations.
        """
        del observation
        text: str = self.game.demonstrate(agent)
        return text


class RandomPolicy:
    """Writes short random texts: the floor of every comparison.

    Args:
        seed: of its texts.
    """

    def __init__(self, seed: int = 0) -> None:
        self._rng = stream("random policy", seed)

    def __call__(self, agent: str, observation: Mapping[str, Any]) -> str:
        """At least one character, at most 64, whatever the observation."""
        del agent, observation
        return short_random_text(self._rng)


def short_random_text(rng: np.random.Generator) -> str:
    """Between one and 64 characters that every game accepts."""
    length = int(rng.integers(1, LONGEST_SAMPLE + 1))
    return "".join(SAMPLE_CHARACTERS[i] for i in rng.integers(0, len(SAMPLE_CHARACTERS), length))


class LanguageModelPolicy:
    """Plays agents with the policies of a team.

    Args:
        team: the team; its policy map says which adapter plays whom.
        specs: ``game.specs``, for the agents' token limits.
        temperature: of sampling.
        greedy: take the likeliest tokens instead.
        seed: of its draws; the n-th call of an agent draws the same whatever others do.
        engine: what generates; by default one of this process.
    """

    def __init__(
        self,
        team: Team,
        specs: Mapping[str, AgentSpec],
        *,
        temperature: float = 1.0,
        greedy: bool = False,
        seed: int = 0,
        engine: Engine | None = None,
    ) -> None:
        # Scripted and random play need no torch.
        from flexmg.baselines.generation.dispatch import TeamEngine
        from flexmg.baselines.rollout.rendering import Renderer

        self.team = team
        self.specs = specs
        self.temperature = temperature
        self.greedy = greedy
        self.seed = seed
        self.engine = engine or TeamEngine(team)
        self.renderer = Renderer(team.base.tokenizer)
        self._calls: dict[str, int] = {}

    def __call__(self, agent: str, observation: Mapping[str, Any]) -> str:
        """Read the observation, generate one action, and return its text.

        Raises:
            InvalidArgument: the team has no such agent.
        """
        from flexmg.baselines.generation.protocol import Request, SamplingParams
        from flexmg.baselines.rollout.rendering import prompt_limit

        policy = self.team.policy_of(agent)
        tokens = self.specs[agent].token_limit
        limit = prompt_limit(self.team.base.context_length, tokens)
        call = self._calls.get(agent, 0)
        self._calls[agent] = call + 1
        request = Request(
            policy=policy,
            prompt_ids=self.renderer.prompt(observation, limit)[0],
            sampling=SamplingParams(tokens, temperature=self.temperature, greedy=self.greedy),
            key=(self.seed, list(self.specs).index(agent), call),
        )
        (generation,) = self.engine.generate([request])
        return self.renderer.decode(generation.action_ids)


def model_player(name: str) -> Policy:
    """A plain model that plays any agent of any game: what ``flexmg play --model NAME`` seats.

    Args:
        name: a model, as :func:`flexmg.baselines.models.base.load_base` takes it.

    Raises:
        ModelError: it cannot be loaded.
    """
    from flexmg.baselines.models.base import load_base
    from flexmg.baselines.models.team import Team

    team = Team(load_base(name), [PLAYER], policy_map="shared", critics=())
    spec = AgentSpec(
        role="player",
        slot=0,
        profile=Profile(""),
        observation_space=ObservationSpace(1, LONGEST_MESSAGE),
        action_space=Utterance(LONGEST_ACTION),
        token_limit=PLAYER_TOKENS,
    )
    seated = LanguageModelPolicy(team, {PLAYER: spec})
    return lambda agent, observation: seated(PLAYER, observation)
