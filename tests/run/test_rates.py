"""Rates: on a ladder of tolerances no solver's work grows faster than its theorem says.

A slope is fitted with its standard error; it fails only where its one-sided lower 95 % bound is above the exponent, so a
solver whose true slope is the exponent fails one time in 20. The measured ones are below 2, the theorems' 5 and more.
"""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from benchmarks import rates
from mescal import Tolerance, theory

STORED = Path(rates.__file__).parent / "results" / "rates.json"


def test_a_known_slope_is_found():
    """work = 7 eps^-2 with 5 % of noise on 15 runs: standard error 0.05/(sd of log eps sqrt(15)) = 0.018."""
    rng = np.random.default_rng(0)
    tolerances = [eps for eps in rates.LADDER for _ in range(3)]
    work = [7 * eps**-2 * math.exp(0.05 * rng.normal()) for eps in tolerances]
    slope = rates.fit(tolerances, work)
    assert slope.slope == pytest.approx(2, abs=5 * slope.error) and 0.01 < slope.error < 0.03
    assert slope.lowest < slope.slope - slope.error


def test_exponents_are_those_of_the_theorems():
    """eps_H = sqrt(eps): eps_g^-6 eps_H^-2 and eps_g^-5 eps_H^-5 are eps^-7 and eps^-7.5; one less with probability."""
    assert rates.exponent("spider", "deterministic", 0.5) == 7.5
    assert rates.exponent("spider-theory", "probabilistic", 0.5) == 6.5
    assert rates.exponent("natasha2", "deterministic", 0.0) == theory.solver_rate("natasha2").power(0.0) == 7


def test_the_stored_run_kept_its_targets():
    result = json.loads(STORED.read_text())
    assert not result["quick"] and all(target["met"] for target in result["targets"])
    slopes = {
        row["solver"]: row for title, rows in result["tables"].items() for row in rows if title.startswith("slopes")
    }
    assert set(rates.PRACTICAL) <= set(slopes) and any(name.endswith("-theory") for name in slopes)
    for title, rows in result["tables"].items():
        if title.startswith("work"):
            assert len({row["epsilon"] for row in rows}) == 5


@pytest.mark.slow
@pytest.mark.parametrize("solver", rates.PRACTICAL)
def test_work_grows_no_faster_than_the_theorem_says(solver):
    problem, start = rates.regular_problem()
    rungs = [Tolerance(eps, math.sqrt(eps)) for eps in rates.LADDER]
    runs = [(t.gradient, result) for t, _, result in rates.ladder(solver, problem, start, range(1), rungs)]
    assert all(result.converged for _, result in runs)
    slope = rates.fit([eps for eps, _ in runs], [result.work.total for _, result in runs])
    promised = rates.exponent(solver, "probabilistic", 0.5)
    print(f"{solver}: slope {slope.slope:.2f} +- {slope.error:.2f}, theorem {promised:g}")
    assert slope.lowest <= promised
    assert 1 < slope.slope < 3  # means of fresh samples cost eps^-2, and outer iterations a logarithm


@pytest.mark.slow
def test_a_theory_mode_grows_no_faster_than_its_theorem_says():
    problem, start, constants = rates.known_problem()
    rungs = [Tolerance(eps, rates.THEORY_CURVATURE) for eps in rates.THEORY_LADDER]
    solver = rates.SpiderTheory(sharp=True, constants=constants)
    given = {"outer": rates.SCHEDULE, "max_work": rates.AFFORDABLE}
    runs = [(t.gradient, result) for t, _, result in rates.ladder(solver, problem, start, range(1), rungs, **given)]
    assert all(result.converged for _, result in runs)
    slope = rates.fit([eps for eps, _ in runs], [result.work.total for _, result in runs])
    promised = rates.exponent(solver.name, "probabilistic", 0.0)
    print(f"{solver.name}: slope {slope.slope:.2f} +- {slope.error:.2f}, theorem {promised:g}")
    assert slope.lowest <= promised
