"""Whose names test code uses: Python's, its own, the problem's, or the candidate's."""

from __future__ import annotations

import ast
import builtins
import symtable
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from flexmg.errors import ProblemError

CANDIDATE = "candidate"
# What test code often takes for granted; programs and tests share a file elsewhere.
WELL_KNOWN = {
    **dict.fromkeys(("Counter", "OrderedDict", "defaultdict", "deque"), "collections"),
    **dict.fromkeys(("ceil", "floor", "gcd", "inf", "isclose", "isnan", "sqrt"), "math"),
    "Decimal": "decimal",
    "Fraction": "fractions",
    "deepcopy": "copy",
    "reduce": "functools",
}


@dataclass(frozen=True)
class Names:
    """Where the names come from that a piece of test code uses.

    Args:
        candidate: defined by nobody but the candidate's program.
        imports: statements for what the tests take for granted (``import math``).
        from_setup: what a set-up defines that uses the candidate's names; it stands for
            objects in the candidate's process.
        helpers: what the problem defines in its prelude, and in a set-up of its own.
        imported: what those import, and what the tests take for granted, by full name.
    """

    candidate: frozenset[str] = frozenset()
    imports: tuple[str, ...] = ()
    from_setup: frozenset[str] = frozenset()
    helpers: frozenset[str] = frozenset()
    imported: Mapping[str, str] = field(default_factory=dict)


def names_of(tests: str, *, entry: str, prelude: str, setup: str) -> Names:
    """Sort the names that test code uses.

    Args:
        tests: the test code.
        entry: the candidate's function; it is the candidate's whatever else is so called.
        prelude: the problem's code before the program.
        setup: the problem's code after it.

    Raises:
        ProblemError: one of them is no Python.
    """
    before, after, used = (
        _scope(code, what)
        for code, what in ((prelude, "prelude"), (setup, "set-up"), (tests, "test code"))
    )
    own = entry.partition(".")[0]
    modules = _modules(tests) | _modules(setup)
    in_setup = _sort(after, before.bound - {own}, modules, own)
    in_tests = _sort(used, (before.bound | after.bound) - {own}, modules, own)
    theirs = in_setup.candidate | in_tests.candidate
    if not theirs and not entry:
        # A candidate may be called like something of Python's: `assert gcd(4, 6) == 2`.
        theirs = set(in_tests.known) or in_tests.python
    known = {
        name: statement
        for name, statement in sorted({**in_setup.known, **in_tests.known}.items())
        if name not in theirs
    }
    local = not in_setup.candidate
    statements = [*known.values(), prelude, setup if local else ""]
    full = {
        name: canonical
        for statement in ast.walk(ast.parse("\n".join(statements)))
        if isinstance(statement, ast.Import | ast.ImportFrom)
        for name, (_, canonical) in imported(statement).items()
    }
    return Names(
        candidate=frozenset(theirs),
        imports=tuple(known.values()),
        from_setup=frozenset(() if local else after.bound),
        helpers=frozenset((before.bound | (after.bound if local else set())) - set(full)),
        imported=full,
    )


def imported(statement: ast.Import | ast.ImportFrom) -> dict[str, tuple[str, str]]:
    """The names that an import binds, each with a statement for it alone and its full name."""
    found = {}
    for alias in statement.names:
        if isinstance(statement, ast.ImportFrom):
            module = "." * statement.level + (statement.module or "")
            full = f"{module}.{alias.name}"
            found[alias.asname or alias.name] = f"from {module} import {alias.name}", full
        else:
            full = alias.name if alias.asname else alias.name.partition(".")[0]
            found[alias.asname or full] = f"import {full}", full
    return found


@dataclass
class _Sorted:
    candidate: set[str] = field(default_factory=set)
    known: dict[str, str] = field(default_factory=dict)
    python: set[str] = field(default_factory=set)


def _sort(scope: _Scope, beside: set[str], modules: set[str], own: str) -> _Sorted:
    found = _Sorted()
    for name in scope.used - scope.bound - beside:
        if name in (own, CANDIDATE):
            found.candidate.add(name)
        elif name in WELL_KNOWN:
            found.known[name] = f"from {WELL_KNOWN[name]} import {name}"
        elif name in modules and name in sys.stdlib_module_names:
            found.known[name] = f"import {name}"
        elif hasattr(builtins, name):
            found.python.add(name)
        else:
            found.candidate.add(name)
    return found


@dataclass
class _Scope:
    """What the global scope of a piece of code binds, and what is looked up in it."""

    bound: set[str] = field(default_factory=set)
    used: set[str] = field(default_factory=set)


def _scope(code: str, what: str) -> _Scope:
    found = _Scope()
    try:
        top = symtable.symtable(code, f"<{what}>", "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ProblemError(f"the {what} of the problem is no Python: {error}") from error
    for table in _tables(top):
        for symbol in table.get_symbols():
            if table is top or symbol.is_global():
                name = symbol.get_name()
                if symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace():
                    found.bound.add(name)
                if symbol.is_referenced():
                    found.used.add(name)
    return found


def _tables(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield table
    for child in table.get_children():
        yield from _tables(child)


def _modules(code: str) -> set[str]:
    """Names of which code takes attributes and does nothing else."""
    names = []
    owned: set[int] = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Attribute):
            owned.add(id(node.value))
        elif isinstance(node, ast.Name):
            names.append(node)
    return {one.id for one in names} - {one.id for one in names if id(one) not in owned}
