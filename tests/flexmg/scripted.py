"""Games of a test's own: workflows written as tables, and scripts that play any game."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sums import SumDomain, Sums

import flexmg
from flexmg import Call, Finish, Profile, Round


class Tabled(flexmg.Workflow):
    """A workflow that plays given rounds one after the other; the last turn is graded."""

    name = "tabled"
    roles = {role: Profile(f"You are {role}.") for role in "abc"}
    rounds: Sequence[Round] = ()
    seen_earlier: Sequence[tuple[str, str]] | None = None

    def team(self) -> Sequence[str]:
        return ["a_0", "b_0", "c_0"]

    def recall(self) -> Sequence[tuple[str, str]]:
        return super().recall() if self.seen_earlier is None else self.seen_earlier

    def plan(self, history: flexmg.History) -> Round | Finish:
        done = 0
        for round_ in self.rounds:
            if len(history.turns) == done:
                return round_
            done += len(round_.calls)
        return Finish(history.turns[-1].text, (history.turns[-1].agent,))


def tabled(*rounds: Round, workflow: type[Tabled] = Tabled, **options: Any) -> Any:
    """A game of sums that plays the given rounds.

    Args:
        *rounds: of agents ``a_0``, ``b_0``, ``c_0``.
        workflow: a subclass, for other rules.
        **options: ``dependencies``, ``reward``, ``recall``, ``domain`` ...
    """
    members = {"rounds": rounds, "seen_earlier": options.pop("recall", None)}
    cls = type("OfTest", (workflow,), members)
    domain = options.pop("domain", SumDomain())
    return flexmg.FlexMarkovGame(cls(domain), options.pop("source", Sums()), **options)


def row(*agents: str, new_step: bool = False) -> Round:
    """A round in which each agent sees those before it: ``row("a_0", "b_0")``."""
    return Round(tuple(Call(a, agents[:k]) for k, a in enumerate(agents)), new_step)


def act(env: Any, texts: Mapping[str, str | Sequence[str]], until: int | None = None) -> Any:
    """Play on from where the game stands: each agent says its texts in turn.

    Args:
        env: a game, reset.
        texts: per agent one text for all its turns, or one per turn.
        until: stop after so many turns; by default at the end.
    """
    while not env.finished and len(env.turns) != until:
        agent = env.agent_selection
        said = texts[agent]
        taken = sum(turn.agent == agent for turn in env.turns)
        env.step(said if isinstance(said, str) else said[taken])
    return env


def begin(env: Any, seed: int = 0, problem: int | str = 0) -> Any:
    """The game, reset to a problem."""
    env.reset(seed=seed, options={"problem": problem})
    return env


def prompt(env: Any, agent: str) -> str:
    """All that an agent is shown, as one text."""
    observation = env.observe(agent)
    return "\n".join([observation["profile"], *(m["content"] for m in observation["messages"])])


def seen(env: Any) -> list[tuple[int, str, tuple[str, ...]]]:
    """(env step, agent, whom it saw of this step) of all turns, in canonical order."""
    return [(turn.step, turn.agent, turn.sees) for turn in env.turns]
