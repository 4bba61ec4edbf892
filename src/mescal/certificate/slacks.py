"""Slacks, and the multipliers that go with them, for which a point looks most like a solution.

Of the slacks s_j = 0 and s_j = max(0, -c_j) of an inequality the first costs feasibility, the second stationarity.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .multipliers import admissible, minimise
from .tangent import Array, Project, Tangent

ENUMERATED = 6  # up to this many inequalities with two possible slacks, all choices are tried
TIE = 1e-12  # measures closer than this times |g| are equal


@dataclass(frozen=True, eq=False)
class FirstOrder:
    """Multipliers and slacks (zero on equalities), both of length m, with the stationarity and feasibility of the two."""

    multipliers: Array
    slack: Array
    stationarity: float
    feasibility: float


def choose_slack(
    gradient: Array,
    jacobian: Array,
    constraint: Array,
    inequality: Array,
    project_tangent: Project,
    multipliers: Array | None = None,
    *,
    errors: Array | None = None,
) -> FirstOrder:
    """Slacks, 0 or max(0, -c_j) per inequality, with the smallest max(stationarity, feasibility).

    Each choice has its best multipliers, or those of the given `multipliers` that are admissible beside it. Feasibility is
    ``|c + s|``. Of equal choices the one with the smaller stationarity is kept, then the one with more slacks max(0, -c_j).
    With more than six inequalities to choose for, the choice is a local one: no change of a single slack improves it. It is
    the best from three starts: all zero, all max(0, -c_j), and zero where ``|lam_j| > -c_j``. Setting a slack to zero never
    increases stationarity and never decreases feasibility, so only changes that reduce the larger of the two are tried.
    """
    given = None if multipliers is None else np.asarray(multipliers, dtype=np.float64)

    def on(rows: Array) -> _Choices:
        """With these rows of c alone."""
        off = None if errors is None else errors[rows]
        tangent = Tangent(gradient, jacobian[rows], project_tangent, off)
        return _Choices(tangent, constraint[rows], inequality[rows], None if given is None else given[rows])

    whole = Tangent(gradient, jacobian, project_tangent, errors)
    constraint, inequality = whole.vector(constraint), whole.flags(inequality)
    given = None if given is None else whole.vector(given)
    near = _near(on, constraint, inequality)
    found = _best(on(near))
    lam, slack = np.zeros(whole.rows), np.where(near, 0.0, -constraint)
    lam[near], slack[near] = found.multipliers, found.slack
    return FirstOrder(lam, slack, found.stationarity, found.feasibility)


def _near(on: "Callable[[Array], _Choices]", constraint: Array, inequality: Array) -> Array:
    """Rows without those inequalities whose slack is max(0, -c_j) in the best choice, where there are many: -c_j alone is more than
    the measure of some choice. The more of the nearest have none, the smaller is stationarity: bisection for the best of these.
    """
    closed = ~(inequality & (constraint < 0))
    order = np.flatnonzero(~closed)
    if len(order) <= ENUMERATED:
        return np.ones(len(constraint), dtype=bool)
    order, bound = order[np.argsort(-constraint[order], kind="stable")], np.inf
    few, most = 0, len(order)
    count = 0
    while few <= most:
        rows = closed.copy()
        rows[order[:count]] = True
        choices = on(rows)
        seen = choices.measure(np.zeros(int(rows.sum()), dtype=bool))
        bound = min(bound, max(seen.stationarity, seen.feasibility) + choices.tie)
        few, most = (count + 1, most) if seen.stationarity > seen.feasibility else (few, count - 1)
        most = min(most, int(np.count_nonzero(-constraint[order] <= bound)))
        count = (few + most) // 2
    return closed | (-constraint <= bound)


def _best(choices: "_Choices") -> FirstOrder:
    """The best choice for the rows that there are."""
    tangent = choices.tangent
    open_rows = np.flatnonzero(choices.inequality & (choices.constraint < 0))
    everything = np.zeros(tangent.rows, dtype=bool)
    everything[open_rows] = True
    if len(open_rows) <= ENUMERATED:
        best = choices.measure(everything)
        for size in range(1, len(open_rows) + 1):
            for zeros in itertools.combinations(open_rows, size):
                slack_rows = everything.copy()
                slack_rows[list(zeros)] = False
                best = choices.better(best, slack_rows)
        return best
    nothing = choices.measure(~everything & everything)
    guess = everything & (np.abs(nothing.multipliers) <= -choices.constraint)
    best = choices.measure(everything)
    for start in (everything, guess, ~everything & everything):
        best = choices.better(best, choices.descend(choices.measure(start), open_rows).slack > 0)
    return best


class _Choices:
    """Measures of slack choices, each a mask of the inequalities whose slack is max(0, -c_j)."""

    def __init__(self, tangent: Tangent, constraint: Array, inequality: Array, multipliers: Array | None):
        self.tangent, self.constraint, self.inequality = tangent, constraint, inequality
        self.given = None if multipliers is None else tangent.vector(multipliers)
        self.tie = TIE * tangent.scale + 1e-15 * float(np.linalg.norm(constraint))
        self.known: dict[bytes, FirstOrder] = {}
        self.last = np.zeros(tangent.rows)

    def measure(self, slack_rows: Array) -> FirstOrder:
        """The choice with its multipliers; each is computed once."""
        key = slack_rows.tobytes()
        if key not in self.known:
            slack = np.where(slack_rows, -self.constraint, 0.0)
            if self.given is None:
                lam = self.last = minimise(self.tangent, self.inequality, slack, self.last)
            else:
                lam = admissible(self.given, self.inequality, slack)
            stationarity = float(np.linalg.norm(self.tangent.at(lam)[1]))
            feasibility = float(np.linalg.norm(self.constraint + slack))
            self.known[key] = FirstOrder(lam, slack, stationarity, feasibility)
        return self.known[key]

    def better(self, first: FirstOrder, slack_rows: Array) -> FirstOrder:
        """The better of a choice and another one; the first where they are equal."""
        feasibility = float(np.linalg.norm(np.where(slack_rows, 0.0, self.constraint)))
        if feasibility > max(first.stationarity, first.feasibility) + self.tie:
            return first
        second = self.measure(slack_rows)
        for measure in (lambda c: max(c.stationarity, c.feasibility), lambda c: c.stationarity):
            difference = measure(second) - measure(first)
            if abs(difference) > self.tie:
                return second if difference < 0 else first
        return second if np.count_nonzero(second.slack) > np.count_nonzero(first.slack) else first

    def descend(self, current: FirstOrder, open_rows: Array) -> FirstOrder:
        """Changes one slack at a time, the most promising first, until no change is better."""
        for _ in range(4 * len(open_rows) + 4):
            slack_rows = current.slack > 0
            to_zero = current.stationarity >= current.feasibility
            promise = self.tangent.jacobian @ self.tangent.at(current.multipliers)[1] if to_zero else -self.constraint
            rows = [i for i in open_rows if slack_rows[i] == to_zero]
            for i in sorted(rows, key=lambda i: -promise[i]):
                changed = slack_rows.copy()
                changed[i] = not changed[i]
                better = self.better(current, changed)
                if better is not current:
                    current = better
                    break
            else:
                return current
        return current
