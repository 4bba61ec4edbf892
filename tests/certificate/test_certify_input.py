"""What `certify` refuses, each time with what was found, what was expected and what to do; and what it hands back."""

import dataclasses
import json
import math
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E, InputError, Tolerance
from mescal.sets import Ball, Box, Product, Reals

DATA = np.random.default_rng(0).normal(size=(24, 2))
TRACES = []


def loss(x, row):
    TRACES.append(1)
    return 0.5 * jnp.sum((x - row) ** 2)


def pair(x, row):
    return x * row[0]


PROBLEM = mescal.Problem(
    E(loss, over=DATA),
    {"two": E(pair, over=DATA) <= 0.5, "sum": E(lambda x: jnp.sum(x)) == 0.1},
    Box(-2.0, 2.0),
)
STREAM = mescal.Problem(E(loss, over=mescal.Sampler(lambda key: jax.random.normal(key, (2,)))))
X = np.array([0.3, -0.2])
MULTIPLIERS = {"two": np.array([0.1, 0.2]), "sum": 0.5}


def refused(call, *found):
    """The error that `call` raises, checked to have three parts and to name what was found."""
    with pytest.raises(InputError) as caught:
        call()
    message = str(caught.value)
    head, expected = message.split("\n  Expected: ")
    expected, advice = expected.split("\n  What to do: ")
    assert head and expected and advice
    for word in found:
        assert word in head, message
    return caught.value


BAD_ARGUMENTS = [
    ({"tol": 0.0}, "0.0"),
    ({"tol": -0.01}, "-0.01"),
    ({"tol": math.nan}, "nan"),
    ({"tol": math.inf}, "inf"),
    ({"tol": "small"}, "small"),
    ({"tol": True}, "True"),
    ({"tol": (0.01, 0.01)}, "0.01"),
    ({"cone": "tangent"}, "tangent"),
    ({"cone": ["paper"]}, "paper"),
    ({"seed": 1.5}, "1.5"),
    ({"seed": "zero"}, "zero"),
    ({"seed": None}, "None"),
    ({"seed": True}, "True"),
    ({"seed": -1}, "-1"),
    ({"seed": 2**32}, "4294967296"),
    ({"confidence": 0.0}, "0.0"),
    ({"confidence": 1.0}, "1.0"),
    ({"confidence": 95}, "95"),
    ({"confidence": math.nan}, "nan"),
    ({"confidence": "high"}, "high"),
    ({"penalty": 0.0}, "0.0"),
    ({"penalty": -1.0}, "-1.0"),
    ({"penalty": math.nan}, "nan"),
    ({"penalty": math.inf}, "inf"),
    ({"penalty": "strong"}, "strong"),
    ({"samples": 3}, "3"),
    ({"samples": 100.5}, "100.5"),
    ({"samples": "many"}, "many"),
    ({"samples": True}, "True"),
    ({"bounds": {"jacobian": 1.0}}, "jacobian"),
    ({"bounds": {"gradient": -1.0}}, "-1.0"),
    ({"bounds": {"gradient": math.nan}}, "nan"),
    ({"bounds": {"gradient": "large"}}, "large"),
    ({"bounds": 3.0}, "3.0"),
    ({"multipliers": {"two": [0.0, 0.0]}}, "multipliers", "two"),
    ({"multipliers": MULTIPLIERS | {"three": 0.0}}, "multipliers", "three"),
    ({"multipliers": MULTIPLIERS | {"two": [0.0]}}, "multipliers", "two"),
    ({"multipliers": [0.0, 0.0]}, "multipliers", "2"),
    ({"multipliers": [0.0, 0.0, math.nan]}, "multipliers", "NaN"),
    ({"multipliers": MULTIPLIERS | {"sum": math.inf}}, "multipliers"),
    ({"multipliers": "best"}, "multipliers"),
    ({"slack": [-0.1, 0.0]}, "slack", "-0.1"),
    ({"slack": [math.nan, 0.0]}, "slack"),
    ({"slack": [0.0, 0.0, 0.0]}, "slack", "3"),
    ({"slack": {"sum": 0.0}}, "slack", "sum"),
    ({"slack": {"two": [0.0, 0.0], "sum": 0.0}}, "slack", "sum"),
    ({"slack": {"two": [0.0]}}, "slack", "two"),
    ({"slack": "none"}, "slack"),
]


@pytest.mark.parametrize("case", BAD_ARGUMENTS, ids=lambda case: str(case[0])[:40])
def test_bad_arguments(case):
    arguments, *words = case
    refused(lambda: mescal.certify(PROBLEM, X, **arguments), *words)


@pytest.mark.parametrize(
    "x",
    [
        np.zeros(3),
        np.zeros((2, 2)),
        np.float64(1.0),
        np.zeros(0),
        {"w": np.zeros(2)},
        np.array([1, 2]),
        np.array([0.0, np.nan]),
        np.array([0.0, np.inf]),
        "zero",
        None,
    ],
    ids=repr,
)
def test_bad_points(x):
    refused(lambda: mescal.certify(PROBLEM, x))


