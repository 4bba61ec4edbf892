"""Full passes over scores in one read of the rows, on a GPU: a kernel that keeps a block of rows between its two products.

    S_t = sum_i phi_t(a_i . x),     G_t = sum_i phi_t'(a_i . x) a_i,     one pair for every term t of a source

XLA multiplies all rows with x and then all rows with the slopes: on a GPU they have left the cache by then and are read from
memory twice. Whether the terms are of this kind, functions of the product of a row with the parameters and of nothing else,
is read off their jaxprs; where they are not, or the kernel does not compile, the caller goes the ordinary way.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Literal

from ..problem import Program, Rows
from ..problem.traced import Traced, evaluate_equation

MOST_COLUMNS = 8192  # of a row, which has to fit into the registers of a multiprocessor
# Numbers of a block of rows for each warp (32 threads). Rows are short enough for one warp as a rule: its sums over a block are
# then each thread's own, and many independent warps hide how long memory takes. Measured, see benchmarks/gpu.py: with blocks of
# 8192 numbers, each shared by four warps, a pass took half as long again.
WARP_NUMBERS = 1024
MOST_ROWS_OF_A_BLOCK = 64
PROGRAMS = 2048  # that share the rows: several for every multiprocessor of the largest GPUs
LARGEST = 2**31  # numbers of the rows: the kernel counts them in 32 bits
INTERPRET = False  # run the kernel as ordinary operations, on any device: for tests

Sums = tuple[jax.Array, ...]  # means of F, C, and their derivatives in x; then those of the magnitudes of all four


class _UnsuitedError(Exception):
    """The function is not, or not visibly, one of a score alone."""


class _Parameters:
    """Stands for x in a function that is read."""


class _Row:
    """Stands for one row."""


def score_sums(program: Program, k: int, rows: Any, x: jax.Array) -> Sums | None:
    """Means over the rows of family k of F and C, and of their derivatives; None where there is no such kernel."""
    if not (INTERPRET or jax.default_backend() == "gpu") or not isinstance(rows, Rows):
        return None
    family, layout = program.families[k], program.layout
    leaves = jax.tree.leaves(rows.samples)
    plain = rows.weights is None and len(leaves) == 1 and leaves[0].ndim == 2 and leaves[0].size < LARGEST
    if not plain or not program.parameters.bare or leaves[0].shape[1:] != x.shape or leaves[0].dtype != x.dtype:
        return None
    if len(family.members) > 1 or any(
        term.slots[0] >= 0 and layout.shapes[term.slots[0]] != () for term in family.terms
    ):
        return None
    table = leaves[0]
    functions = tuple(term.fn for term in family.terms)
    if table.shape[1] > MOST_COLUMNS or not _compiles(functions, table.shape, str(table.dtype)):
        return None
    values, slopes, *sizes = (part / table.shape[0] for part in _kernel(_scores(functions, table.dtype), x, table))
    factors = [jnp.asarray(program.coefficients, x.dtype)[term.coefficients[0]] for term in family.terms]

    def collected(values: jax.Array, slopes: jax.Array, factors: list[jax.Array]) -> Sums:
        objective, constraint = jnp.zeros((), x.dtype), jnp.zeros(layout.size, x.dtype)
        gradient, jacobian = jnp.zeros_like(x), jnp.zeros((layout.size, x.size), x.dtype)
        for t, (term, factor) in enumerate(zip(family.terms, factors, strict=True)):
            if term.slots[0] < 0:
                objective, gradient = objective + factor * values[t], gradient + factor * slopes[t]
            else:
                at = layout.slices[term.slots[0]].start
                constraint = constraint.at[at].add(factor * values[t])
                jacobian = jacobian.at[at].add(factor * slopes[t])
        return objective, constraint, gradient, jacobian

    magnitudes = collected(sizes[0], sizes[1], [jnp.abs(factor) for factor in factors])
    return *collected(values, slopes, factors), *magnitudes


@lru_cache(maxsize=256)
def _compiles(functions: tuple[Traced, ...], shape: tuple[int, int], dtype: str) -> bool:
    """Whether the terms are functions of scores that the device's compiler takes."""
    try:
        scores = _scores(functions, np.dtype(dtype))
    except _UnsuitedError:
        return False
    if INTERPRET:
        return True
    at = jax.ShapeDtypeStruct(shape[1:], dtype), jax.ShapeDtypeStruct(shape, dtype)
    try:
        jax.jit(partial(_kernel, scores)).lower(*at).compile()
    except Exception:  # whatever a compiler may say: the ordinary way is always open
        return False
    return True


def _scores(functions: tuple[Traced, ...], dtype: Any) -> tuple[Callable, ...]:
    """phi_t, functions of one number each."""
    return tuple(_score(fn, dtype) for fn in functions)


