"""What each reward mode pays each role, by hand, for every workflow."""

from __future__ import annotations

import pytest
from scripted import act, begin
from sums import team

import flexmg

RIGHT, WRONG, NONE = "Answer: 14", "Answer: 15", "I do not know."


def paid(workflow, texts, reward, **options):
    """Rewards by agent, and the central stream's sum."""
    env = act(begin(team(workflow, reward=reward, **options)), texts)
    rewards = {agent: round(value, 6) for agent, value in env.outcome.rewards.items()}
    return rewards, round(sum(env.outcome.step_rewards), 6)


QUAD = {
    "planner_0": "1. add",
    "solver_0": WRONG,
    "reflector_0": "Incorrect.",
    "verifier_0": RIGHT,
}
VOTES = {"voter_0": WRONG, "voter_1": RIGHT, "voter_2": NONE, "aggregator_0": "Best: 2"}
ATTEMPTS = {"generator_0": [WRONG, RIGHT], "evaluator_0": ["Correct?? no, Incorrect.", "Correct."]}
ORCHESTRA = {
    "orchestrator_0": "1. a\n2. b",
    "worker_0": RIGHT,
    "worker_1": WRONG,
    "synthesizer_0": RIGHT,
}
DEBATE = {"debater_0": [WRONG, RIGHT], "debater_1": [RIGHT, RIGHT], "debater_2": [WRONG, WRONG]}
ROUTES = {
    "orchestrator_0": ["CALL: analyst_0, solver_0", "CALL: solver_0", f"DONE {RIGHT}"],
    "analyst_0": "1. add",
    "solver_0": [WRONG, RIGHT],
}


def table(**rewards):
    return {f"{name}_0" if name[-1] not in "012" else name: r for name, r in rewards.items()}


@pytest.mark.parametrize(
    ("workflow", "texts", "rewards", "central"),
    [
        ("single", {"solver_0": RIGHT}, table(solver=1), 1),
        ("duo", {"planner_0": "1. add", "solver_0": WRONG}, table(planner=0, solver=0), 0),
        ("quad", QUAD, table(planner=1, solver=0, reflector=1, verifier=1), 3 / 4),
        (
            "quad",
            QUAD | {"reflector_0": "Correct."},
            table(planner=1, solver=0, reflector=0, verifier=1),
            2 / 4,
        ),
        (
            "quad",
            QUAD | {"solver_0": RIGHT, "verifier_0": WRONG},
            table(planner=0, solver=1, reflector=0, verifier=0),
            1 / 4,
        ),
        ("voting", VOTES, table(voter_0=0, voter_1=1, voter_2=0, aggregator=1), 2 / 4),
        (
            "voting",
            VOTES | {"aggregator_0": "Best: 1"},
            table(voter_0=0, voter_1=1, voter_2=0, aggregator=0),
            1 / 4,
        ),
        # No candidate was right: the aggregator is paid the team's outcome.
        (
            "voting",
            VOTES | {"voter_1": WRONG},
            table(voter_0=0, voter_1=0, voter_2=0, aggregator=0),
            0,
        ),
        # "Correct?? no, Incorrect." begins with Correct, and means it.
        ("eval-opt", ATTEMPTS, table(generator=0, evaluator=0), 0),
        (
            "eval-opt",
            ATTEMPTS | {"evaluator_0": ["Incorrect.", "Correct."]},
            table(generator=0.5, evaluator=1),
            0.75,
        ),
        # A right verdict on a wrong attempt that gives the answer away is paid nothing.
        (
            "eval-opt",
            ATTEMPTS | {"evaluator_0": [f"Incorrect. {RIGHT}", "Correct."]},
            table(generator=0.5, evaluator=0.5),
            0.5,
        ),
        # Repeating a right answer gives nothing away.
        (
            "eval-opt",
            {"generator_0": RIGHT, "evaluator_0": f"Correct. {RIGHT}"},
            table(generator=1, evaluator=1),
            1,
        ),
        (
            "orch-workers",
            ORCHESTRA,
            table(orchestrator=1, worker_0=1, worker_1=0, synthesizer=1),
            3 / 4,
        ),
        ("debate", DEBATE, table(debater_0=0.5, debater_1=1, debater_2=0), 0.5),
        ("router", ROUTES, table(orchestrator=1, analyst=1, solver=0.5), 2.5 / 3),
    ],
)
def test_local(workflow, texts, rewards, central):
    options = {"n": 3} if workflow == "debate" else {}
    assert paid(workflow, texts, "local", **options) == (rewards, pytest.approx(central))


def test_local_with_subtasks_pays_workers_the_outcome():
    found = paid("orch-workers", ORCHESTRA, "local", mode="subtasks")
    assert found[0] == table(orchestrator=1, worker_0=1, worker_1=1, synthesizer=1)


def test_local_with_divided_facts_pays_workers_the_outcome():
    """A worker that knows a part of the facts cannot be right by itself."""
    env = begin(flexmg.make("math-orch-workers-v0", information="split", reward="local"))
    while not env.finished:
        env.step(env.demonstrate(env.agent_selection))
    assert set(env.outcome.rewards.values()) == {1.0}


@pytest.mark.parametrize(
    ("workflow", "texts", "answering"),
    [
        ("quad", QUAD, {"verifier_0"}),
        ("voting", VOTES, {"voter_1", "aggregator_0"}),
        ("eval-opt", ATTEMPTS | {"evaluator_0": ["Incorrect.", "Correct."]}, {"generator_0"}),
        ("orch-workers", ORCHESTRA, {"synthesizer_0"}),
        ("debate", DEBATE, {"debater_0", "debater_1"}),
        ("router", ROUTES, {"orchestrator_0"}),
    ],
)
class TestOutcomeModes:
    def options(self, workflow):
        return {"n": 3} if workflow == "debate" else {}

    def test_team_pays_everybody_alike_and_the_central_stream_once(
        self, workflow, texts, answering
    ):
        rewards, central = paid(workflow, texts, "team", **self.options(workflow))
        assert set(rewards.values()) == {1.0} and central == 1.0

    def test_designated_pays_those_who_answered(self, workflow, texts, answering):
        rewards, central = paid(workflow, texts, "designated", **self.options(workflow))
        assert {agent for agent, reward in rewards.items() if reward} == answering
        assert central == 1.0

    def test_weights_add_up(self, workflow, texts, answering):
        options = self.options(workflow)
        team_, _ = paid(workflow, texts, "team", **options)
        local, _ = paid(workflow, texts, "local", **options)
        mixed, _ = paid(workflow, texts, {"team": 0.25, "local": 0.5}, **options)
        assert mixed == {
            agent: pytest.approx(0.25 * team_[agent] + 0.5 * local[agent]) for agent in team_
        }


def test_truth_is_given_per_turn():
    env = act(begin(team("eval-opt")), ATTEMPTS | {"evaluator_0": ["Incorrect.", "Correct."]})
    assert env.outcome.truth == {0: 0.0, 1: 1.0, 2: 1.0, 3: 1.0}


def test_a_turn_without_a_truth_of_its_own_has_none():
    env = act(begin(team("quad")), QUAD)
    assert env.infos["planner_0"]["truth"] == [None]


def test_the_format_term_counts_fallbacks():
    texts = ORCHESTRA | {"orchestrator_0": "a\nb"}
    rewards, _ = paid("orch-workers", texts, {"format": 1.0})
    assert rewards == table(orchestrator=0, worker_0=1, worker_1=1, synthesizer=1)
