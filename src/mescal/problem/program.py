"""A problem bound to the structure of its parameters: flat vector and samples in, F_i and C_i out.

    F_i(x) = f0 + sum_k a_k fn_k(x, sample_i of source_k),      C_i(x) likewise, m rows.

Functions (as their equations) and structure are static; coefficients, constants and the arrays that functions close over are
leaves, so that moving a bound compiles nothing. Data are never part of it: they are arguments of whatever is compiled.

Sources over which the same functions are taken form a family, which has one call site: a rate per group compiles like one
rate. The rows of its members lie one after the other; who a row belongs to is data.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .layout import Layout, Parameters
from .traced import Reading, Traced

OBJECTIVE = -1  # the slot of terms that belong to the objective; constraints have slots 0, 1, ...


class BoundTerm(NamedTuple):
    """A function over every member of a family: the place of its arrays, and by member its slot and its coefficient's place."""

    fn: Traced
    constants: int
    slots: tuple[int, ...]
    coefficients: tuple[int, ...]


class Family(NamedTuple):
    """Sources with the same functions, as a compiled program must know them.

    `sizes` are the rows of each member, None for a stream; `rows` are those that can be drawn from, of a stream of rows too;
    `draw` is the function of a stream that has none. `fed` are the rows of c that each member moves, as many for each.
    """

    members: tuple[int, ...]
    sizes: tuple[int, ...] | None
    rows: tuple[int, ...] | None
    weighted: bool
    draw: Traced | None
    draw_constants: int
    terms: tuple[BoundTerm, ...]
    fed: tuple[tuple[int, ...], ...]

    @property
    def feeds_objective(self) -> bool:
        """Whether some term belongs to the objective."""
        return any(OBJECTIVE in term.slots for term in self.terms)

    @property
    def outputs(self) -> int:
        """Numbers that one row of a member moves: of f and of c."""
        return self.feeds_objective + len(self.fed[0])

    @property
    def largest(self) -> int | None:
        """Rows of the largest member; None for a stream."""
        return None if self.sizes is None else max(self.sizes)


class Rows(NamedTuple):
    """Samples of one source: a pytree with a leading axis, and their weights where rows do not count alike."""

    samples: Any
    weights: Any = None


