"""The workflows of the games: who plays a letter when, and what is seen of it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, ClassVar

from flexmg.agents import Profile
from flexmg.envs.games.payoffs import LETTERS
from flexmg.problem import Domain, Problem
from flexmg.transcript import Turn
from flexmg.workflow import Call, Finish, History, Message, Parsed, Round, Workflow, user


def player(text: str) -> Profile:
    """A profile of a game."""
    return Profile(text, "{answer_format}")


class Play(Workflow):
    """Agents play letters in one env step; what they play together is graded.

    The first letter of an action counts, in either case. An action that begins with none of
    the letters plays the first one, flagged.

    Args:
        domain: the payoffs.
        letters: how many letters there are to choose from.
        **options: those of :class:`flexmg.workflow.Workflow`.
    """

    choices: ClassVar[int] = 2
    # One letter, whatever a tokenizer makes of it, and an end token.
    limits = dict.fromkeys(
        ("player", "row", "column", "sender", "receiver", "runner", "navigator", "pilot"), 4
    )

    def __init__(self, domain: Domain, *, letters: int | None = None, **options: Any) -> None:
        self.letters = LETTERS[: letters or self.choices]
        super().__init__(domain, **options)

    def parse(self, agent: str, text: str) -> Parsed:
        """The letter played."""
        del agent
        letter = text.strip()[:1].upper()
        if letter and letter in self.letters:
            return Parsed(letter)
        return Parsed(self.letters[0], f"no letter of {self.letters}: read as {self.letters[0]}")

    def observe(self, agent: str, statement: str, visible: Sequence[Turn]) -> tuple[Message, ...]:
        """What the agent knows of the state, and the letters that it sees."""
        seen = [f"{self.title(turn.agent)} played {turn.value}." for turn in visible]
        return (user("\n".join([statement, *seen, f"Letters: {' '.join(self.letters)}"])),)

    def demonstrate(
        self, agent: str, problem: Problem, visible: Sequence[Turn], statement: str
    ) -> str:
        """The first letter in the alphabet of the best plays that agrees with what is seen."""
        del statement
        for play in sorted(self.best_plays(problem)):
            if all(play[self.place(t)] == t.value for t in visible):
                return play[len(visible) if self.place_by_turn else self.agents.index(agent)]
        return self.letters[0]

    place_by_turn: ClassVar[bool] = False

    def place(self, turn: Turn) -> int:
        """Where a turn's letter stands in the play."""
        return turn.position if self.place_by_turn else self.agents.index(turn.agent)

    def best_plays(self, problem: Problem) -> list[tuple[str, ...]]:
        """Every play that pays the most."""
        plays = itertools.product(self.letters, repeat=len(self.agents))
        return [p for p in plays if self.domain.grade(problem, " ".join(p)).correct]

    def finish(self, history: History) -> Finish:
        """All letters, in the order of the agents."""
        played = {turn.agent: turn.value for turn in history.turns}
        return Finish(" ".join(played[agent] for agent in self.agents), tuple(self.agents))


class Bandit(Play):
    """One player, one letter."""

    name = "bandit"
    roles = {"player": player("You are a player. Some letters pay more than others.")}
    choices = 3

    def team(self) -> Sequence[str]:
        """The player."""
        return ["player_0"]

    def plan(self, history: History) -> Round | Finish:
        """One call."""
        return self.finish(history) if history.turns else Round((Call("player_0"),))


class Coordination(Play):
    """Two players at once: D = 0."""

    name = "coordination"
    roles = {
        "row": player("You are the row player of a game."),
        "column": player("You are the column player of a game."),
    }

    def team(self) -> Sequence[str]:
        """Row and column."""
        return ["row_0", "column_0"]

    def plan(self, history: History) -> Round | Finish:
        """Both, unseen by each other."""
        if history.turns:
            return self.finish(history)
        return Round((Call("row_0"), Call("column_0")))


class Signalling(Play):
    """A sender knows the state and a receiver acts: what is known passes through D alone."""

    name = "signalling"
    roles = {
        "sender": player("You are the sender: only you know the state. Tell the receiver."),
        "receiver": player("You are the receiver: name the state that the sender saw."),
    }

    def team(self) -> Sequence[str]:
        """Sender and receiver."""
        return ["sender_0", "receiver_0"]

    def plan(self, history: History) -> Round | Finish:
        """The receiver sees the sender's letter."""
        if not history.turns:
            return Round((Call("sender_0"), Call("receiver_0", ("sender_0",))))
        return self.finish(history)

    def statement(self, agent: str, problem: Problem) -> str:
        """The state, for the sender alone."""
        return problem.statement if agent == "sender_0" else "The state is hidden."


class Relay(Play):
    """A chain: every player sees the letters of all before it.

    Args:
        domain: the payoffs.
        n: number of players.
        letters: how many letters there are to choose from.
        **options: those of :class:`flexmg.workflow.Workflow`.
    """

    name = "relay"
    roles = {"runner": player("You are a runner of a relay.")}

    def __init__(self, domain: Domain, *, n: int = 3, **options: Any) -> None:
        self.n = n
        super().__init__(domain, **options)

    def team(self) -> Sequence[str]:
        """The runners."""
        return [f"runner_{k}" for k in range(self.n)]

    def plan(self, history: History) -> Round | Finish:
        """All in one step, layer by layer."""
        if history.turns:
            return self.finish(history)
        agents = self.agents
        return Round(tuple(Call(agent, agents[:k]) for k, agent in enumerate(agents)))


class Corridor(Play):
    """Two agents walk together for a few env steps; going home early ends it.

    Every step the navigator plays a letter, then the pilot, who sees it. They move on when
    both play the last letter; when both play the first one they go home, and the episode is
    over; otherwise they lose a step. Nobody remembers earlier letters.

    Args:
        domain: the payoffs.
        steps: how many env steps there are at most.
        **options: those of :class:`flexmg.workflow.Workflow`.
    """

    name = "corridor"
    roles = {
        "navigator": player("You are the navigator. First letter: home. Last letter: on."),
        "pilot": player("You are the pilot. First letter: home. Last letter: on."),
    }
    place_by_turn = True

    def __init__(self, domain: Domain, *, steps: int = 2, **options: Any) -> None:
        self.steps = steps
        super().__init__(domain, **options)

    def team(self) -> Sequence[str]:
        """Navigator and pilot."""
        return ["navigator_0", "pilot_0"]

    def recall(self) -> Sequence[tuple[str, str]]:
        """Nothing."""
        return []

    def plan(self, history: History) -> Round | Finish:
        """Another step, or the end."""
        played = [turn.value for turn in history.turns]
        home = played[-2:] == [self.letters[0]] * 2
        if home or len(played) == 2 * self.steps:
            return Finish(" ".join(played), tuple(self.agents))
        calls = (Call("navigator_0"), Call("pilot_0", ("navigator_0",)))
        return Round(calls, new_step=True)

    def demonstrate(
        self, agent: str, problem: Problem, visible: Sequence[Turn], statement: str
    ) -> str:
        """On and on."""
        del agent, problem, visible, statement
        return self.letters[-1]
