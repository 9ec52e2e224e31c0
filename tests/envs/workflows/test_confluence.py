"""Any order that D allows gives the same episode, up to the order of records."""

from __future__ import annotations

from dataclasses import replace

import pytest
from scripted import begin
from sums import team

SAY = {
    "orchestrator_0": ["1. a\n2. b", "x", "x"],
    "aggregator_0": ["Best: 2"],
    "evaluator_0": ["Incorrect.", "Correct."],
    "reflector_0": ["Incorrect."],
}
ROUTES = ["CALL: analyst_0, critic_0 -> solver_0", "CALL: solver_0, analyst_0", "DONE Answer: 14"]


def say(env, workflow, agent):
    taken = sum(turn.agent == agent for turn in env.turns)
    if workflow == "router" and agent == "orchestrator_0":
        return ROUTES[taken]
    if agent in SAY:
        return SAY[agent][taken]
    return f"{agent} {taken}. Answer: {14 + (env.possible_agents.index(agent) + taken) % 2}"


def endings(env, workflow):
    """The transcripts of all orders, by depth-first search over snapshots."""
    if env.finished:
        yield replace(env.transcript(), order=(), digest=""), env.outcome
        return
    here = env.snapshot()
    for agent in env.ready:
        env.restore(here)
        env.select(agent)
        env.step(say(env, workflow, agent))
        yield from endings(env, workflow)


@pytest.mark.parametrize(
    ("workflow", "options", "orders"),
    [
        ("single", {}, 1),
        ("duo", {}, 1),
        ("trio", {}, 1),
        ("quad", {}, 1),
        ("voting", {}, 6),
        ("eval-opt", {}, 1),
        ("orch-workers", {}, 2),
        ("debate", {}, 4),
        ("debate", {"n": 3, "rounds": 2}, 36),
        ("router", {}, 4),
        ("quad", {"dependencies": "none"}, 24),
        ("orch-workers", {"dependencies": "none"}, 6),
    ],
)
def test_every_order_ends_alike(workflow, options, orders):
    env = begin(team(workflow, reward="local", **options))
    found = list(endings(env, workflow))
    assert len(found) == orders
    assert all(one == found[0] for one in found)
