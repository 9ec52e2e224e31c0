"""A team: policies as LoRA adapters on one base model or several, and critics."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from flexmg.baselines.models.adapters import Adapters, LoraSettings
from flexmg.baselines.models.assignment import (
    PolicyMap,
    assign_policies,
    check_names,
    is_guest,
    learning_policies,
)
from flexmg.baselines.models.base import Base
from flexmg.baselines.models.critic import Critic, CriticSettings, Trunk, trunk_name
from flexmg.baselines.models.passes import Passes, Scores
from flexmg.baselines.models.reading import TeamReading
from flexmg.baselines.rollout.turns import SampledTurn
from flexmg.errors import CheckpointError, InvalidArgument, ModelError

CENTRAL_CRITIC = "central"


class Team:
    """The policies and critics of a team of agents.

    Attributes:
        base: the base model of the policies that have no other.
        bases: all of them, ``base`` first. Each is in memory once, whatever the number of
            its policies.
        policies: names of the policies that learn, in a fixed order.
        frozen: names of those that act with an adapter and do not learn.
        guests: names of policies without an adapter: ``scripted``, ``random``,
            ``openai:MODEL@URL``.
        critics: names of the critics.
        versions: updates applied to each policy so far; the learner counts them up.

    Args:
        base: the base model; a team takes it over (its linear layers are wrapped).
        agents: names of all possible agents.
        policy_map: who plays with which policy. ``"shared"``: all with one, named
            ``"team"``; ``"isolated"``: one per role, slots of a role share it;
            ``"per-agent"``; or a mapping from agent or role to policy, where an agent's own
            entry wins over its role's, and a policy may be a guest. Names match exactly,
            never in part.
        critics: names of the critics: one for MARFT's central critic, the policies'
            names (see ``assign_policies``) for critics of their own, none for GRPO.
        lora: rank, scale and layers of the adapters.
        seed: of adapters and value heads.
        token_budget: the most tokens (padding included) of one forward pass in ``log_probs``
            and ``read``; more pays on a GPU only.
        others: base models of single policies, by policy. Policies with the same object
            share it.
        freeze: names of policies that do not learn.
        critic: what critics are made of.
        critic_base: the model of the critics' trunk ``model``.

    Raises:
        InvalidArgument: an agent without a policy, an entry for nobody, an unknown word, no
            policy with an adapter.
        ModelError: a critic's model with another tokenizer.
    """

    def __init__(
        self,
        base: Base,
        agents: Sequence[str],
        *,
        policy_map: PolicyMap = "isolated",
        critics: Sequence[str] = (CENTRAL_CRITIC,),
        lora: LoraSettings | None = None,
        seed: int = 0,
        token_budget: int = 4096,
        others: Mapping[str, Base] | None = None,
        freeze: Collection[str] = (),
        critic: CriticSettings | None = None,
        critic_base: Base | None = None,
    ) -> None:
        self.base = base
        self._token_budget = token_budget
        self._policy_of = assign_policies(agents, policy_map)
        played = tuple(dict.fromkeys(self._policy_of.values()))
        self.guests = tuple(policy for policy in played if is_guest(policy))
        self.policies = learning_policies(self._policy_of, freeze)
        self.frozen = tuple(p for p in played if p not in self.guests and p not in self.policies)
        adapted = [policy for policy in played if policy not in self.guests]
        others = others or {}
        check_names(others, adapted, "the models", "policy with an adapter")
        if not adapted:
            raise InvalidArgument(
                f"all policies are guests ({', '.join(played)}): a team needs at least one of "
                "its own"
            )
        chosen = {policy: others.get(policy, base) for policy in adapted}
        self.bases = tuple(dict.fromkeys([base, *chosen.values()]))
        self._owner = {policy: self.bases.index(own) for policy, own in chosen.items()}
        lora, critic = lora or LoraSettings(), critic or CriticSettings()
        owners = {name: self._owners_of(name) for name in critics}
        self._adapters: dict[int, Adapters] = {}
        for number, own_base in enumerate(self.bases):
            names = [policy for policy in adapted if self._owner[policy] == number]
            if critic.trunk == "adapter":
                names += [trunk_name(name) for name in critics if number in owners[name]]
            if names:
                self._adapters[number] = Adapters(own_base, names, lora, seed)
        self._passes = [Passes(own_base, token_budget) for own_base in self.bases]
        self.critics = tuple(critics)
        self._critics = {
            name: Critic(
                name,
                {number: self._trunk(number, critic_base) for number in owners[name]},
                critic,
                seed,
            )
            for name in critics
        }
        self.versions = dict.fromkeys([*self.policies, *self.frozen], 0)

    @property
    def adapters(self) -> Adapters:
        """The adapters on the default base model.

        Raises:
            InvalidArgument: every policy has another base.
        """
        if 0 not in self._adapters:
            raise InvalidArgument(f"no policy of this team plays with {self.base.name!r}")
        return self._adapters[0]

    @property
    def token_budget(self) -> int:
        """The most tokens of one forward pass."""
        return self._token_budget

    @token_budget.setter
    def token_budget(self, tokens: int) -> None:
        self._token_budget = tokens
        for passes in self._passes:
            passes.token_budget = tokens

    def policy_of(self, agent: str) -> str:
        """The policy that plays an agent."""
        try:
            return self._policy_of[agent]
        except KeyError:
            raise InvalidArgument(
                f"this team has no agent {agent!r}; it has {', '.join(self._policy_of)}"
            ) from None

    def base_of(self, policy: str) -> Base:
        """The base model of a policy; of a guest, that whose tokenizer records its texts."""
        return self.bases[self._owner.get(policy, 0)]

    def adapters_of(self, policy: str) -> Adapters:
        """The adapters among which a policy has its own.

        Raises:
            InvalidArgument: there is no such policy.
        """
        return self._adapters[self._number(policy)]

    def log_probs(
        self,
        policy: str,
        turns: Sequence[SampledTurn],
        *,
        temperature: float,
        entropy: bool = False,
    ) -> Scores:
        """Log-probs of the turns' actions at a temperature, as sampled: no top-k or top-p.

        Differentiable with respect to this policy's adapter and nothing else. Logits are
        computed at the positions of action tokens only. Turns of similar length go through
        the model together; neither padding nor company changes a result beyond rounding.
        """
        number = self._number(policy)
        with self._adapters[number].learning(policy):
            return self._passes[number].score(turns, temperature, entropy)

    def base_log_probs(self, turns: Sequence[SampledTurn], *, temperature: float) -> Scores:
        """As ``log_probs``, under the base model (adapters off) and without gradients.

        The turns are of one policy, whose base it is.
        """
        number = self._owner.get(turns[0].policy, 0) if turns else 0
        with self._adapters[number].acting(None), torch.no_grad():
            return self._passes[number].score(turns, temperature, entropy=False)

    def read(
        self,
        critic: str,
        inputs: Sequence[NDArray[np.int32]],
        *,
        policies: Sequence[str],
        actions: Sequence[NDArray[np.int32]] | None = None,
    ) -> TeamReading:
        """Critic inputs, read by the critic's trunk.

        Args:
            critic: who is going to value them.
            inputs: B sequences of token ids, each at least one.
            policies: B names: who acts after each input; its base's tokenizer made the ids.
            actions: B actions that follow the inputs. Then there is a position for every
                token of an action, where that token is predicted; else one per input, its
                last token.
        """
        owners = np.array([self._owner.get(policy, 0) for policy in policies], dtype=np.int64)
        return self._critic(critic).read(inputs, owners, actions)

    def values(self, critic: str, reading: TeamReading) -> torch.Tensor:
        """Values [sum(lengths)] of a reading; differentiable with respect to the critic.

        The first batch of two or more positions fixes how a head standardises its inputs.
        """
        return self._critic(critic).values(reading)

    def policy_parameters(self, policy: str) -> list[torch.nn.Parameter]:
        """The adapter's parameters, in a fixed order."""
        return self.adapters_of(policy).parameters(policy)

    def critic_parameters(self, critic: str) -> list[torch.nn.Parameter]:
        """The critic's parameters, in a fixed order."""
        return self._critic(critic).parameters()

    def state(self) -> dict[str, Any]:
        """Everything that training changes, as CPU tensors and integers (picklable)."""
        adapted = [*self.policies, *self.frozen]
        return {
            "policies": {policy: self.adapters_of(policy).state(policy) for policy in adapted},
            "critics": {name: critic.state() for name, critic in self._critics.items()},
            "versions": dict(self.versions),
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Go back to a saved state; parameters keep their identity, so optimisers stay valid.

        Raises:
            CheckpointError: the state is of a team with other policies, critics or model.
        """
        adapted = (*self.policies, *self.frozen)
        for part, own in (("policies", adapted), ("critics", self.critics)):
            if set(state.get(part, ())) != set(own):
                raise CheckpointError(
                    f"the saved team has {part} {', '.join(sorted(state.get(part, ())))}, this one "
                    f"{', '.join(sorted(own))}; use the policy map and algorithm of the saved run"
                )
        for policy in adapted:
            self.adapters_of(policy).load_state(policy, state["policies"][policy])
        for name, critic in self._critics.items():
            critic.load_state(state["critics"][name])
        self.versions.update(state["versions"])

    def save_adapters(self, folder: str | Path) -> None:
        """Write each adapter to ``folder/POLICY``, a standard PEFT folder."""
        for policy in (*self.policies, *self.frozen):
            self.adapters_of(policy).save(policy, Path(folder) / policy)

    def _number(self, policy: str) -> int:
        if policy not in self._owner:
            raise InvalidArgument(
                f"there is no policy {policy!r}; this team has {', '.join(self._owner)}"
            )
        return self._owner[policy]

    def _critic(self, name: str) -> Critic:
        if name not in self._critics:
            raise InvalidArgument(
                f"there is no critic {name!r}; this team has {', '.join(self.critics)}"
            )
        return self._critics[name]

    def _owners_of(self, critic: str) -> list[int]:
        """The bases whose inputs a critic values: its policy's, or everybody's (guests' too)."""
        if critic in self._owner:
            return [self._owner[critic]]
        return sorted({*self._owner.values(), *([0] if self.guests else [])})

    def _trunk(self, number: int, critic_base: Base | None) -> Trunk:
        if critic_base is None:
            return Trunk(self._passes[number], self._adapters.get(number))
        own = self.bases[number]
        if critic_base.tokenizer.get_vocab() != own.tokenizer.get_vocab():
            raise ModelError(
                f"the critic's model {critic_base.name!r} has another tokenizer than "
                f"{own.name!r}, whose policies' tokens it is to read; use a model of the same "
                "family"
            )
        return Trunk(Passes(critic_base, self._token_budget), None)
