"""A problem bound to the structure of its parameters: flat vector and samples in, F_i and C_i out.

    F_i(x) = f0 + sum_k a_k fn_k(x, sample_i of source_k),      C_i(x) likewise, m rows.

Functions and structure are static; coefficients and constants are leaves, so that moving a bound compiles nothing.
Data are never part of it: they are arguments of whatever is compiled.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .layout import Layout
from .parameters import Parameters

OBJECTIVE = -1  # the slot of terms that belong to the objective; constraints have slots 0, 1, ...


class BoundTerm(NamedTuple):
    """One term: which source it samples (None: deterministic), which slot it adds to, its coefficient's place."""

    source: int | None
    slot: int
    coefficient: int
    fn: Callable


class BoundSource(NamedTuple):
    """What a compiled program must know of a source: rows and weights, or the function that draws.

    `size` is None for streams; `rows` are those that can be drawn from, of a stream of rows too.
    """

    size: int | None
    rows: int | None
    weighted: bool
    draw: Callable | None


class Rows(NamedTuple):
    """Samples of one source: a pytree with a leading axis, and their weights where rows do not count alike."""

    samples: Any
    weights: Any = None


class Program(eqx.Module):
    """The functions of a problem on flat parameters."""

    coefficients: Any
    objective_constant: Any
    constraint_constant: Any
    terms: tuple[BoundTerm, ...] = eqx.field(static=True)
    sources: tuple[BoundSource, ...] = eqx.field(static=True)
    parameters: Parameters = eqx.field(static=True)
    layout: Layout = eqx.field(static=True)

    @property
    def population(self) -> int | None:
        """Rows of the largest population (1 where all is deterministic); None where a source is a stream."""
        sizes = [source.size for source in self.sources]
        return None if None in sizes else max(sizes, default=1)  # pyright: ignore[reportArgumentType]

    def outputs(self, source: int) -> tuple[bool, tuple[int, ...]]:
        """What a source feeds: the objective or not, and the rows of c that it can move."""
        slots = {term.slot for term in self.terms if term.source == source}
        slices = self.layout.slices
        rows = [row for slot in sorted(slots - {OBJECTIVE}) for row in range(slices[slot].start, slices[slot].stop)]
        return OBJECTIVE in slots, tuple(rows)

    def sources_of_constraints(self) -> tuple[int, ...]:
        """Sources that feed a constraint: those of which the paper's theta holds two draws."""
        return tuple(k for k in range(len(self.sources)) if self.outputs(k)[1])

    def contribution(self, source: int, x: jax.Array, rows: Rows) -> tuple[jax.Array, jax.Array]:
        """What the rows of one source add: to F, shape (n,), and to C, shape (n, m). No constants."""
        count = jax.tree.leaves(rows.samples)[0].shape[0]
        parameters = self.parameters.unflatten(x)
        columns: dict[int, jax.Array] = {}
        for term in self.terms:
            if term.source != source:
                continue
            values = jax.vmap(term.fn, in_axes=(None, 0))(parameters, rows.samples).astype(x.dtype)
            values = values.reshape(count, -1) * jnp.asarray(self.coefficients[term.coefficient], x.dtype)
            columns[term.slot] = columns[term.slot] + values if term.slot in columns else values
        objective, constraints = self._assemble(columns, (count,), x.dtype)
        if rows.weights is not None:
            weights = rows.weights.astype(x.dtype)
            objective, constraints = objective * weights, constraints * weights[:, None]
        return objective, constraints

    def deterministic(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The part without samples: constants and deterministic terms; scalar and (m,)."""
        parameters = self.parameters.unflatten(x)
        columns: dict[int, jax.Array] = {}
        for term in self.terms:
            if term.source is None:
                value = jnp.ravel(term.fn(parameters)).astype(x.dtype)
                value = value * jnp.asarray(self.coefficients[term.coefficient], x.dtype)
                columns[term.slot] = columns[term.slot] + value if term.slot in columns else value
        objective, constraints = self._assemble(columns, (), x.dtype)
        return (
            objective + jnp.asarray(self.objective_constant, x.dtype),
            constraints + jnp.asarray(self.constraint_constant, x.dtype),
        )

    def evaluate(self, x: jax.Array, rows: tuple[Rows | None, ...], count: int) -> tuple[jax.Array, jax.Array]:
        """F_i, shape (n,), and C_i, shape (n, m), for n samples of every source (None: that source is not looked at)."""
        objective, constraints = self.deterministic(x)
        objective = jnp.broadcast_to(objective, (count,))
        constraints = jnp.broadcast_to(constraints, (count, self.layout.size))
        for source, drawn in enumerate(rows):
            if drawn is not None:
                f, c = self.contribution(source, x, drawn)
                objective, constraints = objective + f, constraints + c
        return objective, constraints

    def _assemble(self, columns: dict[int, jax.Array], lead: tuple[int, ...], dtype) -> tuple[jax.Array, jax.Array]:
        objective = columns[OBJECTIVE].reshape(lead) if OBJECTIVE in columns else jnp.zeros(lead, dtype)
        blocks = [
            columns.get(slot, jnp.zeros((*lead, rows.stop - rows.start), dtype))
            for slot, rows in enumerate(self.layout.slices)
        ]
        constraints = jnp.concatenate(blocks, axis=-1) if blocks else jnp.zeros((*lead, 0), dtype)
        return objective, constraints


def constants(values: list[tuple[Any, tuple[int, ...]]]) -> np.ndarray:
    """Constants of the constraints, each broadcast to its constraint's shape, as one vector."""
    parts = [np.broadcast_to(np.asarray(value, np.float64), shape).ravel() for value, shape in values]
    return np.concatenate(parts) if parts else np.zeros(0)
