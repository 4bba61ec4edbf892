"""Work against 1/epsilon on a strongly regular stochastic problem, and the fitted slopes beside the theorems' exponents.

    min E (x - a - xi)' D (x - a - xi)/2 + sum cos x_i / 10   s.t.  E[(B + Z) x - b + zeta] = 0,   B B' = I

A stream: every sample is fresh, noise moves gradients and Jacobians, and |B'c| = |c| everywhere. eps_g = eps and
eps_H = sqrt(eps) on a ladder of five tolerances; the slope is that of log(work) on log(1/eps), over all seeds, with its
standard error. Theory modes run on a problem in two variables whose constants are known, at a fixed eps_H, since their
parameters follow the bounds themselves; what `theory.predict` says of the same algorithm stands beside what it took.
"""

import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

import mescal
from mescal import E, Tolerance, theory
from mescal.solvers import Natasha2Theory, SgHvNcTheory, SpiderTheory
from mescal.theory.complexity import GapBound

from ._measure import Report

PRACTICAL = ("spider", "sg-hv-nc", "natasha2")
LADDER = (0.3, 0.18, 0.11, 0.067, 0.04)
SEEDS = range(3)
DIMENSION, ROWS, NOISE = 8, 2, 0.3
THEORY_LADDER = (0.2, 0.15, 0.11, 0.08, 0.06)
THEORY_CURVATURE = 0.3
SCHEDULE = mescal.Outer(penalty=1.0, growth=4.0)  # of theory modes
AFFORDABLE = 1e8  # gradients + 2 products of a run of a theory mode, at most
CONFIDENCE = 0.95  # of the one-sided bound on a slope


@dataclass(frozen=True)
class Slope:
    """log(work) = level + slope log(1/eps), fitted by least squares."""

    slope: float
    error: float  # standard error
    lowest: float  # one-sided lower confidence bound


def fit(tolerances: list[float], work: list[float]) -> Slope:
    """The slope of a ladder; the lower bound is Student's."""
    line: Any = stats.linregress(-np.log(tolerances), np.log(work))
    reach = stats.t.ppf(CONFIDENCE, len(work) - 2) * line.stderr
    return Slope(float(line.slope), float(line.stderr), float(line.slope - reach))


def regular_problem() -> tuple[mescal.Problem, np.ndarray]:
    """The problem of the first table and its start."""
    rng = np.random.default_rng(0)
    centre = jnp.asarray(rng.normal(size=DIMENSION), jnp.float32)
    weights = jnp.asarray(np.linspace(0.5, 2.0, DIMENSION), jnp.float32)
    rows = jnp.asarray(np.linalg.qr(rng.normal(size=(DIMENSION, ROWS)))[0].T, jnp.float32)

    def shifted(key):
        return NOISE * jax.random.normal(key, (DIMENSION,))

    def tilted(key):
        return NOISE * jax.random.normal(key, (ROWS, DIMENSION + 1))

    def objective(x, xi):
        off = x - centre - xi
        return jnp.sum(weights * off * off) / 2 + jnp.sum(jnp.cos(x)) / 10

    def constraint(x, z):
        return (rows + z[:, :-1] / math.sqrt(DIMENSION)) @ x - 1 + z[:, -1]

    problem = mescal.Problem(
        E(objective, over=mescal.Sampler(shifted)), {"c": E(constraint, over=mescal.Sampler(tilted)) == 0}
    )
    return problem, np.full(DIMENSION, 2.0, np.float32)


def known_problem() -> tuple[mescal.Problem, np.ndarray, theory.ProblemConstants]:
    """f = A cos(w u) with 20 % of noise, c = b v + 0.05 s on |v| <= 1: a ridge at the start, and all constants known."""
    size, wave, slope, rough, additive = 0.125, 1.85, 0.4, 0.2, 0.05

    def sign(key):
        return 1.0 - 2.0 * (jax.random.key_data(key)[0] & 1).astype(jnp.float32)

    problem = mescal.Problem(
        E(lambda x, s: size * (1 + rough * s) * jnp.cos(wave * x[0]), over=mescal.Sampler(sign)),
        {"c": E(lambda x, s: slope * x[1] + additive * s, over=mescal.Sampler(lambda key: sign(key))) == 0},
        mescal.sets.Box(np.array([-np.inf, -1.0]), np.array([np.inf, 1.0])),
    )
    constants = theory.ProblemConstants(
        dimension=2, constraint_count=1,
        objective_bound=size, objective_gradient_bound=size * wave, constraint_bound=slope, jacobian_bound=slope,
        constraint_hessian_bound=0.0, regularity=slope,
        objective_gradient_lipschitz=size * wave**2 * (1 + rough),
        objective_hessian_lipschitz=size * wave**3 * (1 + rough),
        constraint_gradient_lipschitz=0.0, constraint_hessian_lipschitz=0.0,
        objective_gradient_noise=size * wave * rough, objective_hessian_noise=size * wave**2 * rough,
        constraint_noise=additive,
    )  # fmt: skip
    return problem, np.array([0.0, 0.9], np.float32), constants


