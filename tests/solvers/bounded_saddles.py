"""Random saddles on bounds: a start that is stationary exactly, with k weakly active rows; and minimisers, by all faces.

    f(x) = g.y + y'Hy/2 + |y|_4^4/4,   y = x - x0,   -g = sum over strong rows of mu_i a_i,   mu_i >= 1/2

min y'Hy over the critical cone at x0 is at most -1/2, so x0 is stationary and no minimiser. As a stream, 0.1 xi'y is added.
"""

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy
from scipy.optimize import nnls

import mescal
from mescal import E, sets

SIZE = 6
NOISE = 0.1


@dataclass(frozen=True)
class Saddle:
    """A problem, its start, and X with its constraints as A x <= b, E x = e."""

    problem: mescal.Problem
    start: Any
    x0: np.ndarray
    rows: np.ndarray
    offsets: np.ndarray
    equal: np.ndarray
    gradient: np.ndarray
    hessian: np.ndarray

    def fault(self, x: Any, tol: float) -> str:
        """What is wrong with x as a minimiser to the tolerance, by all faces of its critical cone; empty if nothing is.

        A row is active within 1.5 tol, since constraints are met to tol, and held from multipliers of tol/2 on: the judge holds
        it from tol on, and its multipliers may differ from those of least distance here.
        """
        x = np.concatenate([np.ravel(part) for part in jax.tree.leaves(x)]).astype(np.float64)
        y = x - self.x0
        g, H = self.gradient + self.hessian @ y + y**3, self.hessian + 3 * np.diag(y**2)
        slack = self.offsets - self.rows @ x
        if slack.min(initial=0) < -tol:
            return f"infeasible by {-slack.min()}"
        active = self.rows[slack < 1.5 * tol]
        mu, distance = nnls(np.concatenate([active, self.equal, -self.equal]).T, -g) if len(active) else ([], 0)
        if len(active) == 0:
            distance = np.linalg.norm(g - self.equal.T @ (self.equal @ g))
        if distance > 4 * tol:
            return f"not stationary: {distance}"
        strong = np.asarray(mu[: len(active)]) > tol / 2
        lowest = least_on_cone(H, np.concatenate([active[strong], self.equal]), active[~strong])
        return "" if lowest >= -2 * tol else f"curvature {lowest}"


def least_on_cone(H: np.ndarray, held: np.ndarray, weak: np.ndarray) -> float:
    """min d'Hd over |d| = 1, held d = 0, weak d <= 0: a minimiser is an eigenvector of the span of its face."""
    basis, best = (scipy.linalg.null_space(held) if len(held) else np.eye(len(H))), np.inf
    for size in range(len(weak) + 1):
        for chosen in combinations(range(len(weak)), size):
            rows = weak[list(chosen)] @ basis
            inside = basis @ scipy.linalg.null_space(rows) if len(rows) else basis
            if inside.shape[1] == 0:
                continue
            values, vectors = np.linalg.eigh(inside.T @ H @ inside)
            slopes = weak @ inside @ vectors
            fits = (slopes <= 1e-9).all(axis=0) | (slopes >= -1e-9).all(axis=0)
            best = min(best, float(values[fits].min(initial=np.inf)))
    return best


def box(rng, weak):
    """Weak and strong bounds at both ends, at x0 in the middle of nowhere."""
    x0, low, high = (
        rng.uniform(-0.5, 0.5, SIZE).astype(np.float32).astype(float),
        np.full(SIZE, -3.0),
        np.full(SIZE, 3.0),
    )
    strong = int(rng.integers(0, SIZE - weak)) if weak < SIZE else 0
    mu = np.zeros(2 * SIZE)
    for place, i in enumerate(rng.permutation(SIZE)[: weak + strong]):
        side = rng.integers(2)
        (low, high)[side][i] = x0[i]
        mu[i + SIZE * (1 - side)] = 0.0 if place < weak else rng.uniform(0.5, 2)
    rows, offsets = np.concatenate([np.eye(SIZE), -np.eye(SIZE)]), np.concatenate([high, -low])
    return sets.Box(low, high), x0, rows, offsets, np.zeros((0, SIZE)), mu, {}


