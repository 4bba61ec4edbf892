"""From labelled rows and constraints on rates to a `Problem`.

    min over theta   sum_i w_i (y_i softplus(-z_i) + b (1 - y_i) softplus(z_i)) / W  +  ridge/2 |theta|^2
    subject to       constant_j + sum_k a_jk sum_{i in S_jk} w_i sigma(z_i) / sum_{i in S_jk} w_i  <=  0

Where all rows are looked at, they are one source with a column of weights for every expectation, and one pass serves all. Where
rows are drawn, such weights would be a few huge ones among zeros: a group of 30 among 32,000 has one of 1000, in every
thousandth draw. There the rows of every group, and of every class where a constraint tells them apart, are a source of their
own (`apart`), and weights in it are those of the user.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import expit

from ..errors import InputError
from ..problem import E, Problem
from . import model
from .groups import Groups
from .model import Row
from .rates import RateConstraint, Rates, Subset

MARGIN = 1.96  # standard errors, on either side of 95 per cent of the normal law
CONSTRAINTS = "rates"  # of every problem: one vector, whose rows `by_name` calls by the user's names


class NoRows(InputError):
    """A subset without rows: nothing is known of a mean over it."""


@dataclass(frozen=True)
class Kind:
    """What estimators of a kind minimise and constrain: per row in the problem, and per row as tables show it."""

    loss: Callable  # (model, row)
    means: Callable  # (model, row): one entry per constraint
    smoothed: Callable  # (subset, data, raw, sharpness): as constrained
    counted: Callable  # (subset, data, raw): as it happens

    def smooth(self, subset: Subset, data: "Labelled", raw: np.ndarray, sharpness: float) -> float:
        """The mean over a subset as it was constrained."""
        return float(data.shares(subset) @ self.smoothed(subset, data, raw, sharpness))

    def hard(self, subset: Subset, data: "Labelled", raw: np.ndarray) -> float:
        """The mean over a subset of what happens."""
        return float(data.shares(subset) @ self.counted(subset, data, raw))

    def margin(self, body: Rates, data: "Labelled", raw: np.ndarray) -> float:
        """Half the width of a 95 per cent interval of a combination of means, were as many rows drawn anew.

        sqrt(z^2 sum_i u_i^2 + sum_k a_k^2 e_k),  u_i = sum_k a_k s_ik (h_i - m_k): what row i is to the means m_k of what happens.
        e_k is by how much the interval of a share with two rows more of either kind (Agresti and Coull) reaches beyond its own:
        none of five is not sure.
        """
        apiece, few = np.zeros(len(data.y)), 0.0
        for factor, subset in body.terms:
            share, happens = data.shares(subset), self.counted(subset, data, raw)
            mean, rows = share @ happens, 1 / (share @ share)
            apiece += factor * share * (happens - mean)
            if subset.what != "error":
                more = (rows * mean + 2) / (rows + 4)
                reach = abs(more - mean) + MARGIN * np.sqrt(more * (1 - more) / (rows + 4))
                few += factor**2 * max(0.0, reach**2 - MARGIN**2 * mean * (1 - mean) / rows)
        return float(np.sqrt(MARGIN**2 * (apiece @ apiece) + few))


RATES = Kind(
    model.loss,
    model.rates,
    smoothed=lambda subset, data, raw, sharpness: expit(sharpness * raw),
    counted=lambda subset, data, raw: (raw > 0).astype(float),
)


@dataclass(frozen=True)
class Labelled:
    """Rows as they are fitted: features, codes of classes or a regressor's target, weights, and sensitive groups where known."""

    features: np.ndarray
    y: np.ndarray
    weights: np.ndarray
    groups: Groups | None = None
    classes: tuple[Any, ...] = (0, 1)  # by their codes in y
    positive: int | None = 1  # the code of the positive class

    def code(self, label: Any) -> int:
        """The code of a class; None is the positive one."""
        if label is None and self.positive is not None:
            return self.positive
        places = [place for place, known in enumerate(self.classes) if known == label]
        if label is None or not places:
            raise InputError(
                "a rate of no class" if label is None else f"a rate of the class {label!r}",
                f"one of the classes {_some(list(self.classes))}",
                "say which: rate(predicted=...), or pos_label=... for all that do not say it",
            )
        return places[0]

    def members(self, subset: Subset) -> np.ndarray:
        """bool (n,): the rows of a subset; an error where there are none or groups are not known."""
        rows = np.ones(len(self.y), bool)
        if subset.of != "all":
            rows = (self.y == self.code(None)) == (subset.of == "positives")
        if subset.true is not None:
            rows = rows & (self.y == self.code(subset.true))
        if subset.group is not None:
            if self.groups is None:
                raise InputError(
                    f"a constraint on the group {subset.group!r}, and no groups",
                    "the sensitive group of every row",
                    "pass sensitive_features=...; in pipelines and searches, by metadata routing:"
                    " set_fit_request(sensitive_features=True)",
                )
            rows = rows & self.groups.has(subset.group)
        if not (self.weights[rows] > 0).any():
            groups = [] if self.groups is None else self.groups.all
            advice = "pass rows of both classes" if subset.group is None else "check the name and the type of the group"
            if self.groups is not None and subset.group is not None and self.groups.has(subset.group).any():
                count = self.groups.has(subset.group).sum()
                advice = f"the {count} rows of this group are of other classes, or without weight: join it with another"
            raise NoRows(
                f"{subset} is over no rows",
                f"rows of positive weight in every subset{f'; the groups are {_some(groups)}' if groups else ''}",
                f"{advice}, or leave the constraint out",
            )
        return rows

    def shares(self, subset: Subset) -> np.ndarray:
        """The weight of every row in the rate of a subset; they sum to 1."""
        weights = np.where(self.members(subset), self.weights, 0.0)
        return weights / weights.sum()

    def taken(self, rows: np.ndarray) -> "Labelled":
        """Some of the rows."""
        groups = None if self.groups is None else self.groups.taken(rows)
        return replace(self, features=self.features[rows], y=self.y[rows], weights=self.weights[rows], groups=groups)


