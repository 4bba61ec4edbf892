"""What a closed convex set X must be able to do: P_X(x), P_{T_X(x)}(v), and tell which constraints x touches.

For the judge, a tangent cone is given by its inequalities: {d : d_i >= 0, d_j <= 0, E d = 0, A d <= 0}.
"""

import abc
import dataclasses
from collections.abc import Iterable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PyTree

from ..errors import InputError, InputTypeError
from .arrays import norm, shown


@dataclasses.dataclass(frozen=True, eq=False)
class TangentCone:
    """T_X(x) over the flattened x (the order of `jax.flatten_util.ravel_pytree`), in float64 on the host.

    **Arguments:**

    - `lower`: coordinates with d_i >= 0.
    - `upper`: coordinates with d_i <= 0; one in both is fixed, d_i = 0.
    - `equalities`: orthonormal rows of E, E d = 0.
    - `inequalities`: unit rows of A, A d <= 0: the outer normals of the other active boundaries.
    - `curvature`: of each of these boundaries at x: 1/R for a ball, 0 where flat.
    - `support`: the coordinates that each boundary bends in, by default all; a `Product` needs it, where the ball
        of one block does not bend in the others.
    """

    lower: Bool[np.ndarray, " n"]
    upper: Bool[np.ndarray, " n"]
    equalities: Float[np.ndarray, "p n"]
    inequalities: Float[np.ndarray, "q n"]
    curvature: Float[np.ndarray, " q"]
    support: Bool[np.ndarray, "q n"] = None  # pyright: ignore[reportAssignmentType]

    def __post_init__(self):
        if self.support is None:
            object.__setattr__(self, "support", np.ones(self.inequalities.shape, bool))

    @classmethod
    def whole(cls, size: int) -> "TangentCone":
        """All of space, in `size` dimensions."""
        nowhere, rows = np.zeros(size, bool), np.zeros((0, size))
        return cls(nowhere, nowhere, rows, rows, np.zeros(0))

    @classmethod
    def join(cls, cones: Iterable["TangentCone"]) -> "TangentCone":
        """The product of the cones, in the order given."""
        cones = tuple(cones)
        if not cones:
            return cls.whole(0)
        return cls(
            np.concatenate([cone.lower for cone in cones]),
            np.concatenate([cone.upper for cone in cones]),
            _block_diagonal(cone.equalities for cone in cones),
            _block_diagonal(cone.inequalities for cone in cones),
            np.concatenate([cone.curvature for cone in cones]),
            _block_diagonal(cone.support for cone in cones) > 0,
        )

    @property
    def size(self) -> int:
        """The dimension of the space."""
        return self.lower.size

    def bending(self, multipliers: Float[np.ndarray, " q"]) -> Float[np.ndarray, " n"]:
        """The diagonal D that curved boundaries add to the Hessian, sum_k multiplier_k curvature_k |d|^2 = d'D d.

        **Arguments:**

        - `multipliers`: one for each row of `inequalities`, >= 0, with -gradient = A' multipliers + the rest.
        """
        return (multipliers * self.curvature) @ self.support

    def contains(self, d: Float[np.ndarray, " n"], tolerance: float = 0.0) -> bool:
        """Whether `d` breaks no inequality and no equality by more than `tolerance`."""
        broken = (-d[self.lower], d[self.upper], np.abs(self.equalities @ d), self.inequalities @ d)
        return all(np.all(part <= tolerance) for part in broken)

    def project(self, v: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """The nearest direction of the cone, v - G'y with y = argmin_{y >= 0} |v - G'y| in the null space of E."""
        from scipy.optimize import nnls  # here, and not above: few cones are projected onto, and it imports much

        one_sided = np.concatenate(
            [-np.eye(self.size)[self.lower & ~self.upper], np.eye(self.size)[self.upper & ~self.lower]]
        )
        basis = _null_space(np.concatenate([self.equalities, np.eye(self.size)[self.lower & self.upper]]))
        rows = np.concatenate([one_sided, self.inequalities]) @ basis
        w = basis.T @ v
        return basis @ (w - rows.T @ nnls(rows.T, w)[0]) if rows.size else basis @ w

    def project_lineality(self, v: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """The nearest direction of the largest linear subspace of the cone, where every inequality is an equality."""
        bounds = np.eye(self.size)[self.lower | self.upper]
        basis = _null_space(np.concatenate([bounds, self.equalities, self.inequalities]))
        return basis @ (basis.T @ v)


class ConvexSet(eqx.Module):
    """A nonempty closed convex set X of pytrees of real arrays (`None` leaves are skipped).

    `project`, `project_tangent`, `project_face` and `contains` can be compiled, mapped and differentiated;
    `tangent_cone` and `check` run on the host. Numbers that define the set are array leaves in float64, cast to the
    dtype of x where they are used: another value never recompiles, and no precision is lost under `jax.enable_x64`.

    Which constraints x touches is decided in the precision of x, exactly where projecting is exact (bounds) and to a
    few units of rounding where it is not (norms, inner products). A point computed in float32 must therefore be
    handed over in float32: the vector v may be wider, and the answer has the dtype of v.
    """

    @abc.abstractmethod
    def project(self, x: PyTree) -> PyTree:
        """The nearest point of X, argmin_{y in X} |y - x|, with the structure, shapes and dtypes of `x`."""

    @abc.abstractmethod
    def project_tangent(self, x: PyTree, v: PyTree) -> PyTree:
        """The nearest direction of the tangent cone, argmin_{d in T_X(x)} |d - v|.

        **Arguments:**

        - `x`: a point of X; project first, activity is not decided with a tolerance.
        - `v`: a pytree with the structure and shapes of `x`.
        """

    @abc.abstractmethod
    def project_face(self, x: PyTree, v: PyTree) -> PyTree:
        """Orthogonal projection of `v` onto the lineality space of T_X(x), the directions d with d and -d in T_X(x)."""

    @abc.abstractmethod
    def tangent_cone(self, x: PyTree) -> TangentCone | None:
        """T_X(x) by its inequalities, on the host in float64 over the flattened `x`; `None` where it is not known."""

    @abc.abstractmethod
    def check_fit(self, x: PyTree) -> None:
        """Raises `InputError` if `x` has not the shape that the set is made for. Called by `check`."""

    @classmethod
    @abc.abstractmethod
    def examples(cls) -> tuple[tuple["ConvexSet", PyTree], ...]:
        """Pairs of a set and a point of the right structure (its values do not matter) for the conformance suite."""

    def renewed(self) -> "ConvexSet":
        """The same set for a new problem: a function in it is held anew, since what it reads may have changed."""
        return self

    def contains(self, x: PyTree, tolerance: float | None = None) -> Bool[Array, ""]:
        """Whether |x - P_X(x)| <= `tolerance`, by default 1e-6 max(1, |x|), which float32 can meet."""
        distance = norm(jax.tree.map(jnp.subtract, x, self.project(x)))
        return distance <= (1e-6 * jnp.maximum(1, norm(x)) if tolerance is None else tolerance)

    def check(self, x: PyTree) -> None:
        """Raises `InputError` if `x` is not a pytree of real floating-point arrays that fits the set."""
        leaves = jax.tree.leaves(x)
        if not leaves:
            raise InputError(
                "a point without any array",
                "a pytree with at least one floating-point array",
                "give the parameters as an array or as a pytree of arrays",
            )
        for leaf in leaves:
            kind = getattr(leaf, "dtype", None)
            if kind is None or not jnp.issubdtype(kind, np.floating):
                raise InputTypeError(
                    f"a point with a leaf of type {type(leaf).__name__ if kind is None else kind}",
                    "floating-point arrays only",
                    "convert it with jnp.asarray(leaf, float), or take what is not a parameter out of the point",
                )
        self.check_fit(x)

    def __repr__(self) -> str:
        fields = (shown(getattr(self, field.name)) for field in dataclasses.fields(self))
        return f"{type(self).__name__}({', '.join(fields)})"


def _block_diagonal(blocks: Iterable[np.ndarray]) -> np.ndarray:
    blocks = tuple(blocks)
    whole = np.zeros(np.sum([block.shape for block in blocks], axis=0), np.result_type(*blocks))
    row = column = 0
    for block in blocks:
        height, width = block.shape
        whole[row : row + height, column : column + width] = block
        row, column = row + height, column + width
    return whole


def _null_space(rows: np.ndarray) -> np.ndarray:
    """An orthonormal basis, in columns, of the directions that all rows annihilate."""
    from scipy.linalg import null_space

    return null_space(rows) if rows.shape[0] else np.eye(rows.shape[1])
