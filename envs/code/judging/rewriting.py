"""Assert tests taken apart: what is evaluated by the candidate, and what is not.

``assert f(2) == 4`` becomes the expression ``f(2)``, which the candidate's process evaluates, and
the condition ``value == 4``, which it never sees. An expression is the largest part of an
assert that begins with a name of the candidate's: a call, an attribute, an item. Names that
the tests give to plain values are put in their places; what they make by the candidate's
functions (``root = Node(1)``) is made and kept over there.
"""

from __future__ import annotations

import ast
import copy
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .conditions import evaluable, placeholder
from .names import CANDIDATE, Names, imported

# What a driver calls the candidate's function, and the prefix of what tests keep over there.
# No program has names like these.
FUNCTION = "__candidate__"
_KEPT = "__tests_"


@dataclass(frozen=True, slots=True)
class Check:
    """One statement of a test.

    Args:
        calls: what the candidate's process is asked, in order: ``{"expression": source}`` or
            ``{"statement": source}``.
        condition: what must hold of the values of its expressions; None if nothing.
    """

    calls: tuple[dict[str, str], ...]
    condition: ast.expr | None = None


class _TooMuch(Exception):
    """The test code does more than can be taken apart."""


def checks(code: str, entry: str, names: Names) -> tuple[Check, ...] | None:
    """The checks that test code consists of.

    Args:
        code: asserts, or a function ``check(candidate)`` of asserts; plain assignments, and
            calls of the candidate's, may stand between them.
        entry: the candidate's function.
        names: whose names it uses.

    Returns:
        None when it does more than that (loops, functions of its own, helper functions of the
        problem), or nothing with the candidate.
    """
    body = _body(ast.parse(code).body)
    reader = _Reader(entry, names, body)
    try:
        found = [one for one in map(reader.check, body) if one is not None]
    except (_TooMuch, RecursionError):
        return None
    return tuple(found) if any(one.calls for one in found) else None


def check_function(code: str) -> str:
    """The function of the test code that is to be called with the candidate; mostly empty."""
    body = ast.parse(code).body
    defined = {one.name for one in body if isinstance(one, ast.FunctionDef)}
    return "check" if "check" in defined and not any(map(_calls_check, body)) else ""


def _calls_check(statement: ast.stmt) -> bool:
    match statement:
        case ast.Expr(ast.Call(func=ast.Name("check"))):
            return True
    return False


