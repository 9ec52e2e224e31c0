"""What every workflow has in common: profiles, token limits, titles, contracts."""

from __future__ import annotations

from dataclasses import replace

import pytest
from scripted import act, begin, tabled
from sums import SumDomain, Sums, team

import flexmg
from flexmg import Call, Finish, History, Profile, Round
from flexmg.envs.workflows import WORKFLOWS
from flexmg.errors import InvalidArgument, WorkflowError
from flexmg.spaces import Utterance

EVERY = sorted(WORKFLOWS)


def profiles(workflow, **options):
    return {a: s.profile for a, s in team(workflow, **options).specs.items()}


@pytest.mark.parametrize("workflow", EVERY)
class TestEveryWorkflow:
    def test_each_role_has_a_profile_of_its_own(self, workflow):
        texts = [profile.text for profile in WORKFLOWS[workflow].roles.values()]
        assert len(set(texts)) == len(texts)

    def test_slots_of_one_role_have_one_profile(self, workflow):
        by_role = {}
        for agent, spec in team(workflow).specs.items():
            by_role.setdefault(agent.rpartition("_")[0], set()).add(spec.profile)
        assert all(len(found) == 1 for found in by_role.values())

    def test_the_domains_answer_format_reaches_somebody(self, workflow):
        formats = [p.output_format for p in profiles(workflow).values()]
        assert any(SumDomain.answer_format in form for form in formats)
        assert not any("{" in form for form in formats)

    def test_anonymous_profiles_number_the_team(self, workflow):
        found = [p.text for p in profiles(workflow, profiles="anonymous").values()]
        assert found == [
            f"You are agent {k} of a team of {len(found)}." for k in range(1, len(found) + 1)
        ]

    def test_anonymous_profiles_keep_the_output_format(self, workflow):
        named, anonymous = profiles(workflow), profiles(workflow, profiles="anonymous")
        assert [p.output_format for p in named.values()] == [
            p.output_format for p in anonymous.values()
        ]

    def test_an_anonymous_team_is_shown_no_role(self, workflow):
        """Neither role text nor role names, the output formats apart."""
        env = begin(team(workflow, profiles="anonymous"))
        shown = []
        while not env.finished:
            agent = env.agent_selection
            shown += [m["content"] for m in env.observe(agent)["messages"]]
            shown.append(env.specs[agent].profile.text)
            env.step(
                "CALL: analyst_0 -> solver_0 -> critic_0"
                if (workflow, agent, len(env.turns)) == ("router", "orchestrator_0", 0)
                else env.demonstrate(agent)
            )
        words = set(WORKFLOWS[workflow].roles) - {"orchestrator"}
        own = {"CALL: analyst_0 -> solver_0 -> critic_0"}  # the orchestrator's own format
        text = "\n".join(shown)
        for said in own:
            text = text.replace(said, "")
        assert not any(word in text.lower() for word in words)

    def test_a_demonstrating_team_is_right(self, workflow):
        env = begin(team(workflow))
        while not env.finished:
            env.step(env.demonstrate(env.agent_selection))
        assert env.outcome.verdict.correct

    def test_a_demonstrating_team_needs_no_fallback(self, workflow):
        env = begin(team(workflow))
        while not env.finished:
            env.step(env.demonstrate(env.agent_selection))
        assert [turn.fallback for turn in env.turns] == [""] * len(env.turns)
        assert env.outcome.fallback == ""

    def test_every_agent_has_a_token_limit(self, workflow):
        assert all(spec.token_limit > 0 for spec in team(workflow).specs.values())


class TestProfiles:
    def test_a_text_replaces_the_role_text_and_keeps_the_format(self):
        named = profiles("duo")["solver_0"]
        custom = profiles("duo", profiles={"solver": "Be brief."})["solver_0"]
        assert custom == Profile("Be brief.", named.output_format)

    def test_a_profile_replaces_both(self):
        given = Profile("Be brief.", "One word.")
        assert profiles("duo", profiles={"solver": given})["solver_0"] == given

    def test_a_mapping_is_a_profile(self):
        given = {"text": "Be brief.", "output_format": "One word."}
        assert profiles("duo", profiles={"solver": given})["solver_0"] == Profile(**given)

    def test_what_a_mapping_leaves_out_stays(self):
        named = profiles("duo")["solver_0"]
        custom = profiles("duo", profiles={"solver": {"output_format": "One word."}})["solver_0"]
        assert custom == Profile(named.text, "One word.")

    def test_the_answer_format_may_be_asked_for(self):
        given = Profile("Be brief.", "{answer_format}")
        custom = profiles("duo", profiles={"solver": given})["solver_0"]
        assert custom.output_format == SumDomain.answer_format

    def test_the_other_roles_stay(self):
        assert (
            profiles("duo", profiles={"solver": "x"})["planner_0"] == profiles("duo")["planner_0"]
        )

    def test_all_slots_of_a_role_get_it(self):
        custom = profiles("voting", profiles={"voter": "Guess."})
        assert [custom[f"voter_{k}"].text for k in range(3)] == ["Guess."] * 3

    def test_the_agent_is_shown_it(self):
        env = begin(team("single", profiles={"solver": "Be brief."}))
        assert env.observe("solver_0")["profile"].startswith("Be brief.\n")

    @pytest.mark.parametrize(
        ("given", "says"),
        [
            ("nobody", "neither 'roles', 'anonymous'"),
            (None, "neither 'roles', 'anonymous'"),
            ({"teacher": "x"}, r"\['teacher'\], but the roles of 'duo' are"),
            ({"solver": 5}, r"profiles\['solver'\]"),
            ({"solver": {"words": "x"}}, r"profiles\['solver'\]"),
            ({"solver": {"text": 5}}, r"profiles\['solver'\]"),
        ],
    )
    def test_anything_else_is_refused(self, given, says):
        with pytest.raises(InvalidArgument, match=says):
            team("duo", profiles=given)


