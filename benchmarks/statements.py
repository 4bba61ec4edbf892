"""What people state, on real data: certified or not, and every bound and objective once more in plain numpy at the returned x.

Linear scores on standardized columns and a constant, weights in a box; every seed takes another half of the rows and another
start. `over` is by how much the bounds are on the wrong side at the returned x, computed here from the rows by numpy alone, and
`objective` is numpy's, too. `elsewhere` is what a solver finds from the same start that knows nothing of statements and their
scalars: a linear program for tails, SLSQP for the rest, on the functions and derivatives that are written here. `beside` is how
much higher ours is than that, over max(1, |objective|), which is negative where SLSQP ends at a worse one of several minimisers.
Tails in numpy are without the smoothing; a chance is conservative, and SLSQP is given the tail that stands for it. Seconds are CPU
seconds; halves with other numbers of rows, as of positives, are compiled again.
"""

import functools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import numpy as np
import scipy
from scipy.special import expit

import mescal
from mescal import E, datasets

from ._measure import Report, chosen, clock

TABLE = "statements on real data, over seeds"
EACH = "every run"
SEEDS, TOL, TOL_STREAM = 5, 1e-4, 0.02
OVER, LP = 1e-3, 1e-3  # of a bound, in its own units; relative, beside the linear program
RIDGE, REACH = 1e-3, 5.0  # of weights: on their squares, and of their box
LEVEL, WIDTH, TEMPERATURE = 0.9, 1e-4, 0.5
PRECISION = {
    "spambase": 0.8,
    "bank": 0.5,
}  # a linear score in this box does not reach 0.65 on bank, by SLSQP on it alone

Sloped = tuple[float, np.ndarray]  # a number, and its gradient in w
Direct = Callable[[np.ndarray], Sloped]


class Said(NamedTuple):
    """A problem as it is stated, and the same in numpy."""

    problem: mescal.Problem
    x0: np.ndarray
    objective: Direct
    bounds: Mapping[str, Direct] = MappingProxyType({})  # each at most 0, in the units of what was bounded
    program: Callable[[], float] | None = None  # a linear program's optimum
    tol: float = TOL


class Rows(NamedTuple):
    """A with a column of ones, labels 0 and 1 (or a target), groups."""

    A: np.ndarray
    y: np.ndarray
    groups: np.ndarray

    def where(self, held: np.ndarray) -> "Rows":
        """Some of the rows."""
        return Rows(self.A[held], self.y[held], self.groups[held])


