"""Text spaces that are cheap, and the observation space of a Flex-MG agent."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

# What `sample` draws from: enough to be a text, small enough to be fast.
SAMPLE_CHARACTERS = "abcdefghijklmnopqrstuvwxyz 0123456789+-*/=.,\\{}"
LONGEST_SAMPLE = 64


class Utterance(spaces.Text):
    """Any Unicode text of at most ``max_length`` characters, the empty one included.

    ``gymnasium.spaces.Text`` walks every character of a text to check it against a
    character set, which takes 57 ms for 1 MB and refuses "x ≤ 3". Membership here is
    a matter of type and length only, in O(1); ``sample`` draws short printable texts.

    Args:
        max_length: the most characters a text may have.
        seed: for ``sample``.
    """

    def __init__(self, max_length: int, *, seed: int | np.random.Generator | None = None) -> None:
        self._pending_seed: int | None = None
        super().__init__(max_length=max_length, min_length=0, charset=SAMPLE_CHARACTERS, seed=seed)

    def seed_later(self, seed: int) -> None:
        """Seed at the first ``sample``: seeding costs far more than most episodes need."""
        self._np_random = None  # type: ignore[assignment]
        self._pending_seed = seed

    def seed(self, seed: int | None = None) -> int:
        """Seed now; without an argument, with the pending seed if there is one."""
        if seed is None:
            seed, self._pending_seed = self._pending_seed, None
        return int(super().seed(seed))

    def contains(self, x: Any) -> bool:
        """Whether ``x`` is a text that is short enough."""
        return isinstance(x, str) and len(x) <= self.max_length

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """A random text of at most 64 characters; masks mean nothing for free text."""
        del mask, probability
        length = int(self.np_random.integers(1, min(self.max_length, LONGEST_SAMPLE) + 1))
        picks = self.np_random.integers(0, len(SAMPLE_CHARACTERS), size=length)
        return "".join(SAMPLE_CHARACTERS[i] for i in picks)

    def __repr__(self) -> str:
        return f"Utterance({self.max_length})"


class ObservationSpace(spaces.Dict):
    """The space of one agent's observation.

    Keys: ``profile``, the agent's system prompt; ``messages``, the chat as a tuple of
    ``{"role", "content"}`` built only from what D and recall let it see;
    ``dependencies``, an int8 vector of length ``agents`` (the order of
    ``possible_agents``) with 1 where D makes that agent's action of this step visible.

    The keys are neither ``observation`` nor ``action_mask``: PettingZoo's own tests
    treat those two as arrays.

    Args:
        agents: N, the number of possible agents.
        max_length: the most characters of one message.
    """

    def __init__(self, agents: int, max_length: int) -> None:
        message = spaces.Dict({"role": Utterance(16), "content": Utterance(max_length)})
        self._pending_seed: int | None = None
        super().__init__(
            {
                "profile": Utterance(max_length),
                "messages": spaces.Sequence(message),
                "dependencies": spaces.MultiBinary(agents),
            }
        )

    def seed_later(self, seed: int) -> None:
        """Seed at the first ``sample``: seeding nested spaces costs half a millisecond."""
        self._pending_seed = seed

    def sample(self, mask: Any = None, probability: Any = None) -> dict[str, Any]:
        """A random observation."""
        if self._pending_seed is not None:
            seed, self._pending_seed = self._pending_seed, None
            self.seed(seed)
        return super().sample(mask, probability)
