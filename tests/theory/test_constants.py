"""Lemmas 3.2-3.5: the formulas, and that they bound what a sampled augmented Lagrangian does."""

import dataclasses
import math

import numpy as np
import pytest

from mescal.errors import InputError
from mescal.theory import constants as lemmas
from mescal.theory.constants import Affine, ProblemConstants, SubproblemConstants, subproblem_constants


def test_lemmas_by_hand(problem):
    bound = 2.5
    slope = 1.7 + 0.19  # L_c
    assert lemmas.gradient_lipschitz(problem, bound) == Affine(
        pytest.approx(1.9 + math.sqrt(3) * 0.7 * bound), pytest.approx(3 * (slope**2 + 0.7 * (2.1 + 0.17)))
    )
    assert lemmas.hessian_lipschitz(problem, bound) == Affine(
        pytest.approx(0.5 + math.sqrt(3) * 0.3 * bound),
        pytest.approx(3 * (2 * 0.7 * slope + slope * (0.6 + 0.23) + 0.3 * (2.1 + 0.17))),
    )
    assert lemmas.gradient_noise(problem, bound) == Affine(
        pytest.approx(0.11 + 0.19 * bound), pytest.approx(0.19 * 0.17 + 0.19 * 2.1 + 1.7 * 0.17)
    )
    twice = lemmas.gradient_lipschitz(problem, bound)
    assert lemmas.hessian_noise(problem, bound) == Affine(2 * twice.fixed, 2 * twice.slope)


def test_sharp_forms_by_hand(problem):
    bound, slope, root = 2.5, 1.7 + 0.19, math.sqrt(3)
    assert lemmas.gradient_lipschitz(problem, bound, sharp=True).slope == pytest.approx(slope**2 + root * 0.7 * 2.27)
    plain = lemmas.hessian_lipschitz(problem, bound).slope
    assert lemmas.hessian_lipschitz(problem, bound, sharp=True).slope == pytest.approx(plain / root)
    assert lemmas.hessian_noise(problem, bound, sharp=True) == Affine(
        pytest.approx(0.13 + root * 0.23 * bound),
        pytest.approx(root * (2.27 * 0.23 + 0.17 * 0.6) + 0.19 * (2 * 1.7 + 0.19)),
    )
    squares = 0.11**2 + 0.19**2 * ((bound + 4 * 2.1) ** 2 + (4 * 0.17) ** 2) + (4 * 1.7 * 0.17) ** 2
    assert lemmas.gradient_noise_mean_square(problem, bound, 4.0) == pytest.approx(math.sqrt(squares))


def test_constants_are_affine_in_the_penalty(problem):
    one, two, three = (subproblem_constants(problem, 2.5, alpha, 1.0) for alpha in (1.0, 2.0, 3.0))
    for name in ("gradient_lipschitz", "hessian_lipschitz", "gradient_noise", "hessian_noise"):
        assert getattr(one, name) + getattr(three, name) == pytest.approx(2 * getattr(two, name))
        assert getattr(one, name) < getattr(two, name)


def test_sharp_constants_are_smaller_and_agree_for_one_constraint(problem):
    for m in (1, 4):
        many = dataclasses.replace(problem, constraint_count=m)
        plain, sharp = (subproblem_constants(many, 2.5, 1.7, 1.0, sharp) for sharp in (False, True))
        for field in dataclasses.fields(plain):
            assert getattr(sharp, field.name) <= getattr(plain, field.name) * (1 + 1e-12)
        assert (sharp.gradient_lipschitz == pytest.approx(plain.gradient_lipschitz)) == (m == 1)
    assert lemmas.gradient_noise_mean_square(problem, 2.5, 1.7) <= lemmas.gradient_noise(problem, 2.5)(1.7)


def test_without_noise_the_sharp_noise_vanishes(problem):
    names = [field.name for field in dataclasses.fields(problem) if field.name.endswith("noise")]
    quiet = dataclasses.replace(problem, **dict.fromkeys(names, 0.0))
    assert subproblem_constants(quiet, 2.5, 3.0, 1.0, sharp=True).hessian_noise == 0
    assert subproblem_constants(quiet, 2.5, 3.0, 1.0).gradient_noise == 0


