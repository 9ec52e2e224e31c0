"""The embedded source of programming problems: generated, levelled, unlimited, with solutions.

A problem names a function and says, step by step, what it does. Every step is a fact of the
problem (what ``information="split"`` divides), a line of the plan, and a helper function of
its own, so that the problem decomposes naturally. How splits and draws work stands in
:mod:`flexmg.envs.generated`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from flexmg.envs.code.sandbox.limits import Limits
from flexmg.envs.code.steps import FAMILIES, Step
from flexmg.envs.code.suite import Case, Suite
from flexmg.envs.code.values import encode
from flexmg.envs.generated import Draws, GeneratedSource
from flexmg.problem import Problem

ENTRY = "f"
PUBLIC, HIDDEN = 2, 10
LIMITS = Limits(cpu_s=1.0, memory_mb=256)
STEPS = (2, 3, 3, 4, 5)  # by level
LARGEST = (20, 20, 30, 60, 99)  # number in a step, by level
MOST_DRAWS = 400
MOST_EQUAL = 0.5  # share of the tests that may expect the same value
ORDINALS = ("First", "Then")
Meaning = Callable[..., Any]


class SyntheticSource(GeneratedSource):
    """An unlimited, seeded source of small functions to be written.

    Level 1: two steps, numbers up to 20. Levels 2 and 3: three steps, the latter with numbers
    up to 30; level 4: four, up to 60; level 5: five, up to 99. See
    :class:`~flexmg.envs.generated.GeneratedSource` for the arguments.
    """

    stream = "code-synthetic"
    known_families: ClassVar = FAMILIES

    def _draft(self, index: int, *key: str | int) -> Problem | None:
        d = Draws(MOST_DRAWS, *key)
        name = self.families[d.below(len(self.families))]
        family = FAMILIES[name]
        largest = LARGEST[self.level - 1]
        parameters = d.choice(family.parameters)
        steps = [family.first(d, largest, *parameters)]
        for _ in range(STEPS[self.level - 1] - 2):
            steps.append(family.middle(d, largest))
        steps.append(family.last(d, largest))
        inputs = [family.inputs(d) for _ in range(PUBLIC + HIDDEN)]
        meanings = [step.meaning for step in steps]
        outputs = [_result(meanings, arguments) for arguments in inputs]
        if not _telling(steps, inputs, outputs):
            return None
        cases = [
            Case([encode(argument) for argument in arguments], encode(output))
            for arguments, output in zip(inputs, outputs, strict=True)
        ]
        facts = tuple(
            f"{ORDINALS[min(number, 1)]} {step.says}." for number, step in enumerate(steps)
        )
        question = f"Write the function {ENTRY}({', '.join(parameters)}) that returns the result."
        program = program_of(parameters, [step.code for step in steps])
        suite = Suite(
            "calls",
            public=tuple(cases[:PUBLIC]),
            hidden=tuple(cases[PUBLIC:]),
            entry=ENTRY,
            limits=LIMITS,
        )
        return Problem(
            id=f"{self._prefix}-{index}",
            statement=" ".join([*facts, question]),
            gold=program,
            source=self.name,
            split=self.split,
            index=index,
            level=self.level,
            facts=facts,
            question=question,
            payload={
                "family": name,
                "tests": suite.payload(),
                "reference": program,
                "solution": _solution(parameters, steps, program),
            },
        )


def program_of(parameters: Sequence[str], lines: Sequence[str]) -> str:
    """A function that takes its steps one after the other."""
    body = [f"    x = {code}" for code in lines[:-1]]
    return "\n".join([f"def {ENTRY}({', '.join(parameters)}):", *body, f"    return {lines[-1]}\n"])


def _solution(parameters: Sequence[str], steps: Sequence[Step], program: str) -> dict[str, Any]:
    helpers = []
    for number, step in enumerate(steps, start=1):
        taken = ", ".join(parameters) if number == 1 else "x"
        helpers.append(f"```python\ndef step{number}({taken}):\n    return {step.code}\n```")
    block = f"```python\n{program}```"
    return {
        "plan": [step.says for step in steps],
        "steps": helpers,
        "answer": block,
        "reply": block,
    }


def _result(meanings: Sequence[Meaning], arguments: Sequence[Any]) -> Any:
    value = meanings[0](*arguments)
    for meaning in meanings[1:]:
        value = meaning(value)
    return value


def _telling(steps: Sequence[Step], inputs: Sequence[list[Any]], outputs: Sequence[Any]) -> bool:
    """Whether the tests tell the program from those with one typical mistake.

    Mistakes: a step left out (of several parameters the first is then the result so far), or
    its number one too small or too large. The hidden tests must notice each.
    """
    if max(map(outputs.count, outputs)) > MOST_EQUAL * len(outputs):
        return False
    if max(map(inputs.count, inputs)) > 1:
        return False
    meanings = [step.meaning for step in steps]
    for place, step in enumerate(steps):
        for wrong in (_left_out, *step.near):
            changed = [*meanings[:place], wrong, *meanings[place + 1 :]]
            if not _noticed(changed, inputs[PUBLIC:], outputs[PUBLIC:]):
                return False
    return True


def _left_out(value: Any, *others: Any) -> Any:
    del others
    return value


def _noticed(
    meanings: Sequence[Meaning], inputs: Sequence[list[Any]], outputs: Sequence[Any]
) -> bool:
    try:
        return any(
            _result(meanings, arguments) != output
            for arguments, output in zip(inputs, outputs, strict=True)
        )
    except (TypeError, ValueError, ZeroDivisionError):
        return True
