"""What generators of problems share: levels, families, disjoint splits, keyed draws.

Splits are disjoint by construction: the content hash of a problem decides to which split
it belongs, and a generator draws until it meets one of its own split. Problem ``index`` of
a split is drawn from the stream keyed by (split, level, families, index); a seed only
chooses indices, so two seeds do not share a run of problems.
"""

from __future__ import annotations

import operator
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any, ClassVar

from flexmg.errors import InvalidArgument, UnknownProblem
from flexmg.problem import Problem, content_hash
from flexmg.seeding import draws

LEVELS = (1, 2, 3, 4, 5)
DEFAULT_LEVEL = 1
# Share of the content-hash space (in sixteenths) that belongs to each split.
SPLITS = {"test": range(2), "validation": range(2, 4), "train": range(4, 16)}
SPLIT_OF = {f"{k:x}": split for split, share in SPLITS.items() for k in share}
NUMBER = re.compile(r"0|[1-9][0-9]{0,18}")


class Draws:
    """Random numbers behind one draft.

    Args:
        most: how many there are.
        key: of the stream.
    """

    def __init__(self, most: int, *key: str | int) -> None:
        self._draws = iter(draws(most, *key))

    def below(self, bound: int) -> int:
        """A number from 0 to ``bound - 1``."""
        return next(self._draws) % bound

    def choice(self, options: Sequence[Any]) -> Any:
        """One of several."""
        return options[self.below(len(options))]


class GeneratedSource(ABC):
    """An unlimited, seeded source of generated problems.

    Args:
        split: ``"train"``, ``"validation"`` or ``"test"``; they share no problem.
        level: 1 to 5.
        families: names out of :attr:`known_families`; all by default.

    Class attributes:
        stream: what keys and ids begin with.
        known_families: the families by name.

    Raises:
        InvalidArgument: an unknown split, level or family.
    """

    name = "synthetic"
    size = None
    stream: ClassVar[str]
    known_families: ClassVar[Mapping[str, Any]]

    def __init__(
        self,
        split: str = "train",
        *,
        level: int = DEFAULT_LEVEL,
        families: tuple[str, ...] | list[str] | None = None,
    ) -> None:
        if split not in SPLITS:
            raise InvalidArgument(f"split={split!r} is not one of {tuple(SPLITS)}")
        if level not in LEVELS:
            raise InvalidArgument(f"level={level!r} is not one of {LEVELS}")
        known = tuple(self.known_families)
        self.families = tuple(families or known)
        if unknown := set(self.families) - set(known):
            raise InvalidArgument(f"families names {sorted(unknown)}, but there are {known}")
        self.split = split
        self.level = level
        self._prefix = f"{self.stream}-{split}-l{level}"
        if self.families != known:
            self._prefix += "-" + "+".join(self.families)

    def get(self, index: int) -> Problem:
        """Problem number ``index`` (any whole number from 0 on), the same in every process."""
        number = operator.index(index)
        if number < 0:
            raise UnknownProblem(
                f"{self.name} has no problem number {number}: they are counted from 0"
            )
        return next(p for p in self._candidates(number) if split_of(p.statement) == self.split)

    def find(self, id: str) -> Problem:
        """The problem with this id."""
        prefix, _, number = id.rpartition("-")
        if prefix != self._prefix or NUMBER.fullmatch(number) is None:
            raise UnknownProblem(
                f"{id!r} is not a problem of this source, whose ids are {self._prefix}-<number>"
            )
        return self.get(int(number))

    def _candidates(self, index: int) -> Iterator[Problem]:
        """Problems of any split, one after the other, without an end."""
        key = (self.stream, self.split, self.level, ",".join(self.families), index)
        for attempt in count():
            problem = self._draft(index, *key, attempt)
            if problem is not None:
                yield problem

    @abstractmethod
    def _draft(self, index: int, *key: str | int) -> Problem | None:
        """A problem from this key; None when the draw makes a poor one."""


def split_of(statement: str) -> str:
    """The split that a statement belongs to, by its content hash."""
    return SPLIT_OF[content_hash(statement)[0]]
