"""The one contract of negative-curvature searches.

    search(z, tolerance t, p_fail) -> a unit direction u, or nothing
    with probability >= 1 - p_fail:  u found => u'Hu <= -t/2;   nothing => lambda_min(H) >= -t

H is the Hessian of the oracle at z, restricted to the span of the face of X on which z lies. Where it is restricted to another
subspace, {v : v_i = 0 off free, rows v = 0}, the oracle is one `Within` it: the subspace is data, so that one program serves all of
them, and a curved boundary adds its diagonal to the Hessian there.

The paper writes three contracts that do not agree; callers translate (SG-HV-NC: t = eH, Natasha2: t = eH/3, SPIDER: t = 2 eH/3).

A search may look at `batch` thetas together and no more; the contract needs a batch on which the curvature of a direction
is known to about t/12 (128 (s_H/t)^2 ln(4d/p) thetas are enough, see `theory`), or the whole population. With less, the
best estimate decides and no probability is promised.
"""

import abc
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..checks import check_options
from ..oracle import Exact, Lagrangian, Work
from ..registry import by_name, classes, make
from .critical import Subspace

GROUPS = 8  # independent groups of fresh samples from which the error of a curvature is estimated
SURE = 3.0  # standard errors (of 8 groups) that a curvature must clear: one-sided failure 1 % by Student's t
ENOUGH = 5 / 8  # of the tolerance: where an estimate that is not sure is cut; t/8 above it a direction is still valid
GROWTH = 4  # factor by which a batch that does not decide grows


class Found(eqx.Module):
    """What a search returns: a direction (zero if there is none), its curvature, and whether it is negative curvature.

    `curvature` is the curvature of `direction` on fresh samples; where nothing was found, the smallest that was seen.
    """

    direction: jax.Array
    curvature: jax.Array
    negative: jax.Array


class Known(eqx.Module):
    """What a plan of a theory mode knows of a subproblem, as arrays: constants, a failure probability, Oja's theorem for them."""

    gradient_lipschitz: jax.Array
    hessian_noise: jax.Array
    hessian_lipschitz: jax.Array
    failure: jax.Array
    runs: jax.Array
    steps: jax.Array
    step_size: jax.Array
    verification_batch: jax.Array
    threshold: jax.Array


class Search(eqx.Module):
    """Settings of a negative-curvature search."""

    name: ClassVar[str]

    def __check_init__(self):
        check_options(self, below_one=("failure",))

    @staticmethod
    def named(name: str) -> "Search":
        """The search of that name, with its defaults: every complete class in this folder has one."""
        known = by_name(classes(__package__ or "", Search))
        return make("search", name, known, {}, "use 'lanczos' if in doubt")

    @abc.abstractmethod
    def __call__(
        self, oracle: Lagrangian, z: jax.Array, tolerance: jax.Array, key: jax.Array, batch: jax.Array
    ) -> tuple[Found, Work]:
        """Search at z; `batch` is the number of thetas that may be looked at together."""

    def told(self, known: Known | None) -> "Search":
        """Itself with what a plan knows of the present subproblem: constants move with the penalty."""
        return self

    def finer(self, share: float, failure: float) -> "Search":
        """As an eigen-solver: within `share` of the tolerance of the lowest, but for `failure`, and measured to a sixteenth."""
        return self


def nothing(z: jax.Array) -> Found:
    """Before anything was seen."""
    return Found(jnp.zeros_like(z), jnp.zeros((), z.dtype), jnp.asarray(False))


def random_direction(oracle: Lagrangian, z: jax.Array, key: jax.Array) -> jax.Array:
    """A unit vector, uniform on the sphere of the face of z; zero where the face is a point."""
    return unit(oracle.project_face(z, jax.random.normal(key, z.shape, z.dtype)))


def unit(v: jax.Array) -> jax.Array:
    """v / |v|, and 0 for 0."""
    return v / jnp.maximum(jnp.linalg.norm(v), jnp.finfo(v.dtype).tiny)


def limit(oracle: Lagrangian, batch: jax.Array) -> jax.Array:
    """The largest batch: what the caller allows, the population where that is less."""
    return jnp.asarray(batch if oracle.population is None else jnp.minimum(batch, oracle.population), jnp.int32)


def enlarged(n: jax.Array, missing: jax.Array, cap: jax.Array) -> jax.Array:
    """The next batch after one of n whose error was `missing` times too large: at least fourfold, at most the cap."""
    size = n.astype(missing.dtype)
    wanted = jnp.fmax(size * missing**2, GROWTH * size)  # NaN counts as nothing
    return jnp.where(wanted < cap, wanted, 0).astype(jnp.int32) + jnp.where(wanted < cap, 0, cap)


def no_values(oracle: Lagrangian, z: jax.Array) -> Any:
    """A place for the exact values at z; None on a stream, which has none."""
    if oracle.population is None:
        return None
    shapes = jax.eval_shape(lambda: oracle.exact(z)[0])
    return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)


def hessian_product(
    oracle: Lagrangian, z: jax.Array, at: Exact | None, v: jax.Array, key: jax.Array, n: jax.Array
) -> tuple[jax.Array, Work]:
    """H v within the face of z, from n thetas; exact where n reaches the population, with the exact values `at` z."""
    whole = oracle.population
    if at is None or whole is None:
        product, work = oracle.symmetric_hvp(z, v, key, n)
    else:
        product, work = jax.lax.cond(
            n >= whole, lambda: oracle.exact_hvp(z, v, at), lambda: oracle.symmetric_hvp(z, v, key, n)
        )
    return on_face(oracle, z, v, product), work


def spread(values: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Mean of one value per group, and its standard error."""
    return jnp.mean(values), jnp.std(values, ddof=1) / jnp.sqrt(jnp.asarray(values.size, values.dtype))


class Within(eqx.Module):
    """The oracle with the subspace for its face at every point; in all else it is the oracle's own."""

    oracle: Lagrangian
    free: jax.Array
    rows: jax.Array  # orthonormal and zero off `free`, or zero
    bending: jax.Array

    @classmethod
    def of(cls, oracle: Lagrangian, space: Subspace, bending: np.ndarray, most: int, dtype: Any) -> "Within":
        """With room for `most` rows."""
        rows = np.zeros((most, space.free.size))
        rows[: len(space.rows)] = space.rows
        return cls(oracle, space.free, rows.astype(dtype), bending.astype(dtype))  # pyright: ignore[reportArgumentType]

    def project_face(self, z: jax.Array, v: jax.Array) -> jax.Array:
        """Projection onto the subspace."""
        inside = jnp.where(self.free, v, 0)
        return inside - (self.rows @ inside) @ self.rows

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("oracle", "free", "rows", "bending"):
            raise AttributeError(name)
        return getattr(self.oracle, name)


def on_face(oracle: Any, z: jax.Array, v: jax.Array, product: jax.Array) -> jax.Array:
    """The part of H v on the face of z, with what a curved boundary adds to it."""
    bent = product + oracle.bending * v if isinstance(oracle, Within) else product
    return oracle.project_face(z, bent)
