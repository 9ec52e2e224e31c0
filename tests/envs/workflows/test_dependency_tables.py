"""Who sees whom, by hand, for every workflow: D per env step, recall, and what is shown."""

from __future__ import annotations

import pytest
from scripted import act, begin, prompt
from sums import team

# One row per turn: (env step, agent, whom it sees of this step).
TABLES = {
    "single": [(0, "solver_0", "")],
    "duo": [(0, "planner_0", ""), (0, "solver_0", "planner_0")],
    "trio": [
        (0, "planner_0", ""),
        (0, "solver_0", "planner_0"),
        (0, "verifier_0", "planner_0 solver_0"),
    ],
    "quad": [
        (0, "planner_0", ""),
        (0, "solver_0", "planner_0"),
        (0, "reflector_0", "planner_0 solver_0"),
        (0, "verifier_0", "planner_0 solver_0 reflector_0"),
    ],
    "voting": [
        (0, "voter_0", ""),
        (0, "voter_1", ""),
        (0, "voter_2", ""),
        (0, "aggregator_0", "voter_0 voter_1 voter_2"),
    ],
    "eval-opt": [
        (0, "generator_0", ""),
        (0, "evaluator_0", "generator_0"),
        (1, "generator_0", ""),
        (1, "evaluator_0", "generator_0"),
        (2, "generator_0", ""),
        (2, "evaluator_0", "generator_0"),
    ],
    "orch-workers": [
        (0, "orchestrator_0", ""),
        (0, "worker_0", "orchestrator_0"),
        (0, "worker_1", "orchestrator_0"),
        (0, "synthesizer_0", "orchestrator_0 worker_0 worker_1"),
    ],
    "debate": [
        (0, "debater_0", ""),
        (0, "debater_1", ""),
        (1, "debater_0", ""),
        (1, "debater_1", ""),
    ],
    "router": [
        (0, "orchestrator_0", ""),
        (0, "analyst_0", "orchestrator_0"),
        (0, "solver_0", "orchestrator_0 analyst_0"),
        (1, "orchestrator_0", ""),
        (1, "critic_0", "orchestrator_0"),
        (1, "analyst_0", "orchestrator_0"),
        (2, "orchestrator_0", ""),
    ],
}
LAYERS = {
    "single": [0],
    "duo": [0, 1],
    "trio": [0, 1, 2],
    "quad": [0, 1, 2, 3],
    "voting": [0, 0, 0, 1],
    "eval-opt": [0, 1, 0, 1, 0, 1],
    "orch-workers": [0, 1, 1, 2],
    "debate": [0, 0, 0, 0],
    "router": [0, 1, 2, 0, 1, 1, 0],
}
# What agents say: `said` holds a marker per turn, so that prompts can be searched.
SPOKEN = {
    ("orch-workers", "orchestrator_0"): "1. one {0}\n2. two {0}",
    ("eval-opt", "evaluator_0"): "Incorrect. {0}",
    ("voting", "aggregator_0"): "Best: 1 {0}",
}
ROUTES = ["CALL: analyst_0 -> solver_0 {0}", "CALL: critic_0, analyst_0 {0}", "DONE {0}"]
# Whose earlier turns an agent sees, besides those of TABLES.
MEMORY = {
    "eval-opt": {"generator_0": {"generator_0", "evaluator_0"}},
    "debate": {
        "debater_0": {"debater_0", "debater_1"},
        "debater_1": {"debater_0", "debater_1"},
    },
    "router": {
        "orchestrator_0": {"orchestrator_0", "analyst_0", "solver_0", "critic_0"},
        "analyst_0": {"analyst_0", "solver_0", "critic_0"},
        "critic_0": {"analyst_0", "solver_0", "critic_0"},
    },
}


def marker(position: int) -> str:
    return f"<<turn {position}>>"


def playing(workflow, **options):
    """The game before each turn, with the agent about to act."""
    env = begin(team(workflow, **options))
    while not env.finished:
        agent = env.agent_selection
        yield env, agent
        spoken = SPOKEN.get((workflow, agent), "{0}")
        if (workflow, agent) == ("router", "orchestrator_0"):
            spoken = ROUTES[min(sum(t.agent == agent for t in env.turns), 2)]
        env.step(spoken.format(marker(len(env.turns))))


def played(workflow, **options):
    """The game at its end."""
    return [env for env, _ in playing(workflow, **options)][-1]


@pytest.mark.parametrize("workflow", TABLES)
def test_who_sees_whom(workflow):
    env = played(workflow)
    assert [(t.step, t.agent, " ".join(t.sees)) for t in env.turns] == TABLES[workflow]


@pytest.mark.parametrize("workflow", TABLES)
def test_layers(workflow):
    assert [turn.layer for turn in played(workflow).turns] == LAYERS[workflow]


@pytest.mark.parametrize("workflow", TABLES)
def test_what_is_hidden_is_in_no_prompt(workflow):
    for env, agent in playing(workflow):
        step, _, sees = TABLES[workflow][len(env.turns)]
        remembered = MEMORY.get(workflow, {}).get(agent, set())
        text = prompt(env, agent)
        for turn in env.turns:
            visible = (turn.step == step and turn.agent in sees.split()) or (
                turn.step < step and turn.agent in remembered
            )
            if not visible:
                assert marker(turn.position) not in text


