"""Value heads: from hidden states of the frozen base to a value."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

SMALLEST_STD = 0.02


class ValueHead(nn.Module):
    """V(s) from features [B, H]: standardise, one hidden layer, one number. Float32.

    Hidden states of a language model have a few huge coordinates that say little, so each
    input is brought to unit root mean square and then each coordinate standardised with the
    mean and deviation of the first batch that the head sees (at least two rows). These
    statistics never change afterwards, and are saved with the weights: a value of one state
    does not depend on the batch it comes in.

    The output layer starts at 0, so that V = 0 before the first update.

    Args:
        features: H.
        width: of the hidden layer.
    """

    mean: torch.Tensor
    std: torch.Tensor
    fitted: torch.Tensor

    def __init__(self, features: int, width: int = 64) -> None:
        super().__init__()
        self.hidden = nn.Linear(features, width)
        self.output = nn.Linear(width, 1)
        nn.init.zeros_(self.output.weight)
        nn.init.zeros_(self.output.bias)
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("std", torch.ones(features))
        self.register_buffer("fitted", torch.tensor(False))

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Values [B] of features [B, H]."""
        normed = functional.rms_norm(features.float(), features.shape[-1:])
        if not self.fitted and len(normed) > 1:
            with torch.no_grad():
                self.mean.copy_(normed.mean(0))
                self.std.copy_(normed.std(0).clamp_min(SMALLEST_STD))
                self.fitted.fill_(True)
        standard = (normed - self.mean) / self.std
        return self.output(torch.tanh(self.hidden(standard))).squeeze(-1)
