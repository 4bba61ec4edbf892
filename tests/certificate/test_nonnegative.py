"""Nonnegative least squares: the optimality conditions on random, dependent and degenerate problems."""

import numpy as np

from mescal.certificate.rows import NonnegativeLeastSquares


def problems(rng, count):
    for trial in range(count):
        n, k = int(rng.integers(1, 12)), int(rng.integers(1, 15))
        A = rng.standard_normal((n, k)) if trial % 3 else rng.integers(-1, 2, (n, k)).astype(float)
        if trial % 5 == 0 and k > 2:
            A[:, 1], A[:, 2] = A[:, 0], -A[:, 0]
        A = np.concatenate([A[:, np.linalg.norm(A, axis=0) > 0], np.eye(n)[:, :1]], axis=1)
        A = A / np.linalg.norm(A, axis=0)
        b = rng.standard_normal(n) if trial % 4 else A @ rng.integers(0, 2, A.shape[1]).astype(float)
        if trial % 7 == 0:
            b = 1e-7 * rng.standard_normal(n) - A.sum(axis=1)
        yield A, b


def check(A, b, mu):
    scale = max(float(np.linalg.norm(b)), 1e-300)
    slope = A.T @ (b - A @ mu)
    assert mu.min(initial=0.0) >= 0
    assert slope.max(initial=0.0) <= 1e-12 * scale
    assert np.abs(slope[mu > 0]).max(initial=0.0) <= 1e-12 * scale


def test_optimality_conditions():
    rng = np.random.default_rng(1)
    for A, b in problems(rng, 600):
        check(A, b, NonnegativeLeastSquares(A).solve(b))


def test_active_set_alone_is_optimal_too():
    rng = np.random.default_rng(2)
    for A, b in problems(rng, 300):
        check(A, b, NonnegativeLeastSquares(A)._active_set(b, 1e-13 * float(np.linalg.norm(b))))


def test_targets_that_are_orthogonal_to_columns_up_to_rounding():
    """Points on a face, as projections meet them: scipy.optimize.nnls 1.17.1 is wrong on the first by 0.98 |b|."""
    first = np.array(
        [
            [0.8284051911678317, -0.4044634979595409, -0.24232129947669456],
            [-0.4646237205911671, 0.8871719496706713, -0.1976369472548584],
            [0.3128412337116214, 0.2221153090983878, -0.9498526332540782],
        ]
    )
    check(first, b := np.array([-0.8342058560945, -0.4574269139307814, 0.3079954676117882]), solved(first, b))
    rng = np.random.default_rng(4)
    for n, k in ((3, 3), (4, 6), (8, 8), (20, 30)):
        for _ in range(50):
            A = rng.standard_normal((n, k))
            A = A / np.linalg.norm(A, axis=0)
            held = np.linalg.qr(A[:, : n // 2])[0]
            b = rng.standard_normal(n)
            check(A, b := b - held @ (held.T @ b), solved(A, b))


def solved(A, b):
    return NonnegativeLeastSquares(A).solve(b)


def test_projection_of_points_next_to_the_cone():
    """Vectors that miss the cone by 1e-6 of their length, with many conditions nearly tight."""
    rng = np.random.default_rng(3)
    rows = np.linalg.qr(rng.standard_normal((120, 120)))[0][:60] + 0.02 * rng.standard_normal((60, 120))
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    solver = NonnegativeLeastSquares(rows.T)
    for _ in range(20):
        inside = solver.residual(rng.standard_normal(120))
        near = inside + 1e-6 * rng.standard_normal(120)
        point = solver.residual(near)
        assert (rows @ point).max() <= 1e-12
        assert abs(point @ (near - point)) <= 1e-12
        assert np.linalg.norm(point - near) <= np.linalg.norm(inside - near)
