"""A small constrained problem whose constants are known, for the theory modes.

    f = A cos(w u), F = (1 + 0.2 s) f;   c = b v, C = c + 0.05 s';   |v| <= 1,  s and s' fair signs

Saddle at (0, 0), minimisers at (+-pi/w, 0). The start lies on the ridge u = 0, off the constraint.
"""

import math
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E, theory

A, W, B = 0.125, 1.85, 0.4
OBJECTIVE_NOISE, CONSTRAINT_NOISE = 0.2, 0.05
CONSTANTS = theory.ProblemConstants(
    dimension=2, constraint_count=1,
    objective_bound=A, objective_gradient_bound=A * W, constraint_bound=B, jacobian_bound=B,
    constraint_hessian_bound=0.0, regularity=B,
    objective_gradient_lipschitz=A * W**2 * (1 + OBJECTIVE_NOISE),
    objective_hessian_lipschitz=A * W**3 * (1 + OBJECTIVE_NOISE),
    constraint_gradient_lipschitz=0.0, constraint_hessian_lipschitz=0.0,
    objective_gradient_noise=A * W * OBJECTIVE_NOISE, objective_hessian_noise=A * W**2 * OBJECTIVE_NOISE,
    constraint_noise=CONSTRAINT_NOISE,
)  # fmt: skip


TRACES: list[int] = []


def wave(x, s):
    TRACES.append(1)
    return A * (1 + OBJECTIVE_NOISE * s) * jnp.cos(W * x[0])


def line(x, s):
    return B * x[1] + CONSTRAINT_NOISE * s


def sign(key):
    return 1.0 - 2.0 * (jax.random.key_data(key)[0] & 1).astype(jnp.float32)


@dataclass(frozen=True)
class Known:
    """The problem, on finite populations and as a stream, with all that is known about it."""

    problem: Any
    stream: Any
    constants: theory.ProblemConstants = CONSTANTS
    start: np.ndarray = field(default_factory=lambda: np.array([0.0, 0.9], np.float32))
    tol: Any = field(default_factory=lambda: mescal.Tolerance(0.1, 0.3))
    penalty: float = 1.0
    growth: float = 4.0

    def promising(self, solver, **promise):
        """A theory mode that knows the constants; `promise`: others, a success probability, an option."""
        return replace(mescal.solvers.get(solver), **({"constants": self.constants} | promise))

    def minimize(self, solver, problem=None, **changes):
        """A run with the constants, the schedule al_k = 4^k and the tolerances 0.1 and 0.3 unless told otherwise.

        What a theory mode is told (`constants`, `success`, `option`), the penalty schedule, and settings of `mescal.minimize`.
        """
        told = {name: changes.pop(name) for name in ("constants", "success", "option") if name in changes}
        outer = mescal.Outer(penalty=changes.pop("penalty", self.penalty), growth=changes.pop("growth", self.growth))
        wanted = {"tol": self.tol, "solver": self.promising(solver, **told), "outer": outer} | changes
        return mescal.minimize(self.problem if problem is None else problem, self.start, **wanted)

    @property
    def traces(self) -> int:
        """How often the objective was traced so far."""
        return len(TRACES)

    def value(self, x, multiplier, penalty) -> float:
        """L, exact."""
        u, v = (float(part) for part in x)
        return A * math.cos(W * u) + multiplier * B * v + penalty / 2 * (B * v) ** 2

    def gradient(self, x, multiplier, penalty) -> float:
        """|P_T(-grad L)|, exact, inside of |v| < 1."""
        u, v = (float(part) for part in x)
        return math.hypot(A * W * math.sin(W * u), (multiplier + penalty * B * v) * B)

    def curvature(self, x, penalty) -> float:
        """lambda_min, exact."""
        return min(-A * W**2 * math.cos(W * float(x[0])), penalty * B**2)


@pytest.fixture(scope="session")
def known() -> Known:
    signs = np.array([1.0, -1.0], np.float32)
    constraint = E(line, over=signs.copy()) == 0
    domain = mescal.sets.Box(np.array([-np.inf, -1.0]), np.array([np.inf, 1.0]))
    finite = mescal.Problem(E(wave, over=signs), {"c": constraint}, domain)
    first, second = mescal.Sampler(sign), mescal.Sampler(lambda key: sign(key))
    stream = mescal.Problem(E(wave, over=first), {"c": E(line, over=second) == 0}, domain)
    return Known(finite, stream)
