"""The Flexible Markov Game: one PettingZoo AEC environment that runs any workflow.

The game owns what no workflow should have to get right: order, the masking by D and
recall, dead steps, seeding, snapshots, the transcript and the rewards. An environment is
the composition workflow x problems x grader x reward.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any, get_args

from gymnasium import spaces
from pettingzoo import AECEnv
from pettingzoo.utils.env import AECIterable

from flexmg.agents import AgentSpec
from flexmg.dependency import DependencyGraph
from flexmg.episode import Dependencies, EpisodeState, PlannedCall, Snapshot
from flexmg.errors import GameError, InvalidAction, InvalidArgument, OutOfTurn, ResetNeeded
from flexmg.outcome import Outcome
from flexmg.problem import Problem, ProblemSource
from flexmg.reward import Reward
from flexmg.rules import Observation, Rules, whole_number
from flexmg.spaces import seed_lazily, state_space
from flexmg.transcript import Transcript, Turn
from flexmg.workflow import LONGEST_MESSAGE, Round, Workflow

if TYPE_CHECKING:
    from flexmg.registry import EnvSpec

RENDER_MODES = ("ansi", "human", "html")


class FlexMarkovGame(AECEnv):
    """An AEC environment <V, N, S, O, A, T, R, gamma, D> over a workflow.

    Observation: ``{"profile", "messages", "dependencies"}``, see
    :class:`flexmg.spaces.ObservationSpace`. Action: a text. Reward: per agent once, when
    the episode ends (a finished agent collects it in its dead step). An agent joins
    ``agents`` when it is first called, and leaves by ``step(None)`` after the end.

    Args:
        workflow: who acts when, and who sees whom.
        source: where problems come from.
        reward: ``"team"``, ``"designated"``, ``"local"``, ``"mixed"`` or weights of terms, see
            :class:`flexmg.reward.Reward`.
        dependencies: ``"designed"`` or an ablation of D: ``"none"`` (nobody sees
            anybody; each agent still recalls itself), ``"full"`` (everybody sees all who
            stand before them in the step, and recalls everybody), ``"shuffled"`` (as many
            edges, between other agents).
        render_mode: ``"ansi"``, ``"human"``, ``"html"`` or None.
    """

    metadata: dict[str, Any] = {
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
        reward: str | Mapping[str, float] | Reward = "team",
        dependencies: Dependencies = "designed",
        render_mode: str | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(dependencies, str) or dependencies not in get_args(Dependencies):
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
        self.rules = Rules(workflow, source, dependencies)
        self.recall = self.rules.recall
        self.render_mode = render_mode
        self.spec: EnvSpec | None = None
        self.specs: dict[str, AgentSpec] = workflow.specs
        self.possible_agents = list(workflow.agents)
        self.agents: list[str] = []
        self.state_space = state_space(LONGEST_MESSAGE)
        self._seed: int | None = None
        self._episodes = 0
        self._episode: EpisodeState | None = None

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
            InvalidArgument: the seed, the options or the problem are of a wrong type, or
                the workflow cannot pose this problem. The game goes on as it was.
        """
        if seed is not None:
            new_seed, played = whole_number("seed", seed), 0
        elif self._seed is not None:
            new_seed, played = self._seed, self._episodes
        else:
            new_seed, played = secrets.randbits(31), 0
        if not isinstance(options, Mapping | None):
            raise InvalidArgument(f"options={options!r} is not a dict such as {{'problem': 0}}")
        episode = self.rules.begin(new_seed, played, (options or {}).get("problem"))
        news = self.rules.follow(episode, self.reward)
        if seed is not None:
            for agent, spec in self.specs.items():
                seed_lazily(spec.action_space, "action space", agent, new_seed)
                seed_lazily(spec.observation_space, "observation space", agent, new_seed)
        self._seed, self._episodes, self._episode = new_seed, played + 1, episode
        self.agents = []
        self.rewards: dict[str, float] = {}
        self._cumulative_rewards: dict[str, float] = {}
        self.terminations: dict[str, bool] = {}
        self.truncations: dict[str, bool] = {}
        self.infos: dict[str, dict[str, Any]] = {}
        self._skip_agent_selection: str | None = None
        self._enact(news)

    def step(self, action: str | None) -> None:
        """Act for ``agent_selection``; ``None`` for an agent whose game is over.

        Raises:
            ResetNeeded: before the first ``reset``.
            OutOfTurn: ``agent_selection`` was set to an agent that may not act.
            InvalidAction: not a text, too long, or with characters that no text file can
                hold. After any error the game is as it was.
        """
        episode = self._living()
        agent = self.agent_selection
        if self.terminations.get(agent, False):
            if action is not None:
                raise InvalidAction(f"the game of {agent} is over: step(None) lets it leave")
            self._was_dead_step(None)
            return
        call = episode.latest.get(agent)
        if call is None or not episode.is_ready(call):
            raise self._out_of_turn(agent)
        failures = len(episode.failures)
        turn = self.rules.act(episode, call, action)
        episode.take(turn)
        try:
            news = self.rules.follow(episode, self.reward)
        except BaseException:
            # A broken workflow or an interrupted grader must not leave half a step behind.
            episode.take_back(turn)
            del episode.failures[failures:]
            raise
        self._cumulative_rewards[agent] = 0.0
        self._clear_rewards()
        self.infos[agent] = self._info(turn.fallback)
        self._enact(news)
        self._accumulate_rewards()
        self._deads_step_first()

    def observe(self, agent: str) -> Observation:
        """What an agent sees: built from the turns that D and recall let it see, nothing else.

        For an agent that waits, what is visible so far; for one that acted, what it acted on.

        Raises:
            ResetNeeded: before the first ``reset``.
            GameError: the agent has not been called in this episode.
        """
        return self.rules.observation(self._playing(), self._called(agent))

    def last(self, observe: bool = True) -> tuple[Observation | None, float, bool, bool, dict]:
        """Observation, reward since it last acted, termination, truncation, info of the actor."""
        self._living()
        return super().last(observe)

    def agent_iter(self, max_iter: int = 2**63) -> AECIterable:
        """Yields ``agent_selection`` until every agent has left.

        Raises:
            ResetNeeded: before the first ``reset``.
        """
        self._playing()
        return super().agent_iter(max_iter)

    def state(self) -> dict[str, Any]:
        """The global state for a central critic: the whole problem and every turn so far."""
        episode = self._playing()
        return {
            "statement": episode.problem.statement,
            "turns": tuple(
                {"agent": t.agent, "step": t.step, "text": t.text} for t in episode.history
            ),
        }

    def render(self) -> str | None:
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
        if agent not in self.ready:
            raise self._out_of_turn(agent)
        self.agent_selection = agent

    def graph(self, step: int | None = None) -> DependencyGraph:
        """D of an env step (by default the current one), over the agents called in it.

        Raises:
            InvalidArgument: the episode has had no such step.
        """
        return self._playing().graph(step)

    def demonstrate(self, agent: str) -> str:
        """A correct scripted action for an agent, on problems that carry their solution.

        Raises:
            InvalidArgument: the workflow or the problem has no demonstrations.
            GameError: the agent has not been called in this episode.
        """
        episode, call = self._playing(), self._called(agent)
        return self.workflow.demonstrate(
            agent,
            episode.problem,
            episode.visible(call, self.recall),
            self.workflow.statement(agent, episode.problem),
        )

    def snapshot(self) -> Snapshot:
        """The whole state of the episode; restore it any number of times, also elsewhere."""
        return Snapshot(
            team=(self.workflow.name, *self.possible_agents),
            episodes=self._episodes,
            episode=self._playing().copy(),
            agents=tuple(self.agents),
            selection=self.agent_selection,
            skipped=self._skip_agent_selection,
            rewards=dict(self.rewards),
            cumulative=dict(self._cumulative_rewards),
            dead=frozenset(a for a, over in self.terminations.items() if over),
            infos=deepcopy(self.infos),
        )

    def restore(self, snapshot: Snapshot) -> None:
        """Go back to a snapshot, of this game or of an equally made one.

        Raises:
            GameError: the snapshot belongs to a game of another workflow or team.
        """
        if snapshot.team != (team := (self.workflow.name, *self.possible_agents)):
            raise GameError(f"a snapshot of {snapshot.team} cannot be restored in {team}")
        self._episodes = snapshot.episodes
        self._episode = snapshot.episode.copy()
        self._seed = snapshot.episode.seed
        self.agents = list(snapshot.agents)
        self.agent_selection = snapshot.selection
        self._skip_agent_selection = snapshot.skipped
        self.rewards = dict(snapshot.rewards)
        self._cumulative_rewards = dict(snapshot.cumulative)
        self.terminations = {a: a in snapshot.dead for a in self.agents}
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos = deepcopy(snapshot.infos)

    def transcript(self) -> Transcript:
        """The episode so far as plain data."""
        env = self.spec.id if self.spec else self.metadata["name"]
        return self._playing().transcript(env, self.spec.kwargs if self.spec else {})

    # ------------------------------------------------------------------ inside

    def _playing(self) -> EpisodeState:
        if self._episode is None:
            raise ResetNeeded("call reset() before anything else")
        return self._episode

    def _living(self) -> EpisodeState:
        episode = self._playing()
        if not self.agents:
            raise ResetNeeded("the episode is over and every agent has left; call reset() first")
        return episode

    def _called(self, agent: str) -> PlannedCall:
        call = self._playing().latest.get(agent)
        if call is None:
            raise GameError(
                f"{agent!r} has not been called in this episode; in the game: {self.agents}"
            )
        return call

    def _out_of_turn(self, agent: str) -> OutOfTurn:
        return OutOfTurn(f"{agent!r} cannot act now; ready are {list(self.ready)}")

    def _enact(self, news: Round | Outcome | None) -> None:
        """Let newly called agents join, or everybody's game end, and choose who is next."""
        episode = self._playing()
        if isinstance(news, Outcome):
            self._end(news)
            return
        for call in news.calls if news else ():
            if call.agent not in self.terminations:
                self._join(call.agent)
        self.agent_selection = episode.ready()[0].agent

    def _join(self, agent: str) -> None:
        self.agents.append(agent)
        self.rewards[agent] = 0.0
        self._cumulative_rewards[agent] = 0.0
        self.terminations[agent] = False
        self.truncations[agent] = False
        self.infos[agent] = self._info("")

    def _info(self, fallback: str) -> dict[str, Any]:
        return {"problem": self.problem.id, "fallback": fallback, "infra_error": False}

    def _end(self, outcome: Outcome) -> None:
        episode = self._playing()
        episode.outcome = outcome
        for agent in self.agents:
            self.rewards[agent] = outcome.rewards[agent]
            self.terminations[agent] = True
            mine = [turn for turn in episode.history if turn.agent == agent]
            self.infos[agent] = {"problem": episode.problem.id, **outcome.info(agent, mine)}
