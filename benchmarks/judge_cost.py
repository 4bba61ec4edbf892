"""What rounding bounds and difference quotients add to the price of a certificate: small, spambase, rows of a bank's size.

The judge with both against the same judge without: a look that sums no magnitudes, no bounds on the Hessian, no quotients. Smooth
functions need no quotients; a squared hinge does.
"""

import importlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import jax
import numpy as np

import mescal
from mescal import E
from mescal.certificate import rounded
from mescal.certificate.quotients import Mismatch
from mescal.certificate.rounded import Rounded
from mescal.oracle.evaluator import Evaluator
from mescal.oracle.look import At, Rounding
from mescal.problem import Population

from ._measure import Report, interleave, patched, ratio
from ._problems import neyman_pearson, normal_rows, score

BANK, SMALL = (45_000, 81), (200, 5)
TARGET = 1.2


def hinge(w, a):
    """The squared hinge of a positive row."""
    return jax.nn.relu(1 - a @ w) ** 2


def run(quick: bool) -> Report:
    """Pairs of certificates, one with and one without."""
    report = Report({"bank": BANK, "small": SMALL, "tolerance": 0.01})
    for name, rows in _rows(quick).items():
        x = np.random.default_rng(0).normal(size=rows[0].shape[1]) / np.sqrt(rows[0].shape[1])
        kinds = {
            "smooth": neyman_pearson(*rows),
            "hinge": mescal.Problem(E(hinge, over=rows[0]), {"false positives": E(score, over=rows[1]) <= 0.2}),
        }
        for kind, problem in kinds.items():
            _measure(report, name, kind, problem, x, quick)
    return report


def _measure(report: Report, name: str, kind: str, problem: mescal.Problem, x: np.ndarray, quick: bool):
    def full():
        mescal.certify(problem, x, tol=0.01)

    def bare():
        with _without():
            mescal.certify(problem, x, tol=0.01)

    times = interleave({"full": full, "bare": bare}, 3 if quick else 25)
    price = ratio(times["full"], times["bare"])
    report.add(
        "a certificate with rounding bounds and quotients, and without",
        data=name,
        functions=kind,
        rows=int(sum(source.size or 0 for source in problem.sources)),
        parameters=x.size,
        full_ms=1e3 * float(np.min(times["full"])),
        bare_ms=1e3 * float(np.min(times["bare"])),
        ratio=price,
    )
    report.hold(f"{name}, {kind}: times a certificate without", price, TARGET)


def _rows(quick: bool) -> dict[str, Any]:
    """Positive and negative rows."""
    spambase = mescal.problems.get("neyman-pearson/spambase")
    named = [source.arrays for source in spambase.problem.sources if isinstance(source, Population)]
    found = {"small": SMALL} if quick else {"small": SMALL, "bank": BANK}
    made = {
        name: normal_rows((size // 2, size - size // 2), columns, np.float32) for name, (size, columns) in found.items()
    }
    return {"small": made.pop("small"), "spambase": named, **made}


@contextmanager
def _without() -> Iterator[None]:
    """A judge that takes its numbers for exact and its functions for smooth."""
    at = Evaluator.at

    def bare(self: Evaluator, x: np.ndarray, rounded: bool = True) -> At:
        found = at(self, x, rounded=False)
        zero = Rounding(0.0, 0 * found.constraint, 0 * found.gradient, 0 * found.jacobian)
        return found._replace(rounding=zero)

    def exact(*_: Any) -> Rounded:
        return Rounded(0.0, 0.0, 0.0, 0.0)

    with ExitStack() as stack:
        stack.enter_context(patched(Evaluator, at=bare))
        stack.enter_context(patched(rounded.Rounded, at=exact))
        stack.enter_context(
            patched(importlib.import_module("mescal.certificate.certify"), mismatch=lambda *_: Mismatch())
        )
        yield
