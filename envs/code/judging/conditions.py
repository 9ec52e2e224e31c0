"""What a test says of values that came back: evaluated here, without running any code."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

from flexmg.envs.code.drivers.encoding import spread

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
# Of one argument each, as a rule: `sum(lists, [])` takes time that grows with the square.
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "abs": abs,
    "all": all,
    "any": any,
    "bool": bool,
    "frozenset": lambda items: frozenset(spread(items)),
    "len": len,
    "list": list,
    "max": max,
    "min": min,
    "round": lambda number, digits=None: _rounded(number, digits),
    "set": lambda items: set(spread(items)),
    "sorted": sorted,
    "sum": sum,
    "tuple": tuple,
    "math.fabs": math.fabs,
    "math.isclose": math.isclose,
}
_ARGUMENTS = {"math.isclose": (2,), "round": (1, 2)}
_KEYWORDS = {"math.isclose": {"rel_tol", "abs_tol"}}
_NUMBERS = (int, float, complex)
LONGEST_REPEATED = 1_000_000
MOST_DIGITS_ROUNDED = 400


def placeholder(number: int) -> str:
    """The name that stands for a value in a condition; no name of Python's."""
    return f"value {number}"


def evaluable(node: ast.expr) -> bool:
    """Whether :func:`evaluate` knows every part of an expression."""
    match node:
        case ast.Constant():
            return True
        case ast.Name(name):
            return not name.isidentifier()
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
            name = ast.unparse(func)
            return (
                name in _FUNCTIONS
                and len(parts) in _ARGUMENTS.get(name, (1,))
                and all(map(evaluable, parts))
                and all(one.arg in _KEYWORDS.get(name, ()) for one in keywords)
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
            ends_at = isinstance(operation, ast.Or)
            result: Any = not ends_at
            for one in parts:
                result = evaluate(one, values)
                if bool(result) is ends_at:
                    break
            return result
        case ast.UnaryOp(operation, operand):
            return _UNARY[type(operation)](evaluate(operand, values))
        case ast.BinOp(left, operation, right):
            one, other = evaluate(left, values), evaluate(right, values)
            if isinstance(operation, ast.Mult) and not (
                isinstance(one, _NUMBERS) and isinstance(other, _NUMBERS)
            ):
                return _repeated(one, other)
            return _ARITHMETIC[type(operation)](one, other)
        case ast.Compare(left, comparisons, rights):
            one = evaluate(left, values)
            for comparison, right in zip(comparisons, rights, strict=True):
                other = evaluate(right, values)
                if not _COMPARE[type(comparison)](one, other):
                    return False
                one = other
            return True
        case ast.Call(func, parts, keywords):
            arguments = [evaluate(one, values) for one in parts]
            named = {str(one.arg): evaluate(one.value, values) for one in keywords}
            return _FUNCTIONS[ast.unparse(func)](*arguments, **named)
    raise TypeError(f"{ast.unparse(node)} is not evaluated here")


def _repeated(one: Any, other: Any) -> Any:
    """``[0] * 3`` and the like, as long as it does not get out of hand."""
    sizes = [part if isinstance(part, int) else len(part) for part in (one, other)]
    if sizes[0] * sizes[1] > LONGEST_REPEATED:
        raise ValueError("a repetition is too long")
    return one * other


def _rounded(number: Any, digits: int | None) -> Any:
    if digits is not None and abs(digits) > MOST_DIGITS_ROUNDED:
        raise ValueError("nobody rounds to so many digits")
    return round(number, digits)
