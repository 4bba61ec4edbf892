"""Run in a process of its own, with eight virtual devices: prints as JSON how sharded rows compare with rows on one device."""

import json
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import mescal
from mescal.oracle import Lagrangian, surrogate
from mescal.problem import equality_form
from tests.devices.problems import collectives, measures, problem

X = np.full(5, 0.3, np.float32)
Z = jnp.asarray([*X, 0.1], jnp.float32)
V = jnp.arange(6, dtype=jnp.float32) / 6
KEY = jax.random.key(3, impl="threefry2x32")
CALLS = {
    "gradient": lambda oracle, n: oracle.gradient(Z, KEY, n),
    "hvp": lambda oracle, n: oracle.hvp(Z, V, KEY, n),
    "gradient of 100": lambda oracle, n: oracle.gradient(Z, KEY, 100),  # 100 rows do not divide by 8 devices
    "exact": lambda oracle, n: oracle.exact(Z),
    "exact hvp": lambda oracle, n: oracle.exact_hvp(Z, V, oracle.exact(Z)[0]),
}


def oracle_of(stated: mescal.Problem) -> Lagrangian:
    """The augmented Lagrangian at some multiplier and penalty."""
    program, _ = stated.bind(X, dtype=np.float32)
    form, data = equality_form(program, stated.domain), stated.device_data(program, np.float32)
    return Lagrangian(form, data, jnp.asarray([0.4], jnp.float32), jnp.float32(3.0), surrogate("ustat"))


def error(one, other) -> float:
    """The largest difference, relative to the largest entry."""
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    arrays = [(np.asarray(a, np.float64), np.asarray(b, np.float64)) for a, b in pairs]
    return max(float(np.max(np.abs(a - b)) / max(1e-30, np.max(np.abs(a)))) for a, b in arrays if a.size)


def estimates(plain: mescal.Problem, sharded: mescal.Problem) -> dict:
    """Errors and collectives of the oracle's calls, with their work."""
    one, many, found = oracle_of(plain), oracle_of(sharded), {}
    for name, call in CALLS.items():
        compiled = jax.jit(call).lower(many, jnp.int32(1300)).compile()
        (a, work), (b, same) = jax.jit(call)(one, jnp.int32(1300)), compiled(many, jnp.int32(1300))
        whole = all(leaf.is_fully_replicated for leaf in jax.tree.leaves(b))
        found[name] = {
            "error": error(a, b),
            "same work": work.tally() == same.tally(),
            "collectives": collectives(compiled.as_text()),
            "replicated": whole,
        }
    return found


def solved(stated: mescal.Problem, solver: str, dumped: Path) -> dict:
    """A solve, and the collectives of every program that was compiled for it, as XLA wrote them down in a folder."""
    result = mescal.minimize(stated, np.zeros(5, np.float32), solver=solver, tol=1e-3, seed=1)
    programs = [path.read_text() for path in dumped.glob("*after_optimizations.txt")]
    return {
        "x": np.asarray(result.x).tolist(),
        "work": result.work.total,
        "converged": result.converged,
        "measures": measures(result.certificate),
        "programs": len(programs),
        "collectives": collectives("\n".join(programs)),
    }


def main(what: str, how: str = "", dumped: str = ""):
    """Print what was asked for: `estimates`, or a solver on rows that are `plain` or `sharded`."""
    mesh = jax.make_mesh((4, 2), ("a", "b"))
    plain, sharded = problem(lambda arrays: arrays), problem(lambda arrays: mescal.shard(arrays, mesh))
    if what == "estimates":
        found = {"devices": jax.device_count(), "estimates": estimates(plain, sharded)}
        rows = np.arange(39.0).reshape(13, 3)
        other = np.where(np.arange(13)[:, None] == 11, rows + 1e-9, rows)
        meshes = [mesh, jax.make_mesh((8,), ("rows",)), jax.make_mesh((3,), ("rows",), devices=jax.devices()[:3])]
        found["digests"] = [mescal.shard(given, m).digest for m in meshes for given in (rows, other)]
        for name, stated in (("plain", plain), ("sharded", sharded)):
            found[name] = measures(mescal.certify(stated, X))
    else:
        found = solved(plain if how == "plain" else sharded, what, Path(dumped))
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
