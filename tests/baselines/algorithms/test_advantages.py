"""Advantages against a brute-force evaluation of the definitions in algorithms.md."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tabular_team import episode, turn

from flexmg.baselines.algorithms.advantages import (
    action_advantages,
    standardise,
    token_advantages,
)
from flexmg.baselines.algorithms.streams import agent_rewards, agent_streams, central_stream
from flexmg.errors import InvalidArgument

DISCOUNTS = st.sampled_from([0.0, 0.5, 0.9, 0.99, 1.0])
NUMBERS = st.floats(-3, 3, allow_nan=False, width=32)


def central_advantages(episodes, values, final_values, **discounts):
    return action_advantages(central_stream(episodes, final_values, **discounts), values)


def agent_advantages(episodes, values, final_values, **discounts):
    return action_advantages(agent_streams(episodes, final_values, **discounts), values)


@st.composite
def ragged_episodes(draw):
    """Some episodes: ragged agents, layers, steps (some idle), with values; cut or graded."""
    episodes, values = [], []
    for sample in range(draw(st.integers(1, 4))):
        turns = []
        steps = draw(st.integers(1, 4))
        for step in range(steps):
            layers = draw(st.lists(st.integers(0, 3), max_size=4))
            if step == 0 and not layers:
                layers = [0]
            names = draw(st.permutations([f"worker_{n}" for n in range(12)]))
            for name, layer in zip(names, sorted(layers), strict=False):
                turns.append(turn(name, [1] * draw(st.integers(1, 3)), step=step, layer=layer))
        acted = {t.step for t in turns}
        rewards = [draw(NUMBERS) if step in acted else 0.0 for step in range(steps)]
        cut = draw(st.booleans())
        episodes.append(episode(turns, rewards, sample=sample, terminated=not cut))
        values.append([draw(NUMBERS) for _ in turns])
    finals = [draw(NUMBERS) for _ in episodes]
    return episodes, values, finals


def brute_force_central(ep, values, final, gamma, gamma_a, lam, lam_a):
    """A_k as the explicit sum over later deltas, each weighted by the product of g l."""
    turns, count = ep.turns, len(ep.turns)

    def case(k, per_step, per_layer, end):
        if k == count - 1:
            return end
        here, there = turns[k], turns[k + 1]
        if there.step != here.step:
            result = 1.0
            for _ in range(here.step, there.step):
                result *= per_step
            return result
        return 1.0 if there.layer == here.layer else per_layer

    def delta(k):
        reward = 0.0
        if k == max(j for j in range(count) if turns[j].step == turns[k].step):
            reward = ep.step_rewards[turns[k].step]
        g = case(k, gamma, gamma_a, 0.0 if ep.terminated else gamma)
        following = values[k + 1] if k + 1 < count else (0.0 if ep.terminated else final)
        return reward + g * following - values[k]

    result = []
    for k in range(count):
        total, weight = 0.0, 1.0
        for j in range(k, count):
            total += weight * delta(j)
            weight *= case(j, gamma, gamma_a, 0.0) * case(j, lam, lam_a, 0.0)
        result.append(total)
    return result


def brute_force_agent(ep, values, finals, gamma, lam):
    """Each agent's stream, env step by env step, from the definition of r~ and delta."""
    horizon = len(ep.step_rewards)
    result = [None] * len(ep.turns)
    for k, mine in enumerate(ep.turns):
        total, weight, j = 0.0, 1.0, k
        while j is not None:
            t = ep.turns[j].step
            later = [i for i in range(len(ep.turns)) if i > j and ep.turns[i].agent == mine.agent]
            until = ep.turns[later[0]].step if later else horizon
            paid = sum(gamma ** (s - t) * ep.step_rewards[s] for s in range(t, until))
            if later:
                following = gamma ** (until - t) * values[later[0]]
            else:
                following = 0.0 if ep.terminated else gamma ** (until - t) * finals[mine.agent]
            total += weight * (paid + following - values[j])
            weight *= (gamma * lam) ** (until - t)
            j = later[0] if later else None
        result[k] = total
    return result


@given(ragged_episodes(), DISCOUNTS, DISCOUNTS, DISCOUNTS, DISCOUNTS)
@settings(max_examples=150, deadline=None)
def test_central_advantages_equal_brute_force(data, gamma, gamma_a, lam, lam_a):
    episodes, values, finals = data
    expected = [
        a
        for ep, v, final in zip(episodes, values, finals, strict=True)
        for a in brute_force_central(ep, v, final, gamma, gamma_a, lam, lam_a)
    ]
    got = central_advantages(
        episodes, np.concatenate(values), finals, gamma=gamma, gamma_a=gamma_a, lam=lam, lam_a=lam_a
    )
    np.testing.assert_allclose(got, expected, atol=1e-6)


