"""Plays many episodes at once and records them for the learner."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import flexmg
from flexmg.baselines.generation.local import LocalEngine
from flexmg.baselines.generation.protocol import Engine, Request, SamplingParams
from flexmg.baselines.models.team import Team
from flexmg.baselines.rollout.recording import (
    Sampled,
    record_outcome,
    record_states,
    record_turns,
    transcript_of,
)
from flexmg.baselines.rollout.rendering import Renderer, prompt_limit
from flexmg.baselines.rollout.turns import Batch, Episode
from flexmg.errors import InfraError, InvalidArgument
from flexmg.seeding import draw


@dataclass(frozen=True)
class RolloutSettings:
    """How episodes are played.

    Args:
        temperature: T > 0 of every policy.
        greedy: take the likeliest tokens; for evaluation only.
        stop: strings that end an action.
        games: the most episodes in flight.
        threads: in which games step, and so grade, side by side.
        max_turns: cut an episode that has taken this many turns and is not graded; it is
            then *truncated* and bootstraps. None: every episode is played to its end, the
            workflow's own caps being part of the game.
        max_prompt_tokens: a limit on prompts and critic inputs below the context's own.
        states: record the central critic's inputs.
        transcripts: keep each episode's transcript in ``infos["transcript"]``.
    """

    temperature: float = 1.0
    greedy: bool = False
    stop: tuple[str, ...] = ()
    games: int = 256
    threads: int = 4
    max_turns: int | None = None
    max_prompt_tokens: int | None = None
    states: bool = True
    transcripts: bool = False

    def __post_init__(self) -> None:
        for name in ("games", "threads", "max_turns"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InvalidArgument(f"{name} is {value}; it must be at least 1")
        if self.max_prompt_tokens is not None and self.max_prompt_tokens < 2:
            raise InvalidArgument(
                f"max_prompt_tokens is {self.max_prompt_tokens}; a prompt needs at least 2"
            )


@dataclass(slots=True, eq=False)
class Play:
    """One episode while it is played."""

    problem: int
    sample: int
    seed: int
    game: Any = None
    sampled: dict[str, list[Sampled]] = field(default_factory=dict)
    error: Exception | None = None

    @property
    def turns(self) -> int:
        """Turns taken so far."""
        return sum(map(len, self.sampled.values()))


@dataclass(frozen=True, slots=True)
class Pending:
    """An agent of a game that waits for its action."""

    play: Play
    agent: str
    request: Request
    cut: int


class Collector:
    """Collects episodes of one environment with the policies of a team.

    All agents that are ready in any game act together, whatever their role: there is no
    barrier between games, and a finished game makes room for the next. What is sampled
    depends on the key, the problem, the sample and the agent only, and so does the order
    of the output: by (problem, sample), and within an episode by (env step, layer of D, a
    shuffle by key within the layer).

    Args:
        env: id of an environment, made with ``env_kwargs``; or a function that makes one.
            One is made per game in flight and used again.
        team: whose policies act.
        engine: what generates; by default a ``LocalEngine`` on the team's adapters.
        settings: how episodes are played.
        env_kwargs: for ``flexmg.make``.
    """

    def __init__(
        self,
        env: str | Callable[[], Any],
        team: Team,
        engine: Engine | None = None,
        settings: RolloutSettings | None = None,
        env_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        self._make = (
            partial(flexmg.make, env, **(env_kwargs or {})) if isinstance(env, str) else env
        )
        self.team = team
        self.engine = engine or LocalEngine(team.adapters)
        self.settings = settings or RolloutSettings()
        self.renderer = Renderer(team.base.tokenizer)
        self._idle: list[Any] = []

    def collect(self, problems: Sequence[int], samples: int, key: tuple[int, ...]) -> Batch:
        """Play ``samples`` episodes of each problem.

        Args:
            problems: indices in the environment's source, each once.
            samples: rollouts per problem.
            key: non-negative integers, such as (run seed, iteration): all randomness comes
                from them.

        Returns:
            ``len(problems) * samples`` episodes. One whose environment failed is there too,
            with ``infra_error`` and the reason in ``infos["error"]``.

        Raises:
            InfraError: every episode failed; the first failure is its cause.
            UnknownProblem: the source has no such problem.
        """
        if len(set(problems)) != len(problems):
            raise InvalidArgument("a problem is listed twice; ask for more samples of it instead")
        plays = [
            Play(problem, sample, draw(2**31, "episode", *key, problem))
            for problem in problems
            for sample in range(samples)
        ]
        episodes: dict[tuple[int, int], Episode] = {}
        waiting, active = plays[::-1], list[Play]()
        with ThreadPoolExecutor(self.settings.threads) as pool:
            while waiting or active:
                while waiting and len(active) < self.settings.games:
                    active.append(self._begin(waiting.pop()))
                self._act(active, key, pool)
                for play in [play for play in active if self._over(play)]:
                    active.remove(play)
                    episodes[play.problem, play.sample] = self._record(play, key)
                    if play.error is None:
                        self._idle.append(play.game)
                    play.game = None
        failures = [play.error for play in plays if play.error is not None]
        if failures and len(failures) == len(plays):
            raise InfraError(
                f"every one of {len(plays)} episodes failed; the first with "
                f"{type(failures[0]).__name__}: {failures[0]}"
            ) from failures[0]
        return Batch([episodes[play.problem, play.sample] for play in plays])

    def _begin(self, play: Play) -> Play:
        game = self._idle.pop() if self._idle else self._make().unwrapped
        game.reset(seed=play.seed, options={"problem": play.problem})
        play.game = game
        return play

    def _over(self, play: Play) -> bool:
        if play.error is not None or play.game.finished:
            return True
        return self.settings.max_turns is not None and play.turns >= self.settings.max_turns

    def _act(self, active: Sequence[Play], key: tuple[int, ...], pool: ThreadPoolExecutor) -> None:
        """One action of every agent that is ready, in every game."""
        pending = [wait for play in active for wait in self._pending(play, key)]
        generations = self.engine.generate([wait.request for wait in pending])
        actions: dict[Play, list[tuple[str, Sampled]]] = {}
        for wait, generation in zip(pending, generations, strict=True):
            policy = wait.request.policy
            text = self.renderer.decode(generation.action_ids, self.settings.stop)
            limit = getattr(wait.play.game.specs[wait.agent].action_space, "max_length", None)
            action = Sampled(
                policy=policy,
                version=self.team.versions[policy],
                prompt_ids=wait.request.prompt_ids,
                cut=wait.cut,
                generation=generation,
                text=text[:limit],
            )
            actions.setdefault(wait.play, []).append((wait.agent, action))
        # A game is stepped by one thread; exceptions stay with their own episode.
        list(pool.map(_step, actions.keys(), actions.values()))

    def _pending(self, play: Play, key: tuple[int, ...]) -> list[Pending]:
        game = play.game
        pending = []
        for agent in game.ready:
            tokens = game.specs[agent].token_limit
            prompt, cut = self.renderer.prompt(game.observe(agent), self._prompt_limit(tokens))
            request = Request(
                policy=self.team.policy_of(agent),
                prompt_ids=prompt,
                sampling=SamplingParams(
                    max_new_tokens=tokens,
                    temperature=self.settings.temperature,
                    greedy=self.settings.greedy,
                    stop=self.settings.stop,
                ),
                key=(
                    *key,
                    play.problem,
                    play.sample,
                    game.possible_agents.index(agent),
                    len(play.sampled.get(agent, ())),
                ),
            )
            pending.append(Pending(play, agent, request, cut))
        return pending

    def _prompt_limit(self, tokens: int) -> int:
        limit = prompt_limit(self.team.base.context_length, tokens)
        return min(limit, self.settings.max_prompt_tokens or limit)

    def _record(self, play: Play, key: tuple[int, ...]) -> Episode:
        game = play.game
        turns = record_turns(game, play.sampled, (*key, play.problem, play.sample))
        episode = record_outcome(game, play.sample, turns, play.error)
        if self.settings.states:
            limit = self._prompt_limit(0)
            final = record_states(turns, game.problem.statement, self.renderer, limit)
            if not episode.terminated and not episode.infra_error:
                episode.final_state_ids = final
        if not episode.terminated and not episode.infra_error:
            for agent in play.sampled:
                limit = self._prompt_limit(game.specs[agent].token_limit)
                episode.final_prompt_ids[agent] = self.renderer.prompt(game.observe(agent), limit)[
                    0
                ]
        if self.settings.transcripts and play.error is None:
            episode.infos["transcript"] = transcript_of(game)
        return episode


def _step(play: Play, actions: Sequence[tuple[str, Sampled]]) -> None:
    """Hand a game the actions of its agents; a failure is recorded, the rest not played."""
    try:
        for agent, action in actions:
            play.game.select(agent)
            play.game.step(action.text)
            play.sampled.setdefault(agent, []).append(action)
    except Exception as error:  # whatever the environment raises must cost one episode only
        play.error = error
