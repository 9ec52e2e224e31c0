"""How each workflow goes and ends, and every rule by which it reads a text."""

from __future__ import annotations

import pytest
from scripted import act, begin
from sums import team

import flexmg
from flexmg.envs.workflows.chain import parse_verdict
from flexmg.errors import InvalidArgument

RIGHT, WRONG, NONE = "Answer: 14", "Answer: 15", "I do not know."


def played(workflow, texts, **options):
    return act(begin(team(workflow, **options)), texts)


def designated(env):
    return env.outcome.designated, env.outcome.answer, bool(env.outcome.fallback)


class TestChains:
    @pytest.mark.parametrize(
        ("workflow", "last"),
        [
            ("single", "solver_0"),
            ("duo", "solver_0"),
            ("trio", "verifier_0"),
            ("quad", "verifier_0"),
        ],
    )
    def test_the_last_one_answers(self, workflow, last):
        env = begin(team(workflow))
        texts = dict.fromkeys(env.possible_agents, WRONG) | {last: RIGHT}
        assert designated(act(env, texts)) == ((last,), RIGHT, False)


class TestVerdicts:
    @pytest.mark.parametrize(
        "text",
        [
            "Correct",
            "correct.",
            "CORRECT! Well done.",
            "Correct. It is not incorrect, and nothing is wrong.",
            "**Correct**: all steps hold",
            "Verdict: Correct",
            r"\boxed{Correct}",
            r"$\boxed{\text{Correct}}$",
            "The solution is correct.",
            "I see no mistake, so it is correct.",
            "It cannot be incorrect.",
            "\n  - Correct",
        ],
    )
    def test_correct(self, text):
        parsed = parse_verdict(text)
        assert (parsed.value, parsed.fallback) == (True, "")

    @pytest.mark.parametrize(
        "text",
        [
            "Incorrect",
            "INCORRECT",
            "incorrect: the correct sum is larger",
            "Not correct. Count again.",
            "The solution is not correct.",
            "This isn't correct",
            "That isn’t quite correct.",
            "It is not quite correct",
            "It is never correct",
            "The result is incorrect.",
            r"\boxed{Incorrect}",
            "Verdict: Incorrect. The correct way is to add.",
        ],
    )
    def test_incorrect(self, text):
        parsed = parse_verdict(text)
        assert (parsed.value, parsed.fallback) == (False, "")

    @pytest.mark.parametrize(
        ("text", "flag"),
        [
            ("", "no verdict"),
            ("Looks fine to me.", "no verdict"),
            ("Correctly added, I say.", "no verdict"),
            ("uncorrected", "no verdict"),
            ("Is it correct? No: incorrect.", "differ"),
            ("Step 1 is correct, step 2 is not correct.", "differ"),
        ],
    )
    def test_without_a_clear_verdict_the_work_is_not_accepted_and_flagged(self, text, flag):
        parsed = parse_verdict(text)
        assert parsed.value is False and flag in parsed.fallback


class TestVoting:
    def named(self, text, replies=(WRONG, RIGHT, NONE), **options):
        env = begin(team("voting", n=len(replies), **options))
        texts = {f"voter_{k}": reply for k, reply in enumerate(replies)}
        act(env, texts | {"aggregator_0": text})
        return env

    @pytest.mark.parametrize(
        "text",
        [
            "Best: 2",
            "best: 2.",
            "Best:2",
            "**Best: 2**",
            "**Best:** 2",
            "Best: **2**",
            "Best: Candidate 2",
            "Best: #2",
            "The best is 2",
            "The best candidate is 2.",
            "Best candidate: 2",
            "Candidates 1 and 3 are wrong.\nBest: 2",
            "Best: 1? No. Best: 2",
            r"\boxed{2}",
            r"3 + 11 is 14, so \boxed{2}",
            r"\boxed{1} no: \boxed{2}",
            "2",
            "Candidate 2 is right.",
            "I take candidate 2, yes, 2.",
        ],
    )
    def test_the_named_candidate_is_graded(self, text):
        env = self.named(text)
        assert designated(env) == (("voter_1", "aggregator_0"), RIGHT, False)
        assert env.turns[-1].fallback == ""

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "None of them.",
            "1 or 2",
            "Best: 0",
            "Best: 4",
            "Best: -2",
            "Best: 2.5",
            r"\boxed{14}",
            "Best: 99999999999999999999999999",
            "14",
        ],
    )
    def test_otherwise_the_first_with_an_answer_counts_flagged(self, text):
        env = self.named(text, (NONE, RIGHT, WRONG))
        assert designated(env) == (("voter_1", "aggregator_0"), RIGHT, True)
        assert "first valid one taken" in env.turns[-1].fallback

    def test_without_any_answer_the_first_reply_counts(self):
        assert designated(self.named("?", (NONE, NONE)))[0] == ("voter_0", "aggregator_0")

    def test_a_named_candidate_counts_even_without_an_answer(self):
        assert designated(self.named("Best: 3")) == (("voter_2", "aggregator_0"), NONE, False)

    def test_the_fallback_is_told_at_the_end(self):
        assert "first" in self.named("?").infos["aggregator_0"]["answer_fallback"]

    def test_one_voter(self):
        assert designated(self.named("Best: 1", (RIGHT,)))[1] == RIGHT


