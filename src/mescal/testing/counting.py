"""Instrumented functions: how often a problem's function is really evaluated, differentiated, and differentiated twice.

`count_calls(fn)` returns a function with the same values and derivatives that counts, per sample and point, while compiled
programs run: the counts are those of the executed program, not of its trace. Several directions at one point, the columns of a
Hessian, are one evaluation.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback


class Calls:
    """Pairs of a row and a point where a function was evaluated (`values`), linearised (`gradients`) or twice so (`hvps`)."""

    def __init__(self):
        self.counts = [0, 0, 0]

    def reset(self):
        """Back to zero."""
        self.counts = [0, 0, 0]

    def add(self, order: int, rows: int):
        """Called by the running program."""
        self.counts[order] += rows

    @property
    def values(self) -> int:
        """Evaluations of any kind: a derivative evaluates the function, too."""
        return self.counts[0]

    @property
    def gradients(self) -> int:
        """Evaluations that were differentiated at least once."""
        return self.counts[1]

    @property
    def hvps(self) -> int:
        """Evaluations that were differentiated twice."""
        return self.counts[2]

    def __repr__(self) -> str:
        return f"Calls(values={self.values}, gradients={self.gradients}, hvps={self.hvps})"


def count_calls(fn: Callable) -> tuple[Callable, Calls]:
    """`fn(x, sample)` with counters; use it in a problem in the place of `fn`, then look at the returned `Calls`."""
    calls = Calls()

    def note(order: int, x: Any, sample: Any) -> Any:
        """x, unchanged, in a way that makes whatever uses it wait for the count."""
        # The operand depends on x and on the sample: batched with both. Infinity must not make what is not a number of it.
        marks = [
            jnp.ravel(leaf)[0].astype(jnp.float32)
            for leaf in (*jax.tree.leaves(x), *jax.tree.leaves(sample))
            if leaf.size
        ]
        marker = jnp.any(jnp.stack(marks) > 0).astype(jnp.float32)
        zero = _counter(partial(_add, calls, order))(jax.lax.stop_gradient(marker))
        return jax.tree.map(lambda leaf: leaf + zero.astype(leaf.dtype), x)

    @jax.custom_jvp
    def once(x, sample):
        return note(1, note(0, x, sample), sample)

    @once.defjvp
    def _(primals, tangents):  # differentiated again
        x, sample = primals
        return note(2, note(1, note(0, x, sample), sample), sample), tangents[0]

    @jax.custom_jvp
    def counted(x, sample):
        return fn(note(0, x, sample), sample)

    @counted.defjvp
    def _(primals, tangents):
        x, sample = primals
        return jax.jvp(lambda y: fn(y, sample), (once(x, sample),), (tangents[0],))

    return counted, calls


def _counter(add: Callable, rows: int = 1) -> Callable:
    """A function of a number that is 0, and calls `add` when it runs: once for a whole batch, with its size."""

    @jax.custom_batching.custom_vmap
    def batched(marker):
        return io_callback(partial(add, rows), jax.ShapeDtypeStruct((), jnp.float32), marker)

    @batched.def_vmap
    def _(size, _, marker):
        return _counter(add, rows * size)(marker[0]), False

    @jax.custom_jvp
    def counter(marker):
        return batched(marker)

    @counter.defjvp
    def _(primals, _):  # a constant
        return counter(*primals), jnp.zeros((), jnp.float32)

    return counter


def _add(calls: Calls, order: int, rows: int, marker: Any) -> np.ndarray:
    calls.add(order, rows)
    return np.zeros((), np.float32)
