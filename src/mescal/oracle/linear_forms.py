"""Functions that see the parameters only through a few linear forms, and their Hessians as one Gram product.

    fn(x, row) = outer(u, row) + linear in x,  u = A(row) x of a few entries:   sum of Hessians = sum_i A_i' outer''_i A_i

A score `a @ w`, with or without a bias, under any loss is of this kind. One product of rows with weighted rows takes the
place of two of rows with directions. Whether a function is of this kind is read off its jaxpr; where that is in doubt the
answer is no, and the caller multiplies by directions.
"""

import itertools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal

from ..problem.traced import evaluate_equation

# With k forms the Gram product takes 2 k d^2 operations per row, directions take at least 4 d^2.
MOST_FORMS = 2
# A symmetric product is formed in blocks of columns, on and above the diagonal alone: with four, 5/8 of the arithmetic.
# More, or narrower ones, gain nothing and take longer to compile; measured, see benchmarks/curvature_dense.py.
BLOCKS, BLOCK_COLUMNS = 4, 60

FREE, LINEAR, CURVED, MIXED = range(4)  # independent of x; affine in x; a function of the forms; a sum of these two
# Primitives that are linear in all operands together, in the first one, in any one while the others are free of x.
SHAPING = {"reshape", "broadcast_in_dim", "squeeze", "transpose", "rev", "slice", "concatenate", "pad", "copy"}
OF_ALL_OPERANDS = SHAPING | {"add", "sub", "neg", "add_any", "reduce_sum", "convert_element_type"}
OF_THE_FIRST = {"div", "dynamic_slice", "gather"}
OF_ONE_ALONE = {"mul", "dot_general"}


class _UnsuitedError(Exception):
    """The function is not, or not visibly, of this kind."""


def hessian_sum(fn: Callable, x: jax.Array, rows: Any, share: jax.Array, kind: Any = None) -> jax.Array | None:
    """sum_i share_i (Hessian of the scalar `fn(x, row_i)` in x), multiplied out in `kind`; None where fn is not of this kind."""

    def one(row):
        u, pull = jax.vjp(lambda y: reading.forms(y, row), x)
        matrix = jax.vmap(lambda e: pull(e)[0])(jnp.eye(u.size, dtype=u.dtype))
        return matrix, jax.hessian(lambda y: reading.outer(y, x, row))(u)

    try:
        reading = _Reading(fn, x, jax.tree.map(lambda leaf: leaf[0], rows))
        matrices, curvatures = jax.vmap(one)(rows)
    except _UnsuitedError:
        return None
    weighted = jnp.einsum("nkl,nld->nkd", share[:, None, None] * curvatures, matrices)
    left, right = (part.reshape(-1, x.size).astype(kind or x.dtype) for part in (matrices, weighted))
    return _symmetric_product(left, right).astype(x.dtype)


