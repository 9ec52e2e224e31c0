"""Registers the environments of flexmg: one id per (domain, workflow).

Imported by ``import flexmg`` through the entry point ``flexmg.envs``, so it must stay
light: workflows and domains are imported when an environment is made.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from flexmg.errors import InvalidArgument
from flexmg.registry import check_keywords, register

if TYPE_CHECKING:
    from flexmg.game import FlexMarkovGame
    from flexmg.problem import Domain, ProblemSource
    from flexmg.workflow import Workflow

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
GAMES = {
    "bandit": "one player, some arms",
    "coordination": "two players at once, one payoff; D = 0",
    "signalling": "a sender knows the state, a receiver must name it; D carries it",
    "relay": "a chain of players, each sees all letters before",
    "corridor": "two agents, several env steps, an early end",
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
    for name, description in GAMES.items():
        register(f"game-{name}-v0", partial(game, name), description=f"exact game: {description}")


def math(workflow: str, /, **options: Any) -> FlexMarkovGame:
    """A maths environment.

    Args:
        workflow: name of a workflow.
        **options: ``source``, ``split``, ``level``, ``limit``, ``mapping`` and ``on_malformed`` of
            :func:`flexmg.envs.math.sources.load`, and ``source_options``, further settings of a
            generator; ``reward``, ``dependencies``, ``render_mode`` of
            :class:`flexmg.game.FlexMarkovGame`; the rest goes to the workflow.

    Raises:
        InvalidArgument: a keyword that neither the game nor the workflow nor the source knows.
    """
    from flexmg.envs.math.grader import MathDomain
    from flexmg.envs.math.sources import load
    from flexmg.envs.math.synthetic import SyntheticSource

    problems, rest = _posed(load, SyntheticSource, options)
    return compose(workflow, MathDomain(), problems, rest, _of_source(load))


def code(
    workflow: str,
    /,
    *,
    sandbox: Literal["strict", "unsafe"] = "strict",
    score: Literal["all", "fraction"] = "all",
    **options: Any,
) -> FlexMarkovGame:
    """A programming environment.

    Args:
        workflow: name of a workflow.
        sandbox: ``"strict"``, or ``"unsafe"`` to run programs without isolation.
        score: ``"all"`` (1 when every test is passed, else 0) or ``"fraction"`` (the share
            of tests passed).
        **options: as of :func:`math`; the source's are those of
            :func:`flexmg.envs.code.sources.load`.

    Raises:
        InvalidArgument: a keyword that neither the game nor the workflow nor the source knows.
        SandboxUnavailable: programs cannot be run safely on this machine.
    """
    from flexmg.envs.code.grader import CodeDomain
    from flexmg.envs.code.sources import load
    from flexmg.envs.code.synthetic import SyntheticSource

    problems, rest = _posed(load, SyntheticSource, {**CODE_DEFAULTS.get(workflow, {}), **options})
    domain = CodeDomain(sandbox=sandbox, score=score)
    return compose(workflow, domain, problems, rest, _keywords(code) | _of_source(load))


def game(name: str, /, *, split: str = "train", **options: Any) -> FlexMarkovGame:
    """A small exact game.

    Args:
        name: of the game.
        split: in name only; a game is the same in every split.
        **options: the parameters of its function in :mod:`flexmg.envs.games.catalogue`;
            the rest goes to the workflow and the game, as of :func:`math`.

    Raises:
        InvalidArgument: a keyword that nobody knows, or payoffs outside [0, 1].
    """
    from flexmg.envs.games.catalogue import GAMES as BUILDERS

    build, workflow = BUILDERS[name]
    own = set(inspect.signature(build).parameters)
    domain, states, settings = build(**{k: v for k, v in options.items() if k in own})
    rest = {k: v for k, v in options.items() if k not in own}
    return assemble(
        workflow, domain, dataclasses.replace(states, split=split), {**rest, **settings}, own
    )


def _posed(
    load: Callable[..., ProblemSource],
    generator: Callable[..., ProblemSource],
    options: Mapping[str, Any],
) -> tuple[ProblemSource, dict[str, Any]]:
    """The source that options describe, and the options that are not the source's.

    Raises:
        InvalidArgument: ``source_options`` is no mapping, or has a setting that is unknown or a
            keyword of its own.
    """
    ours = _of_source(load)
    given = {name: value for name, value in options.items() if name in ours}
    settings = given.pop("source_options", None)
    settings = {} if settings is None else settings
    if not isinstance(settings, Mapping):
        raise InvalidArgument(f"source_options={settings!r} is not a mapping")
    if given.get("source", "synthetic") == "synthetic":
        own = _keywords(generator) - ours
        check_keywords(settings, own, "source_options of the source 'synthetic'")
    elif taken := sorted(ours.intersection(settings)):
        raise InvalidArgument(f"{taken} are keywords of their own, not of source_options")
    rest = {name: value for name, value in options.items() if name not in ours}
    return load(**given, **settings), rest


def _of_source(load: Callable[..., ProblemSource]) -> set[str]:
    """The keywords that describe where problems come from."""
    return {"source", "source_options", *_keywords(load)}


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

    return assemble(CLASSES[workflow], domain, problems, options, others)


def assemble(
    cls: type[Workflow],
    domain: Domain,
    problems: ProblemSource,
    options: Mapping[str, Any],
    others: Iterable[str] = (),
) -> FlexMarkovGame:
    """As :func:`compose`, with the class of a workflow."""
    from flexmg.game import FlexMarkovGame
    from flexmg.workflow import Workflow

    for_game = _keywords(FlexMarkovGame)
    classes = [c for c in cls.__mro__ if issubclass(c, Workflow)]
    for_workflow = set().union(*map(_keywords, classes))
    owner = f"{domain.name}-{cls.name}"
    check_keywords(options, for_game | for_workflow, owner, others)
    game = {name: value for name, value in options.items() if name in for_game}
    mine = {name: value for name, value in options.items() if name in for_workflow}
    return FlexMarkovGame(cls(domain, **mine), problems, **game)


def _keywords(build: Callable[..., Any]) -> set[str]:
    """The keyword-only parameters of a class or function."""
    parameters = inspect.signature(build).parameters.values()
    return {p.name for p in parameters if p.kind is p.KEYWORD_ONLY}
