"""Plays many episodes at once and records them for the learner."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import flexmg
from flexmg.agents import AgentSpec
from flexmg.baselines.generation.dispatch import TeamEngine
from flexmg.baselines.generation.endpoint import EndpointSettings, Usage
from flexmg.baselines.generation.protocol import Engine, Generation, Request, SamplingParams
from flexmg.baselines.models.team import Team
from flexmg.baselines.rollout.guests import EndpointGuest, Question, as_generation, make_guest
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
class AgentSampling:
    """What one agent or role does otherwise than :class:`RolloutSettings` says; None: the same.

    Args:
        temperature: T > 0. Training has one temperature for all, since learners score at it.
        greedy: take the likeliest tokens.
        stop: strings that end an action.
        max_new_tokens: a cap below the agent's own token limit.
    """

    temperature: float | None = None
    greedy: bool | None = None
    stop: tuple[str, ...] | None = None
    max_new_tokens: int | None = None


@dataclass(frozen=True)
class RolloutSettings:
    """How episodes are played.

    Args:
        temperature: T > 0 of every policy.
        greedy: take the likeliest tokens; for evaluation only.
        stop: strings that end an action.
        top_k: sample among so many likeliest tokens only, 0 for all; for evaluation only.
        top_p: sample among the likeliest tokens of this mass only; for evaluation only.
        agents: by agent or role, what it does otherwise; an agent's own entry wins.
        games: the most episodes in flight.
        threads: in which games step, and so grade, side by side.
        max_turns: cut an episode that has taken this many turns and is not graded; it is
            then *truncated* and bootstraps. None: every episode is played to its end, the
            workflow's own caps being part of the game.
        max_prompt_tokens: a limit on prompts and critic inputs below the context's own.
        states: record the central critic's inputs.
        transcripts: keep each episode's transcript in ``infos["transcript"]``.
        endpoint: how guests behind a server are asked.
    """

    temperature: float = 1.0
    greedy: bool = False
    stop: tuple[str, ...] = ()
    top_k: int = 0
    top_p: float = 1.0
    agents: Mapping[str, AgentSampling] = field(default_factory=dict)
    games: int = 256
    threads: int = 4
    max_turns: int | None = None
    max_prompt_tokens: int | None = None
    states: bool = True
    transcripts: bool = False
    endpoint: EndpointSettings = field(default_factory=EndpointSettings)

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
    asked: dict[str, tuple[Pending, Future[str]]] = field(default_factory=dict)
    error: Exception | None = None

    @property
    def turns(self) -> int:
        """Turns taken so far."""
        return sum(map(len, self.sampled.values()))


@dataclass(frozen=True, slots=True)
class Pending:
    """An agent of a game that waits for its action.

    Args:
        play: the episode. ``agent``: who acts.
        request: what an engine is asked for; of a guest, a record of what it is shown.
        cut: tokens that the prompt lost.
        observation: what a guest is shown, whole.
    """

    play: Play
    agent: str
    request: Request
    cut: int
    observation: Mapping[str, Any]


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
        engine: what generates; by default the team's models in this process.
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
        self.engine = engine or TeamEngine(team)
        self.settings = settings or RolloutSettings()
        self.guests = {name: make_guest(name, self.settings.endpoint) for name in team.guests}
        self._renderers = {id(base): Renderer(base.tokenizer) for base in team.bases}
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
        asking = ThreadPoolExecutor(self.settings.endpoint.concurrency)
        with ThreadPoolExecutor(self.settings.threads) as pool:
            try:
                while waiting or active:
                    while waiting and len(active) < self.settings.games:
                        active.append(self._begin(waiting.pop()))
                    self._act(active, key, pool, asking)
                    for play in [play for play in active if self._over(play)]:
                        active.remove(play)
                        episodes[play.problem, play.sample] = self._record(play, key)
                        if play.error is None:
                            self._idle.append(play.game)
                        play.game = None
            finally:
                asking.shutdown(wait=False, cancel_futures=True)
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
        if play.asked and play.error is None:
            return False
        if play.error is not None or play.game.finished:
            return True
        return self.settings.max_turns is not None and play.turns >= self.settings.max_turns

    def _act(
        self,
        active: Sequence[Play],
        key: tuple[int, ...],
        pool: ThreadPoolExecutor,
        asking: ThreadPoolExecutor,
    ) -> None:
        """One action of every agent that is ready, in every game.

        Guests are asked beside it, and act once they have answered: nobody waits for them
        but their own game.
        """
        pending = [one for play in active for one in self._pending(play, key)]
        for one in pending:
            if one.request.policy in self.guests:
                one.play.asked[one.agent] = (one, self._asked(one, asking))
        own = [one for one in pending if one.request.policy not in self.guests]
        generations = self.engine.generate([one.request for one in own]) if own else []
        actions: dict[Play, list[tuple[str, Sampled]]] = {}
        for one, generation in zip(own, generations, strict=True):
            text = self._renderer(one.request.policy).decode(
                generation.action_ids, one.request.sampling.stop
            )
            actions.setdefault(one.play, []).append(
                (one.agent, self._sampled(one, generation, text))
            )
        under_way = [future for play in active for _, future in play.asked.values()]
        if under_way and not own:
            wait(under_way, return_when=FIRST_COMPLETED)
        for play in active:
            for agent, (one, future) in list(play.asked.items()):
                if future.done():
                    del play.asked[agent]
                    self._answered(one, future, actions)
        # A game is stepped by one thread; exceptions stay with their own episode.
        list(pool.map(_step, actions.keys(), actions.values()))

    def _asked(self, one: Pending, asking: ThreadPoolExecutor) -> Future[str]:
        """A server is waited for in a thread; a script reads the game, and so answers at once."""
        guest = self.guests[one.request.policy]
        request = one.request
        question = Question(
            one.play.game, one.agent, one.observation, request.sampling, request.key
        )
        if isinstance(guest, EndpointGuest):
            return asking.submit(guest, question)
        answered: Future[str] = Future()
        try:
            answered.set_result(guest(question))
        except Exception as error:  # costs its own episode only, like one of the environment
            answered.set_exception(error)
        return answered

    def usage(self) -> dict[str, Usage]:
        """What each endpoint has cost since the last call."""
        spent = {}
        for name, guest in self.guests.items():
            if isinstance(guest, EndpointGuest):
                spent[name] = guest.endpoint.spent()
        return spent

    def _answered(
        self, one: Pending, future: Future[str], actions: dict[Play, list[tuple[str, Sampled]]]
    ) -> None:
        error = future.exception()
        if error is not None:
            if not isinstance(error, Exception):
                raise error
            one.play.error = error
            return
        ids = self._renderer(one.request.policy).encode(future.result())
        sampled = self._sampled(one, as_generation(ids), future.result())
        actions.setdefault(one.play, []).append((one.agent, sampled))

    def _sampled(self, one: Pending, generation: Generation, text: str) -> Sampled:
        policy = one.request.policy
        limit = getattr(one.play.game.specs[one.agent].action_space, "max_length", None)
        return Sampled(
            policy=policy,
            version=self.team.versions.get(policy, 0),
            prompt_ids=one.request.prompt_ids,
            cut=one.cut,
            generation=generation,
            text=text[:limit],
        )

    def _pending(self, play: Play, key: tuple[int, ...]) -> list[Pending]:
        game = play.game
        pending = []
        for agent in game.ready if play.error is None else ():
            if agent in play.asked:
                continue
            policy = self.team.policy_of(agent)
            tokens = game.specs[agent].token_limit
            observation = game.observe(agent)
            prompt, cut = self._renderer(policy).prompt(
                observation, self._prompt_limit(policy, tokens)
            )
            request = Request(
                policy=policy,
                prompt_ids=prompt,
                sampling=self._sampling(game.specs[agent], agent),
                key=(
                    *key,
                    play.problem,
                    play.sample,
                    game.possible_agents.index(agent),
                    len(play.sampled.get(agent, ())),
                ),
            )
            pending.append(Pending(play, agent, request, cut, observation))
        return pending

    def _sampling(self, spec: AgentSpec, agent: str) -> SamplingParams:
        """How an agent samples: the settings, over them its role's, over them its own."""
        settings = self.settings
        chosen: dict[str, Any] = {
            "max_new_tokens": spec.token_limit,
            "temperature": settings.temperature,
            "greedy": settings.greedy,
            "stop": settings.stop,
        }
        for name in (spec.role, agent):
            own = settings.agents.get(name, AgentSampling())
            given = {f.name: getattr(own, f.name) for f in fields(own)}
            chosen |= {name: value for name, value in given.items() if value is not None}
        chosen["max_new_tokens"] = min(chosen["max_new_tokens"], spec.token_limit)
        return SamplingParams(**chosen, top_k=settings.top_k, top_p=settings.top_p)

    def _renderer(self, policy: str) -> Renderer:
        return self._renderers[id(self.team.base_of(policy))]

    def _prompt_limit(self, policy: str, tokens: int) -> int:
        limit = prompt_limit(self.team.base_of(policy).context_length, tokens)
        return min(limit, self.settings.max_prompt_tokens or limit)

    def _record(self, play: Play, key: tuple[int, ...]) -> Episode:
        game = play.game
        turns = record_turns(game, play.sampled, (*key, play.problem, play.sample))
        episode = record_outcome(game, play.sample, turns, play.error)
        if self.settings.states:
            final = record_states(turns, game.problem.statement, self._state)
            if not episode.terminated and not episode.infra_error:
                episode.final_state_ids = final
        if not episode.terminated and not episode.infra_error:
            for agent in play.sampled:
                policy = self.team.policy_of(agent)
                limit = self._prompt_limit(policy, game.specs[agent].token_limit)
                prompt, _ = self._renderer(policy).prompt(game.observe(agent), limit)
                episode.final_prompt_ids[agent] = prompt
        if self.settings.transcripts and play.error is None:
            episode.infos["transcript"] = transcript_of(game)
        return episode

    def _state(self, state: Mapping[str, Any], agent: str, policy: str) -> NDArray[np.int32]:
        """The central critic's input, in the tokens of the base that is to read it."""
        return self._renderer(policy).state(state, agent, self._prompt_limit(policy, 0))


def _step(play: Play, actions: Sequence[tuple[str, Sampled]]) -> None:
    """Hand a game the actions of its agents; a failure is recorded, the rest not played."""
    try:
        for agent, action in actions:
            play.game.select(agent)
            play.game.step(action.text)
            play.sampled.setdefault(agent, []).append(action)
    except Exception as error:  # whatever the environment raises must cost one episode only
        play.error = error
