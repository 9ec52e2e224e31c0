"""Assert tests taken apart: what is evaluated by the candidate, and what is not.

``assert f(2) == 4`` becomes the expression ``f(2)``, which the candidate's process evaluates, and
the check ``_0 == 4``, which it never sees. Names that neither Python nor the tests define are
the candidate's; an expression is its largest part that begins with such a name (a call, an
attribute, an item).
"""

from __future__ import annotations

import ast
import builtins
import functools
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

CANDIDATE = "candidate"


@dataclass(frozen=True, slots=True)
class Check:
    """One assert.

    Args:
        expressions: source of what the candidate's process evaluates.
        condition: what must hold of the values, as ``_0``, ``_1`` ... in their order.
    """

    expressions: tuple[str, ...]
    condition: ast.expr


@functools.lru_cache(maxsize=2048)
def checks(code: str, entry: str) -> tuple[Check, ...] | None:
    """The checks that test code consists of.

    Args:
        code: asserts, or a function ``check(candidate)`` of asserts.
        entry: what ``candidate`` stands for.

    Returns:
        None when it does more than that: loops, variables, helper functions.
    """
    try:
        body = ast.parse(code).body
    except (SyntaxError, ValueError, RecursionError):
        return None
    found = []
    for statement in _asserts(body):
        if not isinstance(statement, ast.Assert):
            return None
        split = _Split(entry)
        condition = split.visit(statement.test)
        if not split.expressions or not evaluable(condition):
            return None
        found.append(Check(tuple(split.expressions), condition))
    return tuple(found) or None


def check_function(code: str) -> str:
    """The function of the test code that is to be called with the candidate; mostly empty."""
    try:
        body = ast.parse(code).body
    except (SyntaxError, ValueError, RecursionError):
        return ""
    defined = {one.name for one in body if isinstance(one, ast.FunctionDef)}
    called = any(isinstance(one, ast.Expr) and isinstance(one.value, ast.Call) for one in body)
    return "check" if "check" in defined and not called else ""


def candidate_names(code: str, entry: str) -> list[str]:
    """The names that test code uses and nobody but the candidate can define, and ``entry``."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError):
        return []
    used, bound = {}, set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(name, ast.Load()):
                used[name] = None
            case ast.Name(name):
                bound.add(name)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                bound.add(name)
            case ast.arg(arg=name):
                bound.add(name)
            case ast.alias(name=name, asname=other):
                bound.add(other or name.partition(".")[0])
            case ast.ExceptHandler(name=str(name)):
                bound.add(name)
    free = [name for name in used if name not in bound and not hasattr(builtins, name)]
    return list(dict.fromkeys([*free, *([entry] if entry.isidentifier() else [])]))


def _asserts(body: list[ast.stmt]) -> list[ast.stmt]:
    """The statements that matter: docstrings, metadata and ``check``'s shell left out."""
    rest = []
    for statement in body:
        match statement:
            case ast.Expr(ast.Constant()) | ast.Pass():
                continue
            case ast.Import(names=[ast.alias(name="math", asname=None)]):
                continue
            case ast.Assign(targets=[ast.Name("METADATA")]):
                continue
            case ast.FunctionDef(name="check", args=ast.arguments(args=[ast.arg(arg="candidate")])):
                rest += _asserts(statement.body)
            case ast.Expr(ast.Call(func=ast.Name("check"))):
                continue
            case _:
                rest.append(statement)
    return rest


class _Split(ast.NodeTransformer):
    """Replaces the candidate's expressions by placeholders."""

    def __init__(self, entry: str) -> None:
        self.entry = entry
        self.expressions: list[str] = []

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.expr) and _is_candidates(node, self.entry):
            renamed = _Rename(self.entry).visit(node) if self.entry else node
            self.expressions.append(ast.unparse(renamed))
            name = f"_{len(self.expressions) - 1}"
            return ast.copy_location(ast.Name(name, ast.Load()), node)
        return super().generic_visit(node)


class _Rename(ast.NodeTransformer):
    def __init__(self, entry: str) -> None:
        self.entry = entry

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id != CANDIDATE:
            return node
        return ast.copy_location(ast.parse(self.entry, mode="eval").body, node)


