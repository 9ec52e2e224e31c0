"""What a run writes down."""

from __future__ import annotations

import errno
import json
import math

import numpy as np
import pytest

from flexmg.baselines.rollout.turns import Batch, Episode, SampledTurn
from flexmg.baselines.training.records import RunRecords, describe, plain
from flexmg.errors import CheckpointError


def one(status: str, reward: float, *, infra_error: bool = False) -> Episode:
    empty = np.empty(0, dtype=np.int32)
    turn = SampledTurn(
        agent="solver_0",
        role="solver",
        slot=0,
        policy="solver",
        step=0,
        layer=0,
        prompt_ids=np.array([1], dtype=np.int32),
        action_ids=np.array([1, 2], dtype=np.int32),
        log_probs=np.zeros(2, dtype=np.float32),
        ended="eos",
        state_ids=empty,
        text="x",
        fallback="last line" if status == "wrong" else "",
    )
    return Episode(
        problem="p",
        sample=0,
        turns=[turn],
        step_rewards=np.array([reward]),
        agent_rewards={"solver_0": reward},
        score=reward,
        status=status,
        infra_error=infra_error,
    )


def test_infra_errors_are_counted_and_in_no_other_figure():
    batch = Batch(
        [one("correct", 1.0), one("wrong", 0.0), one("infra_error", 0.0, infra_error=True)]
    )
    row = describe(batch)
    assert (row["accuracy"], row["reward"], row["episodes"]) == (0.5, 0.5, 2)
    assert row["infra_errors"] == 1
    assert row["statuses"] == {"correct": 1, "wrong": 1, "infra_error": 1}
    assert row["roles"]["solver"]["fallback"] == 0.5


def test_a_batch_of_infra_errors_has_no_accuracy():
    row = describe(Batch([one("infra_error", 0.0, infra_error=True)]))
    assert (row["accuracy"], row["reward"]) == (None, None)


def test_a_torn_last_line_is_no_row(tmp_path):
    records = RunRecords(tmp_path)
    records.add({"iteration": 1})
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"iteration": 2, "accu')
    assert records.rows() == [{"iteration": 1}]


def test_rows_are_strict_json(tmp_path):
    records = RunRecords(tmp_path)
    records.add({"iteration": 1, "kl": math.nan, "list": (math.inf, 1.0)})

    def refuse(constant):
        raise AssertionError(constant)

    line = (tmp_path / "metrics.jsonl").read_text()
    assert json.loads(line, parse_constant=refuse) == {
        "iteration": 1,
        "kl": None,
        "list": [None, 1.0],
    }


def test_plain_keeps_what_is_plain():
    assert plain({"a": [1, "x", None, True]}) == {"a": [1, "x", None, True]}


def test_a_full_disk_while_logging_names_the_file_and_the_way_on(tmp_path, monkeypatch):
    records = RunRecords(tmp_path)

    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(CheckpointError, match=r"metrics\.jsonl.*--resume"):
        records.add({"iteration": 1})


def test_a_full_disk_leaves_the_old_evaluation(tmp_path, monkeypatch):
    records = RunRecords(tmp_path)
    records.add_evaluation("before", {"accuracy": 0.5})

    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(CheckpointError):
        records.add_evaluation("after", {"accuracy": 0.9})
    assert records.evaluations() == {"before": {"accuracy": 0.5}}


def test_a_run_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "run").write_text("a file")
    with pytest.raises(CheckpointError, match=r"run.*--out"):
        RunRecords(tmp_path / "run")


@pytest.mark.parametrize("text", ["{\n", "[]\n"])
def test_a_broken_record_is_a_clear_error(tmp_path, text):
    (tmp_path / "metrics.jsonl").write_text(text)
    (tmp_path / "evaluation.json").write_text(text)
    records = RunRecords(tmp_path)
    with pytest.raises(CheckpointError, match=r"metrics\.jsonl"):
        records.rows()
    with pytest.raises(CheckpointError, match=r"evaluation\.json"):
        records.evaluations()
