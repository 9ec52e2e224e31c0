"""What a rollout asks of whatever generates tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from flexmg.baselines.rollout.turns import Ended
from flexmg.errors import InvalidArgument


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How one action is sampled. In training from the whole distribution, as learners score it.

    Args:
        max_new_tokens: the cap on an action, the closing EOS included.
        temperature: T > 0; tokens are drawn from softmax(logits / T).
        greedy: take the likeliest token instead. For evaluation only.
        stop: an action ends once its text contains one of these.
        top_k: sample among so many likeliest tokens only; 0 for all. For evaluation only.
        top_p: sample among the likeliest tokens whose mass reaches this only; 1 for all. For
            evaluation only.
    """

    max_new_tokens: int
    temperature: float = 1.0
    greedy: bool = False
    stop: tuple[str, ...] = ()
    top_k: int = 0
    top_p: float = 1.0

    def __post_init__(self) -> None:
        if self.max_new_tokens < 1:
            raise InvalidArgument(f"max_new_tokens is {self.max_new_tokens}; it must be at least 1")
        if not 0.0 < self.temperature < float("inf"):
            raise InvalidArgument(
                f"temperature {self.temperature} is not a positive number; for the likeliest "
                "tokens use greedy=True"
            )
        if self.top_k < 0 or not 0.0 < self.top_p <= 1.0:
            raise InvalidArgument(
                f"top_k is {self.top_k} and top_p {self.top_p}; the one must be at least 0, the "
                "other in (0, 1]"
            )
        if any(not text for text in self.stop):
            raise InvalidArgument("an empty stop string would end every action at once")


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """One action to generate.

    Args:
        policy: which policy acts.
        prompt_ids: int32 [P], at least one token.
        sampling: how.
        key: non-negative integers that seed this request's own random stream, so that its
            tokens do not depend on what else is in its batch.
    """

    policy: str
    prompt_ids: NDArray[np.int32]
    sampling: SamplingParams
    key: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Generation:
    """One generated action.

    Args:
        action_ids: int32 [L], the EOS included if one was sampled; L >= 1.
        log_probs: float32 [L], of each token under softmax(logits / temperature). (Under
            ``greedy``, ``top_k`` and ``top_p`` as well: what the policy gives the token, not
            that it was forced or others were left out.)
        ended: ``"eos"``, ``"stop"`` or ``"length"``.
    """

    action_ids: NDArray[np.int32]
    log_probs: NDArray[np.float32]
    ended: Ended


class Engine(Protocol):
    """Generates actions. The results come in the order of the requests."""

    def generate(self, requests: Sequence[Request]) -> list[Generation]:
        """Generate every action."""
        ...
