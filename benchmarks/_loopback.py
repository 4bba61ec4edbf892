"""Run by `mescal.launch`: seconds of an all-reduce between the processes of this machine, by size; process 0 prints them."""

import functools
import json
import sys
import time

import jax
import numpy as np

SIZES = (64, 1 << 12, 1 << 16, 1 << 20)  # bytes


def seconds_of_a_sum(size: int, repetitions: int) -> float:
    """The least seconds of summing `size` bytes over all processes, of several tries."""
    mesh = jax.make_mesh((jax.device_count(),), ("processes",))
    spread = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("processes"))
    own = np.ones((1, size // 4), np.float32)
    array = jax.make_array_from_process_local_data(spread, own)
    add = functools.partial(jax.lax.psum, axis_name="processes")
    whole = jax.sharding.PartitionSpec()
    total = jax.jit(jax.shard_map(add, mesh=mesh, in_specs=spread.spec, out_specs=whole))
    total(array).block_until_ready()
    least = float("inf")
    for _ in range(repetitions):
        start = time.perf_counter()
        total(array).block_until_ready()
        least = min(least, time.perf_counter() - start)
    return least


if __name__ == "__main__":
    found = {str(size): seconds_of_a_sum(size, int(sys.argv[1])) for size in SIZES}
    if jax.process_index() == 0:
        print(json.dumps(found))
