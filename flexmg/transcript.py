"""The append-only record of an episode: enough to replay and re-grade it without a model."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields, is_dataclass, replace
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
        report: what a tool of the workflow answered to the action, empty without one.
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
    report: str = ""


def observation_hash(profile: str, messages: Sequence[Mapping[str, str]]) -> str:
    """SHA-256 (16 hex digits) of the profile and messages of an observation."""
    return _hash(profile, *(text for m in messages for text in (m["role"], m["content"])))


def _hash(*texts: str) -> str:
    # Lengths keep the parts apart, whatever characters they hold.
    whole = "".join([f"{len(text)}:{text}" for text in texts])
    return hashlib.sha256(whole.encode(errors="surrogatepass")).hexdigest()[:16]


def plain(value: Any) -> Any:
    """The same value as JSON would give it back; what JSON cannot hold stays as it is."""
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    return value


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
            answering agents), ``fallback`` (the rule that chose the answer where the
            texts did not say), ``verdict``, ``rewards`` per agent, ``step_rewards`` per
            env step and ``truth`` per turn position are there.
        digest: hash of who said what in which environment; it tells an edited record
            from the original (but not a forged one, which would carry a new digest).
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
    fallback: str = ""
    verdict: dict[str, Any] = field(default_factory=dict)
    rewards: dict[str, float] = field(default_factory=dict)
    step_rewards: tuple[float, ...] = ()
    truth: dict[int, float] = field(default_factory=dict)
    infra_error: bool = False
    digest: str = ""

    def sealed(self) -> Transcript:
        """The same record with the digest of what it says."""
        course = [self.env, str(self.seed), self.problem, self.problem_hash, " ".join(self.order)]
        said = [text for t in self.turns for text in (t.agent, t.text, str(t.position))]
        return replace(self, digest=_hash(*course, *said))

    def to_json(self) -> str:
        """One line of JSON, in ASCII: no character in it can be taken for a line's end.

        Raises:
            TranscriptError: the environment was made with a keyword that JSON cannot hold.
        """
        try:
            return json.dumps({"format": FORMAT, **asdict(self)})
        except TypeError as error:
            raise TranscriptError(
                f"the record of {self.env!r} cannot be written down, because a keyword of "
                f"make() is not plain data: {error}"
            ) from error

    @classmethod
    def from_json(cls, line: str) -> Transcript:
        """The inverse of :meth:`to_json`.

        Raises:
            TranscriptError: not JSON, another format, or fields that lack or are unknown.
        """
        try:
            data = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise TranscriptError(f"a transcript line is not JSON: {error}") from error
        if not isinstance(data, dict) or data.pop("format", None) != FORMAT:
            raise TranscriptError(f"a transcript must be a JSON object of format {FORMAT}")
        _check_fields(cls, data)
        turns = []
        for number, turn in enumerate(data["turns"]):
            _check_fields(Turn, turn, f"turn {number}: ")
            turns.append(Turn(**{**turn, "sees": _names(turn["sees"], f"turn {number}: sees")}))
        data["turns"] = tuple(turns)
        data["order"] = _names(data["order"], "order")
        data["designated"] = _names(data.get("designated", []), "designated")
        data["step_rewards"] = tuple(
            _numbers(dict(enumerate(data.get("step_rewards", []))), "step_rewards").values()
        )
        data["rewards"] = _numbers(data.get("rewards", {}), "rewards")
        truth = _numbers(data.get("truth", {}), "truth")
        if not all(position.isdecimal() for position in truth):
            raise TranscriptError("a transcript's truth must be given by turn position")
        data["truth"] = {int(position[:9]): value for position, value in truth.items()}
        return cls(**data)


# Types of the fields as JSON gives them; Turn.value may be anything.
_TYPES: dict[str, type] = {
    "str": str,
    "int": int,
    "bool": bool,
    "tuple[str, ...]": list,
    "tuple[float, ...]": list,
    "tuple[Turn, ...]": list,
    "dict[str, Any]": dict,
    "dict[str, float]": dict,
    "dict[int, float]": dict,
}


def _check_fields(cls: type, data: Any, where: str = "") -> None:
    """Refuse fields that lack, are unknown or of a wrong type."""
    if not isinstance(data, dict):
        raise TranscriptError(f"{where}a JSON object was expected, not {data!r:.80}")
    known = {f.name: f for f in fields(cls)}
    if unknown := set(data) - set(known):
        raise TranscriptError(f"{where}unknown fields {sorted(unknown)}")
    for name, one in known.items():
        if name not in data:
            if one.default is MISSING and one.default_factory is MISSING:
                raise TranscriptError(f"{where}the field {name!r} lacks")
        elif (wanted := _TYPES.get(str(one.type))) and type(data[name]) is not wanted:
            raise TranscriptError(
                f"{where}the field {name!r} must be of type {wanted.__name__}, "
                f"not {data[name]!r:.80}"
            )


def _names(given: list, where: str) -> tuple[str, ...]:
    if not all(isinstance(name, str) for name in given):
        raise TranscriptError(f"{where}: all entries must be texts")
    return tuple(given)


def _numbers(given: dict, where: str) -> dict[Any, float]:
    for key, value in given.items():
        if type(value) not in (int, float) or not math.isfinite(value):
            raise TranscriptError(f"{where}: {key!r} has {value!r:.80}, not a finite number")
    return given
