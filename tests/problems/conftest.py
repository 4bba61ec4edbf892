"""Exact values and derivatives of a problem's expectations, and the names of problems whose data may not be there."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mescal import problems
from mescal.problem import Problem, Rows

NEED_FILES = ("spambase", "madelon", "bank", "loan")


class Exact(NamedTuple):
    """Functions of a problem on flat float64 vectors: full means over populations, no streams."""

    objective: Callable
    gradient: Callable
    constraints: Callable
    jacobian: Callable
    hessian: Callable  # of the Lagrangian, at (x, multipliers)
    augmented: Callable  # (x, multiplier, penalty) -> value, gradient and c of the augmented Lagrangian of one c <= 0


def exact_functions(problem: Problem, x0: np.ndarray, rows: int | None = None) -> Exact:
    """The functions of a problem without streams; of its populations only the first `rows`, where that is given."""
    program, _ = problem.bind(x0)

    def double(leaf):
        return jnp.asarray(np.asarray(leaf[:rows]), jnp.float64)

    with jax.enable_x64(True):
        data = [Rows(jax.tree.map(double, source.arrays)) for source in problem.sources]

    def both(x):
        f, c = program.deterministic(x)
        for k, family in enumerate(program.families):
            for member, source in enumerate(family.members):
                part_f, part_c = program.contribution(k, x, data[source], member)
                f, c = f + jnp.mean(part_f), c + program.spread(k, jnp.mean(part_c, axis=0), member)
        return f, c

    def lagrangian(x, multipliers):
        f, c = both(x)
        return f + multipliers @ c

    def augmented(x, multiplier, penalty):
        f, c = both(x)
        slope = jnp.maximum(0, multiplier + penalty * c[0])
        return f + (slope**2 - multiplier**2) / (2 * penalty), c

    def augmented_with_gradient(x, multiplier, penalty):
        (value, c), gradient = jax.value_and_grad(augmented, has_aux=True)(x, multiplier, penalty)
        return value, gradient, c

    def on_host(fn):
        compiled = jax.jit(fn)

        def call(*arguments):
            with jax.enable_x64(True):
                return jax.tree.map(np.asarray, compiled(*(jnp.asarray(a, jnp.float64) for a in arguments)))

        return call

    # Compiling is what takes the time here, so values and derivatives are one program.
    everything = on_host(lambda x: (both(x), jax.jacrev(both)(x)))
    return Exact(
        lambda x: everything(x)[0][0],
        lambda x: everything(x)[1][0],
        lambda x: everything(x)[0][1],
        lambda x: everything(x)[1][1],
        on_host(jax.hessian(lagrangian)),
        on_host(augmented_with_gradient),
    )


@pytest.fixture(scope="session")
def exact() -> Callable[..., Exact]:
    return exact_functions


@pytest.fixture
def get(request) -> Callable[..., problems.NamedProblem]:
    """`problems.get`, which skips the test where a data set's files are not at hand."""

    def get_or_skip(name: str, **parameters) -> problems.NamedProblem:
        if any(part in name for part in NEED_FILES):
            request.getfixturevalue("data_folder")
        return problems.get(name, **parameters)

    return get_or_skip
