"""Seconds per step: SPIDER at batch 64 and Natasha1.5 at batch 1, beside numpy doing the same gathers and products.

Numpy draws its indices in one block beforehand, gathers the rows of a batch once, and multiplies them with both points at
once. Steps are those of the solvers' own recursions, with the U-statistic surrogate, secants, trust radius, projection and
counters; numpy does a bare step on the same formulas (at batch 1 without the second sample of the `pair` surrogate).
"""

import jax
import jax.numpy as jnp
import numpy as np

from mescal.oracle import Lagrangian
from mescal.solvers import Natasha2, Spider
from mescal.solvers.base import Goal, Memory

from ._measure import Report, interleave, ratio
from ._problems import lagrangian_of, neyman_pearson, normal_rows, seen_at

STEPS = 512
D = 57
ROWS = (1812, 2788)  # as in spambase
CASES = {  # solver, batch, surrogate (one sample has no U-statistic), and at most this many times the seconds of numpy
    "spider": (Spider(batch=64, period=STEPS), 64, "ustat", 1.0),
    "natasha2": (Natasha2(batch=1, period=STEPS), 1, "pair", 0.2),
}


def run(quick: bool) -> Report:
    """Both solvers, interleaved with numpy."""
    repetitions = 3 if quick else 31
    report = Report({"steps": STEPS, "d": D, "rows": list(ROWS), "repetitions": repetitions})
    positives, negatives = normal_rows(ROWS, D, np.float32)
    problem = neyman_pearson(positives, negatives)
    for name, (solver, batch, rule, at_most) in CASES.items():
        oracle, z = lagrangian_of(problem, np.full(D, 0.01, np.float32), rule)
        taken = _recursion(solver, oracle, z)
        rng = np.random.default_rng(0)
        first, second = (rng.integers(0, rows, size=(STEPS, batch)) for rows in ROWS)
        bare = _spider if name == "spider" else _natasha
        actions = {
            "mescal": taken,
            "numpy": lambda bare=bare, first=first, second=second: bare(positives, negatives, first, second),
        }
        seconds = interleave(actions, repetitions)
        assert int(taken()[1]) == STEPS, "the recursion stopped early"
        factor = ratio(seconds["mescal"], seconds["numpy"])
        report.add(
            "microseconds per step",
            solver=name,
            batch=batch,
            mescal=1e6 * float(np.median(seconds["mescal"])) / STEPS,
            numpy=1e6 * float(np.median(seconds["numpy"])) / STEPS,
            ratio=factor,
        )
        report.hold(f"{name} at batch {batch}: seconds per step to numpy's", factor, at_most)
    return report


def _recursion(solver, oracle: Lagrangian, z: jax.Array):
    """One epoch of `STEPS` steps, none of them stopped by a test."""
    target = solver.plan(Goal(0.0, 0.0, STEPS, oracle.population, 0, 1), z.dtype)
    high = jnp.asarray(1e3, z.dtype)
    memory = Memory(smoothness=high, floor=high, trust=jnp.ones((), z.dtype))  # short steps: the same work throughout

    @jax.jit
    def epoch(oracle, reset, key):
        inner = solver.recurse(oracle, reset, memory, target, key, jnp.int32(STEPS))
        return inner.z, inner.steps

    reset = seen_at(oracle, z)
    key = jax.random.key(0, impl="threefry2x32")
    return lambda: jax.block_until_ready(epoch(oracle, reset, key))


def _sigmoid(t):
    return 1 / (1 + np.exp(-t))


def _gradients(rows_f, rows_c, points, slack):
    """Gradients of the U-statistic augmented Lagrangian at both points (columns) from one batch."""
    n = len(rows_c)
    lam, penalty = np.float32(0.3), np.float32(1.1)
    miss, rate = _sigmoid(rows_f @ points), _sigmoid(rows_c @ points)
    c = rate - np.float32(0.2) + slack
    total = c.sum(0)
    weight = lam + penalty * ((total - c) / (n - 1) if n > 1 else c)  # a second sample's c for n = 1 would cost more
    return rows_f.T @ (-miss * (1 - miss)) / n + rows_c.T @ (weight * rate * (1 - rate)) / n, weight.mean(0)


def _spider(positives, negatives, first, second):
    """g <- g + grad(x+) - grad(x);  x+ = x - g/L, s+ = max(0, s - g_s/al)."""
    x, g, slack, gs = np.full(D, 0.01, np.float32), np.full(D, 0.01, np.float32), np.float32(0), np.float32(0.1)
    for i, j in zip(first, second, strict=True):
        moved, loosened = x - np.float32(1e-3) * g, np.maximum(np.float32(0), slack - gs / np.float32(1.1))
        both, slope = _gradients(positives[i], negatives[j], np.stack([moved, x], 1), np.stack([loosened, slack]))
        g, gs = g + both[:, 0] - both[:, 1], gs + slope[0] - slope[1]
        x, slack = moved, loosened
    return x


def _natasha(positives, negatives, first, second):
    """x <- x - (grad(x) - grad(xr) + mu + 2 iota (x - xh))/L, sub-epochs of 16."""
    reset = np.full(D, 0.01, np.float32)
    x, start, mu = reset, reset, np.full(D, 0.01, np.float32)
    slack, mus = np.float32(0), np.float32(0.1)
    for t, (i, j) in enumerate(zip(first, second, strict=True)):
        start = x if t % 16 == 0 else start
        both, slope = _gradients(positives[i], negatives[j], np.stack([x, reset], 1), np.stack([slack, np.float32(0)]))
        x = x - np.float32(1e-3) * (both[:, 0] - both[:, 1] + mu + np.float32(0.2) * (x - start))
        slack = np.maximum(np.float32(0), slack - (slope[0] - slope[1] + mus) / np.float32(1.1))
    return x
