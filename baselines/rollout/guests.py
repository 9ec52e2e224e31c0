"""Players without an adapter: a script, a random writer, a model behind an endpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from flexmg.baselines.generation.endpoint import Endpoint, EndpointSettings
from flexmg.baselines.generation.protocol import Generation, SamplingParams
from flexmg.baselines.models.assignment import RANDOM, SCRIPTED
from flexmg.seeding import draw, stream
from flexmg.spaces import LONGEST_SAMPLE, SAMPLE_CHARACTERS


class Guest(Protocol):
    """Writes an action. Called from several threads, and never twice at once for one game."""

    def __call__(
        self,
        game: Any,
        agent: str,
        observation: Mapping[str, Any],
        sampling: SamplingParams,
        key: tuple[int, ...],
    ) -> str:
        """The text of an agent's action; all randomness comes from the key."""
        ...


def scripted(
    game: Any,
    agent: str,
    observation: Mapping[str, Any],
    sampling: SamplingParams,
    key: tuple[int, ...],
) -> str:
    """What a right team would say, on problems that carry their solution."""
    text: str = game.demonstrate(agent)
    return text


def random_text(
    game: Any,
    agent: str,
    observation: Mapping[str, Any],
    sampling: SamplingParams,
    key: tuple[int, ...],
) -> str:
    """A short random text."""
    rng = stream("random guest", *key)
    picks = rng.integers(0, len(SAMPLE_CHARACTERS), size=int(rng.integers(1, LONGEST_SAMPLE + 1)))
    return "".join(SAMPLE_CHARACTERS[i] for i in picks)


class EndpointGuest:
    """Asks a server; what it is shown is the observation, whole.

    Args:
        endpoint: the server and its model.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint

    def __call__(
        self,
        game: Any,
        agent: str,
        observation: Mapping[str, Any],
        sampling: SamplingParams,
        key: tuple[int, ...],
    ) -> str:
        """One completion.

        Raises:
            InfraError: the server gave no answer.
        """
        return self.endpoint.reply(
            observation["profile"],
            observation["messages"],
            max_tokens=sampling.max_new_tokens,
            temperature=0.0 if sampling.greedy else sampling.temperature,
            stop=sampling.stop,
            seed=draw(2**31, "endpoint", *key),
        )


def make_guest(policy: str, settings: EndpointSettings | None = None) -> Guest:
    """The guest of that name.

    Raises:
        InvalidArgument: an endpoint without a model or an address.
        MissingDependency: the package ``openai`` is not installed.
    """
    if policy == SCRIPTED:
        return scripted
    if policy == RANDOM:
        return random_text
    return EndpointGuest(Endpoint(policy, settings))


def as_generation(ids: NDArray[np.int32]) -> Generation:
    """A guest's text as recorded tokens; nobody knows their probabilities, and none is needed."""
    return Generation(ids, np.zeros(len(ids), dtype=np.float32), "eos")
