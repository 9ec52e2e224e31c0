"""``flexmg play``: a person takes part in a team, in the terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from typing import Any

from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from flexmg.agents import Policy, role_of
from flexmg.errors import InvalidAction, InvalidArgument
from flexmg.game import FlexMarkovGame
from flexmg.registry import did_you_mean
from flexmg.render.text import printable, show

PLAYERS = "flexmg.players"
ANY_MODEL = "model"
EVERYBODY = "all"

Reader = Callable[[], str]
"""Reads one line; raises EOFError at the end of input."""


class LeftGame(Exception):
    """The person has left; no error."""


def find_player(model: str) -> Policy:
    """A policy that a plug-in makes of a model's name.

    Plug-ins are entry points of the group ``flexmg.players``: a name, and a function from
    a text to a :class:`~flexmg.agents.Policy`. ``--model NAME`` and ``--model NAME:REST``
    ask the one called NAME; anything else goes to the one called ``model``, which takes
    whatever names a model.

    Raises:
        InvalidArgument: no plug-in takes it.
    """
    players = {plugin.name: plugin for plugin in entry_points(group=PLAYERS)}
    name, _, rest = model.partition(":")
    if name in players:
        return players[name].load()(rest or name)
    if ANY_MODEL in players:
        return players[ANY_MODEL].load()(model)
    known = ", ".join(sorted(players)) or "none"
    raise InvalidArgument(
        f"no installed player takes the model {model!r}.{did_you_mean(name, players)} Installed "
        f"players: {known}; pip install 'flexmg[train]' brings some"
    )


def seats_of(game: FlexMarkovGame, role: str | None, agent: str | None) -> tuple[str, ...]:
    """The agents that the person plays.

    Args:
        game: the game.
        role: a role, or ``"all"``.
        agent: one agent's name.

    Raises:
        InvalidArgument: there is no such role or agent, or both were given.
    """
    team = game.possible_agents
    if role is not None and agent is not None:
        raise InvalidArgument("give --role or --agent, not both")
    if agent is not None:
        if agent not in team:
            raise InvalidArgument(
                f"no agent is called {agent!r}.{did_you_mean(agent, team)} "
                f"The agents are {', '.join(team)}"
            )
        return (agent,)
    if role == EVERYBODY:
        return tuple(team)
    roles = roles_of(game)
    if role not in roles:
        raise InvalidArgument(
            f"no role is called {role!r}.{did_you_mean(str(role), roles)} "
            f"The roles are {', '.join(roles)}, or {EVERYBODY}"
        )
    return tuple(a for a in team if role_of(a) == role)


def roles_of(game: FlexMarkovGame) -> list[str]:
    """The roles of a game, in order."""
    return list(dict.fromkeys(map(role_of, game.possible_agents)))


class Table:
    """The table that a person sits at.

    Args:
        game: the game; it must have been reset.
        seats: the agents that the person plays.
        others: plays everybody else; None for the game's own demonstrations.
        console: where to print.
        read: reads one line of the person's.
    """

    def __init__(
        self,
        game: FlexMarkovGame,
        seats: Sequence[str],
        *,
        others: Policy | None,
        console: Console,
        read: Reader,
    ) -> None:
        self.game = game
        self.seats = seats
        self.others = others
        self.console = console
        self.read = read

    def play(self) -> None:
        """Play the episode to its end, then show all of it.

        Raises:
            LeftGame: the person has left.
            InvalidArgument: somebody else cannot be played without a model.
        """
        self._greet()
        for agent in self.game.agent_iter():
            observation, _, terminated, truncated, _ = self.game.last()
            if terminated or truncated:
                self.game.step(None)
            elif agent in self.seats:
                self._ask(agent, observation or {})
            else:
                self.game.step(self._of_other(agent, observation or {}))
                self.console.print(Text(f"{agent} has acted.", style="dim"))
        self.console.print()
        show(self.game.transcript(), self.console)

    def _greet(self) -> None:
        game, transcript = self.game, self.game.transcript()
        lines = [
            f"{transcript.env}, seed {transcript.seed}, problem {transcript.problem}",
            f"The team: {', '.join(game.possible_agents)}",
            f"You play: {', '.join(self.seats)}",
        ]
        self.console.print(Panel(Text(printable("\n".join(lines))), border_style="cyan"))

    def _of_other(self, agent: str, observation: Mapping[str, Any]) -> str:
        if self.others is not None:
            return self.others(agent, observation)
        try:
            return self.game.demonstrate(agent)
        except InvalidArgument as error:
            raise InvalidArgument(
                f"nobody can play {agent}: {error}. Give --model, or take its seat with "
                f"--role {EVERYBODY}"
            ) from error

    def _ask(self, agent: str, observation: Mapping[str, Any]) -> None:
        self.console.rule(f"your turn: {agent}", style="cyan")
        self.console.print(Text(self.game.graph().ascii(), style="dim"))
        self.console.print(_panel("you are told", observation["profile"], "cyan"))
        for message in observation["messages"]:
            own = message["role"] == "assistant"
            title = "you wrote earlier" if own else "you see"
            self.console.print(_panel(title, message["content"], "dim" if own else "white"))
        while True:
            try:
                self.game.step(self._lines(agent))
                return
            except InvalidAction as error:
                self.console.print(Text(f"{error}. Please write it again.", style="yellow"))

    def _lines(self, agent: str) -> str:
        """What the person writes: lines, up to an empty one."""
        self.console.print(
            Text(f"Write as {agent}; an empty line ends it, Ctrl-D leaves.", style="dim")
        )
        lines: list[str] = []
        warned = False
        while True:
            try:
                line = self.read()
            except EOFError:
                raise LeftGame from None
            if line:
                lines.append(line)
            elif lines or warned:
                return "\n".join(lines)
            else:
                warned = True
                self.console.print(
                    Text("Nothing written yet; another empty line sends an empty text.", "dim")
                )


def choose_role(game: FlexMarkovGame, console: Console, read: Reader) -> str:
    """Ask the person which role to take.

    Raises:
        LeftGame: the person has left.
    """
    roles = roles_of(game)
    if len(roles) == 1:
        return roles[0]
    while True:
        console.print(
            Text(f"Which role do you take? {', '.join(roles)}, or {EVERYBODY} (Enter: {roles[0]})")
        )
        try:
            answer = read().strip()
        except EOFError:
            raise LeftGame from None
        if not answer:
            return roles[0]
        if answer in (*roles, EVERYBODY):
            return answer
        console.print(Text(f"There is no {answer!r}.{did_you_mean(answer, roles)}", style="yellow"))


def _panel(title: str, text: str, style: str) -> Panel:
    return Panel(Text(printable(text)), title=title, title_align="left", border_style=style)
