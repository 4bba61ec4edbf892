"""A small augmented Lagrangian whose constants are known, and compiled programs that all tests of a solver share.

    L(x) = A cos(w u) + lam c + (al/2) c^2,   c = b sin v,   (u, v) = Q x,  Q a rotation
    F = A (1 + 0.2 s) cos(w u),   C = b (1 + 0.05 s') sin v + 0.05 s'',   s, s', s'' fair signs

A saddle line in u, a constraint in v. The start lies on the ridge u = 0, where the gradient has no component along the
escape direction, and off the constraint.
"""

import dataclasses
import itertools
import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E
from mescal.curvature import Found, Search
from mescal.oracle import Work
from mescal.solvers.base import RUNNING, Goal, Memory
from mescal.solvers.paper.natasha2_theory import Natasha2Theory
from mescal.solvers.paper.sg_hv_nc_theory import SgHvNcTheory
from mescal.solvers.paper.spider_theory import SpiderTheory
from mescal.theory.constants import SubproblemConstants
from tests.solvers_paper.watched import subproblem_of_nearest

A, W, B = 0.125, 1.85, 0.4
MULTIPLIER, PENALTY = 0.05, 2.5
OBJECTIVE_NOISE, JACOBIAN_NOISE, CONSTRAINT_NOISE = 0.2, 0.05, 0.05
ANGLE = 0.6
Q = np.array([[math.cos(ANGLE), math.sin(ANGLE)], [-math.sin(ANGLE), math.cos(ANGLE)]])
CONSTANTS = SubproblemConstants(
    gradient_lipschitz=1.0, hessian_lipschitz=1.0, gradient_noise=0.1, hessian_noise=0.1, gap=0.3
)
MICRO = 128


def signs(key):
    """Two fair signs: the bits of a key are random by themselves."""
    return 1.0 - 2.0 * (jax.random.key_data(key) & 1).astype(jnp.float32)


def make_problem(domain) -> mescal.Problem:
    def objective(x, s):
        return A * (1 + OBJECTIVE_NOISE * s[0]) * jnp.cos(W * (jnp.asarray(Q[0], x.dtype) @ x))

    def constraint(x, s):
        clean = B * jnp.sin(jnp.asarray(Q[1], x.dtype) @ x)
        return (1 + JACOBIAN_NOISE * s[0]) * clean + CONSTRAINT_NOISE * s[1]

    xi, zeta = mescal.Sampler(signs), mescal.Sampler(lambda key: signs(key))
    return mescal.Problem(E(objective, over=xi), {"c": E(constraint, over=zeta) == 0}, domain)


@eqx.filter_jit
def begin(solver, oracle, z, plan, key):
    memory = Memory(*(jnp.zeros((), z.dtype) for _ in Memory._fields))  # no theory mode looks at it
    return solver.init(oracle, z, plan, memory, key)


TRACES: list[str] = []


@eqx.filter_jit
def advance(solver, oracle, state, plan, calls):
    """At most `calls` steps."""
    TRACES.append(getattr(solver, "name", type(solver).__name__))

    def body(carry):
        return carry[0] + 1, solver.step(oracle, carry[1], plan)

    def going(carry):
        return (carry[0] < calls) & (carry[1].progress.status == RUNNING)

    return jax.lax.while_loop(going, body, (jnp.int32(0), state))[1]


