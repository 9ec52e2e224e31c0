"""OpenAI-compatible endpoints: a real server, and one that fails on purpose."""

from __future__ import annotations

import io
import json
import threading
import time

import letter_game
import pytest
from rich.console import Console
from servers import completion, scripted_server, transformers_serve

from flexmg.baselines.generation.endpoint import Endpoint, EndpointSettings
from flexmg.baselines.models.base import TINY, load_base
from flexmg.baselines.models.team import Team
from flexmg.baselines.rollout.collector import Collector, RolloutSettings
from flexmg.baselines.training.launch import launch
from flexmg.errors import InfraError, InvalidArgument, MissingDependency

JSON = {"content-type": "application/json"}
BUSY = (500, JSON, b'{"error": {"message": "busy"}}')


def ask(endpoint: Endpoint) -> str:
    chat = [{"role": "user", "content": "hello"}]
    return endpoint.reply("Be brief.", chat, max_tokens=5, temperature=0.5, stop=("\n",), seed=3)


def test_what_is_asked_and_what_is_counted():
    asked = []
    with scripted_server(lambda n, body: asked.append(body) or completion("abc")) as url:
        endpoint = Endpoint(f"openai:some/model@{url}")
        assert ask(endpoint) == "abc"
    assert asked[0]["model"] == "some/model"
    assert [m["role"] for m in asked[0]["messages"]] == ["system", "user"]
    assert (asked[0]["max_tokens"], asked[0]["temperature"]) == (5, 0.5)
    assert (asked[0]["stop"], asked[0]["seed"]) == (["\n"], 3)
    spent = endpoint.spent()
    assert (spent.calls, spent.failures, spent.prompt_tokens, spent.completion_tokens) == (
        1,
        0,
        11,
        3,
    )
    assert endpoint.spent().calls == 0


def test_passing_failures_are_tried_again():
    """500, then 429 with Retry-After, then an answer."""
    answers = [BUSY, (429, {**JSON, "retry-after": "0.1"}, b"{}"), completion("at last")]
    with scripted_server(lambda n, body: answers[n]) as url:
        endpoint = Endpoint(f"openai:m@{url}", EndpointSettings(retries=3))
        assert ask(endpoint) == "at last"
    assert endpoint.spent().calls == 1


def test_a_hanging_server_is_given_up_and_asked_again():
    def answer(number, body):
        if number == 0:
            time.sleep(5)
        return completion("quick")

    with scripted_server(answer) as url:
        endpoint = Endpoint(f"openai:m@{url}", EndpointSettings(timeout=0.5, retries=1))
        started = time.monotonic()
        assert ask(endpoint) == "quick"
        assert time.monotonic() - started < 4.5


@pytest.mark.parametrize(
    ("answer", "attempts"),
    [
        (BUSY, 2),
        ((404, JSON, b'{"error": {"message": "no such model"}}'), 1),
        ((200, JSON, b"not json at all"), None),
        ((200, JSON, b'{"choices": []}'), None),
        ((200, {"content-type": "text/html"}, b"<html>a proxy's page</html>"), None),
    ],
)
def test_a_final_failure_is_an_infrastructure_error_that_names_the_endpoint(answer, attempts):
    asked = []
    with scripted_server(lambda n, body: asked.append(n) or answer) as url:
        endpoint = Endpoint(f"openai:m@{url}", EndpointSettings(retries=1))
        with pytest.raises(InfraError, match="openai:m@http"):
            ask(endpoint)
    assert attempts is None or len(asked) == attempts
    assert endpoint.spent().failures == 1


def test_nobody_there_is_an_infrastructure_error():
    endpoint = Endpoint("openai:m@http://127.0.0.1:9/v1", EndpointSettings(retries=0))
    with pytest.raises(InfraError, match="whether the server runs"):
        ask(endpoint)


