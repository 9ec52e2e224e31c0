from __future__ import annotations

import pytest
from characters import ALPHABET, Characters
from gymnasium import spaces
from pettingzoo.test import api_test, seed_test
from sums import played, team

from flexmg.errors import InvalidAction, InvalidArgument
from flexmg.wrappers import RecordEpisodes, RewardMode, TokenLevel
from flexmg.wrappers.record import read

WIDE, NARROW = Characters(ALPHABET), Characters("AZanswer: 0123456789")


def by_tokens(workflow="duo", **options):
    return TokenLevel(team(workflow), WIDE, **options)


def write(env, text):
    """Let the selected agent write a text, token by token, EOS included."""
    for token in env.spell(env.agent_selection, text):
        env.step(token)


def demonstrated(env, seed=0):
    """Play an episode of demonstrations token by token; what ``last`` reported, per step."""
    rewards = []
    env.reset(seed=seed)
    while env.agents:
        agent = env.agent_selection
        if env.terminations[agent]:
            rewards.append((agent, env.last()[1]))
            env.step(None)
            continue
        for token in env.spell(agent, env.unwrapped.demonstrate(agent)):
            rewards.append((agent, env.last()[1]))
            env.step(token)
    return rewards


def test_tokens_spell_the_games_action():
    env = by_tokens()
    env.reset(seed=0)
    write(env, "first 1\nthen 2")
    assert env.turns[0].text == "first 1\nthen 2"


def test_an_episode_by_tokens_is_the_episode_by_texts():
    env, game = by_tokens("orch-workers"), team("orch-workers")
    demonstrated(env, seed=3)
    played(game, seed=3)
    assert env.unwrapped.transcript() == game.transcript()


def test_an_agent_keeps_its_turn_until_eos():
    env = by_tokens()
    env.reset(seed=0)
    for token in WIDE.encode("abc"):
        env.step(token)
        assert env.agent_selection == "planner_0"
    env.step(WIDE.eos_token_id)
    assert env.agent_selection == "solver_0"


def test_eos_alone_is_the_empty_action():
    env = by_tokens()
    env.reset(seed=0)
    env.step(WIDE.eos_token_id)
    assert env.turns[0].text == ""


def test_the_token_limit_ends_an_action_without_eos():
    env = by_tokens(token_limits={"planner": 3, "solver": 100})
    env.reset(seed=0)
    for token in WIDE.encode("abc"):
        env.step(token)
    assert env.turns[0].text == "abc"


def test_agents_have_their_own_vocabularies():
    env = TokenLevel(team("duo"), {"planner": WIDE, "solver_0": NARROW})
    assert env.action_space("planner_0") == spaces.Discrete(len(ALPHABET) + 1)
    assert env.action_space("solver_0") == spaces.Discrete(21)


def test_added_tokens_count_into_the_vocabulary():
    class WithAddedTokens(Characters):
        def __len__(self):
            return self.vocab_size + 7

    env = TokenLevel(team("single"), WithAddedTokens("ab"))
    assert env.action_space("solver_0").n == 3 + 7


def test_every_token_but_the_last_is_paid_nothing():
    rewards = demonstrated(by_tokens("single"))
    assert [reward for _, reward in rewards[:-1]] == [0.0] * (len(rewards) - 1)
    assert rewards[-1] == ("solver_0", 1.0)


def test_rewards_sum_to_the_outcome():
    env = by_tokens("eval-opt")
    total: dict[str, float] = {}
    for agent, reward in demonstrated(env):
        total[agent] = total.get(agent, 0.0) + reward
    assert total == env.outcome.rewards


def test_observations_hold_the_tokens_so_far_and_lie_in_their_space():
    env = by_tokens()
    env.reset(seed=0)
    env.step(5)
    env.step(7)
    observation = env.observe("planner_0")
    assert observation["tokens"] == (5, 7)
    assert env.observation_space("planner_0").contains(observation)


def test_the_state_holds_unfinished_actions_and_lies_in_its_space():
    env = by_tokens()
    env.reset(seed=0)
    env.step(5)
    assert env.state()["tokens"] == {"planner_0": (5,), "solver_0": ()}
    assert env.state_space.contains(env.state())


def test_ready_agents_may_take_turns_token_by_token():
    env = by_tokens("voting")
    env.reset(seed=0)
    for a, b in zip(WIDE.encode("one"), WIDE.encode("two"), strict=True):
        env.select("voter_0")
        env.step(a)
        env.select("voter_1")
        env.step(b)
    for agent in ("voter_1", "voter_0"):
        env.select(agent)
        env.step(WIDE.eos_token_id)
    assert [turn.text for turn in env.turns] == ["one", "two"]


@pytest.mark.parametrize("token", [-1, 10_000, "a", None, 1.5])
def test_what_is_no_token_is_refused_and_changes_nothing(token):
    env = by_tokens()
    env.reset(seed=0)
    env.step(5)
    before = env.observe("planner_0")["tokens"], env.agent_selection
    with pytest.raises(InvalidAction, match="token id below"):
        env.step(token)
    assert (env.observe("planner_0")["tokens"], env.agent_selection) == before


def test_tokens_that_spell_what_no_action_may_hold_are_left_out():
    env = TokenLevel(team("single"), Characters("a\x00\ud800b"))
    env.reset(seed=0)
    for token in (0, 1, 2, 3, 4):
        env.step(token)
    assert env.turns[0].text == "ab"


def test_a_snapshot_holds_unfinished_actions():
    env = by_tokens()
    env.reset(seed=0)
    env.step(5)
    snapshot = env.snapshot()
    write(env, "something else")
    env.restore(snapshot)
    assert env.observe("planner_0")["tokens"] == (5,)
    write(env, "x")
    assert env.turns[0].text == WIDE.decode([5]) + "x"


def test_reset_forgets_unfinished_actions():
    env = by_tokens()
    env.reset(seed=0)
    env.step(5)
    env.reset(seed=0)
    assert env.observe("planner_0")["tokens"] == ()


def test_an_agent_without_a_tokenizer_is_refused():
    with pytest.raises(InvalidArgument, match="solver_0 has no tokenizer"):
        TokenLevel(team("duo"), {"planner": WIDE})


def test_a_limit_below_one_is_refused():
    with pytest.raises(InvalidArgument, match="limit of planner_0 is 0"):
        by_tokens(token_limits=0)


def test_it_stands_over_other_wrappers(tmp_path):
    file = tmp_path / "episodes.jsonl"
    env = TokenLevel(RecordEpisodes(RewardMode(team("voting"), "designated"), file), WIDE)
    total: dict[str, float] = {}
    for agent, reward in demonstrated(env):
        total[agent] = total.get(agent, 0.0) + reward
    ((_, record),) = read(file)
    assert total == record.rewards
    assert total == {"voter_0": 1.0, "voter_1": 0.0, "voter_2": 0.0, "aggregator_0": 1.0}


# PettingZoo's test warns of observations that are no arrays: ours are chats.
@pytest.mark.filterwarnings("ignore:Observation")
def test_it_passes_pettingzoos_tests():
    def make():
        return TokenLevel(team("voting"), NARROW, token_limits=4)

    api_test(make(), num_cycles=100)
    seed_test(make, num_cycles=100)
