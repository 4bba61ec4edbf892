"""The search of a stationary point on a stream: `ConeSearch` with Lanczos, Oja's method and Neon2, under sampling noise."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E, sets
from mescal.certificate.cones import Cone, smallest_on_cone
from mescal.curvature import Lanczos, Neon2, Oja, TheoryOja
from mescal.oracle.subproblem import Seen
from mescal.solvers.searching import search_at
from mescal.theory import negative_curvature
from mescal.theory.constants import SubproblemConstants
from mescal.theory.success import lower_bound
from tests.solvers.conftest import subproblem

SIZE, TOLERANCE, NOISE, FAILURE = 4, 0.3, 0.3, 0.05
BATCH = 4096
LEVELS = (-2.0, -1.05, -1.05, -0.49, 0.3)  # of the tolerance


def quadratic(matrix, free=0):
    """min E[x'(A + 0.3 Z) x]/2 at 0, Z symmetric Gaussian, on x >= 0 but for the last `free` coordinates."""
    drawn = mescal.Sampler(lambda key: jax.random.normal(key, (SIZE, SIZE)) / 2)
    low = np.where(np.arange(SIZE) < SIZE - free, 0.0, -np.inf)
    return mescal.Problem(
        E(lambda x, z, A=jnp.float32(matrix): x @ (A + NOISE * (z + z.T)) @ x / 2, over=drawn),
        {},
        sets.Box(low, np.inf),
    )


def look(problem, search, key, tolerance=TOLERANCE, gradient=None):
    """What a search finds at 0."""
    sub = subproblem(problem, np.zeros(SIZE, np.float32), np.zeros(0), 1.0)
    slope = np.zeros(SIZE) if gradient is None else gradient
    z, none = np.zeros(SIZE, np.float32), np.zeros(0)
    at = Seen(z, 0.0, 0.0, slope, none, none, 0.0, np.inf, np.zeros((0, SIZE)), 0.0)
    return search_at(search, sub, at, tolerance, (1, key), BATCH, 0.01)


def random_case(rng, level, judged):
    values = np.sort(rng.choice([0.0, 0.02, 0.5, 1.0], SIZE))
    basis = np.linalg.qr(rng.standard_normal((SIZE, SIZE)))[0]
    matrix = (basis * values) @ basis.T
    return matrix + (level - smallest_on_cone(matrix, judged).value) * np.eye(SIZE)


def wrong_answers(search, trials, seed):
    """Directions that are infeasible or bend too little, and "nothing" below the tolerance; on x >= 0 with one free coordinate."""
    rng, wrong = np.random.default_rng(seed), []
    judged = Cone.of(SIZE, lower=np.arange(SIZE) < SIZE - 1)
    for trial in range(trials):
        level = LEVELS[trial % len(LEVELS)]
        matrix = random_case(rng, level * TOLERANCE, judged)
        found, _ = look(quadratic(matrix, 1), search, trial)
        if found.direction is None and level < -1:
            wrong.append(("nothing", level, found.curvature))
        elif found.direction is not None:
            u = found.direction
            assert judged.violation(u) <= 1e-6
            if u @ matrix @ u > -TOLERANCE / 2:
                wrong.append(("direction", level, u @ matrix @ u))
    return wrong


def test_lanczos_keeps_the_contract_on_cones():
    """80 cones with 3 sign conditions: at most 5 % of the answers break the contract, shown at 80 % by 80 trials with 1 failure.

    p is 1 % for the start, 1 % each for the Student bounds of a direction and of the noise. Were each answer wrong with
    probability 0.5 %, 2 failures or more would come in 6 % of all seeds; the seed is fixed.
    """
    wrong = wrong_answers(Lanczos(), 80, 3)
    assert lower_bound(80 - len(wrong), 80, 0.8) >= 1 - FAILURE, wrong


@pytest.mark.slow
@pytest.mark.parametrize(
    ("search", "trials", "confidence"),
    [(Lanczos(), 1000, 0.99), (Oja(), 60, 0.8), (Neon2(), 60, 0.8)],
    ids=lambda v: getattr(v, "name", str(v)),
)
def test_every_inner_solver_keeps_the_contract_on_cones(search, trials, confidence):
    """Within 5 %: shown at 99 % by 1,000 cones with at most 34 failures, at 80 % by 60 with at most one, which costs a minute.

    At 2 % each, 35 failures of 1,000 or more come in 0.2 % of all seeds; at 0.5 %, 2 of 60 or more in 4 %.
    """
    wrong = wrong_answers(search, trials, 8)
    assert lower_bound(trials - len(wrong), trials, confidence) >= 1 - FAILURE, wrong


@pytest.mark.parametrize(
    "search", [Lanczos(), Oja(), pytest.param(Neon2(), marks=pytest.mark.slow)], ids=["lanczos", "oja", "neon2"]
)
def test_one_sided_directions(search):
    """-x0 x1 bends down along (1, 1) alone; with a free coordinate one sign condition is void; held rows have no part."""
    both = np.zeros((SIZE, SIZE))
    both[0, 1] = both[1, 0] = -1.0
    found, work = look(quadratic(both), search, 0)
    np.testing.assert_allclose(found.direction, [0.5**0.5, 0.5**0.5, 0, 0], atol=0.1)
    assert work.total > 0
    assert look(quadratic(-both), search, 1)[0].direction is None
    held, _ = look(quadratic(both), search, 2, gradient=np.array([1.0, 0, 0, 0]))
    assert held.direction is None


@pytest.mark.slow
def test_the_lemmas_own_counts():
    """Oja's method with the counts of the lemma, on x0, x1 >= 0: 4 subspaces at p/4 each; absolute constant 1/4."""
    t, p = 1.0, 0.2
    both = np.diag([0.0, 0.0, 0.3, 0.3])
    both[0, 1] = both[1, 0] = -1.2
    constants = SubproblemConstants(
        gradient_lipschitz=1.5, hessian_lipschitz=1.0, gradient_noise=1.0, hessian_noise=0.3, gap=1.0
    )
    plan = negative_curvature.cone_search(constants, t, p, SIZE, weak=2, absolute=0.25)
    assert plan.subspaces == 4 and plan.gap == t / 24
    each = plan.each
    search = TheoryOja(1.5, each.runs, each.steps, each.step_size, each.verification_batch, each.threshold)
    drawn = mescal.Sampler(lambda key: jax.random.rademacher(key, (), jnp.float32))
    domain = sets.Box(np.array([0, 0, -np.inf, -np.inf]), np.inf)
    problem = lambda A: mescal.Problem(
        E(lambda x, s, A=jnp.float32(A): x @ (A + 0.3 * s * jnp.eye(SIZE)) @ x / 2, over=drawn), {}, domain
    )
    found, work = look(problem(both), search, 0, t)
    np.testing.assert_allclose(found.direction, [0.5**0.5, 0.5**0.5, 0, 0], atol=0.15)
    nothing, more = look(problem(-both), search, 1, t)
    assert nothing.direction is None
    assert work.hvps <= more.hvps <= plan.cost.hessian_products * 2
