"""What each part of practical MESCAL is worth: one part changed at a time, the same budget of evaluations for all.

Parts: the surrogate of the penalty, the slacks' own metric, the descent safeguard, and mini-batches against single samples in
Natasha2. A run ends at a certificate or at the budget; certificates are the judge's in all cases.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import mescal
from mescal import problems
from mescal.oracle import Work, surrogate
from mescal.oracle.subproblem import Subproblem
from mescal.run import setup
from mescal.solvers import Natasha2, SgHvNc, Spider, epoch, spider
from mescal.solvers.move import natural_radius

from ._measure import Report, patched

TABLE = "at equal evaluations, medians over seeds"
PROBLEMS = ("neyman-pearson/spambase", "neyman-pearson/madelon", "fairness/bank", "fairness/loan")
BUDGET = 1e7  # evaluations


def one_step_for_all(oracle, z, gradient, smoothness, trust, *_):
    """A gradient step with one length for parameters and slacks, in the place of `step_with_slacks`."""
    x, _ = oracle.form.split(z)
    radius = trust * natural_radius(x)
    smoothness = jnp.maximum(smoothness, oracle.penalty)  # or the slack block diverges
    length = jnp.minimum(1 / smoothness, radius / jnp.maximum(jnp.linalg.norm(gradient), jnp.finfo(z.dtype).tiny))
    return oracle.project(z - length * gradient), Work.zero()


def _surrogate(name: str) -> Callable[[], Any]:
    return lambda: patched(setup, surrogate=lambda _: surrogate(name))


@contextmanager
def _no_slack_metric() -> Iterator[None]:
    with ExitStack() as stack:
        stack.enter_context(patched(spider, step_with_slacks=one_step_for_all))
        stack.enter_context(patched(Subproblem, settle=lambda sub, z, constraint: z))
        yield


@contextmanager
def _no_descent_test() -> Iterator[None]:
    original = epoch.take_reset

    def take_reset(*args):
        taken, _, work = original(*args)
        return taken, np.inf, work

    with patched(epoch, take_reset=take_reset):
        yield


@contextmanager
def _nothing() -> Iterator[None]:
    yield


VARIANTS: dict[str, tuple[Any, Callable[[], Any]]] = {
    "spider, as it is": (Spider(), _nothing),
    "spider, surrogate pair": (Spider(), _surrogate("pair")),
    "spider, surrogate cross": (Spider(), _surrogate("cross")),
    "spider, one step for parameters and slacks": (Spider(), _no_slack_metric),
    "spider, no descent safeguard": (Spider(), _no_descent_test),
    "sg-hv-nc, as it is": (SgHvNc(), _nothing),
    "natasha2, as it is": (Natasha2(), _nothing),
    "natasha2, single samples": (Natasha2(batch=1, period=2048), _surrogate("pair")),
}


def run(quick: bool) -> Report:
    """Every variant on every problem."""
    names = ("neyman-pearson/breast-cancer",) if quick else PROBLEMS
    tolerances, seeds, budget = ((1e-2,), 1, 1e5) if quick else ((1e-2, 1e-3), 3, BUDGET)
    report = Report({"seeds": seeds, "tolerances": list(tolerances), "budget": budget, "problems": list(names)})
    for name in names:
        named = problems.get(name)
        for variant, (solver, change) in VARIANTS.items():
            jax.clear_caches()  # compiled programs do not see a change of the code
            with change():
                for tol in tolerances:
                    runs = [
                        mescal.minimize(
                            named.problem, named.x0, solver=solver, tol=tol, seed=seed, max_work=budget, max_seconds=300
                        )
                        for seed in range(seeds)
                    ]
                    report.add(TABLE, **_row(named, variant, tol, runs))
    jax.clear_caches()
    return report


def _row(named: problems.NamedProblem, variant: str, tol: float, runs: list[mescal.Result]) -> dict[str, Any]:
    middle = lambda values: float(np.median(list(values)))
    return {
        "problem": named.name,
        "tol": tol,
        "variant": variant,
        "certified": f"{sum(r.converged for r in runs)}/{len(runs)}",
        "total": middle(r.work.total for r in runs),
        "objective": middle(r.objective for r in runs),
        "worst_objective": max(r.objective for r in runs),
        "best_known": named.optimum,
        "relative_stationarity": middle(r.certificate.relative_stationarity.value for r in runs),
        "size_of_x": middle(float(np.linalg.norm(r.x)) for r in runs),
    }
