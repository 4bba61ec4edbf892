"""Many variables and many constraints: seconds to a certificate, beside projected gradient in numpy, Ipopt and SciPy's solvers.

    ball      min sum w_i x_i^2, w from -1/2 to 2, |x| <= 1, d = 5,000, from the saddle 0
    simplex   min a.x + sum b_i x_i^2 / 2, b from -1 to 2, on the simplex, d = 100,000, from its centre
    box       min a.x + sum w_i x_i^2 / 2 on [0, 1]^d, d = 20,000: 10,000 bounds are active at the end
    rows      min |x - a|^2 / 2 with 200 linear inequalities, d = 50

Projected gradient has the exact Lipschitz constant and gradients by hand in float64; it starts a little off a saddle, which it
could not leave, and stops where |x - P(x - g/L)| L <= tol. It says nothing of curvature. It has no projection onto the 200
inequalities; there SciPy's SLSQP and trust-constr stand beside, with gradients by hand. Ipopt, from the same start, has the sets as
bounds and rows and all derivatives, sparse and exact, from casadi, and its own tolerance: at ours its answers, which lie inside of
bounds, are too far from them. Every answer is judged, those of peers also after one projected gradient step, which puts on
a bound what is near it; the better reading counts. Ours are run twice: the first call compiles, and both hold the certificate.
"""

import importlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from scipy.optimize import LinearConstraint, minimize

import mescal
from mescal import E, sets

from ._measure import Report, chosen, clock

TOL = 0.01
LIMIT = 100.0  # seconds of a run
SECONDS = 30.0  # what the slowest case may take with compiling and certificate


@dataclass(frozen=True)
class Case:
    """A problem, its start, and the same for numpy."""

    problem: mescal.Problem
    x0: np.ndarray
    slope: np.ndarray
    bend: np.ndarray
    project: Callable[[np.ndarray], np.ndarray] | None
    low: float = -np.inf
    high: float = np.inf
    rows: np.ndarray | None = None

    def value(self, x: np.ndarray) -> float:
        """a.x + sum w_i x_i^2 / 2."""
        return float(self.slope @ x + self.bend @ x**2 / 2)

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """Of the same."""
        return self.slope + self.bend * x

    @property
    def lipschitz(self) -> float:
        """Its Lipschitz constant."""
        return float(np.abs(self.bend).max())

    def step(self, x: np.ndarray) -> np.ndarray:
        """P(x - g/L)."""
        assert self.project is not None
        return self.project(x - self.gradient(x) / self.lipschitz)

    @property
    def off_the_saddle(self) -> np.ndarray:
        """The start of methods that could not leave a saddle."""
        noise = np.random.default_rng(1).normal(size=self.x0.size) / np.sqrt(self.x0.size)
        return np.asarray(self.x0, np.float64) + 1e-3 * noise


def onto_simplex(x: np.ndarray) -> np.ndarray:
    """The nearest point of the simplex, by sorting."""
    falling = np.sort(x)[::-1]
    shifts = (np.cumsum(falling) - 1) / np.arange(1, x.size + 1)
    return np.maximum(x - shifts[np.flatnonzero(falling > shifts)[-1]], 0)


def quadratic(a: np.ndarray, w: np.ndarray) -> Any:
    """a.x + sum w_i x_i^2 / 2, for us."""
    slope, bend = jnp.asarray(a, jnp.float32), jnp.asarray(w, jnp.float32)
    return E(lambda x: slope @ x + jnp.sum(bend * x**2) / 2)


