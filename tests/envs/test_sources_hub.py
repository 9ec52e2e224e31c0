"""Public data sets, loaded by ``datasets`` from a hub on this machine.

The hub below speaks enough of the HTTP interface for ``load_dataset``: it serves a folder as one
repository at one revision, and counts the requests.
"""

from __future__ import annotations

import hashlib
import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from flexmg.envs.code.sources import PUBLIC as CODE
from flexmg.envs.hub import hub_rows
from flexmg.envs.math.sources import PUBLIC, load
from flexmg.envs.sources import fingerprint, problems
from flexmg.errors import MissingDependency

datasets = pytest.importorskip("datasets")

SHARED = Path(os.environ.get("FLEXMG_SHARED", Path(__file__).parents[3] / "shared"))
CARD = """---
configs:
- config_name: main
  data_files:
  - split: train
    path: main/train-*
  - split: test
    path: main/test-*
---
"""
TRAIN = [{"question": "What is 1 + 1?", "answer": "Count.\n#### 2"}]
TEST = [
    {"question": "What is 1 + 3?", "answer": "Count.\n#### 4"},
    {"question": "What is 1000 + 4?", "answer": "Add.\n#### 1,004"},
]


class LocalHub(http.server.ThreadingHTTPServer):
    """Serves the files of a folder as one repository at one revision, and counts requests."""

    def __init__(self, folder: Path, repository: str, revision: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.folder, self.repository, self.revision = folder, repository, revision
        self.requests: list[str] = []
        self._thread = threading.Thread(target=self.serve_forever, daemon=True)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def __enter__(self) -> LocalHub:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.shutdown()
        self.server_close()
        self._thread.join()

    def entries(self, folder: str = "") -> list[dict[str, Any]]:
        """What lies directly in a folder of the repository."""
        return [self.entry(path) for path in sorted((self.folder / folder).glob("*"))]

    def entry(self, path: Path) -> dict[str, Any]:
        name = path.relative_to(self.folder).as_posix()
        oid = hashlib.sha1(path.read_bytes() if path.is_file() else name.encode()).hexdigest()
        kind = "file" if path.is_file() else "directory"
        return {"type": kind, "path": name, "size": path.stat().st_size, "oid": oid}


class _Handler(http.server.BaseHTTPRequestHandler):
    server: LocalHub

    def _answer(self) -> None:
        hub = self.server
        length = int(self.headers.get("Content-Length") or 0)
        asked = self.rfile.read(length).decode()
        hub.requests.append(f"{self.command} {self.path}")
        path = unquote(self.path.partition("?")[0])
        repository, revision = map(re.escape, (hub.repository, hub.revision))
        if match := re.fullmatch(f"/datasets/{repository}/resolve/{revision}/(.+)", path):
            self._send_file(hub.folder / match[1])
        elif re.fullmatch(f"/api/datasets/{repository}/revision/{revision}", path):
            self._send_json({"id": hub.repository, "sha": hub.revision})
        elif re.fullmatch(f"/api/datasets/{repository}/paths-info/{revision}", path):
            paths = [hub.folder / name for name in re.findall("paths=([^&]+)", unquote(asked))]
            self._send_json([hub.entry(path) for path in paths if path.exists()])
        elif match := re.fullmatch(f"/api/datasets/{repository}/tree/{revision}/?(.*)", path):
            entries = hub.entries(match[1])
            if entries:
                self._send_json(entries)
            else:
                self._send(404, b"", {"X-Error-Code": "EntryNotFound"})
        else:
            self._send(404, b"", {"X-Error-Code": "EntryNotFound"})

    do_GET = do_HEAD = do_POST = _answer

    def _send_file(self, path: Path) -> None:
        if not path.is_file():
            self._send(404, b"", {"X-Error-Code": "EntryNotFound"})
            return
        content = path.read_bytes()
        headers = {
            "ETag": f'"{hashlib.sha1(content).hexdigest()}"',
            "X-Repo-Commit": self.server.revision,
        }
        self._send(200, content, headers)

    def _send_json(self, value: Any) -> None:
        self._send(200, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def _send(self, status: int, content: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, text in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, text)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *values: object) -> None:
        """Keep the test's output clean."""


def python(code: str, home: Path, **environment: str) -> str:
    """The output of a program that has its own cache, and no hub unless it is told of one."""
    nowhere = {"HF_HOME": str(home), "HF_ENDPOINT": "http://127.0.0.1:9"}
    offline = ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "HF_DATASETS_CACHE", "HF_HUB_CACHE")
    kept = {name: text for name, text in os.environ.items() if name not in offline}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**kept, **nowhere, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


SHOW = """
from flexmg.envs.math.sources import load
for split in ("train", "test"):
    source = load("gsm8k", split=split)
    print(*[(p.id, p.statement, p.gold, p.split) for p in map(source.get, range(source.size))])
"""
SHOWN = (
    "('gsm8k-0', 'What is 1 + 1?', '2', 'train')\n"
    "('gsm8k-0', 'What is 1 + 3?', '4', 'test') ('gsm8k-1', 'What is 1000 + 4?', '1004', 'test')"
)
COMPLAIN = """
from flexmg.errors import SourceUnavailable
from flexmg.envs.hub import hub_rows
try:
    hub_rows("openai/gsm8k", "main", "test", {revision!r})
except SourceUnavailable as error:
    print(error)
"""


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LocalHub, Path, str]]:
    """A hub with a small GSM8K, a cache that was filled from it, and what was then shown."""
    folder, home = tmp_path_factory.mktemp("repository"), tmp_path_factory.mktemp("home")
    (folder / "README.md").write_text(CARD)
    (folder / "main").mkdir()
    for split, rows in (("train", TRAIN), ("test", TEST)):
        path = folder / "main" / f"{split}-00000-of-00001.parquet"
        datasets.Dataset.from_list(rows).to_parquet(str(path))
    with LocalHub(folder, PUBLIC["gsm8k"].repository, PUBLIC["gsm8k"].revision) as hub:
        yield hub, home, python(SHOW, home, HF_ENDPOINT=hub.endpoint)


