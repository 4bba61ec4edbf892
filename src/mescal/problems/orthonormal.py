"""Two leading eigenvectors: min E[-(a'u)^2 - (a'v)^2/2]/2  s.t.  E[(|u|^2 - 1, |v|^2 - 1, u'v) + noise] = 0.

The weighted trace maximisation over X = (u, v), d x 2 with X'X = I; unequal weights make minimisers isolated. Samples
are a = sqrt(s) r, r independent random signs, with s = 1, 0.6, 0.2, and then 0.2/k^2 for k = 2, 3, ... Minimisers are
(+-e1, +-e2), with objective -(1 + 0.6/2)/2. The start, (e1, e3), is stationary with exactly one way down: v can turn
to e2, with curvature (0.2 - 0.6)/2 = -0.2.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from ..problem import E, Problem, Sampler
from .named import Entry, Instance, Parameter
from .noise import SIGMA, gaussian

WEIGHTS = (1.0, 0.5)


def variances(d: int) -> np.ndarray:
    """s."""
    return np.concatenate([[1.0, 0.6], 0.2 / np.arange(1.0, d - 1) ** 2])


def negative_trace(x, a):
    """-((a'u)^2 + (a'v)^2/2) / 2."""
    u, v = (a @ x) ** 2
    return -(WEIGHTS[0] * u + WEIGHTS[1] * v) / 2


def gram(x):
    """(|u|^2 - 1, |v|^2 - 1, u'v)."""
    u, v = x[:, 0], x[:, 1]
    return jnp.stack([u @ u - 1, v @ v - 1, u @ v])


def noisy_gram(x, noise):
    """The constraints, with noise."""
    return gram(x) + noise


@functools.cache
def stream(d: int) -> Sampler:
    """a = sqrt(s) r."""
    deviations = np.sqrt(variances(d))

    def draw(key):
        scale = jnp.asarray(deviations)
        return scale * jax.random.rademacher(key, (d,), scale.dtype)

    return Sampler(draw)


def build(*, d: int, sigma: float) -> Instance:
    """The problem in dimension d."""
    constraint = E(noisy_gram, over=gaussian(sigma, (3,))) if sigma else E(gram)
    axes = np.eye(d)
    return Instance(
        Problem(E(negative_trace, over=stream(d)), {"orthonormal": constraint == 0}),
        axes[:, [0, 2]].astype(np.float32),
        optimum=-(1 + 0.6 / 2) / 2,
        solution=axes[:, [0, 1]],
    )


PROBLEMS = (
    Entry(
        "saddles/orthonormal",
        build,
        "Two leading eigenvectors, kept orthonormal by three equations, started at a saddle",
        {"d": Parameter(10, "the dimension", low=4), "sigma": SIGMA},
    ),
)
