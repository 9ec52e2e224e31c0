from __future__ import annotations

import pytest

from flexmg import doctor


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
