"""What people use today, on the same problems: the augmented Lagrangian with scipy's L-BFGS-B on full gradients.

Fair best effort: float64, slacks eliminated in closed form, multipliers and penalties as in MESCAL's practical schedule,
warm starts, and its own stopping test on values it has already computed, so that nothing is over-solved.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize

import mescal
from mescal.oracle import Lagrangian, surrogate
from mescal.problem import equality_form
from mescal.solvers.epoch import exact_reset

VERIFY, READY = 0.9, 0.95  # of the tolerance: stationarity and violation that end a solve, as in MESCAL
MEMORY = 10  # pairs, scipy's default
OUTER, INNER = 200, 3000


@dataclass(frozen=True)
class Solved:
    """Where it ended and what it cost."""

    x: np.ndarray
    multipliers: np.ndarray
    slack: np.ndarray
    passes: int
    population: int
    outer: int
    finished: bool

    @property
    def work(self) -> int:
        """Gradients per theta: passes times the size of a pass."""
        return self.passes * self.population


@jax.jit
def _evaluate(oracle: Lagrangian, x: jax.Array):
    """Value and gradient in x at the best slacks, the constraint, and the slacks."""
    form = oracle.form
    reset, _, _ = exact_reset(oracle, form.join(x, jnp.zeros(form.size - x.size, x.dtype)))
    _, slack = form.split(reset.z)
    return reset.value, form.split(reset.gradient)[0], reset.constraint, slack


class LbfgsB:
    """AL + L-BFGS-B on one problem; compiled once."""

    def __init__(self, problem: mescal.Problem, x0: np.ndarray):
        with jax.enable_x64(True):
            self.x0 = np.asarray(x0, np.float64)
            self.form = equality_form(problem.bind(self.x0)[0], problem.domain)
            self.data = problem.device_data(np.float64)
        population = self.form.program.population
        assert population is not None
        self.population = population

    def solve(self, tol: float) -> Solved:
        """To stationarity and feasibility of `tol`; the second order is nobody's business here."""
        with jax.enable_x64(True):
            return self._solve(tol)

    def _solve(self, tol: float) -> Solved:
        x, lam = self.x0, np.zeros(self.form.constraints)
        passes, last = 0, None
        for k in range(OUTER):
            penalty = 1.1 ** (k + 1)
            oracle = Lagrangian(self.form, self.data, jnp.asarray(lam), jnp.asarray(penalty), surrogate("ustat"))
            seen: dict[str, np.ndarray] = {}

            def full(x, oracle=oracle, seen=seen):
                nonlocal passes
                passes += 1
                value, gradient, constraint, slack = (np.asarray(part) for part in _evaluate(oracle, x))
                seen.update(x=np.array(x), gradient=gradient, constraint=constraint, slack=slack)
                return float(value), gradient

            def small(xk, seen=seen):
                if np.array_equal(xk, seen["x"]) and np.linalg.norm(seen["gradient"]) <= VERIFY * tol:
                    raise StopIteration

            options = {"maxiter": INNER, "maxcor": MEMORY, "ftol": 0.0, "gtol": VERIFY * tol / np.sqrt(x.size)}
            x = scipy.optimize.minimize(full, x, jac=True, method="L-BFGS-B", callback=small, options=options).x
            if not np.array_equal(x, seen["x"]):
                full(x)
            violation = np.linalg.norm(seen["constraint"])
            lam = lam + penalty * seen["constraint"]
            last = (x, lam, seen["slack"])
            if violation <= READY * tol and np.linalg.norm(seen["gradient"]) <= tol:
                return Solved(*last, passes, self.population, k + 1, True)
        assert last is not None
        return Solved(*last, passes, self.population, OUTER, False)
