"""Variance of the gradient per evaluation of C and its gradient, per draw of zeta, per second: pair, cross, ustat.

Each number is (trace of the covariance of one estimate) x (what the estimate cost), which does not depend on the batch once
it is large: smaller is better, and a ratio of two is the ratio of costs at equal accuracy. Evaluations are those that the
oracle counts: values of C plus gradients of C, per row of C. The conclusion is computed from the table.
"""

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.datasets import load_breast_cancer

import mescal
from mescal import E
from mescal.oracle.surrogates import surrogates

from ._measure import Report, interleave
from ._problems import lagrangian_of, neyman_pearson

BATCHES = (4, 64)
TIMED_STEPS = 100
COSTS = ("evaluation", "zeta", "second")  # what decides
ALL_COSTS = (*COSTS, "theta")  # a theta of pair and cross holds two zetas, one of ustat holds one
TABLE = "variance of the gradient x cost"


def run(quick: bool) -> Report:
    """All surrogates on all problems and batches, then the verdict."""
    draws, batches = (400, BATCHES[:1]) if quick else (20_000, BATCHES)
    report = Report({"draws": draws, "batches": list(batches), "timed_steps": TIMED_STEPS})
    problems = {"scalar": _scalar(), "breast cancer": _breast_cancer(), "vector, m = 5": _vector()}
    for name, (problem, x, multiplier, penalty) in problems.items():
        for n in batches:
            oracles = {rule: lagrangian_of(problem, x, rule, multiplier, penalty) for rule in surrogates()}
            seconds = interleave({rule: _timed(*oracle, n) for rule, oracle in oracles.items()}, 3 if quick else 9)
            for rule, (oracle, z) in oracles.items():
                variance = _variance(oracle, z, n, draws)
                tally = oracle.gradient(z, jax.random.key(0), n)[1].tally()
                constraints = oracle.form.constraints
                evaluations = (tally.constraint_values + tally.constraint_gradients) / constraints
                step = float(np.median(seconds[rule])) / TIMED_STEPS
                report.add(
                    TABLE,
                    problem=name,
                    batch=n,
                    surrogate=rule,
                    variance=variance,
                    evaluations=int(evaluations),
                    zetas=n * oracle.surrogate.draws,
                    microseconds=1e6 * step,
                    per_evaluation=variance * evaluations,
                    per_zeta=variance * n * oracle.surrogate.draws,
                    per_second=variance * step,
                    per_theta=variance * n,
                )
    _conclude(report)
    return report


def _conclude(report: Report):
    """How much dearer than the best each surrogate is, by cost: geometric means over problems and batches."""
    rows = report.tables[TABLE]
    cases = sorted({(row["problem"], row["batch"]) for row in rows})
    means: dict[str, dict[str, float]] = {}
    for rule in surrogates():
        means[rule] = {}
        for cost in ALL_COSTS:
            relative = []
            for case in cases:
                here = {r["surrogate"]: r[f"per_{cost}"] for r in rows if (r["problem"], r["batch"]) == case}
                relative.append(here[rule] / min(here.values()))
            means[rule][cost] = float(np.exp(np.mean(np.log(relative))))
            means[rule][f"worst_{cost}"] = max(relative)
        report.add("cost at equal accuracy, relative to the best surrogate of each case", surrogate=rule, **means[rule])
    winners = {cost: min(surrogates(), key=lambda rule, cost=cost: means[rule][cost]) for cost in ALL_COSTS}
    overall = min(surrogates(), key=lambda rule: float(np.prod([means[rule][cost] for cost in COSTS])))
    by_cost = ", ".join(f"per {cost} {winner}" for cost, winner in winners.items())
    report.conclusions.append(f"Least cost at equal accuracy: {by_cost}. Overall, and so the default: {overall}.")
    for cost in ALL_COSTS:
        lost = [
            f"{row['problem']} at batch {row['batch']}"
            for row in rows
            if row["surrogate"] == overall
            and row[f"per_{cost}"]
            > 1.05 * min(r[f"per_{cost}"] for r in rows if (r["problem"], r["batch"]) == (row["problem"], row["batch"]))
        ]
        if lost:
            report.conclusions.append(f"Where {overall} is more than 5 % from the best per {cost}: {'; '.join(lost)}.")


def _variance(oracle, z, n: int, draws: int) -> float:
    """The trace of the covariance of one gradient estimate."""

    @jax.jit
    def estimates(oracle, z):
        keys = jax.random.split(jax.random.key(7), draws)
        return jax.lax.map(lambda key: oracle.gradient(z, key, n)[0], keys, batch_size=min(draws, 500))

    return float(np.asarray(estimates(oracle, z), np.float64).var(axis=0, ddof=1).sum())


def _timed(oracle, z, n: int):
    """Steps of a compiled loop on batches of a traced size, as solvers run them."""

    @jax.jit
    def program(oracle, z, n):
        def step(i, carry):
            return carry - 1e-6 * oracle.gradient(carry, jax.random.fold_in(jax.random.key(1), i), n)[0]

        return jax.lax.fori_loop(0, TIMED_STEPS, step, z)

    return lambda: program(oracle, z, jnp.int32(n)).block_until_ready()


def _scalar():
    """f = 0, c(x) = E[zeta x - 1], zeta ~ N(1, 1), at x = 2, lam = 0.3, al = 4."""
    zeta = mescal.Sampler(lambda key: 1 + jax.random.normal(key))
    problem = mescal.Problem(E(lambda x: 0.0 * x[0]), {"c": E(lambda x, z: z * x[0] - 1, over=zeta) == 0})
    return problem, np.array([2.0], np.float32), 0.3, 4.0


def _breast_cancer():
    """Neyman-Pearson on scikit-learn's breast-cancer data, standardised, rows of unit norm, at a random point."""
    rows, labels = load_breast_cancer(return_X_y=True)
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    x = np.random.default_rng(5).normal(size=rows.shape[1]).astype(np.float32)
    return neyman_pearson(rows[labels == 1], rows[labels == 0]), x, 0.3, 4.0


def _vector():
    """A quadratic objective and five random quadratic constraints in ten variables, over 500 rows each."""
    rng = np.random.default_rng(6)
    m, d, size = 5, 10, 500
    rows = {
        "A": (rng.normal(size=(size, m, d)) + 0.5).astype(np.float32),
        "b": rng.normal(size=(size, m)).astype(np.float32),
        "q": (rng.normal(size=(size, m)) + 0.3).astype(np.float32),
    }
    problem = mescal.Problem(
        E(lambda x, a: 0.5 * jnp.sum((x - a) ** 2), over=rng.normal(size=(size, d)).astype(np.float32)),
        {"c": E(lambda x, r: r["A"] @ x - r["b"] + r["q"] * (x @ x) / 2, over=rows) == 0},
    )
    return problem, rng.normal(size=d).astype(np.float32) / 2, 0.3, 4.0
