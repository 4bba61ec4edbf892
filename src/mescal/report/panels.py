"""What a panel shows, before anyone draws it: the curves of one measure of one group, its axes and its tolerance."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .grouping import Group, Series
from .run_view import MARKERS, MEASURES, Band, Curve, band
from .scales import DECADES, Scale, linear_scale, log_scale, signed_scale

EXACT = {
    "curvature": ("Minimum eigenvalue", "of the augmented Lagrangian's Hessian"),
    "stationarity": ("Stationarity", "norm of the Lagrangian's projected gradient"),
    "feasibility": ("Feasibility", "|c + s|, of violation and complementarity"),
    "objective": ("Objective", "value at the iterate"),
    "multipliers": ("Multipliers", "Euclidean norm of all of them"),
}
ESTIMATED = EXACT | {"curvature": ("Smallest curvature", "found by the solver's own searches")}
AGAINST = {"work": "total work", "seconds": "seconds"}  # what curves are drawn against
FINE = 100.0  # the eigenvalue's axis is linear up to this fraction of its tolerance
STEEP = 30.0  # ratio of objectives above which their axis is logarithmic


@dataclass(frozen=True, eq=False)
class Drawn:
    """A series in a panel: the median and range over its seeds, and each seed's recorded points for the markers."""

    series: Series
    band: Band
    seeds: tuple[Curve, ...]

    @property
    def moves(self) -> bool:
        """Whether some seed has more than one point; otherwise there is no curve to draw, only markers."""
        return any(curve.work.size > 1 for curve in self.seeds)


@dataclass(frozen=True, eq=False)
class Panel:
    """One measure against work or seconds. `limit` is its tolerance, `below` whether a value passes below it."""

    measure: str
    title: str
    meaning: str
    work: Scale
    scale: Scale
    limit: float | None
    below: bool
    drawn: tuple[Drawn, ...]
    against: str = "work"

    @property
    def clipped(self) -> bool:
        """Whether some value lies below the lower end of a logarithmic axis, and is drawn there."""
        values = np.concatenate([np.zeros(0), *(curve.values for drawn in self.drawn for curve in drawn.seeds)])
        return self.scale.kind == "log" and bool((values < self.scale.low).any())


def panels(group: Group, measures: Sequence[str] = MEASURES, against: str = "work") -> list[Panel]:
    """The panels of a group, on a common axis; none where no run has recorded anything."""
    works = [view.curve("stationarity", against).finite().work for view in group.ended]
    works = [float(w) for work in works for w in work]
    if not works:
        return []
    axis = log_scale(works)
    return [_panel(group, name, axis, against) for name in measures]


def _panel(group: Group, measure: str, work: Scale, against: str) -> Panel:
    drawn = []
    for series in group.series:
        curves = tuple(view.curve(measure, against).finite() for view in series.ended)
        if any(curve.work.size for curve in curves):
            drawn.append(Drawn(series, band(curves), curves))
    words = EXACT if all(view.exact for view in group.ended) else ESTIMATED
    values = np.concatenate([np.zeros(0), *(curve.values for one in drawn for curve in one.seeds)])
    limit = _limit(group, measure)
    scale, below = _scale(measure, values, limit), measure != "curvature"
    return Panel(measure, *words[measure], work, scale, limit, below, tuple(drawn), against)


def _limit(group: Group, measure: str) -> float | None:
    """What the runs' certificates are held to; the paper's feasibility is not, where its parts are."""
    check = group.ended[0].checks.get(measure)
    return None if check is None else check.limit


def _scale(measure: str, values: np.ndarray, limit: float | None) -> Scale:
    if measure == "curvature" and limit is not None:
        return signed_scale(values, -limit, -limit / FINE)
    if limit is not None:
        return log_scale(values, [limit, 3 * limit], floor=limit * 10.0**-DECADES)
    if measure == "feasibility":
        return log_scale(values)
    if measure == "objective" and values.size and values.min() > 0 and values.max() > STEEP * values.min():
        return log_scale(values)
    if measure == "multipliers":
        return linear_scale([0.0, float(values.max(initial=0.0)) or 1.0])  # a norm: from zero upwards
    return linear_scale(values)


def source(groups: Sequence[Group]) -> str:
    """In words, where the measures of the curves come from."""
    views = [view for group in groups for view in group.ended]
    exact = sum(view.exact for view in views)
    if exact == len(views):
        return "measured by the judge"
    if exact == 0:
        return "the solver's own estimates"
    return f"measured by the judge for {exact} of {len(views)} runs, the solver's own estimates for the others"


def markers(groups: Sequence[Group]) -> str:
    """In words, what markers are."""
    views = [view for group in groups for view in group.ended]
    several = any(len(series.ended) > 1 for group in groups for series in group.series)
    longest = max((view.curve("stationarity").work.size for view in views), default=0)
    where = "some outer iterations" if longest > MARKERS else "each outer iteration"
    return f"A marker stands at {where}{' of each seed' if several else ''}"


def seeds(groups: Sequence[Group]) -> str:
    """In words, over how many seeds medians are taken."""
    counts = sorted({len(series.ended) for group in groups for series in group.series if series.ended})
    if counts == [1]:
        return "one seed"
    return f"{counts[0]} seeds" if len(counts) == 1 else f"{counts[0]} to {counts[-1]} seeds"
