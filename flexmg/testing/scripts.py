"""What agents write while a game is checked: random texts, demonstrations, planted markers."""

from __future__ import annotations

import hashlib

from flexmg.agents import Policy
from flexmg.errors import FlexMGError
from flexmg.game import FlexMarkovGame
from flexmg.seeding import stream

from .trace import Script

MARKER_LENGTH = 20


def marker(agent: str, turn: int) -> str:
    """A text that nobody writes by chance: letters only, so that it parses as no number."""
    digest = hashlib.sha256(f"{agent} {turn}".encode()).digest()
    return "zq" + "".join(chr(ord("a") + byte % 26) for byte in digest[: MARKER_LENGTH - 2])


def marked(script: Script) -> Script:
    """The same script with the turn's marker at the end of every line."""

    def write(game: FlexMarkovGame, agent: str, turn: int) -> str:
        sign = marker(agent, turn)
        lines = script(game, agent, turn).split("\n")
        return "\n".join(f"{line} {sign}" for line in lines)

    return write


def random_texts(seed: int, variant: int = 0) -> Script:
    """Texts of one to four lines, by key: equal in every process and every order of acting.

    Words come from the agent's own profile and the names of the team, so that whatever the
    profile asks for (a verdict, a call, a numbered list) is written now and then.
    """

    def write(game: FlexMarkovGame, agent: str, turn: int) -> str:
        rng = stream("check_env", seed, variant, agent, turn)
        profile = game.specs[agent].profile.render().split()
        words = [*profile, *game.possible_agents, *map(str, range(10))]
        numbered = bool(rng.integers(2))
        lines = []
        for number in range(1, 2 + int(rng.integers(4))):
            picks = rng.integers(len(words), size=1 + int(rng.integers(6)))
            line = " ".join(words[i] for i in picks)
            lines.append(f"{number}. {line}" if numbered else line)
        return "\n".join(lines)

    return write


def demonstrations(game: FlexMarkovGame, agent: str, turn: int) -> str:
    """The game's own correct scripted actions."""
    del turn
    return game.demonstrate(agent)


def of_policy(policy: Policy) -> Script:
    """A script that asks a policy."""

    def write(game: FlexMarkovGame, agent: str, turn: int) -> str:
        del turn
        observation = game.observe(agent)
        return policy(agent, observation)

    return write


def can_demonstrate(game: FlexMarkovGame, seed: int) -> bool:
    """Whether the first agent of this episode has a demonstration."""
    game.reset(seed=seed)
    try:
        game.demonstrate(game.agent_selection)
    except FlexMGError:
        return False
    return True


def scripts(game: FlexMarkovGame, seed: int, policy: Policy | None) -> dict[str, Script]:
    """The scripts that a game is played with, by name; those in ``"marked ..."`` carry markers."""
    found: dict[str, Script] = {"marked random texts": marked(random_texts(seed))}
    if can_demonstrate(game, seed):
        found["demonstrations"] = demonstrations
        found["marked demonstrations"] = marked(demonstrations)
    if policy is not None:
        found["given actions"] = of_policy(policy)
        found["marked given actions"] = marked(of_policy(policy))
    return found
