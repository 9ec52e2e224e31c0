"""An episode written down moment by moment, as plain data that two processes can compare."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from flexmg.errors import ConformanceError
from flexmg.game import FlexMarkovGame

Moment = dict[str, Any]
Script = Callable[[FlexMarkovGame, str, int], str]
"""The action of an agent: game, agent, how many turns it has taken."""
Chooser = Callable[[tuple[str, ...]], str]
"""Which of the ready agents acts next."""

LONGEST_EPISODE = 10_000  # steps, dead steps included


@dataclass
class Trace:
    """One episode, everything that could be seen of it included.

    Args:
        name: what was played, for messages.
        seed: given to ``reset``.
        actions: ``(agent, text)`` in the order of steps; text None in a dead step.
        moments: what could be seen before the first step and after each.
        collected: the rewards that ``last`` reported to each agent.
        paid: in how many steps each agent's ``rewards`` entry was not 0, and their sum.
        transcript: the game's transcript as plain data.
    """

    name: str
    seed: int
    actions: list[tuple[str, str | None]] = field(default_factory=list)
    moments: list[Moment] = field(default_factory=list)
    collected: dict[str, float] = field(default_factory=dict)
    paid: dict[str, list[float]] = field(default_factory=dict)
    transcript: dict[str, Any] = field(default_factory=dict)

    @property
    def turns(self) -> int:
        """How many of the steps were not dead steps."""
        return sum(text is not None for _, text in self.actions)

    def recorded(self, otherwise: Script) -> Script:
        """The same texts again, by agent and number of its turn; ``otherwise`` beyond them."""
        texts: dict[str, list[str]] = {}
        for agent, text in self.actions:
            if text is not None:
                texts.setdefault(agent, []).append(text)

        def script(game: FlexMarkovGame, agent: str, turn: int) -> str:
            mine = texts.get(agent, [])
            return mine[turn] if turn < len(mine) else otherwise(game, agent, turn)

        return script


def play(
    game: FlexMarkovGame,
    name: str,
    seed: int,
    script: Script,
    *,
    choose: Chooser | None = None,
    watch: Callable[[FlexMarkovGame], None] | None = None,
    options: dict[str, Any] | None = None,
    disturbed: bool = False,
    observing: bool = True,
) -> Trace:
    """Reset the game and play one episode to its last dead step.

    Args:
        game: the game.
        name: for messages.
        seed: for ``reset``.
        script: what agents write.
        choose: who acts next; by default whom the game selects.
        watch: called at every moment.
        options: for ``reset``.
        disturbed: draw from and re-seed the global random generators between steps.
        observing: observe every agent at every moment; otherwise the actor alone.
    """
    trace = Trace(name, seed)
    with played(f"reset(seed={seed}) in {name}"):
        game.reset(seed=seed, options=options)
    carry_on(
        game,
        trace,
        script,
        choose=choose,
        watch=watch,
        disturbed=disturbed,
        observing=observing,
    )
    return trace


def carry_on(
    game: FlexMarkovGame,
    trace: Trace,
    script: Script,
    *,
    choose: Chooser | None = None,
    watch: Callable[[FlexMarkovGame], None] | None = None,
    disturbed: bool = False,
    observing: bool = True,
    steps: int = LONGEST_EPISODE,
) -> None:
    """Write down the present moment and play on, for ``steps`` steps or to the end."""
    taken = dict.fromkeys(game.possible_agents, 0)
    for turn in game.turns:
        taken[turn.agent] += 1
    done = 0
    while True:
        if disturbed:
            disturb(len(trace.actions))
        if watch is not None:
            watch(game)
        trace.moments.append(look(game, observing=observing))
        if not game.agents or done == steps:
            break
        if done == LONGEST_EPISODE:
            raise ConformanceError(
                f"agents: after {LONGEST_EPISODE} steps of {trace.name} {game.agents} are still "
                "in the game; every agent must be dead in the end and leave by step(None)"
            )
        done += 1
        _one_step(game, trace, script, choose, taken)
    with played(f"transcript() in {trace.name}"):
        trace.transcript = plain(asdict(game.transcript()))


def _one_step(
    game: FlexMarkovGame,
    trace: Trace,
    script: Script,
    choose: Chooser | None,
    taken: dict[str, int],
) -> None:
    place = f"step {len(trace.actions)} of {trace.name}"
    with played(place):
        dead = game.terminations[game.agent_selection] or game.truncations[game.agent_selection]
        if choose is not None and not dead:
            game.select(choose(game.ready))
        agent = game.agent_selection
        reward = game.last(observe=False)[1]
        text = None if dead else script(game, agent, taken[agent])
        game.step(text)
    trace.collected[agent] = trace.collected.get(agent, 0.0) + float(reward)
    trace.actions.append((agent, text))
    if dead and agent in game.agents:
        raise ConformanceError(
            f"agents: {agent} is still in the game after {place}, its dead step; step(None) must "
            "let a dead agent leave"
        )
    if not dead:
        taken[agent] += 1
        for other, paid in game.rewards.items():
            if paid:
                trace.paid.setdefault(other, []).append(float(paid))


@contextmanager
def played(place: str) -> Iterator[None]:
    """Turn whatever a game raises where it should not into a ``ConformanceError``."""
    try:
        yield
    except ConformanceError:
        raise
    except Exception as error:
        raise ConformanceError(
            f"playing: {place} raised {type(error).__name__}: {error}"
        ) from error


def in_order(trace: Trace, start: int = 0) -> Chooser:
    """A chooser that lets agents act in the order of a trace, from one of its steps on."""
    acted = iter([agent for agent, text in trace.actions[start:] if text is not None])
    return lambda ready: next(acted, ready[0])


def look(game: FlexMarkovGame, *, observing: bool = True) -> Moment:
    """Everything an observer can see of a game now, as plain data."""
    agents = list(game.agents)
    seen = agents if observing else [game.agent_selection] if agents else []
    with played(f"observe() of {seen}"):
        observations = {agent: plain(game.observe(agent)) for agent in seen}
    return {
        "agents": agents,
        "selection": game.agent_selection if agents else None,
        "ready": list(game.ready),
        "observations": observations,
        "rewards": plain(game.rewards),
        "cumulative": plain(game._cumulative_rewards),
        "terminations": plain(game.terminations),
        "truncations": plain(game.truncations),
        "infos": plain(game.infos),
        "state": plain(game.state()),
    }


def plain(value: Any) -> Any:
    """A value as JSON would give it back; what JSON cannot hold becomes its type's name."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return f"<{type(value).__qualname__}>"


