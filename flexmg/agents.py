"""Who plays: agents, their profiles, and what stands for a player."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

from gymnasium import spaces

from flexmg.errors import InvalidArgument

AGENT_NAME = re.compile(r"^(?P<role>[a-z][a-z_]*[a-z]|[a-z])_(?P<slot>0|[1-9][0-9]*)$")


@dataclass(frozen=True, slots=True)
class Profile:
    """What an agent is told of itself.

    Args:
        text: who it is and what it does (role text; empty for an anonymous agent).
        output_format: what its reply must look like; anonymous agents keep it.
    """

    text: str
    output_format: str = ""

    def render(self) -> str:
        """The system prompt: role text, then output format."""
        return "\n".join(part for part in (self.text, self.output_format) if part)


@dataclass(frozen=True, slots=True, eq=False)
class AgentSpec:
    """One possible agent of a game. Every field may differ from agent to agent.

    Args:
        role: the field's word for what it does (``"planner"``, ``"worker"`` ...).
        slot: which copy of the role, from 0; the name is ``f"{role}_{slot}"``.
        profile: its profile.
        observation_space: space of ``observe(name)``.
        action_space: space of its actions; a text space.
        token_limit: the most tokens a policy should generate for one action.
    """

    role: str
    slot: int
    profile: Profile
    observation_space: spaces.Space[Any]
    action_space: spaces.Space[Any]
    token_limit: int = 512

    def __post_init__(self) -> None:
        if AGENT_NAME.match(self.name) is None:
            raise InvalidArgument(
                f"agent name {self.name!r} is not lower-case letters, an underscore and a number, "
                "as in 'worker_0'"
            )

    @property
    def name(self) -> str:
        """``role_slot``, as PettingZoo names agents."""
        return f"{self.role}_{self.slot}"

    @property
    def output_format(self) -> str:
        """What its replies must look like: the profile's."""
        return self.profile.output_format


@lru_cache(maxsize=4096)
def role_of(agent: str) -> str:
    """The role in an agent name: ``role_of("worker_10") == "worker"``."""
    match = AGENT_NAME.match(agent)
    if match is None:
        raise InvalidArgument(f"{agent!r} is not an agent name such as 'worker_0'")
    return match["role"]


class Policy(Protocol):
    """Anything that can play an agent: a model, a script, a person.

    Args of the call: the agent's name, its observation (see
    :class:`flexmg.spaces.ObservationSpace`). Returns the text of its action.
    """

    def __call__(self, agent: str, observation: Mapping[str, Any]) -> str:
        """The text of the agent's action."""
        ...
