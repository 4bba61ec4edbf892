"""The promised success probabilities, 1/2, 5/8 and 2/3, on a subproblem with known constants; and boosting to 0.95.

Runs are independent (one seed each) and judged by the exact gradient and Hessian; the promise holds at 95 % confidence by a
one-sided Clopper-Pearson bound. Runs of one solver share one compiled program.
"""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mescal import theory
from mescal.curvature import Neon2, Oja
from mescal.solvers.base import VERIFIED
from mescal.theory.natasha2 import FreeConstants
from mescal.theory.success import lower_bound

PROMISED = {"spider": 1 / 2, "sg-hv-nc": 5 / 8, "natasha2": 2 / 3}


def test_the_constants_are_what_they_are_said_to_be(subproblem):
    """Over all samples, on a grid of one period in u and in v: everything is a sum of a function of each."""
    constants, (along_u, along_v) = subproblem.constants, subproblem.sampled()
    largest = [np.abs(part).max(axis=(0, 2)) for part in (along_u, along_v)]  # per order of derivative
    noise = [np.abs(part - part.mean(axis=0)).max(axis=(0, 2)) for part in (along_u, along_v)]
    assert 0.5 < max(part[1] for part in largest) <= constants.gradient_lipschitz
    assert 0.9 < max(part[2] for part in largest) <= constants.hessian_lipschitz
    assert 0.07 < np.hypot(*(part[0] for part in noise)) <= constants.gradient_noise
    assert 0.08 < max(part[1] for part in noise) <= constants.hessian_noise
    assert 0.28 < subproblem.gap() <= constants.gap


def test_the_exact_measures_are_those_of_the_oracle(subproblem, key):
    """Mean of 2^14 sampled gradients and products at one point, within 5 standard errors."""
    z = jnp.asarray([0.4, 0.7], jnp.float32)
    run = eqx.filter_jit(
        lambda o, n: (o.gradient(z, key, n)[0], jax.vmap(lambda v: o.hvp(z, v, key, n)[0])(jnp.eye(2)))
    )
    gradient, hessian = (np.asarray(part, np.float64) for part in run(subproblem.oracle, jnp.int32(2**14)))
    assert np.linalg.norm(gradient) == pytest.approx(subproblem.gradient(z), abs=5 * 0.1 / 2**7)
    lowest = np.linalg.eigvalsh((hessian + hessian.T) / 2)[0]
    assert lowest == pytest.approx(subproblem.curvature(z), abs=5 * 0.1 / 2**7)
    assert not subproblem.good(subproblem.start)
    assert subproblem.curvature(subproblem.start) < -0.3


def successes(subproblem, solver, seeds, gradient=0.1, curvature=0.3):
    plan = subproblem.plan(solver, gradient, curvature)
    points = [subproblem.solve(solver, plan, seed).progress for seed in seeds]
    assert all(int(point.status) == VERIFIED for point in points)
    return sum(subproblem.good(point.z, gradient, curvature) for point in points)


@pytest.mark.parametrize(
    ("name", "runs", "gradient", "curvature"),
    [("spider", 5, 0.1, 0.3), ("sg-hv-nc", 20, 0.15, 0.35), ("natasha2", 13, 0.2, 0.3)],
)
def test_a_few_runs(subproblem, solvers, name, runs, gradient, curvature):
    """5 runs prove 1/2 if all succeed, 17 of 20 prove 5/8, and 12 of 13 prove 2/3.

    SG-HV-NC returns a random iterate, one in 20 of which lies before the escape (57 of 60 in the long test); with other
    seeds this test fails with probability 0.02. The long test has the smaller tolerances for all three.
    """
    assert not subproblem.good(subproblem.start, gradient, curvature)
    good = successes(subproblem, solvers[name], range(runs), gradient, curvature)
    assert lower_bound(good, runs) >= PROMISED[name], f"{good} of {runs}"


@pytest.mark.slow
@pytest.mark.parametrize("name", PROMISED)
def test_success_frequency(subproblem, solvers, name):
    runs = 60
    good = successes(subproblem, solvers[name], range(1000, 1000 + runs))
    print(f"{name}: {good} of {runs}")
    assert lower_bound(good, runs) >= PROMISED[name]


