"""Servers on loopback: transformers' own, and one that fails on purpose."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def transformers_serve(model: Path, log: Path) -> Iterator[str]:
    """`transformers serve`, until it answers; the base URL."""
    port = free_port()
    command = [sys.executable, "-m", "transformers.cli.transformers", "serve", str(model)]
    with log.open("w") as output:
        process = subprocess.Popen(
            [*command, "--device", "cpu", "--port", str(port), "--host", "127.0.0.1"],
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "HF_HUB_OFFLINE": "1"},
        )
    try:
        deadline = time.monotonic() + 120
        while not _answers(f"http://127.0.0.1:{port}/health"):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.2)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return answer.status == 200
    except (urllib.error.URLError, OSError):
        return False


Answer = tuple[int, dict[str, str], bytes]


def completion(text: str) -> Answer:
    """What a well-behaved server says."""
    body = {
        "id": "1",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": text},
            }
        ],
        "usage": {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14},
    }
    return 200, {"content-type": "application/json"}, json.dumps(body).encode()


@contextmanager
def scripted_server(answer: Callable[[int, dict[str, Any]], Answer]) -> Iterator[str]:
    """A server that answers the n-th question (from 0) as told; the base URL."""
    lock = threading.Lock()
    counter = iter(range(1_000_000))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            with lock:
                number = next(counter)
            status, headers, content = answer(number, body)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            # A client that timed out is gone.
            with suppress(BrokenPipeError, ConnectionResetError):
                self.wfile.write(content)

        def log_message(self, *arguments: Any) -> None:
            """Silence."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
