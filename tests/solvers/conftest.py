"""Shared by the solver tests: runs that are watched from outside, inner solve by inner solve."""

from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
import pytest

import mescal
from mescal import problems
from mescal.oracle import Lagrangian, surrogate
from mescal.oracle.evaluator import evaluator_of
from mescal.oracle.subproblem import Subproblem
from mescal.problem import equality_form
from mescal.run import loop
from mescal.solvers.move import paired_differences

MORE = 16  # times the samples of the solver's own descent test: what a stream is measured with afterwards
LARGEST = 1 << 19  # thetas of that measurement at most

compare = jax.jit(paired_differences)


@dataclass
class Watched:
    """A result, and where each of its inner solves began and ended."""

    result: mescal.Result
    solves: list[tuple[Subproblem, np.ndarray, np.ndarray, int]] = field(default_factory=list)

    def check_never_flat(self, key: jax.Array):
        """No inner solve ended above its start, at its own multipliers and penalty.

        Finite populations: by exact values, with the best slacks, to the rounding of float32. Streams: by fresh samples, 16
        times as many as the solver's test of descent had, so that its standard error is four of these. That test lets through
        what is not two of its errors worse; a point that is three worse passes it with probability 0.16, five worse with
        0.0014, and fresh samples add up to one: the bound is six of its errors, 24 of these.
        """
        for i, (sub, start, end, batch) in enumerate(self.solves):
            if sub.population is not None:
                before, after = (sub.look(z)[0].value for z in (start, end))
                assert after <= before + 1e-5 * max(1.0, abs(before)), f"inner solve {i} rose from {before} to {after}"
            else:
                n = min(MORE * batch, LARGEST)
                difference, error, _ = compare(sub.lagrangian, end[None], start, jax.random.fold_in(key, i), n)
                bound = 6 * np.sqrt(n / batch) * float(error[0])
                assert float(difference[0]) <= bound, (
                    f"inner solve {i} rose by {float(difference[0])}, error {bound / 6}"
                )


def subproblem(problem, x, multipliers, penalty, dtype=np.float32) -> Subproblem:
    """The subproblem of a problem at given multipliers, unscaled; in float64 with Jacobians, as Newton's method has it."""
    program, _ = problem.bind(np.asarray(x), dtype=dtype)
    precise = dtype == np.float64
    exact, _ = problem.bind(np.asarray(x))
    oracle = Lagrangian(
        equality_form(program, problem.domain),
        problem.device_data(program, None if precise else dtype),
        np.asarray(multipliers, dtype),  # pyright: ignore[reportArgumentType]
        np.asarray(penalty, dtype),  # pyright: ignore[reportArgumentType]
        surrogate("ustat"),
    )
    return Subproblem(oracle, None if exact.population is None else evaluator_of(problem, exact), precise)


@pytest.fixture(scope="session")
def make_subproblem():
    return subproblem


@pytest.fixture(autouse=True)
def forget_programs(request):
    """Slow tests share no programs: each drops its own, which a process cannot hold by the hundred."""
    yield
    if request.node.get_closest_marker("slow"):
        jax.clear_caches()


@pytest.fixture
def watch(monkeypatch):
    """Solve a named problem with nothing but a tolerance, and remember every inner solve."""

    def solve(name: str, solver: str, seed: int, tol: Any = 0.01) -> tuple[Watched, problems.NamedProblem]:
        named = problems.get(name)
        solves = []
        take = loop._take

        def watched(method, here, state):
            after, (oracle, reading) = take(method, here, state)
            if reading is not None:
                solves.append((oracle, state.z, after.z, reading.outcome.large_batch))
            return after, (oracle, reading)

        with monkeypatch.context() as patch:
            patch.setattr(loop, "_take", watched)
            result = mescal.minimize(named.problem, named.x0, solver=solver, tol=tol, seed=seed, cone=named.cone)
        return Watched(result, solves), named

    return solve


@pytest.fixture
def check(watch, key):
    """What every run of a named problem must show: a certificate that a second judge confirms, and descent throughout."""

    def run(name: str, solver: str, seed: int, tol: float = 0.01) -> tuple[mescal.Result, problems.NamedProblem]:
        watched, named = watch(name, solver, seed, tol)
        result = watched.result
        assert result.converged, f"{name} {solver} seed {seed}: {result}"
        again = mescal.certify(
            named.problem, result.x, result.multipliers, slack=result.slack, tol=tol, cone=named.cone, seed=1 + seed
        )
        if result.certificate.feasibility.how.startswith("exact"):
            assert again.passes(tol), f"{name} {solver} seed {seed}: {again}"
        else:  # other samples: the interval may stick out of the tolerance, but not lie outside of it (2.5 % if it is tight)
            for measured in (again.stationarity, again.feasibility):
                assert measured.lower <= tol, f"{name} {solver} seed {seed}: {again}"
            assert again.curvature.upper >= -tol, f"{name} {solver} seed {seed}: {again}"
        watched.check_never_flat(key)
        return result, named

    return run