@pytest.mark.slow
@pytest.mark.parametrize("name", PROMISED)
def test_success_with_the_searches_of_the_paper(subproblem, solvers, name):
    """Neon2 for SPIDER, Oja's method for the others, in their runnable forms."""
    constants = subproblem.constants
    known = {"gradient_lipschitz": constants.gradient_lipschitz, "hessian_noise": constants.hessian_noise}
    search = (
        Neon2(**known, hessian_lipschitz=constants.hessian_lipschitz)
        if name == "spider"
        else Oja(**known, failure=1e-5)
    )
    runs = 20
    good = successes(subproblem, dataclasses.replace(solvers[name], search=search), range(runs))
    print(f"{name}: {good} of {runs}")
    assert lower_bound(good, runs) >= PROMISED[name]


def test_free_constants_of_one_leave_natasha2_where_it_is(subproblem, knowing_solvers):
    """c_B = ... = 1 with s_g = eps_g: B' = 1, so that an epoch ends at its start, and only SGD3SC moves."""
    solver = dataclasses.replace(
        knowing_solvers["natasha2"], free=FreeConstants(batch=1.0, sub_epochs=1.0, iterations=1.0, final_steps=1.0)
    )
    plan = subproblem.plan(solver)
    assert int(plan.epoch.inner_steps) == 1
    start = np.array([1.0, 1.0], np.float32)
    plan = eqx.tree_at(lambda p: p.pairs, subproblem.plan(knowing_solvers["natasha2"]), plan.pairs)
    plan = eqx.tree_at(lambda p: p.epoch, plan, subproblem.plan(solver).epoch)
    state = subproblem.begin(knowing_solvers["natasha2"], plan, 0, z=start)
    state = subproblem.advance(knowing_solvers["natasha2"], state, plan, int(plan.pairs))
    assert int(state.pairs) == int(plan.pairs)
    np.testing.assert_array_equal(state.progress.z, start)


# --- boosting ---------------------------------------------------------------------------------------------------------

TARGET, GRADIENT, CURVATURE = 0.95, 0.1, 0.4


@eqx.filter_jit
def verify(search, oracle, z, key, gradients, tolerance, batch):
    """The norm of a fresh gradient, and whether a search finds negative curvature."""
    key_gradient, key_search = jax.random.split(key)
    found, _ = search(oracle, z, tolerance, key_search, batch)
    return jnp.linalg.norm(oracle.gradient(z, key_gradient, gradients)[0]), found.negative


def boosted(subproblem, solver, plan, boost, seed):
    """The first of R copies that passes the verification (or the last); and whether the first copy alone was good."""
    search = theory.negative_curvature.lanczos(
        subproblem.constants, boost.search_tolerance, boost.verification_failure, dimension=2
    )
    first, z = False, None
    for copy in range(boost.copies):
        z = subproblem.solve(solver, plan, 100 * seed + copy).progress.z
        first = first or (copy == 0 and subproblem.good(z, boost.gradient_tolerance, boost.curvature_tolerance))
        norm, negative = verify(
            solver.search, subproblem.oracle, z, jax.random.key(100 * seed + copy + 50),
            jnp.int32(boost.verification_batch), jnp.float32(boost.search_tolerance), jnp.int32(search.batch),
        )  # fmt: skip
        if norm <= boost.accept and not negative:
            break
    return subproblem.good(z, GRADIENT, CURVATURE), first


@pytest.mark.slow
@pytest.mark.parametrize("name", ["spider", "sg-hv-nc", "short natasha2"])
def test_boosting(subproblem, solvers, name):
    """95 runs prove 0.95 with one failure. A Natasha2 with c_N = 2 succeeds about 4 times in 5 and is lifted.

    At 4 in 5 the boosted runs, of 4 copies each, fail with probability 0.002, two of 95 of them with probability 0.01.
    """
    short = dataclasses.replace(solvers["natasha2"], free=FreeConstants(iterations=2.0))
    solver = short if name.startswith("short") else solvers[name]
    base = PROMISED[name.removeprefix("short ")]
    boost = theory.boost(subproblem.constants, GRADIENT, CURVATURE, TARGET, base)
    plan = subproblem.plan(solver, boost.gradient_tolerance, boost.curvature_tolerance)
    outcomes = np.array([boosted(subproblem, solver, plan, boost, seed) for seed in range(1, 96)])
    good, alone = outcomes.sum(axis=0)
    print(f"{name}: {good} of 95 boosted, {alone} alone")
    assert lower_bound(int(good), 95) >= TARGET
    assert lower_bound(int(alone), 95) >= base
    if name.startswith("short"):
        assert 1 - lower_bound(95 - int(alone), 95) < TARGET  # one copy is below 0.95, by the same bound from above
