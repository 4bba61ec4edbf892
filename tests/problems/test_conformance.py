"""What holds for every named problem, found by its folder."""

import ast
from pathlib import Path

import jax
import numpy as np
import pytest

import mescal.problems
from mescal import problems
from mescal.testing import check_derivatives


@pytest.mark.parametrize("name", problems.names())
def test_every_problem_builds(name, get):
    named = get(name)
    program, x = named.problem.bind(named.x0)
    assert named.name == name
    assert named.x0.dtype == np.float32
    assert bool(named.problem.domain.contains(named.x0))
    assert named.cone in ("paper", "critical")
    if named.solution is not None:
        assert named.solution.shape == named.x0.shape
        assert named.optimum is not None
    with jax.enable_x64(False):
        f, c = program.deterministic(jax.numpy.asarray(x))
    assert f.shape == () and c.shape == (program.layout.size,)


# Problems of these kinds differ in their data and a bound, not in their functions: the fast tests check one of each.
SAME_FUNCTIONS = [name for name in problems.names() if name.startswith(("neyman-pearson/", "fairness/", "synthetic/"))]
REPEATED = set(SAME_FUNCTIONS) - {"neyman-pearson/breast-cancer", "fairness/diabetes"}
REPEATED |= {"physics/burgers", "physics/helmholtz"}  # fourth derivatives of a network take long to compile


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in REPEATED else ()) for name in problems.names()]
)
def test_every_problem_has_right_derivatives(name, get):
    named = get(name)
    check_derivatives(named.problem, named.x0)


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
