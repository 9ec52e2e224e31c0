"""Settings: read back as written, refused by name when wrong."""

from __future__ import annotations

import dataclasses

import pytest
import yaml

from flexmg.baselines.algorithms.registry import algorithm, algorithms, configure
from flexmg.baselines.training import files
from flexmg.baselines.training.config import RunConfig
from flexmg.baselines.training.teams import use_threads
from flexmg.errors import InvalidArgument


def test_yaml_round_trip(tmp_path):
    config = RunConfig(
        env="math-duo-v0",
        env_args={"source": "synthetic", "level": 2},
        policies={"planner": "a", "solver": "b"},
        algorithm_args={"clip": float("inf"), "target_kl": None},
    )
    (tmp_path / files.FILE).write_text(files.text(config))
    assert files.load(tmp_path) == config


def test_every_field_of_every_config_is_documented():
    """In the class that declares it."""
    classes = {RunConfig}
    for name in algorithms():
        classes |= {c for c in algorithm(name).Config.__mro__ if dataclasses.is_dataclass(c)}
    assert len(classes) >= 7
    for cls in classes:
        for name in cls.__annotations__:
            if name in {field.name for field in dataclasses.fields(cls)}:
                assert f"{name}:" in cls.__doc__, (cls, name)


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ({"env": "e", "itertions": 3}, "did you mean 'iterations'"),
        ({"env": "e", "iterations": "many"}, "iterations"),
        ({"env": "e", "iterations": 0}, "iterations must be at least 1"),
        ({"env": "e", "seed": -1}, "seed must not be negative"),
        ({}, "env"),
    ],
)
def test_bad_settings_are_refused_by_name(values, fault):
    with pytest.raises(InvalidArgument, match=fault):
        files.build(RunConfig, values, "the run")


def test_settings_of_an_algorithm_are_read_from_text():
    """As a command line or YAML 1.1 gives them: `1e-3` is a text there."""
    config = configure("marft", {"lr": "1e-3", "clip": "inf", "epochs": "3"})
    assert (config.lr, config.clip, config.epochs) == (1e-3, float("inf"), 3)


def test_unknown_setting_of_an_algorithm_names_the_closest():
    with pytest.raises(InvalidArgument, match="did you mean 'gamma'"):
        configure("ippo", {"gama": 1.0})


def test_unknown_algorithm_names_the_closest():
    with pytest.raises(InvalidArgument, match="did you mean 'marft'"):
        configure("marf", {})


@pytest.mark.parametrize("text", ["env: [", "- 1\n- 2", "\x00"])
def test_a_broken_file_is_a_clear_error(tmp_path, text):
    (tmp_path / "config.yaml").write_text(text)
    with pytest.raises(InvalidArgument, match=r"config\.yaml"):
        files.load(tmp_path)


def test_a_folder_without_settings_is_no_run(tmp_path):
    with pytest.raises(InvalidArgument, match="not a run folder"):
        files.load(tmp_path)


def test_the_file_is_plain_yaml():
    assert yaml.safe_load(files.text(RunConfig(env="math-duo-v0")))["model"] == "tiny"


@pytest.mark.parametrize(
    ("model", "asked", "given"),
    [
        ("tiny", None, 1),
        ("smollm2", None, None),
        ("tiny", 3, 3),
        ("smollm2", 3, 3),
        ("tiny", 0, None),
    ],
)
def test_one_thread_with_tiny_unless_asked(monkeypatch, model, asked, given):
    chosen = []
    monkeypatch.setattr("torch.set_num_threads", chosen.append)
    use_threads(RunConfig(env="math-duo-v0", model=model, threads=asked))
    assert chosen == ([] if given is None else [given])
