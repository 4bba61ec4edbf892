"""Many variables and many constraints: seconds to a certificate, beside projected gradient in numpy and scipy's solvers.

    ball      min sum w_i x_i^2, w from -1/2 to 2, |x| <= 1, d = 5,000, from the saddle 0
    simplex   min a.x + sum b_i x_i^2 / 2, b from -1 to 2, on the simplex, d = 100,000, from its centre
    box       min a.x + sum w_i x_i^2 / 2 on [0, 1]^d, d = 20,000: 10,000 bounds are active at the end
    rows      min |x - a|^2 / 2 with 200 linear inequalities, d = 50

Projected gradient has the exact Lipschitz constant and gradients by hand in float64; it starts a little off a saddle, which it
could not leave, and stops where |x - P(x - g/L)| L <= tol. It says nothing of curvature. It has no projection onto the 200
inequalities; there scipy's SLSQP and trust-constr stand beside, with gradients by hand. Ipopt is not installed where this was
measured. Times of mescal hold compiling and the certificate.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from scipy.optimize import LinearConstraint, minimize

import mescal
from mescal import E, sets

from ._measure import Report

TOL = 0.01
LIMIT = 100.0  # seconds of a run


@dataclass(frozen=True)
class Case:
    """A problem, its start, and the same for numpy."""

    problem: mescal.Problem
    x0: np.ndarray
    value: Callable[[np.ndarray], float]
    gradient: Callable[[np.ndarray], np.ndarray]
    lipschitz: float
    project: Callable[[np.ndarray], np.ndarray] | None
    rows: np.ndarray | None = None


def onto_simplex(x: np.ndarray) -> np.ndarray:
    """The nearest point of the simplex, by sorting."""
    falling = np.sort(x)[::-1]
    shifts = (np.cumsum(falling) - 1) / np.arange(1, x.size + 1)
    return np.maximum(x - shifts[np.flatnonzero(falling > shifts)[-1]], 0)


def quadratic(a: np.ndarray, w: np.ndarray) -> tuple[Any, Callable, Callable]:
    """a.x + sum w_i x_i^2 / 2: for us, and by hand."""
    slope, bend = jnp.asarray(a, jnp.float32), jnp.asarray(w, jnp.float32)
    ours = E(lambda x: slope @ x + jnp.sum(bend * x**2) / 2)
    return ours, lambda x: float(a @ x + w @ x**2 / 2), lambda x: a + w * x


def cases(quick: bool) -> dict[str, Case]:
    """All, or small ones of their kind."""
    rng, small = np.random.default_rng(0), 10 if quick else 1
    d = 5_000 // small
    f, value, gradient = quadratic(np.zeros(d), 2 * np.linspace(-0.5, 2, d))
    ball = Case(
        mescal.Problem(f, {}, sets.Ball(1.0)), np.zeros(d, np.float32), value, gradient, 4.0,
        lambda x: x / max(1.0, float(np.linalg.norm(x))),
    )  # fmt: skip
    d = 100_000 // small
    f, value, gradient = quadratic(rng.normal(size=d), rng.uniform(-1, 2, d))
    simplex = Case(
        mescal.Problem(f, {}, sets.Simplex()), np.full(d, 1 / d, np.float32), value, gradient, 2.0, onto_simplex
    )
    d = 20_000 // small
    f, value, gradient = quadratic(np.where(np.arange(d) < d // 2, 1.0, -0.5), rng.uniform(1, 3, d))
    box = Case(
        mescal.Problem(f, {}, sets.Box(0.0, 1.0)), np.full(d, 0.5, np.float32), value, gradient, 3.0,
        lambda x: np.clip(x, 0, 1),
    )  # fmt: skip
    d, m = 50, 200 // small
    rows, centre = rng.normal(size=(m, d)) / np.sqrt(d), 2 * rng.normal(size=d)
    f, value, gradient = quadratic(-centre, np.ones(d))
    matrix = jnp.asarray(rows, jnp.float32)
    many = Case(
        mescal.Problem(f, {"rows": E(lambda x: matrix @ x) <= 1.0}), np.zeros(d, np.float32), value, gradient, 1.0,
        None, rows,
    )  # fmt: skip
    return {"ball": ball, "simplex": simplex, "box": box, "rows": many}


SOLVERS = {
    "ball": ("auto", "spider", "null-space"),
    "simplex": ("auto",),
    "box": ("auto", "spider", "null-space"),
    "rows": ("auto", "spider"),
}


def projected_gradient(case: Case) -> tuple[np.ndarray, bool]:
    """x <- P(x - g/L) until it moves no more."""
    assert case.project is not None
    x = case.project(case.x0 + 1e-3 * np.random.default_rng(1).normal(size=case.x0.size) / np.sqrt(case.x0.size))
    started = time.perf_counter()
    while time.perf_counter() - started < LIMIT:
        moved = case.project(x - case.gradient(x) / case.lipschitz)
        if case.lipschitz * float(np.linalg.norm(moved - x)) <= TOL:
            return moved, True
        x = moved
    return x, False


def scipys(case: Case, method: str) -> tuple[np.ndarray, bool]:
    """SLSQP or trust-constr on the linear inequalities."""
    assert case.rows is not None
    start, rows = np.asarray(case.x0, np.float64), case.rows
    if method == "SLSQP":
        limits: Any = {"type": "ineq", "fun": lambda x: 1 - rows @ x, "jac": lambda x: -rows}
    else:
        limits = LinearConstraint(rows, -np.inf, 1.0)
    found = minimize(case.value, start, jac=case.gradient, method=method, constraints=limits)
    return found.x, bool(found.success)


def run(quick: bool) -> Report:
    """Seconds, objective, and what is known of the point."""
    report = Report({"tolerance": TOL, "limit_seconds": LIMIT, "clock": "wall"})
    for name, case in cases(quick).items():
        for solver in SOLVERS[name]:
            started = time.perf_counter()
            result = mescal.minimize(case.problem, case.x0, solver=solver, tol=TOL, max_seconds=LIMIT)
            report.add(
                "seconds",
                case=name,
                d=case.x0.size,
                method=solver,
                seconds=time.perf_counter() - started,
                compiling=result.seconds.compile,
                judging=result.seconds.certificate,
                objective=float(result.objective),
                outcome=result.status.name.lower(),
            )
        peers: dict[str, Callable[[], tuple[np.ndarray, bool]]] = {}
        if case.project is not None:
            peers["projected gradient, numpy"] = lambda case=case: projected_gradient(case)
        if case.rows is not None:
            for method in ("SLSQP", "trust-constr"):
                peers[f"{method}, scipy"] = lambda case=case, method=method: scipys(case, method)
        for peer, solve in peers.items():
            started = time.perf_counter()
            x, done = solve()
            seconds = time.perf_counter() - started
            judged = mescal.certify(case.problem, x.astype(np.float32), tol=TOL)
            report.add(
                "seconds", case=name, d=case.x0.size, method=peer, seconds=seconds, objective=float(case.value(x)),
                outcome=f"{'stopped' if done else 'limit'}; {'certified' if judged.passes(TOL) else 'not certified'} by our judge",
            )  # fmt: skip
    return report
