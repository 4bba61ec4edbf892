"""A table of bad inputs, each with the kind of error that it must be: never a raw exception, never silently accepted.

`InputTypeError` is for what is no number, no array, no path or no function at all; `InputError` for numbers that cannot be meant.
"""

import dataclasses
import operator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E, InputError, Tolerance, sets
from mescal.errors import InputTypeError

HUGE = 10**400
MASKED = np.ma.masked_array([1.0, 2.0], [True, False])
ROWS = np.zeros((5, 2), np.float32)
X0 = np.zeros(2, np.float32)


class Unreadable:
    """What numpy asks for an array, and in vain."""

    def __array__(self, *_: Any, **__: Any):
        raise RuntimeError("there is none")


def loss(x, row):
    return ((x - row) ** 2).sum()


def nothing(key):
    return jnp.log(-jnp.ones(2))


PROBLEM = mescal.Problem(E(loss, over=ROWS), {"cap": E(lambda x: x) <= np.ones(2)})

# What is no real number, whatever takes one.
NO_NUMBERS = {
    "text": "x",
    "a digit in words": "1",
    "numpy text": np.str_("1"),
    "bytes": b"1",
    "complex": 1j,
    "None": None,
    "a function": len,
    "a dict": {},
    "a set": {1.0},
    "a date": np.datetime64(0, "s"),
    "beyond all floats": HUGE,
    "a fraction beyond all floats": Fraction(HUGE, 1),
    "a random key": jax.random.key(0),
    "an object": object(),
}
# What is no array of real numbers either.
NO_ARRAYS = {
    "texts": ["a", "b"],
    "ragged": [[1.0], [1.0, 2.0]],
    "complex ones": np.ones(2) * 1j,
    "complex ones of JAX": jnp.ones(2) * 1j,
    "masked": MASKED,
    "objects": np.array([None, 1.0]),
    "beyond all floats, too": [HUGE, 1],
    "dates": np.zeros(2, "M8[s]"),
    "a structure": np.zeros(2, [("a", "f4")]),
    "unreadable": Unreadable(),
}
TRUTHS = {"a truth value": True, "numpy's": np.True_, "truth values": np.array([True, False])}


@pytest.mark.parametrize(
    "value", (NO_NUMBERS | NO_ARRAYS | TRUTHS).values(), ids=(NO_NUMBERS | NO_ARRAYS | TRUTHS).keys()
)
@pytest.mark.parametrize("sign", ["add", "sub", "mul", "truediv", "le", "ge", "eq"])
def test_expectations_combine_with_numbers(sign, value):
    combine, expectation = getattr(operator, sign), E(loss, over=ROWS)
    with pytest.raises(InputTypeError):
        combine(expectation, value)
    with pytest.raises(InputTypeError):
        combine(value, expectation)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, [1.0, np.nan], 2**1023 * 2.0], ids=str)
@pytest.mark.parametrize("sign", ["add", "sub", "mul", "le", "eq"])
def test_expectations_combine_with_finite_numbers(sign, value):
    with pytest.raises(InputError):
        getattr(operator, sign)(E(loss, over=ROWS), value)


@pytest.mark.parametrize(
    "combined",
    [
        lambda e: e**2,
        lambda e: 2**e,
        lambda e: 1 / e,
        lambda e: e @ e,
        lambda e: e // 2,
        lambda e: e % 2,
        abs,
        float,
        int,
    ],
)
def test_what_is_no_linear_combination_is_refused(combined):
    with pytest.raises(InputTypeError):
        combined(E(loss, over=ROWS))


@pytest.mark.parametrize(
    "good", [1, 0.5, np.float32(2), np.int8(3), Fraction(1, 3), jnp.float32(2), np.float64(1e300)], ids=str
)
def test_numbers_of_all_kinds_are_numbers(good):
    expectation = E(loss, over=ROWS)
    assert float((expectation + good).constant) == pytest.approx(float(good))
    assert (good * expectation).terms[0].coefficient == pytest.approx(float(good))


WEIGHTS = (
    NO_NUMBERS
    | NO_ARRAYS
    | {"a generator": (i for i in range(5)), "masked weights": np.ma.masked_array(np.ones(5), [1] * 5)}
)


@pytest.mark.parametrize(
    "weights", [w for w in WEIGHTS.values() if w is not None], ids=[k for k in WEIGHTS if k != "None"]
)
def test_weights_that_are_no_numbers(weights):
    with pytest.raises(InputTypeError):
        E(loss, over=ROWS, weights=weights)


