"""Problems: what they accept as parameters and data, and what they refuse, in three parts and with nothing half-built."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E
from mescal.errors import InputError
from mescal.problem import Population

pytestmark = pytest.mark.quick

ROWS = np.random.default_rng(0).normal(size=(8, 3))


def dot(w, a):
    return a @ w


def problem(objective=None, **constraints):
    return mescal.Problem(E(dot, over=ROWS) if objective is None else objective, constraints)


def refused(call, *words):
    with pytest.raises(InputError) as caught:
        call()
    message = str(caught.value)
    for word in (*words, "Expected: ", "What to do: "):
        assert word in message, message
    return message


class TestParameters:
    def check(self, x, fn):
        built = mescal.Problem(E(fn, over=ROWS), {"c": E(fn, over=ROWS) <= 0})
        program, vector = built.bind(x, dtype=built.working_type(x))
        restored = program.parameters.restore(vector)
        assert jax.tree.structure(restored) == jax.tree.structure(x)
        for a, b in zip(jax.tree.leaves(restored), jax.tree.leaves(x), strict=True):
            assert a is b or (np.asarray(a) == np.asarray(b)).all()
        return program, vector

    def test_dict_and_nested(self):
        x = {"w": np.ones(3, np.float32), "rest": [np.float32(2.0), (np.zeros((2, 2), np.float32),)]}
        program, vector = self.check(x, lambda p, a: a @ p["w"] + p["rest"][0] + p["rest"][1][0].sum())
        assert vector.shape == (8,) and vector.dtype == np.float32
        value = program.contribution(0, jnp.asarray(vector), mescal.problem.Rows(jnp.asarray(ROWS, jnp.float32)))[0]
        np.testing.assert_allclose(value, ROWS.sum(1) + 2, rtol=1e-5)

    def test_an_equinox_module_keeps_its_static_leaves(self):
        mlp = eqx.nn.MLP(3, "scalar", 4, 1, key=jax.random.key(0))
        program, vector = self.check(mlp, lambda model, a: model(a))
        out = program.contribution(0, jnp.asarray(vector), mescal.problem.Rows(jnp.asarray(ROWS, jnp.float32)))[0]
        np.testing.assert_allclose(out, jax.vmap(mlp)(jnp.asarray(ROWS, jnp.float32)), rtol=1e-5)

    def test_precision_is_the_widest_of_the_leaves(self):
        assert problem().bind(np.zeros(3, np.float32))[1].dtype == np.float32
        assert problem().bind(np.zeros(3, np.float64))[1].dtype == np.float64

    def test_plain_floats_are_parameters(self):
        program, vector = self.check([0.5, 1.5], lambda p, a: p[0] * a[0] + p[1])
        assert vector.tolist() == [0.5, 1.5] and program.parameters.size == 2

    def test_refusals(self):
        refused(lambda: problem().bind(np.arange(3)), "int64")
        refused(lambda: problem().bind({"w": np.zeros(3), "n": np.arange(2)}), "['n']")
        refused(lambda: problem().bind(np.zeros(3, complex)), "complex128")
        refused(lambda: problem().bind(np.array([0.0, np.nan, 1.0])), "NaN")
        refused(lambda: problem().bind("abc"), "no numbers")
        refused(lambda: problem().bind(np.zeros(4)), "the function dot of the objective failed", "(4,)", "(3,)")


class TestData:
    def test_refusals_when_an_expectation_is_stated(self):
        refused(lambda: E(dot, over=(np.zeros((3, 2)), np.zeros(4))), "unequal leading axes", "[3, 4]")
        refused(lambda: E(dot, over=np.zeros((0, 2))), "empty")
        refused(lambda: E(dot, over=[]), "no arrays")
        refused(lambda: E(dot, over=np.float64(3.0)), "scalar")
        refused(lambda: E(dot, over=np.array(["a", "b"])), "<U1")
        refused(lambda: E(dot, over=ROWS, weights=np.ones(3)), "(3,)", "(8,)")
        refused(lambda: E(dot, over=ROWS, weights=-np.ones(8)), "negative")
        refused(lambda: E(dot, over=mescal.Sampler(lambda k: 1.0), weights=np.ones(8)), "Sampler")

    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    def test_non_finite_rows_are_named(self, bad):
        rows = ROWS.copy()
        rows[5, 1] = bad
        refused(lambda: problem(E(dot, over={"a": rows})), "row 5", "['a']")

    def test_integers_and_booleans_are_data(self):
        built = problem(
            E(
                lambda w, r: r["y"] * (r["a"] @ w) * r["flag"],
                over={"a": ROWS, "y": np.arange(8), "flag": ROWS[:, 0] > 0},
            )
        )
        built.bind(np.zeros(3))

    def test_pandas_frames_are_data(self):
        pandas = pytest.importorskip("pandas")
        assert Population(pandas.DataFrame(ROWS)).size == 8

    def test_samplers_must_be_pure_functions_of_their_key(self):
        rng = np.random.default_rng(0)
        refused(lambda: mescal.Sampler(lambda key: rng.normal(size=3)), "two different samples")
        refused(lambda: mescal.Sampler(lambda: 1.0), "raised TypeError")
        refused(lambda: mescal.Sampler(np.zeros(3)), "Sampler got")
        mescal.Sampler(lambda key: jax.random.normal(key, (3,)))


class TestStatement:
    def test_objectives(self):
        refused(lambda: problem(dot), "the objective is function")
        refused(lambda: problem(E(dot, over=ROWS) <= 0), "comparison")
        refused(lambda: problem(E(lambda w, a: a * w, over=ROWS)).bind(np.zeros(3)), "the objective has shape (3,)")
        refused(lambda: problem(E(lambda w, a: (a @ w) > 0, over=ROWS)).bind(np.zeros(3)), "bool")
        refused(lambda: problem(E(lambda w, a: (a @ w, w), over=ROWS)).bind(np.zeros(3)), "tuple")

    def test_constraints(self):
        e = E(dot, over=ROWS)
        refused(lambda: problem(rate=e), "'rate' has no comparison")
        refused(lambda: problem(rate=3.0), "'rate' is float")
        refused(lambda: mescal.Problem(e, [e <= 0]), "constraints is list")  # pyright: ignore[reportArgumentType]
        refused(lambda: mescal.Problem(e, {1: e <= 0}), "named 1")  # pyright: ignore[reportArgumentType]
        vector = E(lambda w, a: a * w, over=ROWS)
        refused(lambda: problem(v=vector - e <= 0).bind(np.zeros(3)), "constraint 'v'", "(3,)")
        refused(lambda: problem(v=vector <= np.ones(2)).bind(np.zeros(3)), "constraint 'v'", "bound of shape (2,)")

    def test_a_function_that_fails_names_itself(self):
        def rate(w, a):
            raise RuntimeError("lost the table")

        refused(lambda: problem(c=E(rate, over=ROWS) <= 0).bind(np.zeros(3)), "rate", "'c'", "lost the table")

    def test_a_constraint_whose_shape_changes(self):
        built = problem(E(lambda w: w @ w), c=E(lambda w: w) == 0.0)
        built.bind(np.zeros(3))
        refused(lambda: built.bind(np.zeros(4)), "'c' has shape (4,)", "(3,)")

    def test_domains(self):
        refused(lambda: mescal.Problem(E(dot, over=ROWS), {}, (0, 1)), "domain=tuple")
        refused(
            lambda: mescal.Problem(E(dot, over=ROWS), {}, mescal.sets.Box(np.zeros(2), np.ones(2))).bind(np.zeros(3))
        )

    def test_nothing_is_half_built(self):
        """After a refusal the same problem still works with proper parameters."""
        built = problem(c=E(dot, over=ROWS) <= 0)
        refused(lambda: built.bind(np.zeros(5)))
        assert built.bind(np.zeros(3))[0].layout.size == 1

    def test_the_printed_problem_reads_well(self):
        text = repr(problem(rate=2 * E(dot, over=ROWS) <= 0.5))
        assert "minimise E(dot, Population(8 rows))" in text and "rate: 2 * E(dot, Population(8 rows)) <= 0.5" in text


def test_another_ones_message_ends_once():
    with pytest.raises(InputError) as caught:
        problem(E(dot, over=np.ones((4, 3)))).bind(np.ones(2))
    assert "(3,) and (2,)." in str(caught.value) and ".." not in str(caught.value)
