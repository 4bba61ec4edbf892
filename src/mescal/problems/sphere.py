"""Leading eigenvector: min E[-(a'x)^2]/2  s.t.  E[|x|^2 + noise] = 1, started exactly at a saddle, another eigenvector.

The covariance S = E[aa'] has eigenvalues 1 and (1 - gap)/k^2 for k = 1, ..., d - 1. Every eigenvector is stationary,
with multiplier half its eigenvalue; only the leading one is a minimiser, and an eigenvector with eigenvalue s has
curvature s - 1 <= -gap towards it. The trace is about 2, whatever d is, so that means over streams are soon known well
enough to certify them. Two versions:

- dense: a = Q sqrt(s) r, r independent random signs, Q orthogonal. The start's entries are +-1/sqrt(d), so that
  rounding to float32 changes its length and not its direction.
- axis: a = sqrt(tr S) e_i for a random coordinate i, with probability s_i / tr S. At the start no sample has a
  gradient along the way out.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import InputError
from ..problem import E, Problem, Sampler
from .named import Entry, Instance, Parameter
from .noise import SIGMA, gaussian


def negative_rayleigh(x, a):
    """-(a'x)^2 / 2."""
    return -((a @ x) ** 2) / 2


def squared_length(x):
    """|x|^2."""
    return x @ x


def noisy_squared_length(x, noise):
    """|x|^2 + noise."""
    return x @ x + noise


def eigenvalues(d: int, gap: float) -> np.ndarray:
    """s, in decreasing order."""
    return np.concatenate([[1.0], (1 - gap) / np.arange(1.0, d) ** 2])


@functools.cache
def orthogonal(d: int, start: int) -> np.ndarray:
    """Q: random orthonormal columns, of which the one numbered `start` has entries +-1/sqrt(d)."""
    rng = np.random.default_rng(0)
    signs = np.where(np.arange(d) % 2, -1.0, 1.0)
    basis = np.linalg.qr(np.column_stack([signs, rng.standard_normal((d, d - 1))]))[0]
    basis[:, 0] = signs / np.sqrt(d)
    return np.insert(basis[:, 1:], start, basis[:, 0], axis=1)


@functools.cache
def dense_stream(d: int, start: int, gap: float) -> Sampler:
    """a = Q sqrt(s) r."""
    root = orthogonal(d, start) * np.sqrt(eigenvalues(d, gap))

    def draw(key):
        matrix = jnp.asarray(root)
        return matrix @ jax.random.rademacher(key, (d,), matrix.dtype)

    return Sampler(draw)


@functools.cache
def axis_stream(d: int, gap: float) -> Sampler:
    """a = sqrt(tr S) e_i, i with probability s_i / tr S."""
    values = eigenvalues(d, gap)
    length = float(np.sqrt(values.sum()))

    def draw(key):
        i = jax.random.categorical(key, jnp.log(jnp.asarray(values)))
        return length * jax.nn.one_hot(i, d, dtype=jnp.asarray(values).dtype)

    return Sampler(draw)


def build(version: str, *, d: int, start: int, gap: float, sigma: float) -> Instance:
    """The problem, started at eigenvector number `start`; 0 is the leading one."""
    if start >= d:
        raise InputError(f"start={start} with d={d}", "an eigenvector's number, below d", "choose a smaller start")
    basis = orthogonal(d, start) if version == "dense" else np.eye(d)
    samples = dense_stream(d, start, gap) if version == "dense" else axis_stream(d, gap)
    length = E(noisy_squared_length, over=gaussian(sigma, ())) if sigma else E(squared_length)
    return Instance(
        Problem(E(negative_rayleigh, over=samples), {"length": length == 1}),
        basis[:, start].astype(np.float32),
        optimum=-0.5,
        solution=basis[:, 0].copy(),
    )


def _entry(version: str, which: str) -> Entry:
    return Entry(
        f"saddles/sphere-{version}",
        functools.partial(build, version),
        f"Leading eigenvector of a covariance, from {which} samples, started at another eigenvector",
        {
            "d": Parameter(50, "the dimension", low=3),
            "start": Parameter(1, "the number of the eigenvector to start at; 1 is the second", low=1),
            "gap": Parameter(0.3, "how far the second eigenvalue is below the first, which is 1", low=0.01, high=0.99),
            "sigma": SIGMA,
        },
    )


PROBLEMS = (_entry("dense", "dense"), _entry("axis", "axis-aligned"))
