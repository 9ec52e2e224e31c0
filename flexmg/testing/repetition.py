"""Rules on repeating an episode: determinism, confluence, snapshots, resets."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from flexmg.errors import ConformanceError
from flexmg.game import FlexMarkovGame
from flexmg.seeding import stream

from .blueprint import Blueprint, beyond, replay_elsewhere
from .trace import Chooser, Trace, carry_on, difference, in_order, look, play, played

SNAPSHOTS = 6  # moments of an episode at which a snapshot is tried


def check_determinism(game: FlexMarkovGame, second: FlexMarkovGame, trace: Trace) -> None:
    """The same seed and actions give the same episode: again, and in a second instance."""
    for what, other, disturbed, observing in (
        ("played again", game, False, True),
        ("played again with disturbed global random generators", game, True, True),
        ("played again with nobody but the actor observing", game, False, False),
        ("played in a second instance", second, False, True),
    ):
        again = play(
            other,
            trace.name,
            trace.seed,
            trace.recorded(beyond),
            choose=in_order(trace),
            disturbed=disturbed,
            observing=observing,
        )
        _equal("determinism", what, trace, again)


def check_other_process(
    blueprint: Blueprint, traces: Sequence[Trace], hash_seeds: Sequence[int]
) -> None:
    """The same in another process with another ``PYTHONHASHSEED``."""
    own = os.environ.get("PYTHONHASHSEED", "")
    for hash_seed in hash_seeds:
        other = hash_seed + 1000 if str(hash_seed) == own else hash_seed
        for trace, again in zip(traces, replay_elsewhere(blueprint, traces, other), strict=True):
            _equal(
                "determinism",
                f"played in another process with PYTHONHASHSEED={other}",
                trace,
                again,
            )


def check_confluence(game: FlexMarkovGame, trace: Trace, limit: int) -> list[Trace]:
    """Every order that D allows gives the same episode, up to the order of records.

    Args:
        game: the game.
        trace: an episode of it.
        limit: the most orders to try; all of them when there are no more.

    Returns:
        The episodes in the other orders.
    """
    found = []
    for again in _orders(game, trace, limit):
        acted = [agent for agent, text in again.actions if text is not None]
        for name in trace.transcript:
            if name in ("order", "digest"):
                continue
            phrase = difference(trace.transcript[name], again.transcript[name], name)
            if phrase is not None:
                raise ConformanceError(
                    f"confluence: in {trace.name} the order {acted} gives another episode: "
                    f"{phrase}; what agents that do not see each other do must not depend on "
                    "who acts first"
                )
        phrase = difference(trace.collected, {a: again.collected.get(a) for a in trace.collected})
        if phrase is not None:
            raise ConformanceError(
                f"confluence: in {trace.name} the order {acted} pays another reward: {phrase}"
            )
        found.append(again)
    return found


def _orders(game: FlexMarkovGame, trace: Trace, limit: int) -> Iterator[Trace]:
    """Episodes in all orders, or where there are more than ``limit`` in a sample of them."""
    prefixes: list[list[int]] = [[]]
    for _ in range(limit):
        if not prefixes:
            return
        prefix = prefixes.pop()
        taken: list[int] = []
        widths: list[int] = []

        def follow(
            ready: tuple[str, ...],
            prefix: list[int] = prefix,
            taken: list[int] = taken,
            widths: list[int] = widths,
        ) -> str:
            pick = prefix[len(taken)] if len(taken) < len(prefix) else 0
            taken.append(pick)
            widths.append(len(ready))
            return ready[pick]

        yield play(game, trace.name, trace.seed, trace.recorded(beyond), choose=follow)
        for at in range(len(prefix), len(taken)):
            prefixes += [[*taken[:at], pick] for pick in range(1, widths[at])]
    for sample in range(limit if prefixes else 0):
        chance = _at_random(trace.seed, sample)
        yield play(game, trace.name, trace.seed, trace.recorded(beyond), choose=chance)


def _at_random(seed: int, sample: int) -> Chooser:
    rng = stream("check_env order", seed, sample)
    return lambda ready: ready[int(rng.integers(len(ready)))]


def check_snapshots(game: FlexMarkovGame, second: FlexMarkovGame, trace: Trace) -> None:
    """A snapshot brings everything back, also pickled and into a second instance."""
    last = len(trace.actions)
    for at in sorted({last * k // SNAPSHOTS for k in range(SNAPSHOTS + 1)}):
        with played(f"reset(seed={trace.seed}) in {trace.name}"):
            game.reset(seed=trace.seed)
        carry_on(
            game,
            Trace(trace.name, trace.seed),
            trace.recorded(beyond),
            choose=in_order(trace),
            steps=at,
        )
        with played(f"snapshot() after step {at} of {trace.name}"):
            snapshot = game.snapshot()
            pickled = pickle.dumps(snapshot)
        end = partial(_to_the_end, trace=trace, at=at)
        end(game, "went on after snapshot()")
        for what, other, state in (
            ("restored", game, snapshot),
            ("restored a second time", game, snapshot),
            ("restored from a pickle into a second instance", second, pickle.loads(pickled)),
        ):
            if other is second:
                second.reset(seed=trace.seed + 1)
            with played(f"restore() after step {at} of {trace.name}"):
                other.restore(state)
            end(other, what)


def _to_the_end(game: FlexMarkovGame, what: str, *, trace: Trace, at: int) -> None:
    rest = Trace(trace.name, trace.seed)
    carry_on(game, rest, trace.recorded(beyond), choose=in_order(trace, at))
    place = f"a game {what} at step {at} of {trace.name}"
    phrase = difference(trace.moments[at:], rest.moments, "moments") or difference(
        trace.transcript, rest.transcript, "transcript"
    )
    if phrase is not None:
        raise ConformanceError(
            f"snapshot: {place} is not as it was: {phrase}; snapshot() must hold all that "
            "changes during an episode, and share nothing that is changed in place"
        )


def check_resets(game: FlexMarkovGame, trace: Trace) -> None:
    """``reset`` in the middle of an episode, and with unknown option keys, is like any other."""
    try:
        game.reset(seed=trace.seed, options={"no such option": 1})
    except Exception as error:
        raise ConformanceError(
            f"reset: an unknown option key raises {type(error).__name__} ({error}); unknown keys "
            "must be ignored, PettingZoo's own tests give some"
        ) from error
    with played(f"reset(seed={trace.seed + 1})"):
        game.reset(seed=trace.seed + 1)
    carry_on(
        game, Trace("an episode left half-way", trace.seed + 1), beyond, steps=trace.turns // 2
    )
    settings: dict[str, dict[str, Any]] = {
        "after a reset in the middle of another one": {},
        "with an unknown option key": {"options": {"no such option": 1}},
    }
    for what, extra in settings.items():
        name = f"{trace.name} {what}"
        again = play(
            game, name, trace.seed, trace.recorded(beyond), choose=in_order(trace), **extra
        )
        _equal("reset", what, trace, again)
    game.reset(seed=trace.seed)
    before = look(game)
    game.reset(seed=trace.seed, options={"problem": trace.transcript["problem"]})
    if phrase := difference(before, look(game)):
        raise ConformanceError(
            f"reset: options={{'problem': {trace.transcript['problem']!r}}} begins another episode "
            f"than the seed that chose this problem: {phrase}"
        )


def _equal(rule: str, what: str, trace: Trace, again: Trace) -> None:
    """Raise unless two traces tell the same episode, moment by moment."""
    for at, (before, now) in enumerate(zip(trace.moments, again.moments, strict=False)):
        seen = now["observations"]
        before = {**before, "observations": {a: before["observations"].get(a) for a in seen}}
        if phrase := difference(before, now):
            raise ConformanceError(
                f"{rule}: {trace.name} {what} differs after step {at}: {phrase}; an episode must "
                "depend on seed and actions alone"
            )
    phrase = difference(trace.transcript, again.transcript, "transcript") or difference(
        trace.collected, again.collected, "collected rewards"
    )
    if phrase is not None:
        raise ConformanceError(f"{rule}: {trace.name} {what} differs: {phrase}")
