"""Teams on several bases, frozen policies and guests, through the real collector and trainer."""

from __future__ import annotations

import io
import json
from pathlib import Path

import letter_game
import pytest
import torch
from rich.console import Console

from flexmg.baselines.algorithms.ippo import IPPO, IPPOConfig
from flexmg.baselines.algorithms.marft import MARFT, MARFTConfig
from flexmg.baselines.models.base import load_base
from flexmg.baselines.models.team import Team
from flexmg.baselines.rollout.collector import Collector, RolloutSettings
from flexmg.baselines.training.launch import launch
from flexmg.errors import InvalidArgument

AGENTS = ("writer_0", "copyist_0")


@pytest.fixture(autouse=True)
def game() -> None:
    letter_game.register()


def moved(before, after) -> bool:
    return any(not torch.equal(before[name], after[name]) for name in before)


@pytest.mark.parametrize("level", ["action", "token"])
@pytest.mark.parametrize(("algorithm", "config"), [(MARFT, MARFTConfig), (IPPO, IPPOConfig)])
def test_a_team_of_two_models_with_two_vocabularies_learns(algorithm, config, level, model_folder):
    """tiny (a BPE of its own) writes, a random byte-level model of another width copies."""
    tiny, bytes_ = load_base("tiny", device="cpu"), load_base(str(model_folder), device="cpu")
    assert tiny.width != bytes_.width
    assert tiny.tokenizer.get_vocab() != bytes_.tokenizer.get_vocab()
    critics = algorithm.critics(("writer", "copyist"))
    team = Team(tiny, AGENTS, critics=critics, others={"copyist": bytes_})
    learner = algorithm(team, config(level=level, lr=0.01), temperature=1.0)
    collector = Collector(letter_game.ENV, team, settings=RolloutSettings(games=3))
    before = team.state()
    batch = collector.collect([0, 1, 2], 4, (1,))
    for one in batch.episodes:
        writer, copyist = one.turns
        assert tiny.tokenizer.decode(writer.action_ids, skip_special_tokens=True) == writer.text
        assert writer.text in bytes_.tokenizer.decode(copyist.state_ids)
    metrics = learner.update(batch, (1,), lambda place: batch)
    after = team.state()
    for policy in ("writer", "copyist"):
        assert moved(before["policies"][policy], after["policies"][policy])
        assert metrics["policies"][policy]["engine_gap"] < 1e-3
    for critic in critics:
        assert moved(before["critics"][critic], after["critics"][critic])


def test_policies_that_name_one_model_share_it_in_memory(model_folder):
    base = load_base(str(model_folder), device="cpu")
    other = load_base("tiny", device="cpu")
    agents = ("one_0", "two_0", "three_0", "four_0")
    team = Team(base, agents, others={"two": other, "four": other})
    assert team.bases == (base, other)
    assert team.adapters_of("two") is team.adapters_of("four")
    assert team.adapters_of("one") is team.adapters_of("three") is team.adapters
    with pytest.raises(InvalidArgument, match="did you mean 'four'"):
        Team(load_base("tiny", device="cpu"), agents, others={"for": other})


def train(model: Path, folder: Path, iterations: int = 2, **more) -> list[dict]:
    given = letter_game.settings(str(model), iterations, eval_problems=0, **more)
    launch(given, folder, resume=False, console=Console(file=io.StringIO()))
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def adapter(folder: Path, policy: str) -> dict[str, torch.Tensor]:
    state = torch.load(folder / "checkpoint" / "state.pt", weights_only=True)
    return state["team"]["policies"][policy]


@pytest.mark.parametrize("algorithm", ["marft", "ippo", "grpo"])
def test_a_frozen_policy_acts_and_stays_bit_identical(algorithm, model_folder, tmp_path):
    rows = train(
        model_folder, tmp_path, algorithm=algorithm, algorithm_args={"lr": 0.01}, freeze=["writer"]
    )
    fresh = Team(load_base(str(model_folder), device="cpu"), AGENTS, seed=11)
    for policy, same in (("writer", True), ("copyist", False)):
        assert moved(fresh.state()["policies"][policy], adapter(tmp_path, policy)) is not same
    assert rows[0]["roles"]["writer"]["turns"] == 8
    assert rows[0]["policies"].keys() == {"copyist"}


def test_freezing_somebody_unknown_or_everybody_is_refused(model_folder, tmp_path):
    with pytest.raises(InvalidArgument, match="did you mean 'writer'"):
        train(model_folder, tmp_path / "a", freeze=["write"])
    with pytest.raises(InvalidArgument, match="no policy of this team learns"):
        train(model_folder, tmp_path / "b", freeze=["writer", "copyist"])


@pytest.mark.parametrize("algorithm", ["marft", "ippo", "grpo"])
@pytest.mark.parametrize("level", ["action", "token"])
def test_a_random_guest_plays_beside_a_policy_that_learns(algorithm, level, model_folder, tmp_path):
    rows = train(
        model_folder,
        tmp_path,
        algorithm=algorithm,
        algorithm_args={"lr": 0.01, "level": level},
        policies={"writer": "random", "copyist": "mine"},
    )
    assert rows[0]["policies"].keys() == {"mine"} and rows[0]["policies"]["mine"]["used"] > 0
    assert rows[0]["roles"]["writer"]["turns"] == 8
    assert rows[0]["infra_errors"] == 0


def test_a_scripted_guest_demonstrates(tmp_path):
    """A scripted planner of math-duo, and the tiny model as the solver."""
    launch(
        {
            "env": "math-duo-v0",
            "policies": {"planner": "scripted", "solver": "solver"},
            "iterations": 1,
            "problems": 8,
            "samples": 1,
            "eval_problems": 0,
            "logged_episodes": 8,
        },
        tmp_path,
        resume=False,
        console=Console(file=io.StringIO()),
    )
    lines = (tmp_path / "episodes" / "iteration-00001.jsonl").read_text().splitlines()
    import flexmg

    game = flexmg.make("math-duo-v0").unwrapped
    for line in lines:
        transcript = json.loads(line)
        game.reset(seed=transcript["seed"], options={"problem": transcript["problem"]})
        assert transcript["turns"][0]["text"] == game.demonstrate("planner_0")


def test_a_team_of_guests_alone_is_refused(model_folder):
    with pytest.raises(InvalidArgument, match="all policies are guests"):
        Team(
            load_base(str(model_folder), device="cpu"),
            AGENTS,
            policy_map={"writer": "random", "copyist": "scripted"},
        )