def _symmetric_product(left: jax.Array, right: jax.Array) -> jax.Array:
    """left' right, which is known to be symmetric, from its blocks on and above the diagonal."""
    size = left.shape[1]
    blocks = max(1, min(BLOCKS, size // BLOCK_COLUMNS))
    cuts = [size * k // blocks for k in range(blocks + 1)]
    strips = [jnp.pad(left[:, a:b].T @ right[:, a:], ((0, 0), (a, 0))) for a, b in itertools.pairwise(cuts)]
    upper = jnp.concatenate(strips)
    return jnp.triu(upper) + jnp.triu(upper, 1).T


class _Reading:
    """A function read once: evaluated up to its linear forms, or onwards from given ones."""

    def __init__(self, fn: Callable, x: Any, row: Any):
        self.program = jax.make_jaxpr(fn)(x, row)
        if self.program.effects:  # it would be evaluated twice
            raise _UnsuitedError

    def forms(self, x: jax.Array, row: Any) -> jax.Array:
        """u, shape (k,)."""
        run = _Run(None)
        run.through(self.program, _arguments(x, row))
        return jnp.concatenate([jnp.zeros(0, x.dtype), *(jnp.ravel(value) for value, _ in run.forms.values())])

    def outer(self, u: jax.Array, x: jax.Array, row: Any) -> jax.Array:
        """fn with its forms set to u; terms that are linear in x stay as they are."""
        return _Run(u).through(self.program, _arguments(x, row))[0][0]


class _Run:
    """One evaluation of a jaxpr, each value paired with its dependence on x; forms are taken from `u` where given."""

    def __init__(self, u: jax.Array | None):
        self.u = u
        self.forms: dict[int, tuple[jax.Array, jax.Array]] = {}  # by the value's id: the value, what stands for it
        self.known: dict[tuple, tuple[list, list]] = {}  # equations met before: operands (kept alive), results

    def through(self, program: ClosedJaxpr, arguments: list[tuple[Any, int]]) -> list[tuple[Any, int]]:
        jaxpr = program.jaxpr
        values = dict(zip(jaxpr.constvars, ((const, FREE) for const in program.consts), strict=True))
        values |= dict(zip(jaxpr.invars, arguments, strict=True))
        for equation in jaxpr.eqns:
            operands = [_read(values, atom) for atom in equation.invars]
            values |= dict(zip(equation.outvars, self._results(jaxpr, equation, operands), strict=True))
        return [_read(values, atom) for atom in jaxpr.outvars]

    def _results(self, jaxpr: Jaxpr, equation: JaxprEqn, operands: list[tuple[Any, int]]) -> list[tuple[Any, int]]:
        if equation.primitive.name in ("jit", "pjit"):
            return self.through(equation.params["jaxpr"], operands)
        # the same form may be written down once for every constraint; parameters that are functions may differ unseen
        comparable = not any(callable(p) or isinstance(p, (Jaxpr, ClosedJaxpr)) for p in equation.params.values())
        key = (equation.primitive, str(equation.params), *(id(value) for value, _ in operands)) if comparable else None
        if key in self.known:
            return self.known[key][1]
        kind = _dependence(equation, [kind for _, kind in operands])
        taken = [self._form(value) if kind == CURVED and of == LINEAR else value for value, of in operands]
        results = [(value, kind) for value in evaluate_equation(jaxpr, equation, taken)]
        if key is not None:
            self.known[key] = operands, results
        return results

    def _form(self, value: jax.Array) -> jax.Array:
        if id(value) not in self.forms:
            start = sum(form.size for form, _ in self.forms.values())
            if start + value.size > MOST_FORMS:
                raise _UnsuitedError
            given = value if self.u is None else self.u[start : start + value.size].reshape(value.shape)
            self.forms[id(value)] = value, given.astype(value.dtype)
        return self.forms[id(value)][1]


def _dependence(equation: JaxprEqn, kinds: list[int]) -> int:
    """How the results of an equation depend on x, given its operands."""
    name, involved = equation.primitive.name, {kind for kind in kinds if kind != FREE}
    if not involved:
        return FREE
    linear = (
        name in OF_ALL_OPERANDS
        or (name in OF_THE_FIRST and not any(kinds[1:]))
        or (name in OF_ONE_ALONE and FREE in kinds)
        or (name == "select_n" and kinds[0] == FREE)
    ) and jnp.issubdtype(equation.outvars[0].aval.dtype, jnp.floating)  # pyright: ignore[reportAttributeAccessIssue]
    if linear:
        return involved.pop() if len(involved) == 1 else MIXED
    if MIXED in involved:
        raise _UnsuitedError
    return CURVED


def _arguments(x: Any, row: Any) -> list[tuple[Any, int]]:
    return [(x, LINEAR), *((leaf, FREE) for leaf in jax.tree.leaves(row))]


def _read(values: dict, atom: Any) -> tuple[Any, int]:
    return (atom.val, FREE) if isinstance(atom, Literal) else values[atom]