@pytest.mark.parametrize("name", ["openai:", "openai:m", "openai:@http://x", "openai:m@nowhere"])
def test_names_that_are_no_endpoints_are_refused(name):
    with pytest.raises(InvalidArgument, match="openai:MODEL@URL"):
        Endpoint(name)


def test_without_the_client_the_extra_is_named(monkeypatch):
    monkeypatch.setattr("flexmg.baselines.generation.endpoint.find_spec", lambda name: None)
    with pytest.raises(MissingDependency, match=r"flexmg\[openai\]"):
        Endpoint("openai:m@http://127.0.0.1:9/v1")


def collector(url: str, model_folder, **settings) -> Collector:
    letter_game.register()
    team = Team(
        load_base(str(model_folder), device="cpu"),
        ("writer_0", "copyist_0"),
        policy_map={"writer": f"openai:m@{url}", "copyist": "copyist"},
    )
    options = EndpointSettings(retries=0, concurrency=settings.pop("concurrency", 16))
    return Collector(letter_game.ENV, team, settings=RolloutSettings(endpoint=options, **settings))


def test_a_failure_costs_its_own_episode_and_is_no_reward(model_folder):
    """Question 2 of 6 fails for good: one infra error, five graded episodes."""
    with scripted_server(lambda n, body: BUSY if n == 2 else completion("word")) as url:
        batch = collector(url, model_folder).collect(range(6), 1, (0,))
    failed = [e for e in batch.episodes if e.infra_error]
    assert len(failed) == 1 and "gave no answer" in failed[0].infos["error"]
    assert failed[0].score is None and len(batch.trainable) == 5
    for one in batch.trainable:
        writer = one.turns[0]
        assert writer.text == "word" and writer.policy == f"openai:m@{url}"
        assert writer.log_probs.tolist() == [0.0] * len(writer.action_ids)


def test_no_more_questions_are_under_way_than_allowed(model_folder):
    lock, now, most = threading.Lock(), [0], [0]

    def answer(number, body):
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        time.sleep(0.05)
        with lock:
            now[0] -= 1
        return completion("word")

    with scripted_server(answer) as url:
        collector(url, model_folder, concurrency=3).collect(range(12), 1, (0,))
    assert most[0] == 3


def test_games_go_on_while_one_waits_for_its_answer(model_folder):
    """The first question hangs until all other episodes have asked: no barrier between games."""
    others = threading.Event()
    asked = []

    def answer(number, body):
        asked.append(number)
        if number == 0:
            assert others.wait(30)
        elif len(asked) == 12:
            others.set()
        return completion("word")

    with scripted_server(answer) as url:
        # Four games at a time: the others can only ask once earlier ones have finished.
        batch = collector(url, model_folder, games=4).collect(range(12), 1, (0,))
    assert others.is_set() and len(batch.trainable) == 12


def test_the_embedded_model_behind_transformers_serve_plays_and_is_accounted_for(tmp_path):
    """A team of a served planner and a solver that learns, trained for one iteration."""
    with transformers_serve(TINY, tmp_path / "serve.log") as url:
        launch(
            {
                "env": "math-duo-v0",
                "policies": {"planner": f"openai:{TINY}@{url}", "solver": "solver"},
                "iterations": 1,
                "problems": 3,
                "samples": 2,
                "eval_problems": 0,
                "env_args": {"token_limits": 24},
            },
            tmp_path / "run",
            resume=False,
            console=Console(file=io.StringIO()),
        )
    row = json.loads((tmp_path / "run" / "metrics.jsonl").read_text())
    (spent,) = row["guests"].values()
    assert (spent["calls"], spent["failures"]) == (6, 0)
    assert spent["prompt_tokens"] > 0 and 0 < spent["completion_tokens"] <= 6 * 24
    assert row["infra_errors"] == 0 and row["policies"].keys() == {"solver"}
    lines = (tmp_path / "run" / "episodes" / "iteration-00001.jsonl").read_text().splitlines()
    assert all(json.loads(line)["turns"][0]["text"].strip() for line in lines)