class TestTokenLimits:
    def limits(self, given):
        return {a: s.token_limit for a, s in team("duo", token_limits=given).specs.items()}

    def test_one_for_all(self):
        assert self.limits(64) == {"planner_0": 64, "solver_0": 64}

    def test_by_role(self):
        assert self.limits({"solver": 64}) == {"planner_0": 512, "solver_0": 64}

    @pytest.mark.parametrize(
        "given", [0, -1, 1.5, True, "many", {"solver": 0}, {"solver": None}, {"teacher": 5}]
    )
    def test_anything_else_is_refused(self, given):
        with pytest.raises(InvalidArgument, match="token_limits"):
            self.limits(given)


@pytest.mark.parametrize("option", [{"n": 0}, {"n": -1}, {"n": 1.5}, {"n": True}, {"n": "3"}])
@pytest.mark.parametrize("workflow", ["voting", "orch-workers", "debate"])
def test_a_number_of_agents_that_is_none_is_refused(workflow, option):
    with pytest.raises(InvalidArgument, match="n="):
        team(workflow, **option)


@pytest.mark.parametrize(("workflow", "option"), [("debate", "rounds"), ("router", "cap")])
def test_a_cap_that_is_none_is_refused(workflow, option):
    with pytest.raises(InvalidArgument, match=f"{option}=0"):
        team(workflow, **{option: 0})


def test_titles_are_roles_with_numbers_where_there_are_several():
    workflow = team("orch-workers").workflow
    assert [workflow.title(a) for a in workflow.agents] == [
        "Orchestrator",
        "Worker 1",
        "Worker 2",
        "Worker 3",
        "Synthesizer",
    ]


def test_anonymous_titles_are_numbers():
    workflow = team("duo", profiles="anonymous").workflow
    assert [workflow.title(a) for a in workflow.agents] == ["Agent 1", "Agent 2"]


def test_every_field_of_a_spec_may_differ_from_agent_to_agent():
    class Mixed(type(team("duo").workflow)):
        def __init__(self, domain, **options):
            super().__init__(domain, **options)
            solver = replace(self.specs["solver_0"], action_space=Utterance(10), token_limit=4)
            self.specs["solver_0"] = solver

    env = begin(flexmg.FlexMarkovGame(Mixed(SumDomain()), Sums()))
    env.step("a long plan, longer than ten characters")
    with pytest.raises(flexmg.FlexMGError, match=r"Utterance\(10\)"):
        env.step("a long answer")
    env.step("Answer: 14")
    assert env.outcome.verdict.correct


class TestHistory:
    HISTORY = History(
        act(
            begin(tabled(Round((Call("a_0"), Call("b_0"))))), dict.fromkeys(["a_0", "b_0"], "x")
        ).turns,
        len,
    )

    def test_the_last_turn_of_an_agent(self):
        assert self.HISTORY.last("b_0").position == 1

    def test_of_an_agent_that_has_not_acted(self):
        with pytest.raises(WorkflowError, match="'c_0' has not acted"):
            self.HISTORY.last("c_0")

    def test_the_turns_of_a_role(self):
        assert [turn.agent for turn in self.HISTORY.of_role("a")] == ["a_0"]


class TestContract:
    def make(self, **members):
        defaults = {
            "name": "own",
            "roles": {"solver": Profile("Solve.")},
            "team": lambda self: ["solver_0"],
            "plan": lambda self, history: (
                Round((Call("solver_0"),))
                if not history.turns
                else Finish(history.turns[-1].text, ("solver_0",))
            ),
        }
        return type("Own", (flexmg.Workflow,), defaults | members)(SumDomain())

    def test_name_roles_team_and_plan_are_enough(self):
        env = begin(flexmg.FlexMarkovGame(self.make(), Sums()))
        env.step("Answer: 14")
        assert env.outcome.rewards == {"solver_0": 1.0}

    @pytest.mark.parametrize("team", [[], ["solver_0", "solver_0"]])
    def test_a_team_of_nobody_or_of_twins_is_refused(self, team):
        with pytest.raises(WorkflowError, match="different agents"):
            self.make(team=lambda self: team)

    def test_an_agent_without_a_role_is_refused(self):
        with pytest.raises(WorkflowError, match="no role for"):
            self.make(team=lambda self: ["solver_0", "critic_0"])

    def test_a_bad_name_is_refused(self):
        with pytest.raises(InvalidArgument, match="agent name"):
            self.make(team=lambda self: ["Solver"])

    def test_without_demonstrations_it_says_so(self):
        env = begin(flexmg.FlexMarkovGame(self.make(), Sums()))
        with pytest.raises(InvalidArgument, match="'own' has no scripted demonstrations"):
            env.demonstrate("solver_0")

    def test_a_problem_without_a_solution_says_so(self):
        class Bare(Sums):
            def get(self, index):
                return replace(super().get(index), payload={})

        env = begin(flexmg.FlexMarkovGame(team("single").workflow, Bare()))
        with pytest.raises(InvalidArgument, match="carries no solution"):
            env.demonstrate("solver_0")
