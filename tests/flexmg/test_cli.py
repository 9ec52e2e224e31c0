from __future__ import annotations

import builtins
import importlib.metadata
import json
import subprocess
import sys

import pytest
from sums import played

import flexmg
from flexmg import cli, doctor
from flexmg import play as table
from flexmg.errors import InvalidArgument
from flexmg.wrappers import RecordEpisodes

DUO = "math-duo-v0"


class Plugin:
    """An entry point without a package."""

    def __init__(self, name, loaded):
        self.name, self.value, self.loaded = name, f"third_party:{name}", loaded

    def load(self):
        if isinstance(self.loaded, Exception):
            raise self.loaded
        return self.loaded


@pytest.fixture
def plugins(monkeypatch):
    """Install plug-ins: ``plugins(group, name=function)``."""

    def install(group, **found):
        real = importlib.metadata.entry_points

        def entry_points(**selected):
            if selected.get("group") == group:
                return [Plugin(name, loaded) for name, loaded in found.items()]
            return real(**selected)

        for module in (cli, table, doctor):
            monkeypatch.setattr(module, "entry_points", entry_points)

    return install


@pytest.fixture
def run(capsys, monkeypatch):
    """Run the command with lines on its input: exit code, stdout, stderr."""

    def run(*arguments, lines=()):
        waiting = iter(lines)

        def read(prompt=""):
            try:
                return next(waiting)
            except StopIteration:
                raise EOFError from None

        monkeypatch.setattr(builtins, "input", read)
        with pytest.raises(SystemExit) as left:
            cli.main(arguments)
        out, err = capsys.readouterr()
        return left.value.code or 0, out, err

    return run


@pytest.fixture
def recorded(tmp_path):
    """A file of two recorded episodes."""
    env = RecordEpisodes(flexmg.make(DUO), tmp_path / "episodes.jsonl")
    for seed in range(2):
        played(env, seed=seed)
    return env.path


# ------------------------------------------------------------------------ the command itself


def test_help_names_every_command_of_ours(run):
    code, out, _ = run("--help")
    assert code == 0
    assert all(name in out for name in ("envs", "play", "replay", "doctor"))


def test_version(run):
    assert run("--version")[:2] == (0, f"flexmg {flexmg.__version__}\n")


