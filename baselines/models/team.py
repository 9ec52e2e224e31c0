"""A team: one base model in memory, one LoRA adapter per policy, and value heads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from flexmg.agents import role_of
from flexmg.baselines.models.adapters import Adapters, LoraSettings, seeded
from flexmg.baselines.models.base import Base
from flexmg.baselines.models.critic import ValueHead
from flexmg.baselines.models.reading import FrozenReading, Sequences
from flexmg.baselines.rollout.turns import SampledTurn
from flexmg.errors import CheckpointError, InvalidArgument

PolicyMap = Literal["shared", "isolated", "per-agent"] | Mapping[str, str]
SHARED_POLICY = "team"
CENTRAL_CRITIC = "central"


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


class Team:
    """The policies and critics of a team of agents, on one base model.

    Attributes:
        policies: adapter names, in a fixed order.
        critics: names of the value heads.
        versions: updates applied to each policy so far; the learner counts them up.
        adapters: the adapters themselves, for engines.

    Args:
        base: the base model; a team takes it over (its linear layers are wrapped).
        agents: names of all possible agents.
        policy_map: who plays with which policy. ``"shared"``: all with one, named
            ``"team"``; ``"isolated"``: one per role, slots of a role share it;
            ``"per-agent"``; or a mapping from agent or role to policy, where an agent's own
            entry wins over its role's. Names match exactly, never in part.
        critics: names of the value heads: one for MARFT's central critic, the policies'
            names (see ``assign_policies``) for critics of their own, none for GRPO.
        lora: rank and scale of the adapters.
        seed: of adapters and value heads.
        token_budget: the most tokens (padding included) of one forward pass in ``log_probs``
            and ``read``; more pays on a GPU only.

    Raises:
        InvalidArgument: an agent without a policy, an entry for nobody, an unknown word.
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
    ) -> None:
        self.base = base
        self.token_budget = token_budget
        self._policy_of = assign_policies(agents, policy_map)
        self.policies = tuple(dict.fromkeys(self._policy_of.values()))
        self.adapters = Adapters(base, self.policies, lora or LoraSettings(), seed)
        self.critics = tuple(critics)
        self._heads: dict[str, ValueHead] = {}
        for name in self.critics:
            with seeded(seed, f"critic {name}"):
                self._heads[name] = ValueHead(base.width).to(base.device)
        self.versions = dict.fromkeys(self.policies, 0)

    def policy_of(self, agent: str) -> str:
        """The policy that plays an agent."""
        try:
            return self._policy_of[agent]
        except KeyError:
            raise InvalidArgument(
                f"this team has no agent {agent!r}; it has {', '.join(self._policy_of)}"
            ) from None

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
        with self.adapters.learning(policy):
            return self._score(turns, temperature, entropy)

    def base_log_probs(self, turns: Sequence[SampledTurn], *, temperature: float) -> Scores:
        """As ``log_probs``, under the base model (adapters off) and without gradients."""
        with self.adapters.acting(None), torch.no_grad():
            return self._score(turns, temperature, entropy=False)

    def read(
        self,
        critic: str,
        inputs: Sequence[NDArray[np.int32]],
        *,
        policies: Sequence[str],
        actions: Sequence[NDArray[np.int32]] | None = None,
    ) -> FrozenReading:
        """Critic inputs as the base's last hidden states (adapters off), without gradients.

        Equal inputs are read once.

        Args:
            critic: who is going to value them.
            inputs: B sequences of token ids, each at least one.
            policies: B names: who acts after each input.
            actions: B actions that follow the inputs. Then there is a position for every
                token of an action, where that token is predicted; else one per input, its
                last token.
        """
        del policies  # all of them share the one base
        self._head(critic)
        wanted = Sequences.of(inputs, actions)
        distinct: dict[tuple[bytes, int], int] = {}
        index = [
            distinct.setdefault((ids.tobytes(), int(length)), len(distinct))
            for ids, length in zip(wanted.ids, wanted.lengths, strict=True)
        ]
        unique = [np.frombuffer(ids, dtype=np.int32) for ids, _ in distinct]
        lengths = np.array([length for _, length in distinct], dtype=np.int64)
        starts = np.cumsum(lengths) - lengths
        device = self.base.device
        out = torch.zeros(int(lengths.sum()), self.base.width, device=device)
        with self.adapters.acting(None), torch.no_grad():
            for rows in self._buckets([len(ids) for ids in unique]):
                hidden = self.base.hidden(self._right_padded([unique[i] for i in rows]))
                for row, i in enumerate(rows):
                    end, count = len(unique[i]), int(lengths[i])
                    own = hidden[row, end - count : end].float()
                    out[starts[i] : starts[i] + count] = own
        return FrozenReading(out, lengths)[np.array(index, dtype=np.int64)]

    def values(self, critic: str, reading: FrozenReading) -> torch.Tensor:
        """Values [sum(lengths)] of a reading; differentiable with respect to the value head.

        The first batch of two or more positions fixes how a head standardises its inputs.
        """
        return self._head(critic)(reading.features)

    def policy_parameters(self, policy: str) -> list[torch.nn.Parameter]:
        """The adapter's parameters, in a fixed order."""
        return self.adapters.parameters(policy)

    def critic_parameters(self, critic: str) -> list[torch.nn.Parameter]:
        """The value head's parameters, in a fixed order."""
        return list(self._head(critic).parameters())

    def state(self) -> dict[str, Any]:
        """Everything that training changes, as CPU tensors and integers (picklable)."""
        return {
            "policies": {policy: self.adapters.state(policy) for policy in self.policies},
            "critics": {
                name: {k: v.detach().to("cpu", copy=True) for k, v in head.state_dict().items()}
                for name, head in self._heads.items()
            },
            "versions": dict(self.versions),
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Go back to a saved state; parameters keep their identity, so optimisers stay valid.

        Raises:
            CheckpointError: the state is of a team with other policies, critics or model.
        """
        for part, own in (("policies", self.policies), ("critics", self.critics)):
            if set(state.get(part, ())) != set(own):
                raise CheckpointError(
                    f"the saved team has {part} {', '.join(sorted(state.get(part, ())))}, this one "
                    f"{', '.join(sorted(own))}; use the policy map and algorithm of the saved run"
                )
        for policy in self.policies:
            self.adapters.load_state(policy, state["policies"][policy])
        for name, head in self._heads.items():
            try:
                head.load_state_dict(state["critics"][name])
            except RuntimeError as error:
                raise CheckpointError(
                    f"the saved critic {name!r} does not fit this model: {error}"
                ) from error
        self.versions.update(state["versions"])

    def save_adapters(self, folder: str | Path) -> None:
        """Write each adapter to ``folder/POLICY``, a standard PEFT folder."""
        for policy in self.policies:
            self.adapters.save(policy, Path(folder) / policy)

    def _score(self, turns: Sequence[SampledTurn], temperature: float, entropy: bool) -> Scores:
        device = self.base.device
        lengths = [len(turn.action_ids) for turn in turns]
        mask = torch.arange(max(lengths, default=0))[None] < torch.tensor(lengths)[:, None]
        mask = mask.to(device)
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

    def _head(self, critic: str) -> ValueHead:
        if critic not in self._heads:
            raise InvalidArgument(
                f"there is no critic {critic!r}; this team has {', '.join(self.critics)}"
            )
        return self._heads[critic]


def assign_policies(agents: Sequence[str], policy_map: PolicyMap) -> dict[str, str]:
    """The policy of every agent; see ``Team`` for the words and rules.

    Raises:
        InvalidArgument: an agent without a policy, an entry for nobody, an unknown word.
    """
    if policy_map == "shared":
        return dict.fromkeys(agents, SHARED_POLICY)
    if policy_map == "isolated":
        return {agent: role_of(agent) for agent in agents}
    if policy_map == "per-agent":
        return {agent: agent for agent in agents}
    if isinstance(policy_map, str):
        raise InvalidArgument(
            f"policy map {policy_map!r} is not 'shared', 'isolated' or 'per-agent', nor a mapping "
            "from agent or role to policy"
        )
    roles = {agent: role_of(agent) for agent in agents}
    known = [*agents, *dict.fromkeys(roles.values())]
    for name in policy_map:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else f"; there are {', '.join(known)}"
            raise InvalidArgument(f"the policy map names {name!r}, which is no agent or role{hint}")
    assigned = {}
    for agent, role in roles.items():
        policy = policy_map.get(agent, policy_map.get(role))
        if policy is None:
            raise InvalidArgument(
                f"the policy map gives {agent!r} no policy; add an entry for it or its role "
                f"{role!r}"
            )
        assigned[agent] = policy
    return assigned


def _scatter(pieces: list[torch.Tensor], order: list[int], mask: torch.Tensor) -> torch.Tensor:
    """Values of action tokens, listed row by row in ``order``, into a [B, L] grid of zeros."""
    grid = torch.zeros(mask.shape, device=mask.device)
    if not pieces:
        return grid
    places = torch.arange(mask.numel(), device=mask.device).view(mask.shape)
    index = torch.cat([places[i][mask[i]] for i in order])
    return grid.flatten().index_put((index,), torch.cat(pieces)).view(mask.shape)
