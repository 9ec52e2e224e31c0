"""Tokens per second of generation, scoring and critic features, against a bare loop.

The same random Qwen3 model (2.4 M parameters), 64 prompts of about 64 tokens, 32 new
tokens each. "bare" is a forward loop with a key/value cache, without adapters, random
streams or records: what generation costs at least with this library's forward pass. The
contestants take turns; ratios within one run are what counts. Not covered: environments,
grading, whole training iterations.

    python benchmarks/bench_generation.py [--rounds 5] [--rows 64]
"""

from __future__ import annotations

import argparse
import platform
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import peft
import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from flexmg.baselines.generation.local import LocalEngine
from flexmg.baselines.generation.protocol import Generation, Request, SamplingParams
from flexmg.baselines.models.base import Base, load_base
from flexmg.baselines.models.team import Team
from flexmg.baselines.rollout.turns import SampledTurn

VOCABULARY = 2048
NEW = 32
AGENTS = ("planner_0", "worker_0", "worker_1", "synthesizer_0")


def write_model(folder: Path) -> None:
    tokenizer = Tokenizer(models.WordLevel({"a": 0, "end": 1}, unk_token="a"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="end").save_pretrained(folder)
    config = Qwen3Config(
        vocab_size=VOCABULARY,
        hidden_size=192,
        intermediate_size=512,
        num_hidden_layers=5,
        num_attention_heads=6,
        num_key_value_heads=3,
        head_dim=32,
        max_position_embeddings=2048,
        tie_word_embeddings=True,
        eos_token_id=1,
    )
    torch.manual_seed(0)
    Qwen3ForCausalLM(config).save_pretrained(folder)


def load(folder: Path) -> Base:
    base = load_base(str(folder), device="cpu")
    base.eos_ids = ()  # every action runs to its cap, so that all contestants do equal work
    return base


@torch.inference_mode()
def bare_loop(base: Base, rows: int) -> int:
    model = base.model
    tokens = torch.randint(0, VOCABULARY, (rows, 64))
    out = model(input_ids=tokens, use_cache=True, logits_to_keep=1)
    for _ in range(NEW - 1):
        tokens = torch.multinomial(out.logits[:, -1].softmax(-1), 1)
        out = model(input_ids=tokens, use_cache=True, cache=out.cache)
    return rows * NEW


def requests(rows: int, policies: tuple[str, ...], ragged: bool) -> list[Request]:
    rng = np.random.default_rng(0)
    lengths = rng.integers(32, 97, rows) if ragged else np.full(rows, 64)
    return [
        Request(
            policies[i % len(policies)],
            rng.integers(0, VOCABULARY, lengths[i]).astype(np.int32),
            SamplingParams(NEW),
            (0, i),
        )
        for i in range(rows)
    ]


def turns_of(asked: list[Request], generated: list[Generation]) -> list[SampledTurn]:
    return [
        SampledTurn(
            agent="planner_0",
            role="planner",
            slot=0,
            policy=request.policy,
            step=0,
            layer=0,
            prompt_ids=request.prompt_ids,
            action_ids=generation.action_ids,
            log_probs=generation.log_probs,
            ended=generation.ended,
            state_ids=request.prompt_ids,
        )
        for request, generation in zip(asked, generated, strict=True)
    ]


def bare_update(base: Base, turns: list[SampledTurn]) -> int:
    """Full fine-tuning's forward and backward, padded to one rectangle, all logits."""
    width = max(len(t.prompt_ids) + len(t.action_ids) for t in turns)
    ids = torch.zeros(len(turns), width, dtype=torch.long)
    for row, turn in zip(ids, turns, strict=True):
        sequence = np.concatenate([turn.prompt_ids, turn.action_ids])
        row[: len(sequence)] = torch.from_numpy(sequence.astype(np.int64))
    base.model.requires_grad_(True)
    logits = base.model(input_ids=ids, use_cache=False).logits[:, :-1]
    torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten()).backward()
    base.model.zero_grad()
    base.model.requires_grad_(False)
    return len(turns) * NEW


def contestants(folder: Path, rows: int) -> dict[str, Callable[[], int]]:
    plain, base = load(folder), load(folder)
    team = Team(base, AGENTS)
    engine = LocalEngine(team.adapters)
    one = ("planner",)
    equal, ragged = requests(rows, one, False), requests(rows, one, True)
    mixed = requests(rows, team.policies, True)
    turns = turns_of(ragged, engine.generate(ragged))

    def update() -> int:
        team.log_probs("planner", turns, temperature=1.0).log_probs.sum().backward()
        return rows * NEW

    def score() -> int:
        with torch.no_grad():
            team.log_probs("planner", turns, temperature=1.0)
        return rows * NEW

    def read() -> int:
        prompts = [t.prompt_ids for t in turns]
        return len(team.read("central", prompts, policies=[t.policy for t in turns])) * NEW

    def generate(asked: list[Request]) -> Callable[[], int]:
        return lambda: sum(len(g.action_ids) for g in engine.generate(asked))

    return {
        "bare loop": lambda: bare_loop(plain, rows),
        "generate, equal prompts": generate(equal),
        "generate, ragged prompts": generate(ragged),
        "generate, three adapters": generate(mixed),
        "bare update": lambda: bare_update(plain, turns),
        "log_probs, forward + backward": update,
        "log_probs, forward": score,
        "critic's reading": read,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(
        f"torch {torch.__version__}, transformers {transformers.__version__}, peft "
        f"{peft.__version__}, Python {platform.python_version()}, {options.threads} thread(s), "
        f"{options.rows} rows"
    )
    with tempfile.TemporaryDirectory() as folder:
        write_model(Path(folder))
        rivals = contestants(Path(folder), options.rows)
        speeds: dict[str, list[float]] = {name: [] for name in rivals}
        for _ in range(options.rounds + 1):
            for name, run in rivals.items():
                start = time.perf_counter()
                tokens = run()
                speeds[name].append(tokens / (time.perf_counter() - start))
    bare = np.median(speeds["bare loop"][1:])
    print(f"{'case':32s} {'tokens/s (median)':>18s} {'against bare':>13s}")
    for name, values in speeds.items():
        median = np.median(values[1:])  # the first round warms up
        print(f"{name:32s} {median:18.0f} {median / bare:13.2f}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory of the process: {peak:.0f} MB")


if __name__ == "__main__":
    main()