@pytest.mark.parametrize(
    "problem", [None, "bank", E(loss, over=DATA), lambda x: x], ids=["none", "name", "term", "function"]
)
def test_problem_of_the_wrong_type(problem):
    refused(lambda: mescal.certify(problem, X), "problem")


def test_point_outside_of_the_domain():
    for x, domain in (
        (np.array([2.1, 0.0]), Box(-2.0, 2.0)),
        (np.array([2.1, 0.0]), Ball(2.0)),
        ((np.array([0.0]), np.array([2.1])), Product(Reals(), Ball(2.0))),
    ):
        problem = mescal.Problem(E(lambda x: sum(jnp.sum(leaf) for leaf in jax.tree.leaves(x))), {}, domain)
        refused(lambda problem=problem, x=x: mescal.certify(problem, x), "outside", "0.1")


def test_point_slightly_outside_is_projected_and_says_so():
    x = np.array([2.0, 0.5])
    inside = mescal.certify(PROBLEM, x)
    outside = mescal.certify(PROBLEM, x + np.array([1e-7, 0]))
    assert not any("outside" in sentence for sentence in inside.warnings)
    assert any("outside" in sentence and "1e-07" in sentence for sentence in outside.warnings)
    assert outside.active_bounds == inside.active_bounds == 1
    assert outside.stationarity == inside.stationarity and outside.curvatures == inside.curvatures
    refused(lambda: mescal.certify(PROBLEM, x + np.array([1e-5, 0])), "outside")


def test_rounding_in_a_projection_is_no_move():
    """Projecting onto equations moves every point by a rounding error: that is nothing to warn of."""
    rng = np.random.default_rng(1)
    matrix, x = rng.normal(size=(2, 2))[:1], rng.normal(size=2)
    problem = mescal.Problem(E(loss, over=DATA), {}, mescal.sets.Affine(matrix, matrix @ x))
    assert not any("outside" in sentence for sentence in mescal.certify(problem, x).warnings)


def test_too_few_rows_to_split():
    small = mescal.Problem(E(loss, over=DATA[:10]))
    refused(lambda: mescal.certify(small, X, as_sample=True), "10")
    assert mescal.certify(small, X).confidence is None


def test_accepted_forms_of_one_request():
    """Dicts and flat vectors, numpy scalars and Python numbers, Tolerance and its short form."""
    slack = {"two": np.array([0.4, 0.0])}
    by_name = mescal.certify(PROBLEM, X, MULTIPLIERS, slack=slack, tol=0.01, seed=np.int64(3))
    flat = mescal.certify(PROBLEM, X, [0.1, 0.2, 0.5], slack=[0.4, 0.0], tol=Tolerance(0.01, 0.01), seed=3)
    without_time = lambda certificate: dataclasses.replace(certificate, seconds=0.0).to_json()
    assert without_time(by_name) == without_time(flat)
    assert by_name.multipliers["two"].shape == (2,) and by_name.multipliers["sum"].shape == ()
    assert by_name.slack.keys() == {"two"}


# What comes back --------------------------------------------------------------------------------------------------------


def certificate_with(**measures):
    certificate = mescal.certify(PROBLEM, X)
    good = mescal.Measured.exact(0.0, "by hand")
    everything = dict.fromkeys(("stationarity", "feasibility", "curvature", "relative_stationarity"), good) | measures
    return dataclasses.replace(certificate, **everything)


def test_passes_compares_every_measure_with_its_error_added():
    tol = Tolerance(0.1, 0.2, relative=0.3)
    assert certificate_with().passes(tol)
    measured = lambda value, lower, upper: mescal.Measured(value, lower, upper, "by hand")
    for name, limit in (("stationarity", 0.1), ("feasibility", 0.1), ("relative_stationarity", 0.3)):
        assert certificate_with(**{name: measured(limit, 0.0, limit)}).passes(tol)
        assert not certificate_with(**{name: measured(0.0, 0.0, np.nextafter(limit, 1))}).passes(tol)
        assert certificate_with(**{name: measured(1.0, np.nextafter(limit, 1), 1.0)}).refuses(tol)
        assert not certificate_with(**{name: measured(1.0, limit, 1.0)}).refuses(tol)
    assert certificate_with(curvature=measured(0.0, -0.2, 0.0)).passes(tol)
    assert not certificate_with(curvature=measured(0.0, np.nextafter(-0.2, -1), 0.0)).passes(tol)
    assert certificate_with(curvature=measured(math.inf, math.inf, math.inf)).passes(tol)
    assert certificate_with(relative_stationarity=measured(9.0, 9.0, 9.0)).passes(0.1)
    assert not certificate_with(relative_stationarity=measured(9.0, 9.0, 9.0)).passes(tol)


@pytest.mark.parametrize("name", ["stationarity", "feasibility", "curvature", "relative_stationarity"])
def test_nan_never_passes(name):
    nan = mescal.Measured.exact(math.nan, "by hand")
    certificate = certificate_with(**{name: nan})
    assert not certificate.passes(Tolerance(1e6, 1e6, relative=1e6))
    json.loads(certificate.to_json())


