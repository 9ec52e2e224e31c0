"""Generation in this process: a decoding loop over a transformers model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray

from flexmg.baselines.generation.cache import cache_with_room
from flexmg.baselines.generation.protocol import Generation, Request
from flexmg.baselines.models.adapters import Adapters
from flexmg.baselines.models.base import Base
from flexmg.baselines.models.lora import Mixture
from flexmg.baselines.rollout.turns import Ended
from flexmg.errors import InvalidArgument


class LocalEngine:
    """Samples actions with the adapters of a team, in batches.

    Requests of all policies go together, sorted by prompt length. Prompts are padded on the
    left; equal prompts of a policy are read once; rows leave the batch when they end. Each
    request draws from its own random stream, by inversion of the cumulative distribution:
    its tokens are the same in any batch, but for the rounding of the logits (a token changes
    when its draw falls within about 1e-6 of a boundary). Equal batches give equal bits.

    Not safe to call from several threads at once.

    Args:
        adapters: base model and policies (``Team.adapters``).
        max_rows: the most actions decoded together.
        max_tokens: the most tokens of cache (prompt and action, over all rows) held at once.
    """

    def __init__(
        self, adapters: Adapters, *, max_rows: int = 256, max_tokens: int = 131_072
    ) -> None:
        self.adapters = adapters
        self.max_rows = max_rows
        self.max_tokens = max_tokens

    def generate(self, requests: Sequence[Request]) -> list[Generation]:
        """Generate every action; results in the order of the requests.

        Raises:
            InvalidArgument: an unknown policy, an empty prompt, or a prompt that leaves no
                room for its action in the context.
        """
        for request in requests:
            self._check(request)
        results: dict[int, Generation] = {}
        for batch in self._batches(requests):
            policies = {requests[i].policy for i in batch}
            with torch.inference_mode():
                if len(policies) == 1:
                    # Folded into the weights, one adapter costs nothing.
                    with self.adapters.acting(*policies):
                        generated = self._decode(requests, batch, None)
                else:
                    with self.adapters.mixing() as mixture:
                        generated = self._decode(requests, batch, mixture)
            results.update(zip(batch, generated, strict=True))
        return [results[i] for i in range(len(requests))]

    def _decode(
        self, requests: Sequence[Request], batch: Sequence[int], mixture: Mixture | None
    ) -> list[Generation]:
        return Decoding(self.adapters.base, [requests[i] for i in batch], mixture).run()

    def _check(self, request: Request) -> None:
        prompt, new = len(request.prompt_ids), request.sampling.max_new_tokens
        if prompt == 0:
            raise InvalidArgument(f"a prompt for policy {request.policy!r} has no tokens")
        if prompt + new > self.adapters.base.context_length:
            raise InvalidArgument(
                f"a prompt of {prompt} tokens and an action of up to {new} do not fit the context "
                f"of {self.adapters.base.context_length} tokens of {self.adapters.base.name!r}; "
                "shorten the prompt or lower the token limit"
            )

    def _batches(self, requests: Sequence[Request]) -> Iterator[list[int]]:
        """Requests of like length together, whatever their policies."""
        batch: list[int] = []
        longest = 0
        for i in sorted(range(len(requests)), key=lambda i: (len(requests[i].prompt_ids), i)):
            needed = len(requests[i].prompt_ids) + requests[i].sampling.max_new_tokens
            longest = max(longest, needed)
            full = len(batch) == self.max_rows or longest * (len(batch) + 1) > self.max_tokens
            if batch and full:
                yield batch
                batch, longest = [], needed
            batch.append(i)
        if batch:
            yield batch


@dataclass(slots=True)
class Row:
    """One action while it is being decoded."""

    request: Request
    uniforms: NDArray[np.float64]
    ids: list[int] = field(default_factory=list)
    log_probs: list[float] = field(default_factory=list)
    ended: Ended | None = None


class Decoding:
    """One batch, from prompts to ended actions.

    Args:
        base: the model, already playing the policies of the batch.
        requests: what to generate.
        mixture: is kept up to date about which row plays what; None with one policy.
    """

    def __init__(
        self, base: Base, requests: Sequence[Request], mixture: Mixture | None = None
    ) -> None:
        self.base = base
        self.mixture = mixture
        self.rows = [
            Row(request, uniforms(request.key, request.sampling.max_new_tokens))
            for request in requests
        ]
        self.alive = list(self.rows)
        self.room = max(r.sampling.max_new_tokens for r in requests)
        self.cache = cache_with_room(base.model.config, self.room)
        sampling = [request.sampling for request in requests]
        device = base.device
        self.temperatures = torch.tensor([[s.temperature] for s in sampling], device=device)
        self.greedy = torch.tensor([[s.greedy] for s in sampling], device=device)
        self.any_greedy = any(s.greedy for s in sampling)
        self.nucleus: tuple[torch.Tensor, torch.Tensor] | None = None
        if any(s.top_k or s.top_p < 1.0 for s in sampling):
            most = base.model.config.get_text_config().vocab_size
            ranks = torch.tensor([[s.top_k or most] for s in sampling], device=device)
            masses = torch.tensor([[s.top_p] for s in sampling], device=device)
            self.nucleus = ranks, masses
        self.streams = torch.from_numpy(
            np.stack([_padded(row.uniforms, self.room) for row in self.rows])
        ).to(device)

    def run(self) -> list[Generation]:
        """Decode until every row has ended."""
        logits = self._read_prompts()
        while True:
            tokens = self._sample(logits)
            keep = [i for i, row in enumerate(self.alive) if row.ended is None]
            if not keep:
                break
            if len(keep) < len(self.alive):
                tokens = self._compact(tokens, keep)
            logits = self._decode(tokens)
        return [
            Generation(
                action_ids=np.array(row.ids, dtype=np.int32),
                log_probs=np.array(row.log_probs, dtype=np.float32),
                ended=row.ended or "length",
            )
            for row in self.rows
        ]

    def _read_prompts(self) -> torch.Tensor:
        """One pass over the distinct prompts; next-token logits [B, V]."""
        distinct: dict[tuple[str, bytes], int] = {}
        prompts: list[NDArray[np.int32]] = []
        owner: list[int] = []
        for row in self.rows:
            ids = row.request.prompt_ids
            place = distinct.setdefault((row.request.policy, ids.tobytes()), len(prompts))
            if place == len(prompts):
                prompts.append(ids)
            owner.append(place)
        if self.mixture is not None:
            self.mixture.set([policy for policy, _ in distinct], self.temperatures)
        width = max(map(len, prompts))
        ids = np.full((len(prompts), width), self.base.pad_id, dtype=np.int64)
        counts = np.zeros((len(prompts), width + self.room), dtype=np.int64)
        for i, prompt in enumerate(prompts):
            ids[i, width - len(prompt) :] = prompt
            counts[i, width - len(prompt) :] = 1
        device = self.base.device
        # A batch without padding needs no mask, and attention without one is faster.
        ragged = bool(counts[:, 0].min() == 0)
        mask = torch.from_numpy(counts).to(device) if ragged else None
        positions = None if mask is None else (mask[:, :width].cumsum(1) - 1).clamp_min(0)
        hidden = self.base.hidden(
            torch.from_numpy(ids).to(device),
            mask=None if mask is None else mask[:, :width],
            positions=positions,
            cache=self.cache,
        )
        logits = self.base.logits(hidden[:, -1])
        index = torch.tensor(owner, device=device)
        if owner != list(range(len(prompts))):
            self.cache.batch_select_indices(index)
            logits = logits[index]
        self.mask = None if mask is None else mask[index]
        self._mix()
        self.length = width
        self.positions = torch.tensor([[len(prompts[i])] for i in owner], device=device)
        return logits

    def _mix(self) -> None:
        if self.mixture is not None:
            self.mixture.set([row.request.policy for row in self.alive], self.temperatures)

    def _sample(self, logits: torch.Tensor) -> torch.Tensor:
        """Draw a token for each row alive and record it; token ids [B, 1]."""
        step = len(self.alive[0].ids)
        log_probs = torch.log_softmax(logits / self.temperatures, dim=-1)
        chances = log_probs.exp()
        if self.nucleus is not None:
            chances = truncated(chances, *self.nucleus)
        # Doubles: with a large vocabulary, float32 sums lose the tail of the distribution.
        mass = chances.cumsum(-1, dtype=torch.float64)
        targets = self.streams[:, step, None] * mass[:, -1:]
        tokens = torch.searchsorted(mass, targets, right=True).clamp_max(mass.shape[-1] - 1)
        if self.any_greedy:
            tokens = torch.where(self.greedy, logits.argmax(-1, keepdim=True), tokens)
        chosen = log_probs.gather(-1, tokens).squeeze(-1).tolist()
        for row, token, log_prob in zip(
            self.alive, tokens.squeeze(-1).tolist(), chosen, strict=True
        ):
            row.ids.append(token)
            row.log_probs.append(log_prob)
            row.ended = self._ended(row)
        return tokens

    def _ended(self, row: Row) -> Ended | None:
        sampling = row.request.sampling
        if row.ids[-1] in self.base.eos_ids:
            return "eos"
        if sampling.stop:
            # A token has at least one byte, so a stop string lies within its last tokens.
            reach = max(len(text.encode()) for text in sampling.stop)
            tail = self.base.tokenizer.decode(row.ids[-reach:], skip_special_tokens=True)
            if any(text in tail for text in sampling.stop):
                return "stop"
        return "length" if len(row.ids) == sampling.max_new_tokens else None

    def _compact(self, tokens: torch.Tensor, keep: list[int]) -> torch.Tensor:
        """Drop ended rows; the tokens of those that stay."""
        index = torch.tensor(keep, device=self.base.device)
        self.cache.batch_select_indices(index)
        self.alive = [self.alive[i] for i in keep]
        self._mix()
        self.positions = self.positions[index]
        self.temperatures, self.greedy = self.temperatures[index], self.greedy[index]
        self.streams = self.streams[index]
        if self.nucleus is not None:
            self.nucleus = self.nucleus[0][index], self.nucleus[1][index]
        if self.mask is not None:
            self.mask = self.mask[index]
        return tokens[index]

    def _decode(self, tokens: torch.Tensor) -> torch.Tensor:
        """Feed one token per row; next-token logits [B, V]."""
        self.length += 1
        mask = None if self.mask is None else self.mask[:, : self.length]
        hidden = self.base.hidden(tokens, mask=mask, positions=self.positions, cache=self.cache)
        self.positions = self.positions + 1
        return self.base.logits(hidden[:, -1])


def truncated(chances: torch.Tensor, most: torch.Tensor, mass: torch.Tensor) -> torch.Tensor:
    """Chances [B, V] with all but the likeliest tokens set to 0; not normalised.

    Args:
        chances: of every token.
        most: top-k, [B, 1].
        mass: top-p, [B, 1]: of the likeliest tokens as many are kept as reach it, at least one.
    """
    ordered, order = chances.sort(dim=-1, descending=True)
    rank = torch.arange(chances.shape[-1], device=chances.device)
    before = ordered.cumsum(-1, dtype=torch.float64) - ordered
    kept = (rank < most) & ((before < mass) | (rank == 0))
    return torch.zeros_like(chances).scatter(-1, order, ordered * kept)


def uniforms(key: Sequence[int], count: int) -> NDArray[np.float64]:
    """The stream of a key: ``count`` uniform numbers in [0, 1), a prefix of any longer one."""
    # The length goes in as well: SeedSequence takes (1,) and (1, 0) for the same entropy.
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence((len(key), *key)))).random(
        count
    )


def _padded(stream: NDArray[np.float64], length: int) -> NDArray[np.float64]:
    return np.pad(stream, (0, length - len(stream)))
