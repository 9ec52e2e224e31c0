"""Throughput of the grader's fast path against math-verify, on gold-style answers.

Both graders judge the same boxed replies in the same process, taking turns. Half of the
replies are right (the gold in another spacing), half hold the gold of another problem.
What a grader remembers of earlier answers is forgotten before every round. The golds are
MATH-500's when ``$FLEXMG_SHARED`` (default ``../shared``) holds them, else a small list.

Not covered: symbolic work in workers (start-up and pipes), which few answers need.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

from math_verify import parse, verify

from benchmarks.measure import interleaved, versions
from flexmg.envs.math import grade
from flexmg.envs.math.comparing import values
from flexmg.envs.math.reading import reader

ROUNDS = 3
CALLS = 20_000
SHARED = Path(os.environ.get("FLEXMG_SHARED", Path(__file__).parents[2] / "shared"))
GOLDS = SHARED / "data" / "math500" / "test.jsonl"
SMALL = [
    *("12", "-7", "1024", "2516_8", "\\frac{3}{4}", "\\frac{14}{3}", "2\\sqrt{5}", "0.35"),
    *("120^\\circ", "(3,4)", "(-\\infty, 0]", "3, 5, 7", "10,\\!080", "\\$18.90", "x^3+3x-6"),
    *("1 \\pm \\sqrt{19}", "\\frac{\\sqrt{21}}{5}", "\\text{Evelyn}", "6+9i", "137 \\frac{1}{2}"),
]

Pairs = list[tuple[str, str]]


def gold_replies(golds: list[str]) -> Pairs:
    """Every gold with a reply that holds it and one that holds the next gold."""
    right = [(gold, f"We work it out in 3 steps.\n\\boxed{{ {gold} }}") for gold in golds]
    others = [*golds[1:], golds[0]]
    wrong = [(g, f"So the result is \\boxed{{{o}}}.") for g, o in zip(golds, others, strict=True)]
    return right + wrong


def ours(pairs: Pairs) -> int:
    """Replies that flexmg's grader accepts."""
    reader.read.cache_clear()
    values.form_of.cache_clear()
    return sum(grade(gold, reply).correct for gold, reply in pairs)


def theirs(pairs: Pairs) -> int:
    """Replies that math-verify accepts."""
    accepted = 0
    for gold, reply in pairs:
        expected = parse(f"${gold}$", parsing_timeout=None)
        accepted += verify(expected, parse(reply, parsing_timeout=None), timeout_seconds=None)
    return accepted


def rate(judge: Callable[[Pairs], int], pairs: Pairs) -> float:
    """Replies a second."""
    start = time.perf_counter()
    judge(pairs)
    return len(pairs) / (time.perf_counter() - start)


def main() -> None:
    """Measure and print."""
    golds = SMALL
    if GOLDS.exists():
        golds = [json.loads(line)["answer"] for line in GOLDS.open(encoding="utf-8")]
    pairs = gold_replies(golds)
    print(f"{versions('math-verify', 'sympy')}; {len(pairs)} replies, {len(golds)} golds")
    figures = interleaved(
        {"flexmg": lambda: rate(ours, pairs), "math-verify": lambda: rate(theirs, pairs)}, ROUNDS
    )
    accepted = {"flexmg": ours(pairs), "math-verify": theirs(pairs)}
    for name, figure in figures.items():
        print(f"{name:12} {figure:10,.0f} replies/s, {accepted[name]} accepted")
    print(f"{'ratio':12} {figures['flexmg'] / figures['math-verify']:10.1f}")
    start = time.perf_counter()
    for _ in range(CALLS):
        grade("12", "After three steps: \\boxed{12}")
    print(f"a boxed integer takes {(time.perf_counter() - start) / CALLS * 1e6:.1f} us")


if __name__ == "__main__":
    main()
