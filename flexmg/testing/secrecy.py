"""The rule that D and recall are enforced: observations hold nothing that they hide."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from flexmg.errors import ConformanceError
from flexmg.game import FlexMarkovGame

from .blueprint import beyond
from .scripts import marker, random_texts
from .trace import Script, Trace, difference, play, texts_in

VARIED_TURNS = 10  # turns of an episode whose text is varied to see who notices
ENDED_ONLY = ("truth", "verdict", "reward_terms")


class View:
    """Who may see what in one episode, by the masks that its record declares."""

    def __init__(self, game: FlexMarkovGame, trace: Trace) -> None:
        self.recall = game.recall
        self.trace = trace
        self.turns: list[dict[str, Any]] = trace.transcript["turns"]
        self.own: dict[str, list[dict[str, Any]]] = {}
        for turn in self.turns:
            self.own.setdefault(turn["agent"], []).append(turn)
        self.acted = [agent for agent, text in trace.actions if text is not None]

    def number(self, turn: dict[str, Any]) -> int:
        """Which of its agent's turns this is, from 0."""
        return self.own[turn["agent"]].index(turn)

    def visible(self, turn: dict[str, Any]) -> list[dict[str, Any]]:
        """The turns that D (same step) and recall (earlier steps) let this one's agent see."""
        return [
            other
            for other in self.turns
            if (other["step"] == turn["step"] and other["agent"] in turn["sees"])
            or (other["step"] < turn["step"] and (other["agent"], turn["agent"]) in self.recall)
        ]

    def done_at(self, moment: int) -> list[int]:
        """Positions of the turns taken before a moment."""
        counts: dict[str, int] = {}
        positions = []
        for agent in self.acted[:moment]:
            number = counts.get(agent, 0)
            counts[agent] = number + 1
            positions.append(self.own[agent][number]["position"])
        return positions

    def turn_observed(self, agent: str, done: list[int]) -> dict[str, Any]:
        """The turn that an observation of ``agent`` belongs to: its open call, else its last."""
        own = self.own[agent]
        taken = sum(turn["position"] in done for turn in own)
        if taken < len(own):
            # A round is planned when all rounds before it are done.
            waiting_for = (t["position"] for t in self.turns if t["round"] < own[taken]["round"])
            if all(position in done for position in waiting_for):
                return own[taken]
        return own[taken - 1]

    def observations(self) -> Iterator[tuple[int, str, dict[str, Any], list[int], Any]]:
        """Every observation with its moment, agent, turn, and the positions done by then."""
        for at, moment in enumerate(self.trace.moments):
            done = self.done_at(at)
            for agent, observation in moment["observations"].items():
                yield at, agent, self.turn_observed(agent, done), done, observation


def check_markers(game: FlexMarkovGame, trace: Trace) -> None:
    """No observation, and no info before the end, holds a marker of a hidden turn."""
    view = View(game, trace)
    for at, agent, turn, _, observation in view.observations():
        visible = view.visible(turn)
        _no_marker_but(view, visible, observation, f"the observation of {agent}", at, turn)
        finished = trace.moments[at]["terminations"].get(agent)
        if not finished:
            own = [*visible, *view.own[agent]]
            info = trace.moments[at]["infos"].get(agent)
            _no_marker_but(view, own, info, f"infos[{agent!r}]", at, turn)


def _no_marker_but(
    view: View,
    visible: list[dict[str, Any]],
    value: Any,
    what: str,
    at: int,
    turn: dict[str, Any],
) -> None:
    text = "\n".join(texts_in(value))
    for hidden in view.turns:
        if hidden not in visible and marker(hidden["agent"], view.number(hidden)) in text:
            raise ConformanceError(
                f"secrecy: after step {at} of {view.trace.name} {what} (env step {turn['step']}) "
                f"holds text of the turn that {hidden['agent']} took in env step {hidden['step']}, "
                "which neither D nor recall lets it see; build observe() from the visible turns "
                "alone, and keep no texts in attributes of a workflow"
            )


def check_declared(game: FlexMarkovGame, trace: Trace) -> None:
    """The ``dependencies`` that an agent is shown are the mask that the record declares."""
    view = View(game, trace)
    for at, agent, turn, _, observation in view.observations():
        if not isinstance(observation, dict) or "dependencies" not in observation:
            continue
        expected = [int(other in turn["sees"]) for other in game.possible_agents]
        if phrase := difference(expected, observation["dependencies"], "dependencies"):
            raise ConformanceError(
                f"secrecy: after step {at} of {trace.name} {agent} is shown another D than its "
                f"turn records: {phrase}"
            )


def check_early_truth(trace: Trace) -> None:
    """Nothing of the grading stands in ``infos`` before the episode has ended."""
    for at, moment in enumerate(trace.moments):
        for agent, info in moment["infos"].items():
            told = [key for key in ENDED_ONLY if key in info]
            if told and not (moment["terminations"][agent] or moment["truncations"][agent]):
                raise ConformanceError(
                    f"secrecy: after step {at} of {trace.name} infos[{agent!r}] tells {told} "
                    "before the episode has ended"
                )


def check_dependence(game: FlexMarkovGame, traces: Iterable[Trace]) -> None:
    """An observation is a function of what its agent may see, and of nothing else.

    Compares all observations, over episodes on one problem that differ in orders and in
    texts, of agents who may see the very same turns. This finds what markers cannot: a
    count, a length or a choice of words that depends on a hidden text.
    """
    known: dict[str, tuple[Any, str]] = {}
    for trace in traces:
        view = View(game, trace)
        for at, agent, turn, done, observation in view.observations():
            visible = [
                {name: value for name, value in other.items() if name != "observation"}
                for other in view.visible(turn)
                if other["position"] in done
            ]
            problem = trace.transcript["problem"]
            key = json.dumps([problem, agent, turn["sees"], visible], sort_keys=True, default=repr)
            before, where = known.setdefault(key, (observation, f"step {at} of {trace.name}"))
            if phrase := difference(before, observation, "observation"):
                raise ConformanceError(
                    f"secrecy: {agent} may see the same turns after {where} and after step {at} of "
                    f"{trace.name}, yet observes something else: {phrase}; an observation must "
                    "depend on nothing that D and recall hide"
                )


def variations(game: FlexMarkovGame, trace: Trace) -> Iterator[Trace]:
    """The episode again, each time with another text in one of its turns."""
    spread = max(1, -(-trace.turns // VARIED_TURNS))
    for at in range(0, trace.turns, spread):
        agent = trace.actions[at][0]
        number = sum(earlier == agent for earlier, _ in trace.actions[:at])
        yield play(
            game,
            f"{trace.name} with another text in turn {number} of {agent}",
            trace.seed,
            _varied(trace, agent, number),
        )


def _varied(trace: Trace, agent: str, number: int) -> Script:
    recorded, other = trace.recorded(beyond), random_texts(trace.seed, variant=1)

    def write(game: FlexMarkovGame, actor: str, turn: int) -> str:
        return (other if (actor, turn) == (agent, number) else recorded)(game, actor, turn)

    return write
