"""Training runs: configuration, the loop, checkpoints, progress and the report."""

from importlib.util import find_spec

from flexmg.errors import MissingDependency

_MISSING = [name for name in ("torch", "pydantic", "yaml") if not find_spec(name)]
if _MISSING:
    raise MissingDependency(
        f"training needs {', '.join(_MISSING)}, which is not installed here. "
        "Install it with: pip install 'flexmg[train]'"
    )
