"""The conformance suite passes what keeps the rules, and catches each broken one."""

from __future__ import annotations

import importlib.util
import random
import subprocess
import sys
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from broken_games import GAMES, Poll, broken
from sums import SumDomain, Sums, team

import flexmg
from flexmg.envs.workflows import WORKFLOWS
from flexmg.errors import ConformanceError, InvalidArgument
from flexmg.testing import check_env
from flexmg.wrappers import RewardMode

FAULTS_OF_ONE_PROCESS = [name for name in GAMES if name != "DependsOnHashes"]


def quick(env: Any, **settings: Any) -> None:
    """The suite without other processes, which cost a second each."""
    check_env(env, **{"hash_seeds": (), "seeds": (0,), "orders": 6, **settings})


@pytest.mark.parametrize("workflow", [*WORKFLOWS, Poll])
def test_a_game_that_keeps_the_rules_passes(workflow):
    quick(team(workflow))


@pytest.mark.parametrize("ablation", ["none", "full", "shuffled"])
def test_a_game_passes_under_every_ablation_of_d(ablation):
    quick(team("orch-workers", dependencies=ablation))


@pytest.mark.parametrize("reward", ["designated", "local", {"team": 0.5, "format": 0.1}])
def test_a_game_passes_under_every_reward(reward):
    quick(team("voting", reward=reward))


@pytest.mark.parametrize("name", FAULTS_OF_ONE_PROCESS)
def test_a_broken_rule_is_caught_and_named(name):
    rule = GAMES[name][0]
    with pytest.raises(ConformanceError, match=f"^{rule}: "):
        quick(broken(name))


def test_dependence_on_hashes_is_caught_in_another_process():
    with pytest.raises(ConformanceError, match=r"^determinism: .* PYTHONHASHSEED=") as caught:
        check_env(broken("DependsOnHashes"), seeds=(0,), orders=1, hash_seeds=(1, 2))
    assert "messages[0].content" in str(caught.value)


def test_a_sound_game_passes_in_other_processes():
    check_env(team(Poll), seeds=(0,), orders=1, hash_seeds=(3,))


def test_a_leak_is_reported_with_both_agents_and_the_place():
    leak = (
        r"after step 4 of .* the observation of voter_0 \(env step 1\) holds text of the turn that "
        r"voter_1 took in env step 0"
    )
    with pytest.raises(ConformanceError, match=leak):
        quick(broken("LeaksThroughAnAttribute"))


def test_given_actions_drive_what_random_texts_miss():
    class Password(Poll):
        """Only one text makes it stumble."""

        def parse(self, agent, text):
            if text.startswith("open sesame"):
                raise RuntimeError("the door is stuck")
            return super().parse(agent, text)

    game = flexmg.FlexMarkovGame(_registered(Password)(SumDomain()), Sums())
    with pytest.raises(ConformanceError, match="the door is stuck"):
        quick(game, actions=lambda agent, observation: "open sesame")


def _registered(cls: type) -> type:
    """Let pickle find a class that a test defines."""
    globals()[cls.__name__] = cls
    cls.__qualname__ = cls.__name__
    return cls


def test_an_environment_that_cannot_be_built_again_is_refused():
    game = team(Poll)
    game.on_step = lambda: None
    with pytest.raises(ConformanceError, match=r"rebuilding: .*no spec and cannot be pickled"):
        quick(game)


def test_a_wrapped_environment_is_checked_inside():
    quick(RewardMode(team(Poll), "local"))


def test_what_is_no_flexible_markov_game_is_refused():
    with pytest.raises(InvalidArgument, match="not str"):
        check_env("math-duo-v0")


def test_the_callers_global_generators_are_left_as_they_were():
    random.seed(5)
    np.random.seed(5)
    quick(team("single"), orders=1)
    drawn = random.random(), np.random.random()
    random.seed(5)
    np.random.seed(5)
    assert drawn == (random.random(), np.random.random())


SCRIPT = """
import warnings
import flexmg
from sums import SumDomain, Sums

class Alone(flexmg.Workflow):
    name = "alone"
    roles = {"solver": flexmg.Profile("Add.")}

    def team(self):
        return ["solver_0"]

    def plan(self, history):
        if not history.turns:
            return flexmg.Round((flexmg.Call("solver_0"),))
        return flexmg.Finish(history.turns[-1].text, ("solver_0",))

def alone():
    return flexmg.FlexMarkovGame(Alone(SumDomain()), Sums())

flexmg.register("alone-v0", alone)
for env in (flexmg.make("alone-v0"), alone()):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        flexmg.testing.check_env(env)
    assert ["not checked" in str(one.message) for one in caught] == [True], caught
"""


def test_an_environment_of_a_script_is_checked_with_a_warning():
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_an_environment_of_a_module_that_is_on_no_path_is_checked_elsewhere(tmp_path, monkeypatch):
    file = tmp_path / "hidden.py"
    file.write_text(SCRIPT.partition("flexmg.register")[0])
    found = importlib.util.spec_from_file_location("nowhere.hidden", file)
    module = importlib.util.module_from_spec(found)
    monkeypatch.setitem(sys.modules, "nowhere", ModuleType("nowhere"))
    monkeypatch.setitem(sys.modules, "nowhere.hidden", module)
    found.loader.exec_module(module)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(module.alone(), seeds=(0,), hash_seeds=(1,))
