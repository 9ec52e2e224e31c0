"""Golden playthroughs: whole episodes as text, so that any change of a prompt or rule shows.

    python tests/playthroughs/playthroughs.py

writes them anew; read the difference before it is committed.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import flexmg

FOLDER = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Playthrough:
    """One episode to be written down.

    Args:
        id: the environment, ``variant``: what is special, part of the file's name.
        kwargs: for ``flexmg.make``.
        problem: index of the problem.
        says: texts per agent, in which ``{gold}`` and (in maths) ``{wrong}`` stand for a right
            and a wrong answer; who has none left does what the environment demonstrates.
    """

    id: str
    variant: str = ""
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    problem: int = 0
    says: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return "-".join(filter(None, [self.id, self.variant])) + ".txt"

    def text(self) -> str:
        """The episode, from the problem to the rewards."""
        env = flexmg.make(self.id, **self.kwargs)
        env.reset(seed=0, options={"problem": self.problem})
        parts = [f"{self.id} {dict(self.kwargs)}", _problem(env)]
        while not env.finished:
            agent = env.agent_selection
            observation = env.observe(agent)
            env.step(self._action(env, agent))
            turn = next(t for t in reversed(env.turns) if t.agent == agent)
            parts.append(_turn(env, turn, observation))
        return "\n\n".join([*parts, _end(env)]) + "\n"

    def _action(self, env: Any, agent: str) -> str:
        taken = sum(turn.agent == agent for turn in env.turns)
        said = self.says.get(agent, ())
        if taken >= len(said):
            return env.demonstrate(agent)
        text = said[taken].replace("{gold}", env.problem.gold)
        if "{wrong}" in text:
            text = text.replace("{wrong}", str(int(env.problem.gold) + 1))
        return text


def _problem(env: Any) -> str:
    return f"problem {env.problem.id}: {env.problem.statement}\ngold {env.problem.gold}"


def _block(name: str, text: str) -> str:
    return f"{name}:\n{textwrap.indent(text, '    ', lambda line: True)}"


def _turn(env: Any, turn: flexmg.Turn, observation: Mapping[str, Any]) -> str:
    column = "".join(map(str, observation["dependencies"].tolist()))
    lines = [
        f"---- turn {turn.position}: {turn.agent} (step {turn.step}, round {turn.round}, "
        f"layer {turn.layer})",
        f"sees {', '.join(turn.sees) or 'nobody'} ({column}), may write "
        f"{env.specs[turn.agent].token_limit} tokens",
        _block("profile", observation["profile"]),
        *(_block(message["role"], message["content"]) for message in observation["messages"]),
        _block("ACTION", turn.text),
    ]
    if turn.report:
        lines.append(_block("REPORT", turn.report))
    if turn.value is not None:
        lines.append(f"read as {turn.value!r}")
    if turn.fallback:
        lines.append(f"FALLBACK {turn.fallback}")
    return "\n".join(lines)


def _end(env: Any) -> str:
    outcome = env.outcome
    steps = range(len(outcome.step_rewards))
    lines = ["---- end"]
    lines += [f"D of step {step}: {env.graph(step).ascii().splitlines()[0]}" for step in steps]
    lines += [
        f"answer of {', '.join(outcome.designated)}: {outcome.verdict.status}, "
        f"{outcome.verdict.answer!r} by {outcome.verdict.rule!r}, score {outcome.verdict.score}",
        *([f"FALLBACK {outcome.fallback}"] if outcome.fallback else []),
        f"rewards {outcome.rewards}",
        f"central stream {list(outcome.step_rewards)}",
        f"truth {outcome.truth}",
    ]
    return "\n".join(lines)


def our_ids() -> list[str]:
    """The registered ids that are not a third party's."""
    entries = {spec.id: spec.entry_point for spec in flexmg.registered()}
    modules = {id: getattr(entry, "func", entry) for id, entry in entries.items()}
    return [
        id
        for id, build in modules.items()
        if getattr(build, "__module__", str(build)).startswith("flexmg.envs.")
    ]


