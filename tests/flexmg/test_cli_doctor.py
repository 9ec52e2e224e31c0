from __future__ import annotations

import pytest

from flexmg import doctor


class EntryPoint:
    """A plug-in of the group flexmg.probes."""

    name, value = "weather", "weather:report"

    def __init__(self, report):
        self._report = report

    def load(self):
        return self._report


@pytest.fixture
def probe(monkeypatch):
    """Install a plug-in whose probe is this function."""

    def install(report):
        def entry_points(group):
            return [EntryPoint(report)] if group == doctor.PROBES else []

        monkeypatch.setattr(doctor, "entry_points", entry_points)

    return install


def test_doctor_shows_what_a_plugin_tried_out(probe):
    probe(lambda: [("rain", True, "none")])
    assert doctor.diagnose().probes == (doctor.Probe("weather", "rain", True, "none"),)


def test_doctor_advises_where_a_probe_found_a_lack(probe):
    probe(lambda: [("sun", False, "hidden. Remedy: wait"), ("rain", True, "none")])
    advice = [line for line in doctor.diagnose().advice if line.startswith("weather")]
    assert advice == ["weather: sun: hidden. Remedy: wait"]


def test_a_probe_that_fails_is_a_finding(probe):
    def report():
        raise RuntimeError("no window")

    probe(report)
    (found,) = doctor.diagnose().probes
    assert (found.fine, found.sentence) == (False, "RuntimeError: no window")


def test_doctor_probes_the_sandbox():
    assert "sandbox" in {found.plugin for found in doctor.diagnose().probes}


def test_doctor_tells_a_version_that_was_not_tried(monkeypatch):
    monkeypatch.setattr(doctor, "version", lambda name: "0.1")
    advice = doctor.diagnose().advice
    assert any("numpy 0.1 (wanted >=1.26)" in line for line in advice)


@pytest.mark.parametrize(
    ("installed", "wanted", "fits"),
    [
        ("2.13.0+cpu", ">=2.9", True),
        ("2.10", ">=2.9", True),
        ("5.40.0", "<5.40,>=5.17", False),
        ("5.39.9", "<5.40,>=5.17", True),
        ("0.9.0", ">=0.9,<0.10", True),
        ("0.10.0", ">=0.9,<0.10", False),
        ("1.0rc1", ">=1", True),
        ("3", "", True),
    ],
)
def test_version_ranges(installed, wanted, fits):
    assert doctor.Package("p", "base", wanted, installed).fits is fits
