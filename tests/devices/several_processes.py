"""What each process of a launched run does: `estimates` compares its rows with those of one device; `solve FOLDER` solves.

`solve FOLDER kill` is killed in its course, in process 1 alone; `solve FOLDER resume` carries it on.
"""

import json
import os
import signal
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.multihost_utils import process_allgather

import mescal
from mescal import E
from mescal.oracle.access import take_rows
from tests.devices.problems import collectives, measures, problem

X = np.full(5, 0.3, np.float32)
Z = jnp.asarray([*X, 0.1], jnp.float32)


def own_part(leaf):
    """The rows of this process: unequal shares."""
    cut = [len(leaf) * k * k // jax.process_count() ** 2 for k in range(jax.process_count() + 1)]
    return leaf[cut[jax.process_index()] : cut[jax.process_index() + 1]]


def sharded() -> mescal.Problem:
    """The problem of these tests, each process with its own rows."""
    mesh = jax.make_mesh((jax.device_count(),), ("rows",))
    return problem(lambda arrays: mescal.shard(jax.tree.map(own_part, arrays), mesh), own_part)


def estimates() -> dict:
    """A sampled and an exact gradient, and a certificate, of sharded rows and of rows that every process has."""
    from tests.devices.eight_devices import CALLS, error, oracle_of

    plain, many = problem(lambda arrays: arrays), sharded()
    found: dict = {"processes": jax.process_count(), "errors": {}, "collectives": []}
    for name in ("gradient", "exact"):
        compiled = jax.jit(CALLS[name]).lower(oracle_of(many), jnp.int32(1300)).compile()
        found["collectives"] += collectives(compiled.as_text())
        one = jax.jit(CALLS[name])(oracle_of(plain), jnp.int32(1300))
        found["errors"][name] = error(one, compiled(oracle_of(many), jnp.int32(1300)))
    found["rows"] = same_rows(plain, many)
    return found | {"plain": measures(mescal.certify(plain, X)), "sharded": measures(mescal.certify(many, X))}


def same_rows(plain: mescal.Problem, many: mescal.Problem) -> list[bool]:
    """Leaf by leaf, whether the rows that indices name are bit for bit those of one process."""
    indices = jax.random.randint(jax.random.key(7), (1024,), 0, 1203)
    one, other = ([jax.jit(take_rows)(data, indices) for data in held(stated)] for stated in (plain, many))
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(process_allgather(other, tiled=True)), strict=True)
    return [np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in pairs]


def held(stated: mescal.Problem):
    """The rows of a problem's populations, on the devices."""
    return stated.device_data(stated.bind(X, dtype=np.float32)[0], np.float32)


def quadratic() -> mescal.Problem:
    """A problem of many cheap outer iterations, each process with its own rows."""
    rng, mesh = np.random.default_rng(0), jax.make_mesh((jax.device_count(),), ("rows",))
    points, normals = (rng.normal(1.0, size=(size, 4)).astype(np.float32) for size in (3001, 1203))
    return mescal.Problem(
        E(lambda x, row: jnp.sum((x - row) ** 2), over=mescal.shard(own_part(points), mesh)),
        {"plane": E(lambda x, row: x @ row, over=mescal.shard(own_part(normals), mesh)) == 1},
    )


def solve(folder: Path, how: str) -> dict:
    """A run with checkpoints, or the rest of one."""

    def die(row):
        if how == "kill" and jax.process_index() == 1 and row.outer == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return False

    if how == "resume":
        result = mescal.resume(folder, quadratic(), callback=die)
    else:
        start = np.zeros(4, np.float32)
        asked = {"checkpoint": mescal.Checkpoint(folder, seconds=1e-3), "outer": mescal.Outer(penalty=0.01)}
        result = mescal.minimize(quadratic(), start, tol=1e-3, seed=1, callback=die, **asked)
    rows = [row.outer for row in result.history]
    same = len(
        {x.tobytes() for x in process_allgather(np.asarray(result.x))}
    )  # one, where all processes hold one result
    return {"converged": result.converged, "rows": rows, "measures": measures(result.certificate), "results": same}


if __name__ == "__main__":
    what = sys.argv[1]
    found = estimates() if what == "estimates" else solve(Path(sys.argv[2]), sys.argv[3])
    if jax.process_index() == 0:
        print(json.dumps(found))
