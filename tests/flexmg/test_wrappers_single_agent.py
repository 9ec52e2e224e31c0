from __future__ import annotations

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env
from sums import team

from flexmg.errors import GameError, InvalidArgument
from flexmg.wrappers import RewardMode, SingleAgent


def scripted(env):
    """A policy that lets the game demonstrate."""
    return lambda agent, observation: env.unwrapped.demonstrate(agent)


def alone(workflow, learner, policies=None, **options):
    game = team(workflow, **options)
    return SingleAgent(game, learner, policies or scripted(game))


def finish(env, action, seed=0):
    """Play one episode with one action; the rewards of its steps."""
    _, info = env.reset(seed=seed)
    rewards = []
    while True:
        text = action(info["agent"]) if callable(action) else action
        _, reward, terminated, truncated, info = env.step(text)
        rewards.append(reward)
        if terminated or truncated:
            return rewards


# gymnasium warns that a game of texts has no render fps it knows of and no spec of its own.
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("workflow", "learner"),
    [("duo", "planner"), ("voting", "voter_1"), ("eval-opt", "generator"), ("debate", "debater")],
)
def test_gymnasiums_own_checks_pass(workflow, learner):
    check_env(alone(workflow, learner), skip_render_check=True)


def test_it_is_a_gymnasium_environment():
    assert isinstance(alone("duo", "planner"), gymnasium.Env)


def test_the_last_agent_gets_its_reward():
    env = alone("duo", "solver")
    env.reset(seed=0)
    assert env.step(env.env.demonstrate("solver_0"))[1:3] == (1.0, True)


def test_the_first_agent_gets_what_it_collects_in_its_dead_step():
    assert finish(alone("duo", "planner"), "any plan") == [1.0]


def test_a_reward_in_between_is_not_paid_early():
    env = alone("eval-opt", "generator")
    _, info = env.reset(seed=0)
    _, first, over, _, info = env.step("Answer: 0")
    assert (first, over) == (0.0, False)
    assert env.step(env.env.demonstrate(info["agent"]))[1:3] == (1.0, True)


def test_the_rewards_of_an_episode_add_up_to_the_agents_reward():
    env = alone("router", "solver", reward="local")
    rewards = finish(env, lambda agent: env.env.demonstrate(agent))
    assert sum(rewards) == env.env.outcome.rewards["solver_0"] == 1.0


def test_a_role_of_several_is_paid_the_teams_outcome_once():
    env = alone("voting", "voter")
    rewards = finish(env, lambda agent: env.env.demonstrate(agent))
    assert rewards == [0.0, 0.0, 1.0]


def test_a_role_of_several_is_paid_the_mean_of_its_own_rewards():
    env = alone("voting", "voter", reward="local")
    rewards = finish(
        env, lambda agent: env.env.demonstrate(agent) if agent == "voter_0" else "Answer: 0"
    )
    assert sum(rewards) == pytest.approx(1 / 3)


def test_the_observation_is_that_of_the_learner():
    env = alone("duo", "solver")
    observation, info = env.reset(seed=0)
    assert info["agent"] == "solver_0"
    assert "Planner:" in observation["messages"][0]["content"]


def test_policies_may_be_given_by_role_and_by_name():
    said = []
    game = team("trio")
    policies = {
        "planner": lambda agent, observation: said.append(agent) or "a plan",
        "solver_0": lambda agent, observation: said.append(agent) or "Answer: 0",
    }
    finish(SingleAgent(game, "verifier", policies), "Answer: 0")
    assert said == ["planner_0", "solver_0"]


def test_episodes_without_the_learner_are_left_out_and_counted():
    calls = []

    def orchestrator(agent, observation):
        calls.append(agent)
        return "1. alone" if len(calls) < 4 else "1. one\n2. two\n3. three"

    env = alone("orch-workers", "worker_2", lambda a, o: orchestrator(a, o) if "orch" in a else "x")
    assert env.reset(seed=0)[1]["skipped"] == 3


def test_a_learner_that_is_never_called_is_an_error():
    env = alone("orch-workers", "worker_2", lambda agent, observation: "1. alone")
    with pytest.raises(GameError, match="worker_2 was not called in 100 episodes"):
        env.reset(seed=0)


def test_an_unknown_learner_is_refused():
    with pytest.raises(InvalidArgument, match="nobody is called 'voter'"):
        alone("duo", "voter")


def test_a_missing_policy_is_refused():
    with pytest.raises(InvalidArgument, match="solver_0 has no policy"):
        alone("duo", "planner", {"verifier": lambda agent, observation: ""})


@pytest.mark.parametrize("begun", [False, True])
def test_a_step_outside_an_episode_is_refused(begun):
    env = alone("duo", "planner")
    if begun:
        finish(env, "a plan")
    with pytest.raises(GameError, match="call reset"):
        env.step("a plan")


def test_it_stands_over_another_reward():
    game = team("voting")
    env = SingleAgent(RewardMode(game, "designated"), "voter_1", scripted(game))
    assert finish(env, "Answer: 0") == [0.0]
