"""Games that break one rule each: what the conformance suite must catch.

They stand in a module of their own because other processes import them.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
from sums import team

import flexmg
from flexmg import Call, Finish, History, Parsed, Profile, Round
from flexmg.workflow import Message, user

GAMES: dict[str, tuple[str, Any]] = {}
"""By name of the fault: the rule that it breaks, and what makes the game."""


def breaks(rule: str) -> Any:
    """File a workflow or game class under the rule that it breaks."""

    def file(cls: Any) -> Any:
        assert cls.__name__ not in GAMES
        GAMES[cls.__name__] = (rule, cls)
        return cls

    return file


def broken(name: str) -> flexmg.FlexMarkovGame:
    """The game with this fault."""
    cls = GAMES[name][1]
    if issubclass(cls, flexmg.Workflow):
        return team(cls)
    return team(Poll, cls)


class Poll(flexmg.Workflow):
    """Three voters, then a chair who sees them, twice; correct until a subclass breaks it."""

    name = "poll"
    roles = {
        "voter": Profile("You are a voter.", "{answer_format}"),
        "chair": Profile("You are the chair. Say Correct or Incorrect.", "{answer_format}"),
    }
    limits = {"voter": 64, "chair": 64}

    def team(self) -> Sequence[str]:
        return ["voter_0", "voter_1", "voter_2", "chair_0"]

    def plan(self, history: History) -> Round | Finish:
        if len(history.turns) < 8:
            voters = self.agents[:3]
            return Round((*map(Call, voters), Call("chair_0", voters)), new_step=True)
        return Finish(history.last("chair_0").text, ("chair_0",))

    def demonstrate(
        self, agent: str, problem: flexmg.Problem, visible: Sequence[Any], statement: str
    ) -> str:
        return f"Answer: {problem.gold}"


# ------------------------------------------------------------------------ secrecy


@breaks("secrecy")
class LeaksThroughAnAttribute(Poll):
    """Voters read each other's votes from a list kept beside the turns."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.votes: dict[str, str] = {}

    def parse(self, agent: str, text: str) -> Parsed:
        self.votes[agent] = text
        return Parsed()

    def observe(self, agent: str, statement: str, visible: Sequence[Any]) -> tuple[Message, ...]:
        return (*super().observe(agent, statement, visible), user(str(self.votes)))


@breaks("secrecy")
class LeaksALength(flexmg.FlexMarkovGame):
    """No word of a hidden turn is shown, but how long all turns are together."""

    def observe(self, agent: str) -> dict[str, Any]:
        length = sum(len(turn.text) for turn in self.turns if turn.agent != agent)
        return {**super().observe(agent), "profile": f"{length} characters so far"}


@breaks("secrecy")
class LeaksThroughInfos(flexmg.FlexMarkovGame):
    def step(self, action: Any) -> None:
        super().step(action)
        if self.agents and not self.finished:
            for agent in self.agents:
                self.infos[agent]["latest"] = action


@breaks("secrecy")
class TellsTheTruthEarly(flexmg.FlexMarkovGame):
    def reset(self, seed: int | None = None, options: Any = None) -> None:
        super().reset(seed, options)
        for agent in self.agents:
            self.infos[agent]["truth"] = [1.0]


@breaks("secrecy")
class ShowsAnotherD(flexmg.FlexMarkovGame):
    def observe(self, agent: str) -> dict[str, Any]:
        observation = super().observe(agent)
        return {**observation, "dependencies": 1 - observation["dependencies"]}


# ------------------------------------------------------------------------ determinism


@breaks("determinism")
class UsesGlobalRandomness(Poll):
    def parse(self, agent: str, text: str) -> Parsed:
        return Parsed(random.random())


@breaks("determinism")
class UsesGlobalNumpyRandomness(flexmg.FlexMarkovGame):
    """Only when an agent leaves: PettingZoo's own test has stopped by then."""

    def step(self, action: Any) -> None:
        super().step(action)
        if action is None:
            for agent in self.agents:
                self.infos[agent]["luck"] = float(np.random.random())


