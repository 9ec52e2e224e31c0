"""What the figures say, in sentences; and when they say nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flexmg.baselines.diagnostics.cliff import Cliff
from flexmg.baselines.diagnostics.gradients import noise_free_amplification, noise_free_capture

Row = dict[str, Any]
# Looks that noise-free figures need before they are told: one pair of halves is itself noise.
FEWEST_LOOKS = 3
ALIGNED, CANCELLING = 0.8, 0.5  # of the way from the null to N, and of the null
CAPTURED = 0.7
OFTEN = 0.2


def sentences(looks: Sequence[Row], cliff: Cliff | None = None) -> list[str]:
    """What a run's looks say, the gravest first.

    Args:
        looks: rows of ``diagnostics.jsonl``, in order.
        cliff: of the validation accuracy, if there is one.
    """
    said = []
    if cliff is not None:
        said.append(
            f"accuracy cliff: validation accuracy fell from {cliff.high:.1%} (iteration "
            f"{cliff.peak}) to {cliff.low:.1%} (iteration {cliff.last}), t = {cliff.statistic:.1f} "
            f"where noise stays below {cliff.threshold:.1f}"
        )
    if not looks:
        return said
    for policy in dict.fromkeys(name for look in looks for name in look["policies"]):
        blocks = [look["policies"][policy] for look in looks if policy in look["policies"]]
        said += _capture(policy, blocks)
        for role in dict.fromkeys(role for block in blocks for role in block["roles"]):
            said += _amplification(role, [b["roles"][role] for b in blocks if role in b["roles"]])
    said += _texts(looks[-1])
    if not said:
        said.append("nothing stands out: no role captures a policy, no copies push one way")
    return said


def _amplification(role: str, blocks: Sequence[Row]) -> list[str]:
    """Whether copies of a role push one way."""
    copies = max(block["copies"] for block in blocks)
    whole = [block for block in blocks if block["copies"] == copies]
    if copies < 2:
        return []
    value = float(np.mean([block["amplification"] for block in whole]))
    null = float(np.mean([block["null"] for block in whole]))
    turns = float(np.mean([block["turns"] for block in whole]))
    free = noise_free_amplification(whole) if len(whole) >= FEWEST_LOOKS else None
    tail = f"; without noise {free:.1f}" if free is not None else ""
    figures = (
        f"amplification {value:.1f} of {copies} (orthogonal gradients: {null:.1f}; "
        f"{turns:.0f} turns a copy{tail})"
    )
    name = plural(role)
    if value >= null + ALIGNED * (copies - null):
        return [f"{name} push in one direction: {figures}"]
    if value <= CANCELLING * null:
        return [f"{name} push against each other: {figures}"]
    return []


def _capture(policy: str, blocks: Sequence[Row]) -> list[str]:
    """Whether one role owns a shared policy."""
    roles = dict.fromkeys(role for block in blocks for role in block["roles"])
    if len(roles) < 2:
        return []
    shares = {
        role: float(
            np.mean([block["roles"].get(role, {"share": 0.0})["share"] for block in blocks])
        )
        for role in roles
    }
    largest = max(shares, key=shares.__getitem__)
    effective = float(np.mean([block["effective_roles"] for block in blocks]))
    said = []
    if shares[largest] >= CAPTURED:
        free = None
        if len(blocks) >= FEWEST_LOOKS:
            free = noise_free_capture([block["roles"] for block in blocks])
        tail = f", {free[largest]:.0%} without noise" if free else ""
        said.append(
            f"{largest} captures policy {policy}: {shares[largest]:.0%} of its gradient mass{tail} "
            f"({effective:.1f} effective roles of {len(roles)})"
        )
    conflicts = [b["conflict_rate"] for b in blocks if b["conflict_rate"] is not None]
    if conflicts and np.mean(conflicts) > 0.5:
        said.append(
            f"the agents of policy {policy} pull apart: {np.mean(conflicts):.0%} of pairs have "
            "opposed gradients"
        )
    return said


def _texts(look: Row) -> list[str]:
    said = []
    for role, signs in look["text"]["roles"].items():
        if signs["fallback"] > OFTEN:
            said.append(f"{signs['fallback']:.0%} of {role} texts cannot be read by the workflow")
        if signs.get("false_accept", 0.0) > OFTEN:
            said.append(
                f"{role} waves wrong work through: {signs['false_accept']:.0%} of its verdicts are "
                "false accepts"
            )
        if signs.get("false_reject", 0.0) > OFTEN:
            said.append(
                f"{role} rejects right work: {signs['false_reject']:.0%} of its verdicts are false "
                "rejects"
            )
        if (signs["similarity"] or 0.0) > 0.9:
            said.append(f"{plural(role)} write the same: likeness {signs['similarity']:.2f} of 1")
    right, reached = look["text"]["any_right"], look["text"]["accuracy"]
    if right is not None and reached is not None and right - reached > OFTEN:
        said.append(
            f"somebody is right in {right:.0%} of episodes, the team in {reached:.0%}: the right "
            "answer is there and is not chosen"
        )
    return said


def plural(role: str) -> str:
    """A role's name for several of its agents."""
    return role if role.endswith("s") else f"{role}s"
