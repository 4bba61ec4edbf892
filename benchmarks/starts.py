"""Several starts: the best of eight beside one, in objective, work and seconds, on madelon and on two moons.

Both are nonconvex: a sigmoid loss of a linear score on noisy data with 500 columns, and a network
with one hidden layer of four on two moons.
"""

import time

import jax
import jax.numpy as jnp
import numpy as np

import mescal
from mescal import E, problems

from ._measure import Report, clock

TABLE = "the best of eight beside one"
EACH = "every start"
COUNT, SEEDS = 8, 3
TOL = mescal.Tolerance(
    1e-4, 1e-4, relative=1e-3
)  # far out the sigmoid is flat, and an absolute tolerance alone is met anywhere
ROWS, NOISE, HIDDEN = 400, 0.25, 4


def moons(rng: np.random.Generator, rows: int, noise: float) -> tuple[np.ndarray, np.ndarray]:
    """Two half circles that reach into each other, with normal noise."""
    angle = rng.uniform(0, np.pi, (2, rows))
    upper = np.stack([np.cos(angle[0]), np.sin(angle[0])], axis=1)
    lower = np.stack([1 - np.cos(angle[1]), 0.5 - np.sin(angle[1])], axis=1)
    return upper + noise * rng.normal(size=upper.shape), lower + noise * rng.normal(size=lower.shape)


def network(seed: int):
    """Two moons: few misses at a rate of false alarms of at most 0.05, and a little decay; the seed draws the first start."""
    positives, negatives = moons(np.random.default_rng(0), ROWS, NOISE)
    rng = np.random.default_rng(seed)
    x0 = {
        "W": rng.normal(size=(HIDDEN, 2)),
        "b": rng.normal(size=HIDDEN),
        "v": rng.normal(size=HIDDEN),
        "c": np.zeros(1),
    }

    def score(p, a):
        return jax.nn.sigmoid(p["v"] @ jnp.tanh(p["W"] @ a + p["b"]) + p["c"][0])

    def decay(p):
        return 1e-4 * sum(jnp.sum(leaf**2) for leaf in p.values())

    objective = E(lambda p, a: 1 - score(p, a), over=positives) + E(decay)
    return mescal.Problem(objective, {"false alarms": E(score, over=negatives) <= 0.05}), x0


def madelon(seed: int):
    """The named problem, from its start; the seed draws the other starts."""
    named = problems.get("neyman-pearson/madelon")
    return named.problem, named.x0


def run(quick: bool) -> Report:
    """One start and eight, over seeds; programs are compiled before."""
    report = Report({"starts": COUNT, "tol": str(TOL), "seeds": 1 if quick else SEEDS, "reach": [1.0, 5.0]})
    makers = {"network": network} if quick else {"madelon": madelon, "network": network}
    for name, make in makers.items():
        problem, x0 = make(0)
        mescal.minimize(problem, x0, tol=TOL, max_seconds=120.0)
        for reach in (1.0,) if quick else (1.0, 5.0):
            for seed in range(1 if quick else SEEDS):
                problem, x0 = make(seed)
                count = 2 if quick else COUNT
                begun, wall = clock(), time.perf_counter()
                best = mescal.minimize(
                    problem, x0, tol=TOL, seed=seed, starts=mescal.Starts(count, reach=reach), max_seconds=600.0
                )
                seconds, wall = clock() - begun, time.perf_counter() - wall
                spread = best.spread
                first, found = spread.tried[0], spread.objectives
                report.add(
                    TABLE,
                    problem=name,
                    reach=reach,
                    seed=seed,
                    objective_of_one=first.objective,
                    objective_of_the_best=best.objective,
                    median_start=float(np.median(found)) if found.size else None,
                    worst_certified=float(found.max()) if found.size else None,
                    certified=f"{spread.certified} of {len(spread.tried)}",
                    distinct=spread.distinct,
                    work_of_one=first.work,
                    work_of_all=best.work.total,
                    seconds_of_one=seconds * first.seconds / wall,
                    seconds_of_all=seconds,
                )
                for k, one in enumerate(spread.tried):
                    told = {"objective": one.objective, "status": one.status.word, "work": one.work}
                    report.add(EACH, problem=name, reach=reach, seed=seed, start=k, **told)
    rows = report.tables[TABLE]
    for name in dict.fromkeys(row["problem"] for row in rows):
        own = [row for row in rows if row["problem"] == name]
        gain = [1 - row["objective_of_the_best"] / row["objective_of_one"] for row in own]
        usual = [1 - row["objective_of_the_best"] / row["median_start"] for row in own if row["median_start"]]
        cost = [row["work_of_all"] / row["work_of_one"] for row in own]
        report.conclusions.append(
            f"{name}: the best of {COUNT} is lower than the first by {100 * np.median(gain):.2g} % in the median of {len(own)} "
            f"(between {100 * min(gain):.2g} and {100 * max(gain):.2g} %), and than the median "
            f"start by {100 * np.median(usual):.2g} %, for {np.median(cost):.2g} times the work of the first."
        )
    return report