class TestEvalOpt:
    def game(self, generations, verdicts, **options):
        return played("eval-opt", {"generator_0": generations, "evaluator_0": verdicts}, **options)

    def test_it_ends_when_accepted(self):
        env = self.game([RIGHT], ["Correct."])
        assert (len(env.turns), designated(env)) == (2, (("generator_0",), RIGHT, False))

    def test_it_goes_on_when_refused(self):
        env = self.game([WRONG, RIGHT], ["Incorrect.", "Correct."])
        assert (len(env.turns), designated(env)[1]) == (4, RIGHT)

    def test_an_accepted_wrong_answer_stays_wrong(self):
        assert not self.game([WRONG], ["Correct."]).outcome.verdict.correct

    @pytest.mark.parametrize("cap", [1, 2, 3])
    def test_the_cap_ends_it_the_last_one_evaluated_too(self, cap):
        env = self.game([WRONG] * cap, ["Incorrect."] * cap, cap=cap)
        assert [turn.agent for turn in env.turns] == ["generator_0", "evaluator_0"] * cap

    def test_the_cap_is_3_by_default(self):
        assert len(self.game([WRONG] * 9, ["Incorrect."] * 9).turns) == 6

    def test_a_refused_last_answer_counts(self):
        env = self.game([WRONG, WRONG, RIGHT], ["Incorrect."] * 3)
        assert env.outcome.verdict.correct

    def test_a_missing_verdict_is_a_refusal_and_flagged(self):
        env = self.game([WRONG, RIGHT], ["Hm.", "Correct."])
        assert env.turns[1].fallback == "no verdict: read as Incorrect"

    def test_one_step_per_pair(self):
        env = self.game([WRONG, RIGHT], ["Incorrect.", "Correct."])
        assert env.outcome.step_rewards == (0.0, 1.0)


class TestOrchWorkers:
    def lines(self, text, **options):
        env = begin(team("orch-workers", **options))
        env.step(text)
        return env.turns[0].value, env.turns[0].fallback

    @pytest.mark.parametrize(
        "text",
        [
            "1. add\n2. count",
            "1) add\n2) count",
            "1: add\n2: count",
            "  1.  add  \n\n  2. count",
            "1.add\n2.count",
            "Strategy 1: add\nStrategy 2: count",
            "STRATEGY 1. add\nstrategy 2. count",
            "**1.** add\n**2.** count",
            "**Strategy 1:** add\n**Strategy 2:** count",
            "- 1. add\n- 2. count",
            "### 1. add\n### 2. count",
            "Here are two strategies:\n1. add\n2. count\nGood luck!",
            "1. add\r\n2. count",
            "7. add\n7. count",
        ],
    )
    def test_numbered_lines(self, text):
        assert self.lines(text) == (["add", "count"], "")

    def test_subtasks_too(self):
        assert self.lines("Subtask 1: add\nTask 2: count", mode="subtasks")[0] == ["add", "count"]

    def test_a_decimal_number_is_no_list(self):
        lines, fallback = self.lines("3.5 is the ratio")
        assert lines == ["3.5 is the ratio"] and "no numbered lines" in fallback

    def test_without_numbers_every_line_is_taken_and_flagged(self):
        assert self.lines("add\n\ncount") == (
            ["add", "count"],
            "no numbered lines: every line taken",
        )

    @pytest.mark.parametrize("text", ["", " \n\t\n"])
    def test_an_empty_text_calls_one_worker_and_is_flagged(self, text):
        assert self.lines(text) == ([""], "empty: one worker called")

    def test_lines_beyond_n_are_left_out_and_flagged(self):
        text = "\n".join(f"{k}. s{k}" for k in range(1, 8))
        assert self.lines(text) == (["s1", "s2", "s3"], "7 lines: the first 3 taken")

    def test_two_fallbacks_are_both_flagged(self):
        fallback = self.lines("a\nb\nc\nd")[1]
        assert fallback == "no numbered lines: every line taken; 4 lines: the first 3 taken"

    @pytest.mark.parametrize(("lines", "workers"), [(0, 1), (1, 1), (2, 2), (3, 3), (7, 3)])
    def test_as_many_workers_as_lines_at_most_n(self, lines, workers):
        env = begin(team("orch-workers", n=3))
        env.step("\n".join(f"{k}. s" for k in range(1, lines + 1)))
        assert len(env.ready) == workers

    def test_the_synthesizer_answers(self):
        texts = {"orchestrator_0": "1. a", "worker_0": WRONG, "synthesizer_0": RIGHT}
        assert designated(played("orch-workers", texts)) == (("synthesizer_0",), RIGHT, False)

    def test_the_orchestrator_is_told_how_many(self):
        assert "up to 5" in team("orch-workers", n=5).specs["orchestrator_0"].output_format

    def test_the_modes_have_prompts_of_their_own(self):
        profiles = [
            {s.profile for s in team("orch-workers", mode=mode).specs.values()}
            for mode in ("strategies", "subtasks")
        ]
        assert profiles[0].isdisjoint(profiles[1])

    def test_another_mode_is_refused(self):
        with pytest.raises(InvalidArgument, match="mode='both'"):
            team("orch-workers", mode="both")


