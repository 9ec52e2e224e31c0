"""The embedded model's card: ``python -m flexmg.baselines.models.tiny.card``.

Measures the accuracy of every workflow, in maths and code, on held-out problems and writes
docs/tiny-model.md, together with the recipe that the weights were made by.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path
from typing import Any

from jinja2 import Template

import flexmg
from flexmg.baselines.evaluation import Evaluation, evaluate
from flexmg.baselines.models.base import load_base
from flexmg.baselines.models.team import Team
from flexmg.baselines.models.tiny.build import WEIGHTS

TOKEN_LIMIT = 64
DOMAINS = ("math", "code")
VARIANTS: dict[str, list[dict[str, Any]]] = {"orch-workers-v0": [{}, {"mode": "subtasks"}]}
CARD = Template(Path(__file__).with_name("card.md.jinja").read_text(), keep_trailing_newline=True)


def measure(id: str, problems: int, **kwargs: Any) -> Evaluation:
    """Accuracy of the embedded model in every role, at temperature 1, on the test split."""
    kwargs = {"split": "test", "token_limits": TOKEN_LIMIT, **kwargs}
    agents = flexmg.make(id, **kwargs).possible_agents
    team = Team(load_base("tiny"), agents, policy_map="shared", critics=())
    return evaluate(id, kwargs, team, range(problems), (0,))


def main() -> None:
    """Command line: ``--problems`` per workflow, ``--out`` for the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--problems", type=int, default=500)
    parser.add_argument("--out", type=Path, default=Path("docs/tiny-model.md"))
    arguments = parser.parse_args()
    rows = []
    for spec in flexmg.registered():
        domain, _, workflow = spec.id.partition("-")
        if domain not in DOMAINS:
            continue
        for variant in VARIANTS.get(workflow, [{}]):
            found = measure(spec.id, arguments.problems, **variant)
            rows.append({"id": spec.id, "variant": variant, "found": found})
            print(spec.id, variant, f"{found.accuracy:.3f}", found.interval, flush=True)
    weights = WEIGHTS / "model.safetensors"
    page = CARD.render(
        rows=rows,
        problems=arguments.problems,
        token_limit=TOKEN_LIMIT,
        config=json.loads((WEIGHTS / "config.json").read_text()),
        made=json.loads((WEIGHTS / "recipe.json").read_text()),
        sha256=hashlib.sha256(weights.read_bytes()).hexdigest(),
        megabytes=sum(f.stat().st_size for f in WEIGHTS.iterdir()) / 1e6,
    )
    arguments.out.write_text(page)


if __name__ == "__main__":
    main()
