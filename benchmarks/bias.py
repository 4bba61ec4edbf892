"""Bias in the open: the violation of a noisy equality that same-batch penalty methods reach at batch 16, and ours.

min |x - a|^2 / 2  s.t.  E[zeta'x] = 1,  zeta ~ N(mu, s^2 I), |mu| = 1, in 5 variables. The square of a batch mean has the
expectation c^2 + s^2 |x|^2/n, so a penalty on one batch pulls x towards zero: for a large penalty to the violation
s^2/(n + s^2), and to that of (I + rho (mu mu' + s^2 I/n)) x = a + rho mu for any other; no number of steps removes it.
Multipliers repair the violation and leave the bias in the answer: look at the distance from the solution. Ours draw as few
samples per step, and large batches between steps.
"""

import functools
from dataclasses import dataclass

import jax
import numpy as np

import mescal
from mescal import E

from . import peers
from ._measure import Report
from .harness import Budget, Method, Task
from .harness.ours import Minimizer

BATCH = 16
N = 5
TOL = 0.01
WORK = 5e6  # ours end before, with a certificate
TRAINING = (
    3e5  # samples of a peer, for each rate: its equilibrium is reached long before; the prediction stands beside it
)
PENALTIES = (10.0, 100.0)
MEAN = np.ones(N) / np.sqrt(N)
TARGET = np.arange(N) / 4.0
SPREAD = 0.5  # of zeta: the violation in the limit is 1.5 times the tolerance
RATES = (1e-3, 1e-2)
TABLE = f"a noisy equality at batch {BATCH}, medians over seeds"


@functools.cache
def statement() -> tuple[mescal.Problem, mescal.Problem, np.ndarray]:
    """The problem with its stream, the same without noise, and its solution."""
    mean, target = MEAN.astype(np.float32), TARGET.astype(np.float32)
    stream = mescal.Sampler(lambda key: mean + SPREAD * jax.random.normal(key, (N,)))

    def objective(x):
        return 0.5 * ((x - target.astype(x.dtype)) ** 2).sum()

    noisy = mescal.Problem(E(objective), {"equality": E(lambda x, zeta: zeta @ x, over=stream) == 1.0})
    exact = mescal.Problem(E(objective), {"equality": E(lambda x: MEAN.astype(x.dtype) @ x) == 1.0})
    return noisy, exact, TARGET - (MEAN @ TARGET - 1) * MEAN


def predicted(penalty: float) -> np.ndarray:
    """Where a same-batch penalty of this size has its minimiser."""
    matrix = np.eye(N) + penalty * (np.outer(MEAN, MEAN) + SPREAD**2 * np.eye(N) / BATCH)
    return np.linalg.solve(matrix, TARGET + penalty * MEAN)


@dataclass(frozen=True)
class Entry:
    """A method, what it does, and where its theory says it ends."""

    method: Method
    what: str
    limit: np.ndarray | None = None


def entries() -> list[Entry]:
    """Ours, then the PyTorch peers: pure penalties of two sizes, and their augmented Lagrangians."""
    found = [Entry(_ours(name, solver), "ours, unbiased") for name, solver in OURS.items()]
    trained = [module for module in map(peers.load, ("cooper_alm", "humancompatible")) if module is not None]
    for penalty in PENALTIES:
        for module in trained:
            method = module.penalty_method(penalty, BATCH, RATES)
            found.append(Entry(method, f"same-batch penalty {penalty:g}", predicted(penalty)))
    found += [Entry(module.augmented(BATCH, RATES), "same-batch augmented Lagrangian") for module in trained]
    return found


OURS = {
    "spider": mescal.solvers.Spider(batch=BATCH),
    "sg-hv-nc": mescal.solvers.SgHvNc(batch=BATCH),
    "natasha2": mescal.solvers.Natasha2(batch=BATCH),
}


def _ours(name: str, solver) -> Minimizer:
    def minimize(task: Task) -> mescal.Result:
        return mescal.minimize(
            task.problem, task.x0, solver=solver, tol=task.tol, seed=task.seed, max_work=task.budget.work
        )

    return Minimizer(f"{name}, batch {BATCH}", "ours", minimize)


def run(quick: bool) -> Report:
    """All methods."""
    seeds, work, training = (1, 2e4, 2e4) if quick else (3, WORK, TRAINING)
    report = Report({"batch": BATCH, "n": N, "tol": TOL, "work": work, "training": training, "seeds": seeds})
    report.settings |= {"spread": SPREAD, "peers": peers.versions()}
    noisy, exact, solution = statement()
    memo: dict = {}
    for entry in entries():
        method, violations, distances, used = entry.method, [], [], []
        for seed in range(seeds):
            x0 = np.zeros(N, np.float32)
            budget = Budget(work if method.kind == "ours" else training, 60.0)
            task = Task("noisy equality", noisy, x0, TOL, seed, budget, exact, memo=memo)
            answer = method.solve(task)
            x = np.asarray(answer.x, np.float64)
            violations.append(abs(MEAN @ x - 1))
            distances.append(float(np.linalg.norm(x - solution)))
            used.append(answer.work)
        limit = None if entry.limit is None else abs(float(MEAN @ entry.limit - 1))
        report.add(
            TABLE,
            method=method.name,
            what=entry.what,
            violation=float(np.median(violations)),
            **{"largest violation": max(violations), "violation predicted": limit},
            distance=float(np.median(distances)),
            work=float(np.median(used)),
        )
    largest = max(row["largest violation"] for row in report.tables[TABLE] if row["what"].startswith("ours"))
    report.conclusions.append(
        f"As it grows, a same-batch penalty tends to a violation of {SPREAD**2 / (BATCH + SPREAD**2):.3g}, "
        f"not to zero; the largest of ours is {largest:.2g}."
    )
    if not quick:
        report.hold("largest violation of ours", largest, TOL)
    return report
