"""Base models, LoRA adapters, value heads and the teams made of them."""

from importlib.util import find_spec

from flexmg.errors import MissingDependency

_MISSING = [
    name for name in ("torch", "transformers", "peft", "safetensors") if not find_spec(name)
]
if _MISSING:
    raise MissingDependency(
        f"language-model policies need {', '.join(_MISSING)}, which is not installed here. "
        "Install it with: pip install 'flexmg[train]'"
    )