def _is_candidates(node: ast.expr, entry: str) -> bool:
    match node:
        case ast.Name(name):
            # A program may define a `sum` of its own.
            return name == entry or not (hasattr(builtins, name) or name == "math")
        case ast.Call(func=inner) | ast.Attribute(value=inner) | ast.Subscript(value=inner):
            return _is_candidates(inner, entry)
    return False


# -- what is evaluated outside -----------------------------------------------------------
_COMPARE: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda one, other: one in other,
    ast.NotIn: lambda one, other: one not in other,
    # Only None, True and False have an identity that survives the way out of a process.
    ast.Is: lambda one, other: type(one) is type(other) and one == other,
    ast.IsNot: lambda one, other: not (type(one) is type(other) and one == other),
}
_ARITHMETIC: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_UNARY: Mapping[type, Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Not: operator.not_,
}
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "abs": abs,
    "all": all,
    "any": any,
    "bool": bool,
    "len": len,
    "list": list,
    "max": max,
    "min": min,
    "round": round,
    "set": set,
    "sorted": sorted,
    "sum": sum,
    "tuple": tuple,
    "math.isclose": math.isclose,
}
_NUMBERS = (int, float, complex)


def evaluable(node: ast.expr) -> bool:
    """Whether :func:`evaluate` knows every part of an expression."""
    match node:
        case ast.Constant() | ast.Name():
            return True
        case ast.List(parts) | ast.Tuple(parts) | ast.Set(parts) | ast.BoolOp(values=parts):
            return all(map(evaluable, parts))
        case ast.Dict(keys, values):
            return None not in keys and all(evaluable(one) for one in (*keys, *values) if one)
        case ast.UnaryOp(operation, operand):
            return type(operation) in _UNARY and evaluable(operand)
        case ast.BinOp(left, operation, right):
            return type(operation) in _ARITHMETIC and evaluable(left) and evaluable(right)
        case ast.Compare(left, operations, right):
            return all(type(one) in _COMPARE for one in operations) and all(
                map(evaluable, (left, *right))
            )
        case ast.Call(func, parts, keywords):
            return (
                ast.unparse(func) in _FUNCTIONS
                and all(map(evaluable, parts))
                and all(one.arg in ("rel_tol", "abs_tol") for one in keywords)
                and all(evaluable(one.value) for one in keywords)
            )
    return False


def evaluate(node: ast.expr, values: Mapping[str, Any]) -> Any:
    """An expression over builtin values; costs no more than in proportion to their size.

    Args:
        node: :func:`evaluable`.
        values: of the placeholders.

    Raises:
        Exception: whatever the operation raises on such values.
    """
    match node:
        case ast.Constant(value):
            return value
        case ast.Name(name):
            return values[name]
        case ast.List(parts):
            return [evaluate(one, values) for one in parts]
        case ast.Tuple(parts):
            return tuple(evaluate(one, values) for one in parts)
        case ast.Set(parts):
            return {evaluate(one, values) for one in parts}
        case ast.Dict(keys, parts):
            return {
                evaluate(key, values): evaluate(one, values)
                for key, one in zip(keys, parts, strict=True)
                if key is not None
            }
        case ast.BoolOp(operation, parts):
            wanted = isinstance(operation, ast.Or)
            result: Any = not wanted
            for one in parts:
                result = evaluate(one, values)
                if bool(result) is wanted:
                    break
            return result
        case ast.UnaryOp(operation, operand):
            return _UNARY[type(operation)](evaluate(operand, values))
        case ast.BinOp(left, operation, right):
            one, other = evaluate(left, values), evaluate(right, values)
            if isinstance(operation, ast.Mult) and not (
                isinstance(one, _NUMBERS) and isinstance(other, _NUMBERS)
            ):
                raise TypeError("only numbers are multiplied")
            return _ARITHMETIC[type(operation)](one, other)
        case ast.Compare(left, operations, rights):
            one = evaluate(left, values)
            for operation, right in zip(operations, rights, strict=True):
                other = evaluate(right, values)
                if not _COMPARE[type(operation)](one, other):
                    return False
                one = other
            return True
        case ast.Call(func, parts, keywords):
            arguments = [evaluate(one, values) for one in parts]
            named = {str(one.arg): evaluate(one.value, values) for one in keywords}
            return _FUNCTIONS[ast.unparse(func)](*arguments, **named)
    raise TypeError(f"{ast.unparse(node)} is not evaluated here")
