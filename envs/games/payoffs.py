"""The subject of the games: letters are played, and a table says what they pay."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

from flexmg.errors import UnknownProblem
from flexmg.problem import Problem, Verdict

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
Payoff = Callable[[Problem, tuple[str, ...]], float]


@dataclass
class PayoffDomain:
    """Pays the letters of a play; the play is *correct* when nothing pays more.

    Args:
        payoff: of a problem and the letters in the order of the play, in [0, 1].
        best: the highest payoff of any play.
    """

    payoff: Payoff
    best: float
    name: str = "game"
    answer_format: str = "Write one letter."

    def grade(self, problem: Problem, reply: str) -> Verdict:
        """The payoff of a play, written as its letters with spaces between."""
        score = float(self.payoff(problem, tuple(reply.split())))
        return Verdict(score, "correct" if score >= self.best else "wrong", answer=reply)

    def answer_key(self, problem: Problem, reply: str) -> Hashable | None:
        """The play itself."""
        del problem
        return reply or None


@dataclass
class States:
    """One problem per state of a game, the same in every split: there is nothing to hold out.

    Args:
        game: name of the game.
        statements: what is said of each state.
        split: in name only.
    """

    game: str
    statements: Sequence[str]
    split: str = "train"
    name: str = field(init=False)

    def __post_init__(self) -> None:
        self.name = f"game-{self.game}"

    @property
    def size(self) -> int:
        """Number of states."""
        return len(self.statements)

    def get(self, index: int) -> Problem:
        """State number ``index``; its gold is the letter of that number."""
        if not 0 <= index < self.size:
            raise UnknownProblem(f"{self.name} has {self.size} states, and no number {index}")
        return Problem(
            id=f"{self.name}/{index}",
            statement=self.statements[index],
            gold=LETTERS[index],
            source=self.name,
            split=self.split,
            index=index,
        )

    def find(self, id: str) -> Problem:
        """The state with this id."""
        name, _, number = id.rpartition("/")
        if name != self.name or not number.isdigit():
            raise UnknownProblem(f"{self.name} has no problem {id!r}")
        return self.get(int(number))
