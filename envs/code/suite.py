"""The tests of a programming problem, as its payload carries them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args

from flexmg.envs.code.sandbox.limits import Limits
from flexmg.errors import ProblemError
from flexmg.problem import Problem

Kind = Literal["stdin", "calls", "asserts"]
Flag = Literal["any_order", "any_case", "any_valid"]
KINDS: tuple[Kind, ...] = get_args(Kind)
FLAGS: tuple[Flag, ...] = get_args(Flag)
_PLAIN: Mapping[str, type | tuple[type, ...]] = {
    "entry": str,
    "prelude": str,
    "setup": str,
    "exact": bool,
    "tolerance": (int, float),
    "checker": str,
}


@dataclass(frozen=True, slots=True)
class Case:
    """One test.

    Args:
        input: ``stdin``: the text on standard input. ``calls``: the list of arguments,
            each encoded by :func:`flexmg.envs.code.values.encode`. ``asserts``: the test
            code.
        output: ``stdin``: the expected text. ``calls``: the expected value, encoded.
            ``asserts``: None.
    """

    input: Any
    output: Any = None


@dataclass(frozen=True)
class Suite:
    """All tests of a problem and how they are judged.

    Args:
        kind: ``stdin`` (a whole program, texts in and out), ``calls`` (a function, values
            in and out) or ``asserts`` (Python test code).
        public: cases that agents may be told the results of.
        hidden: cases that only the grader sees. A program must pass both.
        entry: the function to call, ``name`` or ``Class.name``; of ``asserts`` the name
            that the test code calls the candidate by, if it has one.
        prelude: code that the problem supplies before the program (imports, helper
            functions of the prompt).
        setup: code to run after the program and before the tests.
        exact: in ``calls``, compare by Python's ``==`` on builtin values; otherwise a
            tuple equals the list of its items, as data from JSON cannot tell them apart.
        flags: ``any_order`` (lines, or items of the value, in any order), ``any_case``
            (letter case ignored), ``any_valid`` (several right outputs; only a checker can
            tell, so without one the problem is weak).
        tolerance: absolute and relative tolerance where the expected number is a decimal.
        checker: Python source of the problem's own checker: an expression over, or code
            that defines ``check`` of, ``stdin``, ``out`` and ``gold``.
        limits: of each run.
    """

    kind: Kind
    public: tuple[Case, ...] = ()
    hidden: tuple[Case, ...] = ()
    entry: str = ""
    prelude: str = ""
    setup: str = ""
    exact: bool = True
    flags: frozenset[Flag] = frozenset()
    tolerance: float = 1e-6
    checker: str = ""
    limits: Limits = field(default_factory=Limits)

    @property
    def cases(self) -> tuple[Case, ...]:
        """Public cases, then hidden ones."""
        return self.public + self.hidden

    def payload(self) -> dict[str, Any]:
        """The suite as JSON-serialisable data; defaults are left out."""
        data: dict[str, Any] = {"kind": self.kind}
        for name in ("public", "hidden"):
            if cases := getattr(self, name):
                data[name] = [[case.input, case.output] for case in cases]
        data |= _changes(self, _PLAIN)
        if self.flags:
            data["flags"] = sorted(self.flags)
        if limits := _changes(self.limits, [one.name for one in fields(Limits)]):
            data["limits"] = limits
        return data

    @classmethod
    def of(cls, problem: Problem) -> Suite:
        """The suite in a problem's payload (``payload["tests"]``).

        Raises:
            ProblemError: there is none, it has no test, or a part of it makes no sense. A
                problem without tests is never passed.
        """
        where = f"problem {problem.id!r}"
        data = problem.payload.get("tests")
        if not isinstance(data, Mapping):
            raise ProblemError(f"{where} carries no tests: nothing can be graded against it")
        if unknown := set(data) - {one.name for one in fields(cls)}:
            raise ProblemError(f"{where}: its tests have unknown fields {sorted(unknown)}")
        kind = data.get("kind")
        if kind not in KINDS:
            raise ProblemError(f"{where}: the kind of its tests is {kind!r}, none of {KINDS}")
        rest = {name: data[name] for name in _PLAIN if name in data}
        if wrong := [name for name, value in rest.items() if not isinstance(value, _PLAIN[name])]:
            raise ProblemError(f"{where}: {wrong[0]}={rest[wrong[0]]!r} of its tests is of no use")
        try:
            flags: frozenset[Any] = frozenset(data.get("flags", ()))
            limits = Limits(**data.get("limits", {}))
            public, hidden = (_cases(data.get(name, ())) for name in ("public", "hidden"))
        except (TypeError, ValueError) as error:
            raise ProblemError(f"{where}: its tests cannot be read ({error})") from error
        if strange := flags.difference(FLAGS):
            raise ProblemError(f"{where}: its tests have the flags {[*strange]}, none of {FLAGS}")
        suite = cls(kind, public, hidden, flags=flags, limits=limits, **rest)
        if not suite.cases:
            raise ProblemError(f"{where} has no test: a program that passes none would pass all")
        if kind == "calls" and not suite.entry:
            raise ProblemError(f"{where}: its tests do not name the function to call")
        return suite


def _cases(data: Sequence[Sequence[Any]]) -> tuple[Case, ...]:
    return tuple(Case(input, output) for input, output in data)


def _changes(of: Any, names: Iterable[str]) -> dict[str, Any]:
    """The fields of these names that do not have their default."""
    defaults = {one.name: one.default for one in fields(of)}
    return {name: getattr(of, name) for name in names if getattr(of, name) != defaults[name]}
