"""The rules of a game: what stays the same from episode to episode.

A composition of workflow, problems and grader. Everything here is a function of an
:class:`~flexmg.episode.EpisodeState`; who is alive, whose turn it is and what was paid is
the business of :class:`flexmg.game.FlexMarkovGame`.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from flexmg.episode import Dependencies, EpisodeState, PlannedCall
from flexmg.errors import InfraError, InvalidArgument, UnknownProblem, WorkflowError
from flexmg.outcome import Grading, Outcome, conclude
from flexmg.problem import ProblemSource
from flexmg.reward import Reward
from flexmg.seeding import draw
from flexmg.spaces import legal_text
from flexmg.transcript import Turn, observation_hash
from flexmg.workflow import Finish, History, Message, Round, Workflow

Observation = dict[str, Any]
UNLIMITED = 2**31  # problem indices drawn from a source without an end


class Rules:
    """Who may do what, and what comes of it, over a workflow.

    Args:
        workflow: who acts when, and who sees whom.
        source: where problems come from.
        dependencies: D as designed, or an ablation.

    Raises:
        WorkflowError: the workflow's ``recall`` names agents that are not in its team.
    """

    def __init__(
        self, workflow: Workflow, source: ProblemSource, dependencies: Dependencies
    ) -> None:
        self.workflow = workflow
        self.source = source
        self.dependencies: Dependencies = dependencies
        self.recall = self._recall()
        self.profiles = {a: spec.profile.render() for a, spec in workflow.specs.items()}
        self._columns = {agent: i for i, agent in enumerate(workflow.agents)}

    def _recall(self) -> frozenset[tuple[str, str]]:
        agents = self.workflow.agents
        designed = frozenset((i, j) for i, j in self.workflow.recall())
        if strangers := {a for pair in designed for a in pair}.difference(agents):
            raise WorkflowError(
                f"recall() of workflow {self.workflow.name!r} names {sorted(strangers)}, not in "
                "its team()"
            )
        if self.dependencies == "none":
            return frozenset((i, j) for i, j in designed if i == j)
        if self.dependencies == "full":
            return frozenset((i, j) for i in agents for j in agents)
        return designed

    def begin(self, seed: int, played: int, wanted: int | str | None) -> EpisodeState:
        """A new episode, nobody called yet.

        Args:
            seed: chooses the problem. The key names source and split but not the
                workflow: one seed means one problem in every workflow, so that workflows
                can be compared in pairs.
            played: the number of episodes before this one under the same seed.
            wanted: index or id of a problem to play instead.

        Raises:
            UnknownProblem: the source has no such problem, or none at all.
            InvalidArgument: ``wanted`` is neither, or the workflow cannot pose the problem.
        """
        source = self.source
        if isinstance(wanted, str):
            problem = source.find(wanted)
        elif wanted is not None:
            problem = source.get(whole_number("options['problem']", wanted))
        elif source.size == 0:
            raise UnknownProblem(f"{source.name!r}, split {source.split!r}, holds no problems")
        else:
            bound = source.size or UNLIMITED
            problem = source.get(draw(bound, "problem", source.name, source.split, seed, played))
        self.workflow.statement(self.workflow.agents[0], problem)
        return EpisodeState(seed, problem, self.dependencies)

    def follow(self, episode: EpisodeState, reward: Reward) -> Round | Outcome | None:
        """What follows the turns so far: nothing while calls are open, else a round or the end.

        Raises:
            WorkflowError, DependencyCycle: the workflow broke its contract; the episode is
                as it was.
        """
        if episode.waiting:
            return None
        failures = list(episode.failures)
        grading = Grading(self.workflow.domain, episode.problem, failures)
        history = History(episode.history, grading.answer_key)
        plan = self.workflow.plan(history)
        if isinstance(plan, Round):
            episode.open(plan, self.workflow)
            episode.failures = failures
            return plan
        if not isinstance(plan, Finish):
            raise WorkflowError(
                f"plan() of workflow {self.workflow.name!r} returned {plan!r}, neither a Round "
                "nor a Finish"
            )
        return conclude(
            plan,
            history,
            tuple(episode.latest),
            episode.step + 1,
            workflow=self.workflow,
            grading=grading,
            reward=reward,
        )

    def act(self, episode: EpisodeState, call: PlannedCall, action: Any) -> Turn:
        """The turn that an action makes of a call.

        Raises:
            InvalidAction: the action is not a text that this agent may write.
        """
        agent = call.agent
        text = legal_text(agent, self.workflow.specs[agent].action_space, action)
        parsed = self.workflow.parse(agent, text)
        try:
            report = self.workflow.report(agent, text, episode.problem)
        except InfraError as error:
            episode.failures.append(str(error))
            report = ""
        return Turn(
            agent=agent,
            text=text,
            step=call.step,
            round=call.round,
            layer=call.layer,
            position=call.position,
            sees=call.sees,
            value=parsed.value,
            fallback=parsed.fallback,
            observation=observation_hash(self.profiles[agent], self.messages(episode, call)),
            report=report,
        )

    def messages(self, episode: EpisodeState, call: PlannedCall) -> tuple[Message, ...]:
        """What a call is shown; kept once nothing can change it any more."""
        messages = episode.shown.get(call.position)
        if messages is None:
            messages = self.workflow.observe(
                call.agent,
                self.workflow.statement(call.agent, episode.problem),
                episode.visible(call, self.recall),
            )
            if episode.is_settled(call):
                episode.shown[call.position] = messages
        return messages

    def observation(self, episode: EpisodeState, call: PlannedCall) -> Observation:
        """The observation of a call, see :class:`flexmg.spaces.ObservationSpace`."""
        seen = np.zeros(len(self._columns), dtype=np.int8)
        for agent in call.sees:
            seen[self._columns[agent]] = 1
        return {
            "profile": self.profiles[call.agent],
            # Fresh copies: whoever changes its observation changes nobody else's.
            "messages": tuple([message.copy() for message in self.messages(episode, call)]),
            "dependencies": seen,
        }


def whole_number(name: str, value: Any) -> int:
    """``value`` as an ``int``, NumPy's included.

    Raises:
        InvalidArgument: it is none; the message gives ``name``.
    """
    try:
        return operator.index(value)
    except TypeError:
        raise InvalidArgument(f"{name}={value!r} is not a whole number") from None
