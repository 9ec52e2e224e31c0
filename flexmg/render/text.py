"""An episode as a readable conversation, for terminals."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from flexmg.agents import role_of
from flexmg.dependency import DependencyGraph
from flexmg.transcript import Transcript, Turn

if TYPE_CHECKING:
    from rich.console import Console

WIDTH = 88
COLOURS = ("cyan", "magenta", "green", "yellow", "blue", "red")
VERDICT_COLOURS = {"correct": "green", "wrong": "red"}


def conversation(transcript: Transcript) -> str:
    """The whole episode as plain text: per env step the graph D, then who said what.

    Every turn tells its layer, whom its agent saw in this step, and whether a fallback
    stood in for what its text did not say. Characters that would steer a terminal are
    shown as pictures.
    """
    lines = [title(transcript), "", *_indented(f"Problem: {transcript.statement}", "")]
    for step in steps(transcript):
        lines += ["", _rule(f"step {step}"), *_indented(graph_of(transcript, step).ascii(), "  ")]
        for turn in (t for t in transcript.turns if t.step == step):
            lines += ["", f"{turn.agent}   ({place(turn)})", *_indented(turn.text, "  | ")]
            if turn.report:
                lines += [f"  = {line}" for line in printable(turn.report).splitlines()]
            if turn.fallback:
                lines.append(f"  ! fallback: {printable(turn.fallback)}")
    lines += ["", _rule("outcome"), *outcome_lines(transcript)]
    return "\n".join(lines)


def show(transcript: Transcript, console: Console | None = None) -> None:
    """Print the episode in colour, one panel per turn; by default to the terminal."""
    from rich.console import Console, Group
    from rich.panel import Panel
    from rich.text import Text

    console = console or Console()
    console.print(Text(title(transcript), style="bold"))
    console.print(Panel(Text(printable(transcript.statement)), title="problem", title_align="left"))
    for step in steps(transcript):
        console.rule(f"step {step}", style="dim")
        console.print(Text(graph_of(transcript, step).ascii(), style="dim"))
        for turn in (t for t in transcript.turns if t.step == step):
            body = [Text(printable(turn.text) or "(empty)", style="" if turn.text else "dim")]
            if turn.report:
                body.append(Text(printable(turn.report), style="cyan"))
            if turn.fallback:
                body.append(Text(f"! fallback: {printable(turn.fallback)}", style="yellow"))
            console.print(
                Panel(
                    Group(*body),
                    title=Text.assemble((turn.agent, "bold"), f"  {place(turn)}"),
                    title_align="left",
                    border_style=colour_of(turn.agent, transcript),
                )
            )
    style = VERDICT_COLOURS.get(str(transcript.verdict.get("status", "")), "yellow")
    console.print(
        Panel(
            Text("\n".join(outcome_lines(transcript))),
            title="outcome",
            title_align="left",
            border_style=style,
        )
    )


def title(transcript: Transcript) -> str:
    """Environment, seed and problem on one line."""
    kwargs = ", ".join(f"{name}={value!r}" for name, value in transcript.kwargs.items())
    env = f"{transcript.env} ({kwargs})" if kwargs else transcript.env
    return printable(f"{env}, seed {transcript.seed}, problem {transcript.problem}")


def steps(transcript: Transcript) -> list[int]:
    """The numbers of the env steps that have turns."""
    return sorted({turn.step for turn in transcript.turns})


def graph_of(transcript: Transcript, step: int) -> DependencyGraph:
    """D of an env step over the agents that have acted in it, as recorded."""
    turns = [turn for turn in transcript.turns if turn.step == step]
    acting = [turn.agent for turn in turns]
    edges = [(seen, t.agent) for t in turns for seen in t.sees if seen in acting]
    return DependencyGraph.from_edges(acting, edges)


def place(turn: Turn) -> str:
    """Where a turn stands in D, in words."""
    seen = ", ".join(turn.sees) or "nobody"
    return f"layer {turn.layer}, sees {seen} of this step"


def outcome_lines(transcript: Transcript) -> list[str]:
    """Verdict, answer and rewards; or that the episode is still going on."""
    if not transcript.finished:
        return ["not finished"]
    verdict = transcript.verdict
    lines = [
        f"verdict  {verdict.get('status', '?')}, score {verdict.get('score', 0.0):g}"
        f"  (answer of {', '.join(transcript.designated) or 'nobody'})"
    ]
    if verdict.get("answer") is not None:
        rule = f"  (found by: {verdict['rule']})" if verdict.get("rule") else ""
        lines.append(printable(f"answer   {verdict['answer']}{rule}"))
    if verdict.get("detail"):
        lines.append(printable(f"detail   {verdict['detail']}"))
    if transcript.fallback:
        lines.append(printable(f"! fallback: {transcript.fallback}"))
    if transcript.infra_error:
        lines.append("! infra error: our own machinery failed; this episode counts for nothing")
    paid = "  ".join(f"{agent} {reward:g}" for agent, reward in transcript.rewards.items())
    lines.append(f"rewards  {paid}")
    central = "  ".join(f"{reward:g}" for reward in transcript.step_rewards)
    lines.append(f"central  {central}  (one per env step)")
    return lines


def colour_of(agent: str, transcript: Transcript) -> str:
    """A colour per role, in order of appearance."""
    roles = list(dict.fromkeys(role_of(turn.agent) for turn in transcript.turns))
    return COLOURS[roles.index(role_of(agent)) % len(COLOURS)]


def printable(text: str) -> str:
    """The text with control characters as pictures, line breaks and tabs kept.

    What a model writes must not move the cursor or retitle a window.
    """
    return text.translate(_PICTURES)


_PICTURES = {code: 0x2400 + code for code in range(32) if chr(code) not in "\n\t"}
_PICTURES |= {127: 0x2421, **dict.fromkeys(range(128, 160), 0xFFFD)}
# Marks that reorder what is displayed around them.
_PICTURES |= dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A)], 0xFFFD)


def _rule(word: str) -> str:
    return f"-- {word} ".ljust(WIDTH, "-")


def _indented(text: str, margin: str) -> Iterator[str]:
    for line in printable(text).split("\n"):
        wrapped: Sequence[str] = textwrap.wrap(
            line, WIDTH - len(margin), replace_whitespace=False, drop_whitespace=False
        )
        for part in wrapped or [""]:
            yield f"{margin}{part}".rstrip()
