"""The tests of a problem: as data and back, and what is refused."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexmg.envs.code.sandbox.limits import Limits
from flexmg.envs.code.suite import FLAGS, Case, Suite
from flexmg.errors import ProblemError
from flexmg.problem import Problem

texts = st.text(max_size=8)
suites = st.builds(
    Suite,
    kind=st.sampled_from(["stdin", "calls"]),
    public=st.lists(st.builds(Case, texts, texts), max_size=3).map(tuple),
    hidden=st.lists(st.builds(Case, texts, texts), min_size=1, max_size=3).map(tuple),
    entry=st.text(min_size=1, max_size=5),
    prelude=texts,
    setup=texts,
    exact=st.booleans(),
    flags=st.frozensets(st.sampled_from(FLAGS)),
    tolerance=st.sampled_from([1e-6, 1e-9, 0.0]),
    checker=texts,
    limits=st.builds(Limits, cpu_s=st.sampled_from([0.5, 2.0, 10.0]), memory_mb=st.integers(1, 99)),
)


def problem(tests):
    return Problem("p-1", "Add two numbers.", "tests", payload={"tests": tests})


def stdin(**changes):
    return {"kind": "stdin", "hidden": [["1 2\n", "3\n"]], **changes}


@given(suites)
def test_it_survives_the_way_through_json(suite):
    assert Suite.of(problem(json.loads(json.dumps(suite.payload())))) == suite


def test_public_cases_come_first():
    suite = Suite.of(problem(stdin(public=[["5 6\n", "11\n"]])))
    assert [case.output for case in suite.cases] == ["11\n", "3\n"]


def test_defaults_are_left_out_of_the_payload():
    assert Suite("stdin", hidden=(Case("1 2\n", "3\n"),)).payload() == stdin()


@pytest.mark.parametrize(
    ("tests", "complaint"),
    [
        (None, "carries no tests"),
        ([], "carries no tests"),
        ({"kind": "stdin"}, "has no test"),
        ({"kind": "stdin", "public": [], "hidden": []}, "has no test"),
        (stdin(kind="unittest"), "kind of its tests is 'unittest'"),
        (stdin(flags=["any_luck"]), "any_luck"),
        (stdin(hints=["x"]), "unknown fields .'hints'."),
        (stdin(limits={"cpu_s": -1}), "cpu_s=-1"),
        (stdin(limits={"cpu_s": float("nan")}), "cpu_s=nan"),
        (stdin(limits={"cpu": 1}), "cannot be read"),
        (stdin(hidden=[["1"]]), "cannot be read"),
        (stdin(hidden=7), "cannot be read"),
        (stdin(flags=7), "cannot be read"),
        ({"kind": "calls", "hidden": [[[1], 2]]}, "do not name the function"),
        (stdin(tolerance="small"), "tolerance"),
        (stdin(entry=7), "entry"),
    ],
)
def test_broken_tests_are_an_error_and_never_a_pass(tests, complaint):
    with pytest.raises(ProblemError, match=f"'p-1'.*{complaint}"):
        Suite.of(problem(tests))
