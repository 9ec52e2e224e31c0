"""Ids: registering, finding, making, PettingZoo's registry, plug-ins."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pettingzoo
import pytest
from sums import team

import flexmg
from flexmg import registry
from flexmg.errors import (
    FlexMGError,
    InvalidArgument,
    MissingDependency,
    NameNotFound,
    RegistrationError,
    VersionNotFound,
)


@pytest.fixture(autouse=True)
def own_registry(monkeypatch):
    """Registered ids of a test are gone after it."""
    monkeypatch.setattr(registry, "_registry", dict(registry._registry))
    monkeypatch.setattr(pettingzoo, "register", lambda *args, **kwargs: None)


def build(n: int = 2, *, colour: str = "red"):
    return team("voting", n=n)


MATHS = {
    f"math-{name}-v0"
    for name in (
        "single",
        "duo",
        "trio",
        "quad",
        "voting",
        "eval-opt",
        "orch-workers",
        "debate",
        "router",
    )
}


def test_the_nine_maths_ids_are_registered():
    assert {spec.id for spec in flexmg.registered()} >= MATHS


@pytest.mark.parametrize("id", sorted(MATHS))
def test_every_id_makes_an_aec_environment(id):
    assert isinstance(flexmg.make(id).unwrapped, pettingzoo.AECEnv)


def test_make_by_a_new_id():
    flexmg.register("colours-v0", build)
    assert flexmg.make("colours-v0").possible_agents == ["voter_0", "voter_1", "aggregator_0"]


def test_kwargs_of_make_override_those_of_the_spec():
    flexmg.register("colours-v0", build, kwargs={"n": 3})
    assert len(flexmg.make("colours-v0").possible_agents) == 4
    assert len(flexmg.make("colours-v0", n=5).possible_agents) == 6


def test_an_entry_point_may_be_a_text():
    flexmg.register("colours-v0", "sums:team", kwargs={"workflow": "duo"})
    assert flexmg.make("colours-v0").possible_agents == ["planner_0", "solver_0"]


@pytest.mark.parametrize("entry", ["nowhere:build", "sums:nothing", "sums"])
def test_an_entry_point_that_is_not_there_is_an_error_of_ours(entry):
    flexmg.register("colours-v0", entry)
    with pytest.raises(RegistrationError, match="colours-v0"):
        flexmg.make("colours-v0")


def test_the_game_carries_its_spec():
    flexmg.register("colours-v3", build)
    spec = flexmg.make("colours-v3", n=4).spec
    assert (spec.id, spec.kwargs, spec.name, spec.version) == (
        "colours-v3",
        {"n": 4},
        "colours",
        3,
    )


def test_the_name_is_that_of_pettingzoo():
    flexmg.register("red-colours-v0", build)
    assert str(flexmg.make("red-colours-v0")) == "red_colours_v0"


def test_making_one_environment_does_not_rename_another():
    flexmg.register("colours-v0", build)
    one = flexmg.make("colours-v0")
    flexmg.make("math-duo-v0")
    assert str(one) == "colours_v0"


def test_without_a_version_the_latest_is_meant():
    for version in (0, 2, 10):
        flexmg.register(f"colours-v{version}", build)
    assert flexmg.spec("colours").id == "colours-v10"


def test_specs_are_frozen():
    with pytest.raises(AttributeError):
        flexmg.spec("math-duo-v0").id = "other-v0"


@pytest.mark.parametrize(
    ("id", "meant"),
    [
        ("math-orch-worker-v0", "math-orch-workers-v0"),
        ("math-vote-v0", "math-voting-v0"),
        ("Math-Duo-v0", "math-duo-v0"),
        ("math-debat", "math-debate-v0"),
    ],
)
def test_an_unknown_name_names_the_closest(id, meant):
    with pytest.raises(NameNotFound, match=f"Did you mean '{meant}'"):
        flexmg.make(id)


@pytest.mark.parametrize("id", ["", "zzz", "math duo", None, 5, "a/b/c", "math-duo-v0\n"])
def test_anything_else_is_an_unknown_name(id):
    with pytest.raises(NameNotFound):
        flexmg.make(id)


def test_an_unknown_id_is_a_key_error_with_a_readable_message():
    with pytest.raises(KeyError) as error:
        flexmg.make("zzz")
    assert str(error.value).startswith("no environment is called 'zzz'.")


def test_an_unknown_version_names_those_that_exist():
    flexmg.register("colours-v1", build)
    flexmg.register("colours-v2", build)
    with pytest.raises(VersionNotFound, match="no version v7; it has v1, v2"):
        flexmg.make("colours-v7")


@pytest.mark.parametrize("id", ["colours", "colours-v", "colours-v01", "-v0", "a b-v0", 5, None])
def test_an_id_without_name_or_version_cannot_be_registered(id):
    with pytest.raises(RegistrationError, match="'my-game-v0'"):
        flexmg.register(id, build)


def test_an_id_cannot_be_registered_twice():
    flexmg.register("colours-v0", build)
    with pytest.raises(RegistrationError, match="new version"):
        flexmg.register("colours-v0", build)


def test_an_unknown_keyword_names_the_closest():
    flexmg.register("colours-v0", build)
    with pytest.raises(InvalidArgument, match=r"no keyword 'color'\. Did you mean 'colour'"):
        flexmg.make("colours-v0", color="blue")


@pytest.mark.parametrize(
    ("keyword", "meant"),
    [({"rewards": "team"}, "reward"), ({"round": 2}, "rounds"), ({"slpit": "test"}, "split")],
)
def test_an_unknown_keyword_of_ours_names_the_closest(keyword, meant):
    with pytest.raises(InvalidArgument, match=f"Did you mean '{meant}'"):
        flexmg.make("math-debate-v0", **keyword)


@pytest.mark.parametrize("keyword", [{"workflow": "single"}, {"n": 2}, {"domain": None}])
def test_a_keyword_of_another_workflow_is_refused(keyword):
    with pytest.raises(InvalidArgument, match="no keyword"):
        flexmg.make("math-duo-v0", **keyword)


def test_a_missing_package_names_the_extra():
    flexmg.register("colours-v0", build, requires={"no_such_package_at_all": "paint"})
    with pytest.raises(MissingDependency, match=r"pip install 'flexmg\[paint\]'"):
        flexmg.make("colours-v0")


def test_a_missing_module_of_a_missing_package_too():
    flexmg.register("colours-v0", build, requires={"no_such_package.part": "paint"})
    with pytest.raises(MissingDependency, match=r"no_such_package\.part"):
        flexmg.make("colours-v0")


def test_maths_without_sympy_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "sympy", None)
    with pytest.raises(MissingDependency, match=r"pip install 'flexmg\[math\]'"):
        flexmg.make("math-voting-v0")


def test_a_missing_package_is_an_import_error():
    assert issubclass(MissingDependency, ImportError) and issubclass(MissingDependency, FlexMGError)


def test_pprint_registry_lists_every_id(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    flexmg.pprint_registry()
    printed = capsys.readouterr().out
    assert all(id in printed for id in MATHS)


def in_another_process(code, **environment):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


def test_pettingzoo_makes_our_environments():
    code = """
        import warnings; warnings.simplefilter("ignore")
        import pettingzoo, flexmg
        env = pettingzoo.make("aec", "flexmg/math-orch-workers-v0", n=2)
        print(env.unwrapped.possible_agents)
    """
    printed = in_another_process(code).stdout
    assert printed == "['orchestrator_0', 'worker_0', 'worker_1', 'synthesizer_0']\n"


def plug_in(folder, module):
    (folder / "their_games.py").write_text(textwrap.dedent(module), encoding="utf-8")
    info = folder / "their_games-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-games\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[flexmg.envs]\ntheirs = their_games:register\n")
    return os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])


def test_a_third_partys_environments_arrive_by_entry_point(tmp_path):
    path = plug_in(
        tmp_path,
        """
        import flexmg

        def register():
            flexmg.register("their-game-v0", "their_games:build", description="theirs")

        def build():
            return flexmg.make("math-single-v0")
        """,
    )
    code = "import flexmg; print(flexmg.make('their-game-v0').spec.id)"
    assert in_another_process(code, PYTHONPATH=path).stdout == "their-game-v0\n"


@pytest.mark.parametrize(
    "module",
    [
        "import no_such_package_at_all",
        "def register():\n    raise RuntimeError('broken')",
        "import flexmg\ndef register():\n    flexmg.register('math-duo-v0', print)",
    ],
)
def test_a_broken_plug_in_warns_and_harms_nobody(tmp_path, module):
    path = plug_in(tmp_path, module)
    done = in_another_process("import flexmg; print(flexmg.spec('math-duo').id)", PYTHONPATH=path)
    assert done.stdout == "math-duo-v0\n"
    assert "their_games:register" in done.stderr


def test_importing_flexmg_imports_nothing_heavy():
    code = """
        import sys, flexmg
        heavy = {"torch", "transformers", "sympy", "datasets", "math_verify", "peft", "pandas"}
        print(sorted(heavy & set(sys.modules)))
    """
    assert in_another_process(code).stdout == "[]\n"
