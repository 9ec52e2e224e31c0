"""Symbolic work in worker processes: limits, hostile answers, threads, scripts, forks."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from flexmg.envs.math import grade
from flexmg.envs.math.comparing.workers import Settlement, WorkerPool, shared_pool
from flexmg.errors import InfraError, MissingDependency

pytest.importorskip("math_verify", reason="symbolic work needs flexmg[math]")

SYMBOLIC = [  # neither the normal form nor floating point settles these
    ("\\sqrt{2} - 1", "\\frac{1}{1 + \\sqrt{2}}", True),
    ("\\sqrt{3 + 2\\sqrt{2}}", "1 + \\sqrt{2}", True),
    ("\\tan x", "\\frac{\\sin x}{\\cos x}", True),
    ("\\sin 2x", "2 \\sin x \\cos x", True),
    ("\\frac{1}{x+1} + \\frac{1}{x-1}", "\\frac{2x}{x^2-1}", True),
    ("e^{i\\pi}", "-1", True),
    ("\\frac{n(n+1)}{2}", "\\sum_{k=1}^{n} k", True),
    ("\\sqrt{10^{20}+1}", "10^{10}", False),
    ("\\sum_{k=1}^{n} k", "\\sum_{k=1}^{n} k^2", False),
]
HOSTILE = [
    "\\log_{2^{5}}(2^{16^{16^{16}}})",
    "9^{9^{9^9}}",
    "10^{10^{10}}",
    "2^{2^{31}}",
    "(10^9)!",
    "(x+1)^{10^6}",
    "(x+1)^{999}(x+2)^{999}",
    "((((2^{9999})^{9999})^{9999})^{9999})",
    "\\binom{10^9}{5 \\cdot 10^8}",
    "\\sqrt[10^9]{2}",
    "1e999999999",
    "9" * 100_000,
    "x+" * 30_000 + "1",
    "(" * 2_000 + "1" + ")" * 2_000,
    "\\frac{1}{" * 300 + "2" + "}" * 300,
    "1/" * 1_000 + "3",
    "x^" * 500 + "2",
    "-" * 5_000 + "1",
    "5" + "!" * 500,
    "\\sin(" * 70 + "1" + ")" * 70,
    ",".join(map(str, range(900))),
]
SLOW = [
    "\\sum_{k=1}^{10^9} k^k",
    "\\int_0^\\infty e^{-x^{x^x}} dx",
]


@pytest.fixture
def pool():
    small = WorkerPool(size=1, seconds=20.0, megabytes=512)
    yield small
    small.close()


@pytest.mark.parametrize(("gold", "answer", "equal"), SYMBOLIC)
def test_what_only_symbolic_work_can_tell(gold: str, answer: str, equal: bool) -> None:
    assert grade(gold, f"\\boxed{{{answer}}}").correct == equal


@pytest.mark.timeout(60)
@pytest.mark.parametrize("answer", HOSTILE, ids=lambda answer: answer[:24])
@pytest.mark.parametrize("gold", ["4", "\\frac{x}{2}"])
def test_hostile_answers_get_a_verdict(gold: str, answer: str) -> None:
    assert grade(gold, f"\\boxed{{{answer}}}").score == 0.0


@pytest.mark.timeout(60)
@pytest.mark.parametrize("answer", SLOW)
def test_endless_work_ends_and_the_pool_goes_on(answer: str) -> None:
    assert grade("\\frac{x}{2}", f"\\boxed{{{answer}}}").score == 0.0
    assert grade("\\tan x", "\\boxed{\\frac{\\sin x}{\\cos x}}").correct


@pytest.mark.parametrize(
    "code", ['__import__("os").mkdir("{}")', "exec(\"import os; os.mkdir('{}')\")"]
)
def test_code_in_an_answer_is_never_run(code: str, tmp_path: Path) -> None:
    target = tmp_path / "made"
    text = code.format(target)
    for reply in (text, f"\\boxed{{{text}}}", f"The answer is {text}", f"\\boxed{{\\sum {text}}}"):
        assert not grade("\\sum_{k=1}^{n} k", reply).correct
    assert not target.exists()


def test_a_request_that_takes_too_long_is_a_timeout() -> None:
    pool = WorkerPool(size=1, seconds=0.5, megabytes=512)
    assert pool.settle("4", "\\sum_{k=1}^{10^9} k^k").outcome == "timeout"
    pool.close()


def test_the_memory_of_a_worker_is_limited(pool: WorkerPool) -> None:
    pool.settle("\\tan x", "\\frac{\\sin x}{\\cos x}")
    limits = Path(f"/proc/{pool._idle[0].process.pid}/limits").read_text()
    line = next(line for line in limits.splitlines() if line.startswith("Max address space"))
    assert int(line.split()[3]) < 2**31


def test_an_answer_that_would_fill_the_memory_does_not() -> None:
    pool = WorkerPool(size=1, seconds=5.0, megabytes=128)
    assert not pool.settle("4", "\\sum_{k=1}^{1} 2^{2^{31}} k").equal
    pool.close()
    kilobytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    assert kilobytes < 1_000_000


def test_the_time_limit_starts_when_the_work_starts(pool: WorkerPool) -> None:
    # Eight requests wait for one worker: together they take longer than their limit alone.
    requests = [(f"\\sin {n}x", f"\\cos({n}x - \\frac{{\\pi}}{{2}})") for n in range(2, 10)]
    with ThreadPoolExecutor(8) as threads:
        outcomes = list(threads.map(lambda request: pool.settle(*request), requests))
    assert outcomes == [Settlement("settled", True)] * 8


def test_a_worker_that_dies_is_replaced(pool: WorkerPool) -> None:
    assert pool.settle("\\tan x", "\\frac{\\sin x}{\\cos x}").equal
    os.kill(pool._idle[0].process.pid, signal.SIGKILL)
    assert pool.settle("\\cot x", "\\frac{\\cos x}{\\sin x}").equal


def test_workers_that_cannot_start_are_our_own_failure(
    pool: WorkerPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    with pytest.raises(InfraError, match="cannot be started"):
        pool.settle("\\tan x", "\\frac{\\sin x}{\\cos x}")


def test_our_own_failure_is_a_verdict_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(gold: str, answer: str) -> Settlement:
        raise InfraError("two grading workers died in a row")

    monkeypatch.setattr(shared_pool(), "settle", fail)
    assert grade("\\sec x", "\\boxed{\\frac{1}{\\cos x}}").status == "infra_error"


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "math_verify.py").write_text("raise ImportError('no math_verify here')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    pool = WorkerPool(size=1, seconds=5.0, megabytes=512)
    with pytest.raises(MissingDependency, match=r"pip install 'flexmg\[math\]'"):
        pool.settle("\\tan x", "\\frac{\\sin x}{\\cos x}")


def test_eight_threads_give_the_serial_verdicts() -> None:
    work = [(g, f"\\boxed{{{a}}}") for g, a, _ in SYMBOLIC] + [
        (str(n), f"\\boxed{{{n % 7}}}") for n in range(100)
    ]
    serial = [grade(gold, reply) for gold, reply in work]
    with ThreadPoolExecutor(8) as threads:
        parallel = list(threads.map(lambda pair: grade(*pair), work * 3))
    assert parallel == serial * 3


SCRIPT = """
import threading
from flexmg.envs.math import grade
assert grade("\\\\tan x", "\\\\boxed{\\\\frac{\\\\sin x}{\\\\cos x}}").status == "correct"
found = []
thread = threading.Thread(
    target=lambda: found.append(grade("\\\\cot x", "\\\\boxed{\\\\frac{\\\\cos x}{\\\\sin x}}"))
)
thread.start()
thread.join()
from flexmg.envs.math.comparing.workers import shared_pool
print(found[0].status, *(worker.process.pid for worker in shared_pool()._idle))
"""


def run(arguments: list[str], text: str | None, folder: Path) -> list[str]:
    done = subprocess.run(
        [sys.executable, *arguments],
        input=text,
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    return done.stdout.split()


def test_an_unguarded_script_grades_and_leaves_no_worker(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    status, *workers = run(["script.py"], None, tmp_path)
    assert status == "correct"
    assert [pid for pid in workers if Path(f"/proc/{pid}").exists()] == []


def test_a_program_on_standard_input_grades(tmp_path: Path) -> None:
    assert run(["-"], SCRIPT, tmp_path)[0] == "correct"


def test_a_module_of_the_callers_folder_does_not_get_into_the_worker(tmp_path: Path) -> None:
    (tmp_path / "sympy.py").write_text("raise SystemExit('a decoy was imported')")
    (tmp_path / "inner").mkdir()
    assert run(["-c", SCRIPT], None, tmp_path)[0] == "correct"


def test_a_fork_starts_workers_of_its_own() -> None:
    assert grade("\\tan x", "\\boxed{\\frac{\\sin x}{\\cos x}}").correct
    child = os.fork()
    if child == 0:
        fine = grade("\\csc x", "\\boxed{\\frac{1}{\\sin x}}").correct
        shared_pool().close()
        os._exit(0 if fine else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert grade("\\sec x", "\\boxed{\\frac{1}{\\cos x}}").correct


def test_a_worker_ends_when_its_input_closes(pool: WorkerPool) -> None:
    pool.settle("\\tan x", "\\frac{\\sin x}{\\cos x}")
    worker = pool._idle.pop()
    worker.process.stdin.close()
    assert worker.process.wait(timeout=30) == 0
    worker.close()


def test_an_interrupt_while_waiting_does_not_spoil_the_next_request(pool: WorkerPool) -> None:
    pool.settle("\\tan x", "\\frac{\\sin x}{\\cos x}")
    timer = threading.Timer(
        0.3, signal.pthread_kill, [threading.main_thread().ident, signal.SIGINT]
    )
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        pool.settle("4", "\\sum_{k=1}^{10^9} k^k")
    timer.join()
    assert pool.settle("\\cot x", "\\frac{\\cos x}{\\sin x}").equal
