"""Decisions that several processes must take together: what only one of them sees, all of them must act upon."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec


def agree(flag: bool) -> bool:
    """Whether the flag is set in any process; every process must ask at the same point of its run.

    Clocks and signals differ between processes. One that stopped by its own would leave the others waiting for its part of
    the next sum.
    """
    if jax.process_count() == 1:
        return bool(flag)
    mesh = Mesh(np.asarray(jax.devices()), ("all",), axis_types=(AxisType.Auto,))
    own = np.full(jax.local_device_count(), bool(flag), np.int32)
    flags = jax.make_array_from_process_local_data(NamedSharding(mesh, PartitionSpec("all")), own)
    return int(_total(flags)) > 0


def speaks() -> bool:
    """Whether this process is the one that writes files and reports progress."""
    return jax.process_index() == 0


@jax.jit
def _total(flags: jax.Array) -> jax.Array:
    return jnp.sum(flags)
