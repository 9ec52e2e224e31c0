"""The embedded source: generated word problems, levelled, unlimited, with known solutions.

Every problem states its numbers in *facts*, one sentence each, and asks a question about
them, so it decomposes naturally: one intermediate result per fact or two, then a last
step. The facts are what ``information="split"`` divides among agents; the steps are what
``demonstrate`` writes. How splits and draws work stands in :mod:`flexmg.envs.generated`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from flexmg.envs.generated import Draws, GeneratedSource
from flexmg.problem import Problem

NAMES = ("Ann", "Ben", "Eva", "Ida", "Kim", "Leo", "Mia", "Sam", "Tom", "Zoe")
THINGS = ("pens", "cups", "books", "hats", "caps", "bags", "toys", "lamps", "mugs", "keys")
FRUIT = ("apples", "pears", "plums", "figs", "limes", "dates")
MOST_DRAWS = 32  # random numbers behind one draft; no family needs as many


@dataclass(frozen=True)
class Draft:
    """A problem before it has an id.

    Args:
        facts: one sentence each.
        question: what is asked of them.
        plan: what to do, one line per part.
        steps: the equations of each line of the plan, ``"2*7=14"`` or several.
        answer: what the last equation yields.
    """

    facts: tuple[str, ...]
    question: str
    plan: tuple[str, ...]
    steps: tuple[str, ...]
    answer: int


class Numbers(Draws):
    """Draws of the sizes that a level allows.

    Level 1: one-digit numbers, two parts. Level 2: three parts. Level 3: three parts and
    numbers up to 20. Level 4: four parts up to 30. Level 5: five parts up to 60. Counts and
    factors stay below 13 throughout.
    """

    def __init__(self, level: int, *key: str | int) -> None:
        super().__init__(MOST_DRAWS, *key)
        self.parts = (2, 3, 3, 4, 5)[level - 1]
        self.largest = (9, 9, 20, 30, 60)[level - 1]

    def small(self) -> int:
        """A count or factor, from 2."""
        return 2 + self.below(min(self.largest, 12) - 1)

    def any(self) -> int:
        """A number, from 2."""
        return 2 + self.below(self.largest - 1)

    def pick(self, words: tuple[str, ...], k: int) -> list[str]:
        """``k`` different words."""
        left = list(words)
        return [left.pop(self.below(len(left))) for _ in range(k)]


def _total(values: list[int]) -> tuple[list[str], int]:
    """The equations that add up ``values``, and their sum."""
    total, equations = values[0], []
    for value in values[1:]:
        equations.append(f"{total}+{value}={total + value}")
        total += value
    return equations, total


def purchase(n: Numbers) -> Draft:
    """Several things at several prices: a sum of products."""
    (name,) = n.pick(NAMES, 1)
    bought = [(n.small(), thing, n.any()) for thing in n.pick(THINGS, n.parts)]
    sums, total = _total([k * price for k, _, price in bought])
    return Draft(
        facts=tuple(
            f"{name} buys {k} {thing} at {price} coins each." for k, thing, price in bought
        ),
        question=f"How many coins does {name} pay in all?",
        plan=(*(f"multiply {k} by {price}" for k, _, price in bought), "add the results"),
        steps=(*(f"{k}*{price}={k * price}" for k, _, price in bought), ", ".join(sums)),
        answer=total,
    )


def comparison(n: Numbers) -> Draft:
    """Two people fill baskets: a difference of products, or of their sums.

    The question says who has more.
    """
    first, second = n.pick(NAMES, 2)
    (fruit,) = n.pick(FRUIT, 1)
    half = (n.parts + 1) // 2
    baskets = [(n.small(), n.any()) for _ in range(n.parts)]
    plan = [f"multiply {k} by {each}" for k, each in baskets]
    steps = [f"{k}*{each}={k * each}" for k, each in baskets]
    heaps = []
    for owner, heap in ((first, baskets[:half]), (second, baskets[half:])):
        sums, total = _total([k * each for k, each in heap])
        heaps.append((total, owner))
        if sums:
            plan.append(f"add the {fruit} of {owner}")
            steps.append(", ".join(sums))
    (less, loser), (more, winner) = sorted(heaps)
    owners = [first] * half + [second] * (n.parts - half)
    return Draft(
        facts=tuple(
            f"{owner} fills {k} baskets with {each} {fruit} each."
            for owner, (k, each) in zip(owners, baskets, strict=True)
        ),
        question=f"How many more {fruit} does {winner} have than {loser}?",
        plan=(*plan, "subtract the smaller from the larger"),
        steps=(*steps, f"{more}-{less}={more - less}"),
        answer=more - less,
    )


def harvest(n: Numbers) -> Draft:
    """The same amounts every day: a sum, then a product."""
    (name,) = n.pick(NAMES, 1)
    amounts = [(n.any(), fruit) for fruit in n.pick(FRUIT, max(2, n.parts - 1))]
    days = n.small()
    picked = [f"{k} {fruit}" for k, fruit in amounts]
    # With two parts the days are one of them.
    daily_facts = [" and ".join(picked)] if n.parts == 2 else picked
    sums, daily = _total([k for k, _ in amounts])
    return Draft(
        facts=(
            *(f"Every day {name} picks {amount}." for amount in daily_facts),
            f"{name} does this for {days} days.",
        ),
        question=f"How many fruits does {name} pick in all?",
        plan=("add the daily amounts", f"multiply by {days}"),
        steps=(", ".join(sums), f"{daily}*{days}={daily * days}"),
        answer=daily * days,
    )


def change(n: Numbers) -> Draft:
    """Money minus purchases."""
    (name,) = n.pick(NAMES, 1)
    bought = [(n.small(), thing, n.any()) for thing in n.pick(THINGS, n.parts - 1)]
    purse = left = sum(k * price for k, _, price in bought) + n.any()
    payments = []
    for k, _, price in bought:
        payments.append(f"{left}-{k * price}={left - k * price}")
        left -= k * price
    return Draft(
        facts=(
            f"{name} has {purse} coins.",
            *(f"{name} buys {k} {thing} at {price} coins each." for k, thing, price in bought),
        ),
        question=f"How many coins does {name} have left?",
        plan=(*(f"multiply {k} by {price}" for k, _, price in bought), f"subtract from {purse}"),
        steps=(*(f"{k}*{price}={k * price}" for k, _, price in bought), ", ".join(payments)),
        answer=left,
    )


def chain(n: Numbers) -> Draft:
    """Each has some more than the one before; the last some times as many."""
    names = n.pick(NAMES, n.parts + 1)
    (thing,) = n.pick(THINGS, 1)
    have = n.any()
    facts, plan, steps = [f"{names[0]} has {have} {thing}."], [], []
    for before, name in pairwise(names[:-1]):
        more = n.any()
        facts.append(f"{name} has {more} more than {before}.")
        plan.append(f"add {more}")
        steps.append(f"{have}+{more}={have + more}")
        have += more
    times = n.small()
    return Draft(
        facts=(*facts, f"{names[-1]} has {times} times as many as {names[-2]}."),
        question=f"How many {thing} does {names[-1]} have?",
        plan=(*plan, f"multiply by {times}"),
        steps=(*steps, f"{have}*{times}={have * times}"),
        answer=have * times,
    )


FAMILIES: dict[str, Callable[[Numbers], Draft]] = {
    "purchase": purchase,
    "comparison": comparison,
    "harvest": harvest,
    "change": change,
    "chain": chain,
}


class SyntheticSource(GeneratedSource):
    """An unlimited, seeded source of word problems.

    Level 1: one-digit numbers, two facts. See :class:`Numbers` for the others, and
    :class:`~flexmg.envs.generated.GeneratedSource` for the arguments.
    """

    stream = "synthetic"
    known_families: ClassVar = FAMILIES

    def _draft(self, index: int, *key: str | int) -> Problem | None:
        numbers = Numbers(self.level, *key)
        family = self.families[numbers.below(len(self.families))]
        draft = FAMILIES[family](numbers)
        # A difference of 0, or a fact said twice (which `information="split"` could not
        # divide), makes a poor problem.
        if draft.answer == 0 or len(set(draft.facts)) < len(draft.facts):
            return None
        return Problem(
            id=f"{self._prefix}-{index}",
            statement=" ".join([*draft.facts, draft.question]),
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
