"""The games by name, with their payoffs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from flexmg.envs.games.payoffs import LETTERS, PayoffDomain, States
from flexmg.envs.games.plays import Bandit, Coordination, Corridor, Play, Relay, Signalling
from flexmg.errors import InvalidArgument
from flexmg.problem import Problem

# The common-payoff game of algorithms that update at once: the two good cells lie across, so
# that both players moving towards them at once end in the worst. As numbers in [0, 1] it is
# [[0, 2], [2, -1]], moved and scaled.
ACROSS = ((1 / 3, 1.0), (1.0, 0.0))
ARMS = (0.1, 0.3, 1.0)
HOME = 0.3


def bandit(arms: Sequence[float] = ARMS) -> tuple[PayoffDomain, States, dict[str, Any]]:
    """One player; letter k pays ``arms[k]``."""
    paid = _payoffs("arms", arms)

    def payoff(problem: Problem, played: tuple[str, ...]) -> float:
        return paid[LETTERS.index(played[0])]

    states = States("bandit", ["Which letter pays the most?"])
    return PayoffDomain(payoff, max(paid)), states, {"letters": len(paid)}


def coordination(
    payoffs: Sequence[Sequence[float]] = ACROSS,
) -> tuple[PayoffDomain, States, dict[str, Any]]:
    """Two players at once; row r and column c pay both ``payoffs[r][c]``."""
    table = [_payoffs("payoffs", row) for row in payoffs]
    if any(len(row) != len(table) for row in table):
        raise InvalidArgument(f"payoffs must be a square table, not {payoffs}")

    def payoff(problem: Problem, played: tuple[str, ...]) -> float:
        row, column = map(LETTERS.index, played)
        return table[row][column]

    states = States("coordination", ["Play so that both of you are paid well."])
    return PayoffDomain(payoff, max(map(max, table))), states, {"letters": len(table)}


def signalling(states: int = 2) -> tuple[PayoffDomain, States, dict[str, Any]]:
    """A sender who sees the state, a receiver who must name it: 1 or nothing."""

    def payoff(problem: Problem, played: tuple[str, ...]) -> float:
        return float(played[1] == problem.gold)

    said = [f"The state is {LETTERS[k]}." for k in range(states)]
    return PayoffDomain(payoff, 1.0), States("signalling", said), {"letters": states}


def relay(n: int = 3, letters: int = 2) -> tuple[PayoffDomain, States, dict[str, Any]]:
    """A chain of n players; a play is paid by how many letters differ from the one before.

    All different from their neighbour pays 1, and the first letter is free; one slip costs
    more than its share: ``(changes / (n - 1)) ** 2``.
    """

    def payoff(problem: Problem, played: tuple[str, ...]) -> float:
        changes = sum(a != b for a, b in itertools.pairwise(played))
        return (changes / (n - 1)) ** 2

    states = States("relay", ["Never play the letter that was just played."])
    return PayoffDomain(payoff, 1.0), states, {"n": n, "letters": letters}


def corridor(steps: int = 2) -> tuple[PayoffDomain, States, dict[str, Any]]:
    """Two agents, some env steps: on at every step pays 1, going home at once 0.3.

    Going home after k moves on pays 0.3 (1 + k), and the end of the way without all moves on
    pays nothing.
    """

    def payoff(problem: Problem, played: tuple[str, ...]) -> float:
        pairs = [played[k : k + 2] for k in range(0, len(played), 2)]
        moves = sum(pair == ("B", "B") for pair in pairs)
        if pairs[-1] == ("A", "A"):
            return min(1.0, HOME * (1 + moves))
        return float(moves == steps)

    states = States("corridor", ["A corridor."])
    return PayoffDomain(payoff, 1.0), states, {"steps": steps}


GAMES: dict[str, tuple[Callable[..., tuple[PayoffDomain, States, dict[str, Any]]], type[Play]]] = {
    "bandit": (bandit, Bandit),
    "coordination": (coordination, Coordination),
    "signalling": (signalling, Signalling),
    "relay": (relay, Relay),
    "corridor": (corridor, Corridor),
}


def _payoffs(name: str, values: Sequence[float]) -> list[float]:
    found = [float(value) for value in values]
    if len(found) < 2 or not all(0.0 <= value <= 1.0 for value in found):
        raise InvalidArgument(f"{name} must be at least two numbers in [0, 1], not {values}")
    return found
