"""What holds for every named problem, found by its folder."""

import ast
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mescal.problems
from mescal import E, InputError, Problem, problems, testing
from mescal.problems import NamedProblem
from mescal.sets import Box


@pytest.mark.parametrize("check", ["builds", "is_described"])
@pytest.mark.parametrize("name", problems.names())
def test_what_every_problem_promises(name, check, get):
    named = get(name)
    testing.PROBLEM_CHECKS[check](named)
    assert named.name == name and named.x0.dtype == np.float32


# Problems of these kinds differ in their data and a bound, not in their functions: the fast tests check one of each.
SAME_FUNCTIONS = [name for name in problems.names() if name.startswith(("neyman-pearson/", "fairness/", "synthetic/"))]
REPEATED = set(SAME_FUNCTIONS) - {"neyman-pearson/breast-cancer", "fairness/diabetes"}
REPEATED |= {"physics/burgers", "physics/helmholtz"}  # fourth derivatives of a network take long to compile


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in REPEATED else ()) for name in problems.names()]
)
def test_every_problem_has_right_derivatives(name, get):
    testing.PROBLEM_CHECKS["has_derivatives"](get(name))


def kinked(x):
    return jnp.sum(jnp.abs(x - 1))


BROKEN = {
    "x0 lies in the domain": {"x0": np.array([2.0, 0.0], np.float32)},
    "binds to its start": {"x0": np.array([1, 0])},
    "has a description": {"description": " "},
    "its cone": {"cone": "whole"},
    "shape of x0": {"solution": np.zeros(3)},
    "solution lies in the domain": {"solution": np.array([0.0, 3.0])},
    "knows the optimum": {"solution": np.zeros(2)},
    "slope|derivative|Taylor": {"problem": Problem(E(kinked)), "x0": np.ones(2, np.float32)},
}


@pytest.mark.parametrize("statement", BROKEN)
def test_a_broken_problem_fails(statement):
    good = {"problem": Problem(E(lambda x: x @ x), {}, Box(-1.0, 1.0)), "x0": np.ones(2, np.float32) / 2}
    rest = {"parameters": {}, "description": "a bowl", "optimum": None, "solution": None, "cone": "critical"}
    testing.check_problem(NamedProblem(name="a/bowl", **good, **rest))
    with pytest.raises((AssertionError, InputError), match=statement):
        testing.check_problem(NamedProblem(**({"name": "a/bowl"} | good | rest | BROKEN[statement])))


@pytest.mark.parametrize("name", ["neyman-pearson/breast-cancer", "fairness/diabetes", "synthetic/fairness"])
def test_data_can_be_double(name):
    named = problems.get(name, dtype="float64")
    assert named.x0.dtype == np.float64
    for source in named.problem.sources:
        assert {leaf.dtype for leaf in jax.tree.leaves(source.arrays)} == {np.dtype("float64")}
    named.problem.bind(named.x0)


def test_every_file_of_problems_states_its_mathematics():
    for path in Path(mescal.problems.__path__[0]).glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assigned = {
            t.id for node in tree.body if isinstance(node, ast.Assign) for t in node.targets if hasattr(t, "id")
        }
        if "PROBLEMS" in assigned:
            first = (ast.get_docstring(tree) or "").splitlines()[0]
            assert "min " in first or "fairness problem" in first, path.name
