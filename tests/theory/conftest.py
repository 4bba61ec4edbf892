"""Constants that the tests of the formulas share: ordinary ones, each branch of Natasha2, none of the noise."""

import pytest

from mescal.theory.constants import ProblemConstants, SubproblemConstants
from mescal.theory.outer import Schedule

CASES = {
    "ordinary": (SubproblemConstants(
        gradient_lipschitz=3.0, hessian_lipschitz=2.0, gradient_noise=0.7, hessian_noise=1.1, gap=0.9), 0.05, 0.1),
    "flat": (SubproblemConstants(
        gradient_lipschitz=5.0, hessian_lipschitz=0.02, gradient_noise=0.4, hessian_noise=0.35, gap=2.0), 0.01, 0.3),
    "curved": (SubproblemConstants(
        gradient_lipschitz=100.0, hessian_lipschitz=5.0, gradient_noise=10.0, hessian_noise=2.0, gap=1.5), 0.01, 0.3),
    "noisy": (SubproblemConstants(
        gradient_lipschitz=1.0, hessian_lipschitz=4.0, gradient_noise=30.0, hessian_noise=9.0, gap=0.5), 0.2, 0.2),
    "quiet": (SubproblemConstants(
        gradient_lipschitz=2.0, hessian_lipschitz=1.0, gradient_noise=0.0, hessian_noise=0.0, gap=0.3), 0.03, 0.07),
}  # fmt: skip


@pytest.fixture(params=CASES.values(), ids=CASES)
def case(request):
    """(constants, gradient tolerance, curvature tolerance)"""
    return request.param


@pytest.fixture
def constants():
    return CASES["ordinary"][0]


@pytest.fixture
def problem():
    return ProblemConstants(
        dimension=7, constraint_count=3,
        objective_bound=1.3, objective_gradient_bound=0.8, constraint_bound=2.1, jacobian_bound=1.7,
        constraint_hessian_bound=0.6, regularity=0.4,
        objective_gradient_lipschitz=1.9, objective_hessian_lipschitz=0.5,
        constraint_gradient_lipschitz=0.7, constraint_hessian_lipschitz=0.3,
        objective_gradient_noise=0.11, objective_hessian_noise=0.13, constraint_noise=0.17, jacobian_noise=0.19,
        constraint_hessian_noise=0.23,
    )  # fmt: skip


@pytest.fixture
def schedule():
    return Schedule(initial_penalty=0.5, growth=1.3, multiplier_bound=2.5)
