"""Nonnegative least squares: the optimality conditions on random, dependent and degenerate problems."""

import numpy as np

from mescal.certificate.nonnegative import NonnegativeLeastSquares


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
