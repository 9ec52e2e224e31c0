from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from rich.console import Console
from sums import played, team

import flexmg
from flexmg.errors import TranscriptError
from flexmg.render.page import acted, page, viewer
from flexmg.render.sight import sight
from flexmg.render.text import conversation, graph_of, printable, show

HOSTILE = "</script><script>alert(1)</script><!-- <b>bold</b> & \u2028 \x1b[31m {{ title }}"


def episode(workflow="orch-workers", policy=None, **options):
    game = team(workflow, **options)
    played(game, policy)
    return game.transcript()


class Page(HTMLParser):
    """The elements of a page, and the texts of its scripts."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.scripts, self.inside = [], [], [], False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        self.inside = tag == "script"

    def handle_data(self, data):
        if self.inside:
            self.scripts.append(data)

    def handle_endtag(self, tag):
        self.inside = False


def embedded(text):
    return json.loads(Page(text).scripts[0])


# ------------------------------------------------------------------------ text


def test_a_conversation_tells_everything_in_order():
    text = conversation(episode())
    order = [
        "Problem: What is",
        "orchestrator_0   (",
        "worker_0   (",
        "synthesizer_0   (",
        "verdict",
    ]
    places = [text.index(part) for part in order]
    assert places == sorted(places)


def test_a_conversation_says_who_sees_whom():
    assert "synthesizer_0 sees orchestrator_0, worker_0, worker_1" in conversation(episode())


def test_every_env_step_has_its_graph():
    text = conversation(episode("debate", rounds=3))
    assert [f"step {k}" in text for k in range(4)] == [True, True, True, False]
    assert text.count("debater_0 | debater_1") == 3


def test_a_fallback_is_flagged():
    text = conversation(episode(policy=lambda agent, observation: "no list"))
    assert "! fallback: no numbered lines" in text


def test_verdict_and_rewards_are_told():
    text = conversation(episode("duo"))
    assert "verdict  correct, score 1  (answer of solver_0)" in text
    assert "rewards  planner_0 1  solver_0 1" in text


def test_an_unfinished_episode_is_told_as_such():
    game = team("duo")
    game.reset(seed=0)
    assert "not finished" in conversation(game.transcript())


def test_the_graph_is_the_recorded_one():
    transcript = episode("quad")
    assert graph_of(transcript, 0).edges == team_graph("quad").edges


def team_graph(workflow):
    game = team(workflow)
    game.reset(seed=0)
    return game.graph()


@pytest.mark.parametrize("code", [*range(9), 11, 12, 13, 27, 127, 155, 0x202E])
def test_no_character_steers_the_terminal(code):
    assert chr(code) not in printable(f"a{chr(code)}b")


def test_line_breaks_and_letters_of_all_scripts_stay():
    assert printable("a\n\tß ≤ 中") == "a\n\tß ≤ 中"


def test_no_line_of_a_conversation_is_wider_than_a_terminal():
    text = conversation(episode("single", lambda agent, observation: "word " * 400))
    assert max(map(len, text.splitlines())) <= 100


def test_show_prints_markup_as_it_was_written():
    screen = io.StringIO()
    transcript = episode("single", lambda agent, observation: "[red]Answer:[/red] \x1b[31m 3")
    show(transcript, Console(file=screen, width=100))
    assert "[red]Answer:[/red] ␛[31m 3" in screen.getvalue()


def test_render_ansi_is_the_conversation():
    game = team("duo", render_mode="ansi")
    played(game)
    assert game.render() == conversation(game.transcript())


# ------------------------------------------------------------------------ sight


def test_sight_is_what_the_agents_acted_on():
    game = team("voting")
    seen = {}

    def look(agent, observation):
        seen[len(seen)] = observation
        return game.demonstrate(agent)

    played(game, look)
    found = sight(game.transcript(), team("voting")).observations
    assert [found[k]["messages"] for k in range(4)] == [seen[k]["messages"] for k in range(4)]


def test_sight_follows_the_recorded_order_of_acting():
    game = team("voting")
    game.reset(seed=0)
    for agent in ("voter_2", "voter_0", "voter_1", "aggregator_0"):
        game.select(agent)
        game.step(f"Answer: {agent[-1]}")
    assert sorted(sight(game.transcript(), team("voting")).observations) == [0, 1, 2, 3]


def test_sight_tells_which_earlier_turns_were_recalled():
    transcript = episode("debate")
    assert sight(transcript, team("debate")).recalled == {0: (), 1: (), 2: (0, 1), 3: (0, 1)}


def test_sight_of_a_record_that_cannot_be_played_is_refused():
    with pytest.raises(TranscriptError, match="cannot be played again at solver_0"):
        sight(replace(episode("duo"), order=("solver_0", "planner_0")), team("duo"))


# ------------------------------------------------------------------------ page


def test_the_page_asks_for_nothing_from_outside():
    text = page([episode()], "Episodes")
    assert not {"link", "img", "iframe", "object"} & set(Page(text).tags)
    assert not [name for name, _ in Page(text).attributes if name in ("src", "href")]
    # Names of XML vocabularies are no addresses: a browser does not fetch them.
    addresses = set(re.findall(r"https?://[^\"' ]+", text)) - {"http://www.w3.org/2000/svg"}
    assert not addresses


def test_what_agents_write_cannot_leave_the_data():
    transcript = episode("duo", lambda agent, observation: HOSTILE)
    text = page([transcript], HOSTILE, sights=[sight(transcript, team("duo"))])
    assert len(Page(text).scripts) == 2
    assert embedded(text)[0]["turns"][0]["text"] == HOSTILE
    assert "<b>" not in text


def test_the_page_holds_all_episodes_with_their_turns_in_acting_order():
    game = team("voting")
    game.reset(seed=0)
    order = ("voter_2", "voter_0", "voter_1", "aggregator_0")
    for agent in order:
        game.select(agent)
        game.step("Answer: 1")
    episodes = embedded(page([game.transcript(), episode("duo")]))
    assert [turn["agent"] for turn in episodes[0]["turns"]] == list(order)
    assert len(episodes) == 2


def test_a_turn_of_the_page_tells_what_its_agent_saw():
    transcript = episode("duo")
    (shown,) = embedded(page([transcript], sights=[sight(transcript, team("duo"))]))
    solver = shown["turns"][1]
    assert solver["sees"] == ["planner_0"]
    assert "Planner:" in solver["saw"]["messages"][0]["content"]


def test_a_turn_of_the_page_tells_flags_and_truth():
    (shown,) = embedded(page([episode(policy=lambda agent, observation: "no list")]))
    assert shown["turns"][0]["fallback"] == "no numbered lines: every line taken"
    assert shown["turns"][1]["truth"] == 0.0


def test_fragments_of_one_page_have_names_of_their_own():
    one, two = viewer([episode("duo")]), viewer([episode("trio")])
    names = [re.search(r'id="(flexmg-[0-9a-f]+)"', text)[1] for text in (one, two)]
    assert names[0] != names[1]


def test_a_page_without_episodes_can_be_made():
    assert embedded(page([])) == []


def test_acted_leaves_canonical_order_where_it_was_played_so():
    transcript = episode("quad")
    assert acted(transcript) == list(transcript.turns)


def test_render_html_is_a_page():
    game = flexmg.make("math-duo-v0", render_mode="html")
    game.reset(seed=0)
    game.step("a plan")
    assert embedded(game.render())[0]["turns"][0]["text"] == "a plan"


BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
QUIET = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"]
QUIET += ["--disable-background-networking", "--disable-component-update"]
PRESS = """
<script>
for (const key of KEYS)
  document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
