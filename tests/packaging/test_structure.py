"""Which folders are packages, who may import whom, and that what is imported is declared."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import packages_distributions
from importlib.util import resolve_name
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

LIGHT = {"numpy", "gymnasium", "pettingzoo", "typer", "rich", "jinja2", "markupsafe"}
HEAVY = {
    "torch",
    "transformers",
    "peft",
    "sympy",
    "math_verify",
    "datasets",
    "pandas",
    "matplotlib",
}
# The wings that each wing must not import.
FORBIDDEN = {
    "flexmg": {"flexmg.envs", "flexmg.baselines", "flexmg.leaderboard"},
    "flexmg.envs": {"flexmg.baselines", "flexmg.leaderboard"},
    "flexmg.baselines": {"flexmg.envs", "flexmg.leaderboard"},
    "flexmg.leaderboard": set(),
}


@dataclass(frozen=True)
class Module:
    """A module of a wing."""

    name: str
    file: Path

    @property
    def body(self) -> list[ast.stmt]:
        return ast.parse(self.file.read_text(encoding="utf-8"), filename=str(self.file)).body

    def imports(self, nodes: Iterable[ast.AST] | None = None) -> list[str]:
        """Full names of what is imported, ``from a import b`` being ``a.b``.

        Args:
            nodes: statements to look at; by default all, those inside functions too.
        """
        found = []
        for node in ast.walk(ast.Module(self.body, [])) if nodes is None else nodes:
            if isinstance(node, ast.Import):
                found += [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                source = resolve_name("." * node.level + (node.module or ""), self.package)
                found += [f"{source}.{alias.name}" for alias in node.names]
        return found

    @property
    def package(self) -> str:
        is_package = self.file.name == "__init__.py"
        return self.name if is_package else self.name.rpartition(".")[0]


def modules(wings: dict[str, Path], *chosen: str) -> Iterator[Module]:
    """The modules of the chosen wings, by default of all."""
    for wing in chosen or wings:
        folder = wings[wing]
        for file in sorted(folder.rglob("*.py")):
            parts = file.relative_to(folder).with_suffix("").parts
            name = ".".join([wing, *parts]).removesuffix(".__init__")
            yield Module(name, file)


def run_on_import(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that importing a module runs, ``if TYPE_CHECKING`` left out."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from run_on_import(node.orelse)
            continue
        yield node
        for field in ("body", "orelse", "finalbody"):
            yield from run_on_import(getattr(node, field, []))
        for handler in getattr(node, "handlers", []):
            yield from run_on_import(handler.body)


def top_level(name: str) -> str:
    return name.partition(".")[0]


def within(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


def test_the_package_list_names_every_package_folder(
    project: dict[str, Any], wings: dict[str, Path]
) -> None:
    present = {
        ".".join([name, *init.parent.relative_to(folder).parts])
        for name, folder in wings.items()
        for init in folder.rglob("__init__.py")
    }
    assert set(project["tool"]["setuptools"]["packages"]) == present


def test_every_wing_that_exists_is_mapped(repository: Path, wings: dict[str, Path]) -> None:
    present = {
        folder
        for name in ("flexmg", "envs", "baselines", "leaderboard")
        if (folder := repository / name).joinpath("__init__.py").exists()
    }
    assert set(wings.values()) == present


def test_every_module_lies_in_a_package(wings: dict[str, Path]) -> None:
    folders = {module.file.parent for module in modules(wings)}
    assert [one for one in folders if not (one / "__init__.py").exists()] == []


@pytest.mark.parametrize("wing", FORBIDDEN)
def test_wings_import_downwards_only(wings: dict[str, Path], wing: str) -> None:
    if wing not in wings:
        pytest.skip(f"{wing} is not built yet")
    wrong = [
        f"{module.name}: {name}"
        for module in modules(wings, wing)
        for name in module.imports()
        if any(within(name, other) for other in FORBIDDEN[wing])
    ]
    assert wrong == []


def test_no_wing_is_imported_by_its_folder_name(wings: dict[str, Path]) -> None:
    wrong = [
        f"{module.name}: {name}"
        for module in modules(wings)
        for name in module.imports()
        if top_level(name) in ("envs", "baselines", "leaderboard")
    ]
    assert wrong == []


def test_the_ground_floor_loads_only_base_dependencies(wings: dict[str, Path]) -> None:
    allowed = LIGHT | {"flexmg"} | sys.stdlib_module_names
    wrong = [
        f"{module.name}: {name}"
        for module in modules(wings, "flexmg")
        for name in module.imports(run_on_import(module.body))
        if top_level(name) not in allowed
    ]
    assert wrong == []


def test_everything_imported_is_declared(project: dict[str, Any], wings: dict[str, Path]) -> None:
    tables = [
        project["project"]["dependencies"],
        *project["project"]["optional-dependencies"].values(),
    ]
    declared = {canonicalize_name(Requirement(text).name) for table in tables for text in table}
    distributions = packages_distributions()
    known = sys.stdlib_module_names | {"_typeshed"}  # which exists for type checkers only
    undeclared = {
        f"{module.name}: {top}"
        for module in modules(wings)
        for top in set(map(top_level, module.imports())) - known
        if not declared & set(map(canonicalize_name, distributions.get(top, [top])))
    }
    assert undeclared == set()


def test_importing_flexmg_loads_nothing_heavy() -> None:
    code = f"import sys, flexmg; print(*({HEAVY!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
