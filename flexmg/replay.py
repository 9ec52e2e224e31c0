"""Replay: rebuild an episode from its transcript, grade it again, report any difference."""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from flexmg.errors import FlexMGError, InvalidArgument, TranscriptError
from flexmg.game import FlexMarkovGame
from flexmg.registry import make
from flexmg.transcript import Transcript, Turn

# A grader may add up the same numbers in another order on another machine.
TOLERANCE = 1e-9


@dataclass(frozen=True)
class Replay:
    """What a replay found.

    Args:
        differences: one sentence per difference; empty when the record holds.
        transcript: the episode as it came out now.
    """

    differences: tuple[str, ...]
    transcript: Transcript | None

    @property
    def ok(self) -> bool:
        """Whether the record holds."""
        return not self.differences


def replay(
    transcript: Transcript | str | Mapping[str, Any], env: FlexMarkovGame | None = None
) -> Replay:
    """Play a recorded episode again and compare everything that it claims.

    Actions are taken from the record in the recorded order; observations, order, D,
    parsed values, the verdict and all rewards are recomputed and compared.

    Args:
        transcript: the record; or a line of a JSONL file of records, or the object in it.
        env: the game to play it in; by default made from the record's id and kwargs.

    Raises:
        TranscriptError: the line or the object is no record.
        InvalidArgument: ``transcript`` is of another type.
    """
    transcript = _record(transcript)
    try:
        game = make(transcript.env, **transcript.kwargs) if env is None else env.unwrapped
    except Exception as error:
        # A record may claim any keyword and any value: whatever comes of it is a finding.
        return Replay((f"its environment cannot be made: {type(error).__name__}: {error}",), None)
    try:
        game.reset(seed=transcript.seed, options={"problem": transcript.problem})
        texts: dict[str, deque[str]] = {agent: deque() for agent in transcript.order}
        for turn in transcript.turns:
            texts.setdefault(turn.agent, deque()).append(turn.text)
        for agent in transcript.order:
            if not texts[agent]:
                return Replay((f"{agent} acts more often than it has turns",), None)
            game.select(agent)
            game.step(texts[agent].popleft())
    except FlexMGError as error:
        return Replay((f"the record cannot be played: {error}",), None)
    again = game.transcript()
    return Replay(tuple(_differences(transcript, again)), again)


def _record(given: Any) -> Transcript:
    if isinstance(given, Transcript):
        return given
    if isinstance(given, Mapping):
        try:
            given = json.dumps(dict(given))
        except (TypeError, ValueError, RecursionError) as error:
            raise TranscriptError(f"a transcript must be plain data: {error}") from error
    if isinstance(given, str):
        return Transcript.from_json(given)
    raise InvalidArgument(
        f"replay() takes a transcript, such as env.unwrapped.transcript(), not {given!r:.80}"
    )


def _differences(old: Transcript, new: Transcript) -> list[str]:
    found = []
    for name in (
        "problem",
        "problem_hash",
        "statement",
        "order",
        "finished",
        "answer",
        "designated",
        "fallback",
        "infra_error",
        "digest",
    ):
        if getattr(old, name) != getattr(new, name):
            found.append(
                f"{name}: recorded {getattr(old, name)!r}, replayed {getattr(new, name)!r}"
            )
    if len(old.turns) != len(new.turns):
        found.append(f"turns: recorded {len(old.turns)}, replayed {len(new.turns)}")
    for before, after in zip(old.turns, new.turns, strict=False):
        differing = [
            f.name for f in fields(Turn) if getattr(before, f.name) != getattr(after, f.name)
        ]
        if differing:
            found.append(
                f"turn {after.position} of {after.agent} differs in {', '.join(differing)}"
            )
    for name in ("status", "answer", "rule"):
        if old.verdict.get(name) != new.verdict.get(name):
            was, now = old.verdict.get(name), new.verdict.get(name)
            found.append(f"verdict {name}: recorded {was!r}, replayed {now!r}")
    found += _number_differences("verdict score", _score(old), _score(new))
    found += _number_differences("rewards", old.rewards, new.rewards)
    found += _number_differences("truth", old.truth, new.truth)
    found += _number_differences(
        "step_rewards", dict(enumerate(old.step_rewards)), dict(enumerate(new.step_rewards))
    )
    return found


def _score(transcript: Transcript) -> dict[str, Any]:
    return {"score": transcript.verdict["score"]} if "score" in transcript.verdict else {}


def _number_differences(name: str, old: dict, new: dict) -> list[str]:
    if set(old) != set(new):
        return [f"{name}: recorded for {sorted(old)}, replayed for {sorted(new)}"]
    if strange := [key for key, value in old.items() if not isinstance(value, int | float)]:
        return [f"{name} of {strange}: recorded values are not numbers"]
    return [
        f"{name} of {key}: recorded {old[key]}, replayed {new[key]}"
        for key in old
        if not math.isclose(old[key], new[key], rel_tol=0, abs_tol=TOLERANCE)
    ]
