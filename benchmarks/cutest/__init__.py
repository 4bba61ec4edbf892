"""CUTEst problems of `sif2jax` with noise: `load` makes one, `names` are those that `pick` chose, in `picked.json`."""

from .noisy import Instance, load, names

__all__ = ["Instance", "load", "names"]
