"""Episodes as the learner gets them: complete, ordered, independent of timing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from flexmg.baselines.generation.local import LocalEngine
from flexmg.baselines.generation.protocol import Generation, Request, SamplingParams
from flexmg.baselines.models.base import Base
from flexmg.baselines.models.team import Team
from flexmg.baselines.rollout.collector import AgentSampling, Collector, RolloutSettings
from flexmg.baselines.rollout.rendering import Renderer
from flexmg.baselines.rollout.turns import Batch, Episode
from flexmg.errors import InfraError, InvalidArgument

KEY = (3, 1)
AGENTS = ("orchestrator_0", "worker_0", "worker_1", "worker_2", "synthesizer_0")


class Speaker:
    """An engine that says what a function of the policy and the prompt's text says."""

    def __init__(self, tokenizer: Any, say: Callable[[str, str], str]) -> None:
        self.tokenizer, self.say = tokenizer, say
        self.batches: list[list[str]] = []

    def generate(self, requests: Sequence[Request]) -> list[Generation]:
        self.batches.append([request.policy for request in requests])
        out = []
        for request in requests:
            text = self.say(request.policy, self.tokenizer.decode(request.prompt_ids))
            ids = self.tokenizer.encode(text, add_special_tokens=False)
            ids = np.array([*ids, 258], dtype=np.int32)
            out.append(Generation(ids, np.zeros(len(ids), dtype=np.float32), "eos"))
        return out


def orchestrate(policy: str, prompt: str) -> str:
    """Two strategies; the rest answers with the sum that the problem asks for."""
    if policy == "orchestrator":
        return "1. add\n2. double"
    number = prompt.split("What is ")[1].split(" ")[0]
    return str(2 * int(number))


@pytest.fixture
def team(base: Base) -> Team:
    return Team(base, AGENTS)


@pytest.fixture
def collect(team: Team, make_game: Callable[..., Any]) -> Callable[..., Batch]:
    """``collect(say)`` plays scripted episodes, ``collect(None)`` sampled ones."""

    def run(
        say: Callable[[str, str], str] | None,
        problems: Sequence[int] = (4, 2, 7),
        samples: int = 2,
        domain: Any = None,
        key: tuple[int, ...] = KEY,
        limit: int = 16,
        **settings: Any,
    ) -> Batch:
        engine = LocalEngine(team.adapters) if say is None else Speaker(team.base.tokenizer, say)
        collector = Collector(
            lambda: make_game(domain=domain, token_limits=limit),
            team,
            engine,
            RolloutSettings(**settings),
        )
        return collector.collect(problems, samples, key)

    return run


def content(batch: Batch) -> list[tuple]:
    return [
        (e.problem, e.sample, e.score, [(t.agent, t.action_ids.tobytes()) for t in e.turns])
        for e in batch.episodes
    ]


def test_episodes_stand_in_the_order_of_problem_and_sample(collect) -> None:
    batch = collect(None)
    assert [(e.problem, e.sample) for e in batch.episodes] == [
        (f"sum-{i}", k) for i in (4, 2, 7) for k in (0, 1)
    ]


def test_right_answers_are_rewarded(collect) -> None:
    batch = collect(orchestrate)
    for episode in batch.episodes:
        assert episode.score == 1.0 and episode.status == "correct" and episode.terminated
        assert episode.step_rewards.tolist() == [1.0]
        assert set(episode.agent_rewards.values()) == {1.0}


def test_only_the_agents_that_were_called_have_turns(collect) -> None:
    (episode,) = collect(orchestrate, [4], 1).episodes
    assert sorted(t.agent for t in episode.turns) == [
        "orchestrator_0",
        "synthesizer_0",
        "worker_0",
        "worker_1",
    ]


