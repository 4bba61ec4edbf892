"""Traced functions: one object for the same equations, another for any other; and what they compute is what was traced."""

import gc

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mescal.problem import traced
from mescal.problem.traced import trace

D = 3
SCALE = 1.0  # set by tests
TABLE, OTHER = np.array([1.0, -2.0, 0.5]), np.array([0.3, 0.7, -1.1])
INPUTS = np.random.default_rng(0).normal(size=(3, 2, D))  # x and a row, three times


def read(fn, dtype=np.float64):
    """A function of x and a row, traced."""
    with jax.enable_x64(dtype == np.float64):
        return trace(fn, *2 * [jax.ShapeDtypeStruct((D,), dtype)])


def same(one, other) -> bool:
    return read(one).function is read(other).function


# What makes two functions one ------------------------------------------------------------------------------------------


def test_the_same_code_is_one_function_whatever_it_is_called():
    def score(w, a):
        return jax.nn.sigmoid(a @ w)

    def rate(parameters, row):
        logit = row @ parameters
        return jax.nn.sigmoid(logit)

    assert same(score, score)
    assert same(score, rate)
    assert not same(score, lambda w, a: jax.nn.sigmoid(w @ a))
    assert not same(score, lambda w, a: {"a": jax.nn.sigmoid(a @ w)})  # it returns another structure


def of_a_global(w, a):
    return SCALE * (a @ w)


def of_a_cell():
    scale = 1.0

    def change(value):
        nonlocal scale
        scale = value

    return (lambda w, a: scale * (a @ w)), change


def of_a_default():
    def fn(w, a, scale=1.0):
        return scale * (a @ w)

    return fn, lambda value: setattr(fn, "__defaults__", (value,))


class Settings:
    scale = 1.0


def of_an_attribute():
    settings = Settings()
    return (lambda w, a: settings.scale * (a @ w)), lambda value: setattr(settings, "scale", value)


def of_an_entry():
    settings = {"scale": 1.0}
    return (lambda w, a: settings["scale"] * (a @ w)), lambda value: settings.update(scale=value)


CHANGES = {"cell": of_a_cell, "default": of_a_default, "attribute": of_an_attribute, "entry of a dict": of_an_entry}


@pytest.mark.parametrize("make", [*CHANGES.values(), None], ids=[*CHANGES, "global"])
def test_what_a_function_reads_and_has_changed_makes_another_of_it(make, monkeypatch):
    fn, change = make() if make else (of_a_global, lambda value: monkeypatch.setitem(globals(), "SCALE", value))
    before, row, x = read(fn), INPUTS[0, 0], INPUTS[0, 1]
    change(2.0)
    after = read(fn)
    assert after.function is not before.function
    with jax.enable_x64(True):
        values = [float(found.function(found.constants, x, row)) for found in (before, after)]
    assert values == pytest.approx([row @ x, 2 * (row @ x)])
    change(1.0)
    assert read(fn).function is before.function


NUMBERS = [0.0, -0.0, 1.0, 1.0 + 2**-52, float("nan"), float("inf"), -float("inf")]


def test_numbers_are_told_apart_by_their_bits():
    """-0.0 is not 0.0, 1.0 is not the number after it, and nan is nan."""
    functions = [lambda w, a, number=number: number * (a @ w) for number in NUMBERS]
    for i, one in enumerate(functions):
        for j, other in enumerate(functions):
            assert same(one, other) == (i == j)
    assert same(lambda w, a: float("nan") * (a @ w), lambda w, a: -float("nan") * (a @ w)) is (
        np.float64(float("nan")).tobytes() == np.float64(-float("nan")).tobytes()
    )


def test_types_make_two_functions_of_one():
    def fn(w, a):
        return a @ w

    wide, narrow = read(fn), read(fn, np.float32)
    assert wide.function is not narrow.function
    assert narrow.function((), *INPUTS[0].astype(np.float32)).dtype == np.float32
    with jax.enable_x64(True):
        assert wide.function((), *INPUTS[0]).dtype == np.float64
    assert read(fn, np.float32).function is narrow.function and read(fn).function is wide.function


def test_what_is_no_longer_used_is_forgotten():
    gc.collect()
    before = len(traced._known)
    reading = read(lambda w, a: 1.2345 * (a @ w))
    assert len(traced._known) == before + 1
    del reading
    gc.collect()
    assert len(traced._known) == before


# Arrays that a function closes over ------------------------------------------------------------------------------------


def plain(table):
    return lambda w, a: jnp.sum((w - table) * a)


def inside_jit(table):
    inner = jax.jit(jax.jit(lambda w, a: jnp.sum((w - table) * a)))
    return lambda w, a: inner(w, a) + 1.0


def inside_scan(table):
    def fn(w, a):
        return jax.lax.scan(lambda total, row: (total + jnp.sum(table * row), None), w[0], jnp.stack([w, a]))[0]

    return fn


