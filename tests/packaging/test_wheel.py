"""The wheel, installed with nothing but the base dependencies, beside decoy folders."""

from __future__ import annotations

from email.message import Message
from email.parser import Parser
from pathlib import Path
from zipfile import ZipFile

import pytest
from installation import Installation
from packaging.requirements import Requirement

pytestmark = pytest.mark.xdist_group("wheel")

IDS = [
    "math-debate-v0",
    "math-duo-v0",
    "math-eval-opt-v0",
    "math-orch-workers-v0",
    "math-quad-v0",
    "math-router-v0",
    "math-single-v0",
    "math-trio-v0",
    "math-voting-v0",
]


@pytest.fixture(scope="session")
def content(wheel: Path) -> set[str]:
    return set(ZipFile(wheel).namelist())


@pytest.fixture(scope="session")
def metadata(wheel: Path, content: set[str]) -> Message:
    (name,) = (name for name in content if name.endswith(".dist-info/METADATA"))
    return Parser().parsestr(ZipFile(wheel).read(name).decode())


def test_nothing_but_flexmg_lands_in_the_global_namespace(content: set[str]) -> None:
    top = {name.partition("/")[0] for name in content}
    assert top == {"flexmg", "flexmg-0.1.0.dist-info"}


def test_every_file_of_the_wings_is_in_the_wheel(content: set[str], wings: dict[str, Path]) -> None:
    expected = {
        f"{name.replace('.', '/')}/{file.relative_to(folder).as_posix()}"
        for name, folder in wings.items()
        for file in folder.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts and not file.name.startswith(".")
    }
    assert expected - content == set()


def test_no_tests_in_the_wheel(content: set[str]) -> None:
    assert [name for name in content if "test_" in name or "conftest" in name] == []


def test_the_licence_is_in_the_wheel(content: set[str]) -> None:
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in content)


def test_the_wheel_is_typed(content: set[str]) -> None:
    assert "flexmg/py.typed" in content


def test_the_base_install_is_light(metadata: Message) -> None:
    requirements = map(Requirement, metadata.get_all("Requires-Dist", []))
    base = {one.name for one in requirements if "extra" not in str(one.marker)}
    assert base == {"numpy", "gymnasium", "pettingzoo", "typer", "rich", "jinja2", "markupsafe"}


def test_the_package_is_ours_beside_a_folder_of_the_users(installed: Installation) -> None:
    where = installed.python("import flexmg.envs; print(flexmg.envs.__file__)")
    assert Path(where).is_relative_to(installed.folder)


@pytest.mark.parametrize("name", ["envs", "baselines", "leaderboard"])
def test_the_users_own_folder_stays_theirs(installed: Installation, name: str) -> None:
    code = f"import flexmg.envs, flexmg.baselines, {name}; print({name}.OWNER)"
    assert installed.python(code) == "the user"


def test_all_ids_are_registered(installed: Installation) -> None:
    ids = installed.python("import flexmg; print(*(spec.id for spec in flexmg.registered()))")
    assert set(IDS) <= set(ids.split())


def test_the_registry_warns_of_nothing(installed: Installation) -> None:
    assert installed.run("python", "-W", "error", "-c", "import flexmg").stderr == ""


def test_the_command_lists_all_ids(installed: Installation) -> None:
    done = installed.run("flexmg", "envs")
    assert done.returncode == 0, done.stderr
    assert [one for one in IDS if one not in done.stdout] == []


@pytest.mark.parametrize("id", IDS)
def test_make_names_the_extra_to_install(installed: Installation, id: str) -> None:
    code = f"""
import flexmg
try:
    flexmg.make({id!r})
except flexmg.FlexMGError as error:
    print(type(error).__name__, error)
"""
    said = installed.python(code)
    assert said.startswith("MissingDependency")
    assert "pip install 'flexmg[math]'" in said
