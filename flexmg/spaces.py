"""Text spaces that are cheap, and the observation space of a Flex-MG agent."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from flexmg.errors import InvalidAction
from flexmg.seeding import draw

# What `sample` draws from: enough to be a text, small enough to be fast.
SAMPLE_CHARACTERS = "abcdefghijklmnopqrstuvwxyz 0123456789+-*/=.,\\{}"
LONGEST_SAMPLE = 64
SEEDS = 2**31
MOST_STEPS = 2**31


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
        self._pending: tuple[str | int, ...] | None = None
        super().__init__(max_length=max_length, min_length=0, charset=SAMPLE_CHARACTERS, seed=seed)

    def seed_later(self, *key: str | int) -> None:
        """Seed at the first ``sample``: seeding costs far more than most episodes need.

        Args:
            *key: names the stream, see :func:`flexmg.seeding.draw`.
        """
        self._pending = key

    def seed(self, seed: int | None = None) -> int:
        """Seed now; whatever was to be seeded later is forgotten."""
        self._pending = None
        return int(super().seed(seed))

    def contains(self, x: Any) -> bool:
        """Whether ``x`` is a text that is short enough."""
        return isinstance(x, str) and len(x) <= self.max_length

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """A random text of at most 64 characters; masks mean nothing for free text."""
        del mask, probability
        if self._pending is not None:
            self.seed(draw(SEEDS, *self._pending))
        longest = min(self.max_length, LONGEST_SAMPLE)
        length = int(self.np_random.integers(min(1, longest), longest + 1))
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
        self._pending: tuple[str | int, ...] | None = None
        super().__init__(
            {
                "profile": Utterance(max_length),
                "messages": spaces.Sequence(message),
                "dependencies": spaces.MultiBinary(agents),
            }
        )

    def seed_later(self, *key: str | int) -> None:
        """Seed at the first ``sample``: seeding nested spaces costs half a millisecond.

        Args:
            *key: names the stream, see :func:`flexmg.seeding.draw`.
        """
        self._pending = key

    def seed(self, seed: int | dict[str, Any] | None = None) -> dict[str, Any]:
        """Seed now; whatever was to be seeded later is forgotten."""
        self._pending = None
        return super().seed(seed)

    def sample(self, mask: Any = None, probability: Any = None) -> dict[str, Any]:
        """A random observation."""
        if self._pending is not None:
            self.seed(draw(SEEDS, *self._pending))
        return super().sample(mask, probability)


def state_space(max_length: int) -> spaces.Dict:
    """The space of the global state: the problem and every turn so far.

    Args:
        max_length: the most characters of one text.
    """
    turn = {
        "agent": Utterance(64),
        "step": spaces.Discrete(MOST_STEPS),
        "text": Utterance(max_length),
    }
    turns = spaces.Sequence(spaces.Dict(turn))
    return spaces.Dict({"statement": Utterance(max_length), "turns": turns})


def seed_lazily(space: spaces.Space[Any], *key: str | int) -> None:
    """Seed a space from a named stream, at its first ``sample`` if it can wait so long."""
    if isinstance(space, Utterance | ObservationSpace):
        space.seed_later(*key)
    else:
        space.seed(draw(SEEDS, *key))


def legal_text(agent: str, space: spaces.Space[Any], action: Any) -> str:
    """The action, if it is a text that any text file can hold and that its space contains.

    Raises:
        InvalidAction: not a text, not in the space (too long ...), a lone surrogate or a
            NUL; the message says which and what to do.
    """
    if not isinstance(action, str):
        raise InvalidAction(
            f"the action of {agent} must be a text, not {type(action).__name__}; "
            "None is for agents whose game is over"
        )
    if not space.contains(action):
        raise InvalidAction(
            f"the action of {agent} has {len(action)} characters and is not in its action space "
            f"{space}; cut it before step()"
        )
    try:
        action.encode()
    except UnicodeEncodeError as error:
        raise InvalidAction(
            f"the action of {agent} holds a lone surrogate at character {error.start}; "
            "decode model output with errors='replace'"
        ) from error
    if "\x00" in action:
        raise InvalidAction(
            f"the action of {agent} holds a NUL at character {action.index(chr(0))}; remove it"
        )
    return action
