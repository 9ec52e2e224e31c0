"""Text signs and the sentences about them, on texts made by hand."""

from __future__ import annotations

import numpy as np
import pytest
from tabular_team import episode, turn

from flexmg.baselines.diagnostics.cliff import Cliff
from flexmg.baselines.diagnostics.text import similarity, text_signs
from flexmg.baselines.diagnostics.words import sentences
from flexmg.baselines.rollout.turns import Batch


def said(agent, text, *, truth=None, value=None, fallback="", tokens=3, step=0):
    made = turn(agent, [1] * tokens, text=text, step=step)
    made.truth, made.value, made.fallback = truth, value, fallback
    return made


def judged(sample, text, truth, value, *, right=0.0, status="wrong"):
    """A generator and an evaluator with a verdict."""
    turns = [
        said("generator_0", "x = 3", truth=right),
        said("evaluator_0", text, truth=truth, value=value),
    ]
    return episode(turns, [0.0], sample=sample, status=status)


def test_verdicts_hand_counted():
    batch = Batch(
        [
            judged(0, "Correct", 0.0, True),  # false accept, bare
            judged(1, "Incorrect, since three and four make seven here", 1.0, False),
            judged(2, "Incorrect", 0.0, False, right=1.0, status="correct"),  # false reject, bare
            judged(3, "Correct", 1.0, True, right=1.0, status="correct"),
        ]
    )
    signs = text_signs(batch)
    evaluator = signs["roles"]["evaluator"]
    assert (evaluator["accepts"], evaluator["bare"]) == (0.5, 0.75)
    assert (evaluator["false_accept"], evaluator["false_reject"]) == (0.25, 0.25)
    assert "accepts" not in signs["roles"]["generator"]
    # A right verdict is no right answer.
    assert (signs["any_right"], signs["accuracy"]) == (0.5, 0.5)


def test_lengths_fallbacks_and_infra_errors():
    turns = [said("solver_0", "7", fallback="no answer", tokens=n) for n in (1,)]
    batch = [episode(turns, [0.0])]
    batch += [episode([said("solver_0", "7", tokens=n)], [0.0]) for n in range(2, 21)]
    broken = episode([said("solver_0", "7", tokens=500)], [0.0])
    broken.infra_error = True
    role = text_signs(Batch([*batch, broken]))["roles"]["solver"]
    assert role["turns"] == 20 and role["fallback"] == 0.05
    assert role["tokens_p50"] == 10.5
    assert role["tokens_p95"] == pytest.approx(np.percentile(range(1, 21), 95))
    assert role["right"] is None


@pytest.mark.parametrize(
    ("one", "other", "value"),
    [
        ("a b c d", "a b c d", 1.0),
        ("a b c d", "a b c e", 1 / 3),  # {abc, bcd} and {abc, bce}
        ("a b c", "x y z", 0.0),
        ("7", "7", 1.0),
        ("", "", 1.0),
    ],
)
def test_similarity_of_two_texts_hand_computed(one, other, value):
    assert similarity([[one, other]]) == pytest.approx(value)


def test_one_copy_has_nobody_to_be_like():
    assert similarity([["a b c"], ["a b c"]]) is None


def look(iteration=1, *, policies=None, roles=None, accuracy=0.5, any_right=0.5):
    return {
        "iteration": iteration,
        "policies": policies or {},
        "text": {"roles": roles or {}, "accuracy": accuracy, "any_right": any_right},
    }


def role_block(**more):
    block = {
        "copies": 1,
        "turns": 20.0,
        "mass": 1.0,
        "share": 1.0,
        "coherence": 1.0,
        "amplification": 1.0,
        "null": 1.0,
        "common_mass": -1.0,
        "common_sizes": {"a": -1.0},
    }
    return {**block, **more}


def policy_block(roles, conflict=None, effective=1.0):
    return {"roles": roles, "conflict_rate": conflict, "effective_roles": effective}


def test_aligned_copies_are_said_to_push_in_one_direction():
    voters = role_block(copies=3, amplification=2.8, null=1.7)
    (sentence,) = sentences([look(policies={"voter": policy_block({"voter": voters})})])
    assert sentence.startswith("voters push in one direction: amplification 2.8 of 3")
    assert "1.7" in sentence and "20 turns a copy" in sentence


def test_noise_free_figures_are_told_from_three_looks_on():
    voters = role_block(
        copies=2,
        amplification=1.95,
        null=1.4,
        common_mass=4.0,
        common_sizes={"voter_0": 1.0, "voter_1": 1.0},
    )
    looks = [look(k, policies={"voter": policy_block({"voter": voters})}) for k in range(3)]
    assert "without noise" not in sentences(looks[:2])[0]
    assert "without noise 2.0" in sentences(looks)[0]


def test_orthogonal_copies_and_balanced_roles_are_not_worth_a_word():
    roles = {
        "voter": role_block(copies=3, amplification=1.75, null=1.73, share=0.5),
        "judge": role_block(share=0.5),
    }
    found = sentences([look(policies={"team": policy_block(roles, conflict=0.3, effective=2.0)})])
    assert found == ["nothing stands out: no role captures a policy, no copies push one way"]


def test_capture_conflict_and_cancelling_are_said():
    roles = {
        "solver": role_block(share=0.81),
        "voter": role_block(copies=2, amplification=0.2, null=1.4, share=0.19),
    }
    found = sentences([look(policies={"team": policy_block(roles, conflict=0.9, effective=1.6)})])
    assert found[0].startswith("solver captures policy team: 81% of its gradient mass")
    assert "1.6 effective roles of 2" in found[0]
    assert "pull apart: 90%" in found[1]
    assert found[2].startswith("voters push against each other")


def test_texts_are_spoken_of():
    role = {
        "turns": 9,
        "fallback": 0.3,
        "similarity": 0.95,
        "false_accept": 0.4,
        "false_reject": 0.25,
    }
    found = "\n".join(sentences([look(roles={"judge": role}, accuracy=0.4, any_right=0.7)]))
    for part in (
        "30% of judge texts cannot be read",
        "40% of its verdicts are false accepts",
        "25% of its verdicts are false rejects",
        "judges write the same",
        "somebody is right in 70% of episodes, the team in 40%",
    ):
        assert part in found


def test_a_cliff_comes_first():
    cliff = Cliff(peak=30, last=60, high=0.62, low=0.48, statistic=4.2, threshold=2.4)
    found = sentences([look()], cliff)
    assert found[0].startswith(
        "accuracy cliff: validation accuracy fell from 62.0% (iteration 30) to 48.0% (iteration 60)"
    )
