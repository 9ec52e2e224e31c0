"""The episode viewer: one self-contained HTML page, or a fragment of another page."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from flexmg.agents import AGENT_NAME
from flexmg.transcript import Transcript, Turn

from .sight import Sight


def page(
    transcripts: Sequence[Transcript],
    title: str = "flexmg episodes",
    *,
    sights: Sequence[Sight | None] | None = None,
) -> str:
    """A whole HTML page with the viewer: works from a file, without a network.

    Arrow keys left and right go from turn to turn, up and down from episode to episode,
    Home and End to the first and last turn.

    Args:
        transcripts: the episodes, in the order in which they can be chosen.
        title: of the page.
        sights: what the agents saw, one entry per transcript (see
            :func:`flexmg.render.sight.sight`); without it the page shows whom each agent
            saw in its step, as recorded, but not the words.
    """
    fragment = viewer(transcripts, sights=sights)
    return _templates().get_template("page.html").render(title=title, viewer=fragment)


def viewer(
    transcripts: Sequence[Transcript], *, sights: Sequence[Sight | None] | None = None
) -> str:
    """The viewer as a fragment (HTML, CSS and JavaScript) to embed in another page.

    All its names begin with ``flexmg-``, and any number of fragments may stand in one
    page. It takes the place of a block element. Keys go to the fragment that was last
    clicked or focused; the only one of a page hears all of them.

    Args:
        transcripts: see :func:`page`.
        sights: see :func:`page`.
    """
    seen = [None] * len(transcripts) if sights is None else sights
    episodes = [episode(one, eyes) for one, eyes in zip(transcripts, seen, strict=True)]
    data = _embedded(episodes)
    key = hashlib.sha256(data.encode()).hexdigest()[:12]
    return _templates().get_template("viewer.html").render(data=data, key=key)


def episode(transcript: Transcript, sight: Sight | None = None) -> dict[str, Any]:
    """What the viewer needs to know of an episode, as plain data, turns in acting order."""
    return {
        "env": transcript.env,
        "kwargs": ", ".join(f"{name}={value!r}" for name, value in transcript.kwargs.items()),
        "seed": transcript.seed,
        "problem": transcript.problem,
        "statement": transcript.statement,
        "finished": transcript.finished,
        "verdict": transcript.verdict,
        "designated": transcript.designated,
        "fallback": transcript.fallback,
        "rewards": transcript.rewards,
        "step_rewards": transcript.step_rewards,
        "infra_error": transcript.infra_error,
        "turns": [_turn(turn, transcript, sight) for turn in acted(transcript)],
    }


def acted(transcript: Transcript) -> list[Turn]:
    """The turns in the order in which the agents acted."""
    waiting: dict[str, list[Turn]] = {}
    for turn in transcript.turns:
        waiting.setdefault(turn.agent, []).append(turn)
    return [waiting[agent].pop(0) for agent in transcript.order if waiting.get(agent)]


def _turn(turn: Turn, transcript: Transcript, sight: Sight | None) -> dict[str, Any]:
    name = AGENT_NAME.match(turn.agent)
    saw = None
    if sight is not None and turn.position in sight.observations:
        observation = sight.observations[turn.position]
        saw = {
            "profile": str(observation["profile"]),
            "messages": [dict(message) for message in observation["messages"]],
        }
    return {
        "agent": turn.agent,
        "role": name["role"] if name else turn.agent,
        "text": turn.text,
        "step": turn.step,
        "round": turn.round,
        "layer": turn.layer,
        "position": turn.position,
        "sees": turn.sees,
        "recalled": sight.recalled.get(turn.position, ()) if sight is not None else (),
        "value": json.dumps(turn.value, ensure_ascii=False) if turn.value is not None else None,
        "fallback": turn.fallback,
        "report": turn.report,
        "truth": transcript.truth.get(turn.position),
        "saw": saw,
    }


def _embedded(data: Any) -> str:
    """JSON that may stand in a script element: nothing in it can end the element."""
    text = json.dumps(data, ensure_ascii=True)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


@lru_cache(maxsize=1)
def _templates() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("flexmg.render", "."), autoescape=True, undefined=StrictUndefined
    )
