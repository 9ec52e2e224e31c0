"""Signs of trouble in what the agents wrote."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from flexmg.baselines.rollout.turns import Batch, Episode, SampledTurn

# A verdict that gives no reason.
BARE_WORDS = 6
GRAM = 3


def text_signs(batch: Batch) -> dict[str, Any]:
    """What the texts of an iteration look like, by role; JSON-serialisable.

    Returns:
        ``roles``: per role ``turns``; ``fallback``, the share of texts that the workflow could
        not read; ``tokens_p50`` and ``tokens_p95``; ``right``, the mean own truth (None
        without any); ``similarity`` (see :func:`similarity`; None with one copy); and for
        roles that give verdicts ``accepts`` (share), ``false_accept`` and ``false_reject``
        (shares of all verdicts) and ``bare`` (share of at most 6 words). ``any_right``: the
        share of episodes in which somebody's own answer was right (an oracle's accuracy),
        beside ``accuracy``; None where no agent is judged by itself.
    """
    episodes = [episode for episode in batch.episodes if not episode.infra_error]
    turns = [turn for episode in episodes for turn in episode.turns]
    roles: dict[str, list[SampledTurn]] = {}
    for turn in turns:
        roles.setdefault(turn.role, []).append(turn)
    judged = [_somebody_right(episode) for episode in episodes]
    known = [right for right in judged if right is not None]
    return {
        "roles": {role: _role(role, own, episodes) for role, own in roles.items()},
        "accuracy": _mean([episode.status == "correct" for episode in episodes]),
        "any_right": _mean(known),
    }


def _role(role: str, turns: Sequence[SampledTurn], episodes: Sequence[Episode]) -> dict[str, Any]:
    lengths = [len(turn.action_ids) for turn in turns]
    verdicts = [turn for turn in turns if isinstance(turn.value, bool)]
    signs: dict[str, Any] = {
        "turns": len(turns),
        "fallback": _mean([bool(turn.fallback) for turn in turns]),
        "tokens_p50": float(np.percentile(lengths, 50)),
        "tokens_p95": float(np.percentile(lengths, 95)),
        "right": _mean([turn.truth for turn in turns if turn.truth is not None]),
        "similarity": similarity([_texts(role, episode) for episode in episodes]),
    }
    if verdicts:
        wrong = [turn.truth is not None and turn.truth < 1.0 for turn in verdicts]
        accepts = [bool(turn.value) for turn in verdicts]
        signs |= {
            "accepts": _mean(accepts),
            "false_accept": _mean([a and w for a, w in zip(accepts, wrong, strict=True)]),
            "false_reject": _mean([w and not a for a, w in zip(accepts, wrong, strict=True)]),
            "bare": _mean([len(turn.text.split()) <= BARE_WORDS for turn in verdicts]),
        }
    return signs


def similarity(groups: Sequence[Sequence[str]]) -> float | None:
    """Mean likeness of two texts of one role in one env step, 0 to 1; None without pairs.

    Jaccard's index of their sets of word triples (of words, for shorter texts).
    """
    values = []
    for group in groups:
        for one, other in itertools.combinations([_grams(text) for text in group], 2):
            union = one | other
            values.append(len(one & other) / len(union) if union else 1.0)
    return _mean(values)


def _texts(role: str, episode: Episode) -> list[str]:
    """Of the copies of a role in the episode's first env step in which it acts."""
    own = [turn for turn in episode.turns if turn.role == role]
    return [turn.text for turn in own if turn.step == own[0].step]


def _grams(text: str) -> set[tuple[str, ...]]:
    words = text.split()
    size = min(GRAM, max(1, len(words)))
    return {tuple(words[i : i + size]) for i in range(len(words) - size + 1)}


def _somebody_right(episode: Episode) -> bool | None:
    """Whether an agent's own answer was right; verdicts are no answers."""
    truths = [
        turn.truth
        for turn in episode.turns
        if turn.truth is not None and not isinstance(turn.value, bool)
    ]
    return any(truth >= 1.0 for truth in truths) if truths else None


def _mean(values: Sequence[Any]) -> float | None:
    return float(np.mean(values)) if len(values) else None
