"""What runs are compared by: a metric is one entry here, and every table of compared runs has a column for it.

The table and the JSON of `mescal compare`, that of the reproduction and the comparison of a report's page are made from `METRICS`.
"""

from collections.abc import Callable
from dataclasses import dataclass

from ..run import Result


@dataclass(frozen=True)
class Metric:
    """A number of a result, of which tables show the median over certified runs.

    - `name`: its name in JSON, and `head` in the terminal; None where a terminal has no room for it.
    - `title`, `meaning`: its heading on a page, and what that means.
    - `of`: the number; NaN where there is none.
    - `kind`: how it is written: a count, seconds, or a number.
    """

    name: str
    head: str | None
    title: str
    meaning: str
    of: Callable[[Result], float]
    kind: str = "number"


METRICS = (
    Metric("work", "work", "Work", "gradients + 2 Hessian-vector products per sample", lambda r: r.work.total, "count"),
    Metric("seconds", "seconds", "Seconds", "without compilation", lambda r: r.seconds.running, "seconds"),
    Metric("objective", "objective", "Objective", "", lambda r: r.objective),
    Metric("hvps", "HVPs", "HVPs", "Hessian-vector products", lambda r: r.work.hvps, "count"),
    Metric(
        "relative_stationarity",
        None,
        "Relative stationarity",
        "stationarity × max(1, |x|)",
        lambda r: r.certificate.relative_stationarity.value,
    ),
    Metric("outer", "outer", "Outer iterations", "", lambda r: r.outer_iterations),
)
