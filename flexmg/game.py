"""The Flexible Markov Game: one PettingZoo AEC environment that runs any workflow.

The game owns what no workflow should have to get right: order, the masking by D and
recall, dead steps, seeding, snapshots, the transcript and the rewards. An environment is
the composition workflow x problems x grader x reward.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, get_args

import numpy as np
from gymnasium import spaces
from pettingzoo import AECEnv

from flexmg.agents import AgentSpec
from flexmg.dependency import DependencyGraph
from flexmg.episode import Dependencies, EpisodeState, Outcome, PlannedCall
from flexmg.errors import (
    GameError,
    InfraError,
    InvalidAction,
    InvalidArgument,
    OutOfTurn,
    ResetNeeded,
)
from flexmg.problem import Problem, ProblemSource, Verdict, payload_hash
from flexmg.reward import Reward
from flexmg.seeding import draw
from flexmg.spaces import ObservationSpace, Utterance
from flexmg.transcript import Transcript, Turn, observation_hash
from flexmg.workflow import LONGEST_MESSAGE, Finish, History, Workflow

if TYPE_CHECKING:
    from flexmg.registry import EnvSpec

Observation = dict[str, Any]
RENDER_MODES = ("ansi", "human", "html")
UNLIMITED = 2**31  # problem indices drawn from a source without an end


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A point of an episode, to go back to; made by :meth:`FlexMarkovGame.snapshot`."""

    episode: EpisodeState
    agents: tuple[str, ...]
    selection: str
    skipped: str | None
    rewards: dict[str, float]
    cumulative: dict[str, float]
    dead: frozenset[str]
    infos: dict[str, dict[str, Any]]


