"""A subject that needs no optional package: sums of small whole numbers, exactly graded."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import flexmg
from flexmg.envs.workflows import WORKFLOWS
from flexmg.errors import UnknownProblem

SUM = re.compile(r"-?\d+")


@dataclass(frozen=True)
class Sums:
    """Problem k: what is a + b, with both numbers read off k."""

    name: str = "sums"
    split: str = "train"
    size: int | None = 50

    def get(self, index: int) -> flexmg.Problem:
        if not 0 <= index < 50:
            raise UnknownProblem(f"sums has no problem {index}")
        a, b = 3 + index, 11 + 7 * index % 13
        solution = {
            "plan": [f"Take {a}.", f"Add {b} to it."],
            "steps": [f"{a} + {b} = {a + b}"],
            "answer": f"Answer: {a + b}",
        }
        return flexmg.Problem(
            id=f"sums/{index}",
            statement=f"What is {a} + {b}?",
            gold=str(a + b),
            source="sums",
            index=index,
            payload={"solution": solution},
        )

    def find(self, id: str) -> flexmg.Problem:
        name, _, index = id.partition("/")
        if name != "sums" or not index.isdigit():
            raise UnknownProblem(f"sums has no problem {id!r}")
        return self.get(int(index))


class SumDomain:
    name = "sums"
    answer_format = "End with Answer: and the sum."

    def grade(self, problem: flexmg.Problem, reply: str) -> flexmg.Verdict:
        answer = self.answer_key(problem, reply)
        if answer is None:
            return flexmg.Verdict(0.0, "unparseable")
        right = answer == problem.gold
        return flexmg.Verdict(float(right), "correct" if right else "wrong", answer=answer)

    def answer_key(self, problem: flexmg.Problem, reply: str) -> str | None:
        """The number after the last ``Answer:``."""
        _, said, tail = reply.rpartition("Answer:")
        found = SUM.search(tail) if said else None
        return found[0] if found else None


def team(
    workflow: str | type[flexmg.Workflow],
    game: type[flexmg.FlexMarkovGame] = flexmg.FlexMarkovGame,
    *,
    reward: Any = "team",
    dependencies: Any = "designed",
    render_mode: str | None = None,
    **options: Any,
) -> flexmg.FlexMarkovGame:
    """A game of sums with one of our workflows, or with a workflow of a test's own."""
    cls = WORKFLOWS[workflow] if isinstance(workflow, str) else workflow
    return game(
        cls(SumDomain(), **options),
        Sums(),
        reward=reward,
        dependencies=dependencies,
        render_mode=render_mode,
    )


def played(env: Any, policy: Any = None, seed: int = 0) -> dict[str, float]:
    """Play one episode to the last dead step; what each agent collected through ``last``.

    Without a policy every agent writes what the game demonstrates.
    """
    collected: dict[str, float] = {}
    env.reset(seed=seed)
    for agent in env.agent_iter():
        observation, reward, over, cut, _ = env.last()
        collected[agent] = collected.get(agent, 0.0) + reward
        if over or cut:
            env.step(None)
        elif policy is None:
            env.step(env.unwrapped.demonstrate(agent))
        else:
            env.step(policy(agent, observation))
    return collected
