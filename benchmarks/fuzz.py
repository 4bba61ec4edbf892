"""The judge against random problems whose gradient and curvature lie beside the tolerance: false certificates, crashes.

The grammar, the reference in 80 bits and the corpus of what was wrong once are those of `tests/fuzz`. Statements on streams hold
with their confidence, 0.95. A contradiction is a refusal that the reference does not share: a right point may be left open by it.
"""

import time
from typing import Any

from tests.fuzz.campaign import campaign

from . import _measure
from ._measure import Report

SECONDS = 3600.0
ALLOWED = 0.05  # of certificates on streams that may be false


def run(quick: bool) -> Report:
    """For `--seconds`, an hour by default, in `--workers` processes."""
    seconds = 5.0 if quick else SECONDS if _measure.seconds_left is None else _measure.seconds_left
    seed = int(time.time())
    return report_of(campaign(seconds, _measure.workers, seed), seconds, _measure.workers, seed)


def report_of(found: dict[str, Any], seconds: float, workers: int, seed: int) -> Report:
    """What a campaign counted, as a report."""
    counts, report = found["counts"], Report({"seconds": seconds, "workers": workers, "seed": seed})
    names = ("judged", "certified", "refused", "false", "contradicted", "doubted", "crashes")
    for kind in ("finite", "streams"):
        report.add("points", kind=kind, **{name: counts.get(f"{kind} {name}", 0) for name in names})
    judged = counts.get("finite judged", 0) + counts.get("streams judged", 0)
    crashes = counts.get("finite crashes", 0) + counts.get("streams crashes", 0)
    streams = counts.get("streams false", 0) / max(1, counts.get("streams judged", 0))
    report.hold("false certificates on finite data", counts.get("finite false", 0), 0)
    report.hold("share of false certificates on streams", streams, ALLOWED)
    report.hold("refusals on finite data that the reference contradicts", counts.get("finite contradicted", 0), 0)
    report.hold("crashes", crashes, 0)
    report.conclusions.append(
        f"{judged:,} points were judged: {counts.get('finite false', 0)} false certificates on finite data, "
        f"{counts.get('streams false', 0)} of {counts.get('streams judged', 0):,} on streams, {crashes} crashes, "
        f"{counts.get('finite contradicted', 0)} refusals that the reference contradicts."
    )
    report.conclusions += [f"stored: {failure['file']}" for failure in found["failures"][:20]]
    return report
