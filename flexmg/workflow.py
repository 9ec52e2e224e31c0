"""What a workflow is: a small, pure state machine over the turns of an episode.

A workflow says which agents act next and on what they depend (a :class:`Round`), or
that the episode is over and with which answer (a :class:`Finish`). It never stores
anything about an episode: ``plan`` is a function of the turns so far. The game owns
order, masking and rewards, and hands ``observe`` only the turns that D and recall make
visible, so a workflow cannot leak what the mask hides.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from flexmg.agents import AgentSpec, Profile, role_of
from flexmg.errors import InvalidArgument, WorkflowError
from flexmg.problem import Domain, Problem, WordedDomain
from flexmg.spaces import ObservationSpace, Utterance
from flexmg.transcript import Turn

Message = dict[str, str]
CustomProfile = Profile | str | Mapping[str, str]
LONGEST_ACTION = 32_768  # characters
LONGEST_MESSAGE = 2**30  # more than the longest episode can say
TOKEN_LIMIT = 512
SPLIT_NOTE = "Each agent knows only some of the facts. Pass on those you know."


@dataclass(frozen=True, slots=True)
class Call:
    """One agent is to act, on what it sees of this env step (a column of D_t)."""

    agent: str
    sees: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Round:
    """The next calls. ``new_step`` opens a new env step: one pass over D ends, another begins."""

    calls: tuple[Call, ...]
    new_step: bool = False


@dataclass(frozen=True, slots=True)
class Finish:
    """The episode is over.

    Args:
        answer: the reply that is graded, and nothing else is.
        designated: the agents whose answer it is.
        fallback: the rule that chose the answer when the agents' texts did not say.
    """

    answer: str
    designated: tuple[str, ...]
    fallback: str = ""


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a workflow read in a text: a JSON-serialisable value, and the fallback used, if any."""

    value: Any = None
    fallback: str = ""


@dataclass(frozen=True, slots=True)
class History:
    """An episode so far, as ``plan`` sees it: all turns in canonical order.

    ``answer_key`` maps a reply to something hashable that is equal for equal answers
    (see :class:`flexmg.problem.Domain`).
    """

    turns: tuple[Turn, ...]
    answer_key: Callable[[str], Hashable | None]

    def last(self, agent: str) -> Turn:
        """The latest turn of ``agent``.

        Raises:
            WorkflowError: it has none.
        """
        for turn in reversed(self.turns):
            if turn.agent == agent:
                return turn
        raise WorkflowError(f"{agent!r} has not acted in this episode yet")

    def of_role(self, role: str) -> tuple[Turn, ...]:
        """All turns of a role."""
        return tuple(turn for turn in self.turns if role_of(turn.agent) == role)


