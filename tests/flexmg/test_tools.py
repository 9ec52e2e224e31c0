"""What a domain may do besides grading: words of its own, and answers that can be tried out."""

import pytest
from scripted import act, begin, prompt
from sums import SumDomain, Sums, team

import flexmg
from flexmg.envs.workflows import WORKFLOWS
from flexmg.errors import InfraError, InvalidArgument
from flexmg.problem import ExecutingDomain, WordedDomain

ATTEMPTS = {
    "generator_0": ["Answer: 13", "Answer: 14"],
    "evaluator_0": ["Incorrect. Look again.", "Correct."],
}


class Calculator(SumDomain):
    """Tries an answer out: says by how much it misses."""

    def trial(self, problem, reply):
        return f"TRIED: {int(self.answer_key(problem, reply)) - int(problem.gold)} off"


class Broken(SumDomain):
    def trial(self, problem, reply):
        raise InfraError("the calculator is out of power")


class Shouting(SumDomain):
    def profile(self, prompts, role, designed):
        return flexmg.Profile(f"{prompts} {role}".upper(), designed.output_format)


def game(domain, workflow="eval-opt", **options):
    return flexmg.FlexMarkovGame(WORKFLOWS[workflow](domain, **options), Sums())


def tried_out(**options):
    return begin(game(Calculator(), feedback="execution", **options))


class TestExecutionFeedback:
    def test_the_report_is_part_of_the_turn(self):
        env = act(tried_out(), ATTEMPTS)
        assert [turn.report for turn in env.turns] == ["TRIED: -1 off", "", "TRIED: 0 off", ""]

    def test_the_evaluator_reads_it_below_the_attempt(self):
        env = act(tried_out(), ATTEMPTS, until=1)
        assert prompt(env, "evaluator_0").endswith("Generator:\nAnswer: 13\n\nTRIED: -1 off")

    def test_the_generator_reads_it_before_the_feedback(self):
        env = act(tried_out(), ATTEMPTS, until=2)
        chat = env.observe("generator_0")["messages"]
        assert [message["role"] for message in chat] == ["user", "assistant", "user"]
        assert chat[-1]["content"] == "TRIED: -1 off\n\nEvaluator:\nIncorrect. Look again."

    def test_nobody_reads_it_where_d_hides_the_attempt(self):
        env = flexmg.FlexMarkovGame(
            WORKFLOWS["eval-opt"](Calculator(), feedback="execution"), Sums(), dependencies="none"
        )
        assert "TRIED" not in prompt(act(begin(env), ATTEMPTS, until=1), "evaluator_0")

    def test_by_default_nothing_is_tried_out(self):
        env = act(begin(game(Calculator())), ATTEMPTS)
        assert not any(turn.report for turn in env.turns)

    def test_a_record_without_the_reports_is_found_out(self):
        env = act(tried_out(), ATTEMPTS)
        record = env.transcript().to_json().replace("TRIED: -1 off", "TRIED: 0 off")
        assert flexmg.replay(record, tried_out()).differences == (
            "turn 0 of generator_0 differs in report",
        )

    def test_it_needs_answers_that_can_be_run(self):
        with pytest.raises(InvalidArgument, match="'sums' cannot"):
            team("eval-opt", feedback="execution")

    def test_another_feedback_is_refused(self):
        with pytest.raises(InvalidArgument, match="'praise' is neither"):
            team("eval-opt", feedback="praise")


class TestBrokenTools:
    def test_the_episode_is_an_infra_error(self):
        env = act(begin(game(Broken(), feedback="execution")), ATTEMPTS)
        assert env.outcome.infra_error and set(env.outcome.rewards.values()) == {0.0}

    def test_a_step_that_fails_leaves_no_failure_behind(self):
        class Refusing(WORKFLOWS["eval-opt"]):
            def plan(self, history):
                if history.turns:
                    raise InvalidArgument("no")
                return super().plan(history)

        env = begin(flexmg.FlexMarkovGame(Refusing(Broken(), feedback="execution"), Sums()))
        env.step("Answer: 13")
        before = env.snapshot()
        with pytest.raises(InvalidArgument):
            env.step("Correct.")
        assert env.snapshot().episode.failures == before.episode.failures


class TestWording:
    @pytest.mark.parametrize(
        ("workflow", "options", "text"),
        [
            ("duo", {}, "DUO SOLVER"),
            ("orch-workers", {"mode": "subtasks"}, "ORCH-WORKERS/SUBTASKS WORKER"),
            ("orch-workers", {"mode": "strategies"}, "ORCH-WORKERS/STRATEGIES WORKER"),
        ],
    )
    def test_a_domain_words_its_own_profiles(self, workflow, options, text):
        specs = game(Shouting(), workflow, **options).workflow.specs
        role = text.rpartition(" ")[2].lower()
        assert specs[f"{role}_0"].profile.text == text

    def test_output_formats_still_name_the_answer_format(self):
        profile = game(Shouting(), "duo").workflow.specs["solver_0"].profile
        assert profile.output_format == SumDomain.answer_format

    def test_a_custom_text_has_precedence(self):
        env = game(Shouting(), "duo", profiles={"solver": "Be brief."})
        assert env.workflow.specs["solver_0"].profile.text == "Be brief."

    def test_a_domain_without_the_abilities_has_none(self):
        assert not isinstance(SumDomain(), WordedDomain | ExecutingDomain)


class TestProgramsInTexts:
    PROGRAM = "```python\nsum = 14  # call: nobody\ndone = True\nAnswer: 14\n```"

    def test_a_block_of_code_beside_done_stays_whole(self):
        env = act(begin(game(SumDomain(), "router")), {"orchestrator_0": f"DONE {self.PROGRAM}"})
        assert env.outcome.answer == self.PROGRAM

    def test_a_block_of_code_calls_nobody(self):
        text = f"CALL: solver_0\n{self.PROGRAM}".replace("nobody", "critic_0")
        env = act(begin(game(SumDomain(), "router")), {"orchestrator_0": text}, until=1)
        assert env.agents == ["orchestrator_0", "solver_0"] and not env.turns[0].fallback
