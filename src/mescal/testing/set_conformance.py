"""The conformance suite of convex sets: the identities that P_X, P_T and the tangent cone must fulfil, on any set.

```python
from mescal.testing.set_conformance import check_set
check_set(MySet(...), np.zeros(5, np.float32))      # an AssertionError names the property that does not hold
```
"""

import contextlib
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, PyTree

from .. import sets
from ..registry import classes
from ..sets import ConvexSet

Batch = Float[np.ndarray, "trials n"]


def find_sets() -> tuple[type[ConvexSet], ...]:
    """Every set in the files of `mescal.sets`, whether its name is listed anywhere or not."""
    return classes(sets.__name__, ConvexSet)


def check_set(set_: ConvexSet, x_like: PyTree, *, trials: int = 12, seed: int = 0) -> None:
    """Checks `set_` on random points and directions, outside, inside and on the boundary.

    Points have lengths from 0.1 to 100 times the root of the dimension: a set far larger than that is seen from its
    inside only. Tolerances are units of rounding of the dtype of `x_like`, times the numbers that were rounded;
    tangent projections of a set without `tangent_cone` may be difference quotients, and are held to their error.

    **Arguments:**

    - `set_`: the set.
    - `x_like`: a pytree of arrays (or of `jax.ShapeDtypeStruct`) with the structure, shapes and dtypes of a point; its
        values do not matter. float64 is checked under `jax.enable_x64`.
    - `trials`: the number of random points.
    - `seed`: of the points.

    **Raises:** `AssertionError`, which names the property that does not hold.
    """
    leaves = jax.tree.leaves(x_like)
    with jax.enable_x64(True) if any(leaf.dtype == np.float64 for leaf in leaves) else contextlib.nullcontext():
        _check_dtypes(set_, x_like)
        probe = _Probe(set_, x_like, trials, seed)
        _check_fit(probe)
        inside = _check_projection(probe)
        _check_tangent(probe, inside)
        _check_face(probe, inside)
        _check_cone(probe, inside)


class _Probe:
    """A set under test: random points, its methods on batches of flat float64 vectors, and how far to trust them."""

    def __init__(self, set_: ConvexSet, x_like: PyTree, trials: int, seed: int):
        self.set_, self.trials = set_, trials
        self.leaves, self.structure = jax.tree.flatten(x_like)
        self.sizes = [int(np.prod(leaf.shape)) for leaf in self.leaves]
        self.size = sum(self.sizes)
        self.eps = max(float(jnp.finfo(leaf.dtype).eps) for leaf in self.leaves)
        self.rng = np.random.default_rng(seed)
        self.known = set_.tangent_cone(self.point(np.zeros(self.size))) is not None
        # A sum of n roundings is of the order of sqrt(n) of them; 64 leaves room for a handful of sums.
        self.tolerance = 64 * self.eps * max(1, self.size) ** 0.5
        # A difference quotient with step h errs by eps/h + h, see Projected.
        self.tangent_tolerance = self.tolerance if self.known else max(30 * self.eps**0.5, 1e-4)
        self.compiled: dict[str, Callable] = {}

    def sample(self) -> Batch:
        """Random points in the precision of the set's points, the first of them 0."""
        lengths = 10 ** self.rng.uniform(-1, 2, (self.trials, 1)) * (np.arange(self.trials) > 0)[:, None]
        return self.flat(self.tree(lengths * self.rng.normal(size=(self.trials, self.size))))

    def directions(self) -> Batch:
        return self.flat(self.tree(self.rng.normal(size=(self.trials, self.size))))

    def tree(self, flat: Batch) -> PyTree:
        parts = np.split(flat, np.cumsum(self.sizes)[:-1], axis=-1)
        shaped = [
            part.reshape(flat.shape[:-1] + leaf.shape).astype(leaf.dtype)
            for part, leaf in zip(parts, self.leaves, strict=True)
        ]
        return self.structure.unflatten(shaped)

    def point(self, flat: Float[np.ndarray, " n"]) -> PyTree:
        return self.tree(flat)

    def flat(self, tree: PyTree) -> Batch:
        leaves = [np.asarray(leaf, np.float64) for leaf in jax.tree.leaves(tree)]
        return np.concatenate([leaf.reshape(leaf.shape[0], -1) for leaf in leaves], axis=1)

    def at(self, x: Batch) -> tuple[Batch, Batch, Batch]:
        """At every point: P(x), whether X contains x, and the gradient of <w, P(x)> for a random w."""
        p, inside, gradient = self._mapped(self._at, "project", self.tree(x), self.tree(self.directions()))
        return self.flat(p), np.asarray(inside), self.flat(gradient)

    def along(self, x: Batch, v: Batch) -> tuple[Batch, Batch]:
        """At every point: the projections of v onto the tangent cone and onto its lineality space."""
        t, f = self._mapped(self._along, "project_tangent and project_face", self.tree(x), self.tree(v))
        return self.flat(t), self.flat(f)

    def require(self, holds: np.ndarray | np.bool | bool, statement: str) -> None:
        holds = np.atleast_1d(holds)
        if not holds.all():
            raise AssertionError(f"{self.set_}: {statement}: broken in {np.sum(~holds)} of {holds.size} trials")

    def near(self, a: Batch, b: Batch, scale: np.ndarray, tolerance: float) -> np.ndarray:
        return _length(a - b) <= tolerance * (1 + scale)

    def _mapped(self, method: Callable, name: str, *trees: PyTree) -> Any:
        if name not in self.compiled:
            self.compiled[name] = jax.jit(jax.vmap(method))
        try:
            return self.compiled[name](*trees)
        except Exception as error:
            raise AssertionError(
                f"{self.set_}: {name} can be compiled, mapped and differentiated: {error!r}"
            ) from error

    def _at(self, x: PyTree, w: PyTree) -> tuple[PyTree, jax.Array, PyTree]:
        def value(x: PyTree) -> tuple[jax.Array, PyTree]:
            p = self.set_.project(x)
            products = jax.tree.map(lambda a, b: jnp.sum(a * b), p, w)
            return jnp.sum(jnp.stack(jax.tree.leaves(products))), p

        gradient, p = jax.grad(value, has_aux=True)(x)
        return p, self.set_.contains(x), gradient

    def _along(self, x: PyTree, v: PyTree) -> tuple[PyTree, PyTree]:
        return self.set_.project_tangent(x, v), self.set_.project_face(x, v)