class Waves:
    """F and m constraints C_j, each a sum of p sines a_i sin(w_i'x + phase_i) with a bounded random shift of the phase.

    All constants of Assumptions 2.1 and 3.1-3.3 follow from amplitudes and frequencies.
    """

    def __init__(self, rng, d=4, m=3, p=3, shift=0.3):
        self.shift, self.d, self.m = shift, d, m
        self.amplitude = rng.uniform(0.2, 1.0, (m + 1, p))
        self.wave = rng.normal(size=(m + 1, p, d))
        self.phase = rng.uniform(0, 6, (m + 1, p))

    def derivatives(self, x, draw):
        """Value, gradient, Hessian of all m+1 functions at one draw of their shifts; draw of shape (m+1, p)."""
        angle = self.wave @ x + self.phase + draw
        sine, cosine = self.amplitude * np.sin(angle), self.amplitude * np.cos(angle)
        gradient = np.einsum("jp,jpd->jd", cosine, self.wave)
        return sine.sum(1), gradient, -np.einsum("jp,jpd,jpe->jde", sine, self.wave, self.wave)

    def mean(self, x):
        """Expectations over the uniform shift: sines shrink by sin(shift)/shift."""
        factor = math.sin(self.shift) / self.shift
        return tuple(factor * part for part in self.derivatives(x, 0.0))

    def draw(self, rng):
        return rng.uniform(-self.shift, self.shift, self.amplitude.shape)

    def constants(self):
        length = np.linalg.norm(self.wave, axis=-1)
        order = [(self.amplitude * length**k).sum(1) for k in range(4)]  # bounds of value .. third derivative, per row
        # |sample - mean| <= |amplitude| |sin(z + u) - factor sin z| <= amplitude (shift + 1 - factor)
        spread = self.shift + 1 - math.sin(self.shift) / self.shift
        return ProblemConstants(
            dimension=self.d, constraint_count=self.m,
            objective_bound=order[0][0], objective_gradient_bound=order[1][0],
            constraint_bound=np.linalg.norm(order[0][1:]), jacobian_bound=np.linalg.norm(order[1][1:]),
            constraint_hessian_bound=order[2][1:].max(), regularity=1.0,
            objective_gradient_lipschitz=order[2][0], objective_hessian_lipschitz=order[3][0],
            constraint_gradient_lipschitz=order[2][1:].max(), constraint_hessian_lipschitz=order[3][1:].max(),
            objective_gradient_noise=spread * order[1][0], objective_hessian_noise=spread * order[2][0],
            constraint_noise=spread * np.linalg.norm(order[0][1:]),
            jacobian_noise=spread * np.linalg.norm(order[1][1:]),
            constraint_hessian_noise=spread * order[2][1:].max(),
        )  # fmt: skip


def lagrangian(objective, first, second, multiplier, penalty):
    """Sampled gradient (3.1) and Hessian (3.2) from the derivatives at xi, zeta_1 and zeta_2."""
    weight = multiplier + penalty * second[0][1:]
    gradient = objective[1][0] + first[1][1:].T @ weight
    hessian = objective[2][0] + np.einsum("j,jde->de", weight, first[2][1:])
    return gradient, hessian + penalty * first[1][1:].T @ second[1][1:]


@pytest.mark.parametrize("sharp", [False, True])
def test_lemmas_bound_a_sampled_augmented_lagrangian(sharp):
    """300 pairs of points, near and far, multipliers on the sphere of radius Lambda: no bound is exceeded."""
    rng = np.random.default_rng(0)
    waves, penalty, radius = Waves(rng), 1.6, 0.8
    bound = subproblem_constants(waves.constants(), radius, penalty, 1.0, sharp)
    squared_errors, seen = [], np.zeros(4)
    for _ in range(300):
        x = rng.normal(size=waves.d) * 3
        y = x + rng.normal(size=waves.d) * 10 ** rng.uniform(-3, 0)
        multiplier = rng.normal(size=waves.m)
        multiplier *= radius / np.linalg.norm(multiplier)
        draws = [waves.draw(rng) for _ in range(3)]
        gx, hx = lagrangian(*(waves.derivatives(x, draw) for draw in draws), multiplier, penalty)
        gy, hy = lagrangian(*(waves.derivatives(y, draw) for draw in draws), multiplier, penalty)
        g, h = lagrangian(*(waves.mean(x),) * 3, multiplier, penalty)
        distance = np.linalg.norm(x - y)
        ratios = (
            np.linalg.norm(gx - gy) / distance / bound.gradient_lipschitz,
            np.linalg.norm(hx - hy, 2) / distance / bound.hessian_lipschitz,
            np.linalg.norm(gx - g) / bound.gradient_noise,
            np.linalg.norm(hx - h, 2) / bound.hessian_noise,
        )
        seen = np.maximum(seen, ratios)
        squared_errors.append(np.sum((gx - g) ** 2))
    assert (seen <= 1).all()
    assert (seen > 0.005).all()  # the bounds are not vacuous either
    assert np.mean(squared_errors) <= lemmas.gradient_noise_mean_square(waves.constants(), radius, penalty) ** 2


def test_bad_constants_are_refused(problem, constants):
    with pytest.raises(InputError, match="regularity is 0"):
        dataclasses.replace(problem, regularity=0.0)
    with pytest.raises(InputError, match="constraint_noise is -1"):
        dataclasses.replace(problem, constraint_noise=-1.0)
    with pytest.raises(InputError, match="hessian_lipschitz is 0"):
        dataclasses.replace(constants, hessian_lipschitz=0.0)
    with pytest.raises(InputError, match="nan"):
        SubproblemConstants(
            gradient_lipschitz=1.0, hessian_lipschitz=1.0, gradient_noise=math.nan, hessian_noise=0.0, gap=0.0
        )
