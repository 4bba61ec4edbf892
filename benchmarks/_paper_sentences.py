"""The paper's five sentences about its figures, each with what was seen in our runs; nothing here is typed by hand but its words.

Ratios are medians over seeds; shapes are those of the curves of the first seed.
"""

from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

Rows = list[dict[str, Any]]
SPIDER, OTHERS = "spider-paper", ("sg-hv-nc-paper", "natasha2-paper")
EVERYONE = (SPIDER, *OTHERS)
FAIRNESS, SPAMBASE, MADELON = ("fairness/bank", "fairness/loan"), "neyman-pearson/spambase", "neyman-pearson/madelon"
OUTER, WORK, CURVATURE, STATIONARITY, FEASIBILITY = range(5)  # columns of a curve
ABOUT = np.sqrt(10)  # an order of magnitude, to half of one: 10 means 3.2 to 32
RISE = 1.1  # of an error over the least so far: a transient increase


def sentences(rows: Rows, names: tuple[str, ...]) -> list[str]:
    """Every sentence that the runs can speak to, as Markdown."""
    rows = [row for row in rows if row["study"] == "paper"]
    found = []
    for words, needed, look in CLAIMS:
        here = tuple(name for name in names if name in needed)
        seen = [text for name in here if (text := look(rows, name)) is not None]
        if seen:
            found.append(f"- The paper: *{words}* Seen: {'; '.join(seen)}.")
    return found


def reasons(rows: Rows, names: tuple[str, ...]) -> list[str]:
    """Why the ratios are what they are: how much of the work is searches, and how the ratio follows how often they are made."""
    found = []
    for name in names:
        paper = {solver: _of([row for row in rows if row["study"] == "paper"], name, solver) for solver in EVERYONE}
        if not all(paper.values()):
            continue
        shares = "; ".join(
            f"{_short(solver)} {median(row['searches'] / row['work'] for row in runs):.0%}, in "
            f"{median(row['steps'] for row in runs):g} steps"
            for solver, runs in paper.items()
        )
        least = median(row["work"] for row in paper[SPIDER])
        varied = [
            f"{words} from {' to '.join(f'{factor:.2g} (coin {coin:g})' for coin, factor in (ends[0], ends[-1]))}"
            for study, words in (("frequency", "at the grid's steps"), ("short steps", "at short steps"))
            if len(ends := _by_coin(rows, study, name, least)) > 1
        ]
        text = f"- {name}: shares of work that are searches: {shares}."
        text += f" The work of SG-HV-NC over SPIDER's goes, {', and '.join(varied)}." if varied else ""
        found.append(text + _by_reset(rows, name))
    escapes = sum(row["escapes"] for row in rows if row["study"] not in ("tuning", "practical"))
    return [*found, f"- Steps along negative curvature in all these runs together: {escapes}."]


def _by_reset(rows: Rows, name: str) -> str:
    """The others' median work over SPIDER's, by the samples of a reset; empty where none were varied."""
    mine = [row for row in rows if row["study"] == "resets" and row["problem"] == name]
    parts = []
    for batch in sorted({int(row["setting"]) for row in mine}):
        runs = {
            solver: [row for row in mine if (row["solver"], row["setting"]) == (solver, f"{batch}")]
            for solver in EVERYONE
        }
        if all(runs.values()):
            least = median(row["work"] for row in runs[SPIDER])
            factors = (
                f"{_short(other)} {median(row['work'] for row in runs[other]) / least:.2g}"
                + ("" if all(row["certified"] for row in runs[other]) else " (not all certified)")
                for other in OTHERS
            )
            parts.append(f"of {batch} samples {' and '.join(factors)}")
    return f" Times SPIDER's work, with resets {', '.join(parts)}." if parts else ""


def _by_coin(rows: Rows, study: str, name: str, least: float) -> list[tuple[float, float]]:
    """Coins of SG-HV-NC and its median work over SPIDER's, by coin."""
    works: dict[float, list[float]] = {}
    for row in _of([row for row in rows if row["study"] == study], name, "sg-hv-nc-paper"):
        works.setdefault(float(row["setting"]), []).append(row["work"])
    return sorted((coin, median(each) / least) for coin, each in works.items())


def ratios(claimed: dict[str, float]) -> Callable[[Rows, str], str | None]:
    """A check of work over SPIDER's, by solver."""

    def look(rows: Rows, name: str) -> str | None:
        works = {solver: [row["work"] for row in _of(rows, name, solver)] for solver in EVERYONE}
        if not all(works.values()):
            return None
        parts = []
        for solver, wanted in claimed.items():
            factor = median(works[solver]) / median(works[SPIDER])
            held = "as said" if wanted / ABOUT <= factor <= wanted * ABOUT else "less" if factor < wanted else "more"
            bound = "" if all(row["certified"] for row in _of(rows, name, solver)) else "at least "
            parts.append(f"{_short(solver)} {bound}{factor:.2g} times where about {wanted:g} is said ({held})")
        return f"{name}: {', '.join(parts)}"

    return look