@given(ragged_episodes(), DISCOUNTS, DISCOUNTS)
@settings(max_examples=150, deadline=None)
def test_agent_advantages_equal_brute_force(data, gamma, lam):
    episodes, values, finals = data
    final_maps = [
        {t.agent: final + t.slot for t in ep.turns}
        for ep, final in zip(episodes, finals, strict=True)
    ]
    expected = [
        a
        for ep, v, final in zip(episodes, values, final_maps, strict=True)
        for a in brute_force_agent(ep, v, final, gamma, lam)
    ]
    got = agent_advantages(episodes, np.concatenate(values), final_maps, gamma=gamma, lam=lam)
    np.testing.assert_allclose(got, expected, atol=1e-6)


def brute_force_tokens(turns, chains, value, hop, paid, gamma_w, lam_w):
    """A_{k,j} by the definition: token by token, the sum over all later deltas of its chain.

    ``hop(k)`` gives (g, l, value of what follows) after turn k's last token.
    """
    result = {}
    for chain in chains:
        tokens = [(k, j) for k in chain for j in range(len(turns[k].action_ids))]
        for start in range(len(tokens)):
            total, weight = 0.0, 1.0
            for k, j in tokens[start:]:
                if j + 1 < len(turns[k].action_ids):
                    delta = gamma_w * value[k][j + 1] - value[k][j]
                    fade = gamma_w * lam_w
                else:
                    g, lam, following = hop(k)
                    delta = paid(k) + g * following - value[k][j]
                    fade = g * lam
                total += weight * delta
                weight *= fade
            result[tokens[start]] = total
    return result


@given(ragged_episodes(), *[DISCOUNTS] * 6, st.data())
@settings(max_examples=80, deadline=None)
def test_central_token_advantages_equal_brute_force(
    data, gamma, gamma_a, gamma_w, lam, lam_a, lam_w, more
):
    """Fact 1 at the token level: three discounts, three lambdas."""
    episodes, _, finals = data
    expected, flat, lengths = [], [], []
    for ep, final in zip(episodes, finals, strict=True):
        turns = ep.turns
        value = [[more.draw(NUMBERS) for _ in t.action_ids] for t in turns]

        def hop(k, turns=turns, value=value, ep=ep, final=final):
            if k == len(turns) - 1:
                return (0.0, 0.0, 0.0) if ep.terminated else (gamma, 0.0, final)
            here, there = turns[k], turns[k + 1]
            following = value[k + 1][0]
            if there.step != here.step:
                span = there.step - here.step
                return gamma**span, lam**span, following
            if there.layer != here.layer:
                return gamma_a, lam_a, following
            return 1.0, 1.0, following

        def paid(k, turns=turns, ep=ep):
            closes = k == len(turns) - 1 or turns[k + 1].step != turns[k].step
            return ep.step_rewards[turns[k].step] if closes else 0.0

        chain = range(len(turns))
        found = brute_force_tokens(turns, [chain], value, hop, paid, gamma_w, lam_w)
        expected += [found[k, j] for k in chain for j in range(len(turns[k].action_ids))]
        flat += [v for own in value for v in own]
        lengths += [len(t.action_ids) for t in turns]
    stream = central_stream(episodes, finals, gamma=gamma, gamma_a=gamma_a, lam=lam, lam_a=lam_a)
    got = token_advantages(stream, flat, np.array(lengths), gamma_w=gamma_w, lam_w=lam_w)
    np.testing.assert_allclose(got, expected, atol=1e-6)


