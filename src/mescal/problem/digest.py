"""Digests of data and of functions: by these a checkpoint knows the problem that it belongs to.

    arrays:     SHA-256 over type, shape and every byte, in blocks, at about the speed of memory: a gigabyte in a second;
    functions:  SHA-256 over their equations, in words that are the same in every process, and what they close over.

They tell apart what was changed by accident, not what was forged: whoever passes a problem could pass any.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive

from .traced import Traced

BLOCK = 16 << 20  # bytes that are on the host at a time, of arrays that are elsewhere
ADDRESS = re.compile(r"0x[0-9a-f]+")  # in a text: another one in every process


def digest_blocks(dtype: Any, shape: tuple[int, ...], blocks: Iterable[np.ndarray]) -> str:
    """Of an array that comes in blocks of rows."""
    found = hashlib.sha256(repr((str(np.dtype(dtype)), tuple(shape))).encode())
    for block in blocks:
        found.update(np.ascontiguousarray(block).reshape(-1).view(np.uint8).data)
    return found.hexdigest()


def digest_array(array: Any) -> str:
    """Of one array, on the host or on a device."""
    if isinstance(array, jax.Array) and jnp.issubdtype(array.dtype, jax.dtypes.prng_key):
        array = jax.random.key_data(array)
    on_host = not isinstance(array, jax.Array) or all(device.platform == "cpu" for device in array.devices())
    if on_host or not array.ndim:
        host = np.asarray(array)
        return digest_blocks(host.dtype, host.shape, [host])
    rows = max(1, BLOCK * array.shape[0] // max(1, array.nbytes))
    blocks = (np.asarray(array[start : start + rows]) for start in range(0, array.shape[0], rows))
    return digest_blocks(array.dtype, array.shape, blocks)


def digest_of(*parts: Any) -> str:
    """Of other digests, keys of functions and whatever else can be said in words."""
    found = hashlib.sha256()
    for word in _words(parts):
        found.update(word if isinstance(word, bytes) else word.encode())
        found.update(b"\0")
    return found.hexdigest()


def digest_function(function: Traced, constants: Iterable[Any] = ()) -> str:
    """Of a function that was traced, with the arrays that it closes over."""
    return digest_of(function.key, [digest_array(constant) for constant in constants])


def _words(value: Any) -> Iterable[str | bytes]:
    """A value as words that do not depend on the process: what has no value of its own is known by its kind alone."""
    if isinstance(value, (tuple, list)):
        yield "("
        for part in value:
            yield from _words(part)
        yield ")"
    elif isinstance(value, Mapping):
        yield from _words(sorted((str(key), digest_of(part)) for key, part in value.items()))
    elif isinstance(value, (set, frozenset)):
        yield from _words(sorted(digest_of(part) for part in value))
    elif isinstance(value, bytes):
        yield value
    elif isinstance(value, float):
        yield value.hex()
    elif isinstance(value, Traced):
        yield from _words(value.key)
    elif isinstance(value, (type, Primitive)) or callable(value):
        yield getattr(value, "__qualname__", None) or getattr(value, "name", type(value).__name__)
    else:
        yield ADDRESS.sub("", f"{type(value).__name__} {value!r}")
