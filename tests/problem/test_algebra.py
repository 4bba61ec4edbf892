"""The algebra of expectations: sums, multiples, comparisons; checked through the values of the problems they make."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E
from mescal.errors import InputError, InputTypeError
from mescal.problem import Rows

ROWS = np.random.default_rng(0).normal(size=(6, 2))
X = np.array([0.5, -1.0])


def dot(w, a):
    return a @ w


def constraint_value(constraint) -> np.ndarray:
    """c(X) of a constraint, in float64."""
    problem = mescal.Problem(E(lambda w: w @ w), {"c": constraint})
    program, vector = problem.bind(X)
    with jax.enable_x64(True):
        total = program.deterministic(jnp.asarray(vector))[1]
        for k, member, source in members(program):
            rows = problem.sources[source].placed(np.float64)
            assert isinstance(rows, Rows)
            c = program.contribution(k, jnp.asarray(vector), rows, member)[1].mean(0)
            total = total + program.spread(k, c, member)
        return np.asarray(total)


def members(program):
    """Family, number in it, and source."""
    return [(k, g, source) for k, family in enumerate(program.families) for g, source in enumerate(family.members)]


MEAN = (ROWS @ X).mean()
e = E(dot, over=ROWS)
CASES = [
    (e <= 1.0, MEAN - 1, "<="),
    (e >= 1.0, 1 - MEAN, "<="),
    (e == 0.5, MEAN - 0.5, "=="),
    (e >= 1.0, 1 - MEAN, "<="),
    (np.float64(2.0) * e + 1 <= e, MEAN + 1, "<="),
    (0.4 * e - E(dot, over=2 * ROWS) <= 0, -1.6 * MEAN, "<="),
    (-e / 2 + 3 == e, 3 - 1.5 * MEAN, "=="),
    (np.float32(1.5) - e >= 0, MEAN - 1.5, "<="),
    (E(lambda w: w @ w) == 1.0, X @ X - 1, "=="),
    (jnp.float32(2.0) * e <= jnp.float32(0.25), 2 * MEAN - 0.25, "<="),
]


@pytest.mark.parametrize(("constraint", "value", "kind"), CASES, ids=range(len(CASES)))
def test_comparisons_say_what_they_mean(constraint, value, kind):
    assert constraint.kind == kind
    np.testing.assert_allclose(constraint_value(constraint), [value], rtol=1e-12)


def test_vector_constraints_take_scalar_and_vector_bounds():
    vector = E(lambda w, a: a * w, over=ROWS)
    want = (ROWS * X).mean(0)
    np.testing.assert_allclose(constraint_value(vector <= np.array([1.0, 2.0])), want - [1, 2])
    np.testing.assert_allclose(constraint_value(vector >= 0.5), 0.5 - want)
    np.testing.assert_allclose(constraint_value(np.array([1.0, 2.0]) >= vector), want - [1, 2])


def test_weights_are_relative():
    weights = np.array([1.0, 0, 0, 3.0, 0, 0])
    want = (ROWS[0] + 3 * ROWS[3]) @ X / 4
    np.testing.assert_allclose(constraint_value(E(dot, over=ROWS, weights=weights) <= 0), [want])


def test_expressions_hash_by_identity():
    assert len({e, E(dot, over=ROWS)}) == 2
    assert e in {e}


def test_one_array_is_one_source():
    problem = mescal.Problem(e, {"c": E(lambda w, a: a[0] * w[0], over=ROWS) <= 0, "d": E(dot, over=ROWS.copy()) <= 0})
    assert len(problem.sources) == 2


def test_moving_a_bound_compiles_nothing():
    traces = []

    @jax.jit
    def value(program, x):
        traces.append(1)
        return program.deterministic(x)[1]

    for bound in (0.1, 0.2):
        problem = mescal.Problem(e, {"c": E(dot, over=ROWS) <= bound})
        program, vector = problem.bind(X)
        assert np.isclose(value(program, vector)[0], -bound)
    assert len(traces) == 1


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: 0 <= e <= 1, "chained comparison"),
        (lambda: bool(e <= 1), "truth value"),
        (lambda: e < 1, "strict comparison"),
        (lambda: e != 1, "!="),
        (lambda: e * e, "product of two expectations"),
        (lambda: abs(e) <= 0.1, "from both sides"),
        (lambda: 1 / e <= 2, "turn the comparison around"),
        (lambda: np.ones(2) * e, "multiplied by an array"),
        (lambda: e / 0, "divided by zero"),
        (lambda: e <= np.nan, "NaN"),
        (lambda: E(3.0, over=ROWS), "as its function"),
        (lambda: E(dot, over=dot), "is a function"),
        (lambda: E(dot, weights=np.ones(3)), "weights without data"),
    ],
)
def test_what_the_algebra_refuses(make, words):
    with pytest.raises(InputError, match=words) as caught:
        make()
    assert "Expected: " in str(caught.value) and "What to do: " in str(caught.value)


def test_other_types_are_left_to_python():
    with pytest.raises(TypeError):
        e + "one"
    with pytest.raises(TypeError):
        e * None
    assert issubclass(InputTypeError, TypeError)
