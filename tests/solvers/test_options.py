"""Options that cannot be meant are refused when a solver, a search or a baseline is built, in the usual three parts."""

import pytest

import mescal
from mescal.baselines import get as baseline
from mescal.curvature import Lanczos
from mescal.errors import InputError, InputTypeError
from mescal.solvers import Auto, NewtonCG, Scr, Spider

WRONG = {
    "no samples": lambda: NewtonCG(batch=0),
    "no blocks": lambda: NewtonCG(blocks=0),
    "no products": lambda: Scr(products=0),
    "a negative population": lambda: Auto(small=-1),
    "a negative batch": lambda: baseline("stoch-sqp", batch=-3),
    "a penalty below zero": lambda: baseline("penalty-storm", penalty=-1.0),
    "a penalty that falls": lambda: baseline("stoch-ialm", growth=0.5),
    "a step that is not finite": lambda: baseline("stoch-ialm", first_step=float("nan")),
    "a sure failure": lambda: Lanczos(failure=1.0),
    "a failure that never is": lambda: Lanczos(failure=0.0),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_cannot_be_meant_is_refused(what):
    with pytest.raises(InputError, match=r"Expected: .*\n.*leave it out for the default"):
        WRONG[what]()


@pytest.mark.parametrize("value", [2.5, True, "8", None])
def test_a_count_is_a_whole_number(value):
    with pytest.raises(InputTypeError, match="whole number"):
        Scr(batch=value)


def test_zero_means_what_the_documentation_says():
    assert Auto(large=0).large == 0  # never a part first
    assert Spider(batch=0).batch == 0  # to be sized


def test_every_default_is_allowed():
    for name in mescal.solvers.names():
        mescal.solvers.get(name)
    for name in mescal.baselines.names():
        baseline(name)
