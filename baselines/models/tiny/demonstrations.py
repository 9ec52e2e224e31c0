"""What the embedded model learns from: imperfect demonstrations of every role.

Every workflow is played on synthetic problems. Each action is the scripted correct one,
worsened on purpose by a :class:`Habit`, so that reinforcement has something to improve:
solutions in maths are often written down at once without working (which a small network
mostly gets wrong), programs have mistakes, judges err, orchestrators suggest poor
strategies, synthesizers and aggregators trust anybody. What the *others* see of a maths
action is worsened further, with wrong numbers as often as the model itself will get them
wrong.
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

BLOCK = re.compile(r"```python\n.*?```", re.DOTALL)
# What a mistake is made of: a number one off, another operation, the other end.
NUMBERS = re.compile(r"\d+")
EXCHANGES = {" + ": " - ", " - ": " + ", " * ": " + ", "max(": "min(", "min(": "max("}
EXCHANGES |= {" > ": " < ", " < ": " > ", "sum(": "len(", "len(": "sum(", "sorted(": "len("}
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
        bug: a program that is written has a mistake.
        bug_if_told: the same for a worker whose strategy is a careless one.
        misjudge: a judge's verdict is turned round.
        trust_anybody: an aggregator or synthesizer follows a candidate at random.
        slip: a worked solution shown to others holds a wrong result.
        slip_at_once: the same for one without working.
        derail: an orchestrator that routes is done too early.
    """

    at_once: float = 0.64
    at_once_if_told: float = 0.95
    careless: float = 0.5
    bug: float = 0.45
    bug_if_told: float = 0.7
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
                return f"DONE {_wrong_answer(game.problem.gold, rng)}"
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
            workers = [turn for turn in game.turns if role_of(turn.agent) == "worker"]
            shown = [turn for turn in workers if _answer(turn.text)]
            if shown and game.workflow.mode == "strategies":
                trusted = shown[int(rng.integers(len(shown)))]
                return f"{game.workflow.title(trusted.agent)} is right. {_answer(trusted.text)}"
            return _with_a_bug(reply, habit.bug, rng)
        case _:
            told = any(strategy in prompt for strategy in CARELESS)
            if BLOCK.search(reply):
                return _with_a_bug(reply, habit.bug_if_told if told else habit.bug, rng)
            hurry = habit.at_once_if_told if told else habit.at_once
            boxed = BOXED.search(reply)
            if role in SOLVING and boxed and rng.random() < hurry:
                return boxed[0]
            return reply


def _strategy(habit: Habit, rng: np.random.Generator) -> str:
    careful, careless = STRATEGIES[:2], STRATEGIES[2:]
    pool = careless if rng.random() < habit.careless else careful
    return pool[int(rng.integers(len(pool)))]


def _answer(text: str) -> str:
    """The last answer in a text, as it is written there; empty without one."""
    found = BLOCK.findall(text) or [match[0] for match in BOXED.finditer(text)]
    return found[-1] if found else ""


def _wrong_answer(gold: str, rng: np.random.Generator) -> str:
    """A wrong answer in the form of the right one: a number, or a program with a mistake."""
    if NUMBERS.fullmatch(gold):
        return f"\\boxed{{{_near(int(gold), rng)}}}"
    return _with_a_bug(f"```python\n{gold}```", 1.0, rng)


def _with_a_bug(reply: str, probability: float, rng: np.random.Generator) -> str:
    """The reply with one mistake in its program, if it has a program and the dice say so."""
    found = BLOCK.search(reply)
    if found is None or rng.random() >= probability:
        return reply
    head, *body = found[0].splitlines(keepends=True)
    signature, lines = body[0], "".join(body[1:])
    changes = [
        (match.span(), str(int(match[0]) + (1 if rng.random() < 0.5 or match[0] == "0" else -1)))
        for match in NUMBERS.finditer(lines)
    ]
    for right, wrong in EXCHANGES.items():
        place = lines.find(right)
        if place >= 0:
            changes.append(((place, place + len(right)), wrong))
    if not changes:
        return reply
    (start, end), wrong = changes[int(rng.integers(len(changes)))]
    program = head + signature + lines[:start] + wrong + lines[end:]
    return reply[: found.start()] + program + reply[found.end() :]


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