def test_each_turn_has_its_own_truth(collect) -> None:
    def one_wrong(policy: str, prompt: str) -> str:
        if policy == "worker" and "double" in prompt:
            return "nonsense"
        return orchestrate(policy, prompt)

    (episode,) = collect(one_wrong, [4], 1).episodes
    truth = {t.agent: t.truth for t in episode.turns}
    assert truth["worker_0"] == 1.0 and truth["worker_1"] == 0.0


@pytest.mark.parametrize("settings", [{"games": 1}, {"games": 2, "threads": 1}, {"threads": 8}])
def test_what_is_played_does_not_depend_on_how_many_games_run(collect, settings: dict) -> None:
    assert content(collect(None, **settings)) == content(collect(None))


def test_an_episode_does_not_depend_on_the_other_problems(collect) -> None:
    assert content(collect(None, [7], 2)) == content(collect(None, [4, 2, 7], 2))[4:]


def test_samples_of_one_problem_differ(collect) -> None:
    episodes = collect(None, [4], 4).episodes
    assert len({e.turns[0].action_ids.tobytes() for e in episodes}) == 4


def test_the_key_decides_the_episodes(collect) -> None:
    assert content(collect(None)) != content(collect(None, key=(3, 2)))


def test_all_ready_agents_of_all_games_act_in_one_batch(team: Team, make_game) -> None:
    engine = Speaker(team.base.tokenizer, orchestrate)
    Collector(make_game, team, engine).collect([1, 2, 3], 2, KEY)
    assert engine.batches == [["orchestrator"] * 6, ["worker"] * 12, ["synthesizer"] * 6]


def test_a_game_that_ends_makes_room_for_the_next(team: Team, make_game) -> None:
    engine = Speaker(team.base.tokenizer, orchestrate)
    Collector(make_game, team, engine, RolloutSettings(games=2)).collect([1, 2, 3], 1, KEY)
    assert max(len(batch) for batch in engine.batches) == 4
    assert len(engine.batches) == 6


def test_turns_stand_by_env_step_and_layer(collect) -> None:
    for episode in collect(None).episodes:
        places = [(t.step, t.layer) for t in episode.turns]
        assert places == sorted(places)


def test_the_order_within_a_layer_is_shuffled_by_key(collect) -> None:
    def orders(batch: Batch) -> list[tuple[str, ...]]:
        return [tuple(t.agent for t in e.turns if t.role == "worker") for e in batch.episodes]

    one = orders(collect(orchestrate, [4], 12))
    assert set(one) == {("worker_0", "worker_1"), ("worker_1", "worker_0")}
    assert one == orders(collect(orchestrate, [4], 12, games=1))


def test_prompts_are_what_the_game_shows(collect, team: Team, make_game) -> None:
    renderer = Renderer(team.base.tokenizer)
    for episode in collect(None, [4], 3).episodes:
        game = make_game()
        game.reset(seed=0, options={"problem": 4})
        for turn in episode.turns:
            game.select(turn.agent)
            shown, _ = renderer.prompt(game.observe(turn.agent), 2000)
            assert np.array_equal(turn.prompt_ids, shown)
            game.step(turn.text)
        assert game.finished and game.outcome.verdict.score == episode.score


def test_texts_are_the_decoded_tokens(collect, team: Team) -> None:
    renderer = Renderer(team.base.tokenizer)
    for episode in collect(None).episodes:
        assert all(turn.text == renderer.decode(turn.action_ids) for turn in episode.turns)


def test_the_critics_input_holds_the_turns_before_and_no_later_one(collect, team: Team) -> None:
    def marked(policy: str, prompt: str) -> str:
        return orchestrate(policy, prompt) + f" by {policy}"

    (episode,) = collect(marked, [4], 1, limit=32).episodes
    texts = [team.base.tokenizer.decode(turn.state_ids) for turn in episode.turns]
    for k, text in enumerate(texts):
        assert text.startswith("Problem: What is 4 + 4?")
        assert text.endswith(f"Next: {episode.turns[k].agent}")
        told = [turn.agent for turn in episode.turns if f"{turn.agent}: " in text]
        assert told == [turn.agent for turn in episode.turns[:k]]