@breaks("determinism")
class DependsOnHashes(Poll):
    """The order of a set of texts is another one in another process."""

    def observe(self, agent: str, statement: str, visible: Sequence[Any]) -> tuple[Message, ...]:
        words = {*["one", "two", "three", "four", "five", "six", "seven", "eight"]}
        return (user(f"{statement} {' '.join(words)}"),)


@breaks("determinism")
class CountsItsEpisodes(flexmg.FlexMarkovGame):
    episodes_so_far = 0

    def reset(self, seed: int | None = None, options: Any = None) -> None:
        super().reset(seed, options)
        self.episodes_so_far += 1

    def observe(self, agent: str) -> dict[str, Any]:
        return {**super().observe(agent), "profile": f"episode {self.episodes_so_far}"}


# ------------------------------------------------------------------------ confluence, snapshots


@breaks("confluence")
class FirstComeFirstServed(Poll):
    """The answer is that of the voter who happened to act first."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.first = ("", "")

    def parse(self, agent: str, text: str) -> Parsed:
        if not self.first[0] or agent == "chair_0":
            self.first = (agent, text) if agent != "chair_0" else ("", "")
        return Parsed(self.first[0])


@breaks("snapshot")
class KeepsStateOutsideTheEpisode(flexmg.FlexMarkovGame):
    taken = 0

    def reset(self, seed: int | None = None, options: Any = None) -> None:
        self.taken = 0
        super().reset(seed, options)

    def step(self, action: Any) -> None:
        super().step(action)
        self.taken += 1
        for agent in self.agents:
            self.infos[agent]["taken"] = self.taken


@breaks("reset")
class RefusesUnknownOptions(flexmg.FlexMarkovGame):
    def reset(self, seed: int | None = None, options: Any = None) -> None:
        if set(options or {}) - {"problem"}:
            raise flexmg.errors.InvalidArgument("unknown option")
        super().reset(seed, options)


@breaks("reset")
class RemembersAnUnfinishedEpisode(flexmg.FlexMarkovGame):
    """Of the agents that left, some may have been of the episode before."""

    left_half_way = False

    def reset(self, seed: int | None = None, options: Any = None) -> None:
        half_way = bool(self.agents) and 0 < len(self.turns) < 8
        super().reset(seed, options)
        if half_way:
            self.infos[self.agents[0]]["left half-way"] = True


# ------------------------------------------------------------------------ rewards


@breaks("rewards")
class PaysTwice(flexmg.FlexMarkovGame):
    def step(self, action: Any) -> None:
        super().step(action)
        if action is not None and self.finished:
            self._cumulative_rewards = {a: 2 * r for a, r in self._cumulative_rewards.items()}


@breaks("rewards")
class PaysTheCentralStreamEveryStep(flexmg.FlexMarkovGame):
    @property
    def outcome(self) -> Any:
        outcome = super().outcome
        if outcome is None:
            return None
        paid = (1.0,) * len(outcome.step_rewards)
        return type(outcome)(
            **{name: getattr(outcome, name) for name in outcome.__slots__} | {"step_rewards": paid}
        )


@breaks("rewards")
class LosesAReward(flexmg.FlexMarkovGame):
    def step(self, action: Any) -> None:
        super().step(action)
        if action is not None and self.finished:
            self._cumulative_rewards["voter_1"] = 0.0


# ------------------------------------------------------------------------ records


@breaks("transcript")
class ParsesATuple(Poll):
    def parse(self, agent: str, text: str) -> Parsed:
        return Parsed((len(text), agent))


@breaks("transcript")
class ParsesASet(Poll):
    def parse(self, agent: str, text: str) -> Parsed:
        return Parsed({len(text)})


@breaks("replay")
class CutsTheRecord(flexmg.FlexMarkovGame):
    """Texts are recorded in part only, so the record says something else than was said."""

    def transcript(self) -> flexmg.Transcript:
        record = super().transcript()
        cut = (
            type(turn)(**{n: getattr(turn, n) for n in turn.__slots__} | {"text": turn.text[:3]})
            for turn in record.turns
        )
        return flexmg.Transcript(**vars(record) | {"turns": tuple(cut)})


@breaks("close")
class ClosesOnce(flexmg.FlexMarkovGame):
    closed = False

    def close(self) -> None:
        if self.closed:
            raise RuntimeError("closed already")
        self.closed = True


# ------------------------------------------------------------------------ conduct


@breaks("observe")
class EmptiesItsInbox(flexmg.FlexMarkovGame):
    """Observing takes the messages out of a box, as mail."""

    def observe(self, agent: str) -> dict[str, Any]:
        observation = super().observe(agent)
        box = self.__dict__.setdefault("box", {})
        key = (agent, len(self.turns))
        fresh = key not in box
        box[key] = True
        return observation if fresh else {**observation, "messages": ()}


@breaks("spaces")
class MakesSpacesAnew(flexmg.FlexMarkovGame):
    def action_space(self, agent: str) -> Any:
        return flexmg.spaces.Utterance(100)


@breaks("spaces")
class ObservesOutsideItsSpace(flexmg.FlexMarkovGame):
    def observe(self, agent: str) -> dict[str, Any]:
        return {**super().observe(agent), "surprise": 1}


@breaks("infos")
class HasNoInfos(flexmg.FlexMarkovGame):
    def step(self, action: Any) -> None:
        super().step(action)
        self.infos = dict.fromkeys(self.agents)


@breaks("agents")
class BringsAnAgentBack(flexmg.FlexMarkovGame):
    returned = False

    def reset(self, seed: int | None = None, options: Any = None) -> None:
        self.returned = False
        super().reset(seed, options)

    def step(self, action: Any) -> None:
        agent = self.agent_selection
        super().step(action)
        if action is None and not self.agents and not self.returned:
            self.returned = True
            self._enter(agent)

    def _enter(self, agent: str) -> None:
        self.agents.append(agent)
        self.agent_selection = agent
        self.rewards[agent] = self._cumulative_rewards[agent] = 0.0
        self.terminations[agent], self.truncations[agent] = True, False
        self.infos[agent] = {}


@breaks("agents")
class KeepsItsDead(flexmg.FlexMarkovGame):
    """A dead step that removes nobody: the loop over agents never ends."""

    def step(self, action: Any) -> None:
        if action is not None or not self.finished:
            super().step(action)


@breaks("agents")
class FlagsWithNumpy(flexmg.FlexMarkovGame):
    def reset(self, seed: int | None = None, options: Any = None) -> None:
        super().reset(seed, options)
        self.terminations = {agent: np.bool_(False) for agent in self.agents}


@breaks("actions")
class TakesAnything(flexmg.FlexMarkovGame):
    def step(self, action: Any) -> None:
        alive = self.agents and not self.terminations[self.agent_selection]
        super().step(str(action) if alive and isinstance(action, int) else action)


@breaks("actions")
class RemembersWhatItRefuses(flexmg.FlexMarkovGame):
    def step(self, action: Any) -> None:
        try:
            super().step(action)
        except flexmg.errors.InvalidAction:
            self.infos[self.agent_selection]["refused"] = True
            raise


@breaks("actions")
class LetsAnybodyAct(flexmg.FlexMarkovGame):
    def select(self, agent: str) -> None:
        if agent in self.ready:
            super().select(agent)


@breaks("playing")
class Stumbles(Poll):
    def plan(self, history: History) -> Round | Finish:
        if len(history.turns) == 4:
            raise KeyError("nothing planned")
        return super().plan(history)