def _body(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The statements that matter: docstrings, metadata and ``check``'s shell left out."""
    rest: list[ast.stmt] = []
    for statement in body:
        match statement:
            case ast.Expr(ast.Constant() | ast.Name()) | ast.Pass():
                continue
            case ast.Assign(targets=[ast.Name("METADATA")]):
                continue
            case ast.FunctionDef(name="check", args=ast.arguments(args=[ast.arg(arg="candidate")])):
                rest += _body(statement.body)
            case _ if _calls_check(statement):
                continue
            case _:
                rest.append(statement)
    return rest


class _Reader:
    """Reads test code statement by statement, and knows what its names stand for by then."""

    def __init__(self, entry: str, names: Names, body: Sequence[ast.stmt]) -> None:
        self.entry = entry
        self.theirs = set(names.candidate | names.from_setup | {CANDIDATE})
        self.helpers = names.helpers
        self.canonical = dict(names.imported)
        self.kept: set[str] = set()
        self.values: dict[str, ast.expr] = {}
        self.imports: dict[str, str] = {}
        self.calls: list[dict[str, str]] = []
        # What a bare call gets it may change, and a test look at afterwards: `sort(numbers)`.
        self.in_place = {
            node.id
            for statement in body
            if isinstance(statement, ast.Expr)
            for node in ast.walk(statement)
            if isinstance(node, ast.Name)
        }

    def check(self, statement: ast.stmt) -> Check | None:
        """What a statement asks of the candidate and of the values."""
        self.calls = []
        condition = None
        match statement:
            case ast.Assert(test):
                condition = self.truth(test)
                if not evaluable(condition):
                    raise _TooMuch
            case ast.Import() | ast.ImportFrom():
                self.take_import(statement)
                return None
            case ast.Assign([ast.Name(name)], value) if not self.is_theirs(value):
                return self.take_value(name, value)
            case ast.Assign(targets, value) if self.is_theirs(value) or all(
                map(self.is_theirs, targets)
            ):
                source = self.there(value)
                for target in targets:
                    self.take_target(target)
                left = " = ".join(self.there(target) for target in targets)
                self.calls.append({"statement": f"{left} = {source}"})
            case ast.Expr(value) if self.is_theirs(value):
                self.calls.append({"statement": self.there(value)})
            case _:
                raise _TooMuch
        return Check(tuple(self.calls), condition)

    # -- names ------------------------------------------------------------------------

    def is_theirs(self, node: ast.expr) -> bool:
        match node:
            case ast.Name(name):
                return name in self.kept or (name in self.theirs and name not in self.values)
            case ast.Call(func=inner) | ast.Attribute(value=inner) | ast.Subscript(value=inner):
                return self.is_theirs(inner)
        return False

    def take_import(self, statement: ast.Import | ast.ImportFrom) -> None:
        for name, (source, canonical) in imported(statement).items():
            if canonical.partition(".")[0] not in sys.stdlib_module_names:
                raise _TooMuch
            self.imports[name] = f"{source} as {_KEPT}{name}"
            self.canonical[name] = canonical

    def take_value(self, name: str, value: ast.expr) -> Check | None:
        plain = self.here(value)
        if self.calls or not evaluable(plain):
            raise _TooMuch
        self.kept.discard(name)
        self.values[name] = plain
        if name not in self.in_place:
            return None
        self.take_target(ast.Name(name, ast.Store()))
        return Check(({"statement": f"{_KEPT}{name} = {ast.unparse(plain)}"},))

    def take_target(self, target: ast.expr) -> None:
        match target:
            case ast.Name(name):
                self.values.pop(name, None)
                self.kept.add(name)
            case ast.Tuple(parts):
                for part in parts:
                    self.take_target(part)
            case _ if not self.is_theirs(target):
                raise _TooMuch

    # -- the two sides ----------------------------------------------------------------

    def there(self, node: ast.expr) -> str:
        """Source for the candidate's process. The node is used up."""
        inner = {one.arg for one in ast.walk(node) if isinstance(one, ast.arg)}
        if not isinstance(getattr(node, "ctx", None), ast.Store):
            inner |= {
                one.id
                for one in ast.walk(node)
                if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
            }
        if inner & {*self.kept, *self.values, *self.imports, self.entry, CANDIDATE}:
            raise _TooMuch
        return ast.unparse(_Renaming(self).visit(node))

    def renamed(self, node: ast.Name) -> ast.expr:
        name = node.id
        if name in self.kept:
            return ast.Name(_KEPT + name, node.ctx)
        if name in self.values:
            return copy.deepcopy(self.values[name])
        if name in self.imports:
            call = {"statement": self.imports[name]}
            if call not in self.calls:
                self.calls.append(call)
            return ast.Name(_KEPT + name, node.ctx)
        return ast.Name(FUNCTION, node.ctx) if name in (self.entry, CANDIDATE) else node

    def here(self, node: ast.expr) -> ast.expr:
        """What is left of an expression when the candidate's parts are placeholders.

        The node is used up.
        """
        if self.is_theirs(node):
            return self.asked(self.there(node))
        return _Splitting(self).visit(node)

    def truth(self, node: ast.expr) -> ast.expr:
        """The same where only the truth of a value counts: that of any object can be sent."""
        if self.is_theirs(node):
            return self.asked(f"not not ({self.there(node)})")
        match node:
            case ast.UnaryOp(ast.Not() as operation, operand):
                return ast.UnaryOp(operation, self.truth(operand))
            case ast.BoolOp(operation, parts):
                return ast.BoolOp(operation, [self.truth(part) for part in parts])
        return self.here(node)

    def asked(self, source: str) -> ast.expr:
        number = sum("expression" in call for call in self.calls)
        self.calls.append({"expression": source})
        return ast.Name(placeholder(number), ast.Load())

    def meaning(self, node: ast.Name) -> ast.expr:
        if node.id in self.values:
            return copy.deepcopy(self.values[node.id])
        if node.id in self.canonical:
            return ast.parse(self.canonical[node.id], mode="eval").body
        if node.id in self.helpers:
            raise _TooMuch
        return node


class _Renaming(ast.NodeTransformer):
    """Gives names the meaning that they have in the candidate's process."""

    def __init__(self, reader: _Reader) -> None:
        self.reader = reader

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.reader.renamed(node)


class _Splitting(ast.NodeTransformer):
    """Puts placeholders for the candidate's parts, and gives other names their meaning."""

    def __init__(self, reader: _Reader) -> None:
        self.reader = reader

    def generic_visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.expr) and self.reader.is_theirs(node):
            return self.reader.here(node)
        if isinstance(node, ast.Name):
            return self.reader.meaning(node)
        return super().generic_visit(node)