def inside_cond(table):
    return lambda w, a: jax.lax.cond(a[0] > 0, lambda: jnp.sum(table * w), lambda: jnp.sum(w * a))


def inside_while(table):
    def fn(w, a):
        return jax.lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] + jnp.sum(table * w)), (0, a[0]))[1]

    return fn


def returned(table):
    return lambda w, a: jnp.asarray(table)


def converted_inside_jit(table):
    return jax.jit(lambda w, a: jnp.sum((w - jnp.asarray(table)) * a))


CLOSING = [plain, inside_jit, converted_inside_jit, inside_scan, inside_cond, inside_while, returned]


@pytest.mark.parametrize("kind", [np.asarray, jnp.asarray], ids=["numpy", "jax"])
@pytest.mark.parametrize("make", CLOSING)
def test_arrays_are_constants_of_one_function(make, kind):
    with jax.enable_x64(True):
        one, other = (read(make(kind(table))) for table in (TABLE, OTHER))
        assert one.function is other.function
        for reading, table in ((one, TABLE), (other, OTHER)):
            assert [np.array_equal(constant, table) for constant in reading.constants] == [True]
            for x, row in INPUTS:
                found = reading.function(reading.constants, x, row)
                np.testing.assert_allclose(found, make(table)(x, row), rtol=1e-14)


def test_other_shapes_and_numbers_of_arrays_make_another_function():
    assert not same(plain(TABLE), plain(TABLE[:1]))
    assert not same(plain(TABLE), plain(TABLE.astype(np.float32)))
    assert not same(lambda w, a: (w * TABLE) @ (a * TABLE), lambda w, a: (w * TABLE) @ (a * OTHER))
    assert not same(
        lambda w, a: np.float64(2.0) * (a @ w), lambda w, a: np.float64(3.0) * (a @ w)
    )  # numbers are no arrays


def test_arrays_are_copied_when_they_are_read():
    table = TABLE.copy()
    reading = read(plain(table))
    table += 1
    np.testing.assert_array_equal(reading.constants[0], TABLE)


@pytest.mark.parametrize("make", CLOSING)
def test_arrays_of_float64_are_read_in_the_type_of_the_trace(make):
    """The wider type first: JAX remembers what it made of an array there, and would mix the types."""
    table = TABLE.copy()
    fn = make(table)
    wide, narrow = read(fn), read(fn, np.float32)
    assert [constant.dtype for constant in wide.constants + narrow.constants] == [np.float64, np.float32]
    x, row = INPUTS[0].astype(np.float32)
    found = jax.jit(narrow.function)(narrow.constants, x, row)
    assert found.dtype == np.float32
    with jax.enable_x64(True):
        np.testing.assert_allclose(found, wide.function(wide.constants, *INPUTS[0]), rtol=1e-5)


def test_one_compiled_program_serves_other_arrays():
    run = jax.jit(lambda fn, constants, x, row: fn(constants, x, row), static_argnums=0)
    with jax.enable_x64(True):
        for table in (TABLE, OTHER):
            reading = read(plain(table))
            found = run(reading.function, reading.constants, *INPUTS[0])
            assert float(found) == pytest.approx(np.sum((INPUTS[0, 0] - table) * INPUTS[0, 1]))
    assert run._cache_size() == 1


# Rules for derivatives ---------------------------------------------------------------------------------------------------


def forward(value=jnp.sin, slope=jnp.cos):
    """A function with a rule for its derivative."""

    @jax.custom_jvp
    def fn(u):
        return value(u)

    fn.defjvp(lambda at, along: (value(at[0]), slope(at[0]) * along[0]))
    return lambda w, a: fn(a @ w)


def backward(value=jnp.sin, slope=jnp.cos, kept=None):
    """The same, its rule written backwards; `kept` is the value where derivatives are taken."""

    @jax.custom_vjp
    def fn(u):
        return value(u)

    fn.defvjp(lambda u: ((kept or value)(u), u), lambda u, cotangent: (slope(u) * cotangent,))
    return lambda w, a: fn(a @ w)


def bent(factor):
    """cos, with a slope of its own."""

    @jax.custom_jvp
    def fn(u):
        return jnp.cos(u)

    fn.defjvp(lambda at, along: (jnp.cos(at[0]), -factor * jnp.sin(at[0]) * along[0]))
    return fn


@pytest.mark.parametrize("make", [forward, backward])
def test_rules_are_known_by_what_they_compute(make):
    assert same(make(), make())
    assert not same(make(), make(value=jnp.tanh))
    assert not same(make(), make(slope=lambda u: 2 * jnp.cos(u)))
    assert not same(make(), lambda w, a: jnp.sin(a @ w))  # the same derivatives, but not by the same equations


@pytest.mark.parametrize("make", [forward, backward])
def test_rules_are_known_by_their_second_derivatives(make):
    assert same(make(slope=bent(1.5)), make(slope=bent(1.5)))
    assert not same(make(slope=bent(1.5)), make(slope=bent(2.0)))


