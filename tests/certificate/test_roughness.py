"""Gram matrices in float32: within their bound, used where they decide, and dropped where they do not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E
from mescal.oracle import evaluator
from mescal.oracle.evaluator import Evaluator, evaluator_of

RNG = np.random.default_rng(7)


def problem_of(rows: np.ndarray, labels: np.ndarray) -> mescal.Problem:
    return mescal.Problem(
        E(lambda x, row: jax.nn.softplus(-row[1] * (row[0] @ x)) + 0.1 * jnp.sin(row[0] @ x), over=(rows, labels)),
        {"rate": E(lambda x, a: jax.nn.sigmoid(a @ x), over=rows[::2]) <= 0.55},
    )


@pytest.fixture
def worth(monkeypatch):
    monkeypatch.setattr(evaluator, "WORTH_ROUGHNESS", 0)


@pytest.fixture
def formed(monkeypatch):
    """Which Hessians were formed: rough ones or not."""
    seen, inner = [], Evaluator.hessian
    monkeypatch.setattr(
        Evaluator,
        "hessian",
        lambda self, x, weight, rough=False: seen.append(rough) or inner(self, x, weight, rough),
    )
    return seen


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_rough_hessian_is_off_by_no_more_than_its_bound(worth, scale, kind):
    """Rows with an offset, so that much cancels; the bound is not a vain one either."""
    rows = (scale * (RNG.normal(size=(5000, 12)) + 3)).astype(kind)
    problem = problem_of(rows, np.sign(RNG.normal(size=5000)).astype(kind))
    x, weight = RNG.normal(size=12) / (12 * scale), np.array([-2.0])
    judge = evaluator_of(problem, problem.bind(x)[0])
    fine, rough = (judge.hessian(x, weight, rough=rough) for rough in (False, True))
    factor = judge.roughness(12)
    assert factor is not None
    bound = judge.hessian_rounding(x, weight)[0].max() * factor
    error = np.linalg.norm(rough - fine, 2)
    assert 0 < error <= bound <= np.linalg.norm(fine, 2)


def test_where_it_decides_no_other_is_formed(worth, formed):
    rows = RNG.normal(size=(3000, 5)).astype(np.float32)
    problem = problem_of(rows, np.sign(rows[:, 0] + RNG.normal(size=3000)).astype(np.float32))
    result = mescal.minimize(problem, np.zeros(5), tol=1e-3)
    assert result.converged
    formed.clear()
    rough = mescal.certify(problem, result.x, tol=1e-3)
    assert formed == [True] and rough.passes(1e-3)
    fine = mescal.certify(problem, result.x)  # no tolerance, nothing to decide
    assert formed == [True, False]
    assert rough.curvature.lower <= fine.curvature.value <= rough.curvature.upper


@pytest.mark.parametrize("way", [1, -1])
def test_where_it_does_not_decide_the_fine_one_does(worth, formed, way):
    """A curvature beside the tolerance, by a tenth of what float32 leaves open."""
    rows = RNG.normal(size=(4000, 3)) + 2
    rows = rows.astype(np.float32)

    def at(shift):
        return mescal.Problem(E(lambda x, a: -jnp.cos(a @ x) - 0.5 * shift * (x @ x), over=rows))

    flat = mescal.certify(at(0.0), np.zeros(3)).curvature.value
    tolerance = mescal.Tolerance(1e-3, 1e-2)
    judge = evaluator_of(at(0.0), at(0.0).bind(np.zeros(3))[0])
    factor = judge.roughness(3)
    assert factor is not None
    gap = 0.1 * factor * judge.hessian_rounding(np.zeros(3), np.zeros(0))[0].max()
    formed.clear()
    found = mescal.certify(at(flat + 1e-2 - way * gap), np.zeros(3), tol=tolerance)
    assert formed == [True, False]
    assert found.passes(tolerance) == (way > 0)
