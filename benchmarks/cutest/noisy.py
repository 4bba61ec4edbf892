"""A CUTEst problem with noise: min E[f(x) + sigma xi'x]  s.t.  E[c(x) + sigma (zeta + Z x)] = 0,  low <= x <= high.

xi, zeta and Z are standard Gaussian and drawn afresh: the noise has mean zero, so that the minimisers are those of the
problem without noise, and it moves gradients as well as values. With sigma = 0 all terms are deterministic. The average
over N draws is f(x) + sigma xi_N'x and c(x) + sigma (zeta_N + Z_N x) with entries of deviation 1/sqrt(N).
"""

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import mescal
from mescal import E
from mescal.problems.noise import gaussian

from . import source

PICKED = Path(__file__).with_name("picked.json")


@dataclass(frozen=True, eq=False)
class Instance:
    """A problem of the collection, flat: functions of x, start, bounds and the number of equations."""

    name: str
    objective: Callable[[Any], jax.Array]
    equations: Callable[[Any], jax.Array]
    x0: np.ndarray
    low: np.ndarray
    high: np.ndarray
    m: int

    @property
    def n(self) -> int:
        """The number of variables."""
        return self.x0.size

    @property
    def unbounded(self) -> bool:
        """Whether no variable has a bound."""
        return not (np.isfinite(self.low).any() or np.isfinite(self.high).any())

    @property
    def domain(self) -> mescal.sets.ConvexSet:
        """The box of its bounds."""
        if self.unbounded:
            return mescal.sets.Reals()
        return mescal.sets.Box(self.low, self.high)

    @functools.cached_property
    def exact(self) -> mescal.Problem:
        """Without noise: what every answer is judged on."""
        return self._problem(E(self.objective), E(self.equations))

    def noisy(self, sigma: float) -> mescal.Problem:
        """With fresh noise for every sample."""
        if sigma == 0:
            return self.exact
        return self._problem(
            E(lambda x, xi: self.objective(x) + xi @ x, over=gaussian(sigma, (self.n,), role="objective")),
            E(
                lambda x, noise: self.equations(x) + noise[0] + noise[1] @ x,
                over=gaussian(sigma, (self.m,), (self.m, self.n), role="equations"),
            ),
        )

    def average(self, sigma: float, draws: int, seed: int) -> mescal.Problem:
        """The average over that many draws, as a deterministic problem."""
        if sigma == 0:
            return self.exact
        rng, scale = np.random.default_rng([seed, self.n, self.m]), sigma / np.sqrt(draws)
        xi, zeta = scale * rng.standard_normal(self.n), scale * rng.standard_normal(self.m)
        z = scale * rng.standard_normal((self.m, self.n))
        return self._problem(
            E(lambda x: self.objective(x) + jnp.dot(xi.astype(x.dtype), x)),
            E(lambda x: self.equations(x) + zeta.astype(x.dtype) + jnp.dot(z.astype(x.dtype), x)),
        )

    def _problem(self, objective, equations) -> mescal.Problem:
        return mescal.Problem(objective, {"equations": equations == 0} if self.m else {}, self.domain)


def names() -> tuple[str, ...]:
    """The picked problems."""
    return tuple(row["name"] for row in picked())


def picked() -> list[dict[str, Any]]:
    """Name, module, kind and sizes of the picked problems."""
    return json.loads(PICKED.read_text())["problems"]


@functools.cache
def load(name: str) -> Instance:
    """A picked problem."""
    return instance(name, next(row["module"] for row in picked() if row["name"] == name))


def instance(name: str, module: str) -> Instance:
    """Any problem of the collection that has no inequalities but bounds."""
    problem = source.make(name, module)
    leaves, tree = jax.tree.flatten(problem.y0)
    shapes = [np.shape(leaf) for leaf in leaves]
    cuts = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]

    def unflatten(x):
        parts = jnp.split(x, cuts)
        return jax.tree.unflatten(tree, [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)])

    def objective(x):
        return jnp.asarray(problem.objective(unflatten(x), problem.args), x.dtype).reshape(())

    def equations(x):
        rows = problem.constraint(unflatten(x))[0] if hasattr(problem, "constraint") else None
        parts = [jnp.ravel(jnp.asarray(leaf, x.dtype)) for leaf in jax.tree.leaves(rows)]
        return jnp.concatenate(parts) if parts else jnp.zeros(0, x.dtype)

    start = _flat(problem.y0)
    bounds = getattr(problem, "bounds", None)
    low, high = (np.full(start.size, -np.inf), np.full(start.size, np.inf)) if bounds is None else map(_flat, bounds)
    low, high = np.broadcast_to(low, start.shape), np.broadcast_to(high, start.shape)
    m = jax.eval_shape(equations, jnp.asarray(start, jnp.float32)).shape[0]
    x0 = np.clip(start, low, high)
    return Instance(name, objective, equations, x0, low, high, m)


def _flat(tree: Any) -> np.ndarray:
    return np.concatenate([np.ravel(np.asarray(leaf, np.float64)) for leaf in jax.tree.leaves(tree)])