@pytest.mark.parametrize(
    "weights", [np.ones(4), np.ones((5, 1)), 1.0, -np.ones(5), np.zeros(5), [np.nan] * 5, [np.inf] * 5], ids=str
)
def test_weights_that_cannot_be_meant(weights):
    with pytest.raises(InputError):
        E(loss, over=ROWS, weights=weights)


@pytest.mark.parametrize("size", [1e308, 1e-320, 5e-324])
def test_weights_of_any_size_count_by_their_ratios(size):
    (term,) = E(loss, over=ROWS, weights=np.full(5, size)).terms
    np.testing.assert_array_equal(term.source.weights, np.ones(5))


@pytest.mark.parametrize(
    "rows",
    [
        "rows.csv",
        b"rows",
        ["a", "b"],
        np.array([1, None]),
        np.ma.masked_array(np.ones((5, 2)), np.eye(5, 2)),
        {"a": ROWS, "b": MASKED},
        np.zeros(3, "M8[s]"),
        np.zeros(3, [("a", "f4")]),
        np.zeros((3, 2), np.longdouble),
        [Decimal(1)],
        {1.0, 2.0},
        (i for i in range(3)),
        Unreadable(),
        jax.random.split(jax.random.key(0), 3),
    ],
    ids=lambda rows: type(rows).__name__,
)
def test_rows_that_are_no_numbers(rows):
    with pytest.raises(InputTypeError):
        mescal.Problem(E(loss, over=rows))


@pytest.mark.parametrize(
    "rows",
    [[], 3.0, [HUGE, 1], [[1, 2], [3]], np.zeros((0, 2)), [np.nan], np.full((3, 2), np.inf), (ROWS, ROWS[:3])],
    ids=str,
)
def test_rows_that_cannot_be_meant(rows):
    with pytest.raises(InputError):
        mescal.Problem(E(loss, over=rows))


@pytest.mark.parametrize("fn", [None, "x", 3, True, 1j, [loss]], ids=lambda fn: type(fn).__name__)
def test_functions_that_are_none(fn):
    for make in (lambda: E(fn, over=ROWS), lambda: E(fn), lambda: mescal.Sampler(fn), lambda: sets.Projected(fn)):
        with pytest.raises(InputTypeError):
            make()


@pytest.mark.parametrize("sample", ["x", None, {}, [], object(), jax.random.key(3)], ids=lambda s: type(s).__name__)
def test_samplers_of_what_is_no_number(sample):
    with pytest.raises(InputError):
        mescal.Problem(E(loss, over=mescal.Sampler(lambda key: sample))).bind(X0)


SETS = {
    "Ball": lambda value: sets.Ball(value),
    "Simplex": lambda value: sets.Simplex(value),
    "HalfSpace offset": lambda value: sets.HalfSpace([1.0], value),
    "HalfSpace normal": lambda value: sets.HalfSpace(value, 1.0),
    "Box low": lambda value: sets.Box(value, 1.0),
    "Box high": lambda value: sets.Box(0.0, value),
    "Ball center": lambda value: sets.Ball(1.0, value),
    "Affine matrix": lambda value: sets.Affine(value, [1.0]),
    "Affine rhs": lambda value: sets.Affine([[1.0]], value),
}


@pytest.mark.parametrize("value", (NO_NUMBERS | NO_ARRAYS).values(), ids=(NO_NUMBERS | NO_ARRAYS).keys())
@pytest.mark.parametrize("make", SETS.values(), ids=SETS.keys())
def test_sets_of_what_is_no_number(make, value):
    with pytest.raises(InputTypeError):
        make(value)


@pytest.mark.parametrize("make", SETS.values(), ids=SETS.keys())
@pytest.mark.parametrize("value", [np.nan, [], {"a": None}], ids=str)
def test_sets_of_numbers_that_cannot_be_meant(make, value):
    with pytest.raises(InputError):
        make(value)


@pytest.mark.parametrize(
    "value", (NO_NUMBERS | NO_ARRAYS | TRUTHS).values(), ids=(NO_NUMBERS | NO_ARRAYS | TRUTHS).keys()
)
def test_tolerances_that_are_no_numbers(value):
    with pytest.raises(InputTypeError):
        Tolerance(value, 0.1)
    with pytest.raises(InputTypeError):
        mescal.minimize(PROBLEM, X0, tol=value)
    if value is not None:
        with pytest.raises(InputTypeError):
            Tolerance(0.1, 0.1, relative=value)


