"""Asking for problems: names, parameters, and errors that help."""

import json

import numpy as np
import pytest

from mescal import problems
from mescal.errors import InputError, InputTypeError
from mescal.problems import Entry, Instance, Parameter

PAPER = ["neyman-pearson/spambase", "neyman-pearson/madelon", "fairness/bank", "fairness/loan"]


def test_names():
    names = problems.names()
    assert set(PAPER) <= set(names)
    assert {"neyman-pearson/breast-cancer", "fairness/diabetes", "synthetic/fairness"} <= set(names)
    assert {f"fairness/{data}-tight" for data in ("bank", "loan", "diabetes")} <= set(names)
    classics = [name for name in names if name.startswith("hock-schittkowski/")]
    assert classics == [f"hock-schittkowski/{number}" for number in (6, 7, 26, 39, 40)]
    assert len([name for name in names if name.startswith("saddles/")]) == 6


@pytest.mark.parametrize(
    ("asked", "suggested"),
    [
        ("neyman-pearson/spam", "neyman-pearson/spambase"),
        ("fairness/banks", "fairness/bank"),
        ("hock-schittkowski/41", "hock-schittkowski/40"),
        ("Saddles/circle", "saddles/circle"),
    ],
)
def test_an_unknown_problem_suggests_the_nearest(asked, suggested):
    with pytest.raises(InputError, match="no problem named") as caught:
        problems.get(asked)
    assert repr(suggested) in caught.value.advice


def test_parameters_are_taken_and_remembered():
    usual, other = problems.get("saddles/sphere-axis"), problems.get("saddles/sphere-axis", d=7, sigma=0)
    assert usual.parameters == {"d": 50, "start": 1, "gap": 0.3, "sigma": 0.1}
    assert other.parameters == {"d": 7, "start": 1, "gap": 0.3, "sigma": 0.0}
    assert (usual.x0.shape, other.x0.shape) == ((50,), (7,))
    again = problems.get(usual.name, **json.loads(json.dumps(usual.parameters)))
    assert again.parameters == usual.parameters
    assert usual.kind == "saddles"
    assert repr(other) == "NamedProblem('saddles/sphere-axis', d=7, start=1, gap=0.3, sigma=0.0)"


@pytest.mark.parametrize(
    ("name", "parameters", "kind", "message"),
    [
        ("saddles/circle", {"sigm": 0.1}, InputError, "did you mean 'sigma'"),
        ("saddles/circle", {"sigma": "0.1"}, InputTypeError, "a number >= 0"),
        ("saddles/circle", {"sigma": True}, InputTypeError, "a number >= 0"),
        ("saddles/circle", {"sigma": -1}, InputError, ">= 0"),
        ("saddles/circle", {"sigma": float("nan")}, InputError, "sigma=nan"),
        ("saddles/circle", {"sigma": float("inf")}, InputError, "finite"),
        ("saddles/sphere-axis", {"d": 5.0}, InputTypeError, "a whole number >= 3"),
        ("saddles/sphere-axis", {"d": 5, "start": 5}, InputError, "start=5 with d=5"),
        ("saddles/sphere-axis", {"gap": 1.0}, InputError, ">= 0.01 and <= 0.99"),
        ("neyman-pearson/breast-cancer", {"tau": 2}, InputError, ">= 0 and <= 1"),
        ("neyman-pearson/breast-cancer", {"encoding": "standard"}, InputError, "did you mean 'standardised'"),
        ("neyman-pearson/breast-cancer", {"dtype": 32}, InputTypeError, "float32"),
        ("fairness/diabetes", {"group": "age=3"}, InputError, "no column for groups"),
    ],
)
def test_parameters_that_cannot_be_used(name, parameters, kind, message):
    with pytest.raises(kind, match=message):
        problems.get(name, **parameters)


def test_parameters_from_text():
    parsed = problems.parse("saddles/sphere-dense", {"d": "12", "sigma": "1e-2"})
    assert parsed == {"d": 12, "sigma": 0.01}
    assert isinstance(parsed["d"], int)
    assert problems.parse("fairness/diabetes", {"group": "sex=2"}) == {"group": "sex=2"}
    with pytest.raises(InputTypeError, match="a whole number"):
        problems.parse("saddles/sphere-dense", {"d": "many"})
    with pytest.raises(InputError, match="parameter of saddles/sphere-dense"):
        problems.parse("saddles/sphere-dense", {"dim": "3"})


def test_every_parameter_explains_itself():
    for name in problems.names():
        entry = problems.about(name)
        assert entry.description
        for known, parameter in entry.parameters.items():
            assert parameter.help and parameter.allowed
            assert parameter.check(known, parameter.default) == parameter.default
            assert parameter.parse(known, str(parameter.default)) == parameter.default


def test_numpy_numbers_are_numbers():
    assert Parameter(1.0, "help").check("p", np.float32(0.5)) == 0.5
    assert Parameter(1, "help").check("p", np.int64(3)) == 3


def test_a_known_optimum_holds_for_the_default_parameters_only():
    problem = problems.get("saddles/strict").problem
    parameters = {"tau": Parameter(0.2, "bound"), "dtype": Parameter("float32", "type", restates=False)}
    entry = Entry("a/b", lambda **_: Instance(problem, np.zeros(2)), "", parameters, optimum=1.0)
    assert entry.make({"tau": 0.2, "dtype": "float64"}).optimum == 1.0
    assert entry.make({"tau": 0.3, "dtype": "float32"}).optimum is None


def test_compiled_programs_can_be_shared():
    """Another call gives the same equations, which is what compiled programs are keyed by."""
    for name in ("hock-schittkowski/39", "saddles/sphere-dense", "saddles/circle", "fairness/diabetes"):
        first, second = (problems.get(name) for _ in range(2))
        bound = [named.problem.bind(named.x0)[0] for named in (first, second)]
        assert bound[0].fixed == bound[1].fixed
        assert bound[0].families == bound[1].families
