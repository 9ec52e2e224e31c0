"""``make study-small``: four algorithms on two workflows with the embedded model.

MARFT at the action and at the token level, Independent PPO and GRPO on ``math-duo-v0`` and
``math-orch-workers-v0`` with a policy per role, and MARFT and GRPO on the latter with one for
all; three seeds each, equal budgets of generated tokens, equal settings wherever two
algorithms share one. Writes ``docs/results/small.md`` with its curves and raw figures.

Resumable: a run that was stopped goes on, a finished one is kept.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from flexmg.baselines.studies.cells import Cell, run
from flexmg.baselines.studies.report import write

SEEDS = (0, 1, 2)
# As many optimiser steps as two epochs of two minibatches, for half the passes.
STEPS = {"epochs": 1, "minibatches": 4}
ALGORITHMS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "marft-a": ("MARFT-A", "marft", {"level": "action", **STEPS}),
    "marft-t": ("MARFT-T", "marft", {"level": "token", **STEPS}),
    "ippo": ("IPPO", "ippo", {"level": "action", **STEPS}),
    "grpo": ("GRPO", "grpo", {"level": "token", **STEPS}),
}
# The tiny model's replies are short; a cap keeps runaway ones from costing time.
WORKFLOWS: dict[str, tuple[str, dict[str, Any], int]] = {
    "duo": ("math-duo-v0", {"token_limits": 48}, 40_000),
    "orch-workers": (
        "math-orch-workers-v0",
        {"mode": "strategies", "token_limits": 48},
        60_000,
    ),
}


def cells() -> list[Cell]:
    """The ten lines of the table."""
    made = []
    for workflow, (env, env_args, budget) in WORKFLOWS.items():
        for policies in ("isolated", "shared"):
            for name, (title, algorithm, settings) in ALGORITHMS.items():
                if policies == "shared" and not (
                    workflow == "orch-workers" and name in ("marft-a", "grpo")
                ):
                    continue
                chosen = {
                    "algorithm": algorithm,
                    "algorithm_args": settings,
                    "policies": policies,
                    "env_args": env_args,
                    "iterations": None,
                    "budget_tokens": budget,
                    "problems": 16,
                    "samples": 4,
                    "eval_problems": 300,
                    "checkpoint_every": 5,
                    "diagnose_every": 0,
                }
                made.append(Cell(f"{workflow}-{name}-{policies}", title, env, chosen))
    return made


def main() -> None:
    """Command line: ``--runs`` where the runs go, ``--out`` the results, ``--processes``."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=Path, default=Path("runs/study-small"))
    parser.add_argument("--out", type=Path, default=Path("docs/results"))
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--report-only", action="store_true", help="of runs that are finished")
    options = parser.parse_args()
    if not options.report_only:
        run(cells(), SEEDS, options.runs, options.processes)
    write(cells(), SEEDS, options.runs, options.out)


if __name__ == "__main__":
    main()
