"""From a played game to the record that a learner gets."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flexmg.agents import AgentSpec
from flexmg.baselines.generation.protocol import Generation
from flexmg.baselines.rollout.turns import Episode, SampledTurn
from flexmg.seeding import draw


@dataclass(frozen=True, slots=True)
class Sampled:
    """One action as it was sampled, before its place in the episode is known.

    Args:
        policy: who acted; ``version``: how many updates it had seen.
        prompt_ids: what it read; ``cut``: tokens that its prompt lost.
        generation: what it wrote; ``text``: what the game received.
    """

    policy: str
    version: int
    prompt_ids: NDArray[np.int32]
    cut: int
    generation: Generation
    text: str


def record_turns(
    game: Any, sampled: Mapping[str, Sequence[Sampled]], key: tuple[int, ...]
) -> list[SampledTurn]:
    """The turns of a game in the learner's order, without critic inputs.

    Args:
        game: a game that holds the turns.
        sampled: each agent's actions in the order it took them.
        key: decides the order within a layer of D, where completion order would leak the
            lengths of the actions.
    """
    specs: Mapping[str, AgentSpec] = game.specs
    outcome = game.outcome
    truth = outcome.truth if outcome is not None else {}
    taken: dict[str, int] = {}
    turns = []
    for turn in game.turns:
        number = taken.get(turn.agent, 0)
        taken[turn.agent] = number + 1
        action = sampled[turn.agent][number]
        turns.append(
            SampledTurn(
                agent=turn.agent,
                role=specs[turn.agent].role,
                slot=specs[turn.agent].slot,
                policy=action.policy,
                step=turn.step,
                layer=turn.layer,
                prompt_ids=action.prompt_ids,
                action_ids=action.generation.action_ids,
                log_probs=action.generation.log_probs,
                ended=action.generation.ended,
                state_ids=np.empty(0, dtype=np.int32),
                text=action.text,
                policy_version=action.version,
                prompt_truncated=action.cut,
                fallback=turn.fallback,
                truth=truth.get(turn.position),
                sees=turn.sees,
                value=turn.value,
            )
        )
    return sorted(turns, key=lambda t: (t.step, t.layer, draw(2**62, "order", *key, t.agent)))


def record_states(
    turns: Sequence[SampledTurn],
    statement: str,
    render: Callable[[Mapping[str, Any], str, str], NDArray[np.int32]],
) -> NDArray[np.int32]:
    """Give each turn the central critic's input before it; returns that after the last.

    What stands before a turn are all turns that precede it in the learner's order, those of
    its own layer too: the state is a function of the record, not of timing.

    Args:
        turns: in the learner's order.
        statement: of the problem.
        render: makes ids of a state, who acts next (nobody: empty), and the policy whose
            base reads it; after the last turn that is the last turn's.
    """
    before: list[dict[str, Any]] = []
    for turn in turns:
        state = {"statement": statement, "turns": before}
        turn.state_ids = render(state, turn.agent, turn.policy)
        before.append({"agent": turn.agent, "step": turn.step, "text": turn.text})
    last = turns[-1].policy if turns else ""
    return render({"statement": statement, "turns": before}, "", last)


def record_outcome(
    game: Any, sample: int, turns: list[SampledTurn], error: Exception | None
) -> Episode:
    """The episode: its rewards and verdict, as far as the game got.

    Args:
        game: graded; or cut, and then the episode is truncated.
        sample: which rollout of its problem.
        turns: in the learner's order.
        error: what the environment failed with; then the episode is an infra error.
    """
    outcome = None if error is not None else game.outcome
    episode = Episode(
        problem=game.problem.id,
        sample=sample,
        turns=turns,
        step_rewards=np.zeros(max((turn.step for turn in turns), default=-1) + 1),
        agent_rewards={turn.agent: 0.0 for turn in turns},
        terminated=outcome is not None,
        status="truncated",
        infos={"level": game.problem.level},
    )
    if error is not None:
        episode.infra_error = True
        episode.status = "infra_error"
        episode.infos["error"] = f"{type(error).__name__}: {error}"
    elif outcome is not None:
        episode.step_rewards = np.array(outcome.step_rewards, dtype=np.float64)
        episode.agent_rewards = dict(outcome.rewards)
        episode.score = None if outcome.infra_error else outcome.verdict.score
        episode.status = outcome.verdict.status
        episode.infra_error = outcome.infra_error
        if outcome.infra_error:
            episode.infos["error"] = outcome.verdict.detail
    return episode


def transcript_of(game: Any) -> dict[str, Any]:
    """The game's transcript as plain JSON data."""
    data: dict[str, Any] = json.loads(game.transcript().to_json())
    return data
