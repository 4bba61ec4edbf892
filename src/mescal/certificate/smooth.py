"""Whether functions are known, from their equations alone, to be twice differentiable with derivatives of their own.

A composition of smooth primitives is smooth wherever its values and derivatives are finite, and JAX's rules for them are theirs. So
difference quotients have nothing to say where all that depends on x is made of these: no kink (abs, max, where), no jump (floor,
sign, a comparison), no derivative that somebody cut off or wrote by hand. At the end of a primitive's domain (sqrt, log, a power at
zero) derivatives are not finite, which the judge refuses anyway.

Deviation: of functions with derivative rules by hand, those of `RULED` that JAX brings along count as smooth, as its primitives do.
"""

from functools import lru_cache
from pathlib import Path

import jax
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal

from ..oracle.rounding import POSITIVE
from ..problem import Program
from ..problem.traced import Loop, Traced, body_of

ANALYTIC = {
    *("sub", "neg", "dot", "integer_pow", "square", "pow", "sqrt", "rsqrt", "cbrt"),
    *("exp", "exp2", "expm1", "log", "log1p", "logistic", "sin", "cos", "tan", "tanh", "sinh", "cosh", "asin", "acos"),
    *("atan", "asinh", "acosh", "atanh", "erf", "erfc", "lgamma", "digamma"),  # not atan2, which jumps
}
SMOOTH = ANALYTIC | (POSITIVE - {"select_n", "reduce_precision"})
RULED = {"logaddexp", "logaddexp2", "log_ndtr"}


def surely_smooth(program: Program) -> bool:
    """Whether all its terms are, in x."""
    terms = [*program.fixed, *(term for family in program.families for term in family.terms)]
    return all(_smooth(term.fn) for term in terms)


@lru_cache(maxsize=1024)
def _smooth(fn: Traced) -> bool:
    return _smooth_in(fn.jaxpr, {fn.jaxpr.invars[0]})


def _smooth_in(jaxpr: Jaxpr, moving: set) -> bool:
    """Whether what depends on the variables in `moving` is smooth in them."""
    moving = set(moving)
    for equation in jaxpr.eqns:
        carried = [not isinstance(atom, Literal) and atom in moving for atom in equation.invars]
        if not any(carried):
            continue
        moving |= set(equation.outvars)
        inner, loop = body_of(equation), Loop.of(equation)
        if loop is not None:
            inner, carried = loop.body, loop.moves(carried)
        if inner is not None:
            variables = inner.jaxpr.invars
            if not _smooth_in(inner.jaxpr, {v for v, moves in zip(variables, carried, strict=True) if moves}):
                return False
        elif not _is_smooth(equation, carried):
            return False
    return True


def _is_smooth(equation: JaxprEqn, carried: list[bool]) -> bool:
    name = equation.primitive.name
    if name == "select_n":
        return not carried[0]  # which of its cases is taken does not depend on x
    if name == "pow" and carried[1]:
        return False
    if name == "custom_jvp_call":
        return _is_known(equation.params.get("call_jaxpr"))
    kinds = [jax.numpy.issubdtype(getattr(v.aval, "dtype", bool), jax.numpy.floating) for v in equation.outvars]
    return name in SMOOTH and all(kinds)


def _is_known(function: ClosedJaxpr | None) -> bool:
    """Whether a function with a rule by hand is one of JAX's that are smooth."""
    told = getattr(getattr(function, "jaxpr", None), "debug_info", None)
    name, _, where = str(getattr(told, "func_src_info", "")).partition(" at ")
    return name in RULED and Path(where.rpartition(":")[0]).is_relative_to(Path(jax.__file__).parent)
