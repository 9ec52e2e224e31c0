"""The embedded source: generated word problems, levelled, unlimited, with known solutions.

Every problem states its numbers in *facts*, one sentence each, and asks a question about
them, so it decomposes naturally: one intermediate result per fact or two, then a last
step. The facts are what ``information="split"`` divides among agents; the steps are what
``demonstrate`` writes.

Splits are disjoint by construction: the content hash of a problem decides to which split
it belongs, and a generator draws until it meets one of its own split. So are seeds: item
``index`` of a split is drawn from the stream keyed by (split, level, index), and a seed
only chooses indices.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from flexmg.errors import InvalidArgument, UnknownProblem
from flexmg.problem import Problem, content_hash
from flexmg.seeding import stream

LEVELS = (1, 2, 3, 4, 5)
DEFAULT_LEVEL = 1
# Share of the content-hash space (in sixteenths) that belongs to each split.
SPLITS = {"test": range(2), "validation": range(2, 4), "train": range(4, 16)}

NAMES = ("Ann", "Ben", "Eva", "Leo", "Mia", "Tom")
THINGS = ("pens", "cups", "books", "hats", "caps", "bags")
FRUIT = ("apples", "pears", "plums", "figs")


@dataclass(frozen=True)
class Draft:
    """A problem before it has an id: facts, question, the steps of its solution, their plan."""

    facts: tuple[str, ...]
    question: str
    steps: tuple[str, ...]
    plan: tuple[str, ...]
    answer: int


class Numbers:
    """Draws of the sizes that a level allows.

    Level 1: one-digit numbers, two facts. Level 2: three facts. Level 3: three facts and
    numbers up to 20. Level 4: four facts up to 30. Level 5: five facts up to 60.
    """

    def __init__(self, rng: np.random.Generator, level: int) -> None:
        self.rng = rng
        self.parts = (2, 3, 3, 4, 5)[level - 1]
        self.largest = (9, 9, 20, 30, 60)[level - 1]

    def small(self) -> int:
        """A count or factor, from 2."""
        return int(self.rng.integers(2, min(self.largest, 12) + 1))

    def any(self) -> int:
        """A number, from 2."""
        return int(self.rng.integers(2, self.largest + 1))

    def pick(self, words: tuple[str, ...], k: int) -> list[str]:
        """``k`` different words."""
        return [words[i] for i in self.rng.permutation(len(words))[:k]]


def _sum_steps(values: list[int]) -> tuple[list[str], int]:
    total, steps = values[0], []
    for value in values[1:]:
        steps.append(f"{total}+{value}={total + value}")
        total += value
    return steps, total


def purchase(n: Numbers) -> Draft:
    """Several things at several prices: a sum of products."""
    (name,) = n.pick(NAMES, 1)
    bought = [(n.small(), thing, n.any()) for thing in n.pick(THINGS, n.parts)]
    facts = [f"{name} buys {k} {thing} at {price} coins each." for k, thing, price in bought]
    products = [f"{k}*{price}={k * price}" for k, _, price in bought]
    sums, total = _sum_steps([k * price for k, _, price in bought])
    plan = [f"multiply {k} by {price}" for k, _, price in bought]
    return Draft(
        tuple(facts),
        f"How many coins does {name} pay?",
        (*products, *sums),
        (*plan, "add the results"),
        total,
    )


def comparison(n: Numbers) -> Draft:
    """Two people collect in bundles: a difference of products (or of their sums)."""
    ann, ben = n.pick(NAMES, 2)
    (fruit,) = n.pick(FRUIT, 1)
    baskets = [(n.small(), n.any()) for _ in range(n.parts)]
    half = n.parts // 2 + n.parts % 2
    owners = [ann] * half + [ben] * (n.parts - half)
    facts = [
        f"{owner} fills {k} baskets with {each} {fruit} each."
        for owner, (k, each) in zip(owners, baskets, strict=True)
    ]
    products = [k * each for k, each in baskets]
    steps = [f"{k}*{each}={k * each}" for k, each in baskets]
    left_steps, left = _sum_steps(products[:half])
    right_steps, right = _sum_steps(products[half:])
    more, less = max(left, right), min(left, right)
    plan = [f"multiply {k} by {each}" for k, each in baskets]
    return Draft(
        tuple(facts),
        f"By how many do the {fruit} of {ann} and {ben} differ?",
        (*steps, *left_steps, *right_steps, f"{more}-{less}={more - less}"),
        (*plan, "subtract the smaller from the larger"),
        more - less,
    )


def harvest(n: Numbers) -> Draft:
    """The same amounts every day: a sum, then a product."""
    (name,) = n.pick(NAMES, 1)
    amounts = [(n.any(), fruit) for fruit in n.pick(FRUIT, max(2, n.parts - 1))]
    days = n.small()
    if n.parts == 2:
        (one, kind), (other, sort) = amounts
        facts = [f"Every day {name} picks {one} {kind} and {other} {sort}."]
    else:
        facts = [f"Every day {name} picks {k} {fruit}." for k, fruit in amounts]
    facts.append(f"This goes on for {days} days.")
    values = [k for k, _ in amounts]
    sums, daily = _sum_steps(values)
    return Draft(
        tuple(facts),
        f"How many fruits does {name} pick in all?",
        (*sums, f"{daily}*{days}={daily * days}"),
        ("add the daily amounts", f"multiply by {days}"),
        daily * days,
    )


def change(n: Numbers) -> Draft:
    """Money minus purchases."""
    (name,) = n.pick(NAMES, 1)
    bought = [(n.small(), thing, n.any()) for thing in n.pick(THINGS, n.parts - 1)]
    spent = sum(k * price for k, _, price in bought)
    purse = spent + n.any()
    facts = [f"{name} has {purse} coins."]
    facts += [f"{name} buys {k} {thing} at {price} coins each." for k, thing, price in bought]
    steps, left = [], purse
    steps += [f"{k}*{price}={k * price}" for k, _, price in bought]
    for k, _, price in bought:
        steps.append(f"{left}-{k * price}={left - k * price}")
        left -= k * price
    plan = [f"multiply {k} by {price}" for k, _, price in bought]
    return Draft(
        tuple(facts),
        f"How many coins has {name} left?",
        tuple(steps),
        (*plan, f"subtract from {purse}"),
        left,
    )


def chain(n: Numbers) -> Draft:
    """Each has some more than the one before; the last some times as many."""
    names = n.pick(NAMES, min(n.parts + 1, len(NAMES)))
    (thing,) = n.pick(THINGS, 1)
    have = n.any()
    facts = [f"{names[0]} has {have} {thing}."]
    steps, plan = [], []
    for before, name in pairwise(names[:-1]):
        more = n.any()
        facts.append(f"{name} has {more} more than {before}.")
        steps.append(f"{have}+{more}={have + more}")
        plan.append(f"add {more}")
        have += more
    times = n.small()
    facts.append(f"{names[-1]} has {times} times as many as {names[-2]}.")
    steps.append(f"{have}*{times}={have * times}")
    plan.append(f"multiply by {times}")
    return Draft(
        tuple(facts),
        f"How many {thing} has {names[-1]}?",
        tuple(steps),
        tuple(plan),
        have * times,
    )


FAMILIES: dict[str, Callable[[Numbers], Draft]] = {
    "purchase": purchase,
    "comparison": comparison,
    "harvest": harvest,
    "change": change,
    "chain": chain,
}


class SyntheticSource:
    """An unlimited, seeded source of word problems.

    Args:
        split: ``"train"``, ``"validation"`` or ``"test"``; they share no problem.
        level: 1 (one-digit numbers, two facts) to 5.
        families: names out of :data:`FAMILIES`; all by default.

    Raises:
        InvalidArgument: an unknown split, level or family.
    """

    name = "synthetic"
    size = None

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
        self.families = tuple(families or FAMILIES)
        if unknown := set(self.families) - set(FAMILIES):
            raise InvalidArgument(
                f"families names {sorted(unknown)}, but there are {tuple(FAMILIES)}"
            )
        self.split = split
        self.level = level
        self._prefix = f"synthetic-{split}-l{level}"
        if self.families != tuple(FAMILIES):
            self._prefix += "-" + "+".join(self.families)

    def get(self, index: int) -> Problem:
        """Problem number ``index`` (any non-negative number), the same in every process."""
        if index < 0:
            raise UnknownProblem(f"{self.name} has no problem number {index}")
        rng = stream("synthetic", self.split, self.level, ",".join(self.families), index)
        while True:
            family = self.families[int(rng.integers(len(self.families)))]
            draft = FAMILIES[family](Numbers(rng, self.level))
            statement = " ".join([*draft.facts, draft.question])
            if split_of(statement) == self.split:
                return self._problem(draft, statement, family, index)

    def find(self, id: str) -> Problem:
        """The problem with this id."""
        prefix, _, number = id.rpartition("-")
        if prefix != self._prefix or not number.isdigit():
            raise UnknownProblem(
                f"{id!r} is not a problem of this source, whose ids are {self._prefix}-<number>"
            )
        return self.get(int(number))

    def _problem(self, draft: Draft, statement: str, family: str, index: int) -> Problem:
        return Problem(
            id=f"{self._prefix}-{index}",
            statement=statement,
            gold=str(draft.answer),
            source=self.name,
            split=self.split,
            index=index,
            level=self.level,
            facts=draft.facts,
            question=draft.question,
            payload={
                "family": family,
                "solution": {
                    "plan": list(draft.plan),
                    "steps": list(draft.steps),
                    "answer": f"\\boxed{{{draft.answer}}}",
                },
            },
        )


def split_of(statement: str) -> str:
    """The split that a statement belongs to, by its content hash."""
    sixteenth = int(content_hash(statement)[0], 16)
    return next(split for split, share in SPLITS.items() if sixteenth in share)
