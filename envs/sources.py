"""Problems from rows: validation, identity, and overlap between two sources.

A domain says how a row becomes a problem (:data:`Parse`); everything else about a finite set of
problems is the same for every domain and is here.
"""

from __future__ import annotations

import hashlib
import operator
import re
import warnings
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, SupportsIndex

from flexmg.envs.rows import Row, RowError, Rows
from flexmg.errors import InvalidArgument, MalformedProblem, ProblemError, UnknownProblem
from flexmg.problem import Problem, ProblemSource

OnMalformed = Literal["raise", "skip"]


@dataclass(frozen=True, slots=True)
class ParsedRow:
    """What a domain reads out of one row.

    Args:
        statement: the problem, as the agents will read it.
        gold: the reference answer.
        id: the row's own identifier, or None when it has none.
        level: difficulty, or None.
        payload: what the grader needs besides; JSON-serialisable.
    """

    statement: str
    gold: str
    id: str | None = None
    level: int | None = None
    payload: Mapping[str, Any] = field(default_factory=dict)


Parse = Callable[[Row], ParsedRow]


class RowSource:
    """A finite :class:`~flexmg.problem.ProblemSource` over rows, in their order.

    Every row is checked once, when the source is made, so that a broken one is found before a run
    and not in the middle of it; afterwards a problem is read again each time it is asked for.

    ``index`` counts the problems from 0. It is the row's number as long as no row was skipped.
    The id of a row without one of its own, or with a bare number for one, is ``stem-number``.

    Args:
        rows: where the rows are.
        parse: makes a row a problem, or raises ``RowError``.
        name: name of the source.
        split: name of the split.
        stem: what ids are made of.
        on_malformed: ``"raise"`` at the first broken row, or ``"skip"`` broken rows: their
            messages are then in ``skipped`` and one warning counts them.
        limit: take only the first so many good rows; the rows after them are not looked at.

    Attributes:
        name: name of the source.
        split: name of the split.
        skipped: one message per row that was left out.

    Raises:
        MalformedProblem: a row is broken; the message gives file, line and field.
        ProblemError: there is no usable row.
        InvalidArgument: ``limit`` or ``on_malformed`` has a value that makes no sense.
    """

    def __init__(
        self,
        rows: Rows,
        parse: Parse,
        *,
        name: str,
        split: str,
        stem: str,
        on_malformed: OnMalformed = "raise",
        limit: int | None = None,
    ) -> None:
        if on_malformed not in ("raise", "skip"):
            raise InvalidArgument(f"on_malformed={on_malformed!r} is neither 'raise' nor 'skip'")
        check_limit(limit)
        self.name = name
        self.split = split
        self._rows = rows
        self._parse = parse
        self._stem = stem
        self._numbers = array("Q")
        self._positions: dict[str, int] = {}
        skipped: list[str] = []
        for number, row in enumerate(rows.scan()):
            if limit is not None and len(self._numbers) == limit:
                break
            try:
                self._admit(number, row)
            except RowError as error:
                message = f"{rows.place(number)}: {error}"
                if on_malformed == "raise":
                    raise MalformedProblem(
                        f"{message}; correct the row, or go on without such rows by "
                        "on_malformed='skip'"
                    ) from error
                skipped.append(message)
        self.skipped = tuple(skipped)
        if not self._numbers:
            raise ProblemError(
                f"{rows.label} holds no usable problem ({len(rows)} rows, {len(skipped)} malformed)"
                + (f"; the first: {skipped[0]}" if skipped else "")
            )
        if skipped:
            warnings.warn(
                f"{rows.label}: {len(skipped)} of {len(rows)} rows are malformed and left out; "
                f"the first: {skipped[0]}",
                stacklevel=4,
            )

    def _admit(self, number: int, row: Row | RowError) -> None:
        if isinstance(row, RowError):
            raise row
        id = self._id(number, self._parse(row))
        if id in self._positions:
            other = self._rows.place(self._numbers[self._positions[id]])
            raise RowError(f"the id {id!r} is already taken by {other}")
        self._positions[id] = len(self._numbers)
        self._numbers.append(number)

    def _id(self, number: int, parsed: ParsedRow) -> str:
        own = str(number) if parsed.id is None else parsed.id
        return f"{self._stem}-{own}" if own.isdecimal() else own

    @property
    def size(self) -> int:
        """The number of problems."""
        return len(self._numbers)

    def get(self, index: SupportsIndex) -> Problem:
        """The problem at ``index``.

        Raises:
            UnknownProblem: the index is not in ``range(size)``.
        """
        index = operator.index(index)
        check_index(self, index)
        number = self._numbers[index]
        parsed = self._parse(self._rows.read(number))
        return Problem(
            id=self._id(number, parsed),
            statement=parsed.statement,
            gold=parsed.gold,
            source=self.name,
            split=self.split,
            index=index,
            level=parsed.level,
            payload=parsed.payload,
        )

    def find(self, id: str) -> Problem:
        """The problem with this id.

        Raises:
            UnknownProblem: no problem has it.
        """
        if id not in self._positions:
            example = next(iter(self._positions))
            raise UnknownProblem(f"{self.name} has no problem {id!r}; its ids are like {example!r}")
        return self.get(self._positions[id])

    @cached_property
    def fingerprint(self) -> str:
        """See :func:`fingerprint`."""
        return fingerprint(problems(self))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}, split {self.split!r}, {self.size} problems>"


