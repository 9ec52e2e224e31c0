"""MARFT's update: importance factors, orders, and games with a known optimum."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from tabular_team import episode, no_fresh_batch, sample_actions, turn

from flexmg.baselines.algorithms.losses import clipped_surrogate, masked_sum
from flexmg.baselines.algorithms.marft import MARFT, MARFTConfig, carry_over, joint_steps
from flexmg.baselines.exact.team import TabularTeam
from flexmg.baselines.rollout.turns import Batch
from flexmg.errors import InvalidArgument
from flexmg.seeding import stream

PAYOFF = np.array([[0.0, 2.0], [2.0, -1.0]])
ROLES = ("planner", "solver", "judge")


def chain_batch(rng: np.random.Generator, episodes: int = 12) -> Batch:
    """Planner -> solver -> judge with ragged actions over three tokens, random outcomes."""
    made = []
    for sample in range(episodes):
        turns = []
        for layer, role in enumerate(ROLES):
            actions = rng.integers(0, 3, size=rng.integers(1, 5))
            logs = [math.log(1 / 3)] * len(actions)
            turns.append(turn(f"{role}_0", actions, layer=layer, state=layer, log_probs=logs))
        made.append(episode(turns, [float(rng.integers(0, 2))], sample=sample))
    return Batch(made)


def chain_team() -> TabularTeam:
    return TabularTeam(ROLES, ["central"], states=3, actions=3)


def tables(team: TabularTeam) -> dict[str, list]:
    return {policy: table.detach().tolist() for policy, table in team.tables.items()}


def play_payoff(algorithm, team: TabularTeam, rng, episodes: int, iteration: int) -> None:
    row, row_logs = sample_actions(team, "row", episodes, rng)
    column, column_logs = sample_actions(team, "column", episodes, rng)
    batch = [
        episode(
            [
                turn("row_0", [row[k]], log_probs=[row_logs[k]]),
                turn("column_0", [column[k]], log_probs=[column_logs[k]]),
            ],
            [PAYOFF[row[k], column[k]]],
            sample=k,
        )
        for k in range(episodes)
    ]
    algorithm.update(Batch(batch), (iteration,), no_fresh_batch)


def payoff_after_training(seed: int, iterations: int, **settings) -> float:
    """Expected payoff of the common-payoff game, trained from p(1) = 0.2."""
    team = TabularTeam(["row", "column"], ["central"], logits=math.log(0.25))
    config = MARFTConfig(epochs=1, minibatches=1, target_kl=None, **settings)
    algorithm = MARFT(team, config, temperature=1.0)
    rng = np.random.default_rng(seed)
    for iteration in range(iterations):
        play_payoff(algorithm, team, rng, 64, iteration)
    p, q = team.probability("row", 1), team.probability("column", 1)
    return float(np.array([1 - p, p]) @ PAYOFF @ np.array([1 - q, q]))


def test_large_unclipped_steps_fail_simultaneously_and_not_with_factors():
    """Fact 6: about half the seeds of the simultaneous update end in the bad corner."""
    large = {"lr": 4.0, "clip": math.inf, "max_grad_norm": 1e9}
    simultaneous = [payoff_after_training(s, 8, importance="none", **large) for s in range(10)]
    sequential = [payoff_after_training(s, 8, importance="happo", **large) for s in range(10)]
    assert sum(value < 0 for value in simultaneous) >= 3
    assert min(sequential) > 1.9


@pytest.mark.parametrize("importance", ["none", "happo"])
def test_with_ppos_clip_both_solve_the_common_payoff_game(importance):
    values = [payoff_after_training(seed, 15, lr=0.5, importance=importance) for seed in range(3)]
    assert min(values) > 1.8


def test_importance_none_equals_a_simultaneous_update_bit_for_bit():
    """Agent by agent without a factor, against one joint loss, one backward, all steps at once."""
    batch = chain_batch(np.random.default_rng(0))
    config = MARFTConfig(importance="none", epochs=1, minibatches=1, target_kl=None)
    sequential, simultaneous = chain_team(), chain_team()
    MARFT(sequential, config, temperature=1.0).update(batch, (3,), no_fresh_batch)

    turns = [t for e in batch.episodes for t in e.turns]
    # V = 0 at first, one env step, one turn per layer: the outcome, faded by lam_a per layer.
    raw = np.array([e.step_rewards[0] * 0.95 ** (2 - k) for e in batch.episodes for k in range(3)])
    joint = torch.zeros(())
    optimisers = []
    for k, role in enumerate(ROLES):
        own = [t for t in turns if t.policy == role]
        advantage = raw[k::3]
        advantage = (advantage - advantage.mean()) / advantage.std()
        # The same order of turns as the learner, so that sums round alike.
        order = stream(3, "policy", role).permutation(np.arange(len(own)))
        size = sorted(order, key=lambda i: (len(own[i].prompt_ids) + len(own[i].action_ids), i))
        own = [own[i] for i in size]
        scores = simultaneous.log_probs(role, own, temperature=1.0)
        old = scores.log_probs.detach()
        new = scores.log_probs.masked_fill(~scores.mask, 0.0)
        ratio = masked_sum(new - old.masked_fill(~scores.mask, 0.0), scores.mask).exp()
        mu = torch.tensor([t.log_probs.sum() for t in own])
        engine = (masked_sum(old, scores.mask) - mu).exp()
        assert torch.allclose(engine, torch.ones(len(own)), atol=1e-5)
        loss, _ = clipped_surrogate(ratio, torch.tensor(advantage[size]).float(), 0.2, 0.2)
        joint = joint + loss.sum() / len(own)
        optimisers.append(
            torch.optim.AdamW(
                simultaneous.policy_parameters(role), lr=config.lr, weight_decay=0, eps=1e-5
            )
        )
    joint.backward()
    for role, optimiser in zip(ROLES, optimisers, strict=True):
        torch.nn.utils.clip_grad_norm_(simultaneous.policy_parameters(role), 1.0)
        optimiser.step()
    for role in ROLES:
        assert torch.equal(sequential.tables[role], simultaneous.tables[role])


def update_in_order(roles, **settings) -> dict[str, list]:
    """One update of teams that differ only in how their policies are listed (and so permuted)."""
    team = TabularTeam(roles, ["central"], states=3, actions=3)
    batch = chain_batch(np.random.default_rng(1))
    MARFT(team, MARFTConfig(**settings), temperature=1.0).update(batch, (5,), no_fresh_batch)
    return tables(team)


def test_without_factors_the_order_of_policies_changes_no_bit():
    results = [
        update_in_order(roles, importance="none", order=order)
        for roles in (ROLES, ROLES[::-1], (ROLES[1], ROLES[0], ROLES[2]))
        for order in ("permute", "topological")
    ]
    assert all(result == results[0] for result in results)


def test_with_factors_the_order_of_policies_matters():
    assert update_in_order(ROLES, lr=0.5) != update_in_order(ROLES[::-1], lr=0.5)


def test_factors_are_the_products_of_the_ratios_of_the_same_step_hand_computed():
    """Two episodes; episode 0 has two steps. worker_0 and worker_1 share a policy."""
    turns = [
        turn("worker_0", [1]),
        turn("worker_1", [1]),
        turn("judge_0", [1], layer=1),
        turn("worker_0", [1], step=1),
        turn("judge_0", [1], step=1, layer=1),
        turn("worker_0", [1]),
        turn("judge_0", [1], layer=1),
    ]
    joint = joint_steps([5, 2], turns)
    own = np.array([0, 1, 3, 5])
    waiting = np.array([t.role == "judge" for t in turns])
    ratios = np.array([1.5, 2.0, 0.25, 0.05])
    got = carry_over(np.ones(7), joint, own, np.log(ratios), waiting)
    # 1.5 * 2 in step 0; 0.25 in step 1; 0.05 capped to 0.1. Updated turns keep theirs.
    np.testing.assert_allclose(got, [1, 1, 3.0, 1, 0.25, 1, 0.1])


def test_factors_accumulate_over_policies_and_are_capped_above():
    joint = np.zeros(3, dtype=int)
    waiting = np.array([False, False, True])
    once = carry_over(np.ones(3), joint, np.array([0]), np.log([4.0]), waiting)
    twice = carry_over(once, joint, np.array([1]), np.array([1000.0]), waiting)
    np.testing.assert_allclose(once, [1, 1, 4.0])
    np.testing.assert_allclose(twice, [1, 1, 10.0])


def test_factor_of_the_second_policy_is_the_first_ones_own_ratio():
    """One turn each, large step: the logged mean factor equals pi_new / pi_old recomputed."""
    team = TabularTeam(["row", "column"], ["central"])
    config = MARFTConfig(lr=0.3, epochs=1, minibatches=1, order="topological", clip=math.inf)
    half = [math.log(0.5)]
    batch = [
        episode(
            [
                turn("row_0", [a], log_probs=half),
                turn("column_0", [b], layer=1, log_probs=half),
            ],
            [float(a == b == 1)],
            sample=2 * a + b,
        )
        for a in (0, 1)
        for b in (0, 0, 1)
    ]
    metrics = MARFT(team, config, temperature=1.0).update(Batch(batch), (0,), no_fresh_batch)
    new = [team.probability("row", action) / 0.5 for action in (0, 0, 0, 1, 1, 1)]
    assert metrics["order"] == ["row", "column"]
    assert metrics["policies"]["row"]["importance"] == 1.0
    assert metrics["policies"]["column"]["importance"] == pytest.approx(np.mean(new), rel=1e-5)


def test_round_robin_updates_one_policy_per_interval():
    team = chain_team()
    algorithm = MARFT(team, MARFTConfig(order="round-robin", interval=2), temperature=1.0)
    updated = []
    for iteration in range(6):
        before = dict(team.versions)
        batch = chain_batch(np.random.default_rng(iteration))
        algorithm.update(batch, (iteration,), no_fresh_batch)
        updated += [p for p in ROLES if team.versions[p] > before[p]]
    assert updated == ["planner", "planner", "solver", "solver", "judge", "judge"]


def test_topological_order_follows_the_mean_layer():
    team = TabularTeam(["judge", "solver", "planner"], ["central"], states=3, actions=3)
    algorithm = MARFT(team, MARFTConfig(order="topological"), temperature=1.0)
    metrics = algorithm.update(chain_batch(np.random.default_rng(0)), (0,), no_fresh_batch)
    assert metrics["order"] == list(ROLES)


def test_permuted_order_is_fresh_each_iteration():
    algorithm = MARFT(chain_team(), MARFTConfig(), temperature=1.0)
    batch = chain_batch(np.random.default_rng(0))
    orders = {tuple(algorithm.update(batch, (k,), no_fresh_batch)["order"]) for k in range(20)}
    assert len(orders) > 3


def test_policy_without_turns_is_skipped_and_logged():
    team = TabularTeam([*ROLES, "critic"], ["central"], states=3, actions=3)
    metrics = MARFT(team, MARFTConfig(), temperature=1.0).update(
        chain_batch(np.random.default_rng(0)), (0,), no_fresh_batch
    )
    assert metrics["policies"]["critic"]["skipped"] == "it has no turns in this batch"


def test_equal_outcomes_give_no_gradient_and_say_so():
    team = chain_team()
    batch = chain_batch(np.random.default_rng(0))
    for ep in batch.episodes:
        ep.step_rewards[:] = 1.0
    metrics = MARFT(team, MARFTConfig(), temperature=1.0).update(batch, (0,), no_fresh_batch)
    assert all("equal" in block["skipped"] for block in metrics["policies"].values())
    assert tables(team) == tables(chain_team())


def test_episodes_with_an_infra_error_teach_nothing():
    clean = chain_batch(np.random.default_rng(0))
    marked = chain_batch(np.random.default_rng(0))
    broken = chain_batch(np.random.default_rng(9)).episodes
    for ep in broken:
        ep.infra_error = True
        ep.step_rewards[:] = np.nan
    marked.episodes += broken
    results = []
    for batch in (clean, marked):
        team = chain_team()
        MARFT(team, MARFTConfig(), temperature=1.0).update(batch, (0,), no_fresh_batch)
        results.append(tables(team))
    assert results[0] == results[1]


def test_a_batch_of_infra_errors_is_no_update():
    batch = chain_batch(np.random.default_rng(0))
    for ep in batch.episodes:
        ep.infra_error = True
    algorithm = MARFT(chain_team(), MARFTConfig(), temperature=1.0)
    assert algorithm.update(batch, (0,), no_fresh_batch) == {"skipped": "no episode to learn from"}


def test_truncated_episode_bootstraps_from_the_final_state():
    """With a critic that values state 2 at 5, the cut episode's target is 0.99 * 5."""
    team = chain_team()
    team.heads["central"].data[2] = 5.0
    batch = chain_batch(np.random.default_rng(0))
    for ep in batch.episodes:
        ep.terminated = False
        ep.final_state_ids = np.array([2], dtype=np.int32)
    got = MARFT(team, MARFTConfig(), temperature=1.0)._final_values(batch.episodes)
    assert got.tolist() == [5.0] * len(batch.episodes)


