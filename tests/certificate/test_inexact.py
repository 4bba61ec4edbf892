"""Curvature on inexact cones: both ends hold for every truth within the errors, and close in as the errors vanish."""

import numpy as np
import pytest

from mescal.certificate.inexact import Errors, lower_end, upper_end
from mescal.certificate.second_order import CONES, on_cone
from mescal.certificate.situation import Situation
from mescal.sets import Ball, Box, HalfSpace, Reals, Simplex, TangentCone

SIZE = 3


def tangents(rng) -> TangentCone:
    """The tangent cone of a random set at a random point, most often with something active."""
    kind = rng.integers(5)
    n = rng.normal(size=SIZE)
    if kind == 0:
        return Reals().tangent_cone(np.zeros(SIZE))
    if kind == 1:
        return Box(np.zeros(SIZE), np.ones(SIZE)).tangent_cone(rng.choice([0.0, 0.5, 1.0], SIZE))
    if kind == 2:
        return Ball(0.7).tangent_cone(0.7 * n / np.linalg.norm(n))
    if kind == 3:
        return HalfSpace(n, 0.0).tangent_cone(np.zeros(SIZE))
    return Simplex().tangent_cone(rng.permutation([0.0, 0.4, 0.6]) if rng.random() < 0.5 else np.eye(SIZE)[0])


def situation_of(tangent, gradient, jacobian, multipliers, inequality, slack, strong):
    normal = -gradient - tangent.project(-gradient)
    return Situation(gradient, jacobian, multipliers, inequality, slack, tangent, normal, 1.1, strong)


def symmetric(rng):
    matrix = rng.normal(size=(SIZE, SIZE))
    return (matrix + matrix.T) / 2


def perturbed(rng, value, size):
    """Something within `size` of the value in the operator norm, most often right at that distance."""
    noise = symmetric(rng) if value.shape == (SIZE, SIZE) else rng.normal(size=value.shape)
    if noise.size == 0 or size == 0:
        return value
    return value + noise * (rng.choice([0.3, 1.0]) * size / np.linalg.norm(noise, 2))


def enclose(rng, scale):
    """(name, truth, lower end, upper end) of the three cones for one truth and one estimate of it."""
    tangent = tangents(rng)
    m = int(rng.integers(0, 3))
    inequality = rng.random(m) < 0.5
    slack = np.where(inequality & (rng.random(m) < 0.5), 1.0, 0.0)
    multipliers = np.where(inequality, np.abs(rng.normal(size=m)), rng.normal(size=m)) * (rng.random(m) < 0.7)
    H, J, g = symmetric(rng), rng.normal(size=(m, SIZE)), rng.normal(size=SIZE) * rng.choice([0.0, 0.1, 1.0])
    errors = Errors(*(scale * rng.uniform(0, 1, 3) * (rng.random(3) < 0.8)))
    strong = rng.choice([1e-6, 0.05])
    rest = (multipliers, inequality, slack, strong)
    true = situation_of(tangent, g, J, *rest)
    H2, J2 = perturbed(rng, H, errors.hessian), perturbed(rng, J, errors.jacobian if m else 0.0)
    seen = situation_of(tangent, perturbed(rng, g, errors.gradient), J2, *rest)
    norm = np.linalg.norm(H2, 2) + errors.hessian

    def evaluate(name, situation, relaxed=None, matrix=H2):
        return on_cone(name, situation, matrix, lambda v: matrix @ v, 1e-3, 0, relaxed)

    if m == 0:
        errors = Errors(errors.hessian, 0.0, errors.gradient)
    for name in CONES:
        truth, found = evaluate(name, true, matrix=H).value, evaluate(name, seen)
        lower = lower_end(name, seen, found, lambda s, r, name=name: evaluate(name, s, r), norm, errors)
        directions = [found.direction] if found.direction is not None else []
        candidates = [(u, float(u[:SIZE] @ H2 @ u[:SIZE]) + errors.hessian) for u in directions]
        yield name, truth, found, lower, upper_end(name, seen, candidates, norm, errors)


@pytest.mark.parametrize("scale", [0.0, 1e-3, 0.05, 0.5])
def test_every_truth_within_the_errors_is_enclosed(scale):
    for seed in range(150):
        for name, truth, found, lower, upper in enclose(np.random.default_rng([seed, int(scale * 1e4)]), scale):
            assert lower <= truth + 1e-9, (seed, name, found)
            assert upper >= truth - 1e-9, (seed, name, found)
            if scale == 0:
                assert lower == pytest.approx(truth, abs=1e-8) or lower == truth


def test_ends_close_in_as_errors_vanish():
    """Without sign conditions: proportionally, by at most the first-order change plus a margin."""
    rng = np.random.default_rng(1)
    for _ in range(30):
        H, J = symmetric(rng), rng.normal(size=(1, SIZE))
        tangent = Reals().tangent_cone(np.zeros(SIZE))
        flat = np.zeros(1)
        seen = situation_of(tangent, np.zeros(SIZE), J, flat, np.zeros(1, bool), flat, 1e-6)
        norm, sigma = np.linalg.norm(H, 2), np.linalg.norm(J)
        for scale in (1e-3, 1e-5):
            errors = Errors(scale, scale * sigma, scale)
            found = on_cone("paper", seen, H, lambda v, H=H: H @ v, 1e-3)
            evaluate = lambda s, r, H=H: on_cone("paper", s, H, lambda v: H @ v, 1e-3, 0, r)
            lower = lower_end("paper", seen, found, evaluate, norm, errors)
            upper = upper_end("paper", seen, [(found.direction, found.value + scale)], norm, errors)
            expected = scale * (1 + 2 * norm)
            assert found.value - 1.3 * expected <= lower <= found.value <= upper <= found.value + 1.3 * expected
