"""The AEC class: order, dynamic agents, dead steps, rewards, infos, state."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from pettingzoo.test import api_test, seed_test
from scripted import Tabled, act, begin, row, tabled
from sums import SumDomain, team

import flexmg
from flexmg import Call, Round, Verdict
from flexmg.errors import (
    GameError,
    InfraError,
    InvalidArgument,
    OutOfTurn,
    ResetNeeded,
    UnknownProblem,
)

RIGHT = "Answer: 14"  # of problem 0, which asks for 3 + 11
FORK = Round((Call("a_0"), Call("b_0", ("a_0",)), Call("c_0", ("a_0",))))
SAY = {"a_0": "AAA", "b_0": "BBB", "c_0": RIGHT}


def orchestra(lines=2, **options):
    """orch-workers after the orchestrator has spoken."""
    env = begin(team("orch-workers", n=3, **options))
    env.step("\n".join(f"{k}. strategy" for k in range(1, lines + 1)))
    return env


class TestOrder:
    def test_the_first_ready_agent_acts_by_default(self):
        assert begin(tabled(FORK)).agent_selection == "a_0"

    def test_ready_are_all_whose_dependencies_are_met(self):
        assert act(begin(tabled(FORK)), SAY, until=1).ready == ("b_0", "c_0")

    def test_any_ready_agent_may_be_selected(self):
        env = act(begin(tabled(FORK)), SAY, until=1)
        env.select("c_0")
        env.step("CCC")
        assert env.ready == ("b_0",)

    def test_an_agent_that_is_not_ready_cannot_be_selected(self):
        env = begin(tabled(FORK))
        with pytest.raises(OutOfTurn, match=r"'c_0' cannot act now; ready are \['a_0'\]"):
            env.select("c_0")

    def test_an_agent_that_is_not_ready_cannot_act_by_setting_agent_selection(self):
        env = begin(tabled(FORK))
        env.agent_selection = "c_0"
        with pytest.raises(OutOfTurn):
            env.step("CCC")
        assert env.turns == ()

    @pytest.mark.parametrize("agent", ["zoe_0", None, "a_0"])
    def test_strangers_and_agents_that_acted_cannot_act(self, agent):
        env = act(begin(tabled(FORK)), SAY, until=1)
        env.agent_selection = agent
        with pytest.raises(OutOfTurn):
            env.step("x")

    def test_nobody_is_ready_at_the_end(self):
        assert act(begin(tabled(FORK)), SAY).ready == ()


class TestDynamicAgents:
    @pytest.mark.parametrize("lines", [1, 2, 3])
    def test_agents_join_when_they_are_called(self, lines):
        workers = [f"worker_{k}" for k in range(lines)]
        assert orchestra(lines).agents == ["orchestrator_0", *workers, "synthesizer_0"]

    def test_before_that_they_are_not_in_the_game(self):
        assert begin(team("orch-workers")).agents == ["orchestrator_0"]

    def test_possible_agents_do_not_change(self):
        env = team("orch-workers", n=3)
        before = list(env.possible_agents)
        begin(env).step("1. x")
        assert env.possible_agents == before

    def test_an_agent_that_was_never_called_has_no_observation(self):
        with pytest.raises(GameError, match="'worker_2' has not been called"):
            orchestra(2).observe("worker_2")

    def test_the_five_dicts_have_the_agents_as_keys(self):
        env = orchestra(2)
        for table in (
            env.rewards,
            env._cumulative_rewards,
            env.terminations,
            env.truncations,
            env.infos,
        ):
            assert list(table) == env.agents


class TestEnd:
    def test_everybody_terminates_nobody_is_truncated(self):
        env = act(begin(tabled(FORK)), SAY)
        assert all(env.terminations.values()) and not any(env.truncations.values())

    def test_terminations_are_real_booleans(self):
        env = act(begin(tabled(FORK)), SAY)
        assert {type(v) for v in [*env.terminations.values(), *env.truncations.values()]} == {bool}

    def test_dead_agents_leave_one_by_one(self):
        env = act(begin(tabled(FORK)), SAY)
        left = []
        while env.agents:
            left.append(env.agent_selection)
            env.step(None)
        assert sorted(left) == ["a_0", "b_0", "c_0"]

    def test_each_agent_is_paid_in_its_dead_step(self):
        env = act(begin(tabled(FORK)), SAY)
        paid = {}
        while env.agents:
            _, reward, over, _, _ = env.last()
            paid[env.agent_selection] = (reward, over)
            env.step(None)
        assert paid == dict.fromkeys(["a_0", "b_0", "c_0"], (1.0, True))

    def test_rewards_are_zero_until_the_end(self):
        env = act(begin(tabled(FORK)), SAY, until=2)
        assert set(env.rewards.values()) == {0.0}

    def test_the_central_stream_is_paid_once_on_the_last_step(self):
        env = tabled(row("a_0"), row("b_0", new_step=True), row("a_0", new_step=True))
        act(begin(env), {"a_0": RIGHT, "b_0": "x"})
        assert env.outcome.step_rewards == (0.0, 0.0, 1.0)

    def test_the_outcome_is_none_before_the_end(self):
        env = act(begin(tabled(FORK)), SAY, until=2)
        assert env.outcome is None and not env.finished

    def test_only_the_designated_answer_is_graded(self):
        graded = []

        class Watching(SumDomain):
            def grade(self, problem, reply):
                graded.append(reply)
                return super().grade(problem, reply)

        act(begin(tabled(FORK, domain=Watching())), {**SAY, "a_0": "Answer: 3"})
        assert graded == [RIGHT]

    def test_an_action_for_a_dead_agent_is_refused(self):
        env = act(begin(tabled(FORK)), SAY)
        with pytest.raises(GameError, match="step\\(None\\)"):
            env.step("more")
        assert len(env.agents) == 3

    def test_none_for_a_living_agent_is_refused(self):
        env = begin(tabled(FORK))
        with pytest.raises(GameError, match="not NoneType"):
            env.step(None)

    @pytest.mark.parametrize("call", [lambda e: e.last(), lambda e: e.step(None)])
    def test_after_everybody_left_a_reset_is_needed(self, call):
        env = act(begin(tabled(FORK)), SAY)
        while env.agents:
            env.step(None)
        with pytest.raises(ResetNeeded, match=r"reset\(\)"):
            call(env)

    def test_what_came_of_it_stays_after_everybody_left(self):
        env = act(begin(tabled(FORK)), SAY)
        while env.agents:
            env.step(None)
        assert env.outcome.rewards == dict.fromkeys(["a_0", "b_0", "c_0"], 1.0)


class TestInfos:
    def test_while_playing_problem_and_fallback(self):
        env = begin(team("orch-workers"))
        env.step("no numbers here")
        assert env.infos["orchestrator_0"] == {
            "problem": "sums/0",
            "fallback": "no numbered lines: every line taken",
            "infra_error": False,
        }

    def test_truth_is_told_only_at_the_end(self):
        env = orchestra(1)
        env.step(RIGHT)
        assert not any("truth" in info for info in env.infos.values())
        env.step(RIGHT)
        assert env.infos["worker_0"]["truth"] == [1.0]

    def test_at_the_end_verdict_and_reward_terms(self):
        env = act(begin(tabled(FORK)), SAY)
        info = env.infos["a_0"]
        assert info["verdict"] == "correct"
        assert info["reward_terms"] == {"team": 1, "designated": 0, "local": 1, "format": 1}

    def test_changing_an_info_does_not_change_the_outcome(self):
        env = act(begin(tabled(FORK)), SAY)
        env.infos["a_0"]["reward_terms"]["team"] = 99
        assert env.outcome.terms["a_0"]["team"] == 1.0


class TestInfraErrors:
    class Dying(SumDomain):
        def grade(self, problem, reply):
            raise InfraError("the grader's process died")

    class Admitting(SumDomain):
        def grade(self, problem, reply):
            return Verdict(0.0, "infra_error", "no worker left")

    class Keyless(SumDomain):
        def answer_key(self, problem, reply):
            raise InfraError("the grader's process died")

        def grade(self, problem, reply):
            return Verdict(1.0, "correct")

    @pytest.mark.parametrize("domain", [Dying, Admitting])
    @pytest.mark.parametrize("reward", ["team", "local", {"team": 1.0, "format": 1.0}])
    def test_nothing_is_paid(self, domain, reward):
        env = act(begin(tabled(FORK, domain=domain(), reward=reward)), SAY)
        assert set(env.outcome.rewards.values()) | set(env.outcome.step_rewards) == {0.0}

    @pytest.mark.parametrize("domain", [Dying, Admitting])
    def test_it_is_flagged_everywhere(self, domain):
        env = act(begin(tabled(FORK, domain=domain())), SAY)
        assert env.outcome.infra_error and env.transcript().infra_error
        assert all(info["infra_error"] for info in env.infos.values())
        assert env.outcome.verdict.status == "infra_error"

    def test_a_failed_answer_key_is_flagged(self):
        env = flexmg.FlexMarkovGame(
            type(team("debate").workflow)(self.Keyless()), team("debate").source
        )
        act(begin(env), {"debater_0": RIGHT, "debater_1": RIGHT})
        assert env.outcome.infra_error

    def test_a_failure_in_an_earlier_round_is_not_forgotten(self):
        class Looking(Tabled):
            def plan(self, history):
                if len(history.turns) == 1:
                    history.answer_key(history.turns[0].text)
                return super().plan(history)

        rounds = row("a_0"), row("b_0"), row("c_0")
        env = tabled(*rounds, workflow=Looking, domain=self.Keyless())
        assert act(begin(env), SAY).outcome.infra_error

    def test_the_next_episode_is_clean(self):
        class Once(SumDomain):
            calls = 0

            def grade(self, problem, reply):
                Once.calls += 1
                if Once.calls == 1:
                    raise InfraError("died")
                return super().grade(problem, reply)

        env = tabled(FORK, domain=Once())
        act(begin(env), SAY)
        assert not act(begin(env), SAY).outcome.infra_error

    def test_a_grader_that_is_interrupted_takes_the_step_back(self):
        class Interrupted(SumDomain):
            stop = True

            def grade(self, problem, reply):
                if self.stop:
                    raise KeyboardInterrupt
                return super().grade(problem, reply)

        env = act(begin(tabled(FORK, domain=(domain := Interrupted()))), SAY, until=2)
        with pytest.raises(KeyboardInterrupt):
            env.step(RIGHT)
        domain.stop = False
        env.step(RIGHT)
        assert env.outcome.rewards["c_0"] == 1.0


class TestObserve:
    def test_the_profile_is_role_text_and_output_format(self):
        env = begin(team("single"))
        assert env.observe("solver_0")["profile"] == env.specs["solver_0"].profile.render()

    def test_dependencies_are_the_agents_column_of_d(self):
        env = orchestra(2)
        column = env.observe("synthesizer_0")["dependencies"]
        assert column.dtype == np.int8
        assert dict(zip(env.possible_agents, column.tolist(), strict=True)) == {
            "orchestrator_0": 1,
            "worker_0": 1,
            "worker_1": 1,
            "worker_2": 0,
            "synthesizer_0": 0,
        }

    def test_observations_are_in_the_space(self):
        env = orchestra(3)
        for agent in env.agents:
            assert env.observe(agent) in env.observation_space(agent)

    def test_changing_an_observation_changes_nothing(self):
        env = orchestra(2)
        first = env.observe("worker_0")
        first["messages"][0]["content"] = "changed"
        first["dependencies"][:] = 7
        first["profile"] = "changed"
        second = env.observe("worker_0")
        assert "changed" not in str(second) and second["dependencies"].max() == 1

    def test_changing_an_observation_does_not_change_the_record(self):
        env, twin = orchestra(2), orchestra(2)
        env.observe("worker_0")["messages"][0]["content"] = "changed"
        for game in (env, twin):
            game.step("x")
        assert env.transcript() == twin.transcript()

    def test_the_gold_answer_is_in_no_observation(self):
        env = begin(team("quad"))
        assert not any("14" in str(env.observe(agent)["messages"]) for agent in env.agents)

    def test_last_without_observing(self):
        assert begin(tabled(FORK)).last(observe=False)[0] is None


class TestStateForACentralCritic:
    def test_it_holds_the_problem_and_every_turn_also_hidden_ones(self):
        env = act(begin(tabled(FORK, dependencies="none")), SAY, until=2)
        assert env.state() == {
            "statement": "What is 3 + 11?",
            "turns": (
                {"agent": "a_0", "step": 0, "text": "AAA"},
                {"agent": "b_0", "step": 0, "text": "BBB"},
            ),
        }

    def test_it_is_in_the_state_space(self):
        env = act(begin(tabled(FORK)), SAY)
        assert env.state() in env.state_space


class TestGraph:
    def test_of_the_current_step_over_the_agents_called(self):
        graph = act(begin(tabled(FORK)), SAY, until=1).graph()
        assert graph.edges == (("a_0", "b_0"), ("a_0", "c_0"))

    def test_of_an_earlier_step(self):
        env = act(begin(tabled(FORK, row("a_0", new_step=True))), SAY, until=3)
        assert (env.graph().agents, env.graph(0).layers) == (
            ("a_0",),
            (("a_0",), ("b_0", "c_0")),
        )

    @pytest.mark.parametrize("step", [-1, 1])
    def test_of_a_step_that_was_not(self, step):
        with pytest.raises(InvalidArgument, match="0 to 0"):
            begin(tabled(FORK)).graph(step)


@pytest.mark.parametrize(
    "call",
    [
        lambda env: env.step("x"),
        lambda env: env.observe("a_0"),
        lambda env: env.last(),
        lambda env: env.agent_iter(),
        lambda env: env.state(),
        lambda env: env.snapshot(),
        lambda env: env.transcript(),
        lambda env: env.ready,
        lambda env: env.problem,
        lambda env: env.demonstrate("a_0"),
        lambda env: env.graph(),
        lambda env: env.select("a_0"),
    ],
)
def test_before_reset_everything_asks_for_it(call):
    with pytest.raises(ResetNeeded, match=r"reset\(\)"):
        call(tabled(FORK))


BAD_ACTIONS = [None, 5, b"text", ["text"], "x" * 1_000_000, "\ud800", "a\x00b"]


@pytest.mark.parametrize("action", BAD_ACTIONS, ids=lambda a: repr(a)[:12])
def test_a_bad_action_leaves_the_game_as_it_was(action):
    env = act(begin(tabled(FORK)), SAY, until=1)
    before = env.snapshot()
    with pytest.raises(flexmg.FlexMGError):
        env.step(action)
    assert env.snapshot() == before


@pytest.mark.parametrize("action", ["", " ", "🙂 ≤", "x" * 32_768, "\r\n", "\u2028", "<|im_end|>"])
def test_an_unusual_text_is_a_legal_action(action):
    env = begin(tabled(FORK))
    env.step(action)
    assert env.turns[0].text == action


class TestReset:
    def test_an_index_chooses_the_problem(self):
        assert begin(tabled(FORK), problem=7).problem.id == "sums/7"

    def test_a_numpy_index_too(self):
        assert begin(tabled(FORK), problem=np.int64(7)).problem.id == "sums/7"

    def test_an_id_chooses_the_problem(self):
        assert begin(tabled(FORK), problem="sums/7").problem.id == "sums/7"

    def test_unknown_option_keys_are_ignored(self):
        env = tabled(FORK)
        env.reset(seed=0, options={"options": 1})
        assert env.agents == ["a_0", "b_0", "c_0"]

    @pytest.mark.parametrize(
        ("arguments", "error"),
        [
            ({"options": {"problem": 50}}, UnknownProblem),
            ({"options": {"problem": -1}}, UnknownProblem),
            ({"options": {"problem": "sums/50"}}, UnknownProblem),
            ({"options": {"problem": 1.5}}, InvalidArgument),
            ({"options": ["problem"]}, InvalidArgument),
            ({"seed": "zero"}, InvalidArgument),
            ({"seed": 0.5}, InvalidArgument),
        ],
    )
    def test_a_reset_that_fails_leaves_the_game_as_it_was(self, arguments, error):
        env = act(begin(tabled(FORK)), SAY, until=1)
        before = env.snapshot()
        with pytest.raises(error):
            env.reset(**{"seed": 1, **arguments})
        assert env.snapshot() == before

    def test_in_the_middle_of_an_episode_it_begins_anew(self):
        env = begin(act(begin(tabled(FORK)), SAY, until=2))
        assert (env.turns, env.ready, env.agent_selection) == ((), ("a_0",), "a_0")

    def test_an_empty_source_says_so(self):
        source = type("Empty", (), {"name": "empty", "split": "test", "size": 0})()
        with pytest.raises(UnknownProblem, match="'empty', split 'test', holds no problems"):
            tabled(FORK, source=source).reset(seed=0)


class TestSeeds:
    def problems(self, seed, episodes=6):
        env = flexmg.FlexMarkovGame(team("single").workflow, Endless())
        env.reset(seed=seed)
        found = [env.problem.index]
        for _ in range(episodes - 1):
            env.reset()
            found.append(env.problem.index)
        return found

    def test_a_seed_means_one_stream_of_problems(self):
        assert self.problems(3) == self.problems(3)

    def test_without_a_seed_the_stream_goes_on(self):
        assert len(set(self.problems(3))) == 6

    def test_neighbouring_seeds_share_no_problem(self):
        found = [p for seed in range(40) for p in self.problems(seed)]
        assert len(set(found)) == len(found)

    def test_a_seed_again_begins_the_stream_again(self):
        env = flexmg.FlexMarkovGame(team("single").workflow, Endless())
        first = []
        for _ in range(2):
            env.reset(seed=9)
            first.append(env.problem.index)
            env.reset()
        assert first[0] == first[1]

    def test_one_seed_is_one_problem_in_every_workflow(self):
        indices = set()
        for workflow in ("single", "voting", "debate"):
            env = flexmg.FlexMarkovGame(team(workflow).workflow, Endless())
            env.reset(seed=4)
            indices.add(env.problem.index)
        assert len(indices) == 1

    def test_without_any_seed_episodes_differ_from_run_to_run(self):
        indices = set()
        for _ in range(3):
            env = flexmg.FlexMarkovGame(team("single").workflow, Endless())
            env.reset()
            indices.add(env.problem.index)
        assert len(indices) == 3

    def test_splits_are_different_streams(self):
        drawn = []
        for split in ("train", "test"):
            env = flexmg.FlexMarkovGame(team("single").workflow, Endless(split))
            env.reset(seed=0)
            drawn.append(env.problem.index)
        assert drawn[0] != drawn[1]

    @pytest.mark.parametrize("seed", [0, -5, 2**80, np.int32(7)])
    def test_any_whole_number_is_a_seed(self, seed):
        env = team("single")
        env.reset(seed=seed)
        assert env.seed == int(seed)

    def test_spaces_of_agents_that_join_later_are_seeded_too(self):
        samples = []
        for _ in range(2):
            env = begin(team("orch-workers"), seed=3)
            samples.append([env.action_space(a).sample() for a in env.possible_agents])
        assert samples[0] == samples[1] and len(set(samples[0])) == 5


class Endless:
    """A source without an end, whose problem k is k."""

    name = "endless"
    size = None

    def __init__(self, split="train"):
        self.split = split

    def get(self, index):
        return flexmg.Problem(f"endless/{index}", f"{index}?", str(index), index=index)

    def find(self, id):
        return self.get(int(id.partition("/")[2]))


@pytest.mark.parametrize(
    "option",
    [{"dependencies": "some"}, {"dependencies": np.eye(3)}, {"render_mode": "rgb_array"}],
)
def test_an_unknown_option_is_refused(option):
    with pytest.raises(InvalidArgument, match="is not one of"):
        tabled(FORK, **option)


def test_spaces_are_the_same_objects_each_time():
    env = team("orch-workers")
    for agent in env.possible_agents:
        assert env.action_space(agent) is env.action_space(agent)
        assert env.observation_space(agent) is env.observation_space(agent)


def test_spaces_of_two_agents_are_two_objects():
    env = team("voting")
    assert env.action_space("voter_0") is not env.action_space("voter_1")


def test_close_may_be_called_twice():
    env = tabled(FORK)
    env.close()
    env.close()


def test_rendering_without_a_mode_says_what_to_do():
    with pytest.raises(InvalidArgument, match="render_mode="):
        begin(tabled(FORK)).render()


@pytest.mark.parametrize("dependencies", ["designed", "none", "full", "shuffled"])
@pytest.mark.parametrize("workflow", ["single", "quad", "voting", "orch-workers", "router"])
def test_pettingzoos_own_tests_pass(workflow, dependencies):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        api_test(team(workflow, dependencies=dependencies), num_cycles=30)
        seed_test(lambda: team(workflow, dependencies=dependencies), num_cycles=10)
