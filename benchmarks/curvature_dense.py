"""The dense Hessian of the judge at d = 81 and d = 250, against numpy forming the same weighted Gram matrices.

The reference is `(X * w[:, None]).T @ X` in float64 for the rows of each source, weights given. Beside the judge's own way
(one Gram product where functions see x through few linear forms) the table has the general one, blocks of directions, and
the effect of the constants: bytes of a chunk of rows, blocks of columns of a symmetric product.
"""

from collections.abc import Callable

import jax
import numpy as np

from mescal.compiling import compiled
from mescal.oracle import evaluator, linear_forms, look, memory

from ._measure import Report, interleave, patched, ratio
from ._problems import judge_of, neyman_pearson, normal_rows

CASES = (("bank", 45_210, 81), ("loan", 128_375, 250), ("wide", 10_000, 1000))
CHUNKS = (256 << 10, 1 << 20, 4 << 20)  # bytes
BLOCKS = (1, 2, 4, 8)


def run(quick: bool) -> Report:
    """All variants in turn, per case."""
    cases = (("small", 2_000, 20),) if quick else CASES
    report = Report({"type": "float64", "cases": [{"name": n, "rows": s, "d": d} for n, s, d in cases]})
    for name, size, d in cases:
        _case(report, name, size, d, quick)
    return report


def _case(report: Report, name: str, size: int, d: int, quick: bool):
    positives, negatives = normal_rows((size // 2, size - size // 2), d, np.float64)
    x = np.random.default_rng(1).normal(size=d) / np.sqrt(d)
    judge = judge_of(neyman_pearson(positives, negatives), x)
    weights = [np.random.default_rng(2).normal(size=len(rows)) for rows in (positives, negatives)]
    multipliers = np.array([0.7])

    def reference():
        return [(rows * w[:, None]).T @ rows for rows, w in zip((positives, negatives), weights, strict=True)]

    def variant(chunk: int | None = None, blocks: int | None = None, directions: bool = False) -> Callable[[], None]:
        # A function of its own, so that nothing compiled for another variant is used.
        hessian = compiled(lambda program, data, x, weight: look.hessian(program, data, x, 1.0, weight))
        body = (lambda *given, kind: look._product_sums(*given)) if directions else look._matrix_sums

        def action():
            with (
                patched(evaluator, _hessian=hessian),
                patched(look, _matrix_sums=body, matrix_bytes=lambda chunk=chunk: chunk or memory.matrix_bytes()),
                patched(linear_forms, **({} if blocks is None else {"BLOCKS": blocks, "BLOCK_COLUMNS": 1})),
            ):
                judge.hessian(x, multipliers)

        return action

    actions: dict[str, Callable] = {
        "numpy": reference,
        "the judge's": variant(),
        "directions": variant(directions=True),
    }
    if not quick:
        actions |= {f"chunks of {chunk >> 10} KiB": variant(chunk=chunk) for chunk in CHUNKS}
        actions |= {f"{blocks} blocks of columns": variant(blocks=blocks) for blocks in BLOCKS}
    seconds = interleave(actions, 3 if quick else 9)
    for label, times in seconds.items():
        report.add(
            f"{name}: {size:,} rows, d = {d}",
            hessian=label,
            milliseconds=1e3 * float(np.median(times)),
            ratio=ratio(times, seconds["numpy"]),
        )
    if name in ("bank", "loan"):
        report.hold(f"{name}: Hessian / numpy's Gram matrices", ratio(seconds["the judge's"], seconds["numpy"]), 2)
        report.hold(
            f"{name}: the same by blocks of directions, for functions of any kind",
            ratio(seconds["directions"], seconds["numpy"]),
            2,
        )
    jax.clear_caches()
