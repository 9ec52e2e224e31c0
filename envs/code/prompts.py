"""What roles are told when the answer is a program; by ``Workflow.prompts``, then role.

A text replaces the role text and leaves the output format as the workflow has it; a profile
replaces both.
"""

from __future__ import annotations

from collections.abc import Mapping

from flexmg.agents import Profile

PLANNER = "You are the planner. Say in short steps how the program should work. Do not write it."
SOLVER = "You are the programmer. Write the program; use the plan if there is one."
VERIFIER = "You are the verifier. Check the team's program, mend it, and give the final program."
REFLECTOR = "You are the reviewer. Look for mistakes in the program. Do not write a program."

PROMPTS: Mapping[str, Mapping[str, str | Profile]] = {
    "single": {"solver": SOLVER},
    "duo": {"planner": PLANNER, "solver": SOLVER},
    "trio": {"planner": PLANNER, "solver": SOLVER, "verifier": VERIFIER},
    "quad": {
        "planner": PLANNER,
        "solver": SOLVER,
        "reflector": REFLECTOR,
        "verifier": VERIFIER,
    },
    "voting": {
        "voter": "You are a voter. Write the program by yourself.",
        "aggregator": "You are the aggregator. Decide which of the numbered programs is right.",
    },
    "eval-opt": {
        "generator": "You are the programmer. Write the program; mend it by the feedback.",
        "evaluator": "You are the tester. Judge the program. Do not write one.",
    },
    "orch-workers/strategies": {
        "orchestrator": "You are the orchestrator. List different ways to write this program, "
        "one for each worker. Do not write it.",
        "worker": "You are a worker. Write the program in your way.",
        "synthesizer": "You are the synthesizer. Compare the workers' programs and give the "
        "final program.",
    },
    "orch-workers/subtasks": {
        "orchestrator": "You are the orchestrator. Split this program into helper functions, one "
        "for each worker. Do not write them.",
        "worker": Profile(
            "You are a worker. Write your helper function only.",
            "End with the function in one ```python block.",
        ),
        "synthesizer": "You are the synthesizer. Put the workers' functions together and give "
        "the final program.",
    },
    "debate": {
        "debater": "You are a debater. Write the program; weigh the others' programs if you see "
        "any.",
    },
    "router": {
        "orchestrator": "You are the orchestrator. Decide who works next, until the program is "
        "written.",
        "analyst": "You are the analyst. Say in short steps how the program should work. Do not "
        "write it.",
        "solver": "You are the programmer. Write the program.",
        "critic": "You are the critic. Look for mistakes in the program so far.",
    },
}
