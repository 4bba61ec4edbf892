"""Quadratic oracles f(x) = E[x'A_i x]/2 over a population of matrices: their Hessian is known, and one program serves all.

Data are arguments of what is compiled, so a search is compiled once per shape and type and sees a new matrix every time.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E
from mescal.curvature import Search
from mescal.problem import Rows
from tests.curvature.searches import SEARCHES

SIZE, ROWS = 6, 2048  # variables, and matrices in a population


class Answer(NamedTuple):
    """What a search said, on the host."""

    direction: np.ndarray
    curvature: float
    negative: bool
    work: mescal.oracle.Tally


class Bench:
    """A compiled search on quadratic oracles in the box [-1, 1]^d."""

    def __init__(self, search: Search, template, dtype):
        self.template, self.dtype, self.traces = template, dtype, 0

        def run(oracle, z, tolerance, key, batch):
            self.traces += 1
            return search(oracle, z, tolerance, key, batch)

        self.run = jax.jit(run)

    def __call__(self, matrices, tolerance, key, batch=ROWS - 1, z=None) -> Answer:
        """Search on a population of matrices; the default batch stops short of looking at all of it."""
        with jax.enable_x64(self.dtype == np.float64):
            oracle = eqx.tree_at(lambda o: o.data, self.template, (Rows(jnp.asarray(matrices, self.dtype)),))
            point = jnp.zeros(oracle.size, self.dtype) if z is None else jnp.asarray(z, self.dtype)
            found, work = self.run(oracle, point, jnp.asarray(tolerance, self.dtype), key, jnp.int32(batch))
            return Answer(
                np.asarray(found.direction, np.float64), float(found.curvature), bool(found.negative), work.tally()
            )


@pytest.fixture(scope="session")
def make_bench(make_lagrangian):
    """A bench for a search, a size, a number of rows and a type; the same one for the same arguments."""
    known = {}

    def quadratic(x, a):
        return x @ a @ x / 2

    def make(search: Search, size: int = SIZE, rows: int = ROWS, dtype=np.float32) -> Bench:
        name = (repr(search), size, rows, np.dtype(dtype).name)
        if name not in known:
            with jax.enable_x64(dtype == np.float64):
                problem = mescal.Problem(
                    E(quadratic, over=np.zeros((rows, size, size))), domain=mescal.sets.Box(-1.0, 1.0)
                )
                template = make_lagrangian(problem, np.zeros(size), np.zeros(0), 1.0, micro=64, dtype=dtype)
            known[name] = Bench(search, template, dtype)
        known[name].traces = 0  # of this test: between two files, what was compiled may have been dropped
        return known[name]

    return make


@pytest.fixture(params=SEARCHES)
def bench(request, make_bench):
    """Each search with its default settings on the common shape."""
    return make_bench(SEARCHES[request.param])


@pytest.fixture(scope="session")
def repeated():
    """A population without noise."""
    return lambda matrix, rows=ROWS: np.broadcast_to(matrix, (rows, *np.shape(matrix)))


@pytest.fixture(scope="session")
def noises():
    """Populations of symmetric matrices with mean zero and u'A_i u of variance about 1 for every unit u.

    Gaussian; rank one, skewed; a random sign times the identity, the same in all directions.
    """
    rng = np.random.default_rng(11)
    gauss = rng.normal(size=(ROWS, SIZE, SIZE))
    vectors = rng.normal(size=(ROWS, SIZE))
    kinds = {
        "gauss": (gauss + gauss.transpose(0, 2, 1)) / 2,
        "rank one": vectors[:, :, None] * vectors[:, None, :] / np.sqrt(2),
        "sign": rng.choice([-1.0, 1.0], (ROWS, 1, 1)) * np.eye(SIZE),
    }
    return {name: kind - kind.mean(0) for name, kind in kinds.items()}


@pytest.fixture(scope="session")
def symmetric():
    """A random symmetric matrix with the given eigenvalues."""

    def make(rng: np.random.Generator, eigenvalues) -> np.ndarray:
        basis = np.linalg.qr(rng.normal(size=(len(eigenvalues),) * 2))[0]
        return (basis * np.asarray(eigenvalues)) @ basis.T

    return make
