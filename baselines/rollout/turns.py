"""What crosses the boundary between rollouts and learning: plain, picklable data.

A learner sees nothing of an environment but these records, so collectors can run in
other processes or on other machines. Tokens are recorded once, at sampling, and never
re-tokenised from text (algorithms.md, "Data").
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Ended = Literal["eos", "length", "stop"]


@dataclass(slots=True)
class SampledTurn:
    """One action of one agent.

    Args:
        agent: name (``"worker_1"``); ``role`` and ``slot`` are its parts.
        policy: name of the policy (adapter) that acted.
        step: env step t_k. ``layer``: layer of D_t within that step, from 0.
        prompt_ids: int32, what the policy was shown. ``action_ids``: int32, what it
            generated, the closing EOS included when it was sampled.
        log_probs: float32, one per action token: the engine's own log-prob of each
            sampled token under the sampling distribution (mu in algorithms.md).
        ended: how the generation ended.
        state_ids: int32, the central critic's input before the turn (problem and all
            turns so far, those that D hides from the actor included).
        text: the decoded action, as the environment received it.
        policy_version: number of updates the policy had seen.
        prompt_truncated: tokens cut from the prompt to fit the context.
        fallback: the workflow's parse fallback for this turn, empty if none.
        truth: this turn's own truth in [0, 1] (the ``local`` reward), None if it has none.
        sees: the agents whose action of this step the policy was shown (a column of D_t).
        value: what the workflow parsed out of the text, JSON-serialisable: a verdict is a bool.
    """

    agent: str
    role: str
    slot: int
    policy: str
    step: int
    layer: int
    prompt_ids: NDArray[np.int32]
    action_ids: NDArray[np.int32]
    log_probs: NDArray[np.float32]
    ended: Ended
    state_ids: NDArray[np.int32]
    text: str = ""
    policy_version: int = 0
    prompt_truncated: int = 0
    fallback: str = ""
    truth: float | None = None
    sees: tuple[str, ...] = ()
    value: Any = None


@dataclass(slots=True)
class Episode:
    """One episode: its turns in the learner's order, and what came of it.

    The order of ``turns`` is (env step, layer of D, seeded shuffle within the layer),
    never the order of completion.

    Args:
        problem: id of the problem. ``sample``: which of its rollouts.
        step_rewards: float64, shape (number of env steps,): the central stream R_t, paid
            once per env step on the step's last turn.
        agent_rewards: the agent streams' total per agent name.
        terminated: graded by the environment. Otherwise the collector cut the episode
            (truncated) and ``final_state_ids`` is the critic's input to bootstrap from.
        score: the verdict's score, None when there is none. ``status``: its status.
        infra_error: our own failure: the episode is left out of training and counted.
        infos: whatever else the environment reports, JSON-serialisable.
        final_prompt_ids: of a truncated episode, what each agent that acted would be shown
            next: the input of its own critic (IPPO) to bootstrap from.
    """

    problem: str
    sample: int
    turns: list[SampledTurn]
    step_rewards: NDArray[np.float64]
    agent_rewards: dict[str, float]
    terminated: bool = True
    final_state_ids: NDArray[np.int32] | None = None
    score: float | None = None
    status: str = ""
    infra_error: bool = False
    infos: dict[str, Any] = field(default_factory=dict)
    final_prompt_ids: dict[str, NDArray[np.int32]] = field(default_factory=dict)


@dataclass(slots=True)
class Batch:
    """The episodes of one iteration, ordered by (problem, sample), independent of timing."""

    episodes: list[Episode]

    @property
    def trainable(self) -> list[Episode]:
        """Episodes without an infra error and with at least one turn."""
        return [e for e in self.episodes if not e.infra_error and e.turns]