class FlexMarkovGame(AECEnv):
    """An AEC environment <V, N, S, O, A, T, R, gamma, D> over a workflow.

    Observation: ``{"profile", "messages", "dependencies"}``, see
    :class:`flexmg.spaces.ObservationSpace`. Action: a text. Reward: per agent once, when
    the episode ends (a finished agent collects it in its dead step). An agent joins
    ``agents`` when it is first called, and leaves by ``step(None)`` after the end.

    Args:
        workflow: who acts when, and who sees whom.
        source: where problems come from.
        reward: ``"team"``, ``"designated"``, ``"local"`` or weights of terms, see
            :class:`flexmg.reward.Reward`.
        dependencies: ``"designed"`` or an ablation of D: ``"none"`` (nobody sees
            anybody; each agent still recalls itself), ``"full"`` (everybody sees all who
            stand before them in the step, and recalls everybody), ``"shuffled"`` (as many
            edges, between other agents).
        render_mode: ``"ansi"``, ``"human"``, ``"html"`` or None.
    """

    metadata: ClassVar[dict[str, Any]] = {
        "name": "flexmg_game_v0",
        "render_modes": list(RENDER_MODES),
        "render_fps": 1,
        "is_parallelizable": False,
    }

    def __init__(
        self,
        workflow: Workflow,
        source: ProblemSource,
        *,
        reward: str | Mapping[str, float] = "team",
        dependencies: Dependencies = "designed",
        render_mode: str | None = None,
    ) -> None:
        super().__init__()
        if dependencies not in get_args(Dependencies):
            raise InvalidArgument(
                f"dependencies={dependencies!r} is not one of {get_args(Dependencies)}"
            )
        if render_mode is not None and render_mode not in RENDER_MODES:
            raise InvalidArgument(f"render_mode={render_mode!r} is not one of {RENDER_MODES}")
        self.workflow = workflow
        self.domain = workflow.domain
        self.source = source
        self.reward = Reward.of(reward)
        self.dependencies: Dependencies = dependencies
        self.render_mode = render_mode
        self.spec: EnvSpec | None = None
        self.specs: dict[str, AgentSpec] = workflow.specs
        self.possible_agents = list(workflow.agents)
        self.agents: list[str] = []
        self.recall = self._recall()
        self._columns = {agent: i for i, agent in enumerate(self.possible_agents)}
        self._profiles = {a: spec.profile.render() for a, spec in self.specs.items()}
        turn = spaces.Dict(
            {
                "agent": Utterance(64),
                "step": spaces.Box(0, UNLIMITED, (), np.int64),
                "text": Utterance(LONGEST_MESSAGE),
            }
        )
        self.state_space = spaces.Dict(
            {"statement": Utterance(LONGEST_MESSAGE), "turns": spaces.Sequence(turn)}
        )
        self._seed: int | None = None
        self._episodes = 0
        self._episode: EpisodeState | None = None

    def _recall(self) -> frozenset[tuple[str, str]]:
        designed = frozenset((i, j) for i, j in self.workflow.recall())
        if self.dependencies == "none":
            return frozenset((i, j) for i, j in designed if i == j)
        if self.dependencies == "full":
            return frozenset((i, j) for i in self.possible_agents for j in self.possible_agents)
        return designed

    # ------------------------------------------------------------------ AEC interface

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """The observation space of an agent; the same object each call."""
        return self.specs[agent].observation_space

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """The action space of an agent; the same object each call."""
        return self.specs[agent].action_space

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Begin an episode.

        Args:
            seed: fixes the problem (and a shuffled D), and seeds all spaces. Without it
                the next problem of the last seed's stream is played; without any seed
                so far, one is drawn from the operating system.
            options: ``{"problem": index_or_id}`` chooses the problem; other keys are
                ignored, as PettingZoo's tests require.

        Raises:
            UnknownProblem: the source has no such problem.
        """
        if seed is not None:
            self._seed, self._episodes = int(seed), 0
            self._seed_spaces(self._seed)
        elif self._seed is None:
            self._seed = secrets.randbits(31)
        problem = self._choose((options or {}).get("problem"))
        self._episodes += 1
        self._episode = EpisodeState(self._seed, problem, self.dependencies)
        self.agents = []
        self.rewards: dict[str, float] = {}
        self._cumulative_rewards: dict[str, float] = {}
        self.terminations: dict[str, bool] = {}
        self.truncations: dict[str, bool] = {}
        self.infos: dict[str, dict[str, Any]] = {}
        self._skip_agent_selection: str | None = None
        self._advance()

    def step(self, action: str | None) -> None:
        """Act for ``agent_selection``; ``None`` for an agent whose game is over.

        Raises:
            ResetNeeded: before the first ``reset``.
            InvalidAction: not a text, too long, or with characters that no text file can
                hold; the game is as it was.
        """
        episode = self._playing()
        if not self.agents:
            raise ResetNeeded("the episode is over and every agent has left; call reset() first")
        agent = self.agent_selection
        if self.terminations[agent]:
            self._was_dead_step(action)  # type: ignore[arg-type]
            return
        text = self._legal(agent, action)
        call = episode.call_of(agent)
        assert call is not None
        seen = observation_hash(self._observation(call))
        parsed = self.workflow.parse(agent, text)
        self._cumulative_rewards[agent] = 0.0
        self._clear_rewards()
        episode.turns[call.position] = Turn(
            agent=agent,
            text=text,
            step=call.step,
            round=call.round,
            layer=call.layer,
            position=call.position,
            sees=call.sees,
            value=parsed.value,
            fallback=parsed.fallback,
            observation=seen,
        )
        episode.order.append(agent)
        self.infos[agent] = {"problem": episode.problem.id, "fallback": parsed.fallback}
        self._advance()
        self._accumulate_rewards()
        self._deads_step_first()

    def observe(self, agent: str) -> Observation:
        """What an agent sees: built from the turns that D and recall let it see, nothing else.

        For an agent that waits, what is visible so far; for one that has acted, what it
        acted on.

        Raises:
            ResetNeeded: before the first ``reset``.
            GameError: the agent has not been called in this episode.
        """
        call = self._playing().call_of(agent)
        if call is None:
            raise GameError(
                f"{agent!r} has not been called in this episode; in the game: {self.agents}"
            )
        return self._observation(call)

    def last(self, observe: bool = True) -> tuple[Observation | None, float, bool, bool, dict]:
        """Observation, reward since it last acted, termination, truncation, info of the actor."""
        self._playing()
        return super().last(observe)

    def state(self) -> dict[str, Any]:
        """The global state for a central critic: the whole problem and every turn so far."""
        episode = self._playing()
        return {
            "statement": episode.problem.statement,
            "turns": tuple(
                {"agent": t.agent, "step": t.step, "text": t.text} for t in episode.history
            ),
        }

    def render(self) -> str | None:  # type: ignore[override]
        """The conversation and its D graph: a text (ansi), printed (human), or a page (html)."""
        if self.render_mode is None:
            raise InvalidArgument("give render_mode='ansi', 'human' or 'html' to make() to render")
        if self.render_mode == "html":
            from flexmg.render.page import page

            return page([self.transcript()])
        from flexmg.render.text import conversation, show

        if self.render_mode == "ansi":
            return conversation(self.transcript())
        show(self.transcript())
        return None

    def close(self) -> None:
        """Nothing to free; may be called any number of times."""

    # ------------------------------------------------------------------ the Flex-MG part

    @property
    def problem(self) -> Problem:
        """The problem being played (its gold answer included: for graders, not for agents)."""
        return self._playing().problem

    @property
    def seed(self) -> int:
        """The seed of the current episode."""
        return self._playing().seed

    @property
    def ready(self) -> tuple[str, ...]:
        """The agents whose dependencies are met now, in canonical order; none at the end."""
        return tuple(call.agent for call in self._playing().ready())

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The turns taken, in canonical order."""
        return self._playing().history

    @property
    def finished(self) -> bool:
        """Whether the episode has been graded."""
        return self._playing().outcome is not None

    @property
    def outcome(self) -> Outcome | None:
        """What came of the episode; None until it is finished."""
        return self._playing().outcome

    def select(self, agent: str) -> None:
        """Let any ready agent act next: this is the asynchrony of the game.

        Raises:
            OutOfTurn: the agent's dependencies are not met, or it has nothing to do.
        """
        ready = self.ready
        if agent not in ready:
            raise OutOfTurn(f"{agent!r} cannot act now; ready are {list(ready)}")
        self.agent_selection = agent

    def graph(self, step: int | None = None) -> DependencyGraph:
        """D of an env step (by default the current one), over the agents called in it."""
        episode = self._playing()
        calls = [c for c in episode.calls if c.step == (episode.step if step is None else step)]
        return DependencyGraph.from_edges(
            [c.agent for c in calls], [(i, c.agent) for c in calls for i in c.sees]
        )

    def demonstrate(self, agent: str) -> str:
        """A correct scripted action for an agent, on problems that carry their solution.

        Raises:
            InvalidArgument: the workflow or the problem has no demonstrations.
        """
        episode = self._playing()
        call = episode.call_of(agent)
        if call is None:
            raise GameError(f"{agent!r} has not been called in this episode")
        return self.workflow.demonstrate(
            agent,
            episode.problem,
            episode.visible(call, self.recall),
            self.workflow.statement(agent, episode.problem),
        )

    def snapshot(self) -> Snapshot:
        """The whole state of the episode; restore it any number of times, also elsewhere."""
        return Snapshot(
            episode=self._playing().copy(),
            agents=tuple(self.agents),
            selection=self.agent_selection,
            skipped=self._skip_agent_selection,
            rewards=dict(self.rewards),
            cumulative=dict(self._cumulative_rewards),
            dead=frozenset(a for a, over in self.terminations.items() if over),
            infos={agent: dict(info) for agent, info in self.infos.items()},
        )

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to a snapshot, of this game or of an equally made one."""
        self._episode = snapshot.episode.copy()
        self._seed = snapshot.episode.seed
        self.agents = list(snapshot.agents)
        self.agent_selection = snapshot.selection
        self._skip_agent_selection = snapshot.skipped
        self.rewards = dict(snapshot.rewards)
        self._cumulative_rewards = dict(snapshot.cumulative)
        self.terminations = {a: a in snapshot.dead for a in self.agents}
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos = {agent: dict(info) for agent, info in snapshot.infos.items()}

    def transcript(self) -> Transcript:
        """The episode so far as plain data."""
        episode = self._playing()
        outcome = episode.outcome
        ended: dict[str, Any] = {}
        if outcome is not None:
            ended = {
                "answer": outcome.answer,
                "designated": outcome.designated,
                "verdict": asdict(outcome.verdict),
                "rewards": dict(outcome.rewards),
                "step_rewards": outcome.step_rewards,
                "truth": dict(outcome.truth),
                "infra_error": outcome.infra_error,
            }
        return Transcript(
            env=self.spec.id if self.spec else self.metadata["name"],
            kwargs=dict(self.spec.kwargs) if self.spec else {},
            seed=episode.seed,
            problem=episode.problem.id,
            problem_hash=payload_hash(episode.problem),
            statement=episode.problem.statement,
            order=tuple(episode.order),
            turns=episode.history,
            finished=outcome is not None,
            **ended,
        )

    # ------------------------------------------------------------------ inside

    def _playing(self) -> EpisodeState:
        if self._episode is None:
            raise ResetNeeded("call reset() before anything else")
        return self._episode

    def _seed_spaces(self, seed: int) -> None:
        for i, spec in enumerate(self.specs.values()):
            for j, space in enumerate((spec.action_space, spec.observation_space)):
                number = draw(UNLIMITED, "space", seed, i, j)
                if isinstance(space, Utterance | ObservationSpace):
                    space.seed_later(number)
                else:
                    space.seed(number)

    def _choose(self, wanted: int | str | None) -> Problem:
        if isinstance(wanted, str):
            return self.source.find(wanted)
        if wanted is not None:
            return self.source.get(int(wanted))
        bound = self.source.size or UNLIMITED
        name, split = self.source.name, self.source.split
        return self.source.get(draw(bound, "problem", name, split, self._seed, self._episodes))

    def _legal(self, agent: str, action: Any) -> str:
        if not isinstance(action, str):
            raise InvalidAction(
                f"the action of {agent} must be a text, not {type(action).__name__}; "
                "None is for agents whose game is over"
            )
        if not self.specs[agent].action_space.contains(action):
            raise InvalidAction(
                f"the action of {agent} has {len(action)} characters, which its action space "
                f"{self.specs[agent].action_space} does not contain; cut it before step()"
            )
        try:
            action.encode()
        except UnicodeEncodeError as error:
            raise InvalidAction(
                f"the action of {agent} holds a lone surrogate at character {error.start}; "
                "decode model output with errors='replace'"
            ) from error
        if "\x00" in action:
            raise InvalidAction(
                f"the action of {agent} holds a NUL at character {action.index(chr(0))}; remove it"
            )
        return action

    def _observation(self, call: PlannedCall) -> Observation:
        episode = self._playing()
        seen = np.zeros(len(self.possible_agents), dtype=np.int8)
        for other in call.sees:
            seen[self._columns[other]] = 1
        return {
            "profile": self._profiles[call.agent],
            "messages": self.workflow.observe(
                call.agent,
                self.workflow.statement(call.agent, episode.problem),
                episode.visible(call, self.recall),
            ),
            "dependencies": seen,
        }

    def _advance(self) -> None:
        """Plan until somebody can act or the episode is over, then choose the next agent."""
        episode = self._playing()
        if len(episode.turns) == len(episode.calls):
            key = partial(self.domain.answer_key, episode.problem)
            history = History(episode.history, key)
            plan = self.workflow.plan(history)
            if isinstance(plan, Finish):
                self._finish(plan, history)
                return
            episode.open(plan, self.workflow)
            for call in plan.calls:
                if call.agent not in self.terminations:
                    self._join(call.agent)
        self.agent_selection = episode.ready()[0].agent

    def _join(self, agent: str) -> None:
        self.agents.append(agent)
        self.rewards[agent] = 0.0
        self._cumulative_rewards[agent] = 0.0
        self.terminations[agent] = False
        self.truncations[agent] = False
        self.infos[agent] = {"problem": self.problem.id, "fallback": ""}

    def _finish(self, finish: Finish, history: History) -> None:
        episode = self._playing()
        verdicts: dict[str, Verdict] = {}

        def grade(reply: str) -> Verdict:
            if reply not in verdicts:
                try:
                    verdicts[reply] = self.domain.grade(episode.problem, reply)
                except InfraError as error:
                    verdicts[reply] = Verdict(0.0, "infra_error", str(error))
            return verdicts[reply]

        verdict = grade(finish.answer)
        truth = self.workflow.truth(history, lambda reply: grade(reply).score, finish)
        terms = self.reward.terms(
            verdict.score, self.agents, finish.designated, history.turns, truth
        )
        infra_error = any(v.status == "infra_error" for v in verdicts.values())
        rewards = self.reward.agent_rewards(terms)
        central = self.reward.central(verdict.score, terms)
        if infra_error:
            rewards, central = dict.fromkeys(rewards, 0.0), 0.0
        episode.outcome = Outcome(
            verdict=verdict,
            answer=finish.answer,
            designated=finish.designated,
            fallback=finish.fallback,
            rewards=rewards,
            step_rewards=(*[0.0] * episode.step, central),
            terms=terms,
            truth=truth,
            infra_error=infra_error,
        )
        for agent in self.agents:
            self.rewards[agent] = rewards[agent]
            self.terminations[agent] = True
            mine = [t for t in history.turns if t.agent == agent]
            self.infos[agent] = {
                "problem": episode.problem.id,
                "fallback": "; ".join(t.fallback for t in mine if t.fallback),
                "verdict": verdict.status,
                "reward_terms": terms[agent],
                "truth": [truth.get(t.position) for t in mine],
                "infra_error": infra_error,
            }
