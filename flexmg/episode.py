"""The state of one episode: which calls are planned, which are done, who sees what.

Kept apart from the AEC class so that a snapshot is a copy of one object, and so that
the rules of D (ablations, visibility, readiness, layers) stand in one place.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal

from flexmg.dependency import DependencyGraph
from flexmg.errors import InvalidArgument, WorkflowError
from flexmg.outcome import Outcome
from flexmg.problem import Problem
from flexmg.seeding import stream
from flexmg.transcript import Transcript, Turn, plain
from flexmg.workflow import Message, Round, Workflow

Dependencies = Literal["designed", "none", "full", "shuffled"]
Sees = dict[str, tuple[str, ...]]
MOST_TURNS = 10_000  # a workflow that plans more has no end


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
    """Everything about an episode that changes while it is played.

    Args:
        seed, problem, dependencies: what it was begun with.
        calls: all planned calls, in canonical order.
        turns: the turns taken, by position.
        waiting: the calls not taken yet, by agent, in canonical order. All are of the
            current env step, since a round opens only when nobody waits.
        latest: the latest call of each agent.
        order: agents in the order in which they acted.
        shown: the messages of a call by position, once nothing can change them any more.
        failures: messages of our own machinery's failures so far.
        step: the current env step; ``rounds``: how many were opened.
        outcome: what came of it, once it is over.
        ordered: the turns in canonical order, if they have been put in order since the last.
    """

    seed: int
    problem: Problem
    dependencies: Dependencies
    calls: list[PlannedCall] = field(default_factory=list)
    turns: dict[int, Turn] = field(default_factory=dict)
    waiting: dict[str, PlannedCall] = field(default_factory=dict)
    latest: dict[str, PlannedCall] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)
    shown: dict[int, tuple[Message, ...]] = field(default_factory=dict, compare=False)
    failures: list[str] = field(default_factory=list)
    step: int = 0
    rounds: int = 0
    outcome: Outcome | None = None
    ordered: tuple[Turn, ...] | None = field(default=None, compare=False)

    def copy(self) -> EpisodeState:
        """A copy that shares only what never changes."""
        return replace(
            self,
            calls=list(self.calls),
            turns=dict(self.turns),
            waiting=dict(self.waiting),
            latest=dict(self.latest),
            order=list(self.order),
            shown=dict(self.shown),
            failures=list(self.failures),
        )

    @property
    def history(self) -> tuple[Turn, ...]:
        """The turns taken, in canonical order."""
        if self.ordered is None:
            self.ordered = tuple([self.turns[p] for p in sorted(self.turns)])
        return self.ordered

    def is_settled(self, call: PlannedCall) -> bool:
        """Whether everything that a call may see has been said."""
        return self.waiting.keys().isdisjoint(call.sees)

    def is_ready(self, call: PlannedCall) -> bool:
        """Whether a call is not done and everything it depends on is."""
        return self.waiting.get(call.agent) is call and self.is_settled(call)

    def ready(self) -> tuple[PlannedCall, ...]:
        """The calls that may be acted on now, in canonical order."""
        return tuple(call for call in self.waiting.values() if self.is_settled(call))

    def visible(self, call: PlannedCall, recall: Collection[tuple[str, str]]) -> tuple[Turn, ...]:
        """The turns that D (this step) and recall (earlier steps) let a call see."""
        return tuple(
            turn
            for turn in self.history
            if (turn.step == call.step and turn.agent in call.sees)
            or (turn.step < call.step and (turn.agent, call.agent) in recall)
        )

    def take(self, turn: Turn) -> None:
        """Record a turn of an agent that is ready."""
        self.turns[turn.position] = turn
        self.ordered = None
        self.order.append(turn.agent)
        del self.waiting[turn.agent]

    def take_back(self, turn: Turn) -> None:
        """Undo the last :meth:`take`."""
        del self.turns[turn.position]
        self.ordered = None
        self.order.pop()
        self.waiting = {c.agent: c for c in self.calls if c.position not in self.turns}

    def open(self, round_: Round, workflow: Workflow) -> None:
        """Plan a round: check it against the workflow's contract and place its calls.

        Raises:
            WorkflowError: an unknown agent, an agent that acts twice within a step, a
                dependency on an agent that does not act in this step, or no call at all.
                The episode is as it was.
            DependencyCycle: the round's calls wait for one another.
        """
        step = self.step + 1 if round_.new_step and self.calls else self.step
        placed = [c for c in self.calls[-len(workflow.agents) :] if c.step == step]
        earlier = tuple(call.agent for call in placed)
        _check(round_, earlier, step, workflow)
        if len(self.calls) + len(round_.calls) > MOST_TURNS:
            raise WorkflowError(
                f"workflow {workflow.name!r} planned more than {MOST_TURNS} turns: has it an end?"
            )
        designed = {call.agent: tuple(call.sees) for call in round_.calls}
        _layers(tuple(designed.items()))  # a cycle is an error under every ablation
        sees = self._masked(designed, earlier, step)
        layers = _layers(tuple(sees.items()))
        below = 1 + max((call.layer for call in placed), default=-1)
        for agent in designed:
            call = PlannedCall(
                agent, sees[agent], step, self.rounds, below + layers[agent], len(self.calls)
            )
            self.calls.append(call)
            self.waiting[agent] = self.latest[agent] = call
        self.step = step
        self.rounds += 1

    def graph(self, step: int | None = None) -> DependencyGraph:
        """D of an env step (by default the current one), over the agents called in it.

        Raises:
            InvalidArgument: the episode has had no such step.
        """
        wanted = self.step if step is None else step
        calls = [call for call in self.calls if call.step == wanted]
        if not calls:
            raise InvalidArgument(f"step={step!r}, but the steps so far are 0 to {self.step}")
        return DependencyGraph.from_edges(
            [call.agent for call in calls], [(i, call.agent) for call in calls for i in call.sees]
        )

    def transcript(self, env: str, kwargs: Mapping[str, Any]) -> Transcript:
        """The episode so far as plain data.

        Args:
            env: id of the environment.
            kwargs: what it was made with.
        """
        outcome = self.outcome
        ended: dict[str, Any] = {}
        if outcome is not None:
            ended = {
                "answer": outcome.answer,
                "designated": outcome.designated,
                "fallback": outcome.fallback,
                "verdict": asdict(outcome.verdict),
                "rewards": dict(outcome.rewards),
                "step_rewards": outcome.step_rewards,
                "truth": dict(outcome.truth),
                "infra_error": outcome.infra_error,
            }
        return Transcript(
            env=env,
            kwargs=plain(kwargs),
            seed=self.seed,
            problem=self.problem.id,
            problem_hash=self.problem.payload_hash,
            statement=self.problem.statement,
            order=tuple(self.order),
            turns=self.history,
            finished=outcome is not None,
            **ended,
        ).sealed()

    def _masked(self, designed: Sees, earlier: tuple[str, ...], step: int) -> Sees:
        """Who sees whom in this round after the ablation ``dependencies``."""
        agents = list(designed)
        match self.dependencies:
            case "none":
                return dict.fromkeys(agents, ())
            case "full":
                return {a: (*earlier, *agents[:k]) for k, a in enumerate(agents)}
            case "shuffled":
                # Relabelling the round's agents keeps the number of edges and acyclicity.
                rng = stream("shuffled D", self.seed, self.problem.id, step, self.rounds)
                twin = dict(
                    zip(agents, (agents[k] for k in rng.permutation(len(agents))), strict=True)
                )
                return {
                    twin[a]: tuple(twin.get(seen, seen) for seen in designed[a]) for a in agents
                }
            case _:
                return designed


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A point of an episode, to go back to; made by ``FlexMarkovGame.snapshot``.

    Args:
        team: what kind of game it belongs to: the workflow's name, then its agents.
        episodes: number of episodes since the last seed.
        episode: the whole episode.
        agents, selection, skipped, rewards, cumulative, dead, infos: the AEC attributes.
    """

    team: tuple[str, ...]
    episodes: int
    episode: EpisodeState
    agents: tuple[str, ...]
    selection: str
    skipped: str | None
    rewards: dict[str, float]
    cumulative: dict[str, float]
    dead: frozenset[str]
    infos: dict[str, dict[str, Any]]


