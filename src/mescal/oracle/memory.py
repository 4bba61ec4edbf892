"""How much a device looks at together: from its cache on a CPU, from its memory elsewhere; less after it ran out of it.

Read when a program is compiled; `shrink` drops what was compiled before.
"""

from functools import cache

import jax

from ..kept_calls import tell

# Bytes of the rows of an exact pass that are looked at together on a CPU. Rows that have left the core's cache between the
# product with z and the one with the cotangents are read from memory twice: two to three times slower; measured, see
# benchmarks/oracle_gradient.py.
CACHED_BYTES = 2 << 20
# Of the rows, and of their products with directions, that exist at a time when a Hessian is formed: what leaves the core's
# cache between two products is read from memory again. Measured, see benchmarks/curvature_dense.py.
CACHED_MATRIX_BYTES = 1 << 20
SHARE = 1 / 64  # of an accelerator's memory: the same there, where it is launching that costs, and memory that ends
MATRIX_SHARE = 1 / 16  # of that: rows in float64, weighted ones and what functions hold of them are there beside
UNKNOWN = 4 << 30  # bytes of memory of an accelerator that does not tell
MICRO = 256  # samples of a micro-batch on a CPU, where small batches are common; 1024 was 0 to 15 % faster on large ones ...
LARGEST_MICRO = 1 << 16  # ... and at most elsewhere
SMALLER = 8  # factor by which all of this shrinks when memory runs out

_shrunk = [1]


def chunk_bytes() -> int:
    """Bytes of the rows of an exact pass that are looked at together."""
    memory = _memory()
    return max(1, (CACHED_BYTES if memory is None else int(SHARE * memory)) // _shrunk[0])


def matrix_bytes() -> int:
    """The same where a Hessian is formed."""
    memory = _memory()
    return max(1, (CACHED_MATRIX_BYTES if memory is None else int(MATRIX_SHARE * SHARE * memory)) // _shrunk[0])


def micro_batch(width: int) -> int:
    """Samples of a micro-batch, each of which takes `width` bytes with what is computed from it; a power of two."""
    memory, micro = _memory(), MICRO
    if memory is not None:
        fitting = int(SHARE * memory) // max(1, width)
        micro = min(max(MICRO, 1 << max(0, fitting.bit_length() - 1)), LARGEST_MICRO)
    return max(1, micro // _shrunk[0])


def shrink() -> bool:
    """Look at less together from now on; False where that was done before."""
    if _shrunk[0] > 1:
        return False
    _shrunk[0] = SMALLER
    jax.clear_caches()
    tell("shrunk", SMALLER)
    return True


def is_out_of_memory(error: BaseException) -> bool:
    """Whether a device said that it has no memory left."""
    return isinstance(error, jax.errors.JaxRuntimeError) and "RESOURCE_EXHAUSTED" in str(error)


@cache
def _memory() -> int | None:
    """Bytes of the device's memory; None on a CPU."""
    device = jax.local_devices()[0]
    if device.platform == "cpu":
        return None
    stats = device.memory_stats() or {}
    return int(stats.get("bytes_limit", UNKNOWN))
