"""The equality form of a problem:  c(x) + sigma + s = 0,  s >= 0,  in the joint variable z = (x, s).

Objective and constraints may be scaled (a positive number for f, one per row for c), and bounds of inequalities moved inwards by
sigma. These are leaves: they can move without compiling anything. Measures are always reported unscaled.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..sets import ConvexSet
from .program import Program, Rows


class EqualityForm(eqx.Module):
    """A program and its domain, inequalities turned into equalities by slacks."""

    program: Program
    domain: ConvexSet
    objective_scale: Any
    constraint_scale: Any
    inward: Any

    @property
    def size(self) -> int:
        """The number of variables: parameters and slacks."""
        return self.program.parameters.size + self.program.layout.slack_size

    @property
    def constraints(self) -> int:
        """m, the number of scalar constraints."""
        return self.program.layout.size

    def split(self, z: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Parameters and slacks of the joint variable."""
        return z[: self.program.parameters.size], z[self.program.parameters.size :]

    def join(self, x: jax.Array, slack: jax.Array) -> jax.Array:
        """The joint variable."""
        return jnp.concatenate([x, slack.astype(x.dtype)]) if self.program.layout.slack_size else x

    def shift(self, slack: jax.Array) -> jax.Array:
        """What slacks and moved bounds add to c, shape (m,)."""
        return self.program.layout.spread_slack(slack) + jnp.asarray(self.inward, slack.dtype)

    def evaluate(self, z: jax.Array, drawn: tuple[Rows | None, ...], count: int) -> tuple[jax.Array, jax.Array]:
        """Scaled F_i, shape (n,), and scaled C_i + sigma + s, shape (n, m)."""
        x, slack = self.split(z)
        objective, constraints = self.program.evaluate(x, drawn, count)
        return self.scale(objective, constraints + self.shift(slack), z.dtype)

    def lift(self, z: jax.Array, objective, constraint, gradient, jacobian) -> tuple[jax.Array, ...]:
        """f, c, gradient and Jacobian at x, unscaled and without slacks, as those of the scaled form at z."""
        _, slack = self.split(z)
        objective, constraint = self.scale(objective, constraint + self.shift(slack), z.dtype)
        gradient = gradient * jnp.asarray(self.objective_scale, z.dtype)
        rows = jnp.concatenate([jacobian, self._slack_columns(z.dtype)], axis=1) if slack.size else jacobian
        return (
            objective,
            constraint,
            self.join(gradient, jnp.zeros_like(slack)),
            rows * jnp.asarray(self.constraint_scale, z.dtype)[:, None],
        )

    def _slack_columns(self, dtype: Any) -> jax.Array:
        """The derivative of s in the rows of c, shape (m, k)."""
        layout = self.program.layout
        return jnp.asarray(np.eye(layout.size)[:, layout.inequality], dtype)

    def scale(self, objective: jax.Array, constraints: jax.Array, dtype) -> tuple[jax.Array, jax.Array]:
        """Objective and constraints in the solver's units."""
        return objective * jnp.asarray(self.objective_scale, dtype), constraints * jnp.asarray(
            self.constraint_scale, dtype
        )

    def drop(self, weight: jax.Array) -> jax.Array:
        """What a gradient of weight . c has in the slacks, given the weights of the scaled rows."""
        layout = self.program.layout
        scaled = weight * jnp.asarray(self.constraint_scale, weight.dtype)
        return scaled[np.flatnonzero(layout.inequality)]

    def project(self, z: jax.Array) -> jax.Array:
        """Projection onto X x {s >= 0}."""
        x, slack = self.split(z)
        parameters = self.program.parameters
        return self.join(
            parameters.flatten(self.domain.project(parameters.arrays(x))).astype(z.dtype), jnp.maximum(slack, 0)
        )

    def project_tangent(self, z: jax.Array, v: jax.Array) -> jax.Array:
        """Projection of v onto the tangent cone of X x {s >= 0} at z."""
        return self._on_cone(z, v, self.domain.project_tangent, lambda s, w: jnp.where(s <= 0, jnp.maximum(w, 0), w))

    def project_face(self, z: jax.Array, v: jax.Array) -> jax.Array:
        """Projection of v onto the span of the face of X x {s >= 0} on which z lies."""
        return self._on_cone(z, v, self.domain.project_face, lambda s, w: jnp.where(s <= 0, 0, w))

    def _on_cone(self, z, v, on_domain, on_slack) -> jax.Array:
        (x, slack), (vx, vs) = self.split(z), self.split(v)
        arrays = self.program.parameters.arrays
        moved = self.program.parameters.flatten(on_domain(arrays(x), arrays(vx))).astype(v.dtype)
        return self.join(moved, on_slack(slack, vs))


def equality_form(program: Program, domain: ConvexSet) -> EqualityForm:
    """The unscaled equality form."""
    layout = program.layout
    return EqualityForm(program, domain, np.float64(1.0), np.ones(layout.size), np.zeros(layout.size))
