"""Many jobs, many callers, and the end of a pool."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import threading
import time
import weakref
from concurrent.futures import CancelledError

import pytest

from flexmg.envs.code.sandbox import Job, Limits, Pool, shared_pool
from flexmg.envs.code.sandbox.pool import PoolClosed
from flexmg.envs.code.sandbox.slot import Slot
from flexmg.errors import InvalidArgument

SQUARE = "print(int(input()) ** 2)"
NAP = Job("import time\ntime.sleep(0.4)\nprint('rested')")


@pytest.fixture(scope="module")
def shared():
    with Pool(2) as two:
        yield two


def test_executions_come_in_the_order_of_the_jobs(shared):
    found = shared.run_all(Job(SQUARE, str(n)) for n in range(30))
    assert [int(one.stdout) for one in found] == [n * n for n in range(30)]


def test_two_hundred_submits_at_once(shared):
    found = {}

    def one(n):
        found[n] = int(shared.run(Job(SQUARE, str(n))).stdout)

    threads = [threading.Thread(target=one, args=(n,)) for n in range(200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {n: n * n for n in range(200)}


def test_asyncio_can_wait_for_runs(shared):
    async def all_of_them():
        jobs = [Job(SQUARE, str(n)) for n in range(8)]
        return await asyncio.gather(*[asyncio.wrap_future(shared.submit(job)) for job in jobs])

    assert [int(one.stdout) for one in asyncio.run(all_of_them())] == [n * n for n in range(8)]


def test_workers_run_side_by_side(shared):
    """Two programs that wait for each other both end."""
    meet = (
        "import os, stat\n"
        "def is_socket(n):\n    try: return stat.S_ISSOCK(os.fstat(n).st_mode)\n"
        "    except OSError: return False\n"
        "n = next(n for n in range(3, 64) if is_socket(n))\n"
        "os.write(n, b'here')\nprint(os.read(n, 4))"
    )
    ours, theirs = socket.socketpair()
    with ours, theirs:
        found = shared.run_all([Job(meet, channel=end.fileno()) for end in (ours, theirs)])
    assert [one.stdout for one in found] == [b"b'here'\n"] * 2


def test_submit_blocks_while_the_queue_is_full():
    with Pool(1, waiting=1) as one:
        one.run(Job("print(1)"))
        running, waiting = one.submit(NAP), None
        while not running.running():
            time.sleep(0.01)
        waiting = one.submit(NAP)
        one.submit(NAP)
        # The last could only be taken in when the first was over.
        assert running.done() and waiting is not None


def test_a_cancelled_job_is_not_run():
    with Pool(1) as one:
        one.submit(NAP)
        future = one.submit(Job("print(1)"))
        assert future.cancel()
        assert one.run(Job("print(2)")).ok


# ------------------------------------------------------------------------------ its end


def test_close_runs_what_waits_first():
    one = Pool(1)
    futures = [one.submit(NAP), one.submit(Job("print(1)"))]
    one.close()
    assert [future.result(0).status for future in futures] == ["ok", "ok"]


def test_close_can_drop_what_waits():
    one = Pool(1)
    one.run(Job("print(1)"))
    first, second = one.submit(NAP), one.submit(NAP)
    while not first.running():
        time.sleep(0.01)
    one.close(finish=False)
    assert first.result(0).stdout == b"rested\n"
    with pytest.raises(CancelledError):
        second.result(0)


def test_a_closed_pool_says_so():
    one = Pool(1)
    one.close()
    one.close()
    with pytest.raises(PoolClosed, match="closed"):
        one.submit(Job("print(1)"))


def test_who_waits_for_room_when_the_pool_is_closed_is_told():
    one = Pool(1, waiting=1)
    one.run(Job("print(1)"))
    first = one.submit(NAP)
    while not first.running():
        time.sleep(0.01)
    one.submit(NAP)
    seen = []

    def late():
        try:
            one.submit(NAP)
        except PoolClosed as error:
            seen.append(error)

    thread = threading.Thread(target=late)
    thread.start()
    time.sleep(0.1)
    one.close(finish=False)
    thread.join(10)
    assert len(seen) == 1


def test_no_process_outlives_a_pool():
    with Pool(2) as two:
        two.run_all([Job("print(1)")] * 6)
        pids = [slot.pid for slot in two.slots if slot.pid is not None]
    assert pids and not any(os.path.exists(f"/proc/{pid}") for pid in pids)


def test_a_pool_may_be_closed_by_a_callback():
    one = Pool(1)
    ended = threading.Event()
    future = one.submit(Job("print(1)"))
    future.add_done_callback(lambda _: (one.close(), ended.set()))
    assert ended.wait(30)


# --------------------------------------------------------------------- what goes wrong


def test_no_descriptor_left_is_an_infra_error(shared, monkeypatch):
    def none_left(*_):
        raise OSError(24, "Too many open files")

    monkeypatch.setattr("flexmg.envs.code.sandbox.slot.sealed", none_left)
    found = shared.run(Job("print(1)"))
    assert found.status == "infra_error" and "Too many open files" in found.detail


def test_a_pool_recovers_from_that(shared):
    assert shared.run(Job("print(1)")).ok


def test_a_zygote_that_cannot_start_is_an_infra_error(monkeypatch):
    monkeypatch.setattr("flexmg.envs.code.sandbox.slot.FOLDER", "/nowhere")
    monkeypatch.setattr(Slot, "_command", lambda *_: ["/nowhere/python"])
    with Pool(1) as one:
        found = one.run(Job("print(1)"))
    assert found.status == "infra_error" and "/nowhere/python" in found.detail


@pytest.mark.parametrize("setting", [{"workers": 0}, {"waiting": 0}, {"isolation": "some"}])
def test_settings_that_make_no_sense(setting):
    with pytest.raises(InvalidArgument, match=next(iter(setting))):
        Pool(**setting)


def test_unknown_driver():
    with pytest.raises(InvalidArgument, match="script"):
        Job("print(1)", driver="helicopter")


def test_unsafe_has_to_be_asked_for_and_warns():
    with pytest.warns(UserWarning, match="without isolation"), Pool(1, isolation="unsafe") as one:
        assert one.run(Job("print(1)")).ok


# ------------------------------------------------------------------------- shared pools


def test_candidates_and_referees_have_pools_of_their_own():
    assert shared_pool() is shared_pool()
    assert shared_pool() is not shared_pool(purpose="referees")


def test_a_forked_process_gets_pools_of_its_own():
    assert shared_pool().run(Job("print(1)")).ok
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, shared_pool().run(Job("print('in the child')")).stdout)
        finally:
            os._exit(0)
    os.close(writing)
    assert os.read(reading, 100) == b"in the child\n"
    os.close(reading)
    os.waitpid(child, 0)
    assert shared_pool().run(Job("print(2)")).ok


def test_a_forked_process_is_told_that_a_pool_is_not_its_own(shared):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            shared.submit(Job("print(1)"))
        except PoolClosed as error:
            os.write(writing, str(error).encode())
        finally:
            os._exit(0)
    os.close(writing)
    assert b"belongs to the process that forked" in os.read(reading, 200)
    os.close(reading)
    os.waitpid(child, 0)


# ------------------------------------------------------------------------ several calls

COUNTED = "import os, time\nfor _ in range({calls}):\n    {work}\n    os.write({result}, b'.')"
SPIN = "end = time.process_time() + {}\n    while time.process_time() < end: pass"


def calls(work, made, promised, **limits):
    program = (
        "import os\ndef writable(n):\n    try: os.write(n, b''); return True\n"
        "    except OSError: return False\n"
        "R = next(n for n in range(3, 64) if writable(n))\n"
        + COUNTED.format(calls=made, work=work, result="R")
    )
    return Job(program, calls=promised, limits=Limits(**limits))


def test_the_limit_on_time_holds_per_call(shared):
    found = shared.run(calls(SPIN.format(0.2), made=4, promised=4, cpu_s=0.5, wall_s=60))
    assert (found.status, found.result) == ("ok", b"....")


def test_one_call_may_not_use_the_time_of_all(shared):
    assert shared.run(calls(SPIN.format(9), 1, 20, cpu_s=0.4, wall_s=60)).status == "time_limit"


def test_all_calls_together_may_not_use_more_than_their_sum(shared):
    found = shared.run(calls(SPIN.format(0.2), made=20, promised=2, cpu_s=0.5, wall_s=60))
    assert found.status == "time_limit" and found.cpu_s < 2


def test_the_wall_limit_holds_per_call(shared):
    found = shared.run(calls("time.sleep(0.5)", made=4, promised=4, wall_s=1.8))
    assert found.status == "ok"


def test_a_pool_holds_on_to_no_finished_work(shared):
    future = shared.submit(Job("print(1)"))
    future.result()
    reference = weakref.ref(future)
    del future
    shared.run_all([Job("print(2)")] * 4)
    gc.collect()
    assert reference() is None