def simplex(rng, weak):
    """x0 on a face of the simplex."""
    weak = min(weak, SIZE - 1)
    strong = int(rng.integers(0, SIZE - weak)) if weak < SIZE - 1 else 0
    order, mu, x0 = rng.permutation(SIZE), np.zeros(SIZE), np.zeros(SIZE)
    mu[order[weak : weak + strong]] = rng.uniform(0.5, 2, strong)
    x0[order[weak + strong :]] = np.float32(1 / (SIZE - weak - strong))
    return sets.Simplex(), x0, -np.eye(SIZE), np.zeros(SIZE), np.full((1, SIZE), SIZE**-0.5), mu, {}


def product(rng, weak):
    """A box with weak - 1 active bounds times a half-space with an active row; weak = 1: the half-space alone."""
    half, bounds = SIZE // 2, min(weak - 1, SIZE // 2)
    a = rng.standard_normal(SIZE - half)
    a /= np.linalg.norm(a)
    low = np.full(half, -2.0)
    low[:bounds] = 0
    rows = np.concatenate([-np.eye(SIZE)[:half], np.eye(SIZE)[:half], np.concatenate([np.zeros(half), a])[None]])
    offsets = np.concatenate([-low, np.full(half, 2.0), [0.0]])
    domain = sets.Product(sets.Box(low, np.full(half, 2.0)), sets.HalfSpace(a, 0.0))
    return domain, np.zeros(SIZE), rows, offsets, np.zeros((0, SIZE)), np.zeros(len(rows)), {}


def slacks(rng, weak):
    """Linear inequalities as constraints, all of them active with multiplier 0."""
    A = rng.standard_normal((weak, SIZE))
    A /= np.linalg.norm(A, axis=1, keepdims=True)
    constraint = E(lambda x, A=jnp.asarray(A): A @ x) <= np.zeros(weak)
    return sets.Reals(), np.zeros(SIZE), A, np.zeros(weak), np.zeros((0, SIZE)), np.zeros(weak), {"rows": constraint}


KINDS = {"box": box, "simplex": simplex, "product": product, "slacks": slacks}


def saddle(kind: str, seed: int, weak: int, stream: bool = False) -> Saddle:
    """A random saddle of a kind with that many weakly active rows, or as many as the kind allows."""
    rng = np.random.default_rng([seed, weak, list(KINDS).index(kind)])
    domain, x0, rows, offsets, equal, mu, constraints = KINDS[kind](rng, weak)
    g, active = np.float32(-(mu @ rows)), offsets - rows @ x0 < 1e-6
    while True:
        H = np.float32(rng.standard_normal((SIZE, SIZE)))
        H = (H + H.T) / 2
        if least_on_cone(H, np.concatenate([rows[active & (mu > 0)], equal]), rows[active & (mu == 0)]) < -0.5:
            break
    half, parts = SIZE // 2, kind == "product"

    def f(x, noise=0.0, g=jnp.asarray(g), H=jnp.asarray(H), c=jnp.asarray(np.float32(x0))):
        y = (jnp.concatenate(x) if parts else x) - c
        return g @ y + y @ H @ y / 2 + jnp.sum(y**4) / 4 + NOISE * jnp.sum(noise * y)

    drawn = mescal.Sampler(lambda key: jax.random.normal(key, (SIZE,)))
    objective = E(lambda x, noise: f(x, noise), over=drawn) if stream else E(lambda x: f(x))
    start = np.float32(x0)
    return Saddle(
        mescal.Problem(objective, constraints, domain),
        (start[:half], start[half:]) if parts else start,
        start.astype(float),
        rows,
        offsets,
        equal,
        g.astype(float),
        H.astype(float),
    )