</script>
"""


def browsed(tmp_path, text, keys):
    """The page as a browser shows it after some keys were pressed."""
    if BROWSER is None:
        pytest.skip("needs chromium on the PATH")
    file = tmp_path / "page.html"
    file.write_text(text + PRESS.replace("KEYS", json.dumps(keys)), encoding="utf-8")
    command = [BROWSER, *QUIET, f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom"]
    done = subprocess.run(
        [*command, "--virtual-time-budget=2000", file.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
    )
    return done.stdout


@pytest.mark.full
@pytest.mark.parametrize(
    ("keys", "place", "name"),
    [
        ([], "turn 1 of 2", "planner_0"),
        (["ArrowRight"], "turn 2 of 2", "solver_0"),
        (["ArrowRight", "ArrowRight", "ArrowLeft"], "turn 1 of 2", "planner_0"),
        (["ArrowDown", "End"], "turn 4 of 4", "verifier_0"),
        (["ArrowDown", "ArrowUp", "End", "Home"], "turn 1 of 2", "planner_0"),
    ],
)
def test_keys_lead_through_turns_and_episodes(tmp_path, keys, place, name):
    shown = browsed(tmp_path, page([episode("duo"), episode("quad")]), keys)
    assert place in shown
    assert f"What {name} saw" in shown


@pytest.mark.full
def test_a_browser_runs_nothing_that_an_agent_wrote(tmp_path):
    attack = "</script><img src=x onerror=\"document.title='broken in'\"><script>"
    transcript = episode("duo", lambda agent, observation: attack)
    shown = browsed(tmp_path, page([transcript], sights=[sight(transcript, team("duo"))]), [])
    assert "<title>broken in</title>" not in shown
    assert "&lt;/script&gt;&lt;img src=x" in shown