def test_states_can_be_left_out(collect) -> None:
    (episode,) = collect(orchestrate, [4], 1, states=False).episodes
    assert all(len(turn.state_ids) == 0 for turn in episode.turns)


def test_turns_carry_the_version_of_their_policy(team: Team, make_game) -> None:
    team.versions["worker"] = 5
    engine = Speaker(team.base.tokenizer, orchestrate)
    (episode,) = Collector(make_game, team, engine).collect([4], 1, KEY).episodes
    assert {t.role: t.policy_version for t in episode.turns} == {
        "orchestrator": 0,
        "worker": 5,
        "synthesizer": 0,
    }


def test_token_limits_are_each_agents_own(team: Team, make_game) -> None:
    team.base.eos_ids = ()
    limits = {"orchestrator": 3, "worker": 5, "synthesizer": 7}
    batch = Collector(lambda: make_game(token_limits=limits), team).collect([4], 1, KEY)
    assert {t.role: len(t.action_ids) for t in batch.episodes[0].turns} == limits
    assert all(t.ended == "length" for t in batch.episodes[0].turns)


def test_fallbacks_are_recorded(collect) -> None:
    def unlisted(policy: str, prompt: str) -> str:
        return "just add" if policy == "orchestrator" else orchestrate(policy, prompt)

    (episode,) = collect(unlisted, [4], 1).episodes
    assert {t.role: bool(t.fallback) for t in episode.turns}["orchestrator"]


def test_characters_that_no_game_accepts_are_replaced(collect) -> None:
    def nul(policy: str, prompt: str) -> str:
        return orchestrate(policy, prompt) + "\x00"

    (episode,) = collect(nul, [4], 1).episodes
    assert not episode.infra_error
    assert all("\x00" not in turn.text for turn in episode.turns)


def test_a_prompt_over_its_limit_is_cut_and_counted(collect) -> None:
    (episode,) = collect(None, [4], 1, max_prompt_tokens=100).episodes
    assert all(len(t.prompt_ids) <= 100 and t.prompt_truncated > 0 for t in episode.turns)


# ---------------------------------------------------------------------- failures and cuts


def test_an_environments_error_costs_its_own_episode_only(collect, make_domain) -> None:
    batch = collect(orchestrate, domain=make_domain(fails=("sum-2",)))
    assert [e.infra_error for e in batch.episodes] == [False, False, True, True, False, False]
    assert [e.score for e in batch.trainable] == [1.0] * 4


def test_a_failed_episode_says_why_and_keeps_its_turns(collect, make_domain) -> None:
    failed = collect(orchestrate, domain=make_domain(fails=("sum-2",))).episodes[2]
    assert failed.status == "infra_error" and failed.score is None
    assert failed.infos["error"] == "ZeroDivisionError: the grader of this test is broken"
    assert failed.turns[0].agent == "orchestrator_0"


def test_when_every_episode_fails_the_first_error_is_raised(collect, make_domain) -> None:
    with pytest.raises(InfraError, match="every one of 2 episodes") as caught:
        collect(orchestrate, [2], 2, domain=make_domain(fails=("sum-2",)))
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_a_verdict_that_is_our_own_failure_is_no_score(collect, make_domain) -> None:
    batch = collect(orchestrate, domain=make_domain(infra=("sum-4",)))
    failed: Episode = batch.episodes[0]
    assert failed.infra_error and failed.score is None and failed.status == "infra_error"
    assert failed.infos["error"] == "the grader's process died"
    assert len(batch.trainable) == 4


