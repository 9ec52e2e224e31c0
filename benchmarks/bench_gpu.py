"""One iteration of a 0.6 B-parameter model on a CUDA device: rollout, update, share of peak.

The model is Qwen3-0.6B's shape with random weights, in bf16, with SDPA attention.

    python -m benchmarks gpu
"""

from __future__ import annotations

import argparse
from time import perf_counter
from typing import Any

import numpy as np
import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

from flexmg.baselines.algorithms.grpo import GRPO, GRPOConfig
from flexmg.baselines.generation.local import LocalEngine
from flexmg.baselines.generation.protocol import Generation, Request, SamplingParams
from flexmg.baselines.models.base import Base
from flexmg.baselines.models.team import Team
from flexmg.baselines.rollout.turns import Batch, Episode, SampledTurn

SHAPE: dict[str, Any] = {
    "vocab_size": 151_936,
    "hidden_size": 1024,
    "intermediate_size": 3072,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "tie_word_embeddings": True,
}


def matrix_speed(device: torch.device) -> float:
    """Flops per second of a large bf16 product: the peak that can be had."""
    a = torch.randn(8192, 8192, device=device, dtype=torch.bfloat16)
    for _ in range(3):
        a @ a
    torch.cuda.synchronize()
    started = perf_counter()
    for _ in range(10):
        a @ a
    torch.cuda.synchronize()
    return 10 * 2 * 8192**3 / (perf_counter() - started)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=256)
    parser.add_argument("--prompt", type=int, default=256)
    parser.add_argument("--new", type=int, default=256)
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("torch sees no CUDA device here: nothing to time")
        return
    device = torch.device("cuda")
    torch.manual_seed(0)
    config = Qwen3Config(**SHAPE, eos_token_id=1, max_position_embeddings=4096)
    with device:
        model = Qwen3ForCausalLM._from_config(config, dtype=torch.bfloat16)
    base = Base(model.eval().requires_grad_(False), None, "0.6 B", 0, (1,), 4096)
    team = Team(base, ["solver_0"], policy_map="shared", critics=(), token_budget=65_536)
    rng = np.random.default_rng(0)
    # Groups of four share a prompt.
    prompts = rng.integers(2, 1000, (options.rows // 4, options.prompt)).astype(np.int32)
    asked = [
        Request("team", prompts[k // 4], SamplingParams(options.new), (k,))
        for k in range(options.rows)
    ]
    engine = LocalEngine(team.adapters, max_rows=options.rows)
    engine.generate(asked[:8])
    torch.cuda.synchronize()
    started = perf_counter()
    out = engine.generate(asked)
    torch.cuda.synchronize()
    rolled = perf_counter() - started
    tokens = sum(len(one.action_ids) for one in out)
    batch = Batch([_episode(k, asked[k], one) for k, one in enumerate(out)])
    learner = GRPO(team, GRPOConfig(epochs=1, micro_batch_tokens=32_768), temperature=1.0)
    started = perf_counter()
    learner.update(batch, (0,), lambda place: batch)
    torch.cuda.synchronize()
    updated = perf_counter() - started
    parameters = sum(p.numel() for p in model.parameters())
    peak = matrix_speed(device)
    read = options.rows * options.prompt + tokens
    # Forward 2 flops a parameter and token; before, after, and forward + backward in between.
    share = {
        "rollout": 2 * parameters * tokens / rolled / peak,
        "update": 2 * parameters * read * 5 / updated / peak,
    }
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {parameters / 1e6:.0f} M")
    print(f"rollout {tokens / rolled:,.0f} tokens/s ({share['rollout']:.1%} of peak)")
    print(f"update  {read / updated:,.0f} tokens/s ({share['update']:.1%} of peak)")
    print(f"peak memory {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB")


def _episode(number: int, request: Request, made: Generation) -> Episode:
    turn = SampledTurn(
        agent="solver_0",
        role="solver",
        slot=0,
        policy="team",
        step=0,
        layer=0,
        prompt_ids=request.prompt_ids,
        action_ids=made.action_ids,
        log_probs=made.log_probs,
        ended="length",
        state_ids=request.prompt_ids,
    )
    reward = float(number % 3 == 0)
    return Episode(str(number // 4), number % 4, [turn], np.array([reward]), {"solver_0": reward})


if __name__ == "__main__":
    main()
