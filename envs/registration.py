"""Registers the environments of flexmg: one id per (domain, workflow).

Imported by ``import flexmg`` through the entry point ``flexmg.envs``, so it must stay
light: workflows and domains are imported when an environment is made.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from flexmg.registry import check_keywords, register

# What each workflow does, for listings.
WORKFLOWS = {
    "single": "one solver: the baseline every claim is compared with",
    "duo": "planner -> solver",
    "trio": "planner -> solver -> verifier",
    "quad": "planner -> solver -> reflector -> verifier",
    "voting": "voters in parallel, an aggregator names the best",
    "eval-opt": "a generator refines until an evaluator accepts",
    "orch-workers": "an orchestrator sets workers to work, a synthesizer answers",
    "debate": "debaters see each other's last answers, the majority counts",
    "router": "an orchestrator calls specialists by name: D chosen by an action",
}
MATH_REQUIRES = {"sympy": "math", "math_verify": "math"}


def register_all() -> None:
    """Register every environment that ships with flexmg."""
    for workflow, description in WORKFLOWS.items():
        register(
            f"math-{workflow}-v0",
            "flexmg.envs.registration:math",
            kwargs={"workflow": workflow},
            description=f"maths: {description}",
            requires=MATH_REQUIRES,
        )


def math(
    workflow: str,
    *,
    source: str = "synthetic",
    split: str = "train",
    level: int | None = None,
    source_options: Mapping[str, Any] | None = None,
    **options: Any,
) -> Any:
    """A maths environment.

    Args:
        workflow: name of a workflow.
        source: ``"synthetic"``, a data set's name, or a path to a file of problems, see
            :func:`flexmg.envs.math.sources.load`.
        split: which part of the source.
        level: difficulty, for levelled sources.
        source_options: further keywords of the source (``mapping``, ``on_malformed`` ...).
        **options: ``reward``, ``dependencies``, ``render_mode`` of
            :class:`flexmg.game.FlexMarkovGame`; the rest goes to the workflow.

    Raises:
        InvalidArgument: a keyword that neither the game nor the workflow knows.
    """
    from flexmg.envs.math.grader import MathDomain
    from flexmg.envs.math.sources import load

    levelled = {} if level is None else {"level": level}
    problems = load(source, split=split, **levelled, **(source_options or {}))
    return compose(workflow, MathDomain(), problems, options)


def compose(workflow: str, domain: Any, problems: Any, options: Mapping[str, Any]) -> Any:
    """A game over a workflow: options are shared out between the two, unknown ones refused."""
    from flexmg.envs.workflows import WORKFLOWS as CLASSES

    from flexmg.game import FlexMarkovGame
    from flexmg.workflow import Workflow

    cls = CLASSES[workflow]
    game_keywords = {"reward", "dependencies", "render_mode"}
    workflow_keywords = {
        name
        for init in (cls.__init__, Workflow.__init__)
        for name, parameter in inspect.signature(init).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
    }
    source_keywords = {"source", "split", "level", "source_options"}
    check_keywords(
        options, game_keywords | workflow_keywords | source_keywords, f"{domain.name}-{workflow}"
    )
    mine = {name: value for name, value in options.items() if name not in game_keywords}
    game = {name: value for name, value in options.items() if name in game_keywords}
    return FlexMarkovGame(cls(domain, **mine), problems, **game)