def exponent(solver: str, statement: GapBound, curvature: float) -> float:
    """The theorem's, for eps_H = eps^curvature."""
    return theory.solver_rate(solver.removesuffix("-theory"), statement).power(curvature)


def ladder(solver: Any, problem: mescal.Problem, start: np.ndarray, seeds: range, rungs: list[Tolerance], **given: Any):
    """One run per tolerance and seed: (tolerance, seed, result)."""
    for tolerance in rungs:
        for seed in seeds:
            yield tolerance, seed, mescal.minimize(problem, start, solver=solver, tol=tolerance, seed=seed, **given)


def run(quick: bool) -> Report:
    """Both tables, slopes beside exponents, and the targets: no slope above its theorem's exponent."""
    seeds = range(1) if quick else SEEDS
    report = Report({
        "ladder": LADDER, "seeds": len(seeds), "dimension": DIMENSION, "rows": ROWS, "noise": NOISE,
        "theory_ladder": THEORY_LADDER, "theory_curvature": THEORY_CURVATURE, "affordable": AFFORDABLE,
    })  # fmt: skip
    problem, start = regular_problem()
    rungs = [Tolerance(eps, math.sqrt(eps)) for eps in (LADDER[:3] if quick else LADDER)]
    for solver in PRACTICAL:
        _measure(report, "practical modes", solver, solver, 0.5, ladder(solver, problem, start, seeds, rungs))
    problem, start, constants = known_problem()
    for mode in () if quick else (SgHvNcTheory, Natasha2Theory, SpiderTheory):
        solver = mode(sharp=True, constants=constants)
        rungs = [Tolerance(eps, THEORY_CURVATURE) for eps in THEORY_LADDER]
        runs = ladder(solver, problem, start, seeds, rungs, outer=SCHEDULE, max_work=AFFORDABLE)
        _measure(report, "theory modes", solver.name, solver, 0.0, runs)
    for row in report.tables.get("work, theory modes", []):
        row["predicted"] = prediction(row["solver"], row["epsilon"], constants)
        row["predicted_over_measured"] = row["predicted"] / row["work"]
    return report


def prediction(solver: str, epsilon: float, constants: theory.ProblemConstants) -> float:
    """The work of a whole run by the theorem, with the gap bounded for certain, and the constants and the search of the mode."""
    tol = Tolerance(epsilon, THEORY_CURVATURE)
    told = theory.predict(constants, tol=tol, penalty=SCHEDULE.penalty, growth=SCHEDULE.growth, sharp=True)
    (forecast,) = (each for each in told.solvers if f"{each.solver}-theory" == solver)
    (work,) = (bound.work for bound in forecast.bounds if bound.statement == "deterministic")
    return work


def _measure(report: Report, table: str, name: str, solver: Any, curvature: float, runs: Any):
    found: dict[float, list[Any]] = {}
    for tolerance, _, result in runs:
        found.setdefault(tolerance.gradient, []).append(result)
    for eps, results in found.items():
        report.add(
            f"work, {table}",
            solver=name,
            epsilon=eps,
            certified=f"{sum(r.converged for r in results)}/{len(results)}",
            work=float(np.median([r.work.total for r in results])),
            searches=float(np.median([r.work.searches.total for r in results])),
            outer=float(np.median([r.outer_iterations for r in results])),
            penalty=float(np.median([r.penalty for r in results])),
        )
    pairs = [(eps, r.work.total) for eps, results in found.items() for r in results if r.converged]
    slope = fit([eps for eps, _ in pairs], [work for _, work in pairs])
    certain, likely = (exponent(name, statement, curvature) for statement in ("deterministic", "probabilistic"))
    report.add(
        f"slopes, {table}",
        solver=name,
        slope=slope.slope,
        standard_error=slope.error,
        deterministic_exponent=certain,
        probabilistic_exponent=likely,
    )
    report.hold(f"{name}: lower confidence bound of the slope of work in 1/epsilon", slope.lowest, likely)
