"""What an algorithm receives, and what it must return.

An algorithm is a class with a ``Config`` dataclass beside it. The trainer builds it once
per run and calls :meth:`Algorithm.update` once per iteration with freshly sampled
episodes. It sees the team only through :class:`Team`, and nothing of any environment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import Parameter

from flexmg.baselines.rollout.turns import Batch, Episode, SampledTurn

if TYPE_CHECKING:
    from flexmg.baselines.algorithms.advantages import Standardised

Metrics = dict[str, Any]
# The n-th fresh batch of an iteration (n from 1), on the same problems, played by the team
# as it is now. Its tokens and episodes count against the run's budget.
Collect = Callable[[int], Batch]
# Is shown the episodes of an iteration with the advantages that policies are about to learn
# from, before any of them is updated. It may compute gradients, and changes nothing.
Observer = Callable[[Sequence[Episode], "Standardised"], None]


class Scores(Protocol):
    """Log-probs of B recorded actions, the longest of L tokens.

    ``entropy`` is that of the whole next-token distribution, None when not asked for.
    """

    @property
    def log_probs(self) -> Tensor:
        """Float32 [B, L]."""
        ...

    @property
    def mask(self) -> Tensor:
        """Bool [B, L], True on real tokens."""
        ...

    @property
    def entropy(self) -> Tensor | None:
        """Float32 [B, L], or None."""
        ...


class Reading(Protocol):
    """B critic inputs. ``lengths`` are the positions of each at which there is a value.

    Without actions there is one position, the last token of the input. With actions there
    are as many as the action has tokens, each where that token is predicted: the first at
    the last token of the input.
    """

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Positions per input, [B]."""
        ...

    def __len__(self) -> int:
        """B."""
        ...

    def __getitem__(self, rows: NDArray[np.int64]) -> Reading:
        """The chosen inputs, in the order of ``rows``."""
        ...


class Team(Protocol):
    """What an algorithm may ask of the agents: one adapter per policy, and critic heads."""

    versions: dict[str, int]

    @property
    def policies(self) -> tuple[str, ...]:
        """Names of the policies that learn, in a fixed order.

        Turns of other policies (frozen ones, scripted agents, endpoints) are in the batch
        too; an algorithm may learn from what came of them, and never updates them.
        """
        ...

    @property
    def critics(self) -> tuple[str, ...]:
        """Names of the critics: those that :meth:`Algorithm.critics` asked for."""
        ...

    def log_probs(
        self,
        policy: str,
        turns: Sequence[SampledTurn],
        *,
        temperature: float,
        entropy: bool = False,
    ) -> Scores:
        """Scores of recorded actions, with gradient to this policy's parameters only."""
        ...

    def base_log_probs(self, turns: Sequence[SampledTurn], *, temperature: float) -> Scores:
        """Scores under the base model without any adapter; no gradient."""
        ...

    def policy_parameters(self, policy: str) -> list[Parameter]:
        """What an update of this policy changes; disjoint between policies."""
        ...

    def read(
        self,
        critic: str,
        inputs: Sequence[NDArray[np.int32]],
        *,
        policies: Sequence[str],
        actions: Sequence[NDArray[np.int32]] | None = None,
    ) -> Reading:
        """Critic inputs, read once and valued as often as needed.

        Args:
            critic: who is going to value them.
            inputs: B sequences of token ids, int32.
            policies: B names: who acts after each input; its tokenizer made the ids.
            actions: B actions that follow the inputs; then every token has a position.
        """
        ...

    def values(self, critic: str, reading: Any) -> Tensor:
        """Values at every position of what :meth:`read` gave, [sum(lengths)].

        In units of reward, with gradient to this critic's parameters only.
        """
        ...

    def critic_parameters(self, critic: str) -> list[Parameter]:
        """What an update of this critic changes."""
        ...


class Algorithm(Protocol):
    """A learning algorithm; register it under the entry-point group ``flexmg.algorithms``.

    ``Config`` is a dataclass whose fields all have defaults; ``flexmg train`` fills it
    from ``--algo-arg field=value`` and refuses unknown fields. ``temperature`` is the one
    that actions are sampled at: log-probs must be computed at the same.
    """

    Config: ClassVar[type]

    def __init__(self, team: Team, config: Any, *, temperature: float) -> None: ...

    @staticmethod
    def critics(policies: Sequence[str]) -> tuple[str, ...]:
        """Names of the value heads that the team is to have; none for a critic-free method."""
        ...

    def update(self, batch: Batch, key: tuple[int, ...], collect: Collect) -> Metrics:
        """Learn from one iteration's episodes.

        Args:
            batch: ``batch.trainable`` are the episodes to learn from.
            key: seeds every random choice of this update, so that a resumed run repeats it.
            collect: for algorithms that want to see what an update has changed:
                ``collect(1)``, ``collect(2)`` ... play fresh batches.

        Returns:
            Metrics, JSON-serialisable. The trainer charts ``kl``, ``value_loss``,
            ``clip_fraction``, ``grad_norm`` and ``explained_variance`` where given, and
            writes everything to the log. Count each applied update in ``team.versions``.
        """
        ...

    def state(self) -> dict[str, Any]:
        """Everything besides the team that a resumed run needs: tensors and plain data."""
        ...

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Continue from a :meth:`state`."""
        ...
