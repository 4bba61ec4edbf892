"""Instrumented functions: how often a problem's function is really evaluated, differentiated, and differentiated twice.

`count_calls(fn)` returns a function with the same values and derivatives that counts, per sample, while compiled programs
run: the counts are those of the executed program, not of its trace.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback


class Calls:
    """Rows on which a function was evaluated (`values`), linearised (`gradients`), linearised twice (`hvps`)."""

    def __init__(self):
        self.counts = [0, 0, 0]

    def reset(self):
        """Back to zero."""
        self.counts = [0, 0, 0]

    def add(self, order: int, rows: Any):
        """Called by the running program."""
        self.counts[order] += int(np.size(rows))

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
        # The operand depends on the sample alone: batched with it, never differentiated.
        marker = jax.lax.stop_gradient(jnp.ravel(jax.tree.leaves(sample)[0])[0].astype(jnp.float32))
        zero = io_callback(partial(_add, calls, order), jax.ShapeDtypeStruct((), jnp.float32), marker)
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


def _add(calls: Calls, order: int, rows: Any) -> np.ndarray:
    calls.add(order, rows)
    return np.zeros(np.shape(rows), np.float32)
