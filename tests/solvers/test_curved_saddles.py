"""Saddles where weak bounds meet curved constraints, or rows that are stated twice: each is left for a minimiser.

    f(x) = g.y + y'Hy/2 + |y|_4^4/4,   y = x - e_0;   min y'Hy (of the Lagrangian) over the critical cone at e_0 is at most -1/2

`sphere`: |x|^2 = 1, whose multiplier is not zero, and weak bounds; `ball`: |x|^2 <= 1, weak, and weak bounds; `twice`: linear
inequalities, weak, two of them once more in other units. Where a run ends is confirmed by all faces of its critical cone.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import nnls

import mescal
from mescal import E, sets
from tests.solvers.bounded_saddles import least_on_cone

SIZE, FAR, TOL, NOISY = 5, 3.0, 0.01, 0.05
KINDS = ("sphere", "ball", "twice")
PRACTICAL = tuple(name for name in mescal.solvers.names() if mescal.solvers.get(name).mode == "practical")


def saddle(kind, seed, stream=False):
    """The problem, its start e_0, g, H, lower bounds, rows of linear inequalities, and how the quadratic constraint holds."""
    rng, unit = np.random.default_rng([seed, KINDS.index(kind)]), np.eye(SIZE)
    while True:
        H = rng.standard_normal((SIZE, SIZE)).astype(np.float32)
        H, g, weak, A = (H + H.T) / 2, np.zeros(SIZE), int(rng.integers(2, SIZE)), np.zeros((0, SIZE))
        low = np.where((np.arange(SIZE) > 0) & (np.arange(SIZE) <= weak) & (kind != "twice"), 0.0, -FAR)
        rows = -unit[low == 0]
        if kind == "sphere":
            g[0] = rng.choice([-1.0, 0.7])
            lowest = least_on_cone(H - g[0] * unit, unit[:1], rows)  # the multiplier of |x|^2 - 1 is -g_0/2
        else:
            A = np.float32(rng.standard_normal((3, SIZE))).astype(float) if kind == "twice" else A
            extra = unit[:1] if kind == "ball" else A / np.linalg.norm(A, axis=1, keepdims=True)
            lowest = least_on_cone(H, np.zeros((0, SIZE)), np.concatenate([rows, extra]))
        if lowest <= -0.5:
            break
    A = np.concatenate([A, 100 * A[:1], A[1:2] / 100])

    def f(x, noise=0.0, g=jnp.float32(g), H=jnp.float32(H), start=jnp.float32(unit[0])):
        y = x - start
        return g @ y + y @ H @ y / 2 + jnp.sum(y**4) / 4 + 0.1 * jnp.sum(noise * y)

    drawn = mescal.Sampler(lambda key: jax.random.normal(key, (SIZE,)))
    constraints = {
        "sphere": {"sphere": E(lambda x: x @ x) == 1.0},
        "ball": {"ball": E(lambda x: x @ x) <= 1.0},
        "twice": {"rows": E(lambda x, A=jnp.float32(A): A @ (x - jnp.eye(SIZE)[0])) <= np.zeros(len(A))},
    }[kind]
    objective = E(f, over=drawn) if stream else E(lambda x: f(x))
    return mescal.Problem(objective, constraints, sets.Box(low, FAR)), np.float32(unit[0]), g, H.astype(float), low, A


def fault(kind, x, tol, g, H, low, A):
    """What is wrong with x as a minimiser, by least squares for multipliers and all faces; empty if nothing is."""
    y, unit = x - np.eye(SIZE)[0], np.eye(SIZE)
    gradient, hessian = g + H @ y + y**3, H + 3 * np.diag(y**2)
    value, lengths = x @ x - 1, np.linalg.norm(A, axis=1)
    broken = {"sphere": abs(value), "ball": max(value, 0), "twice": (A @ y).max(initial=0)}[kind]
    if broken > 1.01 * tol:
        return f"infeasible by {broken}"
    near = A[A @ y > -1.5 * tol * lengths] / lengths[A @ y > -1.5 * tol * lengths, None]
    normal = (2 * x / np.linalg.norm(2 * x))[None]
    ball = normal[: int(kind == "ball" and value > -1.5 * tol)]
    rows = np.concatenate([-unit[x - low < 1.5 * tol], unit[FAR - x < 1.5 * tol], near, ball])
    equal = normal[: int(kind == "sphere")]
    mu, distance = nnls(np.concatenate([rows, equal, -equal, np.zeros((1, SIZE))]).T, -gradient)
    if distance > 4 * tol:
        return f"not stationary: {distance}"
    pushed = mu[len(rows) - 1] if len(ball) else mu[len(rows)] - mu[len(rows) + 1] if len(equal) else 0.0
    hessian = hessian + pushed * 2 * unit / np.linalg.norm(2 * x)
    strong = mu[: len(rows)] > tol / 2
    lowest = least_on_cone(hessian, np.concatenate([rows[strong], equal]), rows[~strong])
    return "" if lowest >= -2 * tol else f"curvature {lowest}"


def check(kind, solver, seed, stream=False):
    problem, start, *rest = saddle(kind, seed, stream)
    tol = NOISY if stream else TOL
    result = mescal.minimize(problem, start, solver=solver, tol=tol, seed=seed)
    wrong = fault(kind, np.asarray(result.x, np.float64), tol, *rest)
    assert result.converged and not wrong, f"{kind} {solver} {seed}: {wrong}; {result}"


@pytest.mark.parametrize("kind", KINDS)
def test_curved_saddles_are_left(kind):
    problem, start, *rest = saddle(kind, 0)
    assert fault(kind, np.float64(start), TOL, *rest).startswith("curvature")
    assert not mescal.certify(problem, start, tol=TOL).passes(TOL)
    for solver in ("spider", "newton-cg", "null-space"):
        check(kind, solver, 0)


@pytest.mark.slow
@pytest.mark.parametrize("solver", PRACTICAL)
@pytest.mark.parametrize("kind", KINDS)
def test_many_curved_saddles_are_left(kind, solver):
    for seed in range(1, 21):
        check(kind, solver, seed)
    for seed in range(3):
        check(kind, solver, seed, stream=True)
