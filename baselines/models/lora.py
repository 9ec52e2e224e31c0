"""A linear layer with LoRA adapters, in as few operations as it takes."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn
from torch.nn import functional


class AdaptedLinear(nn.Module):
    """W x + bias + scale B A x (Hu et al. 2021), with W frozen.

    The same function as PEFT's layer with one active adapter and no dropout. PEFT scales
    and adds in passes of their own over the output; here both happen inside the product
    with B, which saves about a tenth of a small model's forward and backward pass.

    Args:
        linear: the frozen layer.
        down: A, [rank, in]. ``up``: B, [out, rank]. They may be of another floating type
            than the layer (float32 adapters on a bfloat16 base).
        scale: alpha / rank.
    """

    def __init__(
        self, linear: nn.Linear, down: nn.Parameter, up: nn.Parameter, scale: float
    ) -> None:
        super().__init__()
        self.linear = linear
        self.down = down
        self.up = up
        self.scale = scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[..., in] to [..., out]."""
        out = self.linear(x)
        low = functional.linear(x.to(self.down.dtype), self.down)
        if out.dtype != self.down.dtype:
            return out + (self.scale * functional.linear(low, self.up)).to(out.dtype)
        rows = torch.addmm(
            out.reshape(-1, out.shape[-1]),
            low.reshape(-1, low.shape[-1]),
            self.up.t(),
            alpha=self.scale,
        )
        return rows.view(out.shape)


class Mixture:
    """Which rows of a batch play which policy; all layers look here.

    Args:
        policies: that may be played, in the order of the layers' branches.
        rank: of every branch.
    """

    def __init__(self, policies: Sequence[str], rank: int) -> None:
        self.policies = list(policies)
        self.rank = rank
        self.mask = torch.ones(0)

    def set(self, rows: Sequence[str], like: torch.Tensor) -> None:
        """Say what every row of the next passes plays.

        Args:
            rows: B policies.
            like: a tensor of the adapters' device and floating type.
        """
        own = torch.tensor([self.policies.index(policy) for policy in rows])
        chosen = torch.nn.functional.one_hot(own, len(self.policies))
        self.mask = chosen.repeat_interleave(self.rank, dim=1).to(like.device, like.dtype)


class MixedLinear(nn.Module):
    """W x + bias, and for every row of the batch scale B A x of its own policy. For inference.

    The branches of all policies are one product with the A's, of which a mask leaves each row
    its own part, and one with the B's: three operations, however many policies there are.

    Args:
        linear: the frozen layer.
        branches: A and B of each policy, in the mixture's order.
        scale: alpha / rank.
        mixture: whose rows are whose.
    """

    down: torch.Tensor
    up: torch.Tensor

    def __init__(
        self,
        linear: nn.Linear,
        branches: Sequence[tuple[torch.Tensor, torch.Tensor]],
        scale: float,
        mixture: Mixture,
    ) -> None:
        super().__init__()
        self.linear = linear
        self.branches = list(branches)
        self.scale = scale
        self.mixture = mixture

    @torch.no_grad()
    def refresh(self) -> None:
        """Take the adapters as they are now."""
        self.down = torch.cat([down for down, _ in self.branches])
        self.up = torch.cat([up.t() for _, up in self.branches]) * self.scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[B, T, in] to [B, T, out]."""
        out = self.linear(x)
        low = functional.linear(x.to(self.down.dtype), self.down)
        low = low * self.mixture.mask[:, None].to(low.dtype)
        if out.dtype != low.dtype:
            return out + (low @ self.up).to(out.dtype)
        rows = torch.addmm(out.reshape(-1, out.shape[-1]), low.reshape(-1, low.shape[-1]), self.up)
        return rows.view(out.shape)