def test_functions_that_are_not_finite_at_x_are_refused():
    for fn in (lambda x, row: jnp.sqrt(x[0] - 5) + row[0], lambda x, row: jnp.log(x[0] - 0.3) + row[0]):
        problem = mescal.Problem(E(fn, over=DATA))
        error = refused(lambda problem=problem: mescal.certify(problem, X))
        assert "finite" in str(error)


def test_bad_tolerances_are_refused_by_the_verdict():
    certificate = mescal.certify(PROBLEM, X)
    for tol in (0.0, -1.0, math.nan, "small", None):
        refused(lambda tol=tol: certificate.passes(tol), "tolerance")


def test_json_holds_everything():
    certificate = mescal.certify(PROBLEM, X, tol=0.01, cone="paper")  # the critical one is {0} there, without numbers
    read = json.loads(certificate.to_json())
    for name in ("stationarity", "feasibility", "curvature", "relative_stationarity", "objective"):
        measured = getattr(certificate, name)
        assert read[name] == {
            "value": measured.value,
            "lower": measured.lower,
            "upper": measured.upper,
            "how": measured.how,
        }
    assert read["multipliers"] == {name: rows.tolist() for name, rows in certificate.multipliers.items()}
    assert read["slack"] == {name: rows.tolist() for name, rows in certificate.slack.items()}
    assert read["curvatures"].keys() == {"whole", "paper", "critical"}
    assert read["cone"] == "paper" and read["confidence"] is None
    assert mescal.certify(PROBLEM, X, tol=0.01).cone == "critical"
    assert tuple(read["warnings"]) == certificate.warnings
    assert read["work"]["total"] == certificate.work.total > 0
    assert json.loads(json.dumps(read)) == read
    without_constraints = json.loads(mescal.certify(mescal.Problem(E(loss, over=DATA)), X).to_json())
    assert without_constraints["dual_sign"] is None and without_constraints["multipliers"] == {}
    assert pickle.loads(pickle.dumps(certificate)).to_json() == certificate.to_json()


def test_text_is_short_and_says_what_decides():
    certificate = mescal.certify(PROBLEM, X, tol=0.01, cone="critical")
    lines = str(certificate).splitlines()
    assert [line.split()[0] for line in lines[:4]] == ["stationarity", "feasibility", "curvature", "objective"]
    assert "exact over 24 rows" in lines[0] and "critical cone" in lines[2]
    assert len(lines) == 4 + len(certificate.warnings)
    assert all(line.startswith("warning: ") for line in lines[4:])


def test_equal_requests_have_equal_certificates():
    for problem, arguments in ((PROBLEM, {}), (STREAM, {"samples": 64}), (PROBLEM, {"as_sample": True})):
        one, two = (mescal.certify(problem, X, seed=5, **arguments) for _ in range(2))
        assert dataclasses.replace(one, seconds=0).to_json() == dataclasses.replace(two, seconds=0).to_json()
    other = mescal.certify(STREAM, X, seed=6, samples=64)
    assert other.stationarity.value != mescal.certify(STREAM, X, seed=5, samples=64).stationarity.value


def test_second_call_compiles_nothing():
    """Another x, other multipliers, slacks, tolerances, penalties, cones and seeds, or another problem of the same functions."""
    compiled = []
    problem = mescal.Problem(E(loss, over=DATA), {"two": E(pair, over=DATA) <= 0.5}, Box(-2.0, 2.0))
    mescal.certify(problem, X)
    mescal.certify(STREAM, X, samples=64)
    mescal.certify(problem, X, as_sample=True)
    listener = lambda event, duration, **_: compiled.append(event)
    before = len(TRACES)
    jax.monitoring.register_event_duration_secs_listener(listener)
    try:
        mescal.certify(problem, X + 0.1, [0.1, 0.2])
        mescal.certify(problem, np.array([2.0, -2.0]), slack=[0.0, 0.1], tol=0.3, cone="critical", penalty=7.0, seed=2)
        mescal.certify(problem, X - 0.1, as_sample=True, confidence=0.9, tol=0.5)
        mescal.certify(STREAM, X + 0.1, samples=64, seed=3, tol=0.2, bounds={"gradient": 3.0})
    finally:
        jax.monitoring.unregister_event_duration_listener(listener)
    backend = [event for event in compiled if "compile" in event or "jaxpr_trace" in event]
    assert backend == []
    assert len(TRACES) == before
    # Same functions, other data: the shapes are looked at once more, but nothing is compiled.
    del compiled[:]
    jax.monitoring.register_event_duration_secs_listener(listener)
    try:
        shifted = DATA + 1
        other = mescal.Problem(E(loss, over=shifted), {"two": E(pair, over=shifted) <= 0.7}, Box(-3.0, 3.0))
        mescal.certify(other, X)
    finally:
        jax.monitoring.unregister_event_duration_listener(listener)
    assert [event for event in compiled if "backend_compile" in event] == []
