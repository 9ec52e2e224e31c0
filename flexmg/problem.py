"""Problems, the sources they come from, and the verdict on an answer."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Protocol, get_args, runtime_checkable

from flexmg.agents import Profile
from flexmg.errors import InvalidArgument

Status = Literal["correct", "wrong", "unparseable", "timeout", "crash", "infra_error"]
STATUSES: tuple[Status, ...] = get_args(Status)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a grader says of one answer.

    Args:
        score: in [0, 1]; what the team reward is made of.
        status: one of :data:`STATUSES`. ``infra_error`` is our own failure: the
            episode is left out of training and of scores, it is never a 0.
        detail: a sentence for people.
        answer: the answer as extracted from the reply, or None.
        rule: the extraction rule that found it (``"boxed"``, ``"answer is"`` ...).
    """

    score: float
    status: Status
    detail: str = ""
    answer: str | None = None
    rule: str = ""

    def __post_init__(self) -> None:
        if self.status not in STATUSES:
            raise InvalidArgument(f"verdict status {self.status!r} is not one of {STATUSES}")
        if not (math.isfinite(self.score) and 0.0 <= self.score <= 1.0):
            raise InvalidArgument(f"verdict score {self.score!r} is not a number in [0, 1]")

    @property
    def correct(self) -> bool:
        """Whether the answer is right (``status == "correct"``)."""
        return self.status == "correct"


@dataclass(frozen=True)
class Problem:
    """One task for a team.

    Args:
        id: unique within its source, never reused for another content.
        statement: what the agents read (all of it, facts included).
        gold: the reference answer; never shown to an agent.
        source: name of the source; ``split`` and ``index`` locate it there.
        level: difficulty, for levelled sources.
        facts: the sentences of the statement that ``information="split"``
            divides among the agents; ``question`` is the rest.
        question: the statement without its facts; the statement itself when empty.
        payload: what the domain needs besides (tests, solution steps ...);
            JSON-serialisable, never shown to an agent.
    """

    id: str
    statement: str
    gold: str
    source: str = "inline"
    split: str = "test"
    index: int = 0
    level: int | None = None
    facts: tuple[str, ...] = ()
    question: str = ""
    payload: Mapping[str, Any] = field(default_factory=dict)

    @property
    def content_hash(self) -> str:
        """SHA-256 (16 hex digits) of the statement, white space folded: equal for equal tasks."""
        return content_hash(self.statement)

    @cached_property
    def payload_hash(self) -> str:
        """SHA-256 (16 hex digits) of statement, gold and payload: changes when the grading may."""
        text = json.dumps(
            [self.statement, self.gold, dict(self.payload)], sort_keys=True, default=str
        )
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def content_hash(statement: str) -> str:
    """SHA-256 (16 hex digits) of a statement with white space folded."""
    return hashlib.sha256(" ".join(statement.split()).encode()).hexdigest()[:16]


@runtime_checkable
class ProblemSource(Protocol):
    """Where problems come from: one split of one data set, or a generator.

    ``size`` is the number of problems, or None for an unlimited generator.
    ``get(index)`` is deterministic; it raises ``UnknownProblem`` out of range.
    ``find(id)`` returns the problem with this id (or raises ``UnknownProblem``).
    """

    name: str
    split: str

    @property
    def size(self) -> int | None:
        """Number of problems, None without an end."""
        ...

    def get(self, index: int) -> Problem:
        """Problem number ``index``, from 0."""
        ...

    def find(self, id: str) -> Problem:
        """The problem with this id."""
        ...


@runtime_checkable
class Domain(Protocol):
    """What a workflow and the game need to know of a subject (maths, code ...).

    ``name`` is the id prefix; ``answer_format`` is the sentence that tells an
    agent how to write a final answer. ``grade`` judges a whole reply (the answer
    is extracted from it). ``answer_key`` maps a reply to a hashable that is equal
    for equal answers, or None when the reply holds no answer: what a majority
    vote counts.
    """

    name: str
    answer_format: str

    def grade(self, problem: Problem, reply: str) -> Verdict:
        """The verdict on a whole reply."""
        ...

    def answer_key(self, problem: Problem, reply: str) -> Hashable | None:
        """Equal for equal answers, None without one."""
        ...


@runtime_checkable
class WordedDomain(Domain, Protocol):
    """A domain with prompts of its own, in place of the workflows' general ones."""

    def profile(self, prompts: str, role: str, designed: Profile) -> Profile:
        """What a role of a workflow is told in this subject.

        Args:
            prompts: :attr:`flexmg.workflow.Workflow.prompts` of the workflow.
            role: the role.
            designed: what the workflow tells it in general.
        """
        ...


@runtime_checkable
class ExecutingDomain(Domain, Protocol):
    """A domain whose answers can be tried out: the tool that a workflow may offer."""

    def trial(self, problem: Problem, reply: str) -> str:
        """What comes of trying out the answer in a reply, for the agents to read.

        Deterministic, and made from what agents may know only.

        Raises:
            InfraError: it could not be tried out, by our own fault.
        """
        ...