def _check(round_: Round, earlier: tuple[str, ...], step: int, workflow: Workflow) -> None:
    """The contract of a round, cycles apart."""
    name = workflow.name
    acting = [*earlier, *(call.agent for call in round_.calls)]
    if not round_.calls:
        raise WorkflowError(f"workflow {name!r} planned a round without calls")
    if unknown := set(acting).difference(workflow.agents):
        raise WorkflowError(f"workflow {name!r} calls {sorted(unknown)}, not in its team()")
    if len(set(acting)) != len(acting):
        twice = sorted({a for a in acting if acting.count(a) > 1})
        raise WorkflowError(
            f"workflow {name!r} lets {twice} act twice in step {step}; an agent acts once per "
            "step: open the round with new_step=True"
        )
    for call in round_.calls:
        if lost := set(call.sees).difference(acting):
            raise WorkflowError(
                f"workflow {name!r}: {call.agent} is to see {sorted(lost)}, which do not act in "
                f"step {step}; earlier steps are seen through recall()"
            )


@lru_cache(maxsize=4096)
def _layers(sees: tuple[tuple[str, tuple[str, ...]], ...]) -> dict[str, int]:
    """The topological layer of each agent of a round, from 0; earlier rounds are below.

    Cached: an environment's rounds have the same few shapes all the time.
    """
    agents = [agent for agent, _ in sees]
    graph = DependencyGraph.from_edges(
        agents, [(seen, agent) for agent, column in sees for seen in column if seen in agents]
    )
    return {agent: k for k, layer in enumerate(graph.layers) for agent in layer}