class Workflow(ABC):
    """Base class of workflows. A subclass states its roles and implements ``plan``.

    Args:
        domain: the subject: how answers are written, compared and graded.
        profiles: ``"roles"``, ``"anonymous"`` (agent N of a team of M, no role text) or
            a mapping from role to a :class:`~flexmg.agents.Profile` (or its fields), or
            to a text that replaces the role text while the output format stays.
        token_limits: tokens per action, for all roles or by role.
        information: ``"full"``, or ``"split"``: the facts of a problem are divided
            among the agents of :attr:`informed`, where a workflow supports it.

    Class attributes:
        roles: profile per role; ``{answer_format}`` in an output format becomes the
            domain's sentence on how to write an answer.
        limits: default tokens per action by role; 512 for a role it does not name.
        informed: the roles that share the facts under ``information="split"``.
    """

    name: ClassVar[str]
    roles: Mapping[str, Profile]
    limits: ClassVar[Mapping[str, int]] = {}
    informed: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        domain: Domain,
        *,
        profiles: Literal["roles", "anonymous"] | Mapping[str, CustomProfile] = "roles",
        token_limits: int | Mapping[str, int] | None = None,
        information: Literal["full", "split"] = "full",
    ) -> None:
        self.domain = domain
        if information not in ("full", "split"):
            raise InvalidArgument(f"information={information!r} is neither 'full' nor 'split'")
        if information == "split" and not self.informed:
            raise InvalidArgument(f"the workflow {self.name!r} cannot split information")
        self.information = information
        self.anonymous = profiles == "anonymous"
        self.agents = tuple(self.team())
        if not self.agents or len(set(self.agents)) != len(self.agents):
            raise WorkflowError(
                f"team() of workflow {self.name!r} must name different agents, "
                f"not {list(self.agents)}"
            )
        if strangers := [a for a in self.agents if role_of(a) not in self.roles]:
            raise WorkflowError(f"workflow {self.name!r} has no role for {strangers}")
        self.specs = self._specs(profiles, token_limits)
        self._informed = tuple(a for a in self.agents if role_of(a) in self.informed)
        self._copies = Counter(map(role_of, self.agents))

    @property
    def prompts(self) -> str:
        """Which set of prompts the roles use: the name, unless a variant has its own."""
        return self.name

    @abstractmethod
    def team(self) -> Sequence[str]:
        """Names of all agents that may ever act, in the order of D's rows and columns."""

    @abstractmethod
    def plan(self, history: History) -> Round | Finish:
        """The next round, or the end. Called when every call of the last round is done."""

    def recall(self) -> Sequence[tuple[str, str]]:
        """Pairs ``(i, j)``: agent j sees the turns that agent i took in earlier steps.

        By default every agent remembers its own.
        """
        return [(a, a) for a in self.agents]

    def parse(self, agent: str, text: str) -> Parsed:
        """What the workflow needs to know of an action; read by ``plan`` as ``turn.value``."""
        del agent, text
        return Parsed()

    def report(self, agent: str, text: str, problem: Problem) -> str:
        """What a tool answers to an action; nothing where the workflow offers no tool.

        It becomes :attr:`flexmg.transcript.Turn.report`: part of the turn, and seen by
        whom D and recall let see the turn.

        Raises:
            InfraError: the tool failed, by our own fault.
        """
        del agent, text, problem
        return ""

    def observe(self, agent: str, statement: str, visible: Sequence[Turn]) -> tuple[Message, ...]:
        """The chat shown to an agent, built from the visible turns only.

        By default one user message: the problem, then every visible turn under its
        agent's title.
        """
        del agent
        return (user("\n\n".join([problem_text(statement), *map(self.quote, visible)])),)

    def truth(
        self, history: History, score: Callable[[str], float], answer: Finish
    ) -> dict[int, float]:
        """Each turn's own truth in [0, 1] by position, once the episode has ended.

        What ``reward="local"`` pays; a turn without one is paid the team's outcome.

        Args:
            history: the whole episode.
            score: grades any reply (memoised).
            answer: the episode's end.
        """
        del history, score, answer
        return {}

    def demonstrate(
        self, agent: str, problem: Problem, visible: Sequence[Turn], statement: str
    ) -> str:
        """A correct scripted action on a problem that carries its own solution.

        Raises:
            InvalidArgument: this workflow, or this problem, has no demonstrations.
        """
        raise InvalidArgument(f"the workflow {self.name!r} has no scripted demonstrations")

    def title(self, agent: str) -> str:
        """How the others call an agent: ``Worker 2``, or ``Agent 3`` when anonymous."""
        if self.anonymous:
            return f"Agent {self.agents.index(agent) + 1}"
        spec = self.specs[agent]
        word = spec.role.replace("_", " ").capitalize()
        return word if self._copies[spec.role] == 1 else f"{word} {spec.slot + 1}"

    def quote(self, turn: Turn) -> str:
        """A turn as the others read it: title, text, and the tool's report if there is one."""
        said = f"{self.title(turn.agent)}:\n{turn.text}"
        return f"{said}\n\n{turn.report}" if turn.report else said

    def statement(self, agent: str, problem: Problem) -> str:
        """The problem as this agent may read it: with ``information="split"``, its facts only.

        Every agent is asked the question, and told that the facts are divided.

        Raises:
            InvalidArgument: the problem has fewer than two facts to divide.
        """
        if self.information == "full":
            return problem.statement
        if len(problem.facts) < 2:
            raise InvalidArgument(
                f"problem {problem.id!r} has no facts to divide; information='split' needs "
                "source='synthetic' or a source whose problems carry facts"
            )
        mine: tuple[str, ...] = ()
        if agent in self._informed:
            place = self._informed.index(agent)
            mine = problem.facts[place :: len(self._informed)]
        return " ".join([*mine, problem.question, SPLIT_NOTE])

    def _specs(
        self,
        profiles: Literal["roles", "anonymous"] | Mapping[str, CustomProfile],
        token_limits: int | Mapping[str, int] | None,
    ) -> dict[str, AgentSpec]:
        custom: Mapping[str, CustomProfile] = profiles if isinstance(profiles, Mapping) else {}
        if not isinstance(profiles, Mapping) and profiles not in ("roles", "anonymous"):
            raise InvalidArgument(
                f"profiles={profiles!r} is neither 'roles', 'anonymous' nor a mapping from role"
            )
        limits = token_limits if isinstance(token_limits, Mapping) else {}
        if token_limits is not None and not isinstance(token_limits, Mapping):
            limits = dict.fromkeys(self.roles, token_limits)
        for name, given in (("profiles", custom), ("token_limits", limits)):
            if unknown := set(given) - set(self.roles):
                raise InvalidArgument(
                    f"{name} names {sorted(unknown)}, but the roles of {self.name!r} are "
                    f"{list(self.roles)}"
                )
        specs = {}
        for number, agent in enumerate(self.agents, start=1):
            role = role_of(agent)
            profile = self.roles[role]
            if isinstance(self.domain, WordedDomain):
                profile = self.domain.profile(self.prompts, role, profile)
            if self.anonymous:
                text = f"You are agent {number} of a team of {len(self.agents)}."
                profile = Profile(text, profile.output_format)
            elif role in custom:
                profile = _custom_profile(role, custom[role], profile)
            default = self.limits.get(role, TOKEN_LIMIT)
            specs[agent] = AgentSpec(
                role=role,
                slot=int(agent.rpartition("_")[2]),
                profile=Profile(
                    profile.text,
                    profile.output_format.replace("{answer_format}", self.domain.answer_format),
                ),
                observation_space=ObservationSpace(len(self.agents), LONGEST_MESSAGE),
                action_space=Utterance(LONGEST_ACTION),
                token_limit=positive(f"token_limits[{role!r}]", limits.get(role, default)),
            )
        return specs


def user(content: str) -> Message:
    """A user message."""
    return {"role": "user", "content": content}


def assistant(content: str) -> Message:
    """An assistant message: an agent's own earlier turn."""
    return {"role": "assistant", "content": content}


def problem_text(statement: str) -> str:
    """The problem as every prompt states it."""
    return f"Problem: {statement}"


def positive(name: str, value: Any) -> int:
    """``value`` if it is a whole number from 1 on.

    Raises:
        InvalidArgument: it is not; the message names the argument.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidArgument(f"{name}={value!r} is not a whole number from 1 on")
    return value


def _custom_profile(role: str, given: CustomProfile, designed: Profile) -> Profile:
    """The profile asked for; what a mapping leaves out stays as designed."""
    if isinstance(given, Profile):
        return given
    fields = {"text": given} if isinstance(given, str) else given
    if (
        not isinstance(fields, Mapping)
        or not set(fields) <= {"text", "output_format"}
        or not all(isinstance(text, str) for text in fields.values())
    ):
        raise InvalidArgument(
            f"profiles[{role!r}] must be a text, a Profile, or a mapping with the texts 'text' "
            f"and 'output_format', not {given!r:.80}"
        )
    return replace(designed, **fields)