def test_truncated_episode_without_a_final_state_is_refused():
    batch = chain_batch(np.random.default_rng(0))
    batch.episodes[0].terminated = False
    with pytest.raises(InvalidArgument, match="final state"):
        MARFT(chain_team(), MARFTConfig(), temperature=1.0).update(batch, (0,), no_fresh_batch)


@pytest.mark.parametrize(
    "settings",
    [{"importance": "hapo"}, {"order": "random"}, {"interval": 0}, {"gamma_a": 1.5}, {"lr": 0.0}],
)
def test_bad_settings_are_refused(settings):
    with pytest.raises(InvalidArgument, match=next(iter(settings))):
        MARFTConfig(**settings)


def test_recollect_plays_a_fresh_batch_before_each_policy_but_the_first():
    """The team that plays it has changed by the update before; the first batch is the given one."""
    team = chain_team()
    config = MARFTConfig(importance="recollect", order="topological", lr=0.1)
    algorithm = MARFT(team, config, temperature=1.0)
    played = []

    def collect(place):
        played.append((place, dict(team.versions)))
        return chain_batch(np.random.default_rng(place))

    got = algorithm.update(chain_batch(np.random.default_rng(0)), (1,), collect)
    assert got["order"] == list(ROLES)
    assert played == [
        (1, {"planner": 1, "solver": 0, "judge": 0}),
        (2, {"planner": 1, "solver": 1, "judge": 0}),
    ]
    assert {block["importance"] for block in got["policies"].values()} == {1.0}


