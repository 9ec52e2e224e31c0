"""A tiny random Qwen3 model, saved as any model on the hub is, and games to play with it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from flexmg.baselines.models.base import Base, load_base
from flexmg.envs.registration import compose
from flexmg.game import FlexMarkovGame
from flexmg.problem import Problem, Verdict

TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SPECIAL = ["<|pad|>", "<|im_start|>", "<|im_end|>"]


def write_tokenizer(folder: Path) -> None:
    """Byte-level, one token per byte: 256 bytes and three special tokens."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {letter: i for i, letter in enumerate(letters)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(SPECIAL)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|pad|>"
    )
    fast.chat_template = TEMPLATE
    fast.save_pretrained(folder)


def write_model(folder: Path, hidden: int = 32) -> None:
    write_tokenizer(folder)
    config = Qwen3Config(
        vocab_size=259,
        hidden_size=hidden,
        intermediate_size=2 * hidden,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=hidden // 4,
        max_position_embeddings=2048,
        tie_word_embeddings=True,
        eos_token_id=258,
        bos_token_id=None,
        pad_token_id=256,
        # Large weights, so that the random model has strong opinions and padding or
        # adapter mistakes show.
        initializer_range=0.2,
    )
    with torch.random.fork_rng():
        torch.manual_seed(7)
        Qwen3ForCausalLM(config).save_pretrained(folder)


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("qwen3")
    write_model(folder)
    return folder


@pytest.fixture
def base(model_folder: Path) -> Base:
    return load_base(str(model_folder), device="cpu")


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> None:
    torch.set_num_threads(1)


class Sums:
    """An unlimited source: problem i asks for i + i."""

    name = "sums"
    split = "train"
    size = None

    def get(self, index: int) -> Problem:
        return Problem(f"sum-{index}", f"What is {index} + {index}?", str(2 * index), index=index)

    def find(self, id: str) -> Problem:
        return self.get(int(id.removeprefix("sum-")))


class Contains:
    """A domain where a reply is right when it contains the gold answer.

    ``fails`` names problems whose grading raises, ``infra`` those it cannot judge.
    """

    name = "sums"
    answer_format = "Write the answer."

    def __init__(self, fails: Collection[str] = (), infra: Collection[str] = ()) -> None:
        self.fails, self.infra = fails, infra

    def grade(self, problem: Problem, reply: str) -> Verdict:
        if problem.id in self.fails:
            raise ZeroDivisionError("the grader of this test is broken")
        if problem.id in self.infra:
            return Verdict(0.0, "infra_error", "the grader's process died")
        right = problem.gold in reply
        return Verdict(float(right), "correct" if right else "wrong")

    def answer_key(self, problem: Problem, reply: str) -> Hashable | None:
        return reply.strip() or None


@pytest.fixture
def make_domain() -> type[Contains]:
    """``make_domain(fails=..., infra=...)`` makes a domain."""
    return Contains


@pytest.fixture
def make_game() -> Callable[..., Any]:
    """``make_game(workflow="orch-workers", domain=..., **options)`` makes a real game."""

    def make(
        workflow: str = "orch-workers", domain: Contains | None = None, **options: Any
    ) -> FlexMarkovGame:
        return compose(workflow, domain or Contains(), Sums(), {"token_limits": 16, **options})

    return make
