"""Make the link tree that lets type checkers and editors resolve the whole package.

``envs/`` is imported as ``flexmg.envs``, ``baselines/`` as ``flexmg.baselines``: an import
system can be told so (``[tool.setuptools.package-dir]``), a type checker cannot. Hence
``.links/flexmg/``, a folder of symbolic links in which the package looks as it does when
installed from a wheel. It is generated, ignored by git, and never imported at run time.

Usage: ``python tools/links.py`` (``make type`` does it).
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ".links"


def package_folders(root: Path) -> dict[str, Path]:
    """Import name -> source folder, as ``pyproject.toml`` maps them."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    mapping = project["tool"]["setuptools"]["package-dir"]
    return {name: root / folder for name, folder in mapping.items()}


def wanted_links(root: Path) -> dict[Path, Path]:
    """Every link that the tree should hold, and what it points to."""
    wanted = {}
    for name, folder in package_folders(root).items():
        link = root / FOLDER / Path(*name.split("."))
        if "." in name:
            wanted[link] = folder
        else:
            for entry in folder.iterdir():
                if entry.name != "__pycache__":
                    wanted[link / entry.name] = entry
    return wanted


def make_links(root: Path = ROOT) -> int:
    """Bring the tree up to date and return how many links were made or removed.

    Args:
        root: the repository.

    Raises:
        OSError: the file system has no symbolic links.
    """
    wanted = {
        link: os.path.relpath(target, link.parent) for link, target in wanted_links(root).items()
    }
    present = {link: os.readlink(link) for link in (root / FOLDER).rglob("*") if link.is_symlink()}
    stale = [link for link, target in present.items() if wanted.get(link) != target]
    for link in stale:
        link.unlink()
    missing = [link for link in wanted if not link.is_symlink()]
    for link in missing:
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(wanted[link])
    return len(stale) + len(missing)


if __name__ == "__main__":
    print(f"{FOLDER}: {make_links()} links changed")
