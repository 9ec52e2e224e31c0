"""The code domain: programs as answers, run in a sandbox and judged by their tests."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flexmg.envs.code.extraction import extract as extract
    from flexmg.envs.code.grader import grade as grade
    from flexmg.envs.code.sandbox import Execution as Execution
    from flexmg.envs.code.sandbox import Limits as Limits
    from flexmg.envs.code.sandbox import execute as execute

_FROM = {
    "execute": "sandbox",
    "Execution": "sandbox",
    "Limits": "sandbox",
    "grade": "grader",
    "extract": "extraction",
}
__all__ = ["Execution", "Limits", "execute", "extract", "grade"]


def __getattr__(name: str) -> Any:
    if name in _FROM:
        return getattr(importlib.import_module(f"flexmg.envs.code.{_FROM[name]}"), name)
    raise AttributeError(f"module 'flexmg.envs.code' has no attribute {name!r}")
