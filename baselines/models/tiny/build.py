"""The recipe of the embedded model: ``python -m flexmg.baselines.models.tiny.build``.

Plays the environments' demonstrations, trains a tokenizer on their texts and a small
Qwen3 decoder on the demonstrated replies (next-token loss on reply tokens only), and
saves standard transformers files. Seeded; nothing is downloaded.

Not covered: no pre-training on other text, no validation-based stopping, one pass over
fresh examples. Its accuracies stand in docs/tiny-model.md, written by
``python -m flexmg.baselines.models.tiny.card``.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

import flexmg
from flexmg.baselines.models.tiny.demonstrations import Demonstration, Habit, demonstrations
from flexmg.baselines.models.tiny.tokenizer import train_tokenizer
from flexmg.baselines.rollout.rendering import Renderer

WEIGHTS = Path(__file__).parent / "weights"


@dataclass(frozen=True)
class Recipe:
    """Everything that decides what comes out.

    Args:
        seed: of the initial weights (the demonstrations are keyed by episode number).
        vocabulary: most tokens of the tokenizer, trained on ``tokenizer_episodes``.
        width, layers, heads, feed_forward: shape of the decoder.
        context: the most tokens of prompt and action together.
        skill_episodes: of a single solver that mostly shows its work and programs well, from
            which the network learns to read problems and to compute; one pass.
        habit_episodes: of every workflow, from which it learns the roles; one pass.
        pool: episodes whose examples are shuffled and sorted by length together.
        batch_tokens: tokens per step, padding included.
        learning_rate: peak; linear warm-up over ``warmup`` of the run, cosine to 0.
        weight_decay: of the layers' matrices.
    """

    seed: int = 0
    vocabulary: int = 4096
    tokenizer_episodes: int = 2400
    width: int = 128
    layers: int = 4
    heads: int = 4
    feed_forward: int = 384
    context: int = 2048
    skill_episodes: int = 26_000
    habit_episodes: int = 36_000
    pool: int = 1000
    batch_tokens: int = 2048
    learning_rate: float = 3e-3
    warmup: float = 0.05
    weight_decay: float = 0.1


SKILLED = Habit(at_once=0.1, bug=0.05)
Environment = tuple[str, dict[str, Any]]
# Three quarters maths: programs of this kind are copied more than computed.
SOLO: list[Environment] = [*[("math-single-v0", {})] * 3, ("code-single-v0", {})]


def workflows() -> list[Environment]:
    """Every workflow in maths and code, and the variants with prompts of their own."""
    ids: list[Environment] = [
        (spec.id, {}) for spec in flexmg.registered() if spec.id.startswith(("math-", "code-"))
    ]
    # The main job plays orch-workers: it gets a double share.
    return [
        *ids,
        ("math-orch-workers-v0", {}),
        ("math-orch-workers-v0", {"mode": "subtasks"}),
        ("code-orch-workers-v0", {"mode": "subtasks"}),
        ("code-eval-opt-v0", {"feedback": "execution"}),
    ]


def build(recipe: Recipe, habit: Habit, out: Path) -> None:
    """Make the model and save it to ``out``."""
    began = time.perf_counter()
    torch.manual_seed(recipe.seed)
    tokenizer = _tokenizer(recipe, habit)
    model = _model(recipe, tokenizer)
    size = sum(p.numel() for p in model.parameters())
    print(f"{size:,} parameters, {len(tokenizer)} tokens")
    optimisers = _optimisers(model, recipe)
    losses = []
    for step, (progress, batch) in enumerate(_batches(recipe, habit, tokenizer), start=1):
        rate = min(progress / recipe.warmup, 0.5 + 0.5 * math.cos(math.pi * min(progress, 1.0)))
        loss, right = _loss(model, batch, tokenizer.pad_token_id)
        model.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimiser in optimisers:
            for group in optimiser.param_groups:
                group["lr"] = recipe.learning_rate * rate
            optimiser.step()
        losses.append((loss.item(), right))
        if step % 50 == 0:
            minutes = (time.perf_counter() - began) / 60
            loss_now, right_now = np.mean(losses[-50:], axis=0)
            print(
                f"step {step:5d}  {progress:6.1%}  loss {loss_now:.4f}  "
                f"tokens right {right_now:.1%}  {minutes:.1f} min",
                flush=True,
            )
    save(model, tokenizer, out)
    details = {"recipe": asdict(recipe), "habit": asdict(habit), "parameters": size}
    (out / "recipe.json").write_text(json.dumps(details, indent=2) + "\n")
    print(f"saved to {out} after {(time.perf_counter() - began) / 60:.1f} minutes")


def save(model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerFast, out: Path) -> None:
    """Standard transformers files; half precision halves what the repository carries."""
    out.mkdir(parents=True, exist_ok=True)
    model.half().save_pretrained(out)
    tokenizer.save_pretrained(out)


def _tokenizer(recipe: Recipe, habit: Habit) -> PreTrainedTokenizerFast:
    def texts() -> Iterator[str]:
        for examples in demonstrations(workflows(), range(recipe.tokenizer_episodes), habit):
            for one in examples:
                yield one.observation["profile"]
                yield from (message["content"] for message in one.observation["messages"])
                yield one.reply

    return train_tokenizer(texts(), recipe.vocabulary, recipe.context)


def _model(recipe: Recipe, tokenizer: PreTrainedTokenizerFast) -> Qwen3ForCausalLM:
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=recipe.width,
        intermediate_size=recipe.feed_forward,
        num_hidden_layers=recipe.layers,
        num_attention_heads=recipe.heads,
        num_key_value_heads=recipe.heads,
        head_dim=recipe.width // recipe.heads,
        max_position_embeddings=recipe.context,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        initializer_range=0.02,
    )
    return Qwen3ForCausalLM(config)


Example = tuple[NDArray[np.int32], int]  # token ids, length of the prompt


def _encode(renderer: Renderer, one: Demonstration, context: int) -> Example:
    prompt, _ = renderer.prompt(one.observation, context)
    reply = renderer.tokenizer.encode(one.reply, add_special_tokens=False)
    ids = [*prompt.tolist(), *reply, renderer.tokenizer.eos_token_id]
    return np.array(ids, dtype=np.int32), len(prompt)


def _batches(
    recipe: Recipe, habit: Habit, tokenizer: PreTrainedTokenizerFast
) -> Iterator[tuple[float, list[Example]]]:
    """Batches of similar lengths, with the share of the run that is done."""
    renderer = Renderer(tokenizer)
    rng = np.random.default_rng(recipe.seed)
    total = recipe.skill_episodes + recipe.habit_episodes
    episodes = chain(
        demonstrations(SOLO, range(recipe.skill_episodes), SKILLED),
        demonstrations(workflows(), range(recipe.skill_episodes, total), habit),
    )
    done = 0
    for pool in _ahead(episodes, recipe.pool):
        examples = [_encode(renderer, one, recipe.context) for ep in pool for one in ep]
        examples.sort(key=lambda example: len(example[0]))
        batches: list[list[Example]] = [[]]
        for example in examples:
            if len(example[0]) * (len(batches[-1]) + 1) > recipe.batch_tokens:
                batches.append([])
            batches[-1].append(example)
        for number, place in enumerate(rng.permutation(len(batches))):
            yield (done + recipe.pool * number / len(batches)) / total, batches[place]
        done += len(pool)


def _ahead(
    episodes: Iterator[list[Demonstration]], size: int
) -> Iterator[list[list[Demonstration]]]:
    """Pools of episodes, the next one played in a thread of its own while one is learned from.

    Playing waits for sandboxes most of the time.
    """
    with ThreadPoolExecutor(1) as player:
        coming = player.submit(lambda: list(islice(episodes, size)))
        while pool := coming.result():
            coming = player.submit(lambda: list(islice(episodes, size)))
            yield pool


def _optimisers(model: Qwen3ForCausalLM, recipe: Recipe) -> list[torch.optim.Optimizer]:
    """Muon for the matrices of the layers (half the steps of AdamW), AdamW for the rest."""
    matrices = [p for name, p in model.named_parameters() if p.ndim == 2 and "layers" in name]
    chosen = {id(p) for p in matrices}
    rest = [p for p in model.parameters() if id(p) not in chosen]
    return [
        torch.optim.Muon(
            matrices, weight_decay=recipe.weight_decay, adjust_lr_fn="match_rms_adamw"
        ),
        torch.optim.AdamW(rest, weight_decay=0.0, betas=(0.9, 0.98)),
    ]


def _loss(model: Qwen3ForCausalLM, batch: list[Example], pad: int) -> tuple[torch.Tensor, float]:
    """Mean next-token loss on reply tokens, and the share of them predicted right."""
    longest = max(len(ids) for ids, _ in batch)
    tokens = torch.full((len(batch), longest), pad, dtype=torch.long)
    counted = torch.zeros((len(batch), longest), dtype=torch.bool)
    for row, (ids, prompt) in enumerate(batch):
        tokens[row, : len(ids)] = torch.from_numpy(ids.astype(np.int64))
        counted[row, prompt : len(ids)] = True
    # Padded on the right: a causal model never looks there, so no mask is needed.
    hidden = model.model(input_ids=tokens, use_cache=False).last_hidden_state
    logits = model.lm_head(hidden[:, :-1][counted[:, 1:]])
    targets = tokens[:, 1:][counted[:, 1:]]
    right = (logits.argmax(-1) == targets).float().mean().item()
    return F.cross_entropy(logits, targets), right


def main() -> None:
    """Command line: ``--out``, ``--threads``, ``--scale`` for trials."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=WEIGHTS)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the episodes")
    parser.add_argument("--threads", type=int, default=2, help="CPU threads of torch")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    recipe = Recipe(
        skill_episodes=round(Recipe.skill_episodes * arguments.scale),
        habit_episodes=round(Recipe.habit_episodes * arguments.scale),
    )
    build(recipe, Habit(), arguments.out)


if __name__ == "__main__":
    main()
