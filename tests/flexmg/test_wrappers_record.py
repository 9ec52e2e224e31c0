from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from sums import played, team

import flexmg
from flexmg.errors import TranscriptError
from flexmg.wrappers import RecordEpisodes, RecordError
from flexmg.wrappers.record import append, read

CRASH = """
import os, sys, flexmg
from flexmg.wrappers import RecordEpisodes
env = RecordEpisodes(flexmg.make("math-duo-v0"), sys.argv[1])
for seed in range(3):
    env.reset(seed=seed)
    env.step("a plan")
    if seed == 2:
        os._exit(9)  # no handler, no flush: as after a power cut
    env.step("no idea")
"""


def records(path):
    return [entry for _, entry in read(path)]


def test_every_finished_episode_is_one_line(tmp_path):
    file = tmp_path / "deep" / "episodes.jsonl"
    env = RecordEpisodes(team("duo"), file)
    for seed in range(3):
        played(env, seed=seed)
    assert [json.loads(line)["seed"] for line in file.read_text().splitlines()] == [0, 1, 2]
    assert env.recorded == 3


def test_a_record_is_the_games_transcript(tmp_path):
    env = RecordEpisodes(team("orch-workers"), tmp_path / "episodes.jsonl")
    played(env)
    assert records(env.path) == [env.unwrapped.transcript()]


def test_it_is_written_when_graded_not_when_all_have_left(tmp_path):
    env = RecordEpisodes(team("single"), tmp_path / "episodes.jsonl")
    env.reset(seed=0)
    env.step("Answer: 0")
    assert len(records(env.path)) == 1
    env.step(None)
    assert len(records(env.path)) == 1


def test_an_unfinished_episode_is_not_recorded(tmp_path):
    env = RecordEpisodes(team("duo"), tmp_path / "episodes.jsonl")
    env.reset(seed=0)
    env.step("a plan")
    env.reset(seed=1)
    assert records(env.path) == []


def test_what_stands_in_the_file_stays(tmp_path):
    file = tmp_path / "episodes.jsonl"
    for seed in range(2):
        played(RecordEpisodes(team("duo"), file), seed=seed)
    assert [record.seed for record in records(file)] == [0, 1]


def test_a_crash_in_the_middle_of_an_episode_loses_that_one_alone(tmp_path):
    file = tmp_path / "episodes.jsonl"
    done = subprocess.run([sys.executable, "-c", CRASH, str(file)])
    assert done.returncode == 9
    assert [record.seed for record in records(file)] == [0, 1]
    assert all(flexmg.replay(record).ok for record in records(file))


def test_a_torn_line_harms_no_other(tmp_path):
    file = tmp_path / "episodes.jsonl"
    played(env := RecordEpisodes(team("duo"), file))
    whole = file.read_bytes()
    file.write_bytes(whole + whole[:100])
    append(file, env.transcript())
    first, torn, last = records(file)
    assert first == last == env.transcript()
    assert isinstance(torn, TranscriptError)
    assert "line 2" in str(torn)


def test_texts_with_every_kind_of_line_end_stay_on_one_line(tmp_path):
    text = "a\nb\rc\x0bd\x85e\u2028f\u2029g"
    env = RecordEpisodes(team("single"), tmp_path / "episodes.jsonl")
    played(env, lambda agent, observation: text)
    (record,) = records(env.path)
    assert record.turns[0].text == text


def test_a_file_that_cannot_be_opened_is_refused_at_once(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RecordError, match="cannot be recorded"):
        RecordEpisodes(team("duo"), tmp_path / "file" / "episodes.jsonl")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs the device /dev/full")
def test_a_full_disk_is_a_clear_error():
    game = team("single")
    played(game)
    with pytest.raises(RecordError, match="cannot be appended to /dev/full"):
        append("/dev/full", game.transcript())


def test_a_missing_file_cannot_be_read(tmp_path):
    with pytest.raises(RecordError, match="cannot be read"):
        list(read(tmp_path / "nothing.jsonl"))