class TestDebate:
    def majority(self, *last):
        n = len(last)
        texts = {f"debater_{k}": [NONE, reply] for k, reply in enumerate(last)}
        return designated(played("debate", texts, n=n))

    def test_the_majority_of_the_last_round_counts(self):
        assert self.majority(WRONG, RIGHT, RIGHT) == (("debater_1", "debater_2"), RIGHT, False)

    def test_answers_are_compared_not_texts(self):
        said = "So Answer: 14 it is"
        assert self.majority(WRONG, RIGHT, said) == (("debater_1", "debater_2"), RIGHT, False)

    def test_a_tie_goes_to_the_first_and_is_flagged(self):
        assert self.majority(WRONG, RIGHT) == (("debater_0",), WRONG, True)

    def test_a_tie_of_two_camps_goes_to_the_camp_of_the_first(self):
        found = self.majority(NONE, RIGHT, WRONG, WRONG, RIGHT)
        assert found == (("debater_1", "debater_4"), RIGHT, True)

    def test_replies_without_an_answer_do_not_vote(self):
        assert self.majority(NONE, NONE, RIGHT) == (("debater_2",), RIGHT, False)

    def test_without_any_answer_the_first_reply_counts_and_is_flagged(self):
        assert self.majority(NONE, "Nor do I.") == (("debater_0",), NONE, True)

    @pytest.mark.parametrize(("n", "rounds"), [(1, 1), (2, 3), (3, 2)])
    def test_everybody_speaks_in_every_round(self, n, rounds):
        env = begin(team("debate", n=n, rounds=rounds))
        act(env, dict.fromkeys(env.possible_agents, RIGHT))
        assert [(t.step, t.agent) for t in env.turns] == [
            (step, f"debater_{k}") for step in range(rounds) for k in range(n)
        ]

    def test_earlier_rounds_do_not_vote(self):
        texts = {"debater_0": [RIGHT, WRONG], "debater_1": [RIGHT, WRONG]}
        assert not played("debate", texts).outcome.verdict.correct