def make_rows(data: Labelled, constraints: dict[str, RateConstraint], negatives: float, sharpness: float) -> Row:
    """The columns of weights; `negatives` is the factor b on the losses of negatives."""
    share = data.weights / data.weights.sum()
    losses = np.stack([np.where(data.y == 1, share, 0.0), np.where(data.y == 1, 0.0, negatives * share)], axis=1)
    return Row(data.features, losses, shares_in(data, constraints, "rate"), np.asarray(sharpness))


def shares_in(data: Labelled, constraints: dict[str, RateConstraint], what: str) -> np.ndarray:
    """(n, m): the weight of every row in the means of one sort that the constraints are made of."""
    shares = np.zeros((len(data.y), len(constraints)))
    for j, constraint in enumerate(constraints.values()):
        for factor, subset in constraint.body.terms:
            if subset.what == what:
                shares[:, j] += factor * data.shares(subset)
    return shares


def apart(rows: Any, data: Labelled, constraints: dict[str, RateConstraint]) -> list[Any]:
    """The rows in sources: those that the same subsets of the constraints hold are in one."""
    subsets = dict.fromkeys(subset for constraint in constraints.values() for _, subset in constraint.body.terms)
    member = np.stack([np.ones(len(data.y), bool), *(data.members(subset) for subset in subsets)], axis=1)
    kinds, kind = np.unique(member, axis=0, return_inverse=True)
    held = [kind == k for k in range(len(kinds))]
    return [type(rows)(*(part[here] if np.ndim(part) else part for part in rows)) for here in held]


def make_problem(kind: Kind, sources: list[Any], constraints: dict[str, RateConstraint], ridge: float) -> Problem:
    """The problem on padded rows, of one source or several: all rates are one function, so that one pass serves them."""
    objective = sum((E(kind.loss, over=rows) for rows in sources), ridge * E(model.ridge))
    bounds = np.asarray([-constraint.body.constant for constraint in constraints.values()])
    rates = sum((E(kind.means, over=rows) for rows in sources[1:]), E(kind.means, over=sources[0]))
    return Problem(objective, {CONSTRAINTS: rates <= bounds} if constraints else {})


def _some(values: list) -> str:
    shown = ", ".join(map(repr, values[:8]))
    return f"{shown} and {len(values) - 8} more" if len(values) > 8 else shown
