"""The workflows that ship with flexmg, by name; each is one short file, for any domain."""

from flexmg.workflow import Workflow

from .chain import Duo, Quad, Single, Trio
from .debate import Debate
from .eval_opt import EvalOpt
from .orch_workers import OrchWorkers
from .router import Router
from .voting import Voting

WORKFLOWS: dict[str, type[Workflow]] = {
    workflow.name: workflow
    for workflow in (Single, Duo, Trio, Quad, Voting, EvalOpt, OrchWorkers, Debate, Router)
}
