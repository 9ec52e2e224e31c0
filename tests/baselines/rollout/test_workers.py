"""Rollouts in processes of their own: the same episodes, the same order, and deaths."""

from __future__ import annotations

import io
import json
import os
import pickle
import signal
from functools import partial
from pathlib import Path

import letter_game
import pytest
import torch
import yaml
from rich.console import Console

from flexmg.baselines.models.base import load_base
from flexmg.baselines.models.team import Team
from flexmg.baselines.rollout.collector import Collector, RolloutSettings
from flexmg.baselines.rollout.workers import DeadWorker, Recipe, RolloutWorkers, fastest
from flexmg.baselines.training.launch import launch
from flexmg.errors import InfraError, InvalidArgument, ModelError

AGENTS = ("writer_0", "copyist_0")


def make_team(folder: str) -> Team:
    return Team(load_base(folder, device="cpu"), AGENTS, critics=())


def recipe(folder: Path, **settings) -> Recipe:
    return Recipe(
        make_team=partial(make_team, str(folder)),
        env=letter_game.ENV,
        env_args={"split": "test"},
        settings=RolloutSettings(transcripts=True, **settings),
        prepare=letter_game.register,
    )


@pytest.fixture(scope="module")
def team(model_folder) -> Team:
    letter_game.register()
    made = Team(load_base(str(model_folder), device="cpu"), AGENTS)
    generator = torch.Generator().manual_seed(3)
    for policy in made.policies:
        for parameter in made.policy_parameters(policy):
            parameter.data.normal_(0, 0.1, generator=generator)
    made.versions = {"writer": 4, "copyist": 7}
    return made


@pytest.fixture(scope="module")
def workers(team, model_folder):
    made = RolloutWorkers(team, recipe(model_folder), 2)
    yield made
    made.close()


def content(batch) -> list[tuple]:
    return [
        (
            e.problem,
            e.sample,
            e.score,
            json.dumps(e.infos),
            [(t.agent, t.text, t.policy_version, t.action_ids.tobytes()) for t in e.turns],
        )
        for e in batch.episodes
    ]


@pytest.mark.parametrize("problems", [[3, 1, 4, 5, 9], [2]])
def test_episodes_and_their_order_are_those_of_one_process(problems, team, workers):
    """The learner's adapters, with noise in them, are those that are played."""
    own = Collector(
        letter_game.ENV,
        team,
        settings=RolloutSettings(transcripts=True),
        env_kwargs={"split": "test"},
    )
    alone, together = own.collect(problems, 3, (8, 1)), workers.collect(problems, 3, (8, 1))
    assert content(together) == content(alone)
    assert together.episodes[0].turns[0].policy_version == 4


def test_a_later_collection_plays_the_adapters_as_they_are_then(team, workers):
    before = content(workers.collect([0, 1], 2, (1,)))
    parameter = team.policy_parameters("writer")[1]
    parameter.data.add_(0.5)
    try:
        assert content(workers.collect([0, 1], 2, (1,))) != before
    finally:
        parameter.data.sub_(0.5)
    assert content(workers.collect([0, 1], 2, (1,))) == before


def test_what_crosses_the_boundary_is_plain_data(team, workers):
    batch = workers.collect([0], 1, (1,))
    assert content(pickle.loads(pickle.dumps(batch))) == content(batch)


def test_an_error_of_ours_arrives_as_itself_and_the_workers_go_on(team, workers):
    with pytest.raises(InvalidArgument, match="listed twice"):
        workers.collect([1, 2, 1, 2], 1, (1,))
    assert len(workers.collect([1, 2], 1, (1,)).episodes) == 2


def test_a_model_that_is_not_there_is_said_at_the_start(team, tmp_path):
    with pytest.raises(ModelError, match="no folder"):
        RolloutWorkers(team, recipe(tmp_path / "none"), 1)


def test_a_killed_worker_is_an_infrastructure_error_that_says_so(team, model_folder):
    made = RolloutWorkers(team, recipe(model_folder), 1)
    try:
        process, _ = made._workers[0]
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        with pytest.raises(DeadWorker, match="worker 0 ended by signal 9") as caught:
            made.collect([0], 1, (1,))
        assert isinstance(caught.value, InfraError)
    finally:
        made.close()


def test_no_workers_are_refused(team, model_folder):
    with pytest.raises(InvalidArgument, match="at least 1"):
        RolloutWorkers(team, recipe(model_folder), 0)


@pytest.mark.parametrize(("seconds", "several_win"), [((2.0, 1.0), True), ((1.0, 0.95), False)])
def test_several_processes_must_save_a_tenth_of_the_time(seconds, several_win, monkeypatch):
    clock = iter([0.0, seconds[0], 10.0, 10.0 + seconds[1]])
    monkeypatch.setattr("flexmg.baselines.rollout.workers.perf_counter", lambda: next(clock))

    class Nothing:
        def collect(self, problems, samples, key):
            return None

    found = fastest(Nothing(), Nothing(), [1, 2, 3], 1, (0,))
    assert found == (several_win, pytest.approx(seconds[0]), pytest.approx(seconds[1]))


def test_a_run_writes_down_how_many_it_chose_and_a_resume_keeps_it(tmp_path, monkeypatch):
    monkeypatch.setattr("flexmg.baselines.training.trainer.cores", lambda: 2)
    given = {
        "env": "math-duo-v0",
        "iterations": 1,
        "problems": 4,
        "samples": 2,
        "eval_problems": 0,
        "rollout_workers": "auto",
    }
    console = Console(file=io.StringIO(), width=200)
    launch(given, tmp_path, resume=False, console=console)
    assert "in one process" in console.file.getvalue()
    chosen = yaml.safe_load((tmp_path / "config.yaml").read_text())["rollout_workers"]
    assert chosen in (1, 2)
    console = Console(file=io.StringIO(), width=200)
    launch({**given, "iterations": 2}, tmp_path, resume=True, console=console)
    assert "in one process" not in console.file.getvalue()
    assert len((tmp_path / "metrics.jsonl").read_text().splitlines()) == 2