def _check_dtypes(set_: ConvexSet, x_like: PyTree) -> None:
    """project(x) is like x, and project_tangent(x, v) and project_face(x, v) like v, also where v is wider than x."""

    def like(dtype: type) -> PyTree:
        return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, dtype), x_like)

    def require(name: str, *args: PyTree) -> None:
        expected, what = args[-1], f"{name} at {args[0]}"
        try:
            result = jax.eval_shape(getattr(set_, name), *args)
        except Exception as error:
            raise AssertionError(f"{set_}: {what} can be compiled: {error!r}") from error
        same = jax.tree.structure(result) == jax.tree.structure(expected) and all(
            (a.shape, a.dtype) == (b.shape, b.dtype)
            for a, b in zip(jax.tree.leaves(result), jax.tree.leaves(expected), strict=True)
        )
        if not same:
            raise AssertionError(f"{set_}: {what} keeps structure, shapes and dtypes: got {result}, not {expected}")

    for wide, dtypes in (False, (np.float32,)), (True, (np.float32, np.float64)):
        with jax.enable_x64(wide):
            for dtype in dtypes:
                x = like(dtype)
                require("project", x)
                for v in map(like, dtypes):
                    require("project_tangent", x, v)
                    require("project_face", x, v)


def _check_fit(probe: _Probe) -> None:
    try:
        probe.set_.check(probe.point(np.zeros(probe.size)))
    except Exception as error:
        raise AssertionError(f"{probe.set_}: check accepts a point of the right shape: {error!r}") from error


def _check_projection(probe: _Probe) -> Batch:
    """The identities of P = P_X. Returns points of X, the even ones as projected, the odd ones within."""
    x, tolerance = probe.sample(), probe.tolerance
    p, contains_x, slope = probe.at(x)
    again, contains_p, slope_again = probe.at(p)
    scale = _length(x) + _length(p)
    probe.require(np.isfinite(p).all(1), "project is finite")
    probe.require(probe.near(again, p, scale, tolerance), "project is idempotent, P(P(x)) = P(x)")
    probe.require(contains_p, "contains(project(x)) is true")
    far = _length(x - p) > 1e-5 * (1 + scale)
    probe.require(~contains_x | ~far, "contains(x) is false where x is far from project(x)")

    # Between P(x) and P(0): most often off the boundary, and where not, on it to rounding.
    share = np.where(np.arange(probe.trials) % 2, probe.rng.uniform(0.2, 0.8, probe.trials), 1)[:, None]
    within, _, _ = probe.at(share * p + (1 - share) * p[0])
    both = scale[:, None] + scale
    apart = np.linalg.norm(x[:, None] - x, axis=2)
    moved = np.linalg.norm(p[:, None] - p, axis=2)
    probe.require(moved <= apart + tolerance * (1 + both), "project is nonexpansive, |P(x) - P(y)| <= |x - y|")
    outward, across = x - p, within[None] - p[:, None]
    error = tolerance * (1 + scale)[:, None] * (_length(outward)[:, None] + np.linalg.norm(across, axis=2))
    angle = np.einsum("in,ijn->ij", outward, across)
    probe.require(angle <= error, "the variational inequality <x - P(x), y - P(x)> <= 0 for y in X")

    probe.require(np.isfinite(slope + slope_again).all(1), "the derivative of project is finite")
    return within