def test_a_public_data_set_is_downloaded(loaded: tuple[LocalHub, Path, str]) -> None:
    assert loaded[2] == SHOWN


def test_every_download_names_the_pinned_revision(loaded: tuple[LocalHub, Path, str]) -> None:
    downloads = [request for request in loaded[0].requests if "openai/gsm8k" in request]
    assert downloads
    assert all(PUBLIC["gsm8k"].revision in request for request in downloads)


def test_a_cached_copy_needs_no_request(loaded: tuple[LocalHub, Path, str]) -> None:
    hub, home, _ = loaded
    before = len(hub.requests)
    assert python(SHOW, home, HF_ENDPOINT=hub.endpoint) == SHOWN
    assert len(hub.requests) == before


def test_a_cached_copy_is_read_offline(loaded: tuple[LocalHub, Path, str]) -> None:
    assert python(SHOW, loaded[1], HF_HUB_OFFLINE="1") == SHOWN


def test_another_cached_revision_is_not_taken_instead(loaded: tuple[LocalHub, Path, str]) -> None:
    said = python(COMPLAIN.format(revision="f" * 40), loaded[1], HF_HUB_OFFLINE="1")
    assert f"(revision {'f' * 40}) is not in the local cache, only another revision" in said


def test_a_damaged_cache_is_named(loaded: tuple[LocalHub, Path, str], tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(loaded[1], home)
    for path in home.rglob("*-test.arrow"):
        path.write_bytes(b"")
    said = python(COMPLAIN.format(revision=PUBLIC["gsm8k"].revision), home)
    assert said.startswith("the cached copy of openai/gsm8k in ")
    assert "delete that folder" in said


@pytest.mark.parametrize("offline", ["0", "1"])
def test_without_cache_and_hub_one_line_says_what_to_download(tmp_path: Path, offline: str) -> None:
    revision = PUBLIC["gsm8k"].revision
    said = python(COMPLAIN.format(revision=revision), tmp_path, HF_HUB_OFFLINE=offline)
    assert "\n" not in said
    assert f"datasets.load_dataset('openai/gsm8k', 'main', revision='{revision}')" in said
    assert "source='path/to/file.jsonl'" in said


def test_without_datasets_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingDependency, match=r"pip install 'flexmg\[data\]'"):
        hub_rows("openai/gsm8k", "main", "test", "0" * 40)


RAW = """
from flexmg.envs.code.sources import load
for name in ("livecodebench:release_v2", "livecodebench:v2"):
    source = load(name, split="test")
    print(name, [source.get(k).id for k in range(source.size)])
"""
RAW_SHOWN = (
    "livecodebench:release_v2 ['livecodebench-a', 'livecodebench-b', 'livecodebench-c']\n"
    "livecodebench:v2 ['livecodebench-c']"
)


def raw_row(name: str) -> str:
    """A line of LiveCodeBench's files."""
    test = json.dumps([{"input": "1", "output": "1", "testtype": "stdin"}])
    row = {"question_content": f"Echo {name}.", "question_id": name, "public_test_cases": test}
    return json.dumps({**row, "private_test_cases": test, "metadata": "{}", "starter_code": ""})


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LocalHub, Path, str]]:
    """A hub with two raw files, a cache filled from it, and what was then shown."""
    folder, home = tmp_path_factory.mktemp("raw"), tmp_path_factory.mktemp("raw_home")
    (folder / "test.jsonl").write_text(f"{raw_row('a')}\n{raw_row('b')}\n")
    (folder / "test2.jsonl").write_text(f"{raw_row('c')}\n")
    data_set = CODE["livecodebench"]
    with LocalHub(folder, data_set.repository, data_set.revision) as hub:
        yield hub, home, python(RAW, home, HF_ENDPOINT=hub.endpoint)


def test_raw_files_are_downloaded_and_joined(raw: tuple[LocalHub, Path, str]) -> None:
    assert raw[2] == RAW_SHOWN


def test_raw_files_are_asked_for_at_the_pinned_revision_and_once(
    raw: tuple[LocalHub, Path, str],
) -> None:
    asked = [request for request in raw[0].requests if request.startswith("GET /datasets/")]
    revision = CODE["livecodebench"].revision
    assert len(asked) == 2
    assert all(f"/resolve/{revision}/test" in request for request in asked)


def test_cached_raw_files_are_read_offline(raw: tuple[LocalHub, Path, str]) -> None:
    assert python(RAW, raw[1], HF_HUB_OFFLINE="1") == RAW_SHOWN


@pytest.mark.full
def test_the_real_math500_file_is_one_source_by_name_and_by_path(tmp_path: Path) -> None:
    file = SHARED / "data" / "math500" / "test.jsonl"
    if not file.is_file():
        pytest.skip(f"{file} is not here; set FLEXMG_SHARED")
    folder = tmp_path / "repository"
    folder.mkdir()
    shutil.copy(file, folder)
    code = (
        "from flexmg.envs.math.sources import load\n"
        "print(load('math500', split='test').fingerprint)"
    )
    with LocalHub(folder, PUBLIC["math500"].repository, PUBLIC["math500"].revision) as hub:
        by_name = python(code, tmp_path / "home", HF_ENDPOINT=hub.endpoint)
    again = python(code, tmp_path / "home", HF_HUB_OFFLINE="1")
    by_path = fingerprint(problems(load(file, split="test")))
    assert [by_name, again] == [by_path, by_path]