BUGGY = "Like this:\n```python\ndef f(*values):\n    return len(values)\n```"
FAILING = "```python\ndef f(*values):\n    return values[7]\n```"
SEVEN = "\n".join(f"{k}. Strategy number {k}." for k in range(1, 8))
PLAYTHROUGHS = [
    *map(Playthrough, our_ids()),
    Playthrough("math-duo-v0", "split", {"information": "split"}, problem=3),
    Playthrough("math-quad-v0", "anonymous", {"profiles": "anonymous"}, problem=1),
    Playthrough("math-quad-v0", "blind", {"dependencies": "none"}, problem=2),
    Playthrough(
        "math-quad-v0",
        "local",
        {"reward": "local"},
        says={"solver_0": [r"\boxed{{wrong}}"], "reflector_0": ["I am not sure."]},
    ),
    Playthrough(
        "math-voting-v0",
        "fallback",
        says={
            "voter_0": ["I do not know."],
            "voter_1": [r"\boxed{{gold}}"],
            "voter_2": [r"\boxed{{wrong}}"],
            "aggregator_0": [r"The answer is \boxed{{gold}}."],
        },
    ),
    Playthrough(
        "math-voting-v0",
        "five-local",
        {"n": 5, "reward": {"team": 0.5, "local": 0.5}},
        says={
            "voter_0": [r"\boxed{{wrong}}"],
            "voter_1": [r"\boxed{{gold}}"],
            "aggregator_0": ["Best: 1"],
        },
    ),
    Playthrough(
        "math-eval-opt-v0",
        "refused-once",
        says={
            "generator_0": [r"\boxed{{wrong}}"],
            "evaluator_0": ["Incorrect. Check the last step."],
        },
    ),
    Playthrough(
        "math-eval-opt-v0",
        "capped",
        {"cap": 2, "profiles": "anonymous"},
        says={"generator_0": [r"\boxed{{wrong}}"] * 2, "evaluator_0": ["Hm.", "Not correct."]},
    ),
    Playthrough("math-orch-workers-v0", "subtasks", {"mode": "subtasks"}, problem=5),
    Playthrough("math-orch-workers-v0", "anonymous", {"profiles": "anonymous"}, problem=4),
    Playthrough(
        "math-orch-workers-v0", "split", {"information": "split", "n": 2, "level": 3}, problem=6
    ),
    Playthrough("math-orch-workers-v0", "seven-lines", {"n": 4}, says={"orchestrator_0": [SEVEN]}),
    Playthrough("math-orch-workers-v0", "shuffled", {"dependencies": "shuffled"}, problem=2),
    Playthrough(
        "math-debate-v0",
        "tie",
        {"n": 3, "rounds": 3, "reward": "designated"},
        says={
            "debater_0": ["I do not know."] * 3,
            "debater_1": [r"\boxed{{gold}}"] * 3,
            "debater_2": [r"\boxed{{gold}}", r"\boxed{{wrong}}", r"\boxed{{wrong}}"],
        },
    ),
    Playthrough(
        "math-router-v0",
        "chain",
        says={
            "orchestrator_0": [
                "CALL: analyst_0 -> solver_0 -> critic_0",
                "CALL: critic_0, Solver",
                "DONE",
            ]
        },
    ),
    Playthrough(
        "code-eval-opt-v0",
        "execution",
        {"feedback": "execution", "cap": 3},
        says={
            "generator_0": [BUGGY, FAILING],
            "evaluator_0": ["Incorrect. A test fails.", "Incorrect. It fails."],
        },
    ),
    Playthrough("code-orch-workers-v0", "subtasks", {"mode": "subtasks", "level": 3}, problem=2),
    Playthrough("code-duo-v0", "split", {"information": "split"}, problem=3),
    Playthrough(
        "code-voting-v0",
        "fallback",
        {"score": "fraction"},
        says={
            "voter_0": ["I cannot program."],
            "voter_1": [BUGGY],
            "aggregator_0": ["All of them."],
        },
    ),
    Playthrough(
        "code-router-v0",
        "direct",
        {"profiles": "anonymous"},
        problem=4,
        says={"orchestrator_0": ["CALL: analyst_0", "DONE\n```python\n{gold}```"]},
    ),
    Playthrough(
        "math-router-v0",
        "unclear",
        {"cap": 2, "profiles": "anonymous"},
        says={"orchestrator_0": ["The solver should go on.", "CALL: solver_0, the professor"]},
    ),
]


if __name__ == "__main__":
    for playthrough in PLAYTHROUGHS:
        (FOLDER / playthrough.name).write_text(playthrough.text(), encoding="utf-8")
        print(playthrough.name)