class TestRouter:
    def read(self, text, **options):
        env = begin(team("router", **options))
        env.step(text)
        return env.turns[0].value, env.turns[0].fallback

    @pytest.mark.parametrize(
        ("text", "groups"),
        [
            ("CALL: solver_0", [["solver_0"]]),
            ("call: Solver", [["solver_0"]]),
            ("Let us begin.\nCALL: `solver_0`.", [["solver_0"]]),
            ("**CALL:** solver_0", [["solver_0"]]),
            ("CALL: analyst_0, critic_0", [["analyst_0", "critic_0"]]),
            ("CALL: analyst_0 and critic_0", [["analyst_0", "critic_0"]]),
            ("CALL: analyst_0 -> solver_0", [["analyst_0"], ["solver_0"]]),
            ("CALL: analyst_0 => solver_0", [["analyst_0"], ["solver_0"]]),
            ("CALL: analyst_0 → solver_0", [["analyst_0"], ["solver_0"]]),
            ("CALL: analyst_0, then solver_0", [["analyst_0"], ["solver_0"]]),
            (
                "CALL: analyst_0, critic_0 -> solver_0",
                [["analyst_0", "critic_0"], ["solver_0"]],
            ),
            ("DONE Answer: 14", []),
            ("We are DONE.", []),
            ("done\nAnswer: 14", []),
            ("Answer: 14\n**Done**", []),
        ],
    )
    def test_calls_and_ends(self, text, groups):
        assert self.read(text) == (groups, "")

    @pytest.mark.parametrize(
        ("text", "groups", "flag"),
        [
            ("CALL: professor_0", [], "names no specialist"),
            ("CALL:", [], "names no specialist"),
            ("CALL: solver_0, professor_0", [["solver_0"]], "professor_0"),
            ("CALL: solver_0 -> solver_0", [["solver_0"]], "twice"),
            (
                "CALL: solver_0 -> critic_0 -> solver_0",
                [["solver_0"], ["critic_0"]],
                "twice",
            ),
            ("CALL: solver_0\nDONE", [["solver_0"]], "first CALL"),
            ("CALL: analyst_0\nCALL: solver_0", [["analyst_0"]], "first CALL"),
            ("Well done! Now solver_0.", [["solver_0"]], "neither CALL nor DONE"),
            ("The solver and the critic", [["solver_0", "critic_0"]], "neither CALL nor DONE"),
            ("14", [], "neither CALL nor DONE"),
            ("", [], "neither CALL nor DONE"),
        ],
    )
    def test_fallbacks_are_flagged(self, text, groups, flag):
        value, fallback = self.read(text)
        assert value == groups and flag in fallback

    def game(self, routes, solver=NONE, **options):
        texts = {
            "orchestrator_0": routes,
            "solver_0": solver,
            "analyst_0": RIGHT,
            "critic_0": RIGHT,
        }
        return played("router", texts, **options)

    def test_an_arrow_makes_the_second_see_the_first(self):
        env = self.game(["CALL: analyst_0 -> solver_0", f"DONE {RIGHT}"])
        assert env.graph(0).edges == (
            ("orchestrator_0", "analyst_0"),
            ("orchestrator_0", "solver_0"),
            ("analyst_0", "solver_0"),
        )

    def test_a_comma_makes_them_blind_to_each_other(self):
        env = self.game(["CALL: analyst_0, solver_0", f"DONE {RIGHT}"])
        assert env.graph(0).edges == (
            ("orchestrator_0", "analyst_0"),
            ("orchestrator_0", "solver_0"),
        )

    def test_the_answer_beside_done_is_graded(self):
        env = self.game(["CALL: solver_0", f"DONE {RIGHT}"], solver=WRONG)
        assert designated(env) == (("orchestrator_0",), RIGHT, False)

    @pytest.mark.parametrize("text", ["DONE", "**DONE**", "CALL: professor_0"])
    def test_the_routing_words_are_no_answer(self, text):
        """The maths extractor would take a single last word for one."""
        env = flexmg.make("math-router-v0")
        env.reset(seed=0)
        act(env, {"orchestrator_0": ["CALL: solver_0", text], "solver_0": r"\boxed{7}"})
        assert designated(env) == (("solver_0",), r"\boxed{7}", True)

    def test_done_without_an_answer_takes_the_solvers_last(self):
        env = self.game(["CALL: solver_0", "CALL: solver_0", "DONE"], solver=[WRONG, RIGHT])
        assert designated(env) == (("solver_0",), RIGHT, True)

    def test_a_solver_without_an_answer_does_not_count(self):
        env = self.game(["CALL: solver_0", "CALL: solver_0", "DONE"], solver=[RIGHT, NONE])
        assert designated(env) == (("solver_0",), RIGHT, True)

    def test_nobodys_answer_is_the_last_text(self):
        assert designated(self.game(["DONE"])) == (("orchestrator_0",), "DONE", True)

    def test_an_answer_at_once(self):
        assert self.game([f"DONE {RIGHT}"]).outcome.step_rewards == (1.0,)

    @pytest.mark.parametrize("cap", [1, 3])
    def test_the_cap_ends_it(self, cap):
        env = self.game(["CALL: solver_0"] * 20, solver=RIGHT, cap=cap)
        assert [turn.agent for turn in env.turns] == ["orchestrator_0", "solver_0"] * cap
        assert designated(env) == (("solver_0",), RIGHT, True)

    def test_the_cap_is_10_by_default(self):
        assert len(self.game(["CALL: solver_0"] * 20, solver=RIGHT).turns) == 20

    def test_one_step_per_call(self):
        env = self.game(["CALL: solver_0", "CALL: critic_0", "DONE"], solver=RIGHT)
        assert [turn.step for turn in env.turns] == [0, 0, 1, 1, 2]

    def test_names_in_the_prompt_are_those_that_may_be_called(self):
        form = team("router").specs["orchestrator_0"].output_format
        assert all(agent in form for agent in team("router").possible_agents[1:])
