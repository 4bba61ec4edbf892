"""Exact values on finite populations: f, c, their derivatives, and Hessian-vector products, streamed in chunks.

f = f0 + sum_k mean over the rows of source k,   c likewise;   grad L = grad f + J'(lam + al c)
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ..problem import EqualityForm, Rows
from .batch import masked, sum_over_rows
from .memory import chunk_bytes

# The Jacobian is accumulated row by row in one pass while a source feeds at most this many outputs; above, values come
# first and a second pass pulls back one weighted row. Equal arithmetic at two: one forward and two pulls against
# two forwards and one pull, the second forward costing a pass over the data; measured, see benchmarks/oracle_gradient.py.
ONE_PASS_OUTPUTS = 2


class Linearised(NamedTuple):
    """f and c at a point, with gradient and Jacobian."""

    objective: jax.Array
    constraint: jax.Array
    gradient: jax.Array
    jacobian: jax.Array


def one_pass(form: EqualityForm) -> bool:
    """Whether one pass that accumulates the Jacobian is the cheaper way to a gradient."""
    outputs = [form.program.outputs(k) for k in range(len(form.program.sources))]
    return all(objective + len(rows) <= ONE_PASS_OUTPUTS for objective, rows in outputs)


def values(form: EqualityForm, data: tuple[Rows | None, ...], z: jax.Array) -> tuple[jax.Array, jax.Array]:
    """f(z) and c(z) + kappa s."""
    objective, constraint = form.deterministic(z)
    for k, rows in enumerate(data):
        f, c = _mean(form, k, rows, lambda taken, mask, k=k: _sums(form, k, z, taken, mask))
        objective, constraint = objective + f, constraint + c
    return objective, constraint


def linearise(form: EqualityForm, data: tuple[Rows | None, ...], z: jax.Array) -> Linearised:
    """f, c, grad f and the Jacobian of c, in one pass."""
    (objective, constraint), pull = jax.vjp(form.deterministic, z)
    gradient = pull((jnp.ones_like(objective), jnp.zeros_like(constraint)))[0]
    jacobian = jax.vmap(lambda row: pull((jnp.zeros_like(objective), row))[0])(jnp.eye(form.constraints, dtype=z.dtype))
    result = Linearised(objective, constraint, gradient, jacobian.reshape(form.constraints, z.size))
    for k, rows in enumerate(data):
        part = _mean(form, k, rows, lambda taken, mask, k=k: _linearised_sums(form, k, z, taken, mask))
        result = jax.tree.map(jnp.add, result, part)
    return result


def pulled(
    form: EqualityForm, data: tuple[Rows | None, ...], z: jax.Array, weight: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """f and the gradient of f + weight . c at z, weight held fixed: one pass."""
    (objective, _), pull = jax.vjp(form.deterministic, z)
    total = objective, pull((jnp.ones_like(objective), weight))[0]

    def sums(k, rows, mask):
        (f, c), pull = jax.vjp(lambda y: form.contribution(k, y, rows), z)
        cotangent = masked(jnp.ones_like(f), mask), masked(jnp.broadcast_to(weight, c.shape), mask)
        return jnp.sum(masked(f, mask)), pull(cotangent)[0]

    for k, rows in enumerate(data):
        part = _mean(form, k, rows, lambda taken, mask, k=k: sums(k, taken, mask))
        total = jax.tree.map(jnp.add, total, part)
    return total


def hessian_product(
    form: EqualityForm,
    data: tuple[Rows | None, ...],
    z: jax.Array,
    v: jax.Array,
    weight: jax.Array,
    penalty: Any,
    jacobian: jax.Array | None = None,
) -> jax.Array:
    """(grad^2 f + sum_j weight_j grad^2 c_j + penalty J'J) v; one pass when the Jacobian is known, two otherwise."""
    change = jax.jvp(lambda y: values(form, data, y)[1], (z,), (v,))[1] if jacobian is None else jacobian @ v
    return jax.jvp(lambda y, w: pulled(form, data, y, w)[1], (z, weight), (v, penalty * change))[1]


def _mean(form: EqualityForm, k: int, rows: Rows | None, body) -> Any:
    size = form.program.sources[k].size
    assert rows is not None and size is not None, "a stream has no exact mean"
    width = sum(leaf.nbytes // size for leaf in jax.tree.leaves(rows))
    total = sum_over_rows(body, rows, size, max(1, chunk_bytes() // max(1, width)))
    return jax.tree.map(lambda leaf: leaf / size, total)


def _sums(form: EqualityForm, k: int, z: jax.Array, rows: Rows, mask) -> tuple[jax.Array, jax.Array]:
    f, c = form.contribution(k, z, rows)
    return jnp.sum(masked(f, mask)), jnp.sum(masked(c, mask), axis=0)


def _linearised_sums(form: EqualityForm, k: int, z: jax.Array, rows: Rows, mask) -> Linearised:
    feeds_objective, fed = form.program.outputs(k)
    objective, gradient = jnp.zeros((), z.dtype), jnp.zeros_like(z)
    constraint = jnp.zeros(form.constraints, z.dtype)
    jacobian = jnp.zeros((form.constraints, z.size), z.dtype)
    if feeds_objective:
        objective, pull = jax.vjp(lambda y: jnp.sum(masked(form.contribution(k, y, rows)[0], mask)), z)
        gradient = pull(jnp.ones_like(objective))[0]
    if fed:
        index = jnp.asarray(fed)
        part, pull = jax.vjp(lambda y: jnp.sum(masked(form.contribution(k, y, rows)[1], mask), axis=0)[index], z)
        # one row after the other: together they would be a product of few rows with many, which XLA's CPU code does badly
        pulled_rows = jax.lax.map(lambda row: pull(row)[0], jnp.eye(len(fed), dtype=z.dtype))
        constraint, jacobian = constraint.at[index].set(part), jacobian.at[index].set(pulled_rows)
    return Linearised(objective, constraint, gradient, jacobian)
