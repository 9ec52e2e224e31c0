"""The environments that ship with flexmg (imported as ``flexmg.envs``)."""

import importlib
from types import ModuleType

# `import flexmg` need not pay for these; `flexmg.envs.math.grade` works without their import.
_LATER = ("code", "math", "workflows")


def __getattr__(name: str) -> ModuleType:
    if name in _LATER:
        return importlib.import_module(f"flexmg.envs.{name}")
    raise AttributeError(f"module 'flexmg.envs' has no attribute {name!r}")
