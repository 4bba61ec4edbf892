"""500 points at vertices and on edges of boxes, simplices, half-spaces, products and linear inequalities that are no minimisers.

Half of them are stationary with strong and weak rows and have curvature <= -1/2 on the critical cone; half are vertices and edges
where a row pulls, so that the objective falls along it. None gets a certificate; a strict minimiser made of each does.
"""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E
from tests.solvers.bounded_saddles import KINDS, SIZE, Saddle, saddle

TOLERANCE = 0.01
EACH = 250 // len(KINDS) // 6 + 1  # of a kind and a number of weak rows


def with_objective(case: Saddle, gradient: np.ndarray, hessian: np.ndarray) -> Saddle:
    """The same set and point with another quadratic objective."""
    parts, x0 = isinstance(case.start, tuple), jnp.asarray(case.x0)

    def f(x, g=jnp.asarray(gradient), H=jnp.asarray(hessian)):
        y = (jnp.concatenate(x) if parts else x) - x0
        return g @ y + y @ H @ y / 2

    return replace(case, problem=mescal.Problem(E(f), dict(case.problem.constraints), case.problem.domain))


def active_rows(case: Saddle) -> np.ndarray:
    return case.rows[case.offsets - case.rows @ case.x0 < 1e-6]


def refused(case: Saddle, cone: str | None = None) -> bool:
    found = mescal.certify(case.problem, case.start, tol=TOLERANCE, **({} if cone is None else {"cone": cone}))
    return not found.passes(TOLERANCE)


@pytest.mark.parametrize(
    "kind", ["box", *(pytest.param(kind, marks=pytest.mark.slow) for kind in KINDS if kind != "box")]
)
def test_no_certificate_on_faces(kind):
    wrong = 0
    for weak in range(1, 7):
        for index in range(EACH):
            case = saddle(kind, 100 + index, weak)
            assert refused(case), f"a saddle: {kind} {weak} {index}"
            rng, rows = np.random.default_rng([index, weak]), active_rows(case)
            H = np.eye(SIZE) * rng.uniform(0, 2)
            pulls = rng.uniform(0.5, 2, len(rows))
            pulls[rng.integers(len(rows))] *= -1
            tangent = np.eye(SIZE) - case.equal.T @ case.equal
            falling = with_objective(case, -(pulls @ rows) @ tangent, H)
            assert refused(falling), f"a row that pulls: {kind} {weak} {index}"
            wrong += 2
            strict = with_objective(
                case, -(np.abs(pulls) @ rows), -0.1 * np.eye(SIZE) if len(rows) >= SIZE else H + 0.1
            )
            found = mescal.certify(strict.problem, strict.start, tol=TOLERANCE)
            assert found.passes(TOLERANCE), f"a strict minimiser: {kind} {weak} {index}: {found}"
    assert wrong * len(KINDS) >= 500


def test_the_faults_are_what_they_are_said_to_be():
    """The saddles are stationary, so that curvature alone refuses them."""
    for kind in KINDS:
        case = saddle(kind, 101, 3)
        found = mescal.certify(case.problem, case.start, tol=TOLERANCE)
        assert found.stationarity.upper <= TOLERANCE and found.feasibility.upper <= TOLERANCE
        assert found.curvature.upper <= -0.49 and len(jax.tree.leaves(case.start)) == 1 + (kind == "product")