@given(ragged_episodes(), DISCOUNTS, DISCOUNTS, DISCOUNTS, DISCOUNTS, st.data())
@settings(max_examples=80, deadline=None)
def test_agent_token_advantages_equal_brute_force(data, gamma, gamma_w, lam, lam_w, more):
    episodes, _, finals = data
    expected, flat, lengths = [], [], []
    maps = [
        {t.agent: final + t.slot for t in ep.turns}
        for ep, final in zip(episodes, finals, strict=True)
    ]
    for ep, final in zip(episodes, maps, strict=True):
        turns = ep.turns
        value = [[more.draw(NUMBERS) for _ in t.action_ids] for t in turns]

        def later(k, turns=turns):
            own = [j for j in range(k + 1, len(turns)) if turns[j].agent == turns[k].agent]
            return own[0] if own else None

        def until(k, turns=turns, ep=ep):
            return len(ep.step_rewards) if later(k) is None else turns[later(k)].step

        def hop(k, turns=turns, value=value, ep=ep, final=final):
            span = until(k) - turns[k].step
            if later(k) is not None:
                return gamma**span, lam**span, value[later(k)][0]
            return (0.0, 0.0, 0.0) if ep.terminated else (gamma**span, 0.0, final[turns[k].agent])

        def paid(k, turns=turns, ep=ep):
            t = turns[k].step
            return sum(gamma ** (s - t) * ep.step_rewards[s] for s in range(t, until(k)))

        agents = dict.fromkeys(t.agent for t in turns)
        chains = [[k for k, t in enumerate(turns) if t.agent == agent] for agent in agents]
        found = brute_force_tokens(turns, chains, value, hop, paid, gamma_w, lam_w)
        expected += [found[k, j] for k, t in enumerate(turns) for j in range(len(t.action_ids))]
        flat += [v for own in value for v in own]
        lengths += [len(t.action_ids) for t in turns]
    stream = agent_streams(episodes, maps, gamma=gamma, lam=lam)
    got = token_advantages(stream, flat, np.array(lengths), gamma_w=gamma_w, lam_w=lam_w)
    np.testing.assert_allclose(got, expected, atol=1e-6)


@given(ragged_episodes(), DISCOUNTS, DISCOUNTS, DISCOUNTS, DISCOUNTS)
@settings(max_examples=80, deadline=None)
def test_values_constant_inside_actions_give_action_level_advantages(
    data, gamma, gamma_a, lam, lam_a
):
    """Fact 2: gamma_w = lam_w = 1; also after standardisation, whatever the lengths."""
    episodes, values, finals = data
    turns = [t for ep in episodes for t in ep.turns]
    lengths = np.array([len(t.action_ids) for t in turns])
    stream = central_stream(episodes, finals, gamma=gamma, gamma_a=gamma_a, lam=lam, lam_a=lam_a)
    flat = np.concatenate(values)
    action = action_advantages(stream, flat)
    token = token_advantages(stream, np.repeat(flat, lengths), lengths, gamma_w=1, lam_w=1)
    np.testing.assert_allclose(token, np.repeat(action, lengths), atol=1e-9)
    roles = [t.slot % 2 for t in turns]
    whole, parts = standardise(action, roles), standardise(token, roles, lengths)
    np.testing.assert_allclose(
        parts.advantages, np.repeat(whole.advantages, lengths), atol=1e-6, rtol=1e-6
    )
    assert parts.used.tolist() == whole.used.tolist()


def test_a_naive_token_discount_lets_an_early_token_see_little_of_the_reward():
    """gamma_w = 0.99 over 512 tokens: 0.6 % of the reward is left at the first."""
    ep = episode([turn("solver_0", [1] * 512)], [1.0])
    stream = central_stream([ep], [0.0], gamma=1, gamma_a=1, lam=1, lam_a=1)
    got = token_advantages(stream, np.zeros(512), np.array([512]), gamma_w=0.99, lam_w=1.0)
    assert got[0] == pytest.approx(0.99**511)
    assert 0.005 < got[0] < 0.006
    assert got[-1] == 1.0


def test_every_step_terminal_reward_one_gives_advantage_one():
    """Each env step an episode of its own, paid 1 on its last turn; V = 0, no discount."""
    steps = [
        episode(
            [turn("planner_0", [1]), turn("solver_0", [1], layer=1), turn("judge_0", [1], layer=2)],
            [1.0],
            sample=s,
        )
        for s in range(5)
    ]
    got = central_advantages(steps, np.zeros(15), np.zeros(5), gamma=1, gamma_a=1, lam=1, lam_a=1)
    assert got.tolist() == [1.0] * 15


def test_step_reward_waits_for_the_last_turn_of_the_step():
    """With lambda 0 only the turn that closes a step sees its reward."""
    turns = [
        turn("planner_0", [1]),
        turn("solver_0", [1], layer=1),
        turn("planner_0", [1], step=1),
        turn("solver_0", [1], step=1, layer=1),
    ]
    got = central_advantages(
        [episode(turns, [2.0, 5.0])], np.zeros(4), [0.0], gamma=1, gamma_a=1, lam=0, lam_a=0
    )
    assert got.tolist() == [0.0, 2.0, 0.0, 5.0]