@dataclass(frozen=True)
class Subproblem:
    """The oracle, what is known about it, and runs of solvers on it."""

    oracle: Any
    constants: SubproblemConstants = CONSTANTS
    start: np.ndarray = field(default_factory=lambda: Q.T @ np.array([0.0, math.asin(0.4)]))

    def goal(self, gradient=0.1, curvature=0.3, **changes) -> Goal:
        wanted = {"steps": 10, "population": None, "large_batch": 1, "curvature_batch": 1, "constants": self.constants}
        return Goal(gradient=gradient, curvature=curvature, **(wanted | changes))

    def plan(self, solver, gradient=0.1, curvature=0.3):
        return solver.plan(self.goal(gradient, curvature), jnp.float32)

    def begin(self, solver, plan, seed, oracle=None, z=None):
        z = jnp.asarray(self.start if z is None else z, jnp.float32)
        key = jax.random.key(seed, impl="threefry2x32")
        return begin(solver, self.oracle if oracle is None else oracle, z, plan, key)

    def advance(self, solver, state, plan, calls=2**31 - 1, oracle=None):
        return advance(solver, self.oracle if oracle is None else oracle, state, plan, jnp.int32(calls))

    def solve(self, solver, plan, seed, oracle=None):
        """The whole inner solve."""
        return self.advance(solver, self.begin(solver, plan, seed, oracle), plan, oracle=oracle)

    def traces(self, solver) -> int:
        """How often the program of this kind of solver was traced."""
        return TRACES.count(solver.name)

    def exact_gradient(self, x) -> np.ndarray:
        """grad L."""
        u, v = Q @ np.asarray(x, np.float64)
        return Q.T @ np.array([-A * W * math.sin(W * u), (MULTIPLIER + PENALTY * B * math.sin(v)) * B * math.cos(v)])

    def gradient(self, x) -> float:
        """|grad L|, exact."""
        return float(np.linalg.norm(self.exact_gradient(x)))

    def curvature(self, x) -> float:
        """lambda_min, exact: the Hessian is diagonal in (u, v)."""
        u, v = Q @ np.asarray(x, np.float64)
        c = B * math.sin(v)
        along = -(MULTIPLIER + PENALTY * c) * c + PENALTY * (B * math.cos(v)) ** 2
        return min(-A * W**2 * math.cos(W * u), along)

    def good(self, x, gradient=0.1, curvature=0.3) -> bool:
        """Whether x is what was asked for."""
        return self.gradient(x) <= gradient and self.curvature(x) >= -curvature

    def sampled(self):
        """For every theta, on a grid of u and of v: first, second, third derivatives along u, and along v."""
        u, v = (np.linspace(0, 2 * np.pi / scale, 4001) for scale in (W, 1.0))
        along_u = np.stack([
            A * (1 + OBJECTIVE_NOISE * s) * np.stack([-W * np.sin(W * u), -(W**2) * np.cos(W * u), W**3 * np.sin(W * u)])
            for s in (1, -1)
        ])  # fmt: skip
        along_v = []
        for first, second, shift in itertools.product((1, -1), repeat=3):  # J_1 (lam + al C_2), C_2 = p sin v + ...
            k, p = B * (1 + JACOBIAN_NOISE * first), PENALTY * B * (1 + JACOBIAN_NOISE * second)
            m = MULTIPLIER + PENALTY * CONSTRAINT_NOISE * shift
            parts = [
                np.cos(v) * (m + p * np.sin(v)),
                -m * np.sin(v) + p * np.cos(2 * v),
                -m * np.cos(v) - 2 * p * np.sin(2 * v),
            ]
            along_v.append(k * np.stack(parts))
        return along_u, np.stack(along_v)

    def gap(self) -> float:
        """L(start) - inf L."""
        u, v = Q @ self.start
        c = B * math.sin(v)
        value = A * math.cos(W * u) + MULTIPLIER * c + PENALTY / 2 * c**2
        return value + A + MULTIPLIER**2 / (2 * PENALTY)


@pytest.fixture(scope="session")
def subproblem(make_lagrangian) -> Subproblem:
    """X = R^2, written as a box without bounds so that bounds can be put in without compiling anything."""
    problem = make_problem(mescal.sets.Box(np.full(2, -np.inf), np.full(2, np.inf)))
    return Subproblem(make_lagrangian(problem, np.zeros(2), [MULTIPLIER], PENALTY, "pair", MICRO))


class KnownCurvature(Search):
    """A search that knows the Hessian of the subproblem and costs one Hessian-vector product."""

    name: ClassVar[str] = "known"

    def __call__(self, oracle, z, tolerance, key, batch):
        axis = jnp.asarray(Q[0], z.dtype)
        curvature = -A * W**2 * jnp.cos(W * (axis @ z))
        negative = curvature <= -5 / 8 * tolerance
        direction = oracle.project_face(z, axis)
        return Found(jnp.where(negative, direction, 0), curvature, negative), Work.of(hvp_samples=1)


SOLVERS = {"spider": SpiderTheory(sharp=True), "sg-hv-nc": SgHvNcTheory(), "natasha2": Natasha2Theory()}
KNOWING = {name: dataclasses.replace(solver, search=KnownCurvature()) for name, solver in SOLVERS.items()}


@pytest.fixture(params=SOLVERS)
def solver(request):
    """Each theory mode with its default search."""
    return SOLVERS[request.param]


@pytest.fixture(params=KNOWING)
def knowing(request):
    """Each theory mode with a search of one product."""
    return KNOWING[request.param]


@pytest.fixture(scope="session")
def solvers():
    return SOLVERS


@pytest.fixture(scope="session")
def knowing_solvers():
    return KNOWING


@pytest.fixture(scope="session")
def small():
    """The subproblem of a problem with one inequality."""
    return subproblem_of_nearest()
