"""What a critic has read of some inputs, so that it can value them several times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

Ids = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class FrozenReading:
    """Hidden states of a trunk that does not learn, at every position that has a value.

    Args:
        features: float32 [sum(lengths), H].
        lengths: int64 [B], positions per input.
    """

    features: torch.Tensor
    lengths: NDArray[np.int64]

    def __len__(self) -> int:
        """B."""
        return len(self.lengths)

    def __getitem__(self, rows: NDArray[np.int64]) -> FrozenReading:
        """The chosen inputs, in the order of ``rows``."""
        rows = np.asarray(rows, dtype=np.int64)
        starts = np.cumsum(self.lengths) - self.lengths
        own = self.lengths[rows]
        within = np.arange(own.sum()) - np.repeat(np.cumsum(own) - own, own)
        place = torch.from_numpy(np.repeat(starts[rows], own) + within).to(self.features.device)
        return FrozenReading(self.features[place], own)


@dataclass(frozen=True, eq=False)
class Sequences:
    """Token ids to be read, and where each has values: its last ``lengths`` positions.

    Args:
        ids: B arrays of int32. An action's last token is not read: nothing follows it.
        lengths: int64 [B].
    """

    ids: list[Ids]
    lengths: NDArray[np.int64]

    @classmethod
    def of(cls, inputs: Sequence[Ids], actions: Sequence[Ids] | None) -> Sequences:
        """Inputs alone, or with the actions that follow them."""
        if actions is None:
            return cls(list(inputs), np.ones(len(inputs), dtype=np.int64))
        ids = [
            np.concatenate([before, action[:-1]])
            for before, action in zip(inputs, actions, strict=True)
        ]
        return cls(ids, np.array([len(action) for action in actions], dtype=np.int64))
