"""No tuning: with nothing but tol=0.01, every solver ends at a certificate on every kind of problem, for every seed."""

from itertools import product

import pytest

SOLVERS = ("spider", "sg-hv-nc", "natasha2", "newton-cg", "scr")
STREAMS = tuple(f"hock-schittkowski/{number}" for number in (6, 7, 26, 39, 40))
DATA = ("neyman-pearson/spambase", "neyman-pearson/madelon", "fairness/bank")
SMALL = ("neyman-pearson/breast-cancer", "hock-schittkowski/6")


@pytest.mark.parametrize(("name", "solver"), [*product(SMALL[:1], SOLVERS), (SMALL[1], "spider")])  # the rest is slow
def test_three_seeds(check, name, solver):
    for seed in range(3):
        check(name, solver, seed)


@pytest.mark.slow
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", [*STREAMS, "neyman-pearson/breast-cancer"])
def test_ten_of_ten_seeds(check, name, solver):
    for seed in range(10):
        result, named = check(name, solver, seed)
        if named.optimum is not None:
            assert abs(result.objective - named.optimum) <= 0.02 * max(1, abs(named.optimum)), f"{name} {solver} {seed}"


@pytest.mark.slow
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", DATA)
def test_ten_of_ten_seeds_on_real_data(check, data_folder, name, solver):
    for seed in range(10):
        check(name, solver, seed)


@pytest.mark.slow
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(("name", "best"), [("fairness/bank", 0.1676), ("fairness/loan", 0.3396)])
def test_a_tight_tolerance_reaches_the_best_objective_known(check, data_folder, name, best, solver):
    for seed in range(3):
        result, _ = check(name, solver, seed, 1e-4)
        assert result.objective <= 1.01 * best, f"{name} {solver} seed {seed}: {result}"
