"""Streams of Gaussian noise for problems whose expectations are known in closed form."""

import functools

import jax

from ..problem import Sampler
from .named import Parameter

SIGMA = Parameter(0.1, "the standard deviation of the noise; 0 makes the noisy terms deterministic", low=0)


@functools.cache
def gaussian(sigma: float, *shapes: tuple[int, ...], role: str = "") -> Sampler:
    """Independent N(0, sigma^2) arrays of the given shapes: one array, or a tuple of several.

    The same arguments give the same stream, and with it the same compiled programs. Two terms of one problem that are
    to be independent have different shapes or different roles.
    """

    def draw(key):
        keys = jax.random.split(key, len(shapes))
        arrays = [sigma * jax.random.normal(k, shape) for k, shape in zip(keys, shapes, strict=True)]
        return arrays[0] if len(arrays) == 1 else tuple(arrays)

    return Sampler(draw)
