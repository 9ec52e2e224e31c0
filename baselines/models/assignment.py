"""Who plays with which policy, and which policies learn."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from typing import Literal

from flexmg.agents import role_of
from flexmg.errors import InvalidArgument

PolicyMap = Literal["shared", "isolated", "per-agent"] | Mapping[str, str]
SHARED_POLICY = "team"
# Guests play without an adapter and never learn.
SCRIPTED, RANDOM, ENDPOINT = "scripted", "random", "openai:"


def is_guest(policy: str) -> bool:
    """Whether a policy is a script, a random writer or somebody else's server."""
    return policy in (SCRIPTED, RANDOM) or policy.startswith(ENDPOINT)


def assign_policies(agents: Sequence[str], policy_map: PolicyMap) -> dict[str, str]:
    """The policy of every agent; see ``Team`` for the words and rules.

    Raises:
        InvalidArgument: an agent without a policy, an entry for nobody, an unknown word.
    """
    if policy_map == "shared":
        return dict.fromkeys(agents, SHARED_POLICY)
    if policy_map == "isolated":
        return {agent: role_of(agent) for agent in agents}
    if policy_map == "per-agent":
        return {agent: agent for agent in agents}
    if isinstance(policy_map, str):
        raise InvalidArgument(
            f"policy map {policy_map!r} is not 'shared', 'isolated' or 'per-agent', nor a mapping "
            "from agent or role to policy"
        )
    roles = {agent: role_of(agent) for agent in agents}
    check_names(policy_map, [*agents, *roles.values()], "the policy map", "agent or role")
    assigned = {}
    for agent, role in roles.items():
        policy = policy_map.get(agent, policy_map.get(role))
        if policy is None:
            raise InvalidArgument(
                f"the policy map gives {agent!r} no policy; add an entry for it or its role "
                f"{role!r}"
            )
        assigned[agent] = policy
    return assigned


def learning_policies(assigned: Mapping[str, str], freeze: Collection[str] = ()) -> tuple[str, ...]:
    """The policies that learn: no guests, none that is frozen; in the order of the agents.

    Raises:
        InvalidArgument: ``freeze`` names no policy of the team, or nobody would learn.
    """
    own = [policy for policy in dict.fromkeys(assigned.values()) if not is_guest(policy)]
    check_names(freeze, own, "freeze", "policy")
    return tuple(policy for policy in own if policy not in freeze)


def check_names(names: Collection[str], known: Sequence[str], what: str, kind: str) -> None:
    """Refuse names that are not known, with the closest known one.

    Raises:
        InvalidArgument: a name that is not known.
    """
    known = list(dict.fromkeys(known))
    for name in names:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else f"; there are {', '.join(known)}"
            raise InvalidArgument(f"{what} names {name!r}, which is no {kind}{hint}")
