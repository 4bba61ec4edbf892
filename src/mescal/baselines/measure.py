"""A measurement at a point, and how stationary the point is at which multipliers.

f, c, grad f and J come from a full pass over finite populations, or from one large batch of a stream. Between legs every
baseline pays for one; its stopping test sees nothing else.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..compiling import compiled
from ..oracle import Lagrangian, Tally, Work
from ..oracle.lagrangian import Estimate
from ..oracle.subproblem import Subproblem
from ..solvers.move import SURE, best_slack
from ..solvers.reset import best_shift_on_face as best_shift


class Seen(NamedTuple):
    """f and c (slacks included) at a point with gradient, Jacobian, and the variance of c, which is 0 where it is exact."""

    objective: jax.Array
    gradient: jax.Array
    constraint: jax.Array
    constraint_variance: jax.Array
    jacobian: jax.Array


class Measured(NamedTuple):
    """Where a leg ended: the point, c there, multipliers, and |P_T(-(grad f + J'lam))| at these."""

    z: jax.Array
    seen: Seen
    multipliers: jax.Array
    stationarity: jax.Array
    step: float  # what multiplied a gradient last
    batch: int  # thetas of a step
    penalty: float | None = None  # where it moved during the leg


def measure(sub: Subproblem, z: jax.Array, key: jax.Array, n: int) -> tuple[Seen, Tally]:
    """A full pass where there are populations alone, else n thetas; counts as many gradients."""
    if sub.looks is None:
        at, work = _sampled(sub.lagrangian, z, key, jnp.int32(n))
        return Seen(at.objective, at.gradient, at.constraint, at.constraint_variance, at.jacobian), work.tally()
    before, point = sub.looks.tally, np.asarray(z, np.float64)
    at = sub.lift(sub.looks.at(point[: sub.parameters], rounded=False), point[sub.parameters :])
    nothing = np.zeros_like(at.constraint)
    parts = (at.objective, at.gradient, at.constraint, nothing, at.jacobian)
    return Seen(*(jnp.asarray(np.asarray(part, z.dtype)) for part in parts)), sub.looks.tally - before


@compiled
def _sampled(oracle: Lagrangian, z: jax.Array, key: jax.Array, n: jax.Array) -> tuple[Estimate, Work]:
    return plain(oracle).estimate(z, key, n)


def plain(oracle: Lagrangian) -> Lagrangian:
    """The same problem without multipliers and penalty: L = f."""
    return replace(oracle, multipliers=jnp.zeros_like(oracle.multipliers), penalty=jnp.zeros_like(oracle.penalty))


@eqx.filter_jit
def stationarity(
    oracle: Lagrangian, z: jax.Array, seen: Seen, multipliers: jax.Array, reach: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """|P_T(-(grad f + J'lam))| and lam, which may move within `reach`, its error, to make the point as stationary as it is."""
    seen = seen._replace(gradient=seen.gradient + multipliers @ seen.jacobian)
    shift = best_shift(oracle, z, seen, reach)
    return jnp.linalg.norm(oracle.project_tangent(z, -(seen.gradient + shift @ seen.jacobian))), multipliers + shift


@eqx.filter_jit
def augmented(oracle: Lagrangian, z: jax.Array, seen: Seen) -> tuple[Any, ...]:
    """Point, measurement, multipliers lam + al c and stationarity of a method that minimises L.

    Where c is exact, slacks are moved to their best for this x, which costs nothing.
    """
    if oracle.population is not None:
        relaxed = best_slack(oracle, z, seen.constraint)
        seen = seen._replace(constraint=seen.constraint + seen.jacobian @ (relaxed - z))
        z = relaxed
    multipliers = oracle.multipliers + oracle.penalty * seen.constraint
    reach = SURE * oracle.penalty * jnp.sqrt(seen.constraint_variance)
    norm, multipliers = stationarity(oracle, z, seen, multipliers, reach)
    return z, seen, multipliers, norm


@eqx.filter_jit
def existing(oracle: Lagrangian, z: jax.Array, seen: Seen, violation: jax.Array) -> tuple[Any, ...]:
    """Point, measurement, multipliers and stationarity at least-squares multipliers, as KKT conditions ask for any.

    An inequality that holds with no more than `violation` to spare is taken to be active: its slack is 0.
    """
    layout = oracle.form.program.layout
    if layout.slack_size:
        x, slack = oracle.form.split(z)
        room = slack - seen.constraint[layout.inequality]
        moved = oracle.form.join(x, jnp.where(room > violation, room, 0))
        seen = seen._replace(constraint=seen.constraint + seen.jacobian @ (moved - z))
        z = moved
    multipliers = least_squares(oracle, z, seen)
    norm, _ = stationarity(oracle, z, seen, multipliers, jnp.zeros_like(multipliers))
    return z, seen, multipliers, norm


def read_penalised(
    oracle: Lagrangian, z: jax.Array, seen: Seen, violation: Any, step: float, batch: int, penalty: float | None = None
) -> Measured:
    """How a method that minimises L reads a measurement: as a stationary point of L, or, where feasible, as a KKT point."""
    first = augmented(oracle, z, seen)
    other = existing(oracle, z, seen, violation)
    feasible = float(jnp.linalg.norm(other[1].constraint)) <= float(violation)
    z, seen, multipliers, norm = other if feasible and float(other[3]) < float(first[3]) else first
    return Measured(z, seen, multipliers, norm, step, batch, penalty)


@eqx.filter_jit
def least_squares(oracle: Lagrangian, z: jax.Array, seen: Seen) -> jax.Array:
    """argmin over lam of |P(grad f + J'lam)| on the face of z."""
    return best_shift(oracle, z, seen, jnp.full_like(seen.constraint, jnp.inf))
