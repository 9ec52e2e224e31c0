"""From observations to token ids: what a policy reads, and what the central critic reads."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jinja2 import TemplateError
from numpy.typing import NDArray

from flexmg.errors import InvalidArgument

Chat = list[dict[str, str]]
GAP = "\n\n"
CACHED_PROMPTS = 4096


class Renderer:
    """Renders observations and states with one tokenizer.

    A prompt is the tokenizer's chat template over the profile (system), then the messages,
    then the opening of a reply; thinking is switched off where a template offers it. Where
    a template refuses a system message, the profile opens the first user message; where it
    refuses neighbours of one role, they are joined by a blank line. A tokenizer without a
    template gets one paragraph per message, headed ``System:``, ``User:`` or ``Assistant:``,
    and a last line ``Assistant:``.

    Control tokens that an agent spelt out in its text are broken by a space, so that no
    agent can close a message or open another in somebody else's prompt.

    **Truncation.** A prompt over its limit loses tokens once, here, for sampling and
    training alike: those directly after the system prompt, which is the oldest text of the
    conversation. (A system prompt of more than half the limit is itself cut to that half.)

    Args:
        tokenizer: a transformers tokenizer.
    """

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        special = sorted(
            {str(token) for token in tokenizer.get_added_vocab()}
            | set(tokenizer.all_special_tokens),
            key=len,
            reverse=True,
        )
        self._control = re.compile("|".join(map(re.escape, special))) if special else None
        self._system = self._accepts("system", "user")
        self._neighbours = self._accepts("user", "user", "assistant", "assistant", "user")
        # Chat templates write their own opening token; other texts get what the tokenizer adds.
        bos = tokenizer.bos_token_id
        self._opening = [bos] if bos is not None and tokenizer.encode("a")[0] == bos else []
        self._prompts: dict[tuple[Any, ...], tuple[NDArray[np.int32], int]] = {}
        self._pieces: dict[str, list[int]] = {}

    def prompt(self, observation: Mapping[str, Any], limit: int) -> tuple[NDArray[np.int32], int]:
        """The prompt of an observation.

        Args:
            observation: see :class:`flexmg.spaces.ObservationSpace`.
            limit: the most tokens; at least 2.

        Returns:
            Token ids, int32 and read-only, and how many tokens were cut.
        """
        key = (limit, observation["profile"], *(tuple(m.values()) for m in observation["messages"]))
        if key not in self._prompts:
            if len(self._prompts) >= CACHED_PROMPTS:
                self._prompts.clear()
            self._prompts[key] = self._prompt(observation, limit)
        return self._prompts[key]

    def _prompt(self, observation: Mapping[str, Any], limit: int) -> tuple[NDArray[np.int32], int]:
        profile = observation["profile"]
        messages = [dict(message) for message in observation["messages"]]
        ids = self._ids(self._text(self._chat(profile, messages)))
        cut = len(ids) - limit
        if cut > 0:
            blank = [{**message, "content": ""} for message in messages]
            head = _common_prefix(ids, self._ids(self._text(self._chat(profile, blank))))
            kept = min(head, limit // 2)
            ids = ids[:kept] + ids[len(ids) - (limit - kept) :]
        return _frozen(ids), max(cut, 0)

    def state(self, state: Mapping[str, Any], agent: str, limit: int) -> NDArray[np.int32]:
        """The central critic's input before a turn.

        The statement, then every turn so far under its agent's name, then who acts next.
        Over the limit the oldest turns go first, whole; a statement that is too long by
        itself keeps its beginning.

        Args:
            state: ``{"statement", "turns"}`` as ``game.state()`` gives it.
            agent: who acts next; empty for the end of a truncated episode.
            limit: the most tokens; at least 2.
        """
        head = self._opening + self._piece(f"Problem: {state['statement']}")
        tail = self._piece(f"{GAP}Next: {agent or 'nobody'}")[:limit]
        head = head[: limit - len(tail)]
        room = limit - len(head) - len(tail)
        turns: list[list[int]] = []
        for turn in reversed(state["turns"]):
            ids = self._piece(f"{GAP}{turn['agent']}: {turn['text']}")
            if len(ids) > room:
                break
            turns.append(ids)
            room -= len(ids)
        return _frozen([*head, *(token for ids in reversed(turns) for token in ids), *tail])

    def encode(self, text: str) -> NDArray[np.int32]:
        """An action that somebody else wrote, as ids with a closing end token."""
        ids = self.tokenizer.encode(self._plain(text), add_special_tokens=False)
        end = self.tokenizer.eos_token_id
        return _frozen([*ids, *([] if end is None and ids else [end or 0])])

    def decode(self, action_ids: NDArray[np.int32], stop: Sequence[str] = ()) -> str:
        """The text of an action, as a game takes it.

        Without control tokens, up to the first stop string; NUL characters and halves of
        surrogate pairs, which no game accepts, become U+FFFD.
        """
        text = self.tokenizer.decode(action_ids.tolist(), skip_special_tokens=True)
        ends = [place for place in map(text.find, stop) if place >= 0]
        return sanitised(text[: min(ends, default=len(text))])

    def _accepts(self, *roles: str) -> bool:
        """Whether the template shows a chat of these roles whole; some drop what they refuse."""
        if not self.tokenizer.chat_template:
            return True
        chat = [{"role": role, "content": f"probe {i}."} for i, role in enumerate(roles)]
        try:
            text = self._text(chat)
        except TemplateError:
            return False
        return all(message["content"] in text for message in chat)

    def _chat(self, profile: str, messages: Sequence[Mapping[str, str]]) -> Chat:
        chat: Chat = [{"role": "system", "content": self._plain(profile)}] if profile else []
        for message in messages:
            chat.append({"role": message["role"], "content": self._plain(message["content"])})
        if not self._system:
            for message in chat:
                if message["role"] == "system":
                    message["role"] = "user"
        if self._system and self._neighbours:
            return chat
        joined: Chat = []
        for message in chat:
            if joined and joined[-1]["role"] == message["role"]:
                joined[-1]["content"] += GAP + message["content"]
            else:
                joined.append(message)
        return joined

    def _text(self, chat: Chat) -> str:
        if not self.tokenizer.chat_template:
            parts = [f"{m['role'].capitalize()}: {m['content']}" for m in chat]
            return GAP.join([*parts, "Assistant:"])
        return self.tokenizer.apply_chat_template(
            chat, tokenize=False, add_generation_prompt=True, enable_thinking=False
        )

    def _ids(self, text: str) -> list[int]:
        opening = [] if self.tokenizer.chat_template else self._opening
        return opening + self.tokenizer.encode(text, add_special_tokens=False)

    def _piece(self, text: str) -> list[int]:
        """Token ids of a part of a state; every turn comes back in all later states."""
        if text not in self._pieces:
            if len(self._pieces) >= CACHED_PROMPTS:
                self._pieces.clear()
            self._pieces[text] = self.tokenizer.encode(self._plain(text), add_special_tokens=False)
        return self._pieces[text]

    def _plain(self, text: str) -> str:
        if self._control is None:
            return text
        return self._control.sub(lambda match: match[0][0] + " " + match[0][1:], text)


def sanitised(text: str) -> str:
    """The text with NUL characters and lone surrogates replaced by U+FFFD."""
    return re.sub("[\x00\ud800-\udfff]", "\ufffd", text)


def prompt_limit(context_length: int, token_limit: int) -> int:
    """The most prompt tokens that leave room for an action.

    Raises:
        InvalidArgument: the action alone fills the context.
    """
    limit = context_length - token_limit
    if limit < 2:
        raise InvalidArgument(
            f"an action of up to {token_limit} tokens leaves no room for a prompt in a context of "
            f"{context_length} tokens; lower the environment's token_limits or use another model"
        )
    return limit


def _frozen(ids: Sequence[int]) -> NDArray[np.int32]:
    array = np.array(ids, dtype=np.int32)
    array.setflags(write=False)
    return array


def _common_prefix(one: Sequence[int], other: Sequence[int]) -> int:
    length = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        length += 1
    return length