def transients(rows: Rows, name: str) -> str | None:
    """Whether the errors of the other two rise by a tenth over their least before the end."""
    curves = _curves(rows, name, OTHERS)
    if curves is None:
        return None
    parts = [
        f"{_short(solver)} {_said(_rises(curve[:, STATIONARITY]))} in stationarity"
        f" and {_said(_rises(curve[:, FEASIBILITY]))} in feasibility"
        for solver, curve in curves.items()
    ]
    return f"{name}: {', '.join(parts)}"


def spambase(rows: Rows, name: str) -> str | None:
    """Feasibility falls, curvature first rises, stationarity rises after dual updates, the others need more outer iterations."""
    curves = _curves(rows, name, EVERYONE)
    if curves is None:
        return None
    parts = []
    for solver, curve in curves.items():
        error = np.maximum(-curve[:, CURVATURE], 0)
        top = int(np.argmax(error))
        up, updates = _updates(curve)
        parts.append(
            f"{_short(solver)}: feasibility rises by a tenth over its least {_said(_rises(curve[:, FEASIBILITY]))}, the curvature "
            f"error {'first grows to' if top > 0 else 'is largest at the start,'} {error[top]:.2g} and ends at {error[-1]:.2g}, "
            f"stationarity grows after {up} of {updates} dual updates"
        )
    outer = {solver: median(row["outer"] for row in _of(rows, name, solver)) for solver in EVERYONE}
    more = ", ".join(f"{_short(solver)} {count:g}" for solver, count in outer.items())
    return f"{name}: {'; '.join(parts)}; outer iterations: {more}"


def madelon(rows: Rows, name: str) -> str | None:
    """After the first outer iteration all three errors are large, and fall from there."""
    curves = _curves(rows, name, EVERYONE)
    if curves is None:
        return None
    parts = []
    for solver, curve in curves.items():
        later = curve[curve[:, OUTER] >= 1]
        if not len(later):
            parts.append(f"{_short(solver)} ends in its first outer iteration")
            continue
        worst = float(np.max(-later[:, CURVATURE]))
        enters = "enters" if worst > 0.01 else "does not enter"
        ends = ", ".join(f"{later[0, k]:.2g} to {later[-1, k]:.2g}" for k in (STATIONARITY, FEASIBILITY))
        parts.append(
            f"{_short(solver)} {enters} negative curvature beyond 0.01 after the first iteration (least eigenvalue {-worst:.2g}); "
            f"stationarity and feasibility go from {ends}"
        )
    return f"{name}: {'; '.join(parts)}"


CLAIMS: tuple[tuple[str, tuple[str, ...], Callable[[Rows, str], str | None]], ...] = (
    (
        "SPIDER requires approximately one order of magnitude less work than SG-HV-NC and two orders of magnitude less work than "
        "Natasha2 (fairness).",
        FAIRNESS,
        ratios({"sg-hv-nc-paper": 10, "natasha2-paper": 100}),
    ),
    ("The errors for SG-HV-NC and Natasha2 exhibit some transient increases (fairness).", FAIRNESS, transients),
    (
        "Approximately one order of magnitude less work for madelon and two orders of magnitude less work for spambase.",
        (MADELON, SPAMBASE),
        lambda rows, name: ratios(dict.fromkeys(OTHERS, 10.0 if name == MADELON else 100.0))(rows, name),
    ),
    (
        "For spambase the feasibility error consistently decreases, the second-order error initially increases before decreasing, "
        "the first-order error increases after each dual update; SG-HV-NC and Natasha2 also require more "
        "outer iterations than SPIDER.",
        (SPAMBASE,),
        spambase,
    ),
    (
        "For madelon, after the first iteration, the iterates enter a region with negative curvature, along with large first-order "
        "and feasibility errors; subsequently all three errors decrease rapidly.",
        (MADELON,),
        madelon,
    ),
)


def _of(rows: Rows, name: str, solver: str) -> Rows:
    return [row for row in rows if row["problem"] == name and row["solver"] == solver]


def _curves(rows: Rows, name: str, solvers: tuple[str, ...]) -> dict[str, np.ndarray] | None:
    """Of the first seed; None unless all are there."""
    found = {solver: row["curve"] for solver in solvers for row in _of(rows, name, solver) if row["curve"]}
    return {solver: np.array(curve, float) for solver, curve in found.items()} if len(found) == len(solvers) else None


def _rises(errors: np.ndarray) -> int:
    """How often an error leaves its least so far by a tenth."""
    above = errors > RISE * np.minimum.accumulate(errors)
    return int(np.sum(above[1:] & ~above[:-1]))


def _said(count: int) -> str:
    return "never" if count == 0 else "once" if count == 1 else f"{count} times"


def _updates(curve: np.ndarray) -> tuple[int, int]:
    """Dual updates after which stationarity is larger than before, and all of them."""
    first = np.flatnonzero(np.diff(curve[:, OUTER])) + 1
    return int(np.sum(curve[first, STATIONARITY] > curve[first - 1, STATIONARITY])), len(first)


def _short(solver: str) -> str:
    return solver.removesuffix("-paper")