def asked(name, value):
    """What takes the setting of that name: `minimize`, its outer loop, its checkpoints, or a theory mode."""
    if name in ("constants", "success", "option"):
        return mescal.solvers.get("spider-theory", **{name: value})
    if name == "seconds":
        return mescal.Checkpoint("run", seconds=value)
    if name in (field.name for field in dataclasses.fields(mescal.Outer)):
        return mescal.Outer(**{name: value})
    return mescal.minimize(PROBLEM, X0, **{name: value})


NUMBERS = ("max_outer", "max_inner", "penalty", "growth", "confidence", "seconds", "seed")
WORDS = ("cone", "record", "option", "solver")


@pytest.mark.parametrize("value", NO_ARRAYS.values(), ids=NO_ARRAYS.keys())
@pytest.mark.parametrize("name", [*NUMBERS, *WORDS, "max_work", "max_seconds", "watchdog", "success", "bounded_dual", "scale",
                                  "callback", "progress", "checkpoint", "start", "constants", "outer"])  # fmt: skip
def test_settings_that_are_something_else(name, value):
    with pytest.raises(InputError):
        asked(name, value)


@pytest.mark.parametrize("value", NO_NUMBERS.values(), ids=NO_NUMBERS.keys())
@pytest.mark.parametrize("name", ["penalty", "growth", "confidence", "seconds", "seed"])
def test_settings_that_are_no_numbers(name, value):
    with pytest.raises(InputError):
        asked(name, value)


OTHERS = {"yes": "yes", "1": 1, "None": None, "an array": np.array([1, 0]), "a list": [], "text": np.str_("True")}


@pytest.mark.parametrize("value", OTHERS.values(), ids=OTHERS.keys())
def test_as_sample_is_true_or_false(value):
    with pytest.raises(InputTypeError, match="as_sample"):
        mescal.certify(PROBLEM, X0, as_sample=value)


@pytest.mark.parametrize("value", [*NO_ARRAYS.values(), HUGE, "x", np.nan], ids=[*NO_ARRAYS, "huge", "text", "nan"])
@pytest.mark.parametrize("name", ["multipliers", "slack", "cone", "penalty", "confidence", "seed", "tol"])
def test_what_certify_refuses(name, value):
    with pytest.raises(InputError):
        mescal.certify(PROBLEM, X0, **{name: value})


@pytest.mark.parametrize("path", ["", "a\0b", b"bytes", 3, [], None], ids=repr)
def test_paths_that_are_none(path, tmp_path, monkeypatch):
    from mescal import experiments

    monkeypatch.chdir(tmp_path)
    calls = [
        lambda: mescal.resume(path, PROBLEM),
        lambda: experiments.load_run(path),
        lambda: experiments.load_runs([path]),
        lambda: experiments.run(experiments.task("saddles/circle"), path),
    ]
    calls += (
        []
        if path is None
        else [lambda: mescal.keep_compiled(path), lambda: mescal.minimize(PROBLEM, X0, checkpoint=path)]
    )
    for call in calls:
        with pytest.raises(InputError):
            call()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", [*NO_NUMBERS.values(), *NO_ARRAYS.values()], ids=[*NO_NUMBERS, *NO_ARRAYS])
def test_names_of_problems(name):
    with pytest.raises(InputError):
        mescal.problems.get(name)


@pytest.mark.parametrize("x0", [*NO_NUMBERS.values(), *NO_ARRAYS.values()], ids=[*NO_NUMBERS, *NO_ARRAYS])
def test_starts_that_are_no_numbers(x0):
    with pytest.raises(InputError):
        mescal.minimize(PROBLEM, x0)


# --- advice that helps ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["auto", "newton-cg", "spider", "scr"])
def test_advice_names_a_solver_that_exists(solver):
    with pytest.raises(InputError) as caught:
        mescal.solvers.get(solver, success=0.9)
    named = caught.value.advice.split("'")[1]
    assert named in mescal.solvers.names() and named.endswith("-theory")


