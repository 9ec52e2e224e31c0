"""Forward passes of one base over ragged sequences: log-probs of actions, critic inputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from flexmg.baselines.models.base import Base
from flexmg.baselines.models.reading import FrozenReading, Sequences
from flexmg.baselines.rollout.turns import SampledTurn
from flexmg.errors import InvalidArgument


@dataclass(frozen=True, slots=True)
class Scores:
    """Log-probs of recorded actions under a policy, padded on the right.

    Args:
        log_probs: float32 [B, L], 0 where ``mask`` is False; L is the longest action.
        mask: bool [B, L], True on tokens of the action.
        entropy: float32 [B, L] in nats, of the distribution each token was drawn from;
            None unless asked for.
    """

    log_probs: torch.Tensor
    mask: torch.Tensor
    entropy: torch.Tensor | None = None


class Passes:
    """Reads sequences of similar length together; neither padding nor company shows.

    The model plays whatever policy the caller has put in place.

    Args:
        base: the model.
        token_budget: the most tokens (padding included) of one pass.
    """

    def __init__(self, base: Base, token_budget: int) -> None:
        self.base = base
        self.token_budget = token_budget

    def score(self, turns: Sequence[SampledTurn], temperature: float, entropy: bool) -> Scores:
        """Log-probs of the turns' actions; logits at the positions of action tokens only."""
        lengths = [len(turn.action_ids) for turn in turns]
        mask = torch.arange(max(lengths, default=0))[None] < torch.tensor(lengths)[:, None]
        mask = mask.to(self.base.device)
        order: list[int] = []
        picked: list[torch.Tensor] = []
        entropies: list[torch.Tensor] = []
        for rows in self._buckets([len(t.prompt_ids) + len(t.action_ids) for t in turns]):
            logits, actions = self._action_logits([turns[i] for i in rows])
            logits = logits / temperature
            order += rows
            picked.append(-functional.cross_entropy(logits, actions, reduction="none"))
            if entropy:
                logs = torch.log_softmax(logits, dim=-1)
                entropies.append(-(logs.exp() * logs).sum(-1))
        return Scores(
            log_probs=_scatter(picked, order, mask),
            mask=mask,
            entropy=_scatter(entropies, order, mask) if entropy else None,
        )

    def features(self, wanted: Sequences) -> torch.Tensor:
        """Float32 hidden states [sum(lengths), H] at the positions that have values."""
        starts = np.cumsum(wanted.lengths) - wanted.lengths
        pieces: list[torch.Tensor] = []
        places: list[NDArray[np.int64]] = []
        for rows in self._buckets([len(ids) for ids in wanted.ids]):
            hidden = self.base.hidden(self._right_padded([wanted.ids[i] for i in rows]))
            for row, i in enumerate(rows):
                end, count = len(wanted.ids[i]), int(wanted.lengths[i])
                pieces.append(hidden[row, end - count : end].float())
                places.append(np.arange(starts[i], starts[i] + count))
        if not pieces:
            return torch.zeros(0, self.base.width, device=self.base.device)
        index = torch.from_numpy(np.concatenate(places)).to(self.base.device)
        return torch.cat(pieces)[torch.argsort(index)]

    def read(self, wanted: Sequences) -> FrozenReading:
        """Features without gradients; equal sequences are read once."""
        distinct: dict[tuple[bytes, int], int] = {}
        index = [
            distinct.setdefault((ids.tobytes(), int(length)), len(distinct))
            for ids, length in zip(wanted.ids, wanted.lengths, strict=True)
        ]
        unique = Sequences(
            [np.frombuffer(ids, dtype=np.int32) for ids, _ in distinct],
            np.array([length for _, length in distinct], dtype=np.int64),
        )
        with torch.no_grad():
            features = self.features(unique)
        return FrozenReading(features, unique.lengths)[np.array(index, dtype=np.int64)]

    def _action_logits(self, turns: Sequence[SampledTurn]) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits [N, V] that predict each action token of the turns, and the tokens [N]."""
        sequences = [np.concatenate([turn.prompt_ids, turn.action_ids]) for turn in turns]
        hidden = self.base.hidden(self._right_padded(sequences))
        width = hidden.shape[1]
        # The hidden state that predicts a token is the one before it.
        places = [
            i * width + len(turn.prompt_ids) - 1 + np.arange(len(turn.action_ids))
            for i, turn in enumerate(turns)
        ]
        index = torch.from_numpy(np.concatenate(places)).to(hidden.device)
        actions = np.concatenate([turn.action_ids for turn in turns]).astype(np.int64)
        logits = self.base.logits(hidden.flatten(0, 1)[index])
        return logits, torch.from_numpy(actions).to(hidden.device)

    def _right_padded(self, sequences: Sequence[NDArray[np.int32]]) -> torch.Tensor:
        """Token ids [B, T]. A causal model never looks right, so no mask is needed."""
        width = max(map(len, sequences))
        ids = np.full((len(sequences), width), self.base.pad_id, dtype=np.int64)
        for i, sequence in enumerate(sequences):
            ids[i, : len(sequence)] = sequence
        return torch.from_numpy(ids).to(self.base.device)

    def _buckets(self, lengths: Sequence[int]) -> Iterator[list[int]]:
        """Rows of similar length whose padded size keeps to the token budget."""
        if lengths and min(lengths) == 0:
            raise InvalidArgument("an input of a model has no tokens")
        bucket: list[int] = []
        for i in sorted(range(len(lengths)), key=lambda i: (lengths[i], i)):
            if bucket and lengths[i] * (len(bucket) + 1) > self.token_budget:
                yield bucket
                bucket = []
            bucket.append(i)
        if bucket:
            yield bucket


def _scatter(pieces: list[torch.Tensor], order: list[int], mask: torch.Tensor) -> torch.Tensor:
    """Values of action tokens, listed row by row in ``order``, into a [B, L] grid of zeros."""
    grid = torch.zeros(mask.shape, device=mask.device)
    if not pieces:
        return grid
    places = torch.arange(mask.numel(), device=mask.device).view(mask.shape)
    index = torch.cat([places[i][mask[i]] for i in order])
    return grid.flatten().index_put((index,), torch.cat(pieces)).view(mask.shape)
