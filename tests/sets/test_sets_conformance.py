"""Every set in the folder passes the conformance suite, in float32 and in float64; broken sets do not."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mescal import sets
from mescal.testing.set_conformance import check_set, find_sets

FOUND = [(f"{cls.__name__}-{n}", n, *example) for cls in find_sets() for n, example in enumerate(cls.examples())]
EXAMPLES = [pytest.param(set_, x_like, id=name) for name, _, set_, x_like in FOUND]
FIRST = [pytest.param(set_, x_like, id=name) for name, number, set_, x_like in FOUND if number == 0]


def test_every_set_of_the_folder_is_public():
    public = {cls for cls in vars(sets).values() if isinstance(cls, type) and issubclass(cls, sets.ConvexSet)}
    assert public - {sets.ConvexSet} <= set(find_sets())
    for cls in find_sets():
        assert getattr(sets, cls.__name__) is cls and cls.__name__ in dir(sets)
    with pytest.raises(AttributeError, match="no attribute 'Bal'"):
        _ = sets.Bal  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(("set_", "x_like"), EXAMPLES)
def test_conformance(set_, x_like):
    check_set(set_, x_like)


@pytest.mark.parametrize(("set_", "x_like"), FIRST)
def test_conformance_in_float64(set_, x_like):
    check_set(set_, jax.tree.map(lambda leaf: leaf.astype(np.float64), x_like))


@pytest.mark.parametrize(("set_", "x_like"), EXAMPLES)
def test_half_precision_keeps_its_dtype(set_, x_like):
    x = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, jnp.bfloat16), x_like)
    for result in jax.eval_shape(set_.project, x), jax.eval_shape(set_.project_tangent, x, x):
        assert jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), result) == jax.tree.map(
            lambda leaf: (leaf.shape, leaf.dtype), x
        )


class Altered(sets.ConvexSet):
    """The orthant with some of its methods replaced."""

    changes: dict = eqx.field(static=True)

    def _do(self, name, *args):
        return self.changes.get(name, getattr(sets.NonNegative(), name))(*args)

    def project(self, x):
        return self._do("project", x)

    def project_tangent(self, x, v):
        return self._do("project_tangent", x, v)

    def project_face(self, x, v):
        return self._do("project_face", x, v)

    def tangent_cone(self, x):
        return self._do("tangent_cone", x)

    def check_fit(self, x):
        return self._do("check_fit", x)

    @classmethod
    def examples(cls):
        return ()


def _oblique(x):
    return jnp.array([1.0, 1.0, 0, 0], x.dtype) * x[0] + jnp.array([0, 0, 1.0, 1.0], x.dtype) * x


def _refuse(x):
    raise ValueError("too long")


BROKEN = {
    "idempotent": {"project": lambda x: 0.5 * jnp.maximum(x, 0)},
    "nonexpansive": {"project": _oblique},
    "variational": {"project": lambda x: jnp.full_like(x, 1).at[0].set(jnp.maximum(jnp.abs(x[0]), 1))},
    "contains": {"project": lambda x: jnp.maximum(x, 0) + 5e-6},
    "can be compiled": {"project": lambda x: x if x[0] > 0 else jnp.zeros_like(x)},
    "derivative of project is finite": {"project": lambda x: x / jnp.maximum(1, jnp.sqrt(jnp.sum(x * x)))},
    "structure, shapes and dtypes": {"project": lambda x: jnp.maximum(x, 0) + jnp.zeros(4)},
    "float64.* keeps": {"project": lambda x: jnp.maximum(x, 0).astype(jnp.float32)},
    "is tangent": {"project_tangent": lambda x, v: v, "tangent_cone": lambda x: None},
    "Moreau's decomposition": {"project_tangent": lambda x, v: _oblique(v)},
    "homogeneous": {"project_tangent": lambda x, v: jnp.where(x > 0, v, jnp.maximum(v, 1) * (v != 0))},
    "is normal to X": {"project_tangent": lambda x, v: 0 * v},
    "range of project_face": {"project_face": lambda x, v: v},
    "project_face is linear": {"project_face": lambda x, v: jnp.maximum(v, 0)},
    "project_face is idempotent": {"project_face": lambda x, v: v / 2},
    "project_face is symmetric": {"project_face": lambda x, v: _oblique(v)},
    "reaches all of the lineality": {"project_face": lambda x, v: 0 * v},
    "lies in tangent_cone": {"tangent_cone": lambda x: sets.Box(0.0, 1e-9).tangent_cone(x)},
    "tangent_cone and project_tangent agree": {
        "project_face": lambda x, v: 0 * v,
        "tangent_cone": lambda x: sets.TangentCone.whole(4),
    },
    "check accepts": {"check_fit": _refuse},
}


@pytest.mark.parametrize("property_", BROKEN)
def test_a_broken_set_fails(property_):
    with pytest.raises(AssertionError, match=property_):
        check_set(Altered(BROKEN[property_]), np.zeros(4, np.float32))


def test_the_unbroken_one_passes():
    check_set(Altered({}), np.zeros(4, np.float32))


def test_examples_cannot_be_forgotten():
    class Forgetful(Altered):
        examples = sets.ConvexSet.examples  # pyright: ignore[reportAssignmentType]

    with pytest.raises(TypeError, match="examples"):
        Forgetful({})
