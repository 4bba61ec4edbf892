"""Bad inputs say what was found, what was expected and what to do; sets print as they are written."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mescal import sets
from mescal.errors import InputError, InputTypeError

pytestmark = pytest.mark.quick

NAN, INF = np.nan, np.inf
BAD_SETS = {
    "crossed": (lambda: sets.Box(1.0, -1.0), "bounds cross: low = 1 and high = -1", InputError),
    "crossed in one place": (lambda: sets.Box([0.0, 3.0], 2.0), r"bounds cross.* at \(1,\), 1 such", InputError),
    "crossed in a tree": (lambda: sets.Box({"w": np.zeros(2)}, {"w": -1.0}), "bounds cross", InputError),
    "nothing between": (lambda: sets.Box(INF, INF), "bounds cross", InputError),
    "nan": (lambda: sets.Box(NAN, 1.0), "NaN in low", InputError),
    "text": (lambda: sets.Box("a", 1.0), "low of type str", InputTypeError),
    "complex": (lambda: sets.Box(1j, 1.0), "low of type complex", InputTypeError),
    "ragged": (lambda: sets.Box([[0.0], [0.0, 1.0]], 1.0), "low of type list", InputTypeError),
    "shapes": (lambda: sets.Box(np.zeros(2), np.ones(3)), r"low of shape \(2,\) and high of shape \(3,\)", InputError),
    "structures": (lambda: sets.Box({"a": 0.0}, {"b": 1.0}), "low with the structure", InputError),
    "traced": (lambda: jax.jit(lambda a: sets.Box(a, 1.0).project(a))(0.0), "low that is a traced", InputTypeError),
    "negative radius": (lambda: sets.Ball(-1.0), "radius -1", InputError),
    "no radius": (lambda: sets.Ball(0.0), "radius 0", InputError),
    "infinite radius": (lambda: sets.Ball(INF), "radius inf", InputError),
    "two radii": (lambda: sets.Ball([1.0, 2.0]), "radius", InputError),
    "infinite center": (lambda: sets.Ball(1.0, [0.0, INF]), "infinite center", InputError),
    "no total": (lambda: sets.Simplex(0.0), "sum 0", InputError),
    "negative total": (lambda: sets.Simplex(-1), "sum -1", InputError),
    "zero normal": (lambda: sets.HalfSpace(np.zeros(3), 1.0), "normal is zero", InputError),
    "infinite normal": (lambda: sets.HalfSpace([INF, 0.0], 1.0), "normal is infinite", InputError),
    "infinite offset": (lambda: sets.HalfSpace([1.0], INF), "offset inf", InputError),
    "contradiction": (lambda: sets.Affine([[1.0, 1], [1, 1]], [0.0, 1]), "contradict each other", InputError),
    "impossible": (lambda: sets.Affine([[0.0, 0.0]], [1.0]), "contradict each other", InputError),
    "all but dependent": (
        lambda: sets.Affine([[1.0, 1, 0], [2, 2, 0], [1, 1, 1e-14]], [1.0, 2, 1]),
        "all but depend on each other",
        InputError,
    ),
    "one equation": (lambda: sets.Affine([1.0, 1.0], 1.0), r"matrix of shape \(2,\)", InputError),
    "missing rhs": (lambda: sets.Affine(np.eye(3), [1.0]), r"right-hand side of shape \(1,\)", InputError),
    "infinite matrix": (lambda: sets.Affine([[INF]], [1.0]), "infinite coefficient", InputError),
    "no blocks": (lambda: sets.Product(), "product of nothing", InputError),
    "empty": (lambda: sets.Product({}), "empty collection", InputTypeError),
    "both kinds": (lambda: sets.Product(sets.Reals(), w=sets.Reals()), "both in order and by name", InputError),
    "no set": (lambda: sets.Product(sets.Reals(), 3.0), "block of type float", InputTypeError),
    "no function": (
        lambda: sets.Projected(3),  # pyright: ignore[reportArgumentType]
        "projection of type int",
        InputTypeError,
    ),
}
X = np.zeros(3, np.float32)
BAD_POINTS = {
    "nothing": (sets.Reals(), {}, "without any array"),
    "integers": (sets.Reals(), np.zeros(3, int), "leaf of type int64"),
    "python numbers": (sets.Reals(), {"w": 0.5}, "leaf of type float"),
    "bounds too long": (sets.Box(0.0, np.ones(4)), X, r"high of shape \(4,\) for an array of shape \(3,\)"),
    "bounds would enlarge": (sets.Box(np.zeros((2, 3)), 1.0), X, r"low of shape \(2, 3\)"),
    "bounds of another structure": (sets.Box({"w": 0.0}, 1.0), X, "low with the structure"),
    "a list of numbers is an array": (sets.Box([0.0, 0.0], 1.0), [X, X], "low with the structure"),
    "center": (sets.Ball(1.0, np.zeros(2)), X, r"center of shape \(2,\)"),
    "normal": (sets.HalfSpace(np.ones(2), 1.0), X, "normal with 2 entries for a point with 3"),
    "one normal": (sets.HalfSpace(1.0, 1.0), X, "normal with 1 entries"),
    "normal of another structure": (sets.HalfSpace({"w": np.ones(3)}, 1.0), X, "normal with the structure"),
    "columns": (sets.Affine(np.eye(2), np.zeros(2)), X, "equations in 2 unknowns for a point with 3"),
    "too few blocks": (sets.Product(sets.Reals(), sets.Reals()), (X, X, X), "does not begin like the product"),
    "other keys": (sets.Product(w=sets.Reals()), {"v": X}, "does not begin like the product"),
    "an array": (sets.Product(w=sets.Reals()), X, "does not begin like the product"),
    "in a block": (sets.Product(w=sets.Box(0.0, np.ones(4))), {"w": X}, "high of shape"),
    "another shape": (sets.Projected(lambda x: x[:2]), X, "a projection that makes"),
    "another structure": (sets.Projected(lambda x: (x, x)), X, "a projection that makes"),
}


def assert_three_parts(error: InputError) -> None:
    assert error.found and error.expected and error.advice
    assert "Expected: " in str(error) and "What to do: " in str(error)
    assert not any(part.endswith(".") for part in (error.found, error.expected, error.advice))


@pytest.mark.parametrize("name", BAD_SETS)
def test_bad_sets(name):
    make, found, kind = BAD_SETS[name]
    with pytest.raises(kind, match=found) as caught:
        make()
    assert_three_parts(caught.value)


@pytest.mark.parametrize("name", BAD_POINTS)
def test_bad_points(name):
    set_, x, found = BAD_POINTS[name]
    with pytest.raises(InputError, match=found) as caught:
        set_.check(x)
    assert_three_parts(caught.value)


def test_a_misfit_is_found_without_check():
    """Broadcasting would otherwise return a point of another shape."""
    for set_ in (sets.Box(np.zeros((2, 3)), 1.0), sets.HalfSpace(1.0, 1.0), sets.Product(w=sets.Reals())):
        with pytest.raises(InputError):
            set_.project(jnp.asarray(X))


def test_dependent_equations_are_allowed():
    rows = np.array([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 0.0, 0.0]])
    x = sets.Affine(rows, [1.0, 2.0, 0.0]).project(jnp.asarray(X))
    np.testing.assert_allclose(x, [0.2, 0.4, 0.0], rtol=1e-6)
    thirds = (np.array([[1.0, 1.0, 1.0], [1 / 3, 1 / 3, 1 / 3]], np.float32), np.array([1.0, 1 / 3], np.float32))
    np.testing.assert_allclose(sets.Affine(*thirds).project(jnp.asarray(X)), np.full(3, 1 / 3), rtol=1e-6)


@pytest.mark.parametrize("unit", [1e-300, 1e-20, 1.0, 1e20])
def test_equations_count_in_any_unit(unit):
    """x_1 = 0, stated in a small unit beside x_0 = 1 in a large one, is no rounding of the other."""
    domain = sets.Affine([[1.0, 0.0], [0.0, unit]], [1.0, 0.0])
    assert domain.rows.shape == (2, 2)
    assert np.allclose(domain.project(jnp.asarray([3.0, 5.0])), [1.0, 0.0], atol=1e-6)


def test_a_scalar_point_has_a_half_space():
    half = sets.HalfSpace(2.0, 1.0)
    half.check(np.zeros((), np.float32))
    assert float(half.project(jnp.float32(3.0))) == 0.5
    assert half.tangent_cone(np.float32(0.5)).inequalities.shape == (1, 1)


def test_representations():
    assert repr(sets.Reals()) == "Reals()"
    assert repr(sets.Box(-1.0, np.inf)) == "Box(-1.0, inf)"
    assert repr(sets.Box(np.zeros(30), 1)) == "Box(array(30,), 1.0)"
    assert repr(sets.Ball(2, [0.5, 1])) == "Ball(2.0, [0.5, 1.0])"
    assert repr(sets.Projected(assert_three_parts)) == "Projected(assert_three_parts)"
    assert repr(sets.HalfSpace([3.0, 4.0], 1.0)) == "HalfSpace([0.6, 0.8], 0.2)"
    assert repr(sets.Product(w=sets.Simplex(), b=sets.Reals())) == "Product({'w': Simplex(1.0), 'b': Reals()})"
    jax.jit(lambda box: repr(box) and box.low)(sets.Box(0.0, 1.0))