@pytest.mark.parametrize("workflow", TABLES)
def test_what_d_shows_of_this_step_is_in_the_prompt(workflow):
    for env, agent in playing(workflow):
        step, _, sees = TABLES[workflow][len(env.turns)]
        text = prompt(env, agent)
        for turn in env.turns:
            if turn.step == step and turn.agent in sees.split():
                shown_as_lines = turn.agent == "orchestrator_0" and workflow == "orch-workers"
                assert marker(turn.position) in text or shown_as_lines


@pytest.mark.parametrize("workflow", TABLES)
def test_nobody_sees_anybody_without_dependencies(workflow):
    for env, agent in playing(workflow, dependencies="none"):
        text = prompt(env, agent)
        others = [turn for turn in env.turns if turn.agent != agent]
        assert not any(marker(turn.position) in text for turn in others)


@pytest.mark.parametrize("workflow", [w for w in TABLES if w not in ("debate", "orch-workers")])
def test_everything_said_before_is_shown_with_full_dependencies(workflow):
    for env, agent in playing(workflow, dependencies="full"):
        text = prompt(env, agent)
        assert all(marker(turn.position) in text for turn in env.turns)


@pytest.mark.parametrize("workflow", ["quad", "voting", "orch-workers", "eval-opt"])
@pytest.mark.parametrize("seed", range(5))
def test_shuffled_dependencies_keep_the_number_of_edges(workflow, seed):
    def edges(dependencies):
        env = begin(team(workflow, dependencies=dependencies), seed)
        texts = {a: SPOKEN.get((workflow, a), "x") for a in env.possible_agents}
        return sum(len(turn.sees) for turn in act(env, texts).turns)

    assert edges("shuffled") == edges("designed")


class TestDebateMemory:
    """A debater sees the last answers only, its own as its own."""

    def third_round(self):
        env = begin(team("debate", n=3, rounds=3))
        for k in range(6):
            env.step(marker(k))
        return env.observe("debater_1")["messages"]

    def test_its_own_last_answer_is_the_assistants(self):
        said = [m["content"] for m in self.third_round() if m["role"] == "assistant"]
        assert said == [marker(4)]

    def test_the_others_last_answers_are_the_users_with_their_titles(self):
        last = self.third_round()[-1]
        assert last == {
            "role": "user",
            "content": f"Debater 1:\n{marker(3)}\n\nDebater 3:\n{marker(5)}",
        }

    def test_earlier_answers_are_gone(self):
        assert not any(marker(k) in str(self.third_round()) for k in range(3))


class TestEvalOptMemory:
    def test_the_generator_reads_its_attempts_and_the_feedback_in_turn(self):
        env = begin(team("eval-opt"))
        for text in ("FIRST", "Incorrect. LOW", "SECOND", "Incorrect. HIGH"):
            env.step(text)
        assert [(m["role"], m["content"]) for m in env.observe("generator_0")["messages"]] == [
            ("user", "Problem: What is 3 + 11?"),
            ("assistant", "FIRST"),
            ("user", "Evaluator:\nIncorrect. LOW"),
            ("assistant", "SECOND"),
            ("user", "Evaluator:\nIncorrect. HIGH"),
        ]

    def test_the_evaluator_judges_afresh(self):
        env = begin(team("eval-opt"))
        for text in ("FIRST", "Incorrect. LOW", "SECOND"):
            env.step(text)
        shown = prompt(env, "evaluator_0")
        assert "SECOND" in shown and "FIRST" not in shown and "LOW" not in shown


class TestOrchWorkersPrompts:
    def game(self, **options):
        env = begin(team("orch-workers", **options))
        env.step("1. by counting\n2. by adding")
        return env

    def test_a_worker_reads_its_own_line_only(self):
        shown = prompt(self.game(), "worker_1")
        assert "Your strategy: by adding" in shown and "by counting" not in shown

    def test_a_worker_with_a_subtask_is_told_so(self):
        shown = prompt(self.game(mode="subtasks"), "worker_0")
        assert "Your subtask: by counting" in shown

    def test_the_synthesizer_reads_each_line_with_its_reply(self):
        env = self.game()
        env.step("ONE")
        env.step("TWO")
        shown = prompt(env, "synthesizer_0")
        assert "Worker 1 (by counting):\nONE\n\nWorker 2 (by adding):\nTWO" in shown

    def test_without_dependencies_a_worker_has_no_line(self):
        assert "by" not in prompt(self.game(dependencies="none"), "worker_0").split("Problem:")[1]


class TestVotingPrompts:
    def test_candidates_are_numbered_from_1(self):
        env = begin(team("voting"))
        for text in ("ONE", "TWO", "THREE"):
            env.step(text)
        shown = prompt(env, "aggregator_0")
        assert "Candidate 1:\nONE\n\nCandidate 2:\nTWO\n\nCandidate 3:\nTHREE" in shown

    def test_all_voters_have_one_prompt(self):
        env = begin(team("voting"))
        assert len({prompt(env, f"voter_{k}") for k in range(3)}) == 1
