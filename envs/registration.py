"""Registers the environments of flexmg: one id per (domain, workflow).

Imported by ``import flexmg`` through the entry point ``flexmg.envs``, so it must stay
light: workflows and domains are imported when an environment is made.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from flexmg.errors import InvalidArgument
from flexmg.registry import check_keywords, register

if TYPE_CHECKING:
    from flexmg.game import FlexMarkovGame
    from flexmg.problem import Domain, ProblemSource

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
# Where a subject's usual setting is not the workflow's own.
CODE_DEFAULTS: Mapping[str, Mapping[str, Any]] = {"eval-opt": {"cap": 2}}


def register_all() -> None:
    """Register every environment that ships with flexmg."""
    for workflow, description in WORKFLOWS.items():
        register(
            f"math-{workflow}-v0",
            partial(math, workflow),
            description=f"maths: {description}",
            requires=MATH_REQUIRES,
        )
        register(f"code-{workflow}-v0", partial(code, workflow), description=f"code: {description}")


def math(
    workflow: str,
    /,
    *,
    source: str | os.PathLike[str] = "synthetic",
    split: str = "train",
    level: int | None = None,
    limit: int | None = None,
    mapping: Mapping[str, str] | None = None,
    on_malformed: Literal["raise", "skip"] = "raise",
    source_options: Mapping[str, Any] | None = None,
    **options: Any,
) -> FlexMarkovGame:
    """A maths environment.

    Args:
        workflow: name of a workflow.
        source: ``"synthetic"``, a data set's name, or a path to a file of problems, see
            :func:`flexmg.envs.math.sources.load`.
        split: which part of the source.
        level: difficulty, for levelled sources.
        limit: only the first so many problems.
        mapping: names of the fields of a file of problems.
        on_malformed: what a broken row of a file does: ``"raise"``, or ``"skip"``.
        source_options: further settings of a generator.
        **options: ``reward``, ``dependencies``, ``render_mode`` of
            :class:`flexmg.game.FlexMarkovGame`; the rest goes to the workflow.

    Raises:
        InvalidArgument: a keyword that neither the game nor the workflow nor the source knows.
    """
    from flexmg.envs.math.grader import MathDomain
    from flexmg.envs.math.sources import load
    from flexmg.envs.math.synthetic import SyntheticSource

    settings = _source_settings(source, source_options, load, SyntheticSource)
    problems = load(
        source,
        split=split,
        level=level,
        limit=limit,
        mapping=mapping,
        on_malformed=on_malformed,
        **settings,
    )
    return compose(workflow, MathDomain(), problems, options, _keywords(math))


def code(
    workflow: str,
    /,
    *,
    source: str | os.PathLike[str] = "synthetic",
    split: str = "train",
    level: int | None = None,
    limit: int | None = None,
    mapping: Mapping[str, str] | None = None,
    on_malformed: Literal["raise", "skip"] = "raise",
    source_options: Mapping[str, Any] | None = None,
    sandbox: Literal["strict", "unsafe"] = "strict",
    score: Literal["all", "fraction"] = "all",
    **options: Any,
) -> FlexMarkovGame:
    """A programming environment.

    Args:
        workflow: name of a workflow.
        source: ``"synthetic"``, a data set's name, or a path to a file of problems, see
            :func:`flexmg.envs.code.sources.load`.
        split: which part of the source.
        level: difficulty, for levelled sources.
        limit: only the first so many problems.
        mapping: names of the fields of a file of problems.
        on_malformed: what a broken row of a file does: ``"raise"``, or ``"skip"``.
        source_options: further settings of a generator.
        sandbox: ``"strict"``, or ``"unsafe"`` to run programs without isolation.
        score: ``"all"`` (1 when every test is passed, else 0) or ``"fraction"`` (the share
            of tests passed).
        **options: ``reward``, ``dependencies``, ``render_mode`` of
            :class:`flexmg.game.FlexMarkovGame`; the rest goes to the workflow.

    Raises:
        InvalidArgument: a keyword that neither the game nor the workflow nor the source knows.
        SandboxUnavailable: programs cannot be run safely on this machine.
    """
    from flexmg.envs.code.grader import CodeDomain
    from flexmg.envs.code.sources import load
    from flexmg.envs.code.synthetic import SyntheticSource

    settings = _source_settings(source, source_options, load, SyntheticSource)
    problems = load(
        source,
        split=split,
        level=level,
        limit=limit,
        mapping=mapping,
        on_malformed=on_malformed,
        **settings,
    )
    options = {**CODE_DEFAULTS.get(workflow, {}), **options}
    domain = CodeDomain(sandbox=sandbox, score=score)
    return compose(workflow, domain, problems, options, _keywords(code))


def _source_settings(
    source: str | os.PathLike[str],
    given: Mapping[str, Any] | None,
    load: Callable[..., Any],
    generator: Callable[..., Any],
) -> Mapping[str, Any]:
    """``source_options`` once checked against what the source knows.

    Raises:
        InvalidArgument: not a mapping, or a setting that is unknown or a keyword of its own.
    """
    settings = {} if given is None else given
    if not isinstance(settings, Mapping):
        raise InvalidArgument(f"source_options={settings!r} is not a mapping")
    if source == "synthetic":
        own = _keywords(generator) - _keywords(load)
        check_keywords(settings, own, "source_options of the source 'synthetic'")
    elif taken := sorted(_keywords(load).intersection(settings)):
        raise InvalidArgument(f"{taken} are keywords of their own, not of source_options")
    return settings


def compose(
    workflow: str,
    domain: Domain,
    problems: ProblemSource,
    options: Mapping[str, Any],
    others: Iterable[str] = (),
) -> FlexMarkovGame:
    """A game over a workflow: options are shared out between the two, unknown ones refused.

    Args:
        workflow: name of a workflow.
        domain: the subject.
        problems: the source.
        options: keywords of the game and of the workflow.
        others: keywords that the caller has taken itself, to be suggested for a slip.

    Raises:
        InvalidArgument: a keyword that neither the game nor the workflow knows.
    """
    from flexmg.envs.workflows import WORKFLOWS as CLASSES
    from flexmg.game import FlexMarkovGame
    from flexmg.workflow import Workflow

    cls = CLASSES[workflow]
    for_game = _keywords(FlexMarkovGame)
    for_workflow = _keywords(cls) | _keywords(Workflow)
    owner = f"{domain.name}-{workflow}"
    check_keywords(options, for_game | for_workflow, owner, others)
    game = {name: value for name, value in options.items() if name in for_game}
    mine = {name: value for name, value in options.items() if name in for_workflow}
    return FlexMarkovGame(cls(domain, **mine), problems, **game)


def _keywords(build: Callable[..., Any]) -> set[str]:
    """The keyword-only parameters of a class or function."""
    parameters = inspect.signature(build).parameters.values()
    return {p.name for p in parameters if p.kind is p.KEYWORD_ONLY}
