"""Every token an action: the same game over the agents' own vocabularies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from typing import Any, Protocol

from gymnasium import spaces
from pettingzoo.utils import BaseWrapper

from flexmg.agents import role_of
from flexmg.errors import InvalidAction, InvalidArgument
from flexmg.seeding import draw

SEEDS = 2**31


class Tokenizer(Protocol):
    """What a tokenizer must offer; those of transformers do.

    ``encode`` must not add special tokens of its own (give the tokenizer
    ``add_special_tokens=False`` where that is a setting). Ids run from 0 below
    ``vocab_size``, or below ``len(tokenizer)`` where it has a length, which with
    transformers counts the added tokens too.
    """

    @property
    def vocab_size(self) -> int:
        """How many ids there are."""

    @property
    def eos_token_id(self) -> int:
        """The id that ends an action."""

    def encode(self, text: str) -> Sequence[int]:
        """The ids of a text."""

    def decode(self, ids: Sequence[int]) -> str:
        """The text of some ids."""


class TokenLevel(BaseWrapper):
    """Actions are token ids; an agent goes on until it writes EOS or reaches its limit.

    Then its tokens are decoded, without the EOS, and the text is the game's action. The
    reward comes with that last token; all tokens before it are paid 0. Agents may have
    different tokenizers: ``action_space(agent)`` is ``Discrete`` of the agent's own
    vocabulary. Observations gain ``tokens``, those that the agent has written so far of
    its present action. ``select`` may switch between ready agents at every token.

    A token sequence can spell what no action may hold: NUL characters and lone surrogates
    are left out of the text, and it is cut to the length of the game's action space.

    Args:
        env: a Flexible Markov Game, wrapped or not.
        tokenizers: one for all, or by role or agent name.
        token_limits: the most tokens of an action, EOS included: for all, or by role or
            agent name; by default each agent's ``AgentSpec.token_limit``.

    Raises:
        InvalidArgument: an agent has no tokenizer, or a limit below 1.
    """

    def __init__(
        self,
        env: Any,
        tokenizers: Tokenizer | Mapping[str, Tokenizer],
        *,
        token_limits: int | Mapping[str, int] | None = None,
    ) -> None:
        super().__init__(env)
        self.tokenizers: dict[str, Tokenizer] = {}
        self.token_limits: dict[str, int] = {}
        self._observation_spaces: dict[str, spaces.Dict] = {}
        self._action_spaces: dict[str, spaces.Discrete] = {}
        for agent in env.possible_agents:
            tokenizer = _of_agent(tokenizers, agent)
            if tokenizer is None:
                raise InvalidArgument(
                    f"{agent} has no tokenizer; give one for the role {role_of(agent)!r}"
                )
            limit = _of_agent(token_limits, agent)
            limit = env.unwrapped.specs[agent].token_limit if limit is None else limit
            if limit < 1:
                raise InvalidArgument(f"the token limit of {agent} is {limit}, not at least 1")
            size = len(tokenizer) if isinstance(tokenizer, Sized) else tokenizer.vocab_size
            self.tokenizers[agent] = tokenizer
            self.token_limits[agent] = limit
            self._action_spaces[agent] = spaces.Discrete(size)
            self._observation_spaces[agent] = spaces.Dict(
                {
                    **env.observation_space(agent).spaces,
                    "tokens": spaces.Sequence(spaces.Discrete(size)),
                }
            )
        self._written: dict[str, list[int]] = {agent: [] for agent in env.possible_agents}
        self.state_space = spaces.Dict(
            {
                **env.state_space.spaces,
                "tokens": spaces.Dict(
                    {a: space["tokens"] for a, space in self._observation_spaces.items()}
                ),
            }
        )

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """The agent's observation space, with its ``tokens``; the same object each call."""
        return self._observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """``Discrete`` of the agent's vocabulary; the same object each call."""
        return self._action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Begin an episode; see :meth:`flexmg.game.FlexMarkovGame.reset`."""
        self.env.reset(seed=seed, options=options)
        self._written = {agent: [] for agent in self.env.possible_agents}
        if seed is not None:
            for agent, space in self._action_spaces.items():
                space.seed(draw(SEEDS, "tokens", seed, agent))

    def observe(self, agent: str) -> dict[str, Any]:
        """The game's observation, and the tokens written so far."""
        return {**self.env.observe(agent), "tokens": tuple(self._written[agent])}

    def state(self) -> dict[str, Any]:
        """The game's state, and the tokens of all unfinished actions."""
        written = {agent: tuple(tokens) for agent, tokens in self._written.items()}
        return {**self.env.state(), "tokens": written}

    def step(self, action: Any) -> None:
        """Write one token; None for an agent whose game is over.

        Raises:
            InvalidAction: not a token id of the agent's vocabulary; nothing has changed.
        """
        agent = self.env.agent_selection
        if self.env.terminations[agent] or self.env.truncations[agent]:
            self.env.step(action)
            return
        space = self._action_spaces[agent]
        if not space.contains(action):
            raise InvalidAction(
                f"the action of {agent} must be a token id below {space.n}, not {action!r}"
            )
        token, tokenizer, written = int(action), self.tokenizers[agent], self._written[agent]
        ended = token == tokenizer.eos_token_id
        whole = written if ended else [*written, token]
        if ended or len(whole) == self.token_limits[agent]:
            self._written[agent] = []
            self.env.step(self._text(agent, whole))
            return
        written.append(token)
        # This token is a step of its own: what was paid before it has been collected.
        self._cumulative_rewards[agent] = 0.0
        for other in self.rewards:
            self.rewards[other] = 0.0

    def spell(self, agent: str, text: str) -> list[int]:
        """The tokens of a text, EOS included: the actions that let ``agent`` write it."""
        tokenizer = self.tokenizers[agent]
        return [*map(int, tokenizer.encode(text)), tokenizer.eos_token_id]

    def snapshot(self) -> tuple[Any, dict[str, tuple[int, ...]]]:
        """The whole state, unfinished actions included, to go back to."""
        return self.env.snapshot(), {a: tuple(tokens) for a, tokens in self._written.items()}

    def restore(self, snapshot: tuple[Any, dict[str, tuple[int, ...]]]) -> None:
        """Go back to a snapshot."""
        inner, written = snapshot
        self.env.restore(inner)
        self._written = {agent: list(tokens) for agent, tokens in written.items()}

    def _text(self, agent: str, tokens: Sequence[int]) -> str:
        text = self.tokenizers[agent].decode(tokens).replace("\x00", "")
        text = text.encode(errors="ignore").decode()
        return text[: self.env.action_space(agent).max_length]


def _of_agent(given: Any, agent: str) -> Any:
    """What is given for an agent: by its name, by its role, or one thing for all."""
    if isinstance(given, Mapping):
        return given.get(agent, given.get(role_of(agent)))
    return given