def texts_in(value: Any) -> Iterator[str]:
    """Every text in a plain value, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from texts_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts_in(item)


def difference(one: Any, other: Any, path: str = "") -> str | None:
    """The first place where two plain values differ, as a phrase; None when they are equal."""
    if one == other:
        return None
    if isinstance(one, dict) and isinstance(other, dict):
        if one.keys() != other.keys():
            return f"{path or 'the value'} has the keys {list(one)} against {list(other)}"
        pairs = [(f"{path}.{key}" if path else key, one[key], other[key]) for key in one]
    elif isinstance(one, list) and isinstance(other, list):
        if len(one) != len(other):
            return f"{path or 'the value'} has {len(one)} entries against {len(other)}"
        pairs = [
            (f"{path}[{i}]", mine, theirs)
            for i, (mine, theirs) in enumerate(zip(one, other, strict=True))
        ]
    else:
        # NaN equals itself here: both runs did the same.
        both_nan = one != one and other != other
        phrase = f"{path or 'the value'} is {_short(one)} against {_short(other)}"
        return None if both_nan else phrase
    found = (difference(mine, theirs, where) for where, mine, theirs in pairs)
    return next((phrase for phrase in found if phrase is not None), None)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 90 else f"{text[:87]}..."


def disturb(key: int) -> None:
    """Re-seed the global generators and draw from them: no game may notice."""
    random.seed(key * 7919 + 11)
    # The legacy global generator is what is to be disturbed.
    np.random.seed(key * 104_729 % 2**32)
    for _ in range(1 + key % 3):
        random.random()
        np.random.random()


@contextmanager
def generators_kept() -> Iterator[None]:
    """Give the caller's global random generators back as they were."""
    pythons, numpys = random.getstate(), np.random.get_state()
    try:
        yield
    finally:
        random.setstate(pythons)
        np.random.set_state(numpys)
