"""Agent names, profiles and specs."""

from __future__ import annotations

import pytest
from gymnasium import spaces

from flexmg import AgentSpec, Profile
from flexmg.agents import role_of
from flexmg.errors import InvalidArgument
from flexmg.spaces import Utterance


def spec(role="worker", slot=0, **options):
    return AgentSpec(role, slot, Profile("text", "format"), spaces.Dict(), Utterance(5), **options)


@pytest.mark.parametrize(
    ("agent", "role"), [("worker_10", "worker"), ("fact_checker_0", "fact_checker"), ("a_0", "a")]
)
def test_the_role_of_a_name(agent, role):
    assert role_of(agent) == role


@pytest.mark.parametrize("name", ["worker", "Worker_0", "worker_01", "worker_-1", "_0", "w1_0", ""])
def test_other_names_are_refused(name):
    with pytest.raises(InvalidArgument, match="agent name"):
        role_of(name)


def test_a_name_is_role_and_slot():
    assert spec(slot=12).name == "worker_12"


def test_a_spec_with_a_bad_role_is_refused():
    with pytest.raises(InvalidArgument, match="lower-case"):
        spec(role="Worker")


def test_the_output_format_is_the_profiles():
    assert spec().output_format == "format"


def test_a_profile_renders_text_then_format():
    assert Profile("Who you are.", "What to write.").render() == "Who you are.\nWhat to write."


@pytest.mark.parametrize(("text", "form"), [("", "x"), ("x", "")])
def test_an_empty_part_leaves_no_empty_line(text, form):
    assert Profile(text, form).render() == "x"