@given(ragged_episodes(), st.floats(-2, 2, allow_nan=False))
@settings(max_examples=60, deadline=None)
def test_team_reward_without_discount_or_critic_is_every_turns_return(data, outcome):
    """Fact 8 for MARFT and IPPO: V = 0, gammas and lambdas 1, R paid once at the end."""
    episodes, values, _ = data
    for ep in episodes:
        ep.terminated = True
        ep.step_rewards[:] = 0.0
        ep.step_rewards[ep.turns[-1].step] = outcome
        ep.agent_rewards = {t.agent: outcome for t in ep.turns}
    zeros = np.zeros(len(np.concatenate(values)))
    central = central_advantages(
        episodes, zeros, np.zeros(len(episodes)), gamma=1, gamma_a=1, lam=1, lam_a=1
    )
    own = agent_advantages(episodes, zeros, [{} for _ in episodes], gamma=1, lam=1)
    np.testing.assert_allclose(central, outcome)
    np.testing.assert_allclose(own, outcome)


@given(st.permutations(range(4)))
def test_terminal_reward_returns_do_not_depend_on_order_within_a_step(order):
    """Fact 2: advantage + value is the outcome for every agent, whatever the order."""
    values = np.array([0.3, -0.2, 0.9, 0.1])
    turns = [turn(f"worker_{slot}", [1]) for slot in order]
    own = values[list(order)]
    got = central_advantages(
        [episode(turns, [1.0])], own, [0.0], gamma=1, gamma_a=1, lam=1, lam_a=1
    )
    np.testing.assert_allclose(got + own, 1.0)


def test_single_agent_central_and_own_stream_agree():
    """Fact 2, one agent: MARFT's and IPPO's advantages are both PPO's."""
    turns = [turn("solver_0", [1], step=step) for step in range(5)]
    ep = episode(turns, [0.0, 1.0, 0.0, -0.5, 2.0])
    values = np.array([0.1, 0.4, -0.3, 0.7, 0.2])
    central = central_advantages([ep], values, [0.0], gamma=0.9, gamma_a=0.5, lam=0.8, lam_a=0.3)
    own = agent_advantages([ep], values, [{}], gamma=0.9, lam=0.8)
    np.testing.assert_allclose(central, own)


def test_agent_1_and_agent_10_have_trajectories_of_their_own():
    turns = [turn("agent_1", [1]), turn("agent_10", [1]), turn("agent_1", [1], step=1)]
    ep = episode(turns, [0.0, 0.0], agent_rewards={"agent_1": 1.0, "agent_10": -3.0})
    got = agent_advantages([ep], np.zeros(3), [{}], gamma=1, lam=1)
    assert got.tolist() == [1.0, -3.0, 1.0]


def test_a_reward_of_ones_own_is_paid_when_the_episode_is_graded():
    turns = [turn("voter_0", [1]), turn("voter_1", [1], step=1)]
    ep = episode(turns, [0.0, 1.0, 0.0], agent_rewards={"voter_0": 0.25, "voter_1": 1.0})
    assert agent_rewards(ep, "voter_0").tolist() == [0.0, 0.0, 0.25]
    assert agent_rewards(ep, "voter_1").tolist() == [0.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("turns", "rewards", "fault"),
    [
        ([], [1.0], "no turns"),
        ([turn("a_0", [1], step=1), turn("b_0", [1])], [0.0, 1.0], "out of"),
        ([turn("a_0", [1], step=1)], [1.0], "step rewards"),
        ([turn("a_0", [1])], [float("nan")], "not finite"),
        ([turn("a_0", [1])], [0.0, 1.0], "nobody acted"),
        ([turn("a_0", [])], [1.0], "without any token"),
    ],
)
def test_malformed_episodes_are_refused(turns, rewards, fault):
    with pytest.raises(InvalidArgument, match=fault):
        central_advantages(
            [episode(turns, rewards)],
            np.zeros(len(turns)),
            [0.0],
            gamma=1,
            gamma_a=1,
            lam=1,
            lam_a=1,
        )


def test_truncated_episode_without_final_observation_is_refused():
    ep = episode([turn("a_0", [1])], [0.0], terminated=False)
    with pytest.raises(InvalidArgument, match="final observation"):
        agent_advantages([ep], [0.0], [{}], gamma=1, lam=1)


def test_standardise_by_group_hand_computed():
    got = standardise(np.array([1.0, 3.0, 10.0, 30.0]), ["a", "a", "b", "b"])
    assert got.advantages.tolist() == [-1.0, 1.0, -1.0, 1.0]


def test_standardise_skips_and_counts_groups_without_spread():
    got = standardise(np.array([0.3, 0.3 + 1e-9, 1.0, 2.0]), ["flat", "flat", "b", "b"])
    assert got.skipped == {"flat": "all its advantages are equal"}
    assert got.used.tolist() == [False, False, True, True]
    assert got.advantages.tolist() == [0.0, 0.0, -1.0, 1.0]
