"""Memory of one base with 1 to 8 policies: it must grow by the adapters alone.

Each number of policies is a process of its own that trains one step of every policy, and its
peak is the kernel's count. Beside it stands what adapters, gradients and Adam's two moments
take: 4 times the adapters' own bytes; and what as many copies of the base would.

    python -m benchmarks memory
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
from typing import Any

import numpy as np
import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

from flexmg.baselines.models.adapters import LoraSettings
from flexmg.baselines.models.base import Base
from flexmg.baselines.models.team import Team
from flexmg.baselines.rollout.turns import SampledTurn

SHAPE: dict[str, Any] = {
    "vocab_size": 8192,
    "hidden_size": 640,
    "intermediate_size": 1920,
    "num_hidden_layers": 10,
    "num_attention_heads": 10,
    "num_key_value_heads": 5,
    "head_dim": 64,
    "tie_word_embeddings": True,
}
RANK = 32
NAMES = ("one", "two", "three", "four", "five", "six", "seven", "eight")
MIB = 2**20


def train(policies: int) -> None:
    """One step of every policy; prints parameters, adapter bytes and the peak."""
    torch.set_num_threads(1)
    model = Qwen3ForCausalLM(Qwen3Config(**SHAPE)).eval().requires_grad_(False)
    base = Base(model, None, "random", 0, (1,), 2048)
    agents = [f"{name}_0" for name in NAMES[:policies]]
    team = Team(base, agents, critics=(), lora=LoraSettings(rank=RANK))
    rng = np.random.default_rng(0)
    optimizers = []
    for policy in team.policies:
        turns = [_turn(policy, rng) for _ in range(4)]
        optimizer = torch.optim.AdamW(team.policy_parameters(policy))
        team.log_probs(policy, turns, temperature=1.0).log_probs.sum().backward()
        optimizer.step()
        optimizers.append(optimizer)
    own = sum(p.numel() * 4 for p in team.policy_parameters(team.policies[0]))
    whole = sum(p.numel() * 4 for name, p in model.named_parameters() if "lora" not in name)
    print(whole, own, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)


def _turn(policy: str, rng: np.random.Generator) -> SampledTurn:
    ids = rng.integers(0, 8192, 96).astype(np.int32)
    return SampledTurn(
        agent=f"{policy}_0",
        role=policy,
        slot=0,
        policy=policy,
        step=0,
        layer=0,
        prompt_ids=ids[:64],
        action_ids=ids[64:],
        log_probs=np.zeros(32, dtype=np.float32),
        ended="length",
        state_ids=ids[:64],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--policies", type=int, help="train so many in this process")
    options = parser.parse_args()
    if options.policies:
        train(options.policies)
        return
    print("policies    peak  growth  4 x adapters   bases   (MiB)")
    first = 0.0
    for count in (1, 2, 4, 8):
        command = [sys.executable, "-m", "benchmarks.bench_memory", "--policies", str(count)]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        base, own, peak = map(int, printed.split())
        first = first or peak
        print(
            f"{count:8}{peak / MIB:8.0f}{(peak - first) / MIB:8.0f}"
            f"{4 * own * (count - 1) / MIB:14.0f}{base * (count - 1) / MIB:8.0f}"
        )
    print(f"base {base / MIB:.0f} MiB, one adapter {own / MIB:.1f} MiB (rank {RANK}, float32)")


if __name__ == "__main__":
    main()
