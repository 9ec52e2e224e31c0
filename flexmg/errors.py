"""The error tree of flexmg.

Every error a user can cause, or that the machine can cause to a user, is a
``FlexMGError``. Messages say what was wrong, where, and what to do about it.
Leaves also inherit the builtin a caller would expect to catch (``KeyError``,
``ValueError`` ...), so that existing ``except`` clauses keep working.
"""

from __future__ import annotations


class FlexMGError(Exception):
    """Root of every error raised on purpose by flexmg."""

    def __str__(self) -> str:
        # KeyError's own __str__ shows the repr of the message, quotes and all.
        return Exception.__str__(self)


class RegistrationError(FlexMGError, ValueError):
    """An environment cannot be registered: bad id, or an id that is taken."""


class UnregisteredEnv(FlexMGError, KeyError):
    """No environment answers to this id."""


class NameNotFound(UnregisteredEnv):
    """The name is unknown; the message names the closest known one."""


class VersionNotFound(UnregisteredEnv):
    """The name is known, the version is not."""


class InvalidArgument(FlexMGError, ValueError):
    """A keyword, option or setting has a value that cannot be used."""


class MissingDependency(FlexMGError, ImportError):
    """An optional package is needed; the message names the extra to install."""


class DependencyCycle(FlexMGError, ValueError):
    """A dependency graph D is cyclic; the message spells the cycle out."""


class WorkflowError(FlexMGError, RuntimeError):
    """A workflow broke its contract (an unknown agent, an agent acting twice in a step ...)."""


class GameError(FlexMGError, RuntimeError):
    """The game was driven in a way that its rules do not allow."""


class ResetNeeded(GameError):
    """``step``, ``observe`` or ``last`` was called before ``reset``."""


class OutOfTurn(GameError):
    """An agent was asked to act although its dependencies are not met."""


class InvalidAction(GameError, ValueError):
    """The action is not a text that this agent may write; the game is unchanged."""


class ProblemError(FlexMGError, ValueError):
    """A problem, or a source of problems, cannot be used."""


class MalformedProblem(ProblemError):
    """A row of a problem file is broken; the message gives file, line and field."""


class UnknownProblem(ProblemError, KeyError):
    """A source has no problem with this index or id."""


class SourceUnavailable(ProblemError, OSError):
    """The data are not here; the message says what to download or which path to give."""


class InfraError(FlexMGError, RuntimeError):
    """Our own machinery failed (a grader process died ...). Never a reward of 0."""


class SandboxUnavailable(FlexMGError, OSError):
    """Programs cannot be run safely on this machine; the message names what lacks."""


class ModelError(FlexMGError, OSError):
    """A model cannot be found or loaded; the message names the file that lacks."""


class CheckpointError(FlexMGError, OSError):
    """A checkpoint cannot be written or read; an older one is left as it was."""


class TranscriptError(FlexMGError, ValueError):
    """A transcript is malformed, or belongs to another environment."""


class ConformanceError(FlexMGError, AssertionError):
    """``flexmg.testing.check_env`` found that an environment breaks a rule."""