def test_a_value_that_its_rule_does_not_repeat_is_part_of_the_function():
    """Where no derivative is taken, the value is that of the function itself, not that of its rule."""
    one, other = backward(), backward(value=lambda u: jnp.sin(2 * u), kept=jnp.sin)
    assert not same(one, other)
    with jax.enable_x64(True):
        x, row = INPUTS[0]
        for fn, value in ((one, np.sin(row @ x)), (other, np.sin(2 * (row @ x)))):
            assert float(read(fn).function((), x, row)) == pytest.approx(value)


def rule_with_arrays(table):
    @jax.custom_vjp
    def fn(w):
        return jnp.sum(jnp.sin(w) * table)

    fn.defvjp(lambda w: (jnp.sum(jnp.sin(w) * table), w), lambda w, cotangent: (cotangent * jnp.cos(w) * table,))
    return lambda w, a: fn(w) * a[0]


def test_arrays_of_a_rule_are_compared_by_their_numbers():
    assert same(rule_with_arrays(TABLE), rule_with_arrays(TABLE.copy()))
    assert not same(rule_with_arrays(TABLE), rule_with_arrays(OTHER))


def test_a_rule_that_cannot_be_followed_is_like_no_other():
    """Its second derivative calls the host, through which no derivative passes."""

    def outside(u):
        return jax.pure_callback(np.cos, jax.ShapeDtypeStruct(u.shape, u.dtype), u)

    fn = forward(slope=outside)
    assert not same(fn, forward(slope=outside))
    with jax.enable_x64(True):
        reading, (x, row) = read(fn), INPUTS[0]
        slope = jax.grad(lambda w: reading.function((), w, row))(jnp.asarray(x))
        np.testing.assert_allclose(slope, np.cos(row @ x) * row, rtol=1e-6)


def test_callbacks_are_compared_by_what_they_call():
    def calls(host):
        return lambda w, a: jax.pure_callback(host, jax.ShapeDtypeStruct((), w.dtype), a @ w)

    hosts = [lambda u: np.asarray(2 * u) for _ in range(2)]  # the same code, two functions
    assert same(calls(hosts[0]), calls(hosts[0]))
    assert not same(calls(hosts[0]), calls(hosts[1]))


# What is computed --------------------------------------------------------------------------------------------------------

FORWARD_ONLY = ("while",)  # no derivative passes a loop of unknown length backwards
COMPUTED = {
    "polynomial": lambda w, a: jnp.sum((w * a) ** 3) - 2 * w[0],
    "activations": lambda w, a: jax.nn.gelu(a @ w) + jax.nn.softplus(w @ w) * jax.nn.silu(w[1]),
    "relu, whose rule JAX has": lambda w, a: jax.nn.relu(a @ w) ** 2,
    "gather": lambda w, a: w[jnp.argsort(a)] @ jnp.arange(3.0) ** 2 * w[0],
    "jit": lambda w, a: jax.jit(lambda u: jnp.tanh(u) ** 2)(a @ w),
    "scan": lambda w, a: jax.lax.scan(lambda u, v: (jnp.sin(u) + v, None), a[0], w)[0],
    "cond": lambda w, a: jax.lax.cond(a[0] > 0, lambda: jnp.sum(w**2), lambda: jnp.prod(w)),
    "while": lambda w, a: jax.lax.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, s[1] * (a @ w)), (0, w[0]))[1],
    "custom_jvp": forward(slope=bent(1.5)),
    "custom_vjp": backward(slope=bent(1.5)),
    "vector": lambda w, a: jnp.outer(w, a) @ w,
}
WITH_ARRAYS = {"an array": plain, "an array inside jit": inside_jit, "a rule with an array": rule_with_arrays}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", [*COMPUTED, *WITH_ARRAYS])
def test_values_and_derivatives_are_those_of_the_function(name, dtype):
    """To rounding: the compiler may order sums otherwise."""
    fn = COMPUTED[name] if name in COMPUTED else WITH_ARRAYS[name](TABLE.astype(dtype))
    reading = read(fn, dtype)
    first = jax.jacfwd if name in FORWARD_ONLY else jax.jacrev

    def orders(call):
        return lambda w, a: (call(w, a), first(call)(w, a), jax.jacfwd(first(call))(w, a))

    @jax.jit
    def both(constants, w, a):
        return orders(fn)(w, a), orders(lambda *at: reading.function(constants, *at))(w, a)

    with jax.enable_x64(dtype == np.float64):
        for x, row in INPUTS.astype(dtype):
            for expected, found in zip(*both(reading.constants, x, row), strict=True):
                assert found.dtype == dtype
                np.testing.assert_allclose(
                    found, expected, rtol=100 * np.finfo(dtype).eps, atol=100 * np.finfo(dtype).eps
                )
