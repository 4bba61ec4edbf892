"""The oracle's gradient at a batch of 1,024 against numpy, with where the time goes; the exact pass; its constants.

Sampled: `Lagrangian.gradient` in a compiled loop of steps, d = 57, 64, 500. The reference draws indices, gathers rows and
multiplies them by a vector and by its products, in numpy and float32. Parts are found by ablation: the oracle with indices
drawn beforehand, then with rows that need no gathering, then the bare products.
Exact: `Lagrangian.exact` against numpy's two matrix-vector products in the same type.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import mescal
from mescal import E
from mescal.oracle import lagrangian, memory
from mescal.oracle.draw import take_rows
from mescal.problem import Rows

from ._measure import Report, interleave, patched, ratio
from ._problems import lagrangian_of, neyman_pearson, normal_rows

BATCH = 1024
SAMPLED = ((57, (1813, 2788)), (64, (1813, 2788)), (500, (1300, 1300)))
EXACT = ((57, (1813, 2788)), (81, (22_605, 22_605)), (250, (63_890, 64_485)))
CHUNKS = (128 << 10, 512 << 10, 1 << 20, 2 << 20, 4 << 20, 16 << 20, 1 << 40)  # bytes
OUTPUTS = (1, 2, 3, 4, 6, 8)
HIDDEN = 16
DRAWN_BEFORE = 16  # batches of indices: a table that stays in the cache


def run(quick: bool) -> Report:
    """Sampled gradients, exact gradients, and the number of outputs up to which one pass is the better."""
    steps, repetitions = (20, 3) if quick else (200, 15)
    report = Report({"batch": BATCH, "steps": steps, "surrogate": "ustat"})
    for d, sizes in SAMPLED[:1] if quick else SAMPLED:
        _sampled(report, d, sizes, steps, repetitions)
    for dtype in (np.float32,) if quick else (np.float32, np.float64):
        for d, sizes in EXACT[:1] if quick else EXACT:
            with jax.enable_x64(dtype is np.float64):
                _exact(report, d, sizes, dtype, repetitions)
    if not quick:
        _passes(report, repetitions)
    return report


# ---- sampled gradients


def _sampled(report: Report, d: int, sizes: tuple[int, int], steps: int, repetitions: int):
    positives, negatives = normal_rows(sizes, d, np.float32)
    x = np.full(d, 1 / d, np.float32)
    oracle, z = lagrangian_of(neyman_pearson(positives, negatives), x)
    short = eqx.tree_at(lambda o: o.data, oracle, jax.tree.map(lambda leaf: leaf[:BATCH], oracle.data))
    rng = np.random.default_rng(1)

    def reference():
        for _ in range(steps):
            for rows in (positives, negatives):
                taken = rows[rng.integers(0, len(rows), BATCH)]
                _ = (taken @ x) @ taken

    def loop(gradient: Callable, draw: Callable | None = None, oracle=oracle) -> Callable[[], Any]:
        """`steps` gradient steps as one compiled program."""

        @jax.jit
        def program(oracle, z, n):
            def step(i, z):
                return z - 1e-3 * gradient(oracle, z, jax.random.fold_in(jax.random.key(0), i), n)

            return jax.lax.fori_loop(0, steps, step, z)

        with patched(lagrangian, draw_rows=draw or lagrangian.draw_rows):
            program(oracle, z, jnp.int32(BATCH))
        return lambda: program(oracle, z, jnp.int32(BATCH)).block_until_ready()

    def traced(oracle, z, key, n):
        return oracle.gradient(z, key, n)[0]

    seconds = interleave(
        {
            "numpy": reference,
            "oracle": loop(traced),
            "known size": loop(lambda oracle, z, key, n: oracle.gradient(z, key, BATCH)[0]),
            "bare loop": loop(_bare),
            "indices free": loop(traced, _drawn_before(sizes)),
            "rows free": loop(traced, _free_rows, short),
            "products": loop(_products, oracle=short),
        },
        repetitions,
    )
    per_sample = {name: 1e9 * float(np.median(times)) / steps / BATCH for name, times in seconds.items()}
    report.add(
        "sampled gradient: ratios to numpy, nanoseconds per sample",
        d=d,
        oracle=ratio(seconds["oracle"], seconds["numpy"]),
        known_size=ratio(seconds["known size"], seconds["numpy"]),
        bare_jax_loop=ratio(seconds["bare loop"], seconds["numpy"]),
        oracle_ns=per_sample["oracle"],
        numpy_ns=per_sample["numpy"],
    )
    report.add(
        "where the oracle's time goes, nanoseconds per sample (by ablation)",
        d=d,
        all=per_sample["oracle"],
        drawing=per_sample["oracle"] - per_sample["indices free"],
        gathering=per_sample["indices free"] - per_sample["rows free"],
        products=per_sample["products"],
        rest=per_sample["rows free"] - per_sample["products"],
    )
    report.hold(f"gradient at batch {BATCH:,}, d = {d} / numpy", ratio(seconds["oracle"], seconds["numpy"]), 1.2)


def _drawn_before(sizes: tuple[int, int]) -> Callable:
    """In the place of `draw_rows`: rows at indices from a table, chosen by the key."""
    rng = np.random.default_rng(2)
    tables = [rng.integers(0, size, (DRAWN_BEFORE, BATCH)).astype(np.int32) for size in sizes]

    def draw(program, data, key, start, count, only=None) -> tuple[Rows | None, ...]:
        line = jax.random.key_data(key)[1] % DRAWN_BEFORE
        return tuple(
            _of_one(take_rows(rows, jax.lax.optimization_barrier(jnp.asarray(table)[line])))
            for rows, table in zip(data, tables, strict=True)
        )

    return draw


def _free_rows(program, data, key, start, count, only=None) -> tuple[Rows | None, ...]:
    """The data as they are: for an oracle that holds no more rows than a batch."""
    return tuple(map(_of_one, data))


def _of_one(rows: Rows) -> Rows:
    """Samples of a family with one member: its axis comes first."""
    return jax.tree.map(lambda leaf: leaf[None], rows)


def _products(oracle, z, key, n) -> jax.Array:
    """The four matrix-vector products and nothing else."""
    gradient = jnp.zeros_like(z)
    for rows in oracle.data:
        d = rows.samples.shape[1]
        gradient = gradient.at[:d].add((rows.samples @ z[:d]) @ rows.samples)
    return gradient


def _bare(oracle, z, key, n) -> jax.Array:
    """What a person would write by hand for this one problem: draw, gather, multiply."""
    gradient = jnp.zeros_like(z)
    for k, rows in enumerate(oracle.data):
        bits = jax.random.bits(jax.random.fold_in(key, k), (BATCH,), jnp.uint32)
        taken = rows.samples[jax.lax.optimization_barrier((bits % rows.samples.shape[0]).astype(jnp.int32))]
        gradient = gradient.at[: taken.shape[1]].add((taken @ z[: taken.shape[1]]) @ taken)
    return gradient


# ---- exact gradients


def _exact(report: Report, d: int, sizes: tuple[int, int], dtype: Any, repetitions: int):
    positives, negatives = normal_rows(sizes, d, dtype)
    x = np.full(d, 1 / d, dtype)
    oracle, z = lagrangian_of(neyman_pearson(positives, negatives), x)

    def reference():
        return [(rows @ x) @ rows for rows in (positives, negatives)]

    actions = {"numpy": reference} | {str(chunk): _full_pass(oracle, z, memory, CACHED_BYTES=chunk) for chunk in CHUNKS}
    seconds = interleave(actions, repetitions, inner=3)
    ratios = {chunk: ratio(seconds[str(chunk)], seconds["numpy"]) for chunk in CHUNKS}
    labels = {chunk: f"{chunk >> 10:,} KiB" if chunk < 1 << 40 else "all rows" for chunk in CHUNKS}
    report.add(
        f"exact gradient: ratio to numpy, by bytes of a chunk (default {memory.CACHED_BYTES >> 10:,} KiB)",
        type=np.dtype(dtype).name,
        rows=sum(sizes),
        d=d,
        megabytes=(positives.nbytes + negatives.nbytes) / 1e6,
        numpy_ms=1e3 * float(np.median(seconds["numpy"])),
        **{labels[chunk]: ratios[chunk] for chunk in CHUNKS},
    )


def _full_pass(oracle, z, module, **constants) -> Callable[[], Any]:
    program = jax.jit(lambda oracle, z: oracle.exact(z)[0].gradient)
    with patched(module, **constants):
        program(oracle, z)
    return lambda: program(oracle, z).block_until_ready()


def _passes(report: Report, repetitions: int):
    """One pass that accumulates the Jacobian against two (values, then one weighted row), by outputs of a source."""
    d, size = 64, 16_384
    rows = normal_rows((size, 1), d, np.float32)[0]
    best = {}
    for kind, parameters in (("scores", d), ("two layers", HIDDEN * (d + 1))):
        x = (np.random.default_rng(3).normal(size=parameters) / np.sqrt(d)).astype(np.float32)
        for outputs in OUTPUTS:
            turns = np.arange(outputs, dtype=np.float32)

            def fn(w, a, kind=kind, turns=turns):
                u = a @ w if kind == "scores" else jnp.tanh(w[: HIDDEN * d].reshape(HIDDEN, d) @ a) @ w[HIDDEN * d :]
                return jnp.sin(u + turns)

            problem = mescal.Problem(E(lambda w: 0.5 * w @ w), {"c": E(fn, over=rows) <= 0.1})
            oracle, z = lagrangian_of(problem, x)
            one = _full_pass(oracle, z, lagrangian, ONE_PASS_OUTPUTS=outputs)
            two = _full_pass(oracle, z, lagrangian, ONE_PASS_OUTPUTS=0)
            seconds = interleave({"one": one, "two": two}, repetitions, inner=3)
            found = ratio(seconds["one"], seconds["two"])
            report.add("exact gradient: one pass / two passes", function=kind, outputs=outputs, ratio=found)
            if found <= 1:
                best[kind] = outputs
    limits = ", ".join(f"{best.get(kind, 0)} ({kind})" for kind in ("scores", "two layers"))
    report.conclusions.append(
        f"One pass is the faster up to this many outputs of a source: {limits}; the code uses it up to "
        f"{lagrangian.ONE_PASS_OUTPUTS}."
    )