def _score(fn: Traced, dtype: Any) -> Callable:
    if fn.jaxpr.effects or fn.jaxpr.constvars or fn.shape != ():
        raise _UnsuitedError

    def phi(u):
        return jnp.asarray(_through(ClosedJaxpr(fn.jaxpr, ()), [_Parameters, _Row], u)[0], dtype)

    jax.eval_shape(phi, jax.ShapeDtypeStruct((), dtype))
    return phi


def _through(program: ClosedJaxpr, arguments: list[Any], u: jax.Array) -> list[Any]:
    """Evaluate a jaxpr with the product of a row and the parameters set to u."""
    if any(np.ndim(const) for const in program.consts):
        raise _UnsuitedError
    jaxpr = program.jaxpr
    if len(jaxpr.invars) != len(arguments):  # tracing may have made arguments of constants
        raise _UnsuitedError
    values: dict = dict(zip(jaxpr.constvars, (const.item() for const in map(np.asarray, program.consts)), strict=True))
    values |= dict(zip(jaxpr.invars, arguments, strict=True))

    def read(atom):
        return atom.val if isinstance(atom, Literal) else values[atom]

    for equation in jaxpr.eqns:
        operands = [read(atom) for atom in equation.invars]
        apart = [operand for operand in operands if operand is _Parameters or operand is _Row]
        if equation.primitive.name in ("jit", "pjit"):
            results = _through(equation.params["jaxpr"], operands, u)
        elif not apart:
            results = evaluate_equation(jaxpr, equation, operands)
        elif equation.primitive.name == "dot_general" and set(apart) == {_Parameters, _Row}:
            if equation.outvars[0].aval.shape != ():  # pyright: ignore[reportAttributeAccessIssue]
                raise _UnsuitedError
            results = [u]
        else:
            raise _UnsuitedError
        values |= dict(zip(equation.outvars, results, strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def _kernel(scores: tuple[Callable, ...], x: jax.Array, table: jax.Array) -> tuple[jax.Array, ...]:
    """S, shape (t,), and G, shape (t, d); then the sums of the absolute values of what both are sums of."""
    from jax.experimental import pallas as pl  # here: it takes longer to import than most solves to run
    from jax.experimental.pallas import triton

    (size, width), count = table.shape, len(scores)
    wide = 1 << (width - 1).bit_length()
    block = max(1, min(MOST_ROWS_OF_A_BLOCK, WARP_NUMBERS // wide))
    warps = max(1, block * wide // WARP_NUMBERS)
    programs = min(PROGRAMS, -(-size // block))
    steps = -(-size // (programs * block))
    dtype = table.dtype

    def body(x_ref, rows_ref, values_ref, slopes_ref):
        first = pl.program_id(0) * steps * block
        columns = jnp.arange(wide)
        inside = columns < width
        within = jnp.minimum(columns, width - 1) if INTERPRET else columns  # masked either way
        at = triton.load(x_ref.at[within], mask=inside, other=0.0)

        def step(i, totals):
            rows = first + i * block + jnp.arange(block)
            counted = rows < size
            mask = counted[:, None] & inside[None, :]
            taken = triton.load(
                rows_ref.at[jnp.minimum(rows, size - 1)[:, None], within[None, :]], mask=mask, other=0.0
            )
            u = jnp.sum(taken * at[None, :], axis=1)
            found = [jax.jvp(jax.vmap(phi), (u,), (jnp.ones_like(u),)) for phi in scores]
            parts = [(jnp.where(counted, f, 0), taken * jnp.where(counted, g, 0)[:, None]) for f, g in found]
            sizes = [(jnp.abs(f), jnp.abs(g)) for f, g in parts]
            return tuple(
                (value + jnp.sum(f), slope + jnp.sum(g, axis=0))
                for (value, slope), (f, g) in zip(totals, [*parts, *sizes], strict=True)
            )

        nothing = tuple((jnp.zeros((), dtype), jnp.zeros(wide, dtype)) for _ in 2 * scores)
        totals = jax.lax.fori_loop(0, steps, step, nothing)
        for t, (value, slope) in enumerate(totals):
            values_ref[t, pl.program_id(0)] = value
            slopes_ref[t, pl.program_id(0), :] = slope

    values, slopes = pl.pallas_call(
        body,
        grid=(programs,),
        out_shape=[jax.ShapeDtypeStruct((2 * count, programs, *shape), dtype) for shape in ((), (wide,))],
        interpret=INTERPRET,
        compiler_params=None if INTERPRET else triton.CompilerParams(num_warps=warps),
        name="score_sums",
    )(x, table)
    values, slopes = jnp.sum(values, axis=1), jnp.sum(slopes, axis=1)[:, :width]
    return values[:count], slopes[:count], values[count:], slopes[count:]