def test_help_imports_nothing_heavy():
    look = (
        "import sys, flexmg.cli\n"
        "try: flexmg.cli.main(['--help'])\n"
        "except SystemExit: pass\n"
        "print('HEAVY', [m for m in ('torch', 'transformers', 'sympy', 'datasets') "
        "if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True)
    assert "HEAVY []" in done.stdout


def test_an_error_of_ours_is_one_sentence_and_exit_code_2(run):
    code, out, err = run("play", "math-duoo-v0")
    assert (code, out) == (2, "")
    assert err.startswith("flexmg: no environment is called 'math-duoo'. Did you mean")
    assert "Traceback" not in err


def test_debug_shows_the_traceback():
    with pytest.raises(flexmg.FlexMGError):
        cli.main(["--debug", "play", "math-duoo-v0"])


def test_a_plugin_contributes_commands(run, plugins):
    def add_commands(app):
        @app.command()
        def greet() -> None:
            """Say good day."""
            print("good day")

    plugins("flexmg.commands", third=add_commands)
    assert run("greet")[:2] == (0, "good day\n")


@pytest.mark.parametrize("fault", [ImportError("no such module"), lambda app: 1 / 0])
def test_a_broken_plugin_only_warns(run, plugins, fault):
    plugins("flexmg.commands", third=fault)
    code, out, err = run("envs", "--json")
    assert code == 0
    assert json.loads(out)
    assert "commands of the plug-in 'third_party:third' cannot be added" in err


# ------------------------------------------------------------------------ envs, doctor


def test_envs_lists_every_id(run):
    found = json.loads(run("envs", "--json")[1])
    assert [row["id"] for row in found] == [spec.id for spec in flexmg.registered()]


def test_envs_says_what_to_install(run, monkeypatch):
    monkeypatch.setattr(cli.importlib.util, "find_spec", lambda module: None)
    found = json.loads(run("envs", "--json")[1])
    told = {row["id"]: row["install"] for row in found}
    assert told["math-duo-v0"] == "pip install 'flexmg[math]'"


def test_envs_prints_a_table(run):
    assert "math-orch-workers-v0" in run("envs")[1]


def test_doctor_reports_installed_versions(run):
    found = json.loads(run("doctor", "--json")[1])
    numpy = next(p for p in found["packages"] if p["name"] == "numpy")
    assert numpy["installed"] == importlib.metadata.version("numpy")
    assert numpy["fits"]


def test_doctor_gives_the_exact_command_for_what_lacks(run, monkeypatch):
    real = importlib.metadata.version

    def version(name):
        if name == "math-verify":
            raise importlib.metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(doctor, "version", version)
    out = run("doctor")[1]
    assert "math: math-verify:  pip install --upgrade 'flexmg[math]'" in out


def test_doctor_names_a_broken_plugin(plugins):
    plugins("flexmg.players", gone=ImportError("no such module"))
    (broken,) = [p for p in doctor.diagnose().plugins if p.error]
    assert (broken.name, broken.error) == ("gone", "ImportError: no such module")


# ------------------------------------------------------------------------ play


def test_a_person_plays_one_role_and_scripts_the_others(run, tmp_path):
    file = tmp_path / "mine.jsonl"
    lines = ["1. First line.", "2. Second line.", ""]
    arguments = ("play", DUO, "--role", "planner", "--seed", "1", "--record", str(file))
    code, out, _ = run(*arguments, lines=lines)
    record = flexmg.Transcript.from_json(file.read_text())
    assert code == 0
    assert record.turns[0].text == "1. First line.\n2. Second line."
    assert record.verdict["status"] == "correct"
    assert "solver_0 has acted" in out
    assert "verdict  correct" in out


def test_a_person_sees_d_and_the_observation(run):
    out = run("play", DUO, "--role", "planner", "--seed", "1", lines=["x", ""])[1]
    assert "planner_0  =>  solver_0" in out
    assert "You are the planner" in out
    assert "Problem:" in out


def test_hidden_turns_are_not_shown_before_the_end(run):
    out = run("play", "math-voting-v0", "--agent", "voter_1", "--seed", "1", lines=[])[1]
    assert "voter_0 has acted" in out
    assert "boxed{" not in out.partition("your turn: voter_1")[2].partition("Problem:")[2]


def test_a_person_may_play_everybody(run, tmp_path):
    file = tmp_path / "mine.jsonl"
    lines = ["a plan", "", "an answer", ""]
    run("play", DUO, "--role", "all", "--record", str(file), lines=lines)
    record = flexmg.Transcript.from_json(file.read_text())
    assert [turn.text for turn in record.turns] == ["a plan", "an answer"]


def test_without_a_role_the_person_is_asked(run):
    out = run("play", DUO, lines=["painter", "solver"])[1]
    assert "Which role do you take? planner, solver, or all" in out
    assert "There is no 'painter'. Did you mean 'planner'?" in out
    assert "You play: solver_0" in out


@pytest.mark.parametrize("lines", [[], ["planner"], ["planner", "half a"]])
def test_the_end_of_input_leaves_politely(run, lines):
    code, out, err = run("play", DUO, lines=lines)
    assert (code, err) == (0, "")
    assert "You have left the game. Good-bye." in out


def test_an_empty_text_takes_two_empty_lines(run, tmp_path):
    file = tmp_path / "mine.jsonl"
    out = run("play", DUO, "--role", "planner", "--record", str(file), lines=["", ""])[1]
    assert "another empty line sends an empty text" in out
    assert flexmg.Transcript.from_json(file.read_text()).turns[0].text == ""


def test_what_the_game_refuses_is_asked_again(run):
    out = run("play", DUO, "--role", "planner", lines=["a\x00b", "", "a plan", ""])[1]
    assert "holds a NUL at character 1; remove it. Please write it again." in " ".join(out.split())
    assert "verdict" in out


def test_a_problem_and_keywords_of_make_can_be_chosen(run, tmp_path):
    file = tmp_path / "mine.jsonl"
    run(
        *("play", "math-voting-v0", "--agent", "voter_0", "--problem", "7", "--level", "2"),
        *("--env-arg", "n=2", "--env-arg", "reward=local", "--record", str(file)),
        lines=["x", ""],
    )
    record = flexmg.Transcript.from_json(file.read_text())
    assert record.kwargs == {"level": 2, "n": 2, "reward": "local"}
    game = flexmg.make("math-voting-v0", **record.kwargs)
    game.reset(options={"problem": 7})
    assert record.problem == game.problem.id


def test_a_model_may_play_the_others(run, plugins, tmp_path):
    asked = []

    def factory(spec):
        return lambda agent, observation: asked.append((spec, agent)) or r"\boxed{1}"

    plugins("flexmg.players", tiny=factory, model=factory)
    for model in ("tiny", "tiny:big", "Some/Model-0.5B"):
        run("play", DUO, "--role", "planner", "--model", model, lines=["x", ""])
    assert asked == [("tiny", "solver_0"), ("big", "solver_0"), ("Some/Model-0.5B", "solver_0")]


def test_a_model_that_nobody_plays_is_a_clear_error(run, plugins):
    plugins("flexmg.players", tiny=lambda spec: None)
    code, _, err = run("play", DUO, "--role", "planner", "--model", "tinny")
    assert code == 2
    assert "no installed player takes the model 'tinny'. Did you mean 'tiny'?" in err


def test_others_without_a_script_need_a_model(run, tmp_path):
    row = {"question": "What is 1 + 1?", "answer": "so it is #### 2"}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n")
    code, _, err = run("play", DUO, "--role", "solver", "--source", str(tmp_path / "rows.jsonl"))
    assert code == 2
    assert "nobody can play planner_0" in err
    assert "--model" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--role", "solvr"), "no role is called 'solvr'. Did you mean 'solver'?"),
        (("--agent", "solver_1"), "no agent is called 'solver_1'. Did you mean 'solver_0'?"),
        (("--agent", "solver_0", "--role", "solver"), "give --role or --agent, not both"),
        (("--role", "all", "--env-arg", "n"), "--env-arg 'n' is not of the form KEY=VALUE"),
        (("--role", "all", "--env-arg", "profles=x"), "Did you mean 'profiles'?"),
    ],
)
def test_bad_arguments_of_play(run, arguments, message):
    code, _, err = run("play", DUO, *arguments)
    assert code == 2
    assert message in err


