"""An oracle within a subspace: searches that are compiled look at {v : v_i = 0 off free, rows v = 0} in place of a face.

The subspace is data, so that one program serves all of them; a curved boundary adds its diagonal to the Hessian there.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..oracle import Lagrangian
from .critical import Subspace


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
