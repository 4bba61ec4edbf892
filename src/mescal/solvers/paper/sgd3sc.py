"""SGD3SC (Allen-Zhu 2018; the paper's Definition 4.2): a small gradient of a strongly convex W, from single samples.

    stage s:  segments of averaged SGD on f_s;   then f_{s+1}(z) = f_s(z) + (mu_{s+1}/2) |z - z_s|^2 at its result z_s
    averaged SGD:  n steps z <- z - a grad f_s(z; theta), and their average is the next start

with W = L + the hinge of Natasha1.5 around `centre` + iota |z - x^|^2, and the schedule of `theory.sgd3sc`. The added
quadratics together are (M/2) |z - zbar|^2 but for a constant, with M = sum mu_j and zbar = sum mu_j z_j/M.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ...errors import InputError
from ...oracle import Lagrangian, Work
from ...theory.sgd3sc import Stage
from .natasha15 import Natasha15Plan, hinge_gradient
from .theory_mode import counts

MOST_SEGMENTS = 1024  # rows of a schedule: 32 stages of 32 segments, more than 32-bit counts of steps can ask for


class SgdSchedule(eqx.Module):
    """Rows of (step size, steps, repeats, weight of the quadratic added afterwards); the first `rows` are used."""

    step_size: jax.Array
    steps: jax.Array
    repeats: jax.Array
    added: jax.Array
    rows: jax.Array


class Sgd3scState(eqx.Module):
    """Where the schedule stands, and the quadratics added so far: M and zbar."""

    row: jax.Array
    repeat: jax.Array
    weight: jax.Array
    mean: jax.Array


def pad_schedule(name: str, stages: tuple[Stage, ...], dtype: Any) -> SgdSchedule:
    """The stages as arrays of one length, whatever their number."""
    rows = []
    for stage in stages:
        rows += [[s.step_size, s.steps, s.repeats, 0.0] for s in stage.segments]
        rows[-1][3] = 2 * stage.strong_convexity
    if len(rows) > MOST_SEGMENTS:
        raise InputError(
            f"the last phase of {name!r} has {len(rows)} segments",
            f"at most {MOST_SEGMENTS}",
            "loosen the tolerances: the ratio of smoothness to strong convexity is beyond what can be run",
        )
    counts(name, steps_of_the_last_phase=max(stage.steps for stage in stages))
    table = np.zeros((MOST_SEGMENTS, 4))
    table[: len(rows)] = rows
    step_size, steps, repeats, added = table.T
    return SgdSchedule(
        jnp.asarray(step_size, dtype),
        jnp.asarray(steps.astype(np.int32)),
        jnp.asarray(repeats.astype(np.int32)),
        jnp.asarray(added, dtype),
        jnp.int32(len(rows)),
    )


def sgd3sc_start(z: jax.Array) -> Sgd3scState:
    """Nothing done, nothing added."""
    return Sgd3scState(jnp.int32(0), jnp.int32(0), jnp.zeros((), z.dtype), jnp.zeros_like(z))


def sgd3sc_run(
    oracle: Lagrangian,
    z: jax.Array,
    state: Sgd3scState,
    schedule: SgdSchedule,
    plan: Natasha15Plan,
    centre: jax.Array,
    chosen: jax.Array,
    key: jax.Array,
) -> tuple[jax.Array, Sgd3scState, Work]:
    """One run of averaged SGD, the next of the schedule, from z; `centre` and `chosen` are the pair (x, x^) of W."""
    step_size, steps = schedule.step_size[state.row], schedule.steps[state.row]

    def inner(t, carry):
        y, total, work = carry
        gradient, spent = oracle.gradient(y, jax.random.fold_in(key, t), 1)
        gradient = gradient + hinge_gradient(y, centre, plan.hinge_weight, plan.hinge_radius)
        gradient = gradient + 2 * plan.strong_nonconvexity * (y - chosen) + state.weight * (y - state.mean)
        y = oracle.project(y - step_size * gradient)
        return y, total + (y - z), work + spent

    carry = (z, jnp.zeros_like(z), Work.zero())
    _, total, work = jax.lax.fori_loop(0, steps, inner, carry)
    average = z + total / steps.astype(z.dtype)
    repeats_done = state.repeat + 1 >= schedule.repeats[state.row]
    added = jnp.where(repeats_done, schedule.added[state.row], 0)
    weight = state.weight + added
    return (
        average,
        Sgd3scState(
            state.row + repeats_done.astype(jnp.int32),
            jnp.where(repeats_done, 0, state.repeat + 1),
            weight,
            state.mean + added / jnp.maximum(weight, jnp.finfo(z.dtype).tiny) * (average - state.mean),
        ),
        work,
    )
