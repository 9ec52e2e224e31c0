"""A game that a random model can learn: replies are paid for the letters in them."""

from __future__ import annotations

from collections.abc import Hashable

import flexmg
from flexmg.agents import Profile
from flexmg.problem import Problem, Verdict
from flexmg.workflow import Call, Finish, History, Round, Workflow

ENV = "test-letters-v0"


class Letters:
    """Scores a reply by its share of the letters a to z."""

    name = "letters"
    answer_format = "Write letters."

    def grade(self, problem: Problem, reply: str) -> Verdict:
        del problem
        share = sum("a" <= c <= "z" for c in reply) / max(1, len(reply))
        return Verdict(share, "correct" if share > 0.5 else "wrong", answer=reply)

    def answer_key(self, problem: Problem, reply: str) -> Hashable:
        del problem
        return reply


class Pair(Workflow):
    """A writer, then a copyist who sees it; the copyist's reply counts."""

    name = "pair"
    roles = {"writer": Profile("Write."), "copyist": Profile("Copy.")}
    limits = {"writer": 4, "copyist": 8}

    def team(self) -> list[str]:
        return ["writer_0", "copyist_0"]

    def plan(self, history: History) -> Round | Finish:
        if not history.turns:
            return Round((Call("writer_0"), Call("copyist_0", ("writer_0",))))
        return Finish(history.last("copyist_0").text, ("copyist_0",))


class Words:
    """Numbered problems; the splits share none, but for the twins if asked for."""

    def __init__(self, split: str, size: int | None, twins: bool) -> None:
        self.name = "words"
        self.split = split
        self.size = size
        self.twins = twins

    def get(self, index: int) -> Problem:
        label = "both" if self.twins and index < 3 else self.split
        statement = f"{label} {index}"
        return Problem(f"{self.split}-{index}", statement, "", self.name, self.split, index)

    def find(self, id: str) -> Problem:
        return self.get(int(id.rpartition("-")[2]))


def letters(
    split: str = "train", size: int | None = None, twins: bool = False
) -> flexmg.FlexMarkovGame:
    return flexmg.FlexMarkovGame(Pair(Letters()), Words(split, size, twins))


def register() -> None:
    if ENV not in {spec.id for spec in flexmg.registered()}:
        flexmg.register(ENV, letters)


def settings(model: str, iterations: int, **more) -> dict:
    return {
        "env": ENV,
        "model": model,
        "device": "cpu",
        "iterations": iterations,
        "problems": 4,
        "samples": 2,
        "eval_problems": 3,
        "logged_episodes": 2,
        "seed": 11,
        "algorithm_args": {"lr": 0.01, "epochs": 1, "critic_epochs": 1},
        **more,
    }
