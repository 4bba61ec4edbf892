"""The curvature that is judged of every form that statements take, against Hessians of the same form written in plain numpy."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest

import mescal
from mescal import E

RNG = np.random.default_rng(5)
ROWS = RNG.normal(size=(60, 2)) + 0.3
LABELS = (ROWS[:, 0] > 0.2).astype(float)
PEOPLE = ROWS, LABELS
HALF = 30
X = np.array([0.4, -0.3])
T, WIDTH, LEVEL = 0.5, 0.4, 0.8
STEP = 1e-3


def score(w, row):
    return jax.nn.sigmoid(row[0] @ w)


def hit(w, row):
    return score(w, row) * row[1]


def loss(w, row):
    return jax.nn.softplus(row[0] @ w) - row[1] * (row[0] @ w)


RATE, HITS, LOSS = E(score, over=PEOPLE), E(hit, over=PEOPLE), E(loss, over=PEOPLE)
GROUPS = {
    "a": E(loss, over=(ROWS[:HALF], LABELS[:HALF])),
    "b": E(loss, over=(ROWS[HALF:], LABELS[HALF:])),
}
SIZE = E(lambda w: w @ w)

# ---- the same in numpy, of z = (x, scalars)


def rates(z):
    return 1 / (1 + np.exp(-ROWS @ z[:2]))


def losses(z):
    return np.log1p(np.exp(ROWS @ z[:2])) - LABELS * (ROWS @ z[:2])


def excess(values):
    return WIDTH * np.log1p(np.exp(values / WIDTH))


WORST = int(np.argmax([losses(X)[:HALF].mean(), losses(X)[HALF:].mean()]))  # the group whose loss is larger at X


class Form(NamedTuple):
    """A statement, its form in (x, scalars): the objective, then the constraints, in the order of the problem's, and the numbers of
    the constraints that determine scalars, in their order; others are minimisers.
    """

    objective: Any
    constraints: dict[str, Any]
    plain: Callable[[np.ndarray], list]
    determining: tuple[int, ...] = ()


FORMS = {
    "ratio minimised": Form(LOSS / RATE, {}, lambda z: [losses(z).mean() / z[2], rates(z).mean() - z[2]], (0,)),
    "ratio bounded": Form(
        SIZE,
        {"precision": HITS / RATE >= 0.9},
        lambda z: [z @ z, (0.9 * rates(z) - rates(z) * LABELS).mean(), 0.01 - rates(z).mean()],
    ),
    "worst minimised": Form(
        mescal.worst(GROUPS),
        {},
        lambda z: [z[2], losses(z)[:HALF].mean() - z[2], losses(z)[HALF:].mean() - z[2]],
        (WORST,),
    ),
    "function minimised": Form(
        mescal.of(lambda h, p: -2 * h / (p + 0.5), HITS, RATE, between=(0, 1)),
        {},
        lambda z: [-2 * z[2] / (z[3] + 0.5), (rates(z) * LABELS).mean() - z[2], rates(z).mean() - z[3]],
        (0, 1),
    ),
    "tail minimised": Form(
        mescal.cvar(loss, LEVEL, over=PEOPLE, width=WIDTH) + SIZE,
        {},
        lambda z: [z[2] + excess(losses(z) - z[2]).mean() / (1 - LEVEL) + z[:2] @ z[:2]],
    ),
    "variance bounded": Form(
        SIZE,
        {"spread": mescal.variance(score, over=PEOPLE) <= 0.001},
        lambda z: [z[:2] @ z[:2], ((rates(z) - z[2]) ** 2).mean() - 0.001],
    ),
    "entropic risk minimised": Form(
        mescal.entropic(loss, T, over=PEOPLE),
        {},
        lambda z: [z[2], T * np.exp((losses(z) - z[2]) / T).mean() - T],
        (0,),
    ),
    "entropic risk bounded": Form(
        SIZE,
        {"risk": mescal.entropic(loss, T, over=PEOPLE) <= 0.6},
        lambda z: [z @ z, T * np.exp((losses(z) - 0.6) / T).mean() - T],
    ),
    "chance bounded": Form(
        SIZE,
        {"rare": mescal.chance(lambda w, row: loss(w, row) - 0.5, over=PEOPLE, width=WIDTH) <= 1 - LEVEL},
        lambda z: [z[:2] @ z[:2], z[2] + excess(losses(z) - 0.5 - z[2]).mean() / (1 - LEVEL)],
    ),
}


def following(form: Form, hessian: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """T of z = T (x, scalars'): scalars follow x, and count in the units in which they move as fast; but for minimisers of what has
    the multiplier zero.
    """
    size = len(X)
    rows = slopes[list(form.determining)] if form.determining else hessian[size:]
    if not rows.any():
        return np.eye(hessian.shape[0])
    follow = -np.linalg.solve(rows[:, size:], rows[:, :size])
    units = np.diag(np.maximum(1.0, np.linalg.norm(follow, axis=1)))
    return np.block([[np.eye(size), np.zeros((size, len(units)))], [follow, units]])


def derivatives(function: Callable, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Slopes and Hessians of all values, by central differences of the fourth order in the widest type there is."""
    z, unit = z.astype(np.longdouble), np.eye(len(z), dtype=np.longdouble)

    def at(step):
        return np.asarray(function(z + step))

    def slope(i, h, around):
        return (at(around + h * unit[i]) - at(around - h * unit[i])) / (2 * h)

    def twice(i, j, h):
        return (slope(j, h, h * unit[i]) - slope(j, h, -h * unit[i])) / (2 * h)

    places = range(len(z))
    first = [(4 * slope(i, STEP, 0 * z) - slope(i, 2 * STEP, 0 * z)) / 3 for i in places]
    second = [[(4 * twice(i, j, STEP) - twice(i, j, 2 * STEP)) / 3 for j in places] for i in places]
    return np.moveaxis(np.asarray(first, float), 0, -1), np.moveaxis(np.asarray(second, float), 2, 0)


@pytest.mark.parametrize("name", FORMS)
def test_the_curvature_in_all_of_space_is_that_of_dense_numpy(name):
    """That of H + p A'A in (x, scalars', slacks): H of f + lam'c, A of c + s, and p the penalty of the certificate."""
    form = FORMS[name]
    problem = mescal.Problem(form.objective, form.constraints)
    found = mescal.certify(problem, X, cone="whole")
    lifted = problem.lifted(X)
    z = np.concatenate([X, [float(v) for v in lifted.auxiliary.values()] if problem.lifting else []])
    values = np.asarray(form.plain(z), float)
    names = list(problem.constraints)
    assert found.objective.value == pytest.approx(values[0], rel=1e-12)
    assert [float(found.constraints[n]) for n in names] == pytest.approx(list(values[1:]), rel=1e-9, abs=1e-12)
    weights = [float(found.multipliers[n]) for n in names]
    slopes, hessians = derivatives(form.plain, z)
    hessian = hessians[0] + np.tensordot(weights, hessians[1:], 1)
    if len(z) > len(X):
        turned = following(form, hessian, slopes[1:])
        hessian, slopes = turned.T @ hessian @ turned, slopes @ turned
    inner = hessian + found.penalty * slopes[1:].T @ slopes[1:]
    free = [j for j, n in enumerate(names) if n in found.slack]
    side = found.penalty * slopes[1:][free]
    whole = np.block([[inner, side.T], [side, found.penalty * np.eye(len(free))]])
    least = np.linalg.eigvalsh(whole)[0]
    assert found.curvatures["whole"].value == pytest.approx(least, rel=1e-6, abs=1e-8)
