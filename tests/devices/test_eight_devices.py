"""Rows over eight virtual devices: estimates, work and certificates of one device, and no collective but reductions.

Float32 sums over other groupings of the rows differ by rounding: a batch of n terms by about sqrt(n) eps of their size.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
REDUCTIONS = {"all-reduce", "reduce-scatter"}
ROUNDING = 1e-5  # relative; sqrt(1500) eps is 5e-6


def on_eight_devices(*what: str, flags: str = "") -> dict:
    flags += " --xla_force_host_platform_device_count=8"
    surroundings = os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-m", "tests.devices.eight_devices", *what]
    done = subprocess.run(command, cwd=ROOT, env=surroundings, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def compared() -> dict:
    return on_eight_devices("estimates")


def test_estimates_are_those_of_one_device(compared):
    assert compared["devices"] == 8
    for name, found in compared["estimates"].items():
        assert found["error"] <= ROUNDING, name
        assert found["same work"] and found["replicated"], name


def test_nothing_is_exchanged_but_sums(compared):
    for name, found in compared["estimates"].items():
        assert found["collectives"] and set(found["collectives"]) <= REDUCTIONS, name
    assert compared["estimates"]["exact"]["collectives"] == ["all-reduce"]
    assert compared["estimates"]["gradient"]["collectives"] == ["all-reduce", "reduce-scatter"]


def test_the_judge_says_the_same(compared):
    assert compared["sharded"] == pytest.approx(compared["plain"], rel=1e-9, abs=1e-12)


def test_digests_see_every_row_and_no_device(compared):
    assert compared["digests"] == compared["digests"][:2] * 3 and len(set(compared["digests"])) == 2


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["spider", "newton-cg"])
def test_solves_end_at_the_same_certificate(solver, tmp_path):
    """And of all programs that are compiled on the way, solver's and judge's, none exchanges anything but sums."""
    plain, sharded = (
        on_eight_devices(
            solver, how, str(tmp_path / how), flags=f"--xla_dump_to={tmp_path / how} --xla_dump_hlo_as_text"
        )
        for how in ("plain", "sharded")
    )
    assert plain["converged"] and sharded["converged"]
    assert plain["programs"] and sharded["programs"]
    # steps amplify rounding; both ends are certified to 1e-3 over a distance of about one
    assert sharded["measures"]["objective"] == pytest.approx(plain["measures"]["objective"], abs=1e-3)
    assert sharded["measures"]["curvature"] == pytest.approx(plain["measures"]["curvature"], abs=1e-3)
    assert plain["collectives"] == []
    assert sharded["collectives"] and set(sharded["collectives"]) <= REDUCTIONS
