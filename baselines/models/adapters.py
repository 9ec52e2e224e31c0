"""LoRA adapters: one per policy, on one base model."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, get_peft_model
from peft.tuners.lora import LoraLayer
from peft.tuners.lora.layer import Linear as LoraLinear
from safetensors.torch import save_file

from flexmg.baselines.models.base import Base
from flexmg.baselines.models.lora import AdaptedLinear, MixedLinear, Mixture
from flexmg.errors import CheckpointError, InvalidArgument, ModelError
from flexmg.seeding import draw

# How the layers of Llama, Qwen, Mistral, Gemma, Phi, GPT-2 and their kin are called.
TARGETS: dict[str, str | list[str]] = {
    "all-linear": "all-linear",
    "attention": ["q_proj", "k_proj", "v_proj", "o_proj", "qkv_proj", "c_attn"],
    "mlp": ["gate_proj", "up_proj", "down_proj", "gate_up_proj", "c_fc"],
}
POLICY_NAME = re.compile(r"^[A-Za-z][A-Za-z0-9_-]*$")


@dataclass(frozen=True)
class LoraSettings:
    """Low-rank adaptation (Hu et al. 2021): W x + (alpha / rank) B A x in linear layers.

    Args:
        rank: r, the inner dimension of B A.
        alpha: the numerator of the scale.
        targets: the layers that have an adapter: ``all-linear`` (but the output embedding),
            ``attention``, ``mlp``, or module names as PEFT matches them, such as
            ``("q_proj", "v_proj")``.
    """

    rank: int = 8
    alpha: int = 16
    targets: str | tuple[str, ...] = "all-linear"

    def __post_init__(self) -> None:
        if self.rank < 1 or self.alpha <= 0:
            raise InvalidArgument(
                f"a LoRA rank of {self.rank} with alpha {self.alpha} is impossible: both must be "
                "positive"
            )
        if isinstance(self.targets, str) and self.targets not in TARGETS:
            raise InvalidArgument(
                f"LoRA targets {self.targets!r} are none of {', '.join(TARGETS)}; for layers of "
                "your own choice give a list of their names"
            )


class Adapters:
    """One LoRA adapter per policy on one base model, addressed by exact name.

    PEFT makes the adapters and defines their files; ``learning`` and ``acting`` put plainer
    layers in the place of its wrappers for the time of a block. Every adapter keeps
    ``requires_grad``: it gets a gradient because it took part in a forward pass. (PEFT's
    ``set_adapter`` freezes all others, which loses the gradient of graphs built before.)

    Not safe to use from several threads at once.

    Args:
        base: the base model. Its linear layers are wrapped in place, once.
        policies: adapter names, in a fixed order.
        settings: rank and scale.
        seed: of the initial A; B starts at 0, so that every policy starts as the base.
            The initial adapter depends on the seed and its own name only.

    Raises:
        InvalidArgument: an impossible or repeated name, or a base that has adapters already.
        ModelError: a quantised base.
    """

    def __init__(
        self, base: Base, policies: Sequence[str], settings: LoraSettings, seed: int = 0
    ) -> None:
        self.base = base
        self.policies = tuple(policies)
        _check_names(self.policies)
        if any(isinstance(module, LoraLayer) for module in base.model.modules()):
            raise InvalidArgument(
                f"the base model {base.name!r} carries the adapters of another team already; load "
                "it again with load_base for a second team"
            )
        self.config = LoraConfig(
            r=settings.rank,
            lora_alpha=settings.alpha,
            lora_dropout=0.0,
            target_modules=_modules(base, settings.targets),
            bias="none",
            task_type="CAUSAL_LM",
        )
        first, *others = self.policies
        with warnings.catch_warnings():
            # PEFT asks transformers by a name that is going away: nothing a user could mend.
            warnings.filterwarnings("ignore", ".*is_gradient_checkpointing", FutureWarning)
            with seeded(seed, first):
                peft = get_peft_model(base.model, self.config, adapter_name=first)
            for policy in others:
                with seeded(seed, policy):
                    peft.add_adapter(policy, self.config)
        self._layers: dict[str, Any] = {
            name: module
            for name, module in base.model.named_modules()
            if isinstance(module, LoraLayer)
        }
        self._places = {name: _parent(base.model, name) for name in self._layers}
        self._bare = {name: layer.base_layer for name, layer in self._layers.items()}
        self._mixed: tuple[Mixture, dict[str, MixedLinear]] | None = None
        self._in_place: Mapping[str, Any] = self._layers
        self._adapted: dict[str, dict[str, torch.nn.Module]] = {}
        _check_layers(base, self._layers)
        for policy in self.policies:
            for parameter in self.parameters(policy):
                parameter.requires_grad_(True)
        base.model.eval()

    @contextmanager
    def learning(self, policy: str) -> Iterator[None]:
        """Within the block the model plays this policy, with gradients for its adapter only.

        A graph that was built within a block may be used after it, and beside those of
        other policies.
        """
        with self._in_place_of_wrappers(self._with_adapter(policy)):
            yield

    @contextmanager
    def acting(self, policy: str | None) -> Iterator[None]:
        """Within the block the model plays this policy (None: the base), for inference.

        In float32 the adapter is folded into copies of the weights, so that a forward pass
        costs what it costs without adapters; the original weights are back, untouched, at
        the end. In other types, where folding would round small updates away, adapters stay
        apart.
        """
        if policy is None:
            with self._in_place_of_wrappers(self._bare):
                yield
            return
        if self.base.dtype != torch.float32:
            with self.learning(policy):
                yield
            return
        with self.merged(policy):
            yield

    @contextmanager
    def mixing(self) -> Iterator[Mixture]:
        """Within the block every row of a batch plays its own policy, for inference.

        One pass over rows of several policies costs a few small products more than a pass
        without adapters, and far less than one pass per policy.

        Yields:
            The mixture: set it to the rows' policies whenever they change.
        """
        if self._mixed is None:
            mixture = Mixture(self.policies, self.config.r)
            self._mixed = (
                mixture,
                {
                    name: MixedLinear(
                        self._bare[name],
                        [
                            (layer.lora_A[policy].weight, layer.lora_B[policy].weight)
                            for policy in self.policies
                        ],
                        layer.scaling[self.policies[0]],
                        mixture,
                    )
                    for name, layer in self._layers.items()
                },
            )
        mixture, layers = self._mixed
        for layer in layers.values():
            layer.refresh()
        with self._in_place_of_wrappers(layers):
            yield mixture

    @contextmanager
    def merged(self, policy: str) -> Iterator[Any]:
        """Within the block the model is a plain one: the adapter folded into its weights.

        The sum is made in float32 and rounded to the type of the weights.

        Yields:
            The transformers model; the original weights are back, untouched, at the end.
        """
        self._require(policy)
        originals = {name: linear.weight.data for name, linear in self._bare.items()}
        try:
            for name, layer in self._layers.items():
                with torch.no_grad():
                    delta = layer.get_delta_weight(policy).float()
                    whole = originals[name].float() + delta
                    self._bare[name].weight.data = whole.to(originals[name].dtype)
            with self._in_place_of_wrappers(self._bare):
                yield self.base.model
        finally:
            for name, linear in self._bare.items():
                linear.weight.data = originals[name]

    def checkpoint_gradients(self) -> None:
        """Compute activations anew in the backward pass: less memory, more time, same values."""

        def contexts() -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
            # The backward pass may come after the block that made the graph.
            return nullcontext(), self._in_place_of_wrappers(self._in_place)

        model = self.base.model
        with warnings.catch_warnings():
            # Renamed in transformers 5.2x; both names work in the versions that we allow.
            warnings.filterwarnings("ignore", ".*gradient_checkpointing", FutureWarning)
            model.gradient_checkpointing_enable({"use_reentrant": False, "context_fn": contexts})
        # transformers checkpoints in training mode only; without dropout the two modes agree.
        for module in model.modules():
            if hasattr(module, "gradient_checkpointing"):
                module.training = True

    @contextmanager
    def _in_place_of_wrappers(self, modules: Mapping[str, torch.nn.Module]) -> Iterator[None]:
        before, self._in_place = self._in_place, modules
        try:
            for name, (parent, attribute) in self._places.items():
                setattr(parent, attribute, modules[name])
            yield
        finally:
            self._in_place = before
            for name, (parent, attribute) in self._places.items():
                setattr(parent, attribute, before[name])

    def _with_adapter(self, policy: str) -> Mapping[str, torch.nn.Module]:
        self._require(policy)
        if policy not in self._adapted:
            self._adapted[policy] = {
                name: AdaptedLinear(
                    self._bare[name],
                    layer.lora_A[policy].weight,
                    layer.lora_B[policy].weight,
                    layer.scaling[policy],
                )
                for name, layer in self._layers.items()
            }
        return self._adapted[policy]

    def parameters(self, policy: str) -> list[torch.nn.Parameter]:
        """A and B of every layer, in a fixed order."""
        return list(self._named(policy).values())

    def state(self, policy: str) -> dict[str, torch.Tensor]:
        """A copy of an adapter on the CPU, under PEFT's own names for saved adapters."""
        named = self._named(policy).items()
        return {name: tensor.detach().to("cpu", copy=True) for name, tensor in named}

    def load_state(self, policy: str, state: Mapping[str, torch.Tensor]) -> None:
        """Copy a saved adapter into this one; parameters keep their identity.

        Raises:
            CheckpointError: names or shapes differ from this model's.
        """
        own = self._named(policy)
        for name in own.keys() ^ state.keys():
            side = "lacks" if name in own else "has an unknown"
            raise CheckpointError(
                f"the saved adapter {policy!r} {side} {name!r}: it belongs to another base model "
                f"than {self.base.name!r}"
            )
        with torch.no_grad():
            for name, parameter in own.items():
                if parameter.shape != state[name].shape:
                    raise CheckpointError(
                        f"the saved adapter {policy!r} has {tuple(state[name].shape)} for "
                        f"{name!r}, here it is {tuple(parameter.shape)}: the rank or the base "
                        "model differs"
                    )
                parameter.copy_(state[name])

    def save(self, policy: str, folder: Path) -> None:
        """Write a standard PEFT folder, which ``PeftModel.from_pretrained`` opens."""
        folder.mkdir(parents=True, exist_ok=True)
        self.config.save_pretrained(str(folder))
        state = {name: tensor.contiguous() for name, tensor in self.state(policy).items()}
        save_file(state, folder / "adapter_model.safetensors", metadata={"format": "pt"})

    def _named(self, policy: str) -> dict[str, torch.nn.Parameter]:
        self._require(policy)
        named = {}
        for name, layer in self._layers.items():
            for letter, branch in (("A", layer.lora_A), ("B", layer.lora_B)):
                named[f"base_model.model.{name}.lora_{letter}.weight"] = branch[policy].weight
        return named

    def _require(self, policy: str) -> None:
        if policy not in self.policies:
            raise InvalidArgument(
                f"there is no policy {policy!r}; this team has {', '.join(self.policies)}"
            )