class Program(eqx.Module):
    """The functions of a problem on flat parameters, in one floating type."""

    coefficients: Any
    objective_constant: Any
    constraint_constant: Any
    constants: tuple[tuple[Any, ...], ...]  # arrays that functions close over
    fixed: tuple[BoundTerm, ...] = eqx.field(static=True)  # terms without samples
    families: tuple[Family, ...] = eqx.field(static=True)
    parameters: Parameters = eqx.field(static=True)
    layout: Layout = eqx.field(static=True)

    @property
    def population(self) -> int | None:
        """Rows of the largest population (1 where all is deterministic); None where a source is a stream."""
        sizes = [family.largest for family in self.families]
        return None if None in sizes else max(sizes, default=1)  # pyright: ignore[reportArgumentType]

    @property
    def fed(self) -> int:
        """How many rows of c depend on samples."""
        return len({row for family in self.families for rows in family.fed for row in rows})

    @property
    def draws(self) -> dict[int, Reading]:
        """The functions of streams, by source."""
        streams = [family for family in self.families if family.draw is not None]
        return {f.members[0]: Reading(f.draw, self.constants[f.draw_constants]) for f in streams}  # pyright: ignore[reportArgumentType]

    def over(self, sizes: Any) -> "Program":
        """The same functions over finite populations of other sizes, by source."""
        return replace(self, families=tuple(_resized(family, sizes) for family in self.families))

    def only(self, families: list[int], fixed: bool = True) -> "Program":
        """The part of some families, with or without constants and deterministic terms."""
        part = replace(self, families=tuple(self.families[k] for k in families))
        if fixed:
            return part
        nothing = np.zeros_like(self.objective_constant), np.zeros_like(self.constraint_constant)
        return replace(part, fixed=(), objective_constant=nothing[0], constraint_constant=nothing[1])

    def with_fixed_times(self, factor: float) -> "Program":
        """The same with constants and deterministic terms times a number."""
        coefficients = np.array(self.coefficients)
        coefficients[[place for term in self.fixed for place in term.coefficients]] *= factor
        return replace(
            self,
            coefficients=coefficients,
            objective_constant=factor * self.objective_constant,
            constraint_constant=factor * self.constraint_constant,
        )

    def contribution(self, k: int, x: jax.Array, rows: Rows, member: Any = 0) -> tuple[jax.Array, jax.Array]:
        """What rows of a family add: to F, shape (n,), and to the rows of c that their member feeds, shape (n, p).

        They belong to one member, or each to its own where there is one for every row.
        """
        return self._weighted(rows, self._added(k, self._values(k, x, rows, member)))

    def sized_contribution(
        self, k: int, x: jax.Array, rows: Rows, member: Any = 0, shake: jax.Array | None = None
    ) -> tuple[jax.Array, ...]:
        """`contribution`, and what its terms add in magnitude: the same shapes, terms taken at their absolute values.

        With `shake`, functions are shaken by it.
        """
        values = self._values(k, x, rows, member, shake)
        return self._weighted(rows, (*self._added(k, values), *self._added(k, [jnp.abs(value) for value in values])))

    def _values(self, k: int, x: jax.Array, rows: Rows, member: Any, shake: jax.Array | None = None) -> list[jax.Array]:
        """The terms of a family at rows, with their factors, shape (n, size of what each feeds)."""
        family, samples = self.families[k], in_type(rows, x.dtype).samples
        count = jax.tree.leaves(samples)[0].shape[0]
        known: dict[tuple[Traced, int], jax.Array] = {}
        found = []
        for term in family.terms:
            factors = jnp.asarray(self.coefficients, x.dtype)[np.asarray(term.coefficients)]
            factor = factors[jnp.asarray(member)[..., None]] if len(family.members) > 1 else factors[0]
            once = (term.fn, term.constants if term.fn.jaxpr.constvars else -1)
            if once not in known:
                arrays = self.constants[term.constants]
                each = jax.vmap(lambda row, fn=term.fn, a=arrays: _called(fn, a, shake, x, row))(samples)
                known[once] = each.astype(x.dtype).reshape(count, -1)
            found.append(known[once] * factor)
        return found

    def _added(self, k: int, values: list[jax.Array]) -> tuple[jax.Array, jax.Array]:
        """The terms of a family added up: what feeds F, and what feeds the rows of c."""
        family = self.families[k]
        starts = self._starts(family)
        objective = jnp.zeros(len(values[0]), values[0].dtype)
        blocks: dict[int, jax.Array] = {}
        for term, value in zip(family.terms, values, strict=True):
            if term.slots[0] == OBJECTIVE:
                objective = objective + value[:, 0]
            else:
                start = starts[term.slots[0]]
                blocks[start] = blocks[start] + value if start in blocks else value
        parts = [blocks[start] for start in sorted(blocks)]
        return objective, jnp.concatenate(parts, axis=1) if parts else jnp.zeros((len(objective), 0), objective.dtype)

    @staticmethod
    def _weighted(rows: Rows, values: tuple[jax.Array, ...]) -> tuple[Any, ...]:
        """Values of rows, times their weights."""
        if rows.weights is None:
            return values
        weights = rows.weights.astype(values[0].dtype)
        return tuple((part.T * weights).T for part in values)

    def _starts(self, family: Family) -> dict[int, int]:
        """Where each constraint that the first member feeds begins among the rows that it feeds."""
        starts, at = {}, 0
        for slot in sorted({term.slots[0] for term in family.terms} - {OBJECTIVE}):
            starts[slot] = at
            rows = self.layout.slices[slot]
            at += rows.stop - rows.start
        return starts

    def spread(self, k: int, fed: jax.Array, member: Any = 0) -> jax.Array:
        """Values on the rows of c that a member feeds (first axis) as values on all rows of c, zero elsewhere."""
        family, m = self.families[k], self.layout.size
        if len(family.members) == 1:
            rows = family.fed[0]
            if rows == tuple(range(m)):
                return fed
            if rows and rows == tuple(range(rows[0], rows[-1] + 1)):
                return jnp.pad(fed, [(rows[0], m - rows[-1] - 1)] + [(0, 0)] * (fed.ndim - 1))
        index = self.fed_rows(k, member)
        return jnp.zeros((m, *fed.shape[1:]), fed.dtype).at[index].add(fed)

    def means(self, k: int, fed: jax.Array, members: np.ndarray) -> jax.Array:
        """The sum over rows, each of its own member, of values on the rows of c that these feed, shape (n, p); shape (m,)."""
        if len(self.families[k].members) == 1:
            return self.spread(k, jnp.sum(fed, axis=0))
        return jnp.zeros(self.layout.size, fed.dtype).at[self.fed_rows(k, members)].add(fed)

    def fed_rows(self, k: int, member: Any = 0) -> jax.Array:
        """The rows of c that a member feeds; the member may be traced."""
        table = np.asarray(self.families[k].fed, np.int32).reshape(len(self.families[k].members), -1)
        return jnp.asarray(table)[member]

    def deterministic(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The part without samples: constants and deterministic terms; scalar and (m,)."""
        objective, constraints, *_ = self.sized_deterministic(x)
        return objective, constraints

    def sized_deterministic(self, x: jax.Array, shake: jax.Array | None = None) -> tuple[jax.Array, ...]:
        """`deterministic`, and the sums of its parts' absolute values; with `shake`, functions are shaken by it."""
        objective = jnp.asarray(self.objective_constant, x.dtype)
        constraints = jnp.asarray(self.constraint_constant, x.dtype)
        size, sizes = jnp.abs(objective), jnp.abs(constraints)
        for term in self.fixed:
            value = jnp.ravel(_called(term.fn, self.constants[term.constants], shake, x)).astype(x.dtype)
            value = value * jnp.asarray(self.coefficients, x.dtype)[term.coefficients[0]]
            if term.slots[0] == OBJECTIVE:
                objective, size = objective + value[0], size + jnp.abs(value[0])
            else:
                at = self.layout.slices[term.slots[0]]
                constraints, sizes = constraints.at[at].add(value), sizes.at[at].add(jnp.abs(value))
        return objective, constraints, size, sizes

    def evaluate(self, x: jax.Array, drawn: tuple[Rows | None, ...], count: int) -> tuple[jax.Array, jax.Array]:
        """F_i, shape (n,), and C_i, shape (n, m), for n samples of every source (None: that family is not looked at).

        The samples of a family have two leading axes, members and samples.
        """
        objective, constraints = self.deterministic(x)
        objective = jnp.broadcast_to(objective, (count,))
        constraints = jnp.broadcast_to(constraints, (count, self.layout.size))
        for k, rows in enumerate(drawn):
            if rows is None:
                continue
            members = jnp.arange(len(self.families[k].members))
            f, c = jax.vmap(lambda part, g, k=k: self.contribution(k, x, part, g))(rows, members)
            objective = objective + jnp.sum(f, axis=0)
            if c.shape[2]:
                spread = jax.vmap(lambda part, g, k=k: self.spread(k, part.T, g))(c, members)
                constraints = constraints + jnp.sum(spread, axis=0).T
        return objective, constraints


def _called(fn: Traced, constants: Any, shake: jax.Array | None, *arguments: Any) -> Any:
    return fn(constants, *arguments) if shake is None else fn.shaken(constants, shake, *arguments)


def in_type(rows: Any, dtype: Any) -> Any:
    """Rows with floating columns in `dtype`."""
    return jax.tree.map(lambda leaf: leaf.astype(dtype) if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf, rows)


def _resized(family: Family, sizes: Any) -> Family:
    now = tuple(sizes[member] for member in family.members)
    return family._replace(sizes=now, rows=now, draw=None, draw_constants=-1)


def constants(values: list[tuple[Any, tuple[int, ...]]]) -> np.ndarray:
    """Constants of the constraints, each broadcast to its constraint's shape, as one vector."""
    parts = [np.broadcast_to(np.asarray(value, np.float64), shape).ravel() for value, shape in values]
    return np.concatenate(parts) if parts else np.zeros(0)
