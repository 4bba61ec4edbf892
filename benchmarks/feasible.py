"""What it costs to meet constraints exactly: `Tolerance(feasibility=0)` beside the plain tolerance, in objective and in work.

The violation is the judge's, with its error added: rounding on data, sampling on streams. Rows are medians over seeds.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import mescal
from mescal import E, Sampler, Tolerance, problems

from ._measure import Report, chosen

DATA = ("neyman-pearson/breast-cancer", "neyman-pearson/spambase", "fairness/bank-tight")
TOLERANCES = {"data": (0.01, 0.001), "stream": (0.05, 0.02)}
LIMIT = 120.0  # seconds of a run


def _score(w, a):
    return jax.nn.sigmoid(a @ w)


def _classes(mean: float) -> Sampler:
    return Sampler(lambda key: mean + jax.random.normal(key, (3,)))


def streams() -> dict[str, tuple[mescal.Problem, np.ndarray]]:
    """A rate of Gaussian classes, and a ball whose radius is noisy."""
    rates = mescal.Problem(
        E(lambda w, a: 1 - _score(w, a), over=_classes(0.5)),
        {"rate": E(_score, over=_classes(-0.5)) <= 0.25},
        mescal.sets.Box(-20.0, 20.0),
    )
    noisy = Sampler(lambda key: jax.random.normal(key, (2,)))
    ball = mescal.Problem(
        E(lambda x, z: jnp.sum((x - 1 - z) ** 2), over=noisy),
        {"size": E(lambda x, z: x @ x + z[0] / 2, over=noisy) <= 0.5},
    )
    return {"stream/rate": (rates, np.zeros(3, np.float32)), "stream/ball": (ball, np.zeros(2, np.float32))}


def run(quick: bool) -> Report:
    """Both tolerances on data and on streams."""
    seeds = range(1) if quick else range(5)
    report = Report({"seeds": len(seeds), "limit_seconds": LIMIT})
    stated: dict[str, tuple[str, Any, Any]] = {
        name: ("data", named.problem, named.x0) for name, named in _named(quick).items()
    }
    stated |= {name: ("stream", problem, x0) for name, (problem, x0) in streams().items()}
    for name in chosen(list(stated)):
        kind, problem, x0 = stated[name]
        for tol in TOLERANCES[kind][: 1 if quick else None]:
            plain, exact = (
                [mescal.minimize(problem, x0, tol=asked, seed=seed, max_seconds=LIMIT) for seed in seeds]
                for asked in (Tolerance(tol, tol), Tolerance(tol, tol, feasibility=0))
            )
            report.add(
                "medians over seeds",
                problem=name,
                tolerance=tol,
                certified=f"{sum(r.converged for r in plain)}/{len(plain)}",
                certified_exactly=f"{sum(r.converged for r in exact)}/{len(exact)}",
                violation=_median([r.certificate.violation.value for r in plain]),
                largest_violation_exactly=max(r.certificate.violation.upper for r in exact),
                objective=_median([r.objective for r in plain]),
                objective_exactly=_median([r.objective for r in exact]),
                work=_median([r.work.total for r in plain]),
                work_exactly=_median([r.work.total for r in exact]),
            )
            report.hold(f"{name} at {tol}: runs without a certificate", sum(not r.converged for r in exact), 0)
            largest = max((r.certificate.violation.upper for r in exact if r.converged), default=np.inf)
            report.hold(f"{name} at {tol}: largest violation", largest, 0)
    return report


def _named(quick: bool) -> dict[str, Any]:
    return {name: problems.get(name) for name in DATA[: 1 if quick else None]}


def _median(values: list[float]) -> float:
    return float(np.median(values))
