"""One inequality for vectors and one for matrices: by hand, in one place, and against exact tails where they are known."""

import math
from pathlib import Path

import pytest
from scipy import stats

from mescal import theory
from mescal.errors import InputError
from mescal.theory import concentration, negative_curvature, scr
from mescal.theory.constants import SubproblemConstants

CONSTANTS = SubproblemConstants(
    gradient_lipschitz=2.0, hessian_lipschitz=3.0, gradient_noise=1.0, hessian_noise=0.7, gap=1.0
)


def test_counts_by_hand():
    assert concentration.vectors(3.0, 0.5, 0.01) == math.ceil(72 * math.log(200))
    assert concentration.matrices(0.7, 0.1, 0.01, 30) == math.ceil(98 * math.log(6000))


@pytest.mark.parametrize("dimension", [1, 20])
@pytest.mark.parametrize("failure", [0.1, 1e-3])
def test_the_bound_holds_for_diagonal_signs(dimension, failure):
    """s times d independent fair signs on the diagonal: |mean| > r has the exact probability of d binomial tails."""
    for ratio in (0.1, 0.3):
        n = concentration.matrices(1.0, ratio, failure, dimension)
        tail = 2 * stats.binom.sf(math.ceil(n * (1 + ratio) / 2) - 1, n, 0.5)
        assert 1 - (1 - tail) ** dimension <= failure


def test_every_matrix_batch_has_the_same_constant():
    """Sub-sampled Lanczos and SCR ask for 2 (s/r)^2 ln(2d/p), for the r and p that each has."""
    search = negative_curvature.lanczos(CONSTANTS, 0.2, 0.01, 30)
    assert search.batch == concentration.matrices(0.7, 0.2 / 8, 0.01 / 2, 30)
    p = scr.parameters(CONSTANTS, 0.1, 0.3)
    error = scr.HESSIAN_ERROR * math.sqrt(CONSTANTS.hessian_lipschitz * p.accuracy)
    assert p.hessian_batch(30) == concentration.matrices(0.7, error, 1 / (6 * p.steps), 30)


def test_it_is_said_in_one_place():
    """No other file of the theory names an inequality for matrices without naming `concentration`."""
    for path in sorted(Path(theory.__file__).parent.glob("*.py")):
        text = path.read_text(encoding="utf-8")
        if "Tropp" in text or "atrix Hoeffding" in text:
            assert path.name == "concentration.py" or "`concentration" in text, path.name


def test_what_it_refuses():
    with pytest.raises(InputError):
        concentration.vectors(1.0, 0.0, 0.1)
    with pytest.raises(InputError):
        concentration.matrices(1.0, 0.1, 1.0, 3)