def test_a_cut_episode_is_truncated_with_a_state_to_bootstrap_from(collect, team: Team) -> None:
    (episode,) = collect(orchestrate, [4], 1, max_turns=2).episodes
    assert not episode.terminated and not episode.infra_error and episode.score is None
    assert episode.status == "truncated" and not episode.step_rewards.any()
    assert episode.final_state_ids is not None
    text = team.base.tokenizer.decode(episode.final_state_ids)
    assert "worker_1: 8" in text and text.endswith("Next: nobody")


def test_a_cut_episode_has_each_actors_own_final_prompt(collect) -> None:
    (episode,) = collect(orchestrate, [4], 1, max_turns=2).episodes
    assert set(episode.final_prompt_ids) == {"orchestrator_0", "worker_0", "worker_1"}


def test_a_graded_episode_has_nothing_to_bootstrap_from(collect) -> None:
    (episode,) = collect(orchestrate, [4], 1).episodes
    assert episode.final_state_ids is None and not episode.final_prompt_ids


def test_transcripts_come_when_asked_for(collect) -> None:
    (episode,) = collect(orchestrate, [4], 1, transcripts=True).episodes
    transcript = episode.infos["transcript"]
    assert transcript["problem"] == "sum-4" and transcript["finished"]
    assert {t["agent"]: t["text"] for t in transcript["turns"]} == {
        t.agent: t.text for t in episode.turns
    }


def test_a_collector_can_be_used_again(team: Team, make_game) -> None:
    collector = Collector(make_game, team)
    first = content(collector.collect([4, 2], 2, KEY))
    collector.collect([9], 1, (0,))
    assert content(collector.collect([4, 2], 2, KEY)) == first


def test_a_problem_listed_twice_is_refused(collect) -> None:
    with pytest.raises(InvalidArgument, match="twice"):
        collect(orchestrate, [4, 4])


@pytest.mark.parametrize(
    "settings", [{"games": 0}, {"threads": 0}, {"max_turns": 0}, {"max_prompt_tokens": 1}]
)
def test_impossible_settings_are_refused(settings: dict) -> None:
    with pytest.raises(InvalidArgument):
        RolloutSettings(**settings)


def test_agents_and_roles_sample_as_they_are_told(team: Team, make_game) -> None:
    """The worker role greedy with a stop string, worker_1 with a cap of its own."""
    seen: dict[str, SamplingParams] = {}

    class Watched(LocalEngine):
        def generate(self, requests):
            for request in requests:
                seen.setdefault(request.key[-2], request.sampling)
            return super().generate(requests)

    settings = RolloutSettings(
        temperature=0.7,
        agents={
            "worker": AgentSampling(greedy=True, stop=("\n",)),
            "worker_1": AgentSampling(max_new_tokens=3, temperature=2.0),
        },
    )
    collector = Collector(
        lambda: make_game(token_limits=16), team, Watched(team.adapters), settings
    )
    batch = collector.collect([4, 2, 7], 2, KEY)
    agents = make_game().possible_agents
    by_agent = {agents[place]: sampling for place, sampling in seen.items()}
    assert by_agent["orchestrator_0"] == SamplingParams(16, temperature=0.7)
    assert by_agent["worker_0"] == SamplingParams(16, temperature=0.7, greedy=True, stop=("\n",))
    if "worker_1" in by_agent:
        assert by_agent["worker_1"] == SamplingParams(3, temperature=2.0, greedy=True, stop=("\n",))
    assert all(len(t.action_ids) <= 3 for e in batch.episodes for t in e.turns if t.slot == 1)


@pytest.mark.full
def test_of_a_thousand_episodes_999_are_the_same_in_batches_of_any_size(
    team: Team, make_game
) -> None:
    def play(rows: int) -> list[tuple]:
        engine = LocalEngine(team.adapters, max_rows=rows)
        collector = Collector(lambda: make_game(token_limits=16), team, engine)
        return content(collector.collect(range(50), 20, KEY))

    reference = play(256)
    assert len(reference) == 1000
    for rows in (64, 7):
        assert sum(map(tuple.__eq__, play(rows), reference)) >= 999
