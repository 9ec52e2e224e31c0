"""The steps that generated programs are made of: a sentence, a line of code, its meaning.

The meaning is a function of its own and not the line evaluated, so that what a test expects
does not come from the program that is to pass it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from flexmg.envs.generated import Draws

LETTERS = "aeioulnrst"


@dataclass(frozen=True)
class Step:
    """One step of a program.

    Args:
        says: what to do, as a sentence without its full stop.
        code: an expression over the parameters, for a later step over ``x``.
        meaning: the same as a function.
        near: the meanings of typical mistakes: its number one too small or too large.
    """

    says: str
    code: str
    meaning: Callable[..., Any]
    near: tuple[Callable[..., Any], ...] = ()


Maker = Callable[[Draws, int], Step]


def _pick(d: Draws, largest: int, options: Callable[[int], list[Step]]) -> Step:
    """One of the options for a number from 2 to ``largest``, with its near misses."""
    k = 2 + d.below(largest - 1)
    kind = d.below(len(options(k)))
    step = options(k)[kind]
    others = (options(other)[kind] for other in (k - 1, k + 1))
    return replace(step, near=tuple(one.meaning for one in others if one.code != step.code))


def _two(d: Draws, largest: int, a: str, b: str) -> Step:
    return _pick(
        d,
        largest,
        lambda k: [
            Step(f"add {a} and {b}", f"{a} + {b}", lambda a, b: a + b),
            Step(f"subtract {b} from {a}", f"{a} - {b}", lambda a, b: a - b),
            Step(f"multiply {a} by {b}", f"{a} * {b}", lambda a, b: a * b),
            Step(f"take the larger of {a} and {b}", f"max({a}, {b})", lambda a, b: max(a, b)),
            Step(f"take the smaller of {a} and {b}", f"min({a}, {b})", lambda a, b: min(a, b)),
            Step(f"add {k} times {b} to {a}", f"{a} + {k} * {b}", lambda a, b: a + k * b),
            Step(f"subtract {b} from {k} times {a}", f"{k} * {a} - {b}", lambda a, b: k * a - b),
        ],
    )


def _number(d: Draws, largest: int) -> Step:
    return _pick(
        d,
        largest,
        lambda k: [
            Step(f"add {k}", f"x + {k}", lambda x: x + k),
            Step(f"subtract {k}", f"x - {k}", lambda x: x - k),
            Step(f"multiply by {k}", f"x * {k}", lambda x: x * k),
            Step(f"subtract from {k}", f"{k} - x", lambda x: k - x),
            Step(f"take the rest by {k}", f"x % {k}", lambda x: x % k),
        ],
    )


def _numbers(d: Draws, largest: int, v: str) -> Step:
    return _pick(
        d,
        largest,
        lambda k: [
            Step(
                f"add {k} to every number of {v}",
                f"[i + {k} for i in {v}]",
                lambda v: [i + k for i in v],
            ),
            Step(
                f"multiply every number of {v} by {k}",
                f"[i * {k} for i in {v}]",
                lambda v: [i * k for i in v],
            ),
            Step(
                f"keep the numbers of {v} above {k}",
                f"[i for i in {v} if i > {k}]",
                lambda v: [i for i in v if i > k],
            ),
            Step(
                f"keep the numbers of {v} below {k}",
                f"[i for i in {v} if i < {k}]",
                lambda v: [i for i in v if i < k],
            ),
            Step(
                f"keep the even numbers of {v}",
                f"[i for i in {v} if i % 2 == 0]",
                lambda v: [i for i in v if not i & 1],
            ),
            Step(f"drop the first {k} of {v}", f"{v}[{k}:]", lambda v: v[k:]),
        ],
    )


def _fold(d: Draws, largest: int) -> Step:
    return _pick(
        d,
        largest,
        lambda k: [
            Step("add them up", "sum(x)", lambda x: sum(x)),
            Step("count them", "len(x)", lambda x: len(x)),
            Step("sort them", "sorted(x)", lambda x: sorted(x)),
            Step(f"add them up and add {k}", f"sum(x) + {k}", lambda x: sum(x) + k),
            Step(f"count them and add {k}", f"len(x) + {k}", lambda x: len(x) + k),
        ],
    )


def _text(d: Draws, largest: int, s: str) -> Step:
    letter = LETTERS[d.below(len(LETTERS))]
    other = LETTERS[d.below(len(LETTERS))]
    return _pick(
        d,
        min(largest, 9),
        lambda k: [
            Step(f"reverse {s}", f"{s}[::-1]", lambda s: s[::-1]),
            Step(f"write {s} {k} times", f"{s} * {k}", lambda s: s * k),
            Step(f"take the first {k} letters of {s}", f"{s}[:{k}]", lambda s: s[:k]),
            Step(f"drop the first {k} letters of {s}", f"{s}[{k}:]", lambda s: s[k:]),
            Step(f'put "{letter}" before {s}', f'"{letter}" + {s}', lambda s: letter + s),
            Step(f'put "{letter}" after {s}', f'{s} + "{letter}"', lambda s: s + letter),
            Step(
                f'write "{other}" for every "{letter}" of {s}',
                f'{s}.replace("{letter}", "{other}")',
                lambda s: "".join(other if c == letter else c for c in s),
            ),
        ],
    )


def _measure(d: Draws, largest: int) -> Step:
    letter = LETTERS[d.below(len(LETTERS))]
    return _pick(
        d,
        min(largest, 9),
        lambda k: [
            Step("count its letters", "len(x)", lambda x: len(x)),
            Step(
                f'count each "{letter}" in it',
                f'x.count("{letter}")',
                lambda x: sum(c == letter for c in x),
            ),
            Step(f"count its letters and add {k}", f"len(x) + {k}", lambda x: len(x) + k),
            Step(f"take its last {k} letters", f"x[-{k}:]", lambda x: "".join([*x][-k:])),
        ],
    )


@dataclass(frozen=True)
class Family:
    """A kind of program.

    Args:
        parameters: choices of their names.
        first: makes the first step, from the parameters.
        middle: makes any step between, from the result so far.
        last: makes the last step.
        inputs: draws the arguments of one test.
    """

    parameters: tuple[tuple[str, ...], ...]
    first: Callable[..., Step]
    middle: Maker
    last: Maker
    inputs: Callable[[Draws], list[Any]]


def _integer(d: Draws) -> int:
    return d.below(41) - 20


def _integers(d: Draws) -> list[Any]:
    return [[_integer(d) for _ in range(3 + d.below(6))]]


def _word(d: Draws) -> list[Any]:
    return ["".join(LETTERS[d.below(len(LETTERS))] for _ in range(4 + d.below(8)))]


FAMILIES: Mapping[str, Family] = {
    "numbers": Family(
        parameters=tuple((a, b) for a, b in zip("acegkmpu", "bdfhlnqv", strict=True)),
        first=_two,
        middle=_number,
        last=_number,
        inputs=lambda d: [_integer(d), _integer(d)],
    ),
    "lists": Family(
        parameters=tuple((name,) for name in "vuwtlmnq"),
        first=_numbers,
        middle=lambda d, largest: _numbers(d, largest, "x"),
        last=_fold,
        inputs=_integers,
    ),
    "texts": Family(
        parameters=tuple((name,) for name in "srhztwyg"),
        first=_text,
        middle=lambda d, largest: _text(d, largest, "x"),
        last=_measure,
        inputs=_word,
    ),
}
