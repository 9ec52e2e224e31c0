"""The state of one episode: which calls are planned, which are done, who sees what.

Kept apart from the AEC class so that a snapshot is a copy of one object, and so that
the rules of D (ablations, visibility, readiness, layers) stand in one place.
"""

from __future__ import annotations

from collections.abc import Collection
from copy import copy
from dataclasses import dataclass, field
from typing import Literal

from flexmg.dependency import DependencyGraph
from flexmg.errors import WorkflowError
from flexmg.problem import Problem, Verdict
from flexmg.seeding import stream
from flexmg.transcript import Turn
from flexmg.workflow import Round, Workflow

Dependencies = Literal["designed", "none", "full", "shuffled"]
MOST_TURNS = 10_000  # a workflow that plans more has no end


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of an episode.

    Args:
        verdict: of the designated answer.
        answer: the graded reply; ``designated``: whose it is; ``fallback``: the rule that
            chose it when the agents' texts did not say.
        rewards: agent streams, one number per agent that was in the game.
        step_rewards: central stream, one number per env step.
        terms: ``terms[agent][term]``, before weighting.
        truth: each turn's own truth by position, for turns that have one.
        infra_error: our own machinery failed: leave the episode out of training and scores.
    """

    verdict: Verdict
    answer: str
    designated: tuple[str, ...]
    fallback: str
    rewards: dict[str, float]
    step_rewards: tuple[float, ...]
    terms: dict[str, dict[str, float]]
    truth: dict[int, float]
    infra_error: bool


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A call with its place: see :class:`flexmg.transcript.Turn` for the fields."""

    agent: str
    sees: tuple[str, ...]
    step: int
    round: int
    layer: int
    position: int


@dataclass(slots=True)
class EpisodeState:
    """Everything about an episode that changes while it is played."""

    seed: int
    problem: Problem
    dependencies: Dependencies
    calls: list[PlannedCall] = field(default_factory=list)
    turns: dict[int, Turn] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)
    step: int = 0
    rounds: int = 0
    outcome: Outcome | None = None

    def copy(self) -> EpisodeState:
        """A copy that shares only immutable parts."""
        twin = copy(self)
        twin.calls, twin.turns, twin.order = list(self.calls), dict(self.turns), list(self.order)
        return twin

    @property
    def history(self) -> tuple[Turn, ...]:
        """The turns taken, in canonical order."""
        return tuple(self.turns[p] for p in sorted(self.turns))

    def call_of(self, agent: str) -> PlannedCall | None:
        """The latest call of an agent, done or not."""
        return next((c for c in reversed(self.calls) if c.agent == agent), None)

    def is_ready(self, call: PlannedCall) -> bool:
        """Whether a call is not done and everything it depends on is."""
        if call.position in self.turns:
            return False
        if not call.sees:
            return True
        return all(
            c.position in self.turns
            for c in self.calls
            if c.step == call.step and c.agent in call.sees
        )

    def ready(self) -> tuple[PlannedCall, ...]:
        """The calls that may be acted on now, in canonical order."""
        if self.outcome is not None:
            return ()
        return tuple(c for c in self.calls if self.is_ready(c))

    def visible(self, call: PlannedCall, recall: Collection[tuple[str, str]]) -> tuple[Turn, ...]:
        """The turns that D (this step) and recall (earlier steps) let a call see."""
        return tuple(
            turn
            for turn in self.history
            if (turn.step == call.step and turn.agent in call.sees)
            or (turn.step < call.step and (turn.agent, call.agent) in recall)
        )

    def open(self, round_: Round, workflow: Workflow) -> None:
        """Plan a round: check it against the workflow's contract and place its calls.

        Raises:
            WorkflowError: an unknown agent, an agent that acts twice within a step, a
                dependency on an agent that does not act in this step, or no call at all.
            DependencyCycle: the round's calls wait for one another.
        """
        if round_.new_step and self.calls:
            self.step += 1
        earlier = [c.agent for c in self.calls if c.step == self.step]
        agents = [call.agent for call in round_.calls]
        acting = [*earlier, *agents]
        name = workflow.name
        if not agents:
            raise WorkflowError(f"workflow {name!r} planned a round without calls")
        if unknown := set(acting) - set(workflow.agents):
            raise WorkflowError(f"workflow {name!r} calls {sorted(unknown)}, not in its team()")
        if len(set(acting)) != len(acting):
            twice = sorted({a for a in acting if acting.count(a) > 1})
            raise WorkflowError(
                f"workflow {name!r} lets {twice} act twice in step {self.step}; an agent acts "
                "once per step: open the round with new_step=True"
            )
        for call in round_.calls:
            if lost := set(call.sees) - set(acting):
                raise WorkflowError(
                    f"workflow {name!r}: {call.agent} is to see {sorted(lost)}, which do not act "
                    f"in step {self.step}; earlier steps are seen through recall()"
                )
        sees = self._masked(round_, earlier)
        graph = DependencyGraph.from_edges(
            agents, [(i, j) for j in agents for i in sees[j] if i in agents]
        )
        base = 1 + max((c.layer for c in self.calls if c.step == self.step), default=-1)
        layer_of = {a: base + k for k, layer in enumerate(graph.layers) for a in layer}
        for agent in agents:
            self.calls.append(
                PlannedCall(
                    agent, sees[agent], self.step, self.rounds, layer_of[agent], len(self.calls)
                )
            )
        if len(self.calls) > MOST_TURNS:
            raise WorkflowError(f"workflow {name!r} planned more than {MOST_TURNS} turns")
        self.rounds += 1

    def _masked(self, round_: Round, earlier: list[str]) -> dict[str, tuple[str, ...]]:
        """Who sees whom in this round after the ablation ``dependencies``."""
        designed = {call.agent: call.sees for call in round_.calls}
        agents = list(designed)
        match self.dependencies:
            case "none":
                return dict.fromkeys(agents, ())
            case "full":
                return {a: (*earlier, *agents[:k]) for k, a in enumerate(agents)}
            case "shuffled":
                # Relabelling the round's agents keeps the number of edges and acyclicity.
                rng = stream("shuffled D", self.seed, self.problem.id, self.step, self.rounds)
                twin = dict(
                    zip(agents, (agents[k] for k in rng.permutation(len(agents))), strict=True)
                )
                return {
                    twin[a]: tuple(twin.get(seen, seen) for seen in designed[a]) for a in agents
                }
            case _:
                return designed
