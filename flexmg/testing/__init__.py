"""Conformance tests for environments: ours, and those of third parties.

    from flexmg.testing import check_env

    check_env(flexmg.make("my-game-v0"))

PettingZoo's own tests are not made for text: they stop at the first dead agent, read one
key of an observation, and cannot sample text masks. Run them too; this one goes further.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from flexmg.agents import Policy
from flexmg.errors import ConformanceError, InvalidArgument
from flexmg.game import FlexMarkovGame

from . import conduct, records, repetition, secrecy
from .blueprint import Blueprint
from .scripts import scripts
from .trace import Trace, generators_kept, play

__all__ = ["ConformanceError", "check_env"]


def check_env(
    env: Any,
    *,
    actions: Policy | None = None,
    seeds: Sequence[int] = (0, 1),
    orders: int = 24,
    hash_seeds: Sequence[int] = (1, 2),
) -> None:
    """Check that an environment keeps the rules of a Flexible Markov Game.

    Whole episodes are played with random texts made of the agents' own prompts, with the
    environment's demonstrations where it has them, and with ``actions``. The rules:

    * *determinism*: seed and actions fix everything that can be seen, to the last dead
      step: again, in a second instance, with the global random generators disturbed
      between steps, and in other processes with other values of ``PYTHONHASHSEED``.
    * *confluence*: every order that D allows gives the same episode, up to the order of
      records: all of them where few, a sample where many.
    * *secrecy*: an observation holds nothing that D and recall hide. Marker texts are
      planted in every line of every action; and agents who may see the same turns must
      observe the same, whatever the hidden texts are.
    * *snapshot*: ``snapshot`` and ``restore`` bring everything back, also after
      pickling and in a second instance.
    * *rewards*: each agent collects its outcome once through ``last``; the central stream
      pays once, one number per env step.
    * *observe*: observing changes nothing. *transcript*: it survives JSON. *replay*: it
      replays without a difference. *close*: twice. *reset*: in the middle of an episode,
      and with unknown option keys, as at any other time.
    * *spaces*: the same objects at each call; observations and actions lie in them.
      *agents*: names never return, dead agents step first and all leave. *infos*: dicts.
      *actions*: bad ones are refused, and leave the game as it was.

    Args:
        env: a :class:`~flexmg.game.FlexMarkovGame`, or a wrapped one, of which the game
            inside is checked. It is built again from its spec, else by pickle.
        actions: a policy that drives parts of the workflow which random texts miss. Its
            actions should depend on its arguments alone.
        seeds: of the episodes.
        orders: the most orders of acting to try per episode.
        hash_seeds: values of ``PYTHONHASHSEED``, one other process each; none to leave
            that part out. An environment that the running script or notebook defines cannot be
            sent there: that part is left out with a warning.

    Raises:
        ConformanceError: naming the rule, the agent and the place.
        InvalidArgument: ``env`` is not a Flexible Markov Game.
    """
    game = getattr(env, "unwrapped", env)
    if not isinstance(game, FlexMarkovGame):
        raise InvalidArgument(
            f"check_env is for Flexible Markov Games, not {type(env).__name__}; "
            "build the environment on flexmg.FlexMarkovGame"
        )
    blueprint = Blueprint.of(game)
    second = blueprint.build()
    if blueprint.spec is not None:
        conduct.check_before_reset(second)
    with generators_kept():
        traces = [
            trace for seed in seeds for trace in _episodes(game, second, actions, seed, orders)
        ]
        if hash_seeds and "__main__" in blueprint.modules():
            warnings.warn(
                "the environment is defined in the running script or notebook, which other "
                "processes cannot import: determinism in another process is not checked; move "
                "it to a module of its own to check that as well",
                stacklevel=2,
            )
        else:
            repetition.check_other_process(blueprint, traces, hash_seeds)
    conduct.check_close(second)
    conduct.check_close(game)


def _episodes(
    game: FlexMarkovGame,
    second: FlexMarkovGame,
    actions: Policy | None,
    seed: int,
    orders: int,
) -> list[Trace]:
    """Check the episodes of one seed; returns them for the check in other processes."""
    played: list[Trace] = []
    related: list[Trace] = []
    for what, script in scripts(game, seed, actions).items():
        name = f"the episode of {what} (seed {seed})"
        trace = play(game, name, seed, script, watch=conduct.Watch(game, name))
        records.check_rewards(game, trace)
        transcript = game.transcript()
        records.check_transcript(transcript, trace)
        secrecy.check_early_truth(trace)
        secrecy.check_declared(game, trace)
        if what.startswith("marked"):
            secrecy.check_markers(game, trace)
        repetition.check_determinism(game, second, trace)
        related += [trace, *repetition.check_confluence(game, trace, orders)]
        related += secrecy.variations(game, trace)
        records.check_replay(transcript, second, trace)
        repetition.check_snapshots(game, second, trace)
        repetition.check_resets(game, trace)
        conduct.check_refusals(game, trace)
        played.append(trace)
    secrecy.check_dependence(game, related)
    return played
