"""Flexible Markov Games for teams of language models.

import flexmg

env = flexmg.make("math-orch-workers-v0")
env.reset(seed=0)
for agent in env.agent_iter():
    observation, reward, termination, truncation, info = env.last()
    env.step(None if termination or truncation else my_policy(agent, observation))
"""

import importlib
from types import ModuleType

from flexmg.agents import AgentSpec, Policy, Profile
from flexmg.dependency import DependencyGraph
from flexmg.errors import FlexMGError
from flexmg.game import FlexMarkovGame, Observation, Outcome, Snapshot
from flexmg.problem import Domain, Problem, ProblemSource, Verdict
from flexmg.registry import EnvSpec, load_plugins, make, pprint_registry, register, registered, spec
from flexmg.replay import Replay, replay
from flexmg.reward import Reward
from flexmg.transcript import Transcript, Turn
from flexmg.workflow import Call, Finish, History, Parsed, Round, Workflow

__version__ = "0.1.0"
__all__ = [
    "AgentSpec",
    "Call",
    "DependencyGraph",
    "Domain",
    "EnvSpec",
    "Finish",
    "FlexMGError",
    "FlexMarkovGame",
    "History",
    "Observation",
    "Outcome",
    "Parsed",
    "Policy",
    "Problem",
    "ProblemSource",
    "Profile",
    "Replay",
    "Reward",
    "Round",
    "Snapshot",
    "Transcript",
    "Turn",
    "Verdict",
    "Workflow",
    "make",
    "pprint_registry",
    "register",
    "registered",
    "replay",
    "spec",
]

# `import flexmg` need not pay for these; `flexmg.testing.check_env` works without their import.
_LATER = ("testing", "wrappers")


def __getattr__(name: str) -> ModuleType:
    if name in _LATER:
        return importlib.import_module(f"flexmg.{name}")
    raise AttributeError(f"module 'flexmg' has no attribute {name!r}")


load_plugins()