def _modules(base: Base, targets: str | tuple[str, ...]) -> str | list[str]:
    """What PEFT is asked for: of the known names, those that this model has.

    Raises:
        InvalidArgument: it has none of them.
    """
    wanted = TARGETS[targets] if isinstance(targets, str) else list(targets)
    if isinstance(wanted, str):
        return wanted
    present = {name.rpartition(".")[2] for name, _ in base.model.named_modules()}
    found = [name for name in wanted if name in present]
    if not found or (not isinstance(targets, str) and len(found) < len(wanted)):
        lacking = ", ".join(name for name in wanted if name not in present)
        linear = sorted(
            {
                name.rpartition(".")[2]
                for name, module in base.model.named_modules()
                if isinstance(module, torch.nn.Linear)
            }
        )
        raise InvalidArgument(
            f"{base.name!r} has no layer {lacking} to adapt; its linear layers are called "
            f"{', '.join(linear)}"
        )
    return found


@contextmanager
def seeded(seed: int, name: str) -> Iterator[None]:
    """Within the block torch draws from a stream of its own; outside nothing has changed."""
    with torch.random.fork_rng(devices=[]):
        # The CPU generator uses 32 bits of a seed, so both go through a hash.
        torch.manual_seed(draw(2**32, "torch", seed, name))
        yield


