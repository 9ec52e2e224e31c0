"""A random language model learns a game, by each algorithm."""

from __future__ import annotations

import io
import json

import letter_game
import pytest
from rich.console import Console

from flexmg.baselines.training.launch import launch


@pytest.mark.full
@pytest.mark.parametrize("algorithm", ["marft", "ippo"])
def test_reward_rises(algorithm, model_folder, tmp_path):
    """From replies that are letters by chance to replies that mostly are."""
    letter_game.register()
    given = letter_game.settings(
        str(model_folder),
        25,
        algorithm=algorithm,
        algorithm_args={"lr": 0.01, "critic_lr": 0.01},
        problems=8,
        eval_problems=0,
    )
    launch(given, tmp_path / "run", resume=False, console=Console(file=io.StringIO()))
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    rewards = [json.loads(line)["reward"] for line in lines]
    assert sum(rewards[-3:]) / 3 > sum(rewards[:3]) / 3 + 0.2
