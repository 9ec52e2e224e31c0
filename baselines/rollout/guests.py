"""Players without an adapter: a script, a random writer, a model behind an endpoint."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flexmg.baselines.generation.endpoint import Endpoint, EndpointSettings
from flexmg.baselines.generation.protocol import Generation, SamplingParams
from flexmg.baselines.models.assignment import RANDOM, SCRIPTED
from flexmg.baselines.policies import short_random_text
from flexmg.seeding import draw, stream


@dataclass(frozen=True, slots=True)
class Question:
    """What a guest is asked.

    Args:
        game: where; only a guest that answers at once may look at it.
        agent: as whom.
        observation: what the agent is shown, whole.
        sampling: token limit, temperature, stop strings.
        key: all randomness comes from it.
    """

    game: Any
    agent: str
    observation: Mapping[str, Any]
    sampling: SamplingParams
    key: tuple[int, ...]


# Writes an action; an endpoint is asked from several threads.
Guest = Callable[[Question], str]


def scripted(question: Question) -> str:
    """What a right team would say, on problems that carry their solution."""
    text: str = question.game.demonstrate(question.agent)
    return text


def random_text(question: Question) -> str:
    """A short random text."""
    return short_random_text(stream("random guest", *question.key))


class EndpointGuest:
    """Asks a server; what it is shown is the observation, whole.

    Args:
        endpoint: the server and its model.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint

    def __call__(self, question: Question) -> str:
        """One completion.

        Raises:
            InfraError: the server gave no answer.
        """
        sampling = question.sampling
        return self.endpoint.reply(
            question.observation["profile"],
            question.observation["messages"],
            max_tokens=sampling.max_new_tokens,
            temperature=0.0 if sampling.greedy else sampling.temperature,
            stop=sampling.stop,
            seed=draw(2**31, "endpoint", *question.key),
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