def _check_tangent(probe: _Probe, x: Batch) -> None:
    """The identities of P_T, T = T_X(x), with N its polar cone."""
    v, tolerance = probe.directions(), probe.tangent_tolerance
    t, _ = probe.along(x, v)
    scale = _length(v)
    probe.require(np.isfinite(t).all(1), "project_tangent is finite")
    again, _ = probe.along(x, t)
    probe.require(probe.near(again, t, scale, tolerance), "project_tangent is idempotent, P_T(P_T(v)) = P_T(v)")
    longer, _ = probe.along(x, 4 * v)
    probe.require(
        probe.near(longer, 4 * t, 4 * scale, tolerance), "project_tangent is homogeneous, P_T(a v) = a P_T(v) for a > 0"
    )
    nothing, _ = probe.along(x, 0 * v)
    probe.require(np.all(nothing == 0, axis=1), "project_tangent(x, 0) is 0")
    n = v - t
    probe.require(
        np.abs(np.sum(t * n, 1)) <= tolerance * (1 + scale**2),
        "Moreau's decomposition: v = P_T(v) + P_N(v) with <P_T(v), P_N(v)> = 0",
    )
    other, _ = probe.along(x, probe.directions())
    error = tolerance * (1 + scale) * (1 + _length(other))
    probe.require(np.sum(n * other, 1) <= error, "Moreau's decomposition: <v - P_T(v), d> <= 0 for d in T")
    across = x[None] - x[:, None]
    error = tolerance * (1 + scale)[:, None] * (1 + np.linalg.norm(across, axis=2) + _length(x)[:, None])
    probe.require(np.einsum("in,ijn->ij", n, across) <= error, "v - P_T(v) is normal to X: <v - P_T(v), y - x> <= 0")

    # Along a tangent direction X is left at less than first order; 2% of a step is far more than rounding and
    # curvature make of it, and far less than a step across the boundary. Points within may be closer to the boundary
    # than a step and still not on it: only the even ones are asked.
    step = probe.eps**0.5 * np.maximum(1, _length(x)) / np.maximum(_length(t), 1e-3)
    ahead = probe.flat(probe.tree(x + step[:, None] * t))
    left = _length(ahead - probe.at(ahead)[0])
    allowed = 0.02 * step * np.maximum(_length(t), 1e-3) + probe.tolerance / 4 * _length(x)
    probe.require((left <= allowed)[::2], "project_tangent is tangent: x + s P_T(v) is within o(s) of X")


def _check_face(probe: _Probe, x: Batch) -> None:
    """project_face is the orthogonal projection onto a linear subspace of T."""
    v, w, tolerance = probe.directions(), probe.directions(), probe.tolerance
    (_, f), (_, g) = probe.along(x, v), probe.along(x, w)
    scale = _length(v) + _length(w)
    summed = probe.flat(probe.tree(v + 2 * w))
    _, linear = probe.along(x, summed)
    tangent, again = probe.along(x, f)
    probe.require(probe.near(linear, f + 2 * g, scale, tolerance), "project_face is linear")
    probe.require(probe.near(again, f, scale, tolerance), "project_face is idempotent")
    asymmetry = np.abs(np.sum(f * w, 1) - np.sum(v * g, 1))
    probe.require(asymmetry <= tolerance * (1 + scale**2), "project_face is symmetric, <F v, w> = <v, F w>")
    if probe.known:
        backward, _ = probe.along(x, -f)
        both = probe.near(tangent, f, scale, tolerance) & probe.near(backward, -f, scale, tolerance)
        probe.require(both, "the range of project_face and its negative lie in T")


def _check_cone(probe: _Probe, x: Batch) -> None:
    """tangent_cone describes the cone that project_tangent projects onto."""
    if not probe.known:
        return
    v = probe.directions()
    t, f = probe.along(x, v)
    for point, along, tangent, within in zip(x, v, t, f, strict=True):
        cone = probe.set_.tangent_cone(probe.point(point))
        assert cone is not None
        q = len(cone.inequalities)
        shapes = (cone.lower, cone.upper, cone.equalities, cone.inequalities, cone.curvature, cone.support)
        expected = [(probe.size,)] * 2 + [(len(cone.equalities), probe.size), (q, probe.size), (q,), (q, probe.size)]
        probe.require([part.shape for part in shapes] == expected, "the parts of tangent_cone have matching shapes")
        lengths = np.linalg.norm(np.concatenate([cone.equalities, cone.inequalities]), axis=1)
        probe.require(np.abs(lengths - 1) <= probe.tolerance, "the rows of tangent_cone have length 1")
        error = probe.tolerance * (1 + np.linalg.norm(along))
        probe.require(cone.contains(tangent, error), "P_T(v) lies in tangent_cone")
        probe.require(np.linalg.norm(cone.project(along) - tangent) <= error, "tangent_cone and project_tangent agree")
        probe.require(
            np.linalg.norm(cone.project_lineality(along) - within) <= error,
            "project_face reaches all of the lineality space of tangent_cone",
        )


def _length(batch: Batch) -> Float[np.ndarray, " trials"]:
    return np.linalg.norm(batch, axis=-1)