def test_values_of_keywords_are_json_or_text():
    found = cli.keywords(["n=2", "mode=subtasks", 'reward={"team": 1.5}', "empty="])
    assert found == {"n": 2, "mode": "subtasks", "reward": {"team": 1.5}, "empty": ""}
    with pytest.raises(InvalidArgument, match="KEY=VALUE"):
        cli.keywords(["=2"])


# ------------------------------------------------------------------------ replay


def test_replay_of_a_true_record(run, recorded):
    assert run("replay", str(recorded))[:2] == (0, "2 replayed: every record holds\n")


def test_replay_of_a_forged_record_names_the_line_and_fails(run, recorded):
    first, second = recorded.read_text().splitlines()
    forged = json.loads(second)
    forged["rewards"]["solver_0"] = 7.0
    recorded.write_text(first + "\n" + json.dumps(forged) + "\n")
    code, out, _ = run("replay", str(recorded))
    assert code == 1
    assert "line 2, math-duo-v0" in out
    assert "rewards of solver_0: recorded 7.0, replayed 1.0" in out
    assert "1 of 2 records do not hold" in out


def test_replay_goes_on_after_a_torn_line(run, recorded):
    first, second = recorded.read_text().splitlines()
    recorded.write_text(first[:50] + "\n" + second + "\n")
    code, out, _ = run("replay", str(recorded))
    assert code == 1
    assert "line 1" in out
    assert "1 replayed: 1 of 2 records do not hold" in out


def test_replay_writes_a_page_with_what_agents_saw(run, recorded, tmp_path):
    code = run("replay", str(recorded), "--html", str(tmp_path / "page.html"))[0]
    text = (tmp_path / "page.html").read_text()
    assert code == 0
    assert "You are the planner" in text
    assert f"Episodes of {recorded.name}" in text


def test_a_page_shows_records_of_unknown_environments_without_sight(run, recorded, tmp_path):
    entry = json.loads(recorded.read_text().splitlines()[0])
    recorded.write_text(json.dumps({**entry, "env": "gone-v0"}) + "\n")
    code, out, _ = run("replay", str(recorded), "--html", str(tmp_path / "page.html"))
    assert code == 1
    assert "cannot be shown" in out
    assert "gone-v0" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize("content", ["", "\n\n"])
def test_replay_of_nothing_is_an_error(run, tmp_path, content):
    (tmp_path / "empty.jsonl").write_text(content)
    assert run("replay", str(tmp_path / "empty.jsonl"))[0] == 2


def test_replay_of_a_missing_file_is_an_error(run, tmp_path):
    code, _, err = run("replay", str(tmp_path / "nothing.jsonl"))
    assert code == 2
    assert "cannot be read" in err


def test_a_page_that_cannot_be_written_is_an_error(run, recorded, tmp_path):
    code, _, err = run("replay", str(recorded), "--html", str(tmp_path / "no" / "page.html"))
    assert code == 2
    assert "cannot be written" in err


def test_the_command_runs_as_a_process():
    program = "from flexmg.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, "--version"], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, f"flexmg {flexmg.__version__}\n")
