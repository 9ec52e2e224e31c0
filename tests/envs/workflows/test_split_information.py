"""With divided facts nobody can solve a problem alone, and D is what makes the difference."""

from __future__ import annotations

import pytest
from scripted import begin, prompt
from sums import team

import flexmg
from flexmg.errors import InvalidArgument

GAMES = [
    ("math-duo-v0", {}),
    ("math-orch-workers-v0", {}),
    ("math-orch-workers-v0", {"n": 2, "mode": "subtasks"}),
    ("math-orch-workers-v0", {"n": 5, "level": 5}),
]


def accuracy(id, problems=50, **options):
    env = flexmg.make(id, information="split", **options)
    right = 0
    for index in range(problems):
        env.reset(seed=0, options={"problem": index})
        while not env.finished:
            env.step(env.demonstrate(env.agent_selection))
        right += env.outcome.verdict.correct
    return right / problems


def facts_shown(env, agent):
    shown = prompt(env, agent)
    return [fact for fact in env.problem.facts if fact in shown]


@pytest.mark.parametrize(("id", "options"), GAMES)
def test_an_oracle_team_solves_everything_with_d(id, options):
    assert accuracy(id, **options) == 1.0


@pytest.mark.parametrize(("id", "options"), GAMES)
def test_an_oracle_team_solves_nothing_without_d(id, options):
    assert accuracy(id, dependencies="none", **options) == 0.0


def test_an_oracle_team_with_the_whole_problem_does_not_need_d():
    env = flexmg.make("math-duo-v0", dependencies="none")
    env.reset(seed=0)
    while not env.finished:
        env.step(env.demonstrate(env.agent_selection))
    assert env.outcome.verdict.correct


@pytest.mark.parametrize("index", range(5))
def test_every_fact_goes_to_one_agent_of_the_duo(index):
    env = begin(flexmg.make("math-duo-v0", information="split"), problem=index)
    shown = facts_shown(env, "planner_0") + facts_shown(env, "solver_0")
    assert sorted(shown) == sorted(env.problem.facts)
    assert facts_shown(env, "planner_0") and facts_shown(env, "solver_0")


def test_every_fact_goes_to_one_worker_and_to_nobody_else():
    env = begin(flexmg.make("math-orch-workers-v0", information="split", level=3))
    assert facts_shown(env, "orchestrator_0") == []
    env.step("1. a\n2. b\n3. c")
    shown = [fact for k in range(3) for fact in facts_shown(env, f"worker_{k}")]
    assert sorted(shown) == sorted(env.problem.facts)
    assert facts_shown(env, "synthesizer_0") == []


def test_everybody_is_asked_the_question():
    env = begin(flexmg.make("math-duo-v0", information="split"))
    assert all(env.problem.question in prompt(env, agent) for agent in env.agents)


@pytest.mark.parametrize("workflow", ["single", "trio", "voting", "debate", "router", "eval-opt"])
def test_other_workflows_cannot_split(workflow):
    with pytest.raises(InvalidArgument, match=f"'{workflow}' cannot split information"):
        team(workflow, information="split")


def test_another_word_is_refused():
    with pytest.raises(InvalidArgument, match="neither 'full' nor 'split'"):
        team("duo", information="half")


def test_a_problem_without_facts_is_refused_at_reset_and_the_game_goes_on():
    env = team("duo", information="split")
    with pytest.raises(InvalidArgument, match="no facts to divide"):
        env.reset(seed=0)
    with pytest.raises(flexmg.errors.ResetNeeded):
        env.observe("planner_0")