def cases(quick: bool) -> dict[str, Case]:
    """All, or small ones of their kind."""
    rng, small = np.random.default_rng(0), 10 if quick else 1
    d = 5_000 // small
    a, w = np.zeros(d), 2 * np.linspace(-0.5, 2, d)
    ball = Case(
        mescal.Problem(quadratic(a, w), {}, sets.Ball(1.0)), np.zeros(d, np.float32), a, w,
        lambda x: x / max(1.0, float(np.linalg.norm(x))),
    )  # fmt: skip
    d = 100_000 // small
    a, w = rng.normal(size=d), rng.uniform(-1, 2, d)
    simplex = Case(
        mescal.Problem(quadratic(a, w), {}, sets.Simplex()), np.full(d, 1 / d, np.float32), a, w, onto_simplex, low=0.0
    )
    d = 20_000 // small
    a, w = np.where(np.arange(d) < d // 2, 1.0, -0.5), rng.uniform(1, 3, d)
    box = Case(
        mescal.Problem(quadratic(a, w), {}, sets.Box(0.0, 1.0)), np.full(d, 0.5, np.float32), a, w,
        lambda x: np.clip(x, 0, 1), low=0.0, high=1.0,
    )  # fmt: skip
    d, m = 50, 200 // small
    rows, a, w = rng.normal(size=(m, d)) / np.sqrt(d), -2 * rng.normal(size=d), np.ones(d)
    matrix = jnp.asarray(rows, jnp.float32)
    many = Case(
        mescal.Problem(quadratic(a, w), {"rows": E(lambda x: matrix @ x) <= 1.0}), np.zeros(d, np.float32), a, w, None,
        rows=rows,
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
    x = case.project(case.off_the_saddle)
    started = time.perf_counter()
    while time.perf_counter() - started < LIMIT:
        moved = case.step(x)
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


def ipopt(casadi: Any, name: str, case: Case) -> tuple[np.ndarray, bool]:
    """Ipopt on the same set, with exact derivatives."""
    d = case.x0.size
    x = casadi.SX.sym("x", d)
    problem = {"x": x, "f": casadi.dot(case.slope, x) + casadi.dot(case.bend, x**2) / 2}
    arguments: dict[str, Any] = {"x0": case.off_the_saddle, "lbx": case.low, "ubx": case.high}
    if name == "ball":
        problem["g"], arguments["ubg"] = casadi.dot(x, x), 1.0
    elif name == "simplex":
        problem["g"], arguments["lbg"], arguments["ubg"] = casadi.sum1(x), 1.0, 1.0
    elif case.rows is not None:
        problem["g"], arguments["ubg"] = casadi.mtimes(casadi.DM(case.rows), x), 1.0
    options = {"print_level": 0, "sb": "yes", "max_wall_time": LIMIT}
    solver = casadi.nlpsol("solver", "ipopt", problem, {"ipopt": options, "print_time": False, "error_on_fail": False})
    found = solver(**arguments)
    return np.asarray(found["x"]).ravel(), bool(solver.stats()["success"])


def peers(name: str, case: Case) -> dict[str, Callable[[], tuple[np.ndarray, bool]]]:
    """Whoever can be given the set."""
    found: dict[str, Callable[[], tuple[np.ndarray, bool]]] = {}
    if case.project is not None:
        found["projected gradient, numpy"] = lambda: projected_gradient(case)
    if case.rows is not None:
        found["SLSQP, scipy"] = lambda: scipys(case, "SLSQP")
        found["trust-constr, scipy"] = lambda: scipys(case, "trust-constr")
    try:
        casadi = importlib.import_module("casadi")
        found["Ipopt, casadi"] = lambda: ipopt(casadi, name, case)
    except ModuleNotFoundError:  # the extra `peers` brings it
        pass
    return found


def run(quick: bool) -> Report:
    """Seconds, objective, and what is known of the point."""
    report = Report({"tolerance": TOL, "limit_seconds": LIMIT})
    ours: dict[str, list[dict[str, Any]]] = {}
    theirs: dict[str, list[dict[str, Any]]] = {}
    for name in chosen(list(all_cases := cases(quick))):
        case = all_cases[name]
        for solver in SOLVERS[name]:
            seconds = []
            for _ in range(2):
                started = clock()
                result = mescal.minimize(case.problem, case.x0, solver=solver, tol=TOL, max_seconds=LIMIT)
                seconds.append(clock() - started)
            row: dict[str, Any] = {
                "case": name, "d": case.x0.size, "method": solver, "seconds": seconds[0], "again": seconds[1],
                "objective": float(result.objective), "outcome": result.status.name.lower(), "judged": result.converged,
            }  # fmt: skip
            ours.setdefault(name, []).append(row)
        for peer, solve in peers(name, case).items():
            started = clock()
            x, done = solve()
            seconds = clock() - started
            readings = [x] if case.project is None else [case.project(x), case.step(x)]
            good = [y for y in readings if mescal.certify(case.problem, y, tol=TOL).passes(TOL)]
            row = {
                "case": name, "d": case.x0.size, "method": peer, "seconds": seconds,
                "objective": case.value((good or readings)[0]), "outcome": "stopped" if done else "limit",
                "judged": bool(good),
            }  # fmt: skip
            theirs.setdefault(name, []).append(row)
        for row in (*ours[name], *theirs[name]):
            report.add("seconds", **row | {"judged": "certified" if row["judged"] else "not certified"})
        report.conclusions.append(sentence(name, ours[name], theirs[name]))
    missed = sum(not row["judged"] for rows in ours.values() for row in rows)
    report.hold("runs of ours without a certificate", missed, 0)
    slowest = max(row["seconds"] for rows in ours.values() for row in rows)
    report.hold("seconds of the slowest of ours, compiling and certificate included", slowest, SECONDS)
    return report


def sentence(name: str, ours: list[dict[str, Any]], theirs: list[dict[str, Any]]) -> str:
    """Who was first in a case, and whose answer the judge refuses."""
    auto = ours[0]
    quick = [row for row in theirs if row["judged"]]
    refused = [row["method"] for row in theirs if not row["judged"]]
    said = f"{name}: auto takes {auto['again']:.2g} s once compiled, certificate included"
    if quick:
        best = min(quick, key=lambda row: row["seconds"])
        said += f"; the fastest peer that the judge certifies, {best['method']}, {best['seconds']:.2g} s"
        gap = (auto["objective"] - best["objective"]) / max(abs(best["objective"]), 1e-300)
        said += f" (auto's objective is {abs(gap):.1e} of it {'higher' if gap > 0 else 'lower'})"
    return said + (f"; not certified: {', '.join(refused)}" if refused else "")
