"""Compiled functions, with the option of XLA that suits them.

XLA's fusion emitters for CPUs take a third of the time that these programs need to compile, and what they emit runs a few per
cent faster at most (`benchmarks/compiling.py`): seconds for milliseconds. They are left out where the compiler knows the option,
as that of JAX 0.10 does and that of 0.11 does not; accelerators, and whoever sets the option in `XLA_FLAGS`, are left alone.
"""

import os
from collections.abc import Callable
from functools import cache, partial, wraps
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.core import Tracer

F = TypeVar("F", bound=Callable)

OPTION = "xla_cpu_use_fusion_emitters"


def compiled(function: F, static_argnums: int | tuple[int, ...] | None = None) -> F:
    """`eqx.filter_jit`, or `jax.jit` where there are `static_argnums`.

    JAX takes options of the outermost jit alone: a call with traced arguments has none.
    """
    jit: Any = eqx.filter_jit if static_argnums is None else partial(jax.jit, static_argnums=static_argnums)
    plain, without_emitters = jit(function), jit(function, compiler_options={OPTION: False})

    @wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        traced = any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves((arguments, named)))
        chosen = plain if traced or not leaves_emitters_out(OPTION) else without_emitters
        return chosen(*arguments, **named)

    return call  # pyright: ignore[reportReturnType]


@cache
def leaves_emitters_out(option: str) -> bool:
    """Whether programs are for a CPU whose compiler takes the option, and nobody has set it."""
    if jax.default_backend() != "cpu" or option in os.environ.get("XLA_FLAGS", ""):
        return False
    try:
        jax.jit(jnp.negative, compiler_options={option: False})(jnp.zeros(()))
    except jax.errors.JaxRuntimeError:
        return False
    return True
