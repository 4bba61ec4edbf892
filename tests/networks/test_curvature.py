"""Second derivatives of a network: memory of a Hessian-vector product, and Lanczos against a dense Hessian."""

from itertools import chain, combinations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from jax.flatten_util import ravel_pytree

import mescal
from mescal.certificate import second_order
from mescal.certificate.cones import TAKEN_OVER
from mescal.oracle import Lagrangian, surrogate
from mescal.problem import equality_form


def test_hvp_memory_stays_at_a_few_gradients(task, make_plain, network, key):
    """Temporary memory of a compiled product is at most 4 times that of the gradient it differentiates.

    Forward over reverse keeps every intermediate value of the gradient beside its derivative: 2, and the totals of the
    constraint, which are differentiated too. A Hessian would take thousands of times as much.
    """
    width = 64
    x = make_plain(jax.random.key(0), (6, width, width, 1))
    problem = task.problem(network)
    program, _ = problem.bind(x, dtype=np.float32)
    form, data = equality_form(program, problem.domain), problem.device_data(program, np.float32)
    oracle = Lagrangian(form, data, jnp.zeros(3), jnp.asarray(1.1), surrogate("ustat"), micro=128)
    z = jnp.zeros(form.size, jnp.float32)
    n = jnp.int32(128)
    gradient = jax.jit(lambda o, y, v: o.gradient(y, key, n)[0]).lower(oracle, z, z).compile()
    product = jax.jit(lambda o, y, v: o.hvp(y, v, key, n)[0]).lower(oracle, z, z).compile()
    used = [compiled.memory_analysis().temp_size_in_bytes for compiled in (gradient, product)]
    assert used[0] > 128 * width * 4, "the gradient holds at least one layer's values"
    assert used[1] <= 4 * used[0], used


def dense_curvatures(problem, x, certificate) -> dict[str, float]:
    """The smallest curvature on the whole space and on the paper's cone from jax.hessian, in float64.

    Slacks that are positive have a column in c; slacks at zero may only grow. The rows A = [J, S] and H, zero on slacks, are put
    together here once more, apart from the judge's own code.
    """
    program, _ = problem.bind(x)
    layout = program.layout
    multipliers = layout.rows(certificate.multipliers, "multipliers")
    slack = layout.slack_rows(certificate.slack)
    with jax.enable_x64(True):
        flat, unravel = ravel_pytree(jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), x))
        (objective, decay), (rates,) = problem.objective.terms, problem.constraints["rates"].body.terms
        rows = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), objective.source.arrays)

        def f(v):
            p = unravel(v)
            return jnp.mean(jax.vmap(objective.fn, (None, 0))(p, rows)) + decay.coefficient * decay.fn(p)

        def c(v):
            return jnp.mean(jax.vmap(rates.fn, (None, 0))(unravel(v), rows), axis=0)

        second = jax.jit(lambda v: (jax.hessian(lambda v: f(v) + multipliers @ c(v))(v), jax.jacobian(c)(v)))
        hessian, jacobian = (np.asarray(part) for part in second(flat))
    d, m = flat.size, len(multipliers)
    A = np.concatenate([jacobian, np.eye(m)], axis=1)
    joint = np.zeros((d + m, d + m))
    joint[:d, :d] = hessian
    whole = float(np.linalg.eigvalsh(joint + certificate.penalty * A.T @ A)[0])
    return {"whole": whole, "paper": smallest_on_faces(joint, A, d + np.flatnonzero(slack <= 0))}


def smallest_on_faces(matrix, rows, closed) -> float:
    """The smallest curvature where rows d = 0 and d >= 0 on `closed`: face by face, a least eigenvector that lies in the cone."""
    found = np.inf
    for held in chain.from_iterable(combinations(closed, count) for count in range(len(closed) + 1)):
        basis = scipy.linalg.null_space(np.concatenate([rows, np.eye(len(matrix))[list(held)]]))
        values, vectors = np.linalg.eigh(basis.T @ matrix @ basis)
        moves = (basis @ vectors[:, 0])[np.setdiff1d(closed, held)]
        if (moves >= 0).all() or (moves <= 0).all():
            found = min(found, float(values[0]))
    return found


def check_against_dense(problem, x, monkeypatch, **known):
    """Lanczos intervals hold the dense values, are as short as asked for on the cone that decides, and the dense path agrees."""
    dense = mescal.certify(problem, x, tol=0.01, **known)
    monkeypatch.setattr(second_order, "DENSE_SIZE", 0)
    expected = dense_curvatures(problem, x, dense)
    for deciding in expected:
        free = mescal.certify(problem, x, tol=0.01, cone=deciding, **known)
        for name, value in expected.items():
            found, exact = free.curvatures[name], dense.curvatures[name]
            assert "Lanczos" in found.how and "Lanczos" not in exact.how
            assert found.lower - 1e-9 <= value <= found.upper + 1e-9, (name, value, found)
            assert name != deciding or found.upper - found.lower <= TAKEN_OVER * 0.01 / 8 + 1e-6
            assert abs(exact.value - value) <= 1e-7


def test_lanczos_agrees_with_the_dense_hessian_of_a_small_network(task, make_plain, network, monkeypatch):
    """At a start, where the curvature is plainly negative: all slacks open, multipliers given."""
    x = make_plain(jax.random.key(2), (6, 7, 5, 1))
    known = {"multipliers": {"rates": np.array([0.3, 0.2, 0.4])}, "slack": {"rates": np.array([0.1, 0.2, 0.3])}}
    check_against_dense(task.problem(network), x, monkeypatch, **known)


@pytest.mark.slow
def test_the_certificate_of_a_trained_sibling_agrees_with_its_dense_hessian(task, make_plain, network, monkeypatch):
    """The gallery's network in small, 6-16-16-1, at its certified point."""
    problem = task.problem(network)
    result = mescal.minimize(problem, make_plain(jax.random.key(0), (6, 16, 16, 1)), solver="auto", tol=0.01)
    assert result.converged, str(result)
    check_against_dense(problem, result.x, monkeypatch, multipliers=result.multipliers, slack=result.slack)
