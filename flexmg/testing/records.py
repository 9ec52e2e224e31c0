"""Rules on what an episode leaves behind: its transcript, its rewards, a replay."""

from __future__ import annotations

import math

from flexmg.errors import ConformanceError, TranscriptError
from flexmg.game import FlexMarkovGame
from flexmg.replay import replay
from flexmg.transcript import Transcript

from .trace import Trace, difference, plain, played

TOLERANCE = 1e-9


def check_transcript(transcript: Transcript, trace: Trace) -> None:
    """The transcript survives JSON."""
    try:
        line = transcript.to_json()
    except (TranscriptError, TypeError, ValueError) as error:
        raise ConformanceError(
            f"transcript: that of {trace.name} cannot be written as JSON: {error}; what parse() "
            "reads in a text must be a JSON value"
        ) from error
    again = Transcript.from_json(line)
    for one, other in zip(transcript.turns, again.turns, strict=True):
        if one != other:
            # Compared as objects: a tuple or an integer key comes back as something else.
            raise ConformanceError(
                f"transcript: turn {one.position} of {one.agent} in {trace.name} does not survive "
                f"JSON: its value is {one.value!r} before and {other.value!r} after; what parse() "
                "reads in a text must be a JSON value"
            )
    if again != transcript:
        phrase = difference(vars_of(transcript), vars_of(again)) or "a field changes its type"
        raise ConformanceError(f"transcript: that of {trace.name} does not survive JSON: {phrase}")


def check_replay(transcript: Transcript, second: FlexMarkovGame, trace: Trace) -> None:
    """The transcript replays in another instance without a difference."""
    with played(f"replay of {trace.name}"):
        found = replay(transcript, second)
    if not found.ok:
        raise ConformanceError(
            f"replay: the record of {trace.name} does not replay: {found.differences[0]}"
        )


def vars_of(transcript: Transcript) -> dict:
    """A transcript's fields as plain data."""
    return plain(dict(vars(transcript)))


def check_rewards(game: FlexMarkovGame, trace: Trace) -> None:
    """Every agent gets its outcome once, by ``last``; the central stream pays once.

    Args:
        game: has just played the episode.
        trace: the episode.
    """
    outcome = game.outcome
    if outcome is None:
        raise ConformanceError(f"rewards: {trace.name} ended without an outcome")
    for agent in trace.collected:
        due = outcome.rewards.get(agent)
        if due is None or not math.isfinite(due):
            raise ConformanceError(
                f"rewards: the outcome of {trace.name} pays {agent} {due}; every agent that was "
                "in the game is paid a finite number"
            )
        _amount(f"last() reported {agent}", trace, trace.collected[agent], due)
        payments = trace.paid.get(agent, [])
        _amount(f"rewards[{agent!r}] summed to", trace, sum(payments), due)
        if len(payments) > 1:
            raise ConformanceError(
                f"rewards: {agent} was paid {len(payments)} times in {trace.name} ({payments}); an "
                "agent stream is paid once, when the episode ends"
            )
    if unknown := set(outcome.rewards) - set(trace.collected):
        raise ConformanceError(
            f"rewards: the outcome of {trace.name} pays {sorted(unknown)}, who never were in "
            "the game"
        )
    steps = 1 + max(turn["step"] for turn in trace.transcript["turns"])
    if len(outcome.step_rewards) != steps:
        raise ConformanceError(
            f"rewards: {trace.name} has {steps} env steps but {len(outcome.step_rewards)} central "
            "rewards; the central stream is one number per env step"
        )
    if outcome.infra_error:
        expected, central = dict.fromkeys(outcome.rewards, 0.0), 0.0
    else:
        expected = game.reward.agent_rewards(outcome.terms)
        central = game.reward.central(outcome.verdict.score, outcome.terms)
    _amount("the central stream paid", trace, sum(outcome.step_rewards), central)
    for agent, due in expected.items():
        _amount(f"the outcome pays {agent}", trace, outcome.rewards[agent], due)


def _amount(what: str, trace: Trace, paid: float, due: float) -> None:
    if not math.isclose(paid, due, rel_tol=TOLERANCE, abs_tol=TOLERANCE):
        raise ConformanceError(
            f"rewards: {what} {paid} in {trace.name}, where {due} is due; nothing may be lost "
            "or paid twice"
        )