@pytest.mark.parametrize("domain", [None, sets.Box(-1.0, 1.0), sets.Ball(3.0)], ids=str)
@pytest.mark.parametrize("solver", ["spider", "newton-cg"])
def test_a_start_that_32_bits_cannot_hold_is_not_to_be_projected(domain, solver):
    """In all of space, float64 solvers take it."""
    if domain is None and solver == "newton-cg":
        return
    problem = mescal.Problem(E(loss, over=ROWS), domain=domain)
    with pytest.raises(InputError, match=r"x0 holds 1e\+300") as caught:
        mescal.minimize(problem, np.full(2, 1e300), solver=solver)
    assert "project" not in caught.value.advice and "float32" in caught.value.expected


def test_a_sampler_has_no_rows_to_drop():
    problem = mescal.Problem(E(loss, over=mescal.Sampler(nothing)))
    with pytest.raises(InputError, match="a sampler drew NaN or infinity") as caught:
        mescal.certify(problem, X0)
    assert "rows" not in caught.value.advice and "draw(key)" in caught.value.advice


@jax.custom_vjp
def ruled_backwards(x):
    return x @ x


ruled_backwards.defvjp(lambda x: (x @ x, x), lambda x, slope: (2 * slope * x,))
UNDIFFERENTIABLE = {
    "while": lambda x: jax.lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] + x @ x), (0, 0.0 * x[0]))[1],
    "while in a scan": lambda x: jax.lax.scan(
        lambda s, _: (UNDIFFERENTIABLE["while"](x) + s, None), 0 * x[0], length=2
    )[0],
    "custom_vjp": ruled_backwards,
    "callback": lambda x: jax.pure_callback(
        lambda v: v @ v, jax.ShapeDtypeStruct((), x.dtype), x, vmap_method="sequential"
    ),
}


@pytest.mark.parametrize("name", UNDIFFERENTIABLE)
def test_functions_that_cannot_be_differentiated_twice_are_named(name):
    with pytest.raises(InputTypeError, match=r"cannot be differentiated twice"):
        mescal.certify(mescal.Problem(E(UNDIFFERENTIABLE[name])), X0, tol=0.01)
    with pytest.raises(InputTypeError, match=r"cannot be differentiated twice"):
        mescal.minimize(mescal.Problem(E(lambda x: x @ x), {"c": E(UNDIFFERENTIABLE[name]) <= 1.0}), X0, tol=0.01)


def test_loops_and_rules_that_can_be_differentiated_are_used():
    smooth = {
        "scan": lambda x: jax.lax.scan(lambda s, a: (0.5 * s + a * a, None), 0 * x[0], x)[0],
        "fori_loop": lambda x: jax.lax.fori_loop(0, 3, lambda i, s: s + x @ x, 0 * x[0]),
        "cond": lambda x: jax.lax.cond(x[0] < 1, lambda v: v @ v, lambda v: 2 * v @ v, x),
        "solve": lambda x: x @ jnp.linalg.solve(jnp.eye(2) * (2 + x[0]), x),
        "while without x": lambda x: (x @ x) * jax.lax.while_loop(lambda s: s < 3.0, lambda s: s + 1, 0.0),
        "checkpoint": jax.checkpoint(lambda x: jnp.sum(jnp.cosh(x))),
        "softmax": lambda x: x @ x - jax.nn.softmax(x)[0] - jax.nn.softmax(x)[1],
    }
    for name, fn in smooth.items():
        assert mescal.certify(mescal.Problem(E(fn)), X0, tol=0.01).passes(0.01), name


MIXED = {1: np.ones(5), "a": np.ones(5)}


@pytest.mark.parametrize(
    "given",
    [
        lambda: mescal.worst(None),
        lambda: mescal.worst(loss),
        lambda: mescal.of(len, E(loss, over=ROWS), between=()),
        lambda: mescal.of(len, E(loss, over=ROWS), between={0.0, 1.0}),
        lambda: mescal.rate(loss, given=[[True], [True, False]], over=ROWS),
        lambda: mescal.certify(PROBLEM, MIXED),
        lambda: mescal.stream(MIXED),
        lambda: E(loss, over=MIXED),
        lambda: sets.Ball(1.0, MIXED),
    ],
)
def test_statements_of_nothing_and_keys_without_an_order(given):
    with pytest.raises(InputTypeError):
        given()


def test_points_far_outside_are_refused_without_overflow():
    with pytest.raises(InputError, match="outside"):
        mescal.certify(mescal.Problem(E(loss, over=ROWS), domain=sets.Box(-5.0, 5.0)), np.array([1e300, 0.0]))
