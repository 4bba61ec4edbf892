"""Searches of theory modes: planned for every subproblem, with steps from the formula, or refused."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

from mescal.curvature import Lanczos, Neon2, Oja, TheoryOja
from mescal.errors import InputError
from mescal.solvers import SgHvNcTheory, SpiderTheory
from mescal.solvers.base import Goal
from mescal.solvers.paper.theory_mode import LARGEST, SEARCH, search_plan
from mescal.theory import concentration, negative_curvature, sg_hv_nc
from mescal.theory.constants import SubproblemConstants

CONSTANTS = SubproblemConstants(
    gradient_lipschitz=1.0, hessian_lipschitz=1.0, gradient_noise=0.1, hessian_noise=0.1, gap=0.3
)
STEEPER = dataclasses.replace(
    CONSTANTS, gradient_lipschitz=4.0, hessian_noise=0.4
)  # as with a penalty four times as large


def goal(constants, dimension=5):
    return Goal(0.1, 0.3, 10, None, 1, 1, constants=constants, dimension=dimension)


def test_oja_and_neon2_follow_the_penalty():
    """Not built once for a run: every plan brings the constants of its subproblem, and what the theorem makes of them."""
    for constants in (CONSTANTS, STEEPER):
        for search in (TheoryOja(), Oja(), Neon2()):
            plan = SgHvNcTheory(search=search).plan(goal(constants), jnp.float32)
            p = sg_hv_nc.parameters(constants, 0.1, 0.3)
            told = search.told(plan.search.known)
            assert float(told.gradient_lipschitz) == constants.gradient_lipschitz
            if isinstance(told, TheoryOja):
                wanted = negative_curvature.oja(constants, p.search_tolerance, p.search_failure, 5)
                found = tuple(int(part) for part in (told.runs, told.steps, told.verification_batch))
                assert found == (wanted.runs, wanted.steps, wanted.verification_batch)
                assert float(told.threshold) == pytest.approx(wanted.threshold)
                assert float(told.step_size) == pytest.approx(wanted.step_size)
            else:
                assert float(told.hessian_noise) == pytest.approx(constants.hessian_noise)
            if isinstance(told, Neon2):
                assert float(told.hessian_lipschitz) == constants.hessian_lipschitz
            if isinstance(told, Oja):
                assert float(told.failure) == pytest.approx(p.search_failure)


def test_what_was_given_stays():
    plan = SgHvNcTheory(search=Oja(gradient_lipschitz=7.0)).plan(goal(CONSTANTS), jnp.float32)
    assert Oja(gradient_lipschitz=7.0).told(plan.search.known).gradient_lipschitz == 7.0
    assert Neon2(hessian_lipschitz=7.0).told(plan.search.known).hessian_lipschitz == 7.0
    for search in (TheoryOja(), Oja(), Neon2(), SEARCH):
        assert search.told(None) is search
    assert SgHvNcTheory().plan(goal(CONSTANTS), jnp.float32).search.known is None  # Lanczos needs a batch alone


def test_lanczos_has_the_batch_of_the_formula():
    """b = ceil(2 (8 s_H/t)^2 ln(4d/p)), as predictions have it, for any number of variables."""
    plan = SpiderTheory().plan(goal(CONSTANTS), jnp.float32).search
    for dimension in (2, 300):
        tolerance, failure = float(plan.tolerance), 4 / float(np.exp(plan.logarithm))
        wanted = concentration.matrices(0.1, tolerance / 8, failure / 2, dimension)
        assert int(plan.batch(dimension)) == pytest.approx(wanted, rel=1e-5)


def test_a_search_that_may_need_more_steps_is_refused():
    """d = 1,000, t/L = 1e-5: a whole basis of 1,000, of which 256 are kept by default. Beyond 256 variables the formula decides."""
    flat = dataclasses.replace(CONSTANTS, gradient_lipschitz=1e5)
    asked = "spider-theory", flat, 1.0, 1e-6, jnp.float32
    with pytest.raises(InputError, match=r"1,000 Lanczos steps in 1,000 variables") as caught:
        search_plan(*asked, SEARCH, 1000)
    assert "steps=1000" in caught.value.advice
    search_plan(*asked, Lanczos(steps=1000, first_batch=LARGEST, failure=1e-9), 1000)
    search_plan(*asked, SEARCH, 256)
    search_plan("spider-theory", CONSTANTS, 0.5, 1e-6, jnp.float32, SEARCH, 1000)
    with pytest.raises(InputError, match="may miss with"):
        search_plan("spider-theory", CONSTANTS, 0.5, 1e-9, jnp.float32, SEARCH, 3)


def test_the_counts_of_the_theorem_have_to_fit():
    """Oja's theorem in a billion steps is refused where it is to run, and not where its runnable form is."""
    asked = "spider-theory", STEEPER, 1e-4, 1e-6, jnp.float32
    with pytest.raises(InputError, match="steps of a search"):
        search_plan(*asked, TheoryOja(), 5)
    assert float(search_plan(*asked, Oja(), 5).known.gradient_lipschitz) == 4.0
    with pytest.raises(InputError, match="without parameters"):
        TheoryOja()(None, jnp.zeros(2), 0.1, None, 1)  # pyright: ignore[reportArgumentType]
