"""Run a module of this folder as a process of its own, without flexmg on its path.

``python -s -S -P -B launch.py MODULE ARGUMENT...`` imports MODULE under a private package name,
so that its relative imports work, and calls its ``main`` with the arguments.
"""

from __future__ import annotations

import importlib
import sys
import types
from pathlib import Path


def load_package(name: str, folder: Path) -> None:
    """Make the modules of a folder importable as a package of this name."""
    package = types.ModuleType(name)
    package.__path__ = [str(folder)]
    sys.modules[name] = package


if __name__ == "__main__":
    load_package("_flexmg_sandbox", Path(__file__).resolve().parent)
    importlib.import_module(f"_flexmg_sandbox.{sys.argv[1]}").main(sys.argv[2:])
