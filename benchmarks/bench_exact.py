"""Estimators and update schemes on exact games: bias, variance, improvement. No timings.

Every figure of the first table is a sum over all episodes of a game; those of the second are
means of exact improvements over sampled batches, with standard errors.

    python -m benchmarks exact
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any

import torch

from flexmg.baselines.algorithms.grpo import GRPO, GRPOConfig
from flexmg.baselines.algorithms.ippo import IPPO, IPPOConfig
from flexmg.baselines.algorithms.marft import MARFT, MARFTConfig
from flexmg.baselines.exact.estimators import estimators, improvements, moments
from flexmg.baselines.exact.team import TabularTeam
from flexmg.baselines.exact.tree import GameTree

GAMES = ("coordination", "signalling", "relay", "corridor")
LARGE: dict[str, Any] = {
    "epochs": 1,
    "minibatches": 1,
    "target_kl": None,
    "max_grad_norm": 1e9,
}


def bias_and_variance(seed: int) -> None:
    """Of every estimator at a random team, without standardisation."""
    print(f"Gradient estimators at a random team (seed {seed}); relative to the exact gradient:")
    print(f"{'game':14}{'estimator':44}{'bias':>8}{'cosine':>9}{'noise':>9}")
    for name in GAMES:
        tree = GameTree(f"game-{name}-v0")
        team = tree.team(seed=seed)
        for label, (estimator, group) in estimators(tree, team).items():
            found = moments(tree, team, estimator, group)
            print(f"{name:14}{label:44}{found.bias:8.3f}{found.cosine:9.3f}{found.deviation:9.2f}")
        print()


def schemes(batches: int) -> None:
    """One update of the coordination game from p(B) = 0.2, 64 episodes."""
    tree = GameTree("game-coordination-v0")
    step: dict[str, dict[str, Any]] = {
        "small steps (lr 0.1, clip 0.2)": {**LARGE, "lr": 0.1},
        "large steps (lr 2, clip 0.2, 4 epochs)": {**LARGE, "lr": 2.0, "epochs": 4},
        "large steps, no clip (lr 4)": {**LARGE, "lr": 4.0, "clip": math.inf},
    }
    made: dict[str, Callable[[TabularTeam, dict[str, Any]], Any]] = {
        "MARFT, happo": lambda t, s: MARFT(t, MARFTConfig(**s), temperature=1.0),
        "MARFT, recollect": lambda t, s: MARFT(
            t, MARFTConfig(importance="recollect", **s), temperature=1.0
        ),
        "MARFT, none (MAPPO)": lambda t, s: MARFT(
            t, MARFTConfig(importance="none", **s), temperature=1.0
        ),
        "IPPO": lambda t, s: IPPO(t, IPPOConfig(**s), temperature=1.0),
        "GRPO, groups of 64": lambda t, s: GRPO(
            t, GRPOConfig(level="action", **s), temperature=1.0
        ),
    }
    print(f"Improvement of J by one update, game-coordination-v0, {batches} batches of 64:")
    for title, settings in step.items():
        print(f"  {title}")
        for label, learner in made.items():
            critics = ("row_0", "column_0") if label == "IPPO" else ("central",)

            def team(critics: tuple[str, ...] = critics) -> TabularTeam:
                fresh = tree.team(critics)
                for table in fresh.tables.values():
                    table.data[:, 1] = math.log(0.25)
                return fresh

            def build(t: TabularTeam, learner: Any = learner, settings: Any = settings) -> Any:
                return learner(t, settings)

            gains = improvements(tree, team, build, episodes=64, batches=batches)
            error = gains.std(ddof=1) / math.sqrt(batches)
            worse = (gains < 0).mean()
            print(f"    {label:24}{gains.mean():+8.3f} ± {error:.3f}   worse in {worse:4.0%}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--batches", type=int, default=100)
    options = parser.parse_args()
    torch.set_num_threads(1)
    bias_and_variance(options.seed)
    schemes(options.batches)


if __name__ == "__main__":
    main()
