"""Compiled functions, with the options of XLA that suit them.

On CPUs these programs are compiled without XLA's fusion emitters and at LLVM's first level of optimisation: in two thirds of the
time, for what runs as fast, since nearly all of it is products of matrices (`benchmarks/compiling.py`). On one core a program is
compiled in one piece: the parts into which XLA would cut it are for several cores, and each is work of its own. Each option is
left out where the compiler does not know it (that of JAX 0.11 has no such emitters) or where `XLA_FLAGS` sets it. Accelerators
are left alone.
"""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cache, partial, wraps
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax.core import Tracer

from .kept_calls import Structure, are_kept, cores, kept

OPTIONS = {"xla_cpu_use_fusion_emitters": False, "xla_backend_optimization_level": 1}
ON_ONE_CORE = {"xla_cpu_parallel_codegen_split_count": 1}


def compiled(function: Callable, static_argnums: int | tuple[int, ...] | None = None) -> Callable[..., Any]:
    """`eqx.filter_jit`, or `jax.jit` where there are `static_argnums`; called with arrays of numpy or of JAX alike.

    JAX takes options of the outermost jit alone: a call with traced arguments has none.
    """
    jit: Any = eqx.filter_jit if static_argnums is None else partial(jax.jit, static_argnums=static_argnums)
    plain, quick = jit(function), cache(lambda: jit(function, compiler_options=dict(options_here())))
    static = () if static_argnums is None else tuple(np.atleast_1d(np.asarray(static_argnums, int)))

    def takes_arrays(arguments: tuple[Any, ...]) -> bool:
        """Whether all that `jax.jit` would take for arrays are some: numbers would be part of a program that is kept."""
        given = [argument for i, argument in enumerate(arguments) if i not in static]
        return static_argnums is None or all(map(eqx.is_array, jax.tree.leaves(given)))

    @wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        traced = any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves((arguments, named)))
        if traced or not options_here():
            return plain(*arguments, **named)
        if are_kept() and not named and takes_arrays(arguments):
            structure, arrays = Structure.of(arguments)
            program = kept(function, (structure,), arrays, options_here())
            if program is not None:
                return program(arrays)
        return quick()(*arguments, **named)

    return call


def prepared(function: Callable, *fixed: Any) -> Callable[..., Any]:
    """`compiled(function)` with its first arguments fixed, for calls from the host: they are taken apart once, not every time.

    What a look at a few thousand rows takes is less than what it would take to tell a program's arrays from its structure.
    """
    structure, arrays = Structure.of(fixed)

    def call(*arguments: Any) -> Any:
        if are_kept():
            own, given = Structure.of(arguments)
            program = kept(function, (structure, own), [*arrays, *given], options_here())
            if program is not None:
                return program([*arrays, *given])
        return _of_parts(function)(structure, arrays, *arguments)

    return call


@cache
def _of_parts(function: Callable) -> Callable[..., Any]:
    @wraps(function)
    def call(structure: Structure, arrays: list, *arguments: Any) -> Any:
        return function(*structure.with_arrays(arrays), *arguments)

    return jax.jit(call, static_argnums=0, compiler_options=dict(options_here()) or None)


def leaf(value: Any, dtype: Any) -> Any:
    """An array leaf of a compiled program's arguments, left on the host: the call takes it along with all others.

    Sent to the device one by one, the numbers of a plan would take longer than a small solve.
    """
    return np.asarray(value, dtype)


def in_precision(dtype: Any) -> AbstractContextManager:
    """Where programs are traced and called that compute in `dtype`: 64-bit types are let in for float64 alone."""
    return jax.enable_x64(True) if np.dtype(dtype) == np.float64 else nullcontext()


@cache
def options_here() -> tuple[tuple[str, Any], ...]:
    """The options that the compiler of the default device takes; none for accelerators."""
    if jax.default_backend() != "cpu":
        return ()
    options = OPTIONS | (ON_ONE_CORE if cores() == 1 else {})
    wanted = tuple((name, value) for name, value in options.items() if name not in os.environ.get("XLA_FLAGS", ""))
    return wanted if are_taken(wanted) else tuple(option for option in wanted if are_taken((option,)))


def are_taken(options: tuple[tuple[str, Any], ...]) -> bool:
    """Whether the compiler knows these options."""
    try:
        jax.jit(lambda: 0, compiler_options=dict(options))()
    except jax.errors.JaxRuntimeError:
        return False
    return True
