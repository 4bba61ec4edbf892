"""Rounding bounds from the magnitudes that were summed: what a value, a gradient or a Hessian may be off by.

A derivative is a linear map of a direction, and its program a sum over paths of products:  y = sum_p w_p u_p.  In an arithmetic
with the unit e every operation is off by e times its result at most, so that a computed y obeys

    |computed y - y|  <=  e N sum_p |w_p| |u_p|  =  e N |L| |u|        (Higham, Accuracy and Stability, 3.5 and 4.2)

N being the most operations on a path: adding n numbers in any order makes n - 1 of them. |L| is the program of L with every
factor made positive and every difference a sum (`magnitude`), which costs what L costs. Numbers that cancel, between rows, between
terms or inside a function, leave their magnitudes behind. The factors w_p depend on x themselves, by numbers v_j that a function
computes on the way, each off by e n |v_j|, n being the longest sum inside. They are known as if x and all v_j were moved so far:

    e n ( |dL/dx| |x| + sum_j |dL/dv_j| |v_j| )

is what that adds: the derivative in x and t, in magnitude, of the function with every v_j times 1 + t (`Traced.shaken`).

e is the unit of the coarsest type in which a function computes anything that depends on x, never finer than that of x.

Deviation: an operation that is not known to be linear, or a branch inside a function, counts with the magnitude of its result.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var

from ..problem import Program
from ..problem.program import BoundTerm
from ..problem.traced import Loop, Traced, body_of, evaluate_equation

# Linear in each floating operand while the others are held, with nonnegative factors where all operands are nonnegative.
POSITIVE = {
    *("reshape", "broadcast_in_dim", "squeeze", "transpose", "rev", "slice", "concatenate", "pad", "copy", "copy_p"),
    *("stack", "unstack", "split", "reduce_precision"),
    *("add", "add_any", "reduce_sum", "cumsum", "convert_element_type", "mul", "div", "dot_general", "select_n"),
    *(
        "conv_general_dilated",
        "dynamic_slice",
        "dynamic_update_slice",
        "gather",
        "scatter-add",
        "scatter",
        "expand_dims",
    ),
}
DERIVED = 4  # equations of a derivative, and of that of a derivative, for one of a function


def magnitude(linear: Callable, *directions: Any) -> Any:
    """|L| |u| for a traceable function that is linear in u, given nonnegative u; one array."""
    program = jax.make_jaxpr(linear)(*directions)
    (out,) = _through(program, [(u, u) for u in jax.tree.leaves(directions)])
    return jnp.abs(out[0]) if out[1] is None else out[1]


def _through(program: ClosedJaxpr, arguments: Sequence[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Values of a jaxpr, each with its magnitude; None for what does not depend on the directions."""
    jaxpr = program.jaxpr
    known: dict[Any, tuple[Any, Any]] = dict(zip(jaxpr.constvars, ((c, None) for c in program.consts), strict=True))
    known |= dict(zip(jaxpr.invars, arguments, strict=True))

    def read(atom: Any) -> tuple[Any, Any]:
        return (atom.val, None) if isinstance(atom, Literal) else known[atom]

    for equation in jaxpr.eqns:
        operands = [read(atom) for atom in equation.invars]
        known |= dict(zip(equation.outvars, _results(jaxpr, equation, operands), strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def _results(jaxpr: Jaxpr, equation: JaxprEqn, operands: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    name = equation.primitive.name
    inner, loop = body_of(equation), Loop.of(equation)
    if inner is not None:
        return _through(inner, operands)
    if loop is not None and any(size is not None for _, size in operands):
        return _through_loop(loop, operands)
    values = evaluate_equation(jaxpr, equation, [value for value, _ in operands])
    if all(size is None for _, size in operands):
        return [(value, None) for value in values]
    sizes = [_size(value) if size is None else size for value, size in operands]
    if name == "neg":
        return [(values[0], sizes[0])]
    if name == "sub":
        return [(values[0], jnp.add(*sizes))]
    if name in POSITIVE:
        return list(zip(values, _applied(jaxpr, equation, sizes), strict=True))
    return [(value, _size(value)) for value in values]


def _through_loop(loop: Loop, operands: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """A loop over values and magnitudes side by side."""
    moving = loop.moves([size is not None for _, size in operands])
    pairs = [
        (value, (_size(value) if size is None else size) if moves else None)
        for (value, size), moves in zip(operands, moving, strict=True)
    ]
    ends = loop.constants + loop.carried
    fixed = pairs[: loop.constants]

    def step(carry, row):
        found = _through(loop.body, [*fixed, *carry, *row])
        kept = [
            (value, (_size(value) if size is None else size) if moves else None)
            for (value, size), moves in zip(found, moving[loop.constants : ends], strict=False)
        ]
        return kept, found[loop.carried :]

    carried, rows = loop.run(step, pairs[loop.constants : ends], pairs[ends:])
    return [*carried, *rows]


def _applied(jaxpr: Jaxpr, equation: JaxprEqn, operands: Sequence[Any]) -> list[Any]:
    """The results of an equation at other operands than its own, numbers that are written into it among them."""
    atoms: list[Any] = [Var(atom.aval) if isinstance(atom, Literal) else atom for atom in equation.invars]
    return evaluate_equation(jaxpr, equation.replace(invars=atoms), operands)


def _size(value: Any) -> Any:
    """|value|, in its own type; indices and conditions stay what they are."""
    kind = jnp.result_type(value)
    return jnp.abs(value).astype(kind) if jnp.issubdtype(kind, jnp.inexact) else value


def unit(terms: Sequence[BoundTerm], dtype: Any, summed: int) -> float:
    """e N for what these terms add to a sum over so many rows, in `dtype`."""
    dtype = np.dtype(dtype)
    own = [max(_coarsest(term.fn, dtype.name), float(jnp.finfo(dtype).eps)) for term in terms]
    steps = DERIVED * sum(_equations(term.fn.jaxpr) for term in terms)
    inside = max((_widest(term.fn) for term in terms), default=0)
    return max(own, default=float(jnp.finfo(dtype).eps)) * (summed + steps + inside)


def inner_unit(terms: Sequence[BoundTerm], dtype: Any) -> float:
    """e n for what these terms compute on the way."""
    own = [max(_coarsest(term.fn, np.dtype(dtype).name), float(jnp.finfo(dtype).eps)) for term in terms]
    inside = max((_widest(term.fn) for term in terms), default=0)
    return max(own, default=float(jnp.finfo(dtype).eps)) * (inside + 2)


def longest_sum(rows: Any, sizes: Sequence[int], chunk_bytes: float) -> int:
    """Additions that a row's part goes through where so many bytes of rows are summed at a time, then their sums."""
    leaves = jax.tree.leaves(rows)
    width = sum(leaf.size * leaf.dtype.itemsize // leaf.shape[0] for leaf in leaves)
    total = sum(sizes)
    chunk = min(max(1, int(chunk_bytes) // max(1, width)), total)
    return chunk + -(-total // chunk)


def fixed_unit(program: Program, dtype: Any) -> float:
    """e N for the terms without samples."""
    return unit(program.fixed, dtype, len(program.fixed) + 1)


@lru_cache(maxsize=1024)
def _coarsest(fn: Traced, dtype: str) -> float:
    """The unit of the coarsest type in which something is computed that depends on x, the first argument."""
    return _coarsest_of(fn.jaxpr, {fn.jaxpr.invars[0]})


def _coarsest_of(jaxpr: Jaxpr, moving: set) -> float:
    found = 0.0
    for equation in jaxpr.eqns:
        carried = [not isinstance(atom, Literal) and atom in moving for atom in equation.invars]
        if not any(carried):
            continue
        moving |= set(equation.outvars)
        kinds = [v.aval.dtype for v in equation.outvars if hasattr(v.aval, "dtype")]  # pyright: ignore[reportAttributeAccessIssue]
        found = max([found, *(float(jnp.finfo(kind).eps) for kind in kinds if jnp.issubdtype(kind, jnp.floating))])
        for inner in _inner(equation):
            found = max(found, _coarsest_of(inner, set(inner.invars)))
    return found


def _equations(jaxpr: Jaxpr) -> int:
    """How many there are, those of a loop as often as it goes round."""
    return sum(
        1 + equation.params.get("length", 1) * sum(_equations(inner) for inner in _inner(equation))
        for equation in jaxpr.eqns
    )


def _inner(equation: JaxprEqn) -> list[Jaxpr]:
    """The jaxprs that an equation holds."""
    given = [part for value in equation.params.values() for part in (value if isinstance(value, tuple) else (value,))]
    return [
        part.jaxpr if isinstance(part, ClosedJaxpr) else part
        for part in given
        if isinstance(part, (ClosedJaxpr, Jaxpr))
    ]


@lru_cache(maxsize=1024)
def _widest(fn: Traced) -> int:
    """Numbers in the largest array of a function: no sum inside it is longer."""
    return _widest_of(fn.jaxpr)


def _widest_of(jaxpr: Jaxpr) -> int:
    sizes = [int(np.prod(v.aval.shape)) for v in jaxpr.invars]  # pyright: ignore[reportAttributeAccessIssue]
    for equation in jaxpr.eqns:
        sizes += [int(np.prod(v.aval.shape)) for v in equation.outvars if hasattr(v.aval, "shape")]  # pyright: ignore[reportAttributeAccessIssue]
        sizes += [_widest_of(inner) for inner in _inner(equation)]
    return max(sizes, default=0)
