"""The written episodes are what the environments do now."""

from __future__ import annotations

import pytest
from playthroughs import FOLDER, PLAYTHROUGHS, our_ids


@pytest.mark.parametrize("playthrough", PLAYTHROUGHS, ids=lambda p: p.name)
def test_the_episode_is_as_written(playthrough):
    written = (FOLDER / playthrough.name).read_text(encoding="utf-8")
    assert playthrough.text() == written, "run tests/playthroughs/playthroughs.py, read the diff"


def test_every_registered_id_has_a_playthrough():
    ours = set(our_ids())
    assert len(ours) >= 9
    assert ours == {playthrough.id for playthrough in PLAYTHROUGHS if not playthrough.variant}


def test_every_written_episode_is_played():
    assert {file.name for file in FOLDER.glob("*.txt")} == {p.name for p in PLAYTHROUGHS}
