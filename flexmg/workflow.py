"""What a workflow is: a small, pure state machine over the turns of an episode.

A workflow says which agents act next and on what they depend (a :class:`Round`), or
that the episode is over and with which answer (a :class:`Finish`). It never stores
anything about an episode: ``plan`` is a function of the turns so far. The game owns
order, masking and rewards, and hands ``observe`` only the turns that D and recall make
visible, so a workflow cannot leak what the mask hides.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from flexmg.agents import AgentSpec, Profile, role_of
from flexmg.errors import InvalidArgument
from flexmg.problem import Domain, Problem
from flexmg.spaces import ObservationSpace, Utterance
from flexmg.transcript import Turn

Message = dict[str, str]
CustomProfile = Profile | str | Mapping[str, str]
LONGEST_ACTION = 32_768  # characters
LONGEST_MESSAGE = 1_048_576


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
        """The latest turn of ``agent``."""
        return next(turn for turn in reversed(self.turns) if turn.agent == agent)

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
        limits: default tokens per action by role.
        informed: the roles that share the facts under ``information="split"``.
    """

    name: ClassVar[str]
    roles: ClassVar[Mapping[str, Profile]]
    limits: ClassVar[Mapping[str, int]]
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
        self.specs = self._specs(profiles, token_limits)
        self._informed = tuple(a for a in self.agents if role_of(a) in self.informed)

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
        alone = sum(role_of(a) == spec.role for a in self.agents) == 1
        return spec.role.capitalize() + ("" if alone else f" {spec.slot + 1}")

    def quote(self, turn: Turn) -> str:
        """A turn as the others read it: title, then text."""
        return f"{self.title(turn.agent)}:\n{turn.text}"

    def statement(self, agent: str, problem: Problem) -> str:
        """The problem as this agent may read it: with ``information="split"``, its facts only.

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
        mine = ()
        if agent in self._informed:
            place = self._informed.index(agent)
            mine = problem.facts[place :: len(self._informed)]
        return " ".join([*mine, problem.question])

    def _specs(
        self,
        profiles: Literal["roles", "anonymous"] | Mapping[str, CustomProfile],
        token_limits: int | Mapping[str, int] | None,
    ) -> dict[str, AgentSpec]:
        custom: Mapping[str, CustomProfile] = profiles if isinstance(profiles, Mapping) else {}
        if not custom and profiles not in ("roles", "anonymous", {}):
            raise InvalidArgument(
                f"profiles={profiles!r} is neither 'roles', 'anonymous' nor a mapping from role"
            )
        limits = token_limits if isinstance(token_limits, Mapping) else {}
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
            if self.anonymous:
                text = f"You are agent {number} of a team of {len(self.agents)}."
                profile = Profile(text, profile.output_format)
            elif role in custom:
                given = custom[role]
                profile = (
                    given if isinstance(given, Profile) else Profile(given, profile.output_format)
                )
            limit = token_limits if isinstance(token_limits, int) else limits.get(role)
            specs[agent] = AgentSpec(
                role=role,
                slot=int(agent.rpartition("_")[2]),
                profile=Profile(
                    profile.text,
                    profile.output_format.replace("{answer_format}", self.domain.answer_format),
                ),
                observation_space=ObservationSpace(len(self.agents), LONGEST_MESSAGE),
                action_space=Utterance(LONGEST_ACTION),
                token_limit=limit or self.limits[role],
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


def _custom_profile(given: CustomProfile, designed: Profile) -> Profile:
    if isinstance(given, Profile):
        return given
    if isinstance(given, str):
        return Profile(given, designed.output_format)
    try:
        return Profile(**given)
    except TypeError as error:
        raise InvalidArgument(
            f"a profile has the fields 'text' and 'output_format', not {sorted(given)}"
        ) from error
