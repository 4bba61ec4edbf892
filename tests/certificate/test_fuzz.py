"""Intervals of certificates hold the truth: random problems of all scales against the same measures in extended precision.

The reference knows nothing of the package: means, gradients and Hessians are numpy's, in 80 bits, at the multipliers and slacks
that a certificate reports. Data, coefficients, bounds and points are drawn; the functions and shapes stay, so that one set of
programs serves all.
"""

import hypothesis
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st

import mescal
from mescal import E
from mescal.sets import Box

ROWS, SIZE = 12, 3
LONG = np.longdouble
SETTINGS = {
    "deadline": None,
    "derandomize": True,
    "database": None,
    "suppress_health_check": list(hypothesis.HealthCheck),
}


def wave(x, r):
    u = r[2:] @ x
    return r[0] * jnp.sin(u) + 0.5 * r[1] * u**2 + u


def looked(rows, x):
    """Value, gradient and Hessian of the mean of `wave`, in 80 bits."""
    r, x = rows.astype(LONG), x.astype(LONG)
    a, u = r[:, 2:], r[:, 2:] @ x
    slope = r[:, 0] * np.cos(u) + r[:, 1] * u + 1
    bend = -r[:, 0] * np.sin(u) + r[:, 1]
    value = r[:, 0] * np.sin(u) + r[:, 1] * u**2 / 2 + u
    return value.mean(), (slope[:, None] * a).mean(0), (a * bend[:, None]).T @ a / len(a)


scales = st.integers(-12, 12).map(lambda e: 10.0**e)


@st.composite
def cases(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    stretch, height = draw(scales), draw(scales)
    x = rng.normal(size=SIZE) / stretch * draw(st.sampled_from([0.0, 1e-6, 1.0, 3.0]))
    rows = [rng.normal(size=(ROWS, SIZE + 2)) for _ in range(2)]
    if draw(st.booleans()):  # rows that nearly cancel
        for part in rows:
            part[ROWS // 2 :] = -part[: ROWS // 2] * (1 + 1e-9 * rng.normal(size=(ROWS // 2, 1)))
    for part in rows:
        part[:, 2:] *= stretch
    often = draw(st.sampled_from([1.0, 1e3, 1e7, 1e10]))  # k E(q) - (k - 1) E(q)
    kind = draw(st.sampled_from(["==", "<="]))
    factor = draw(scales)
    active = rng.integers(0, 3, SIZE) if draw(st.booleans()) else np.full(SIZE, 1)
    low = np.where(active == 0, x, x - 1 / stretch)
    high = np.where(active == 2, x, x + 1 / stretch)
    level = float(looked(rows[1], x)[0]) * (1 - draw(st.sampled_from([0.0, 1e-9, 0.5, -0.5])))
    return x, rows, height, factor, often, kind, (low, high), level


def check(case):
    x, rows, height, factor, often, kind, (low, high), level = case
    q = E(wave, over=rows[1])
    body = factor * often * q - factor * (often - 1) * q - factor * level
    problem = mescal.Problem(
        height * E(wave, over=rows[0]), {"c": body == 0 if kind == "==" else body <= 0}, Box(low, high)
    )
    found = mescal.certify(problem, x, tol=1e-3 * height, cone="critical")
    f, g, H = (LONG(height) * part for part in looked(rows[0], x))
    value, J, K = looked(rows[1], x)
    coefficient = LONG(factor * often) - LONG(factor * (often - 1))
    c, J, K = coefficient * value - LONG(factor * level), coefficient * J, coefficient * K
    lam = LONG(float(found.multipliers["c"]))
    slack = LONG(float(found.slack.get("c", 0.0)))
    v = -(g + lam * J)
    v = np.where((x <= low) & (v < 0) | (x >= high) & (v > 0), 0, v)
    part = 0 if kind == "==" else lam if slack > 0 else min(lam, LONG(0))
    rows_of_a = np.concatenate([J, np.ones(int(kind == "<="), LONG)])
    whole = np.zeros((len(rows_of_a),) * 2, LONG)
    whole[:SIZE, :SIZE] = H + lam * K
    whole = whole + LONG(1.1) * np.outer(rows_of_a, rows_of_a)
    size = float(np.linalg.norm(whole.astype(float)))
    smallest = float(np.linalg.eigvalsh(whole.astype(float))[0])
    truths = {
        "objective": (found.objective, f, 0.0),
        "stationarity": (found.stationarity, np.sqrt((v @ v) + part**2), 0.0),
        "feasibility": (found.feasibility, abs(c + slack), 0.0),
        "whole": (found.curvatures["whole"], smallest, 1e-14 * size),  # that of the reference's own eigenvalue
    }
    for name, (measured, truth, own) in truths.items():
        # the ends of an interval are rounded themselves
        spare = own + 4 * np.finfo(float).eps * max(abs(measured.lower), abs(measured.upper))
        assert measured.lower - spare <= float(truth) <= measured.upper + spare, (name, measured, float(truth))
    assert not any("do not change as" in sentence for sentence in found.warnings), found.warnings


@hypothesis.settings(max_examples=60, **SETTINGS)
@hypothesis.given(cases())
def test_intervals_hold_the_truth(case):
    check(case)


@pytest.mark.slow
@hypothesis.settings(max_examples=3000, **SETTINGS)
@hypothesis.given(cases())
def test_intervals_hold_the_truth_of_many(case):
    check(case)
