"""What the embedded model learns from: imperfect demonstrations of every role.

Every maths workflow is played on synthetic problems. Each action is the scripted correct
one, worsened on purpose by a :class:`Habit`, so that reinforcement has something to
improve: solutions are often written down at once without working (which a small network
mostly gets wrong), judges err, orchestrators suggest poor strategies, synthesizers and
aggregators trust anybody. What the *others* see of an action is worsened further, with
wrong numbers as often as the model itself will get them wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import flexmg
from flexmg.agents import role_of
from flexmg.seeding import stream

BOXED = re.compile(r"\\boxed\{(-?\d+)\}")
RESULT = re.compile(r"=(\d+)")
SOLVING = ("solver", "voter", "generator", "worker", "debater", "verifier", "synthesizer")
STRATEGIES = ("Work step by step.", "Compute each part first.", "Answer at once.", "Guess.")
CARELESS = ("Answer at once.", "Guess.")
# The scripted orchestrator calls the solver alone; the other specialists are shown too.
ROUTES = ("CALL: solver_0", "CALL: analyst_0 -> solver_0", "CALL: solver_0 -> critic_0")


@dataclass(frozen=True)
class Habit:
    """How often the demonstrated team does what.

    Args:
        at_once: a solution is written without its working.
        at_once_if_told: the same for a worker whose strategy is a careless one.
        careless: a strategy on an orchestrator's list is a careless one.
        misjudge: a judge's verdict is turned round.
        trust_anybody: an aggregator or synthesizer follows a candidate at random.
        slip: a worked solution shown to others holds a wrong result.
        slip_at_once: the same for one without working.
        derail: an orchestrator that routes is done too early.
    """

    at_once: float = 0.55
    at_once_if_told: float = 0.95
    careless: float = 0.5
    misjudge: float = 0.25
    trust_anybody: float = 0.5
    slip: float = 0.08
    slip_at_once: float = 0.75
    derail: float = 0.1


@dataclass(frozen=True)
class Demonstration:
    """One training example: what an agent saw and what it is to write."""

    agent: str
    observation: Mapping[str, Any]
    reply: str


def demonstrations(
    environments: list[tuple[str, dict[str, Any]]], episodes: range, habit: Habit
) -> Iterator[list[Demonstration]]:
    """Episodes of demonstrations, each environment in turn.

    Args:
        environments: ids with keyword arguments.
        episodes: their numbers, which key everything random about them.
        habit: how imperfect the team is.
    """
    games = [flexmg.make(id, split="train", **kwargs) for id, kwargs in environments]
    for episode in episodes:
        game = games[episode % len(games)]
        rng = stream("tiny demonstrations", episode)
        game.reset(seed=episode, options={"problem": int(rng.integers(2**31))})
        examples = []
        while not game.finished:
            agent = game.agent_selection
            observation = game.observe(agent)
            reply = _imperfect(game, agent, observation, habit, rng)
            examples.append(Demonstration(agent, observation, reply))
            game.step(_as_played(reply, game.problem.gold, habit, rng))
        yield examples


def _imperfect(
    game: Any, agent: str, observation: Mapping[str, Any], habit: Habit, rng: np.random.Generator
) -> str:
    reply = game.demonstrate(agent)
    role = role_of(agent)
    prompt = observation["messages"][-1]["content"]
    match role:
        case "orchestrator" if reply.startswith(("CALL", "DONE")):
            if reply.startswith("DONE"):
                return reply
            if rng.random() < habit.derail:
                return f"DONE \\boxed{{{_near(int(game.problem.gold), rng)}}}"
            return ROUTES[int(rng.integers(len(ROUTES)))]
        case "orchestrator" if game.workflow.mode == "strategies":
            lines = [_strategy(habit, rng) for _ in range(1 + rng.integers(game.workflow.n))]
            return "\n".join(f"{i}. {line}" for i, line in enumerate(lines, start=1))
        case "reflector" | "evaluator" | "critic":
            if rng.random() < habit.misjudge:
                right = reply.startswith("Correct")
                return (
                    "Incorrect. The result does not hold."
                    if right
                    else "Correct. Every step holds."
                )
            return reply
        case "aggregator" if rng.random() < habit.trust_anybody:
            return f"Best: {1 + rng.integers(game.workflow.n)}"
        case "synthesizer" if rng.random() < habit.trust_anybody:
            shown = [t for t in game.turns if role_of(t.agent) == "worker" and BOXED.search(t.text)]
            if shown:
                trusted = shown[int(rng.integers(len(shown)))]
                number = BOXED.findall(trusted.text)[-1]
                return f"{game.workflow.title(trusted.agent)} is right. \\boxed{{{number}}}"
            return reply
        case _:
            told = any(strategy in prompt for strategy in CARELESS)
            hurry = habit.at_once_if_told if told else habit.at_once
            boxed = BOXED.search(reply)
            if role in SOLVING and boxed and rng.random() < hurry:
                return boxed[0]
            return reply


def _strategy(habit: Habit, rng: np.random.Generator) -> str:
    careful, careless = STRATEGIES[:2], STRATEGIES[2:]
    pool = careless if rng.random() < habit.careless else careful
    return pool[int(rng.integers(len(pool)))]


def _as_played(reply: str, gold: str, habit: Habit, rng: np.random.Generator) -> str:
    """The reply as the others get to see it: with a wrong result as often as a model errs."""
    boxed = BOXED.search(reply)
    if boxed is None:
        return reply
    worked = reply != boxed[0]
    if rng.random() >= (habit.slip if worked else habit.slip_at_once):
        return reply
    wrong = str(_near(int(gold), rng))
    if worked:
        last = RESULT.findall(reply)
        if last:
            place = reply.rindex(f"={last[-1]}")
            reply = reply[:place] + f"={wrong}" + reply[place + 1 + len(last[-1]) :]
    return BOXED.sub(lambda _: f"\\boxed{{{wrong}}}", reply)


def _near(number: int, rng: np.random.Generator) -> int:
    """A wrong number of about the same size."""
    spread = max(3, number // 4)
    off = int(rng.integers(1, spread + 1)) * (1 if rng.random() < 0.5 else -1)
    return (
        max(0, number + off) if number + off != number and number + off >= 0 else number + abs(off)
    )
