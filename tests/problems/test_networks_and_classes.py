"""Physics-informed networks and Neyman-Pearson for several classes: their formulas written out in numpy."""

import jax
import numpy as np
import pytest

from mescal import problems
from mescal.problems import physics

SIZES = (2, 3, 3, 1)


def network(w, p):
    """Two hidden layers of three, in numpy."""
    h, at = np.asarray(p, float), 0
    for rows, columns, bends in ((2, 3, True), (3, 3, True), (3, 1, False)):
        matrix = w[at : at + rows * columns].reshape(rows, columns)
        h = h @ matrix + w[at + rows * columns : at + (rows + 1) * columns]
        h, at = np.tanh(h) if bends else h, at + (rows + 1) * columns
    return h[0]


def differences(w, p, step=1e-4):
    """u, u_1, u_2, u_11 and u_22 by central differences, whose errors are of order step^2 and rounding / step^2."""
    u = network(w, p)
    ends = [(network(w, p + step * e), network(w, p - step * e)) for e in np.eye(2)]
    return u, *((a - b) / (2 * step) for a, b in ends), *((a - 2 * u + b) / step**2 for a, b in ends)


@pytest.mark.parametrize("name", ["helmholtz", "burgers"])
def test_networks_meet_their_equations_as_finite_differences_do(exact, name):
    named = problems.get(f"physics/{name}", width=3, points=16, dtype="float64")
    w = named.x0 + 0.1 * np.random.default_rng(0).standard_normal(named.x0.size)
    found = exact(named.problem, w)
    (inside,) = jax.tree.leaves(named.problem.sources[0].arrays)
    residuals, sources = [], []
    for p in np.asarray(inside, float):
        u, first, second, xx, yy = differences(w, p)
        q = (1 - 2 * np.pi**2) * np.sin(np.pi * p[0]) * np.sin(np.pi * p[1])
        residuals.append(xx + yy + u - q if name == "helmholtz" else second + u * first - 0.05 * xx)
        sources.append(q)
    size = np.mean(np.square(sources)) if name == "helmholtz" else 1.0
    assert found.objective(w) == pytest.approx(np.mean(np.square(residuals)) / size, rel=1e-4)
    s = 2 * (np.arange(2 if name == "helmholtz" else 4) + 0.5) / (2 if name == "helmholtz" else 4) - 1
    if name == "helmholtz":
        edge = [p for t in s for p in ((t, 1), (t, -1), (1, t), (-1, t))]
        wanted = [np.mean([network(w, p) ** 2 for p in edge])]
    else:
        wanted = [
            np.mean([(network(w, (x, 0)) + np.sin(np.pi * x)) ** 2 for x in s]),
            np.mean([network(w, (x, (t + 1) / 2)) ** 2 for t in s for x in (-1, 1)]),
        ]
    assert found.constraints(w) == pytest.approx(np.array(wanted) - 1e-3)


def test_points_fill_the_square():
    """Of 256 points each of the 16 cells of a grid holds its share of 16, up to a third."""
    points = physics.square(256)
    held = np.histogram2d(*points.T, bins=4, range=[[0, 1], [0, 1]])[0]
    assert held.sum() == 256 and np.abs(held - 16).max() <= 16 / 3


def test_neyman_pearson_of_several_classes_counts_the_classes_that_beat_a_row(exact):
    named = problems.get("synthetic/neyman-pearson", classes=3, rows=20, d=4, dtype="float64")
    x = np.random.default_rng(0).standard_normal(named.x0.shape)
    found, means = exact(named.problem, x), []
    for k, source in enumerate(named.problem.sources):
        features, own = jax.tree.leaves(source.arrays)
        rows = np.asarray(features, float)
        assert np.asarray(own).argmax(1).tolist() == [k] * 20
        scores = rows @ x.reshape(3, 5).T
        others = [1 / (1 + np.exp(scores[:, k] - scores[:, other])) for other in range(3) if other != k]
        means.append(np.sum(others, axis=0).mean())
    assert found.objective(x) == pytest.approx(means[0])
    assert found.constraints(x) == pytest.approx(np.array(means[1:]) - 0.2)
