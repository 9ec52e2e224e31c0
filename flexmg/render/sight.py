"""What every agent saw in a recorded episode, found by playing it again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flexmg.errors import GameError, TranscriptError
from flexmg.game import FlexMarkovGame
from flexmg.registry import make
from flexmg.transcript import Transcript


@dataclass(frozen=True)
class Sight:
    """What the agents of one episode saw.

    Args:
        observations: per turn position, the observation that its agent acted on.
        recalled: per turn position, the positions of the turns of earlier steps that
            recall let its agent see.
    """

    observations: dict[int, dict[str, Any]]
    recalled: dict[int, tuple[int, ...]]


def sight(transcript: Transcript, env: FlexMarkovGame | None = None) -> Sight:
    """Play a recorded episode again, without a model, and look through its agents' eyes.

    A transcript holds only hashes of observations, which would fill it many times over.

    Args:
        transcript: the record.
        env: the game to play it in; by default made from the record's id and kwargs.

    Raises:
        TranscriptError: the record cannot be played.
        FlexMGError: the environment cannot be made.
    """
    game = make(transcript.env, **transcript.kwargs) if env is None else env
    game.reset(seed=transcript.seed, options={"problem": transcript.problem})
    texts = {agent: iter(_texts(transcript, agent)) for agent in transcript.order}
    observations = {}
    for agent in transcript.order:
        try:
            game.select(agent)
            seen = game.observe(agent)
            game.step(next(texts[agent]))
        except (GameError, StopIteration) as error:
            raise TranscriptError(
                f"the record of {transcript.env} cannot be played again at {agent}: {error}"
            ) from error
        turn = max(
            (turn for turn in game.turns if turn.agent == agent), key=lambda turn: turn.position
        )
        observations[turn.position] = seen
    recalled = {
        turn.position: tuple(
            earlier.position
            for earlier in transcript.turns
            if earlier.step < turn.step and (earlier.agent, turn.agent) in game.recall
        )
        for turn in transcript.turns
    }
    return Sight(observations, recalled)


def _texts(transcript: Transcript, agent: str) -> list[str]:
    return [turn.text for turn in transcript.turns if turn.agent == agent]
