"""Rounds, layers, visibility, ablations of D, and the contract of a workflow."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted import Tabled, act, begin, prompt, row, seen, tabled

import flexmg.episode
from flexmg import Call, Finish, Round
from flexmg.errors import DependencyCycle, WorkflowError

CHAIN = row("a_0", "b_0", "c_0")
FORK = Round((Call("a_0"), Call("b_0", ("a_0",)), Call("c_0", ("a_0",))))
SAY = {"a_0": "AAA", "b_0": "BBB", "c_0": "CCC"}


def layers(env):
    return {turn.agent: turn.layer for turn in act(begin(env), SAY).turns}


@pytest.mark.parametrize(
    ("rounds", "expected"),
    [
        ([CHAIN], {"a_0": 0, "b_0": 1, "c_0": 2}),
        ([FORK], {"a_0": 0, "b_0": 1, "c_0": 1}),
        ([Round((Call("a_0"), Call("b_0"), Call("c_0")))], {"a_0": 0, "b_0": 0, "c_0": 0}),
        # A round of the same step comes after all the layers of the rounds before it.
        ([row("a_0", "b_0"), Round((Call("c_0"),))], {"a_0": 0, "b_0": 1, "c_0": 2}),
        # A new step begins at layer 0 again.
        ([row("a_0", "b_0"), Round((Call("c_0"),), new_step=True)], {"a_0": 0, "b_0": 1, "c_0": 0}),
    ],
)
def test_layers_by_hand(rounds, expected):
    assert layers(tabled(*rounds)) == expected


def test_a_round_may_list_an_agent_before_those_it_depends_on():
    env = begin(tabled(Round((Call("c_0", ("a_0",)), Call("a_0")))))
    assert env.ready == ("a_0",)


def test_positions_follow_the_plan_not_the_order_of_play():
    env = begin(tabled(Round((Call("a_0"), Call("b_0")))))
    env.select("b_0")
    act(env, SAY)
    assert [(t.agent, t.position) for t in env.turns] == [("a_0", 0), ("b_0", 1)]


def test_rounds_and_steps_are_counted():
    env = tabled(row("a_0"), row("b_0"), row("c_0", new_step=True), row("a_0", new_step=True))
    act(begin(env), SAY)
    assert [(t.round, t.step) for t in env.turns] == [(0, 0), (1, 0), (2, 1), (3, 2)]


def test_a_first_round_that_opens_a_step_is_step_0():
    assert act(begin(tabled(row("a_0", new_step=True))), SAY).turns[0].step == 0


class TestVisibility:
    """Whose words stand in a prompt."""

    ROUNDS = (row("a_0", "b_0"), Round((Call("c_0", ("b_0",)),)), row("a_0", "b_0", new_step=True))

    def shown(self, until, **options):
        env = act(begin(tabled(*self.ROUNDS, **options)), SAY, until)
        text = prompt(env, env.agent_selection)
        return {word for word in SAY.values() if word in text}

    def test_of_the_same_step_what_d_shows(self):
        assert self.shown(2) == {"BBB"}

    def test_of_earlier_steps_ones_own_turns(self):
        assert self.shown(3) == {"AAA"}

    def test_of_earlier_steps_what_recall_shows(self):
        assert self.shown(3, recall=[("c_0", "a_0")]) == {"CCC"}

    def test_recall_shows_nothing_of_the_same_step(self):
        assert self.shown(1, recall=[("a_0", "b_0")], dependencies="none") == set()

    def test_without_recall_nothing_of_earlier_steps(self):
        assert self.shown(3, recall=[]) == set()

    def test_none_leaves_an_agent_its_own_memory(self):
        recall = [(i, j) for i in SAY for j in SAY]
        assert self.shown(3, recall=recall, dependencies="none") == {"AAA"}

    def test_none_gives_an_agent_no_memory_it_did_not_have(self):
        assert self.shown(3, recall=[("b_0", "a_0")], dependencies="none") == set()

    def test_full_shows_all_that_was_said(self):
        assert self.shown(3, recall=[], dependencies="full") == {"AAA", "BBB", "CCC"}

    def test_an_agent_that_waits_sees_what_is_there_so_far(self):
        env = act(begin(tabled(CHAIN)), SAY, until=1)
        assert "AAA" in prompt(env, "c_0") and "BBB" not in prompt(env, "c_0")

    def test_an_agent_that_has_acted_sees_what_it_acted_on(self):
        env = begin(tabled(CHAIN))
        before = prompt(env, "a_0")
        assert prompt(act(env, SAY, until=2), "a_0") == before


class TestAblations:
    def edges(self, dependencies, *rounds, seed=0):
        env = act(begin(tabled(*rounds, dependencies=dependencies), seed), SAY)
        return [(i, agent, step) for step, agent, sees in seen(env) for i in sees]

    def test_none_has_no_edges(self):
        assert self.edges("none", CHAIN) == []

    def test_full_has_every_edge_of_the_planned_order(self):
        parallel = Round((Call("a_0"), Call("b_0"), Call("c_0")))
        expected = [("a_0", "b_0", 0), ("a_0", "c_0", 0), ("b_0", "c_0", 0)]
        assert self.edges("full", parallel) == expected

    def test_full_sees_the_earlier_rounds_of_the_step(self):
        assert self.edges("full", row("a_0"), row("b_0")) == [("a_0", "b_0", 0)]

    def test_full_sees_no_earlier_step_through_d(self):
        assert self.edges("full", row("a_0"), row("b_0", new_step=True)) == []

    @settings(deadline=None)
    @given(st.integers(0, 10**9))
    def test_shuffled_keeps_the_number_of_edges_of_a_round(self, seed):
        assert len(self.edges("shuffled", CHAIN, seed=seed)) == 3

    def test_shuffled_keeps_the_shape(self):
        """A fork stays a fork: one agent is seen by the two others."""
        for seed in range(20):
            sources = [i for i, _, _ in self.edges("shuffled", FORK, seed=seed)]
            assert len(sources) == 2 and len(set(sources)) == 1

    def test_shuffled_reaches_every_agent(self):
        heads = {self.edges("shuffled", FORK, seed=seed)[0][0] for seed in range(50)}
        assert heads == {"a_0", "b_0", "c_0"}

    def test_shuffled_depends_on_the_seed_only(self):
        env = tabled(CHAIN, dependencies="shuffled")
        first = seen(act(begin(env, 5), SAY))
        assert seen(act(begin(env, 5), SAY)) == first

    def test_shuffled_keeps_edges_from_earlier_rounds(self):
        """b and c may change places, but whoever saw round 1 still does."""
        rounds = row("a_0"), Round((Call("b_0", ("a_0",)), Call("c_0", ("a_0", "b_0"))))
        for seed in range(10):
            edges = self.edges("shuffled", *rounds, seed=seed)
            assert {("a_0", "b_0", 0), ("a_0", "c_0", 0)} < set(edges)
            assert len(edges) == 3


class TestContract:
    """What a workflow must not plan, and that a broken plan leaves the game as it was."""

    @pytest.mark.parametrize(
        ("rounds", "error", "says"),
        [
            ([Round(())], WorkflowError, "without calls"),
            ([Round((Call("zoe_0"),))], WorkflowError, "zoe_0"),
            ([Round((Call("a_0"), Call("a_0")))], WorkflowError, "twice in step 0"),
            ([row("a_0"), row("a_0")], WorkflowError, "new_step=True"),
            ([Round((Call("a_0", ("b_0",)),))], WorkflowError, "do not act in step 0"),
            (
                [row("a_0"), Round((Call("b_0", ("a_0",)),), new_step=True)],
                WorkflowError,
                "recall",
            ),
            ([Round((Call("a_0", ("a_0",)),))], DependencyCycle, "a_0 -> a_0"),
            (
                [Round((Call("a_0", ("b_0",)), Call("b_0", ("a_0",))))],
                DependencyCycle,
                "a_0 -> b_0 -> a_0|b_0 -> a_0 -> b_0",
            ),
        ],
    )
    def test_a_broken_round_is_refused(self, rounds, error, says):
        env = tabled(*rounds)
        with pytest.raises(error, match=says):
            act(begin(env), SAY)

    @pytest.mark.parametrize("dependencies", ["none", "full", "shuffled"])
    def test_a_cycle_is_refused_under_every_ablation(self, dependencies):
        cycle = Round((Call("a_0", ("b_0",)), Call("b_0", ("a_0",))))
        with pytest.raises(DependencyCycle):
            begin(tabled(cycle, dependencies=dependencies))

    @pytest.mark.parametrize(
        "second", [Round(()), Round((Call("b_0", ("c_0",)), Call("c_0", ("b_0",))))]
    )
    def test_a_broken_round_in_the_middle_takes_the_step_back(self, second):
        env = begin(tabled(row("a_0"), second))
        before = (env.transcript(), env.ready, env.agent_selection, env.infos, env.state())
        with pytest.raises((WorkflowError, DependencyCycle)):
            env.step("AAA")
        after = (env.transcript(), env.ready, env.agent_selection, env.infos, env.state())
        assert after == before

    def test_a_plan_that_is_neither_round_nor_finish_is_refused(self):
        class Mute(Tabled):
            def plan(self, history):
                return None

        with pytest.raises(WorkflowError, match="neither a Round nor a Finish"):
            begin(tabled(workflow=Mute))

    def test_a_workflow_without_an_end_is_stopped(self, monkeypatch):
        monkeypatch.setattr(flexmg.episode, "MOST_TURNS", 30)

        class Endless(Tabled):
            def plan(self, history):
                return row("a_0", new_step=True)

        env = begin(tabled(workflow=Endless, recall=[]))
        with pytest.raises(WorkflowError, match="more than 30 turns"):
            act(env, SAY)
        assert len(env.turns) == 29

    def test_a_long_episode_ends(self):
        rounds = [row("a_0", "b_0", new_step=True)] * 300
        env = act(begin(tabled(*rounds)), SAY)
        assert (len(env.turns), len(env.outcome.step_rewards)) == (600, 300)

    @pytest.mark.parametrize(
        ("finish", "says"),
        [
            (Finish("x", ("b_0",)), "b_0"),
            (Finish(None, ("a_0",)), "instead of a text"),
        ],
    )
    def test_a_broken_finish_is_refused(self, finish, says):
        class Broken(Tabled):
            def plan(self, history):
                return finish if history.turns else row("a_0")

        with pytest.raises(WorkflowError, match=says):
            act(begin(tabled(workflow=Broken)), SAY)

    def test_a_finish_before_anybody_acted_is_refused(self):
        class Idle(Tabled):
            def plan(self, history):
                return Finish("x", ())

        with pytest.raises(WorkflowError, match="before anybody acted"):
            begin(tabled(workflow=Idle))

    @pytest.mark.parametrize("truth", [{0: 2.0}, {0: float("nan")}, {7: 1.0}])
    def test_a_truth_outside_0_1_is_refused(self, truth):
        class Lying(Tabled):
            def truth(self, history, score, answer):
                return truth

        with pytest.raises(WorkflowError, match="truth"):
            act(begin(tabled(row("a_0"), workflow=Lying)), SAY)

    def test_recall_of_a_stranger_is_refused(self):
        with pytest.raises(WorkflowError, match="zoe_0"):
            tabled(row("a_0"), recall=[("zoe_0", "a_0")])
