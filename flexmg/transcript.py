"""The append-only record of an episode: enough to replay and re-grade it without a model."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from flexmg.errors import TranscriptError

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Turn:
    """One action, where it stands in the game, and what its agent saw.

    Args:
        agent: who acted.
        text: the action.
        step: env step, from 0.
        round: number of the workflow's round in the episode, from 0.
        layer: topological layer of D within the step, from 0.
        position: place in the episode's canonical order (planning order, not the order
            in which agents happened to finish).
        sees: the agents whose action of this step was visible (D_t, enforced).
        value: what the workflow parsed out of the text; JSON-serialisable.
        fallback: the parse rule that stood in when the text did not say, empty if none.
        observation: hash of the observation that the agent acted on.
    """

    agent: str
    text: str
    step: int
    round: int
    layer: int
    position: int
    sees: tuple[str, ...]
    value: Any = None
    fallback: str = ""
    observation: str = ""


def observation_hash(observation: Mapping[str, Any]) -> str:
    """SHA-256 (16 hex digits) of the profile and messages of an observation."""
    digest = hashlib.sha256(observation["profile"].encode())
    for message in observation["messages"]:
        digest.update(b"\x1e" + message["role"].encode() + b"\x1f" + message["content"].encode())
    return digest.hexdigest()[:16]


@dataclass(frozen=True)
class Transcript:
    """A whole episode, or its beginning, as plain data.

    Args:
        env: id of the environment; ``kwargs`` are those given to ``flexmg.make``.
        seed: the episode's seed. ``problem``: id; ``problem_hash``: hash of statement,
            gold and payload.
        statement: what the team read, for people.
        order: the agents in the order in which they acted.
        turns: in canonical order.
        finished: whether the episode was graded; then ``answer``, ``designated`` (the
            answering agents), ``verdict``, ``rewards`` per agent, ``step_rewards`` per
            env step and ``truth`` per turn position are there.
    """

    env: str
    kwargs: dict[str, Any]
    seed: int
    problem: str
    problem_hash: str
    statement: str
    order: tuple[str, ...]
    turns: tuple[Turn, ...]
    finished: bool = False
    answer: str = ""
    designated: tuple[str, ...] = ()
    verdict: dict[str, Any] = field(default_factory=dict)
    rewards: dict[str, float] = field(default_factory=dict)
    step_rewards: tuple[float, ...] = ()
    truth: dict[int, float] = field(default_factory=dict)
    infra_error: bool = False

    def to_json(self) -> str:
        """One line of JSON."""
        return json.dumps({"format": FORMAT, **asdict(self)}, ensure_ascii=False)

    @classmethod
    def from_json(cls, line: str) -> Transcript:
        """The inverse of :meth:`to_json`.

        Raises:
            TranscriptError: not JSON, another format, or fields that lack or are unknown.
        """
        try:
            data = json.loads(line)
        except ValueError as error:
            raise TranscriptError(f"a transcript line is not JSON: {error}") from error
        if not isinstance(data, dict) or data.pop("format", None) != FORMAT:
            raise TranscriptError(f"a transcript must be a JSON object of format {FORMAT}")
        try:
            data["turns"] = tuple(
                Turn(**{**turn, "sees": tuple(turn["sees"])}) for turn in data["turns"]
            )
            data["order"] = tuple(data["order"])
            data["designated"] = tuple(data["designated"])
            data["step_rewards"] = tuple(data["step_rewards"])
            data["truth"] = {int(position): value for position, value in data["truth"].items()}
            return cls(**data)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise TranscriptError(
                f"a transcript has fields that lack or do not fit: {error}"
            ) from error
