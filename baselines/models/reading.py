"""What a critic has read of some inputs, so that it can value them several times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from flexmg.baselines.ragged import places

Ids = NDArray[np.int32]
Lengths = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class FrozenReading:
    """Hidden states of a trunk that does not learn, at every position that has a value.

    Args:
        features: float32 [sum(lengths), H].
        lengths: int64 [B], positions per input.
    """

    features: torch.Tensor
    lengths: Lengths

    def __len__(self) -> int:
        """B."""
        return len(self.lengths)

    def __getitem__(self, rows: Lengths) -> FrozenReading:
        """The chosen inputs, in the order of ``rows``."""
        rows = np.asarray(rows, dtype=np.int64)
        place = torch.from_numpy(places(rows, self.lengths)).to(self.features.device)
        return FrozenReading(self.features[place], self.lengths[rows])


@dataclass(frozen=True, eq=False)
class Sequences:
    """Token ids to be read, and where each has values: its last ``lengths`` positions.

    What a trunk that learns is given, since it has to read them anew after every step.

    Args:
        ids: B arrays of int32. An action's last token is not read: nothing follows it.
        lengths: int64 [B].
    """

    ids: list[Ids]
    lengths: Lengths

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

    def __len__(self) -> int:
        """B."""
        return len(self.ids)

    def __getitem__(self, rows: Lengths) -> Sequences:
        """The chosen inputs, in the order of ``rows``."""
        return Sequences([self.ids[k] for k in rows], self.lengths[np.asarray(rows, dtype=int)])


@dataclass(frozen=True, eq=False)
class TeamReading:
    """Inputs that several trunks have read, one for each base model.

    Args:
        parts: by number of the base, what its trunk has read.
        owners: int64 [B], the number of each input's base.
        lengths: int64 [B], positions per input.
    """

    parts: dict[int, FrozenReading | Sequences]
    owners: Lengths
    lengths: Lengths

    def __len__(self) -> int:
        """B."""
        return len(self.lengths)

    def __getitem__(self, rows: Lengths) -> TeamReading:
        """The chosen inputs, in the order of ``rows``."""
        rows = np.asarray(rows, dtype=np.int64)
        owners = self.owners[rows]
        parts = {}
        for owner, part in self.parts.items():
            place = np.cumsum(self.owners == owner) - 1
            own = place[rows[owners == owner]]
            if len(own):
                parts[owner] = part[own]
        return TeamReading(parts, owners, self.lengths[rows])

    def joined(self, values: dict[int, torch.Tensor]) -> torch.Tensor:
        """The values of the parts, laid out in the order of the inputs."""
        if len(values) == 1:
            return next(iter(values.values()))
        device = next(iter(values.values())).device
        laid = np.concatenate(
            [places(np.flatnonzero(self.owners == owner), self.lengths) for owner in values]
        )
        order = torch.from_numpy(np.argsort(laid)).to(device)
        return torch.cat([one.to(device) for one in values.values()])[order]
