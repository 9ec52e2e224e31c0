"""Critics: value heads on what a trunk has read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional

from flexmg.baselines.models.adapters import Adapters, seeded
from flexmg.baselines.models.passes import Passes
from flexmg.baselines.models.reading import FrozenReading, Sequences, TeamReading
from flexmg.errors import CheckpointError, InvalidArgument

SMALLEST_STD = 0.02


@dataclass(frozen=True)
class CriticSettings:
    """What a critic is made of.

    Args:
        trunk: what reads the inputs: ``frozen``, the base model without adapters, read once
            per iteration; ``adapter``, the base model with an adapter of the critic's own,
            which learns with the head and costs a pass with gradient per step; or
            ``model``, another model, frozen.
        model: of the trunk ``model``, as ``load_base`` takes it; its tokenizer must be the
            base model's.
        width: of the head's hidden layer.
    """

    trunk: Literal["frozen", "adapter", "model"] = "frozen"
    model: str | None = None
    width: int = 64

    def __post_init__(self) -> None:
        if self.trunk not in ("frozen", "adapter", "model"):
            raise InvalidArgument(
                f"a critic's trunk is 'frozen', 'adapter' or 'model', not {self.trunk!r}"
            )
        if (self.trunk == "model") != (self.model is not None):
            raise InvalidArgument(
                "a critic has a model of its own with trunk 'model', and only then; give both, "
                "or neither"
            )
        if self.width < 1:
            raise InvalidArgument(f"a critic's width must be at least 1, not {self.width}")


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


def trunk_name(critic: str) -> str:
    """The adapter of a critic with the trunk ``adapter``."""
    return f"critic-{critic}"


@dataclass(eq=False)
class Trunk:
    """What reads the inputs that one base's tokenizer has made.

    Args:
        passes: over the model that reads: the base, or another.
        adapters: of the base; None for another model, which has none.
    """

    passes: Passes
    adapters: Adapters | None


class Critic:
    """One critic: a head for every base whose policies' inputs it values.

    Args:
        name: of the critic.
        trunks: by number of the base.
        settings: what it is made of.
        seed: of the heads.
    """

    def __init__(
        self,
        name: str,
        trunks: Mapping[int, Trunk],
        settings: CriticSettings,
        seed: int,
    ) -> None:
        self.name = name
        self.trunks = dict(trunks)
        self.learns = settings.trunk == "adapter"
        self.heads: dict[int, ValueHead] = {}
        for owner, trunk in self.trunks.items():
            with seeded(seed, f"critic {name}" if owner == 0 else f"critic {name} {owner}"):
                head = ValueHead(trunk.passes.base.width, settings.width)
            self.heads[owner] = head.to(trunk.passes.base.device)

    def read(
        self,
        inputs: Sequence[NDArray[np.int32]],
        owners: NDArray[np.int64],
        actions: Sequence[NDArray[np.int32]] | None,
    ) -> TeamReading:
        """Inputs as hidden states, or as ids for a trunk that learns."""
        wanted = Sequences.of(inputs, actions)
        parts: dict[int, FrozenReading | Sequences] = {}
        for owner in map(int, dict.fromkeys(owners.tolist())):
            own = wanted[np.flatnonzero(owners == owner)]
            trunk = self._trunk(owner)
            if self.learns:
                parts[owner] = own
            elif trunk.adapters is None:
                parts[owner] = trunk.passes.read(own)
            else:
                with trunk.adapters.acting(None):
                    parts[owner] = trunk.passes.read(own)
        return TeamReading(parts, owners, wanted.lengths)

    def values(self, reading: TeamReading) -> torch.Tensor:
        """Values [sum(lengths)], with gradient to this critic's parameters."""
        found = {}
        for owner, part in reading.parts.items():
            head = self.heads[owner]
            if isinstance(part, Sequences):
                trunk = self._trunk(owner)
                assert trunk.adapters is not None
                with trunk.adapters.learning(trunk_name(self.name)):
                    found[owner] = head(trunk.passes.features(part))
            else:
                found[owner] = head(part.features)
        return reading.joined(found)

    def parameters(self) -> list[nn.Parameter]:
        """Of the heads, and of the trunks that learn, in a fixed order."""
        own = [parameter for head in self.heads.values() for parameter in head.parameters()]
        if self.learns:
            for trunk in self.trunks.values():
                assert trunk.adapters is not None
                own += trunk.adapters.parameters(trunk_name(self.name))
        return own

    def state(self) -> dict[str, torch.Tensor]:
        """A copy of everything that training changes, on the CPU."""
        found = {}
        for owner, head in self.heads.items():
            for name, tensor in head.state_dict().items():
                found[f"{owner}.{name}"] = tensor.detach().to("cpu", copy=True)
            trunk = self.trunks[owner]
            if self.learns and trunk.adapters is not None:
                for name, tensor in trunk.adapters.state(trunk_name(self.name)).items():
                    found[f"{owner}.trunk.{name}"] = tensor
        return found

    def load_state(self, state: Mapping[str, torch.Tensor]) -> None:
        """Go back to a saved state; parameters keep their identity.

        Raises:
            CheckpointError: the state is of another model or of another kind of critic.
        """
        for owner, head in self.heads.items():
            own = {
                name.removeprefix(f"{owner}."): tensor
                for name, tensor in state.items()
                if name.startswith(f"{owner}.")
            }
            trunk = {k.removeprefix("trunk."): v for k, v in own.items() if k.startswith("trunk.")}
            try:
                head.load_state_dict({k: v for k, v in own.items() if not k.startswith("trunk.")})
            except RuntimeError as error:
                raise CheckpointError(
                    f"the saved critic {self.name!r} does not fit this model: {error}"
                ) from error
            adapters = self.trunks[owner].adapters
            if bool(trunk) != self.learns:
                raise CheckpointError(
                    f"the saved critic {self.name!r} has {'a' if trunk else 'no'} trunk that "
                    "learns, this one the opposite; use the critic settings of the saved run"
                )
            if trunk and adapters is not None:
                adapters.load_state(trunk_name(self.name), trunk)

    def _trunk(self, owner: int) -> Trunk:
        try:
            return self.trunks[owner]
        except KeyError:
            raise InvalidArgument(
                f"critic {self.name!r} reads no inputs of base model number {owner}; it was made "
                "for a policy of another one"
            ) from None