def _parent(model: torch.nn.Module, name: str) -> tuple[torch.nn.Module, str]:
    path, _, attribute = name.rpartition(".")
    return model.get_submodule(path), attribute


def _check_layers(base: Base, layers: Mapping[str, LoraLayer]) -> None:
    for name, layer in layers.items():
        if type(layer) is not LoraLinear:
            raise ModelError(
                f"layer {name!r} of {base.name!r} is a {type(layer.base_layer).__name__}, which "
                "cannot carry the adapters of a team; load the model unquantised"
            )


def _check_names(policies: Sequence[str]) -> None:
    if not policies:
        raise InvalidArgument("a team needs at least one policy")
    if len(set(policies)) != len(policies):
        raise InvalidArgument(f"policy names repeat: {', '.join(policies)}")
    for policy in policies:
        # Adapters live in a ModuleDict, whose own attributes cannot be keys; and PEFT takes
        # a name that is part of its prefix for the prefix.
        taken = hasattr(torch.nn.ModuleDict, policy) or policy in "lora_"
        if taken or not POLICY_NAME.match(policy):
            raise InvalidArgument(
                f"{policy!r} cannot name a policy: use letters, digits, '_' and '-', and no word "
                "that torch or PEFT use for themselves, such as 'keys' or 'lora'"
            )
