"""The second-order model of the augmented Lagrangian at a reset, for solvers that multiply by the Hessian.

    q(d) = g.d + d'Hd/2,     H = (grad^2 f + w.grad^2 c of a sub-sample) + al J'J,     w = lam + al c

w and J are those of the reset: al J'J is exact and costs nothing, and only the curvature of f and c is sub-sampled. (Where
no pass gives J, that of the sub-sample takes its place.) Steps are taken

1. on the face that a projected gradient step from z ends on. What that step does across the face is kept: bounds are
   met and left as in two-metric projection (Bertsekas 1982);
2. in scaled slacks: their block of H is al times a diagonal, in these units a quarter of the smoothness in x;
3. with slacks that answer to where x goes, by the linearised constraint.

A sub-sample is made of blocks, each linearised once (`oracle.linearised`), so that products are cheap and a sub-sample
that turns out too small grows by further blocks.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ...oracle import Lagrangian, Work
from ...oracle.linearised import linearised_block, linearised_whole, linearised_work
from ...oracle.subproblem import Seen
from ..move import best_slack, gradient_step, slack_curvature

MOST_BYTES = 256 << 20  # of all blocks together
SLACK_SHARE = (
    1 / 4
)  # of the smoothness in x: with all of it, the largest eigenvalue seen could never fall below the last one


class Blocks(eqx.Module):
    """Linearised blocks, stacked: the leaves of all, the structure of one."""

    leaves: list[jax.Array]
    structure: Any = eqx.field(static=True)

    def __getitem__(self, i: jax.Array) -> Callable[[jax.Array], jax.Array]:
        return jax.tree.unflatten(self.structure, [leaf[i] for leaf in self.leaves])


class Model(eqx.Module):
    """g and what H is made from, on a face, in the units of steps."""

    oracle: Lagrangian
    reset: Seen
    landed: jax.Array  # a point of the face
    across: jax.Array  # the part of every move that leaves the face of z
    unit: jax.Array  # of every variable
    gradient: jax.Array
    key: jax.Array
    batch: int | None = eqx.field(static=True)  # thetas of a block; None: all rows, in one
    capacity: int = eqx.field(static=True, default=1)  # blocks

    def whole(self) -> tuple[Callable[[jax.Array], jax.Array], Work]:
        """All rows, linearised."""
        gram = self.reset.jacobian is None
        once, _ = linearised_work(self.oracle, None)
        return linearised_whole(self.oracle, self.reset.z, self.reset.multipliers, gram), once

    def empty(self) -> "Blocks":
        """A place for the blocks."""
        one = jax.eval_shape(lambda: self._block(jnp.int32(0)))
        leaves, structure = jax.tree.flatten(one)
        return Blocks([jnp.zeros((self.capacity, *leaf.shape), leaf.dtype) for leaf in leaves], structure)

    def fill(self, blocks: "Blocks", first: jax.Array, last: jax.Array) -> tuple["Blocks", Work]:
        """Blocks with first .. last drawn and linearised."""
        once, _ = linearised_work(self.oracle, self.batch)

        def body(i, state):
            leaves, work = state
            new = jax.tree.leaves(self._block(i))
            return [every.at[i].set(one) for every, one in zip(leaves, new, strict=True)], work + once

        leaves, work = jax.lax.fori_loop(first, last, body, (blocks.leaves, Work.zero()))
        return Blocks(leaves, blocks.structure), work

    def product(self, of: Any, first: jax.Array, last: jax.Array, v: jax.Array) -> tuple[jax.Array, Work]:
        """H v with the mean over the blocks first .. last, or on all rows."""
        inside = self.oracle.project_face(self.landed, self.unit * v)
        _, each = linearised_work(self.oracle, self.batch)
        if not isinstance(of, Blocks):
            product, work = of(inside), each
        else:

            def body(i, state):
                total, work = state
                return total + of[i](inside), work + each

            total, work = jax.lax.fori_loop(first, last, body, (jnp.zeros_like(v), Work.zero()))
            product = total / (last - first).astype(v.dtype)
        jacobian = self.reset.jacobian
        if jacobian is not None:
            product = product + self.oracle.penalty * ((jacobian @ inside) @ jacobian)
        return self.unit * self.oracle.project_face(self.landed, product), work

    def point(self, step: jax.Array) -> jax.Array:
        """Where a step leads, in X."""
        moved = self.oracle.project(self.reset.z + self.across + self.unit * step)
        if self.reset.jacobian is None:
            return moved
        constraint = self.reset.constraint + self.reset.jacobian @ (moved - self.reset.z)
        return best_slack(self.oracle, moved, constraint)

    def _block(self, i: jax.Array) -> Any:
        assert self.batch is not None
        gram = self.reset.jacobian is None
        start = i * self.batch
        return linearised_block(self.oracle, self.reset.z, self.reset.multipliers, gram, self.key, start, self.batch)


def make_model(
    oracle: Lagrangian,
    reset: Seen,
    smoothness: jax.Array,
    trust: jax.Array,
    key: jax.Array,
    batch: int | None,
    most: int = 1,
) -> Model:
    """The model at a reset, from at most `most` blocks of `batch` thetas; from all rows where `batch` is None."""
    landed = gradient_step(oracle, reset.z, reset.gradient, smoothness, trust)
    across = landed - reset.z
    across = across - oracle.project_face(landed, across)
    slack = jnp.sqrt(SLACK_SHARE * smoothness / slack_curvature(oracle)) * jnp.ones(
        oracle.form.program.layout.slack_size, smoothness.dtype
    )
    unit = oracle.form.join(jnp.ones_like(oracle.form.split(reset.z)[0]), slack)
    inside = unit * oracle.project_face(landed, reset.gradient)
    model = Model(oracle, reset, landed, across, unit, inside, key, batch)
    if batch is None:
        return model
    leaves = jax.tree.leaves(jax.eval_shape(lambda: model._block(jnp.int32(0))))
    size = sum(int(np.prod(leaf.shape)) * leaf.dtype.itemsize for leaf in leaves)
    capacity = max(2, min(most, MOST_BYTES // max(1, size)))
    return Model(oracle, reset, landed, across, unit, inside, key, batch, capacity)
