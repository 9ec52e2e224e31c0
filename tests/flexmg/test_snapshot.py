"""Going back to a point of an episode, and branching from it."""

from __future__ import annotations

import copy
import pickle

import pytest
from scripted import act, begin
from sums import team

from flexmg.errors import GameError

RIGHT, WRONG = "Answer: 14", "Answer: 15"
FIRST = {"orchestrator_0": "1. add\n2. count", "worker_0": RIGHT, "worker_1": WRONG}


def orchestra(until=2, **options):
    return act(begin(team("orch-workers", **options)), FIRST, until)


def ending(env, *texts):
    for text in texts:
        env.step(text)
    return env.transcript()


def test_a_branch_ends_as_if_it_were_the_only_one():
    env = orchestra()
    start = env.snapshot()
    branches = []
    for texts in [(RIGHT, RIGHT), (WRONG, WRONG), (RIGHT, WRONG)]:
        env.restore(start)
        branches.append(ending(env, *texts))
    straight = [
        ending(orchestra(), *texts) for texts in [(RIGHT, RIGHT), (WRONG, WRONG), (RIGHT, WRONG)]
    ]
    assert branches == straight


def test_a_branch_shows_each_agent_its_own_past():
    env = orchestra(until=1)
    start = env.snapshot()
    shown = []
    for text in ("FIRST", "SECOND"):
        env.restore(start)
        ending(env, text, "x")
        shown.append(str(env.observe("synthesizer_0")["messages"]))
    assert "FIRST" in shown[0] and "SECOND" in shown[1] and "FIRST" not in shown[1]


def test_the_state_is_that_of_the_snapshot():
    env = orchestra()
    start = env.snapshot()
    ending(env, WRONG, RIGHT)
    env.restore(start)
    assert env.snapshot() == start


def test_playing_on_does_not_change_a_snapshot():
    env = orchestra()
    start = env.snapshot()
    before = copy.deepcopy(start)
    ending(env, WRONG, RIGHT)
    assert start == before


def test_dead_steps_may_be_branched_too():
    env = orchestra()
    ending(env, RIGHT, RIGHT)
    env.step(None)
    start, agents = env.snapshot(), list(env.agents)
    while env.agents:
        env.step(None)
    env.restore(start)
    assert (env.agents, env.last()[1:3]) == (agents, (1.0, True))


def test_the_selection_is_restored():
    env = orchestra(until=1)
    env.select("worker_1")
    start = env.snapshot()
    env.step("x")
    env.restore(start)
    assert env.agent_selection == "worker_1"


def test_another_instance_plays_on_after_pickling():
    start = pickle.loads(pickle.dumps(orchestra().snapshot()))
    other = team("orch-workers")
    other.restore(start)
    assert ending(other, RIGHT, RIGHT) == ending(orchestra(), RIGHT, RIGHT)


def test_the_stream_of_problems_goes_on_from_the_snapshot():
    env = team("single")
    env.reset(seed=5)
    start = env.snapshot()
    env.reset()
    following = env.problem.id
    other = team("single")
    other.restore(start)
    other.reset()
    assert other.problem.id == following


def test_a_snapshot_of_another_team_is_refused():
    env = begin(team("orch-workers", n=2))
    with pytest.raises(GameError, match="cannot be restored"):
        env.restore(orchestra().snapshot())


def test_a_deep_copy_keeps_the_episode():
    env = orchestra()
    twin = copy.deepcopy(env)
    assert ending(twin, RIGHT, RIGHT) == ending(env, RIGHT, RIGHT)