class FirstProblems:
    """The first ``limit`` problems of another source.

    Args:
        source: the other source; may be unlimited.
        limit: how many problems to keep.
    """

    def __init__(self, source: ProblemSource, limit: int) -> None:
        check_limit(limit)
        self.name = source.name
        self.split = source.split
        self.size = limit if source.size is None else min(limit, source.size)
        self._source = source

    def get(self, index: SupportsIndex) -> Problem:
        """The problem at ``index``; raises ``UnknownProblem`` outside ``range(size)``."""
        index = operator.index(index)
        check_index(self, index)
        return self._source.get(index)

    def find(self, id: str) -> Problem:
        """The problem with this id; raises ``UnknownProblem`` when it is not among the first."""
        problem = self._source.find(id)
        if problem.index >= self.size:
            raise UnknownProblem(f"{id!r} is not among the first {self.size} of {self.name}")
        return problem

    @cached_property
    def fingerprint(self) -> str:
        """See :func:`fingerprint`."""
        return fingerprint(problems(self))


def check_limit(limit: int | None) -> None:
    """Raise ``InvalidArgument`` unless the limit is None or at least 1."""
    if limit is not None and operator.index(limit) < 1:
        raise InvalidArgument(f"limit={limit} leaves no problem; give at least 1, or None for all")


def check_index(source: ProblemSource, index: int) -> None:
    """Raise ``UnknownProblem`` unless ``source`` has a problem number ``index``."""
    if index < 0 or (source.size is not None and index >= source.size):
        raise UnknownProblem(
            f"{source.name} ({source.split}) has no problem number {index}: it has "
            + ("no negative ones" if source.size is None else f"{source.size}, counted from 0")
        )


def problems(source: ProblemSource, limit: int | None = None) -> Iterator[Problem]:
    """The problems of a source in order, at most ``limit`` of them.

    Raises:
        InvalidArgument: the source is unlimited and no limit is given.
    """
    check_limit(limit)
    sizes = [size for size in (source.size, limit) if size is not None]
    if not sizes:
        raise InvalidArgument(f"{source.name} never ends; say how many of its problems by limit=")
    return map(source.get, range(min(sizes)))


def fingerprint(of: Iterable[Problem]) -> str:
    """SHA-256 (64 hex digits) over the ordered (content hash, gold) pairs.

    Equal for two copies of a data set in whatever file format; different when one statement, one
    reference answer or the order differs. Ids, levels and payloads do not enter.
    """
    digest = hashlib.sha256()
    for problem in of:
        gold = hashlib.sha256(problem.gold.encode()).hexdigest()[:16]
        digest.update(f"{problem.content_hash} {gold}\n".encode())
    return digest.hexdigest()


_EMPTY_SCRIPT = re.compile(r"[\^_]\{\}")
_MARKUP = re.compile(r"\\[\[\]()]|\\[,;:! ]|\\(?:left|right)(?![a-zA-Z])|\\[dt](?=frac)")
_LOST_IN_COPYING = re.compile(r"[\s${}_\\~'\"`’‘“”:;?]|(?<!\d)[.,]|[.,](?!\d)")


def overlap_key(statement: str) -> str:
    """A statement without what changes when it is copied from place to place.

    Copies of a contest problem differ in white space, in ``$`` and display brackets, in braces, in
    empty scripts, in punctuation and in case, so that plain content hashes miss half of them.
    Letters, digits, operators, relations, brackets and decimal points stay: ``k > 0`` and
    ``k < 0``, or ``2^3`` and ``23``, are two problems.
    """
    text = _EMPTY_SCRIPT.sub("", re.sub(r"\s+", "", _MARKUP.sub("", statement.casefold())))
    return _LOST_IN_COPYING.sub("", text)


def overlap(
    a: ProblemSource, b: ProblemSource, *, limit: int | None = None
) -> list[tuple[str, str]]:
    """Pairs (id in ``a``, id in ``b``) of problems with the same content, in the order of ``b``.

    Same content means an equal :func:`overlap_key`, which plain equality implies. A statement
    that has more in it than the task (a test, code to begin with) is compared without that:
    the payload then carries the task alone, as ``"task"``.

    Args:
        a: one source, for instance what is trained on.
        b: the other, for instance what is tested on.
        limit: look at the first so many of each; needed when a source is unlimited.

    Raises:
        InvalidArgument: a source is unlimited and no limit is given.
    """
    known: dict[bytes, list[str]] = {}
    for problem in problems(a, limit):
        known.setdefault(_overlap_hash(problem), []).append(problem.id)
    return [
        (id, problem.id)
        for problem in problems(b, limit)
        for id in known.get(_overlap_hash(problem), ())
    ]


def _overlap_hash(problem: Problem) -> bytes:
    task = problem.payload.get("task", problem.statement)
    return hashlib.sha256(overlap_key(str(task)).encode()).digest()


def check_disjoint(a: ProblemSource, b: ProblemSource, *, limit: int | None = None) -> None:
    """Raise unless the two sources share no problem; arguments as in :func:`overlap`.

    Raises:
        ProblemError: they share some; the message counts and names them.
        InvalidArgument: a source is unlimited and no limit is given.
    """
    shared = overlap(a, b, limit=limit)
    if shared:
        named = ", ".join(f"{one!r} = {other!r}" for one, other in shared[:5])
        raise ProblemError(
            f"{a.name} ({a.split}) and {b.name} ({b.split}) share {len(shared)} problems "
            f"({named}{', ...' if len(shared) > 5 else ''}); leave them out of one of the two, or "
            "a score on the second says nothing about new problems"
        )
