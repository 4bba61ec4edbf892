"""Which operations of a function cannot be differentiated twice, first in reverse and then forwards, as the oracle does."""

from typing import Any

import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal
from jax.interpreters.ad import primitive_jvps

from .traced import Traced

UNRULED = {
    "while": "a loop of unknown length (lax.while_loop, or lax.fori_loop with computed ends) has no reverse mode: "
    "use lax.scan, or lax.fori_loop with numbers as ends",
    "custom_vjp_call": "a rule by jax.custom_vjp has no forward mode, which Hessians need: state it as jax.custom_jvp",
    "pure_callback": "a callback has no derivative: give it one by jax.custom_jvp, or write it in jax.numpy",
    "io_callback": "a callback has no derivative: give it one by jax.custom_jvp, or write it in jax.numpy",
}
OPENED = ("jit", "pjit", "cond", "scan", "remat", "checkpoint", "remat2", "closed_call", "core_call")


def missing_rule(fn: Traced) -> tuple[str, str] | None:
    """The first operation on what depends on x, the first argument, that has no derivative as needed, and what to do."""
    return _missing_in(fn.jaxpr, {fn.jaxpr.invars[0]})


def _missing_in(jaxpr: Jaxpr, moving: set) -> tuple[str, str] | None:
    moving = set(moving)
    for equation in jaxpr.eqns:
        carried = [not isinstance(atom, Literal) and atom in moving for atom in equation.invars]
        floating = any(jnp.issubdtype(getattr(v.aval, "dtype", bool), jnp.inexact) for v in equation.outvars)
        if not any(carried) or not floating:
            continue
        moving |= set(equation.outvars)
        name = equation.primitive.name
        if name in UNRULED or name.startswith("custom_vjp_call"):
            return name, UNRULED.get(name, UNRULED["custom_vjp_call"])
        for inner in _bodies(equation.params) if name in OPENED else ():
            found = _missing_in(inner, set(inner.invars))
            if found is not None:
                return found
        if name not in OPENED and not name.startswith("custom_") and equation.primitive not in primitive_jvps:
            return name, "JAX has no derivative for it: write it by other functions, or give it one by jax.custom_jvp"
    return None


def _bodies(parameters: dict[str, Any]) -> list[Jaxpr]:
    parts = [part for value in parameters.values() for part in (value if isinstance(value, tuple) else (value,))]
    bodies = [part.jaxpr if isinstance(part, ClosedJaxpr) else part for part in parts]
    return [body for body in bodies if isinstance(body, Jaxpr)]
