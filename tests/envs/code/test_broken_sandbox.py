"""Zygotes die in the middle of runs: never a wrong answer, and never a reward of 0 that counts."""

import os
import signal
import threading
from contextlib import contextmanager, suppress

import numpy as np
import pytest

import flexmg
from flexmg.envs.code import Limits, grade, grader
from flexmg.envs.code.grader import CodeDomain
from flexmg.envs.code.sandbox import Pool
from flexmg.envs.code.suite import Case, Suite
from flexmg.envs.code.values import encode
from flexmg.errors import InfraError
from flexmg.problem import Problem

NAP = "import time\ntime.sleep(1)\n"
LIMITS = Limits(wall_s=5.0)
SCRIPT = Suite("stdin", public=(Case("3\n", "9\n"),), hidden=(Case("4\n", "16\n"),), limits=LIMITS)
SUITES = {
    "stdin": (SCRIPT, "print(int(input()) ** 2)"),
    "checker": (
        Suite("stdin", hidden=(Case("3\n", "9\n"),), checker="int(out) == 9", limits=LIMITS),
        "print(9)",
    ),
    "calls": (
        Suite("calls", hidden=(Case([encode(3)], encode(9)),), entry="f", limits=LIMITS),
        "def f(x): return x * x",
    ),
    "asserts": (
        Suite("asserts", hidden=(Case("assert f(3) == 9\n"),), limits=LIMITS),
        "def f(x): return x * x",
    ),
    "asserts that loop": (
        Suite(
            "asserts",
            hidden=(Case("for n in range(3):\n    assert f(n) == n * n\n"),),
            limits=LIMITS,
        ),
        "def f(x): return x * x",
    ),
}
KINDS = pytest.mark.parametrize(("suite", "program"), SUITES.values(), ids=SUITES.keys())


def problem(suite):
    return Problem("square", "Square it.", "tests", payload={"tests": suite.payload()})


def reply(program):
    return f"```python\n{NAP}{program}\n```"


POOLS = {}


@pytest.fixture(scope="module", autouse=True)
def pools_of_our_own():
    """What breaks here is not the pool that other tests use after these."""
    with pytest.MonkeyPatch.context() as patch, Pool(2) as candidates, Pool(2) as referees:
        POOLS.update(candidates=candidates, referees=referees)
        patch.setattr(grader, "shared_pool", lambda isolation, purpose: POOLS[purpose])
        yield


@contextmanager
def breaking(*purposes):
    """Kills whatever zygote starts, as a machine does that is out of memory."""
    over = threading.Event()

    def kill():
        while not over.wait(0.01):
            for purpose in purposes or POOLS:
                for slot in POOLS[purpose].slots:
                    if (pid := slot.pid) is not None:
                        with suppress(ProcessLookupError):
                            os.kill(pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        yield
    finally:
        over.set()
        killer.join()


@KINDS
@pytest.mark.parametrize("score", ["all", "fraction"])
def test_it_is_our_failure(suite, program, score):
    with breaking():
        verdict = grade(problem(suite), NAP + program, score=score)
    assert verdict.status == "infra_error" and verdict.detail


@pytest.mark.parametrize("kind", SUITES)
def test_the_next_verdict_is_right_again(kind):
    suite, program = SUITES[kind]
    with breaking():
        grade(problem(suite), NAP + program)
    assert grade(problem(suite), program).correct


def test_a_broken_checker_process_is_our_failure_too():
    slow = f"__import__('time').sleep(1) or {SUITES['checker'][0].checker}"
    suite = Suite("stdin", hidden=(Case("3\n", "9\n"),), checker=slow, limits=LIMITS)
    grade(problem(suite), "print(9)")  # both pools run now
    with breaking("referees"):
        assert grade(problem(suite), "print(9)").status == "infra_error"


def test_a_single_death_is_made_good():
    """A run whose zygote dies is made once more."""
    assert grade(problem(SCRIPT), "print(int(input()) ** 2)").correct
    for slot in POOLS["candidates"].slots:
        if slot.pid is not None:
            os.kill(slot.pid, signal.SIGKILL)
    assert grade(problem(SCRIPT), "print(int(input()) ** 2)").correct


def test_agents_get_no_report():
    with breaking(), pytest.raises(InfraError):
        CodeDomain().trial(problem(SCRIPT), reply("print(int(input()) ** 2)"))


def test_the_failure_is_not_remembered():
    domain = CodeDomain()
    with breaking():
        broken = domain.grade(problem(SCRIPT), reply("print(int(input()) ** 2)"))
    again = domain.grade(problem(SCRIPT), reply("print(int(input()) ** 2)"))
    assert (broken.status, again.status) == ("infra_error", "correct")


# -------------------------------------------------------------------------------- in episodes
@pytest.fixture(scope="module")
def outcome():
    env = flexmg.make("code-single-v0").unwrapped
    env.reset(seed=0)
    with breaking():
        env.step(reply("def f(*numbers): return 0"))
    return env.outcome


def test_the_episode_is_marked(outcome):
    assert outcome.infra_error and outcome.verdict.status == "infra_error"


def test_the_episode_pays_nothing(outcome):
    assert set(outcome.rewards.values()) == {0.0} and set(outcome.step_rewards) == {0.0}


class Speaker:
    """An engine that says a program for one problem, and nothing of use for the others."""

    def __init__(self, tokenizer, index, place):
        self.tokenizer, self.index, self.place = tokenizer, index, place

    def generate(self, requests):
        from flexmg.baselines.generation.protocol import Generation

        found = []
        for request in requests:
            chosen = request.key[self.place] == self.index
            text = reply("def f(*numbers): return 0") if chosen else "I do not know."
            ids = np.array(self.tokenizer.encode(text, add_special_tokens=False), dtype=np.int32)
            found.append(Generation(ids, np.zeros(len(ids), dtype=np.float32), "eos"))
        return found


@pytest.fixture(scope="module")
def batch():
    """Three episodes, one of which needs the sandbox while it is broken."""
    pytest.importorskip("torch")
    from flexmg.baselines.models.base import load_base
    from flexmg.baselines.models.team import Team
    from flexmg.baselines.rollout.collector import Collector

    base = load_base("tiny", device="cpu")
    team = Team(base, flexmg.make("code-single-v0").unwrapped.possible_agents)
    key = (3, 1)
    engine = Speaker(base.tokenizer, 5, len(key))
    with breaking():
        return Collector("code-single-v0", team, engine).collect([4, 5, 6], 1, key)


def test_such_an_episode_is_left_out_of_training(batch):
    assert [one.infra_error for one in batch.episodes] == [False, True, False]
    assert len(batch.trainable) == 2


def test_such_an_episode_has_no_score(batch):
    assert batch.episodes[1].score is None and batch.episodes[1].infos["error"]


def test_such_an_episode_is_counted(batch):
    from flexmg.baselines.training.records import describe

    row = describe(batch)
    assert (row["infra_errors"], row["episodes"]) == (1, 2)
    assert row["statuses"] == {"unparseable": 2, "infra_error": 1}
