"""What the judge knows of a problem at a point, in float64: f, c, their derivatives, Hessians of the Lagrangian.

Every source contributes the mean over its rows; rows are streamed, so the data are never copied as a whole. A stream
takes part through rows drawn from it beforehand (see `confidence`).
"""

from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..compiling import compiled
from ..oracle.batch import masked
from ..oracle.linear_forms import hessian_sum
from ..oracle.work import Tally
from ..problem import Program, Rows, Sharded
from .stream import HostRows, row_bytes, stream

# Of the rows, and of their products with directions, that exist at a time: what leaves the core's cache between two
# products is read from memory again. But never fewer rows than half the directions, or adding up the sums of the chunks
# would cost as much as forming them. Measured, see benchmarks/curvature_dense.py.
HESSIAN_CHUNK_BYTES = 1 << 20
DIRECTIONS = 256  # directions multiplied together at most: bounds what the layers of a deep function hold at a time
CANCELLED = (
    1e-12  # a row of the Jacobian shorter than this, against 1 and the longest row, is what rounding left of zero
)


class Point(NamedTuple):
    """f and c at x, with gradient and Jacobian; numpy float64."""

    objective: float
    constraint: np.ndarray
    gradient: np.ndarray
    jacobian: np.ndarray


class Judge:
    """A program with the rows of each of its sources, ready to be measured at points x (flat vectors)."""

    def __init__(self, program: Program, populations: tuple[HostRows | Sharded, ...]):
        self.program = program
        self.populations = populations
        self.tally = Tally()

    @property
    def full_pass(self) -> int:
        """Thetas in a full pass: the rows of the largest population."""
        return max((p.size for p in self.populations), default=1)

    def point(self, x: np.ndarray) -> Point:
        """f, c, gradient and Jacobian in one pass."""
        rows = self.program.layout.size
        self.count("gradient", value=1, gradient=1)
        with jax.enable_x64(True):
            total = _deterministic(self.program, jnp.asarray(x, jnp.float64))
            for k, population in enumerate(self.populations):
                part = stream(_linearised(k), population, self.program, jnp.asarray(x, jnp.float64))
                total = jax.tree.map(lambda a, b, n=population.size: a + b / n, total, part)
            f, c, gradient, jacobian = jax.tree.map(np.asarray, total)
        return Point(float(f), c, gradient, _without_rounding(jacobian.reshape(rows, x.size)))

    def hessian(self, x: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """grad^2 f + sum_j weight_j grad^2 c_j as a dense matrix."""
        self.count("hvp", times=x.size, value=1, gradient=1, hvp=1)
        return self._total(x, weight, np.eye(x.size), _matrix)

    def hessian_times(self, x: np.ndarray, weight: np.ndarray, directions: np.ndarray) -> np.ndarray:
        """(grad^2 f + sum_j weight_j grad^2 c_j) V for the columns of V, shape (d, k)."""
        columns = directions.reshape(x.size, -1)
        if columns.shape[1] >= x.size:  # no fewer directions than parameters: the matrix costs no more
            matrix = self.hessian(x, weight)
            product = matrix if np.array_equal(columns, np.eye(x.size)) else matrix @ columns
            return product.reshape(directions.shape)
        self.count("hvp", times=columns.shape[1], value=1, gradient=1, hvp=1)
        return self._total(x, weight, columns, _product).reshape(directions.shape)

    def _total(self, x: np.ndarray, weight: np.ndarray, columns: np.ndarray, of_source: Any) -> np.ndarray:
        with jax.enable_x64(True):
            at = jnp.asarray(x, jnp.float64), jnp.asarray(weight, jnp.float64), jnp.asarray(columns, jnp.float64)
            total = _deterministic_product(self.program, *at)
            for k, population in enumerate(self.populations):
                feeds_objective, fed = self.program.outputs(k)
                if not feeds_objective and not np.any(weight[list(fed)]):
                    continue  # it feeds constraints alone, and their multipliers are zero
                width = max(row_bytes(population), 8 * columns.shape[1])
                chunk = max(1, HESSIAN_CHUNK_BYTES // width, columns.shape[1] // 2)
                total = total + stream(of_source(k), population, self.program, *at, chunk_rows=chunk) / population.size
            return np.asarray(total)

    def count(self, kind: str, times: int = 1, value: int = 0, gradient: int = 0, hvp: int = 0):
        """Add work on a full pass, `times` over: evaluations of C per sample and row."""
        n, m = self.full_pass, self.program.layout.size
        self.tally += Tally(
            {
                f"{kind}_samples": n * times,
                "objective_gradients": n * times * (kind == "gradient"),
                "objective_hvps": n * times * (kind == "hvp"),
                "constraint_values": n * m * times * value,
                "constraint_gradients": n * m * times * gradient,
                "constraint_hvps": n * m * times * hvp,
            }
        )


def _without_rounding(jacobian: np.ndarray) -> np.ndarray:
    """The Jacobian with rows that cancelled to rounding set to zero: a huge multiplier could turn them into anything."""
    lengths = np.linalg.norm(jacobian, axis=1)
    return np.where((lengths > CANCELLED * lengths.max(initial=1.0))[:, None], jacobian, 0.0)


@partial(compiled, static_argnums=())
def _deterministic(program: Program, x: jax.Array) -> tuple[jax.Array, ...]:
    (f, c), pull = jax.vjp(program.deterministic, x)
    gradient = pull((jnp.ones_like(f), jnp.zeros_like(c)))[0]
    jacobian = jax.vmap(lambda row: pull((jnp.zeros_like(f), row))[0])(jnp.eye(c.size, dtype=x.dtype))
    return f, c, gradient, jacobian.reshape(c.size, x.size)


@partial(compiled, static_argnums=())
def _deterministic_product(program: Program, x: jax.Array, weight: jax.Array, v: jax.Array) -> jax.Array:
    def gradient(y):
        (f, _), pull = jax.vjp(program.deterministic, y)
        return pull((jnp.ones_like(f), weight))[0]

    return _columns(gradient, x, v)


@cache
def _linearised(source: int):
    """Sums over rows of one source: f, c, gradient of f, Jacobian of c."""

    def body(rows: Rows, mask, program: Program, x: jax.Array) -> tuple[jax.Array, ...]:
        feeds_objective, fed = program.outputs(source)
        f, gradient = jnp.zeros((), x.dtype), jnp.zeros_like(x)
        c, jacobian = jnp.zeros(program.layout.size, x.dtype), jnp.zeros((program.layout.size, x.size), x.dtype)
        if feeds_objective:
            f, gradient = jax.value_and_grad(lambda y: jnp.sum(masked(program.contribution(source, y, rows)[0], mask)))(
                x
            )
        if fed:
            index = jnp.asarray(fed)
            part, pull = jax.vjp(
                lambda y: jnp.sum(masked(program.contribution(source, y, rows)[1], mask), axis=0)[index], x
            )
            c = c.at[index].set(part)
            # one row after the other: few rows times many columns at once is what XLA's CPU code does badly
            jacobian = jacobian.at[index].set(jax.lax.map(lambda row: pull(row)[0], jnp.eye(len(fed), dtype=x.dtype)))
        return f, c, gradient, jacobian

    return body


@cache
def _product(source: int):
    """Sums over rows of one source of (Hessian of F_i + weight . C_i) times a block of directions."""

    def body(rows: Rows, mask, program: Program, x: jax.Array, weight: jax.Array, v: jax.Array) -> jax.Array:
        def gradient(y):
            (f, c), pull = jax.vjp(lambda p: program.contribution(source, p, rows), y)
            return pull((masked(jnp.ones_like(f), mask), masked(jnp.broadcast_to(weight, c.shape), mask)))[0]

        return _columns(gradient, x, v)

    return body


@cache
def _matrix(source: int):
    """Sums over rows of one source of the Hessian of F_i + weight . C_i; `v` holds all directions."""

    def body(rows: Rows, mask, program: Program, x: jax.Array, weight: jax.Array, v: jax.Array) -> jax.Array:
        def one(y, row):
            f, c = program.contribution(source, y, jax.tree.map(lambda leaf: leaf[None], row))
            return f[0] + c[0] @ weight

        gram = hessian_sum(one, x, rows, mask)
        return _product(source)(rows, mask, program, x, weight, v) if gram is None else gram

    return body


def _columns(gradient: Any, x: jax.Array, v: jax.Array) -> jax.Array:
    def along(u):
        return jax.jvp(gradient, (x,), (u,))[1]

    if v.shape[1] <= DIRECTIONS:
        return jax.vmap(along, in_axes=1, out_axes=1)(v)
    return jax.lax.map(along, v.T, batch_size=DIRECTIONS).T
