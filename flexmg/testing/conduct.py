"""Rules on the conduct of a game at every moment: spaces, agents, infos, refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gymnasium import spaces

from flexmg.errors import ConformanceError, FlexMGError
from flexmg.game import FlexMarkovGame

from .trace import Moment, Trace, difference, look, plain

BOOKS = ("rewards", "_cumulative_rewards", "terminations", "truncations", "infos")


class Watch:
    """Looks at a game at every moment of one episode; the rules that need no second run."""

    def __init__(self, game: FlexMarkovGame, name: str) -> None:
        self.name = name
        self.team = list(game.possible_agents)
        self.spaces = {agent: _spaces_of(game, agent) for agent in self.team}
        self.present: set[str] = set()
        self.gone: set[str] = set()
        self.moments = -1

    def __call__(self, game: FlexMarkovGame) -> None:
        """Check everything that can be checked now."""
        self.moments += 1
        self._agents(game)
        self._books(game)
        for agent in game.agents:
            self._spaces(game, agent)
            self._observation(game, agent)
        self._state(game)

    def _place(self) -> str:
        return f"after step {self.moments} of {self.name}"

    def _agents(self, game: FlexMarkovGame) -> None:
        now = set(game.agents)
        if list(game.possible_agents) != self.team:
            raise ConformanceError(f"agents: possible_agents changed {self._place()}")
        if strangers := now - set(self.team):
            raise ConformanceError(
                f"agents: {sorted(strangers)} joined {self._place()} but are not in possible_agents"
            )
        self.gone |= self.present - now
        self.present = now
        if returned := now & self.gone:
            raise ConformanceError(
                f"agents: {sorted(returned)} came back {self._place()}; a name that has left never "
                "returns within an episode"
            )
        if not game.agents:
            return
        if game.agent_selection not in now:
            raise ConformanceError(
                f"agents: {game.agent_selection!r} is selected {self._place()} but not in agents"
            )
        dead = [a for a in game.agents if game.terminations[a] or game.truncations[a]]
        if dead and game.agent_selection not in dead:
            raise ConformanceError(
                f"agents: {dead} are dead {self._place()} but {game.agent_selection} is selected; "
                "dead agents step first"
            )
        if len(game.ready) != len(set(game.ready)) or not set(game.ready) <= now - set(dead):
            raise ConformanceError(
                f"agents: ready is {list(game.ready)} {self._place()}, with {dead} dead and "
                f"{game.agents} in the game"
            )

    def _books(self, game: FlexMarkovGame) -> None:
        for book in BOOKS:
            entries = getattr(game, book)
            if set(entries) != set(game.agents):
                raise ConformanceError(
                    f"agents: {book} has entries for {sorted(entries)} {self._place()}, the agents "
                    f"are {game.agents}"
                )
        for agent in game.agents:
            if not isinstance(game.infos[agent], dict):
                raise ConformanceError(
                    f"infos: infos[{agent!r}] is a {type(game.infos[agent]).__name__} "
                    f"{self._place()}, not a dict"
                )
            for book in ("terminations", "truncations"):
                flag = getattr(game, book)[agent]
                if not isinstance(flag, bool):
                    raise ConformanceError(
                        f"agents: {book}[{agent!r}] is a {type(flag).__name__} {self._place()}, "
                        "not a bool"
                    )

    def _spaces(self, game: FlexMarkovGame, agent: str) -> None:
        for before, now, name in zip(
            self.spaces[agent],
            _spaces_of(game, agent),
            ("observation_space", "action_space"),
            strict=True,
        ):
            if before is not now:
                raise ConformanceError(
                    f"spaces: {name}({agent!r}) is another object {self._place()}; it must be the "
                    "same one at each call"
                )

    def _observation(self, game: FlexMarkovGame, agent: str) -> None:
        first = game.observe(agent)
        if not game.observation_space(agent).contains(first):
            raise ConformanceError(
                f"spaces: the observation of {agent} {self._place()} is not in its observation "
                "space; see whether keys, types and lengths fit"
            )
        before = plain(first)
        if phrase := difference(before, plain(game.observe(agent)), "observation"):
            raise ConformanceError(
                f"observe: {agent} observes twice {self._place()} and sees something else the "
                f"second time: {phrase}; observing must change nothing"
            )
        if phrase := difference(before, plain(first), "observation"):
            raise ConformanceError(
                f"observe: observing again {self._place()} changed the first observation of "
                f"{agent} in place: {phrase}"
            )

    def _state(self, game: FlexMarkovGame) -> None:
        if not game.state_space.contains(game.state()):
            raise ConformanceError(f"spaces: state() is not in state_space {self._place()}")


def _spaces_of(game: FlexMarkovGame, agent: str) -> tuple[spaces.Space[Any], spaces.Space[Any]]:
    return game.observation_space(agent), game.action_space(agent)


def check_refusals(game: FlexMarkovGame, trace: Trace) -> None:
    """Bad actions, and agents out of turn, are refused and leave the game as it was."""
    game.reset(seed=trace.seed)
    tried: set[str] = set()
    for agent, text in trace.actions:
        if text is None:
            _refused(game, f"a text from {agent}, whose game is over,", _step(game, ""), trace)
        else:
            game.select(agent)
            if agent not in tried:
                tried.add(agent)
                for what, attempt in _bad_attempts(game, agent):
                    _refused(game, what, attempt, trace)
        game.step(text)
    _refused(game, "step() after every agent has left", _step(game, ""), trace)
    _refused(game, "step(None) after every agent has left", _step(game, None), trace)
    if phrase := difference(trace.transcript["turns"], _turns(game), "turns"):
        raise ConformanceError(
            f"actions: refused actions have changed the course of {trace.name}: {phrase}"
        )


def check_before_reset(game: FlexMarkovGame) -> None:
    """A new game refuses everything but ``reset``."""
    attempts: dict[str, Callable[[], Any]] = {
        "step('')": lambda: game.step(""),
        "last()": game.last,
        "observe()": lambda: game.observe(game.possible_agents[0]),
    }
    for what, attempt in attempts.items():
        try:
            attempt()
        except FlexMGError:
            continue
        except Exception as error:
            raise ConformanceError(
                f"actions: {what} before reset() raises {type(error).__name__} ({error}), not an "
                "error of flexmg that says what to do"
            ) from error
        raise ConformanceError(f"actions: {what} before reset() is accepted")


def _step(game: FlexMarkovGame, action: Any) -> Callable[[], Any]:
    return lambda: game.step(action)


def _bad_attempts(game: FlexMarkovGame, agent: str) -> list[tuple[str, Callable[[], Any]]]:
    space = game.action_space(agent)
    attempts = [
        (f"the number 5 as an action of {agent}", _step(game, 5)),
        (f"bytes as an action of {agent}", _step(game, b"text")),
        (f"None as an action of {agent}, who lives,", _step(game, None)),
        (f"a lone surrogate in an action of {agent}", _step(game, "a\ud800b")),
        (f"a NUL in an action of {agent}", _step(game, "a\x00b")),
    ]
    if isinstance(space, spaces.Text):
        longer = "x" * (space.max_length + 1)
        attempts.append((f"a text longer than the action space of {agent}", _step(game, longer)))
    waiting = next((a for a in game.possible_agents if a not in game.ready), None)
    if waiting is not None:
        attempts.append((f"select({waiting!r}) out of turn", lambda: game.select(waiting)))
    attempts.append(("select() of an unknown agent", lambda: game.select("nobody_0")))
    return attempts


def _refused(game: FlexMarkovGame, what: str, attempt: Callable[[], Any], trace: Trace) -> None:
    before = _everything(game)
    try:
        attempt()
    # PettingZoo's own dead step answers a text with a bare ValueError.
    except (FlexMGError, ValueError):
        pass
    except Exception as error:
        raise ConformanceError(
            f"actions: {what} in {trace.name} raises {type(error).__name__} ({error}), not an "
            "error of flexmg that says what to do"
        ) from error
    else:
        raise ConformanceError(f"actions: {what} is accepted in {trace.name}; it must be refused")
    if phrase := difference(before, _everything(game)):
        raise ConformanceError(
            f"actions: {what} was refused in {trace.name} but has changed the game: {phrase}"
        )


def _everything(game: FlexMarkovGame) -> Moment:
    return {**look(game), "turns": _turns(game), "order": list(game.transcript().order)}


def _turns(game: FlexMarkovGame) -> Any:
    return [
        {name: plain(getattr(turn, name)) for name in turn.__slots__}
        for turn in game.transcript().turns
    ]


def check_close(game: FlexMarkovGame) -> None:
    """``close`` may be called any number of times."""
    for time in ("once", "twice"):
        try:
            game.close()
        except Exception as error:
            raise ConformanceError(
                f"close: called {time} it raised {type(error).__name__}: {error}; close() may be "
                "called any number of times"
            ) from error
