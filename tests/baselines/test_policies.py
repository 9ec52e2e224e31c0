"""Policies that play one agent at a time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flexmg.baselines.models.base import Base
from flexmg.baselines.models.team import Team
from flexmg.baselines.policies import (
    LanguageModelPolicy,
    RandomPolicy,
    ScriptedPolicy,
    model_player,
)
from flexmg.envs.math.synthetic import SyntheticSource
from flexmg.envs.registration import compose
from flexmg.errors import InvalidArgument


def play(game: Any, policy: Callable[[str, Any], str]) -> list[str]:
    game.reset(seed=0, options={"problem": 4})
    while not game.finished:
        agent = game.agent_selection
        game.step(policy(agent, game.observe(agent)))
    return [turn.text for turn in game.turns]


@pytest.fixture
def team(base: Base, make_game) -> Team:
    return Team(base, make_game("duo").possible_agents)


def test_random_texts_are_legal_and_depend_on_the_seed(make_game) -> None:
    game = make_game("duo")
    texts = [play(game, RandomPolicy(seed)) for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]


def test_a_language_model_plays_an_episode_to_its_end(team: Team, make_game) -> None:
    game = make_game("duo")
    assert len(play(game, LanguageModelPolicy(team, game.specs))) == 2


def test_a_language_model_repeats_itself_with_its_seed(team: Team, make_game) -> None:
    game = make_game("duo")
    one, again, other = (
        play(game, LanguageModelPolicy(team, game.specs, seed=seed)) for seed in (1, 1, 2)
    )
    assert one == again != other


def test_greedy_play_needs_no_seed(team: Team, make_game) -> None:
    game = make_game("duo")
    texts = [play(game, LanguageModelPolicy(team, game.specs, greedy=True, seed=s)) for s in (1, 2)]
    assert texts[0] == texts[1]


def test_a_second_call_of_an_agent_draws_anew(team: Team, make_game) -> None:
    game = make_game("duo")
    game.reset(seed=0)
    policy = LanguageModelPolicy(team, game.specs)
    seen = game.observe("planner_0")
    assert policy("planner_0", seen) != policy("planner_0", seen)


def test_an_agent_of_another_team_is_refused(team: Team, make_game) -> None:
    policy = LanguageModelPolicy(team, make_game("trio").specs)
    with pytest.raises(InvalidArgument, match="no agent 'verifier_0'"):
        policy("verifier_0", {"profile": "", "messages": ()})


def test_the_script_solves_synthetic_problems(make_domain) -> None:
    game = compose("duo", make_domain(), SyntheticSource(), {})
    play(game, ScriptedPolicy(game))
    assert game.outcome.verdict.correct


def test_a_model_by_name_plays_any_agent_of_any_game(model_folder: Path, make_game) -> None:
    player = model_player(str(model_folder))
    assert len(play(make_game("duo"), player)) == 2
    assert len(play(make_game("debate"), player)) == 4
