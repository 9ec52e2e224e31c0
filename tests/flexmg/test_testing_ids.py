"""Every registered environment keeps our rules and PettingZoo's."""

from __future__ import annotations

import pettingzoo
import pytest
from pettingzoo.test import api_test, seed_test

import flexmg
from flexmg.testing import check_env

IDS = [spec.id for spec in flexmg.registered()]

# PettingZoo's tests are made for arrays and discrete actions: they warn that ours are texts
# and that agents of an episode may be fewer than the possible ones. Neither is a fault.
made_for_arrays = [
    pytest.mark.filterwarnings(f"ignore:{text}")
    for text in (
        "Observation is not a NumPy array",
        "Observation space for each agent probably should be",
        "Action space for each agent probably should be",
    )
]


def with_filters(test):
    for mark in made_for_arrays:
        test = mark(test)
    return test


@pytest.mark.parametrize("id", IDS)
def test_every_id_keeps_the_rules(id):
    check_env(flexmg.make(id), seeds=(0,), orders=6, hash_seeds=(1,))


@pytest.mark.full
@pytest.mark.parametrize("id", IDS)
def test_every_id_keeps_the_rules_at_length(id):
    check_env(flexmg.make(id), seeds=range(4), orders=60, hash_seeds=(1, 2, 3))


@with_filters
@pytest.mark.parametrize("id", IDS)
def test_every_id_passes_pettingzoos_api_test(id):
    api_test(flexmg.make(id), num_cycles=40)


@pytest.mark.parametrize("id", IDS)
def test_every_id_passes_pettingzoos_seed_test(id):
    seed_test(lambda: flexmg.make(id), num_cycles=40)


@with_filters
def test_an_environment_from_pettingzoos_registry_passes_its_tests():
    api_test(pettingzoo.make("aec", "flexmg/math-voting-v0"), num_cycles=40)
    seed_test(lambda: pettingzoo.make("aec", "flexmg/math-voting-v0"), num_cycles=40)