@functools.cache
def table(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Columns, target and groups: the data set, or scikit-learn's regression of diabetes."""
    if name == "diabetes":
        from sklearn.datasets import load_diabetes

        found: Any = load_diabetes()
        y = found.target
        return found.data, (y - y.mean()) / y.std(), np.zeros(len(y))
    data = datasets.load(name, dtype="float64")
    groups = data.groups["marital"] if name == "bank" else np.zeros(len(data.labels))
    return np.asarray(data.features), (np.asarray(data.labels) > 0).astype(float), np.asarray(groups)


def half(name: str, seed: int) -> tuple[Rows, np.ndarray]:
    """Half of the rows, standardized, and a start."""
    X, y, groups = table(name)
    rng = np.random.default_rng(seed)
    held = rng.permutation(len(y))[: len(y) // 2]
    X, spread = X[held] - X[held].mean(axis=0), X[held].std(axis=0)
    A = np.concatenate([X / np.where(spread > 0, spread, 1.0), np.ones((len(held), 1))], axis=1)
    return Rows(A, y[held], groups[held]), 0.1 * rng.normal(size=A.shape[1])


# ---- functions of (w, row) for mescal


def score(w, row):
    """The probability of a row."""
    return jax.nn.sigmoid(row[0] @ w)


def hit(w, row):
    """The same where the label is 1."""
    return score(w, row) * row[1]


def label(w, row):
    """Whether the label is 1."""
    return row[1]


def logistic(w, row):
    """The loss of a row."""
    z = row[0] @ w
    return jax.nn.softplus(z) - row[1] * z


def ridge(w):
    """What large weights cost."""
    return RIDGE * w @ w


BOX = mescal.sets.Box(-REACH, REACH)

# ---- the same in numpy


def mean(rows: Rows, of: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]) -> Direct:
    """The mean over rows of a function of (z, y), which comes with its derivative in z."""

    def at(w: np.ndarray) -> Sloped:
        value, slope = of(rows.A @ w, rows.y)
        return float(value.mean()), rows.A.T @ slope / len(slope)

    return at


def rates(z, y):
    """Probabilities."""
    p = expit(z)
    return p, p * (1 - p)


def hits(z, y):
    """Probabilities where the label is 1."""
    p, slope = rates(z, y)
    return p * y, slope * y


def losses(z, y):
    """Logistic losses."""
    return np.logaddexp(0, z) - y * z, expit(z) - y


def of(g: Callable[..., tuple[float, tuple[float, ...]]], *parts: Direct) -> Direct:
    """A function of values; it comes with its partial derivatives."""

    def at(w: np.ndarray) -> Sloped:
        found = [part(w) for part in parts]
        value, slopes = g(*(part[0] for part in found))
        return value, sum((s * part[1] for s, part in zip(slopes, found, strict=True)), np.zeros(len(w)))

    return at


def squares(w: np.ndarray) -> Sloped:
    """What large weights cost."""
    return RIDGE * float(w @ w), 2 * RIDGE * w


def plus(*parts: Direct) -> Direct:
    """A sum."""
    return of(lambda *values: (sum(values), (1.0,) * len(values)), *parts)


def affine(factor: float, constant: float, part: Direct) -> Direct:
    """A multiple, and a number."""
    return of(lambda v: (factor * v + constant, (factor,)), part)


def quotient(a: Direct, b: Direct) -> Direct:
    """A ratio."""
    return of(lambda u, v: (u / v, (1 / v, -u / v**2)), a, b)


def tail(values: np.ndarray, level: float) -> float:
    """The mean of the largest share 1 - level: the least t + mean (v - t)^+ / (1 - level) is at a value."""
    t = np.sort(values)[int(np.ceil(level * len(values) - 1e-9)) - 1]
    return float(t + np.maximum(values - t, 0).mean() / (1 - level))


def of_tail(A: np.ndarray, b: np.ndarray, level: float) -> Direct:
    """The tail of A w + b, with a subgradient."""

    def at(w: np.ndarray) -> Sloped:
        values = A @ w + b
        worst = np.argsort(values)[::-1]
        share = np.clip((1 - level) * len(b) - np.arange(len(b)), 0, 1)
        return tail(values, level), (share @ A[worst]) / share.sum()

    return at


def least_tail(A: np.ndarray, b: np.ndarray, level: float, bounds: list, total: float | None = None) -> float:
    """min over w of the tail of A w + b, as a linear program in (w, t, excesses)."""
    n, d = A.shape
    cost = np.concatenate([np.zeros(d), [1.0], np.full(n, 1 / ((1 - level) * n))])
    above = scipy.sparse.hstack([A, -np.ones((n, 1)), -scipy.sparse.identity(n)])
    whole = {} if total is None else {"A_eq": [[1.0] * d + [0.0] * (n + 1)], "b_eq": [total]}
    found = scipy.optimize.linprog(cost, above, -b, bounds=[*bounds, (None, None), *[(0, None)] * n], **whole)
    return float(found.fun)


# ---- what is stated


def precision(name: str, seed: int) -> Said:
    """The largest mean probability of positives at a precision."""
    rows, x0 = half(name, seed)
    data, least = (rows.A, rows.y), PRECISION[name]
    problem = mescal.Problem(
        -E(score, over=(rows.A[rows.y > 0], rows.y[rows.y > 0])) + E(ridge),
        {"precision": mescal.rate(label, given=score, over=data) >= least},
        BOX,
    )
    goal = plus(affine(-1, 0, mean(rows.where(rows.y > 0), rates)), squares)
    bound = affine(-1, least, quotient(mean(rows, hits), mean(rows, rates)))
    return Said(problem, x0, goal, {"precision": bound})


def precision_on_a_stream(name: str, seed: int) -> Said:
    """The same where rows are drawn, so that nothing is known exactly."""
    said = precision(name, seed)
    rows, x0 = half(name, seed)
    data = mescal.stream((rows.A.astype(np.float32), rows.y.astype(np.float32)))
    share = float(rows.y.mean())
    problem = mescal.Problem(
        (-1 / share) * E(hit, over=data) + E(ridge),
        {"precision": mescal.rate(label, given=score, over=data) >= PRECISION[name]},
        BOX,
    )
    return said._replace(problem=problem, x0=x0.astype(np.float32), tol=TOL_STREAM)


def recall_in_groups(name: str, seed: int) -> Said:
    """The least loss at a mean probability of 0.9 among the positives of every group."""
    rows, x0 = half(name, seed)
    held = {str(g): rows.where((rows.groups == g) & (rows.y > 0)) for g in np.unique(rows.groups)}
    problem = mescal.Problem(
        E(logistic, over=(rows.A, rows.y)) + E(ridge),
        {f"recall, {g}": E(score, over=(own.A, own.y)) >= 0.9 for g, own in held.items()},
        BOX,
    )
    bounds = {g: affine(-1, 0.9, mean(own, rates)) for g, own in held.items()}
    return Said(problem, x0, plus(mean(rows, losses), squares), bounds)


def worst_group(name: str, seed: int) -> Said:
    """The least loss of the group that has the largest."""
    rows, x0 = half(name, seed)
    held = {str(g): rows.where(rows.groups == g) for g in np.unique(rows.groups)}
    worst = mescal.worst({g: E(logistic, over=(own.A, own.y)) for g, own in held.items()})

    def goal(w: np.ndarray) -> Sloped:
        value, slope = max((mean(own, losses)(w) for own in held.values()), key=lambda found: found[0])
        return value + squares(w)[0], slope + squares(w)[1]

    return Said(mescal.Problem(worst + E(ridge), {}, BOX), x0, goal)


def f_measure(name: str, seed: int) -> Said:
    """The largest F-measure of probabilities."""
    rows, x0 = half(name, seed)
    share, data = float(rows.y.mean()), (rows.A, rows.y)
    stated = mescal.of(lambda h, p: 2 * h / (p + share), E(hit, over=data), E(score, over=data), between=(0, 1))
    value = of(
        lambda h, p: (2 * h / (p + share), (2 / (p + share), -2 * h / (p + share) ** 2)),
        mean(rows, hits),
        mean(rows, rates),
    )
    return Said(mescal.Problem(-stated + E(ridge), {}, BOX), x0, plus(affine(-1, 0, value), squares))


def false_discoveries(name: str, seed: int) -> Said:
    """The least share of negatives among what is found, at a recall: a ratio that is minimised."""
    rows, x0 = half(name, seed)
    data, found = (rows.A, rows.y), rows.where(rows.y > 0)
    discovered = E(lambda w, row: score(w, row) * (1 - row[1]), over=data) / E(score, over=data)
    problem = mescal.Problem(discovered + E(ridge), {"recall": E(score, over=(found.A, found.y)) >= 0.9}, BOX)
    goal = plus(affine(-1, 1, quotient(mean(rows, hits), mean(rows, rates))), squares)
    return Said(problem, x0, goal, {"recall": affine(-1, 0.9, mean(found, rates))})


def spread(name: str, seed: int) -> Said:
    """The variance of the probabilities among the sick, which a model that is sure of some and not of others has."""
    rows, x0 = half(name, seed)
    sick = rows.where(rows.y > 0)
    problem = mescal.Problem(
        E(logistic, over=(rows.A, rows.y)) + E(ridge),
        {"spread": mescal.variance(score, over=(sick.A, sick.y)) <= 0.01},
        BOX,
    )
    square = mean(sick, lambda z, y: (expit(z) ** 2, 2 * expit(z) ** 2 * (1 - expit(z))))
    variance = of(lambda s, m: (s - m**2 - 0.01, (1.0, -2 * m)), square, mean(sick, rates))
    return Said(problem, x0, plus(mean(rows, losses), squares), {"spread": variance})


def entropic_risk(name: str, seed: int) -> Said:
    """The least T log mean exp(loss / T)."""
    rows, x0 = half(name, seed)
    risk, T = mescal.entropic(logistic, TEMPERATURE, over=(rows.A, rows.y)), TEMPERATURE

    def exponentials(z, y):
        value, slope = losses(z, y)
        return np.exp(value / T), np.exp(value / T) * slope / T

    goal = of(lambda v: (T * np.log(v), (T / v,)), mean(rows, exponentials))
    return Said(mescal.Problem(risk + E(ridge), {}, BOX), x0, plus(goal, squares))


def nearly_all(name: str, seed: int) -> Said:
    """Nine tenths of the sick above a probability of 0.6, at the least loss."""
    rows, x0 = half(name, seed)
    sick, log_odds = rows.where(rows.y > 0), float(np.log(0.6 / 0.4))
    kept = mescal.chance(lambda w, row: row[0] @ w - log_odds, over=(sick.A, sick.y), width=WIDTH) >= LEVEL
    problem = mescal.Problem(E(logistic, over=(rows.A, rows.y)) + E(ridge), {"sure": kept}, BOX)
    tail = of_tail(-sick.A, np.full(len(sick.y), log_odds), LEVEL)
    return Said(problem, x0, plus(mean(rows, losses), squares), {"sure": tail})


def worst_errors(name: str, seed: int) -> Said:
    """The mean of the largest tenth of |a'w - y|: of the largest twentieth of both signs."""
    rows, x0 = half(name, seed)
    A, b = np.concatenate([rows.A, -rows.A]), np.concatenate([-rows.y, rows.y])
    level = (1 + LEVEL) / 2
    risk = mescal.cvar(lambda w, row: row[0] @ w + row[1], level, over=(A, b), width=WIDTH)
    program = functools.partial(least_tail, A, b, level, [(-REACH, REACH)] * A.shape[1])
    return Said(mescal.Problem(risk, {}, BOX), x0, of_tail(A, b, level), program=program)


def portfolio(name: str, seed: int) -> Said:
    """Returns of 8 assets on 500 days, drawn with heavy tails and two common factors, in per cent."""
    rng = np.random.default_rng(seed)
    days = 0.5 * rng.standard_t(4, size=(500, 2)) @ rng.normal(size=(2, 8)) + 0.5 * rng.standard_t(4, size=(500, 8))
    days += rng.uniform(0, 0.1, 8)
    b = np.zeros(len(days))
    risk = mescal.cvar(lambda w, row: -(row @ w), LEVEL, over=days, width=WIDTH)
    program = functools.partial(least_tail, -days, b, LEVEL, [(0, None)] * 8, 1.0)
    problem = mescal.Problem(risk, {}, mescal.sets.Simplex())
    return Said(problem, rng.dirichlet(np.ones(8)), of_tail(-days, b, LEVEL), program=program)


TASKS: dict[str, tuple[Callable[[str, int], Said], str]] = {
    "precision >= 0.8, largest recall": (precision, "spambase"),
    "precision >= 0.5, largest recall": (precision, "bank"),
    "precision >= 0.8, largest recall, on a stream": (precision_on_a_stream, "spambase"),
    "recall >= 0.9 in each of three groups": (recall_in_groups, "bank"),
    "least loss of the worst group": (worst_group, "bank"),
    "largest F-measure": (f_measure, "spambase"),
    "fewest false discoveries at a recall of 0.9": (false_discoveries, "breast-cancer"),
    "variance <= 0.01": (spread, "breast-cancer"),
    "least entropic risk": (entropic_risk, "breast-cancer"),
    "nine tenths above 0.6": (nearly_all, "breast-cancer"),
    "least tail of errors": (worst_errors, "diabetes"),
    "least tail of a portfolio": (portfolio, "drawn returns"),
}


def slsqp(said: Said) -> float | None:
    """The objective that SLSQP ends with; None where it says that it failed, or ends outside."""
    conditions = [
        {"type": "ineq", "fun": lambda w, part=part: -part(w)[0], "jac": lambda w, part=part: -part(w)[1]}
        for part in said.bounds.values()
    ]
    found = scipy.optimize.minimize(
        said.objective,
        np.asarray(said.x0, float),
        jac=True,
        method="SLSQP",
        bounds=[(-REACH, REACH)] * len(said.x0),
        constraints=conditions,
        options={"maxiter": 1000, "ftol": 1e-10},
    )
    inside = all(part(found.x)[0] <= OVER for part in said.bounds.values())
    return float(found.fun) if found.success and inside else None


def run(quick: bool) -> Report:
    """All statements over all seeds."""
    seeds = 1 if quick else SEEDS
    report = Report({"seeds": seeds, "tol": TOL, "tol_on_a_stream": TOL_STREAM, "ridge": RIDGE, "width": WIDTH})
    for what in chosen(list(TASKS)):
        make, name = TASKS[what]
        rows = []
        for seed in range(seeds):
            said = make(name, seed)
            started = clock()
            result = mescal.minimize(said.problem, said.x0, tol=said.tol, seed=seed)
            seconds = clock() - started
            x = np.asarray(result.x, np.float64)
            value = said.objective(x)[0]
            other = slsqp(said) if said.program is None else said.program()
            row = {
                "statement": what,
                "data": name,
                "seed": seed,
                "certified": result.converged,
                "over": max([0.0, *(part(x)[0] for part in said.bounds.values())]),
                "objective": value,
                "told": result.objective,
                "elsewhere": other,
                "beside": None if other is None else (value - other) / max(1, abs(other)),
                "seconds": seconds,
            }
            report.add(EACH, **row)
            rows.append(row)
        beside = [row["beside"] for row in rows if row["beside"] is not None]
        report.add(
            TABLE,
            statement=what,
            data=name,
            certified=f"{sum(row['certified'] for row in rows)} of {seeds}",
            over=max(row["over"] for row in rows),
            told_beside_numpy=max(abs(row["told"] - row["objective"]) for row in rows),
            beside_from=min(beside) if beside else None,
            beside_to=max(beside) if beside else None,
            first_seconds=rows[0]["seconds"],
            again_seconds=float(np.median([row["seconds"] for row in rows[1:] or rows])),
        )
        report.hold(f"{what} ({name}): runs without a certificate", seeds - sum(row["certified"] for row in rows), 0)
        if "stream" not in what:
            report.hold(f"{what} ({name}): over its bound", max(row["over"] for row in rows), OVER)
            told = max(abs(row["told"] - row["objective"]) for row in rows)
            report.hold(f"{what} ({name}): the objective told beside numpy's", told, OVER)
        if make in (worst_errors, portfolio):
            report.hold(f"{what} ({name}): beside the linear program", max(beside), LP)
    return report