def test_recollected_policies_learn_from_the_fresh_batch_alone():
    """The second policy's update equals one on the fresh batch of a team that is as far."""
    first, second = (chain_batch(np.random.default_rng(seed)) for seed in (0, 1))
    settings = {"order": "topological", "lr": 0.1, "critic_lr": 1e-12}
    team = chain_team()
    recollect = MARFT(team, MARFTConfig(importance="recollect", **settings), temperature=1.0)
    recollect.update(first, (1,), lambda place: second)
    other = chain_team()
    other.tables["planner"].data.copy_(team.tables["planner"].data)
    MARFT(other, MARFTConfig(importance="none", **settings), temperature=1.0).update(
        second, (1,), no_fresh_batch
    )
    assert torch.allclose(other.tables["solver"], team.tables["solver"], atol=1e-6)
    assert torch.allclose(other.tables["judge"], team.tables["judge"], atol=1e-6)


def test_a_role_whose_advantages_are_all_equal_is_named_as_idle():
    team = TabularTeam(["team"], ["central"], states=3, actions=3)
    made = []
    for sample in range(6):
        # Only the planner's step is paid, and differently; the judge acts after it, for nothing.
        turns = [
            turn("planner_0", [sample % 3], policy="team", log_probs=[math.log(1 / 3)]),
            turn("judge_0", [1], policy="team", step=1, log_probs=[math.log(1 / 3)]),
        ]
        made.append(episode(turns, [float(sample % 2), 0.0], sample=sample))
    got = MARFT(team, MARFTConfig(), temperature=1.0).update(Batch(made), (0,), no_fresh_batch)
    block = got["policies"]["team"]
    assert block["idle_roles"] == {"judge": "all its advantages are equal"}
    assert (block["turns"], block["used"]) == (12, 6)
    assert "skipped" not in block


def test_a_policy_without_any_gradient_says_why_by_role():
    batch = chain_batch(np.random.default_rng(0))
    for ep in batch.episodes:
        ep.step_rewards[:] = 1.0
    got = MARFT(chain_team(), MARFTConfig(), temperature=1.0).update(batch, (0,), no_fresh_batch)
    assert got["policies"]["solver"]["skipped"] == "solver: all its advantages are equal"
    assert got["skipped_groups"] == 3
