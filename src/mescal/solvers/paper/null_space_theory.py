"""The single loop in the null space (`docs/null-space.md`) with every parameter from `theory.null_space`.

    (g, c, J) = means over S1 samples if q divides t, else (g, c, J) + mean over S2 of [(G, C, dC)(x_t) - (G, C, dC)(x_{t-1})]
    lam = -(JJ')^-1 J g,   w = -(g + J'lam),   v = -J'(JJ')^-1 c,   p = w + Lam s v,   M^2 = |w|^2 + Lam^2 |c|^2
    M above its threshold:   x+ = x + eta p/|p|
    else:   u = search on Null(J) for H = grad^2 f + sum lam_j grad^2 c_j;   none: stop;   found: T steps of b u r/T, b = +-1 fair

Guarantee, for equalities on R^d with sigma_min(J) >= s: |g + J'lam| <= eps_g, |c| <= eps_c, curvature at least -eps_H on Null(J),
with probability at least 1/2, or with what was asked for. An estimate of J whose smallest singular value is below s/2 contradicts
that, and ends the solve as IRREGULAR.
"""

from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ...curvature import Search
from ...curvature.contract import Within
from ...errors import InputError
from ...oracle import Lagrangian, Work
from ...theory import null_space
from ...theory.merit import MeritConstants
from ..base import BROKEN, EXHAUSTED, IRREGULAR, RUNNING, VERIFIED, Goal, Memory, Outcome, Progress, fresh_progress
from .theory_mode import SEARCH, SearchPlan, TheorySolver, counts, fair_sign, finite, look, measure, search_plan


class NullSpacePlan(eqx.Module):
    """The parameters of the single loop as arrays."""

    large_batch: jax.Array
    exact_resets: jax.Array
    small_batch: jax.Array
    period: jax.Array
    block_steps: jax.Array  # T
    steps: jax.Array  # K
    step_length: jax.Array  # eta
    escape_step: jax.Array  # r/T
    stop_threshold: jax.Array  # of the estimated M
    weight: jax.Array  # Lam
    singular_value: jax.Array  # s
    search: SearchPlan


class Linear(NamedTuple):
    """Estimates of the gradient of f, of c, and of its Jacobian."""

    gradient: jax.Array
    constraint: jax.Array
    jacobian: jax.Array


class Split(NamedTuple):
    """What follows from them: multipliers, p, M and |w|, orthonormal rows with the span of J's, and its smallest singular value."""

    multipliers: jax.Array
    move: jax.Array
    size: jax.Array
    stationarity: jax.Array
    rows: jax.Array
    smallest: jax.Array


class NullSpaceTheoryState(eqx.Module):
    """x_t in `progress`; x_{t-1} and the estimates there, multipliers, and what is left of an escape."""

    progress: Progress
    memory: Memory
    previous: jax.Array
    seen: Linear
    direction: jax.Array  # b u
    left: jax.Array  # steps along it


class NullSpaceTheory(TheorySolver):
    """Settings of the single loop in theory mode; it needs `theory.ProblemConstants`, and takes equalities on all of space.

    **Arguments:**

    - `sharp`: the Hessians' noise from what is assumed of it instead of from Lipschitz constants (`theory.constants`).
    - `search`: the negative-curvature search.
    - `surrogate`: the estimator of products with the Hessian; nothing else is a product of expectations.
    """

    name: ClassVar[str] = "null-space-theory"
    single_loop: ClassVar[bool] = True
    guarantee: ClassVar[float | None] = null_space.SUCCESS_PROBABILITY

    sharp: bool = eqx.field(static=True, default=False)
    search: Search = SEARCH
    surrogate: str = eqx.field(static=True, default="pair")

    def plan(self, goal: Goal, dtype: Any) -> NullSpacePlan:
        """The parameters for the goal."""
        constants = goal.constants
        if not isinstance(constants, MeritConstants):
            raise InputError(
                f"solver {self.name!r} was given no constants of its merit function",
                "theory.merit.MeritConstants, which `minimize` makes of the problem's",
                "give theory.ProblemConstants to `minimize`, or leave them out",
            )
        p = null_space.parameters(
            constants, goal.gradient, goal.curvature, population=goal.population, failure=goal.failure
        )
        large, small, period, block, steps = counts(
            self.name,
            samples_of_a_reset=p.large_batch,
            samples_of_an_update=p.small_batch,
            steps_between_resets=min(p.period, p.steps),
            steps_of_an_escape=p.block_steps,
            steps=p.steps,
        )
        number = lambda value: jnp.asarray(value, dtype)
        return NullSpacePlan(
            large_batch=large,
            exact_resets=jnp.asarray(p.exact_resets),
            small_batch=small,
            period=period,
            block_steps=block,
            steps=steps,
            step_length=number(p.step_length),
            escape_step=number(p.escape_length / p.block_steps),
            stop_threshold=number(p.stop_threshold),
            weight=number(constants.weight),
            singular_value=number(constants.singular_value),
            search=search_plan(
                self.name,
                constants.searched,
                p.search_tolerance,
                p.search_failure,
                dtype,
                self.search,
                goal.dimension,
            ),
        )

    def sizes(self, plan):
        """See `TheorySolver`."""
        return plan.step_length, plan.small_batch, plan.large_batch

    def init(self, oracle, z, plan, memory, key):
        """At the start, before the first reset."""
        m, d = oracle.multipliers.size, z.size
        nothing = Linear(jnp.zeros(d, z.dtype), jnp.zeros(m, z.dtype), jnp.zeros((m, d), z.dtype))
        return NullSpaceTheoryState(fresh_progress(z, key), memory, z, nothing, jnp.zeros_like(z), jnp.int32(0))

    def step(self, oracle, state, plan):
        """One step, with a search in front where M is small."""
        progress, z, t = state.progress, state.progress.z, state.progress.steps
        key_next, key_search, key_sign, key_estimate = jax.random.split(progress.key, 4)

        def update():
            change, work = _change(oracle, z, state.previous, key_estimate, plan.small_batch)
            return jax.tree.map(jnp.add, state.seen, change), work

        seen, spent = jax.lax.cond(t % plan.period == 0, lambda: _reset(oracle, z, key_estimate, plan), update)
        split = _split(seen, plan)
        calm = (state.left == 0) & (split.size <= plan.stop_threshold)

        def searching():
            lagrangian = eqx.tree_at(
                lambda o: (o.multipliers, o.penalty), oracle, (split.multipliers, jnp.zeros_like(oracle.penalty))
            )
            within: Any = Within(lagrangian, jnp.ones(z.size, bool), split.rows, jnp.zeros_like(z))
            found, looked = look(self.search, within, z, plan.search, key_search)
            return fair_sign(key_sign, z.dtype) * found.direction, found.curvature, looked

        direction, curvature, looked = jax.lax.cond(
            calm, searching, lambda: (state.direction, progress.curvature, Work.zero())
        )
        found = calm & jnp.any(direction != 0)
        left = jnp.where(found, plan.block_steps, state.left)
        towards = split.move / jnp.maximum(jnp.linalg.norm(split.move), jnp.finfo(z.dtype).tiny)
        moved = z + jnp.where(left > 0, plan.escape_step * direction, plan.step_length * towards)
        stop = calm & ~found
        broken = ~finite(*seen, direction)
        irregular = ~broken & (split.smallest < plan.singular_value / 2)
        moves = t + jnp.where(stop | broken | irregular, 0, 1)
        ended = jnp.where(stop, VERIFIED, jnp.where(moves >= plan.steps, EXHAUSTED, RUNNING))
        return NullSpaceTheoryState(
            Progress(
                z=jnp.where(broken, state.previous, jnp.where(stop | irregular, z, moved)),
                key=key_next,
                steps=moves,
                status=jnp.where(broken, BROKEN, jnp.where(irregular, IRREGULAR, ended)).astype(jnp.int32),
                work=progress.work + looked + spent,
                searches=progress.searches + looked,
                stationarity=split.stationarity,
                curvature=curvature,
                escapes=progress.escapes + found.astype(jnp.int32),
            ),
            state.memory,
            z,
            seen,
            direction,
            jnp.maximum(left - 1, 0),
        )

    def outcome(self, oracle, start, state, plan, goal):
        """The returned point, c there measured afresh, and the multipliers of least squares at the last estimate."""
        progress = state.progress
        seen, work = measure(
            oracle, start, progress.z, jax.random.fold_in(progress.key, 0x0D), np.int32(goal.dual_batch)
        )
        step, batch, large = self.sizes(plan)
        return Outcome(
            z=progress.z,
            value=seen.value,
            first_value=seen.first_value,
            objective=float(seen.objective),
            constraint=seen.constraint,
            multipliers=_split(state.seen, plan).multipliers,
            stationarity=progress.stationarity,
            regularity=seen.regularity,
            step=float(step),
            batch=int(batch),
            large_batch=int(large),
        ), work.tally()  # fmt: skip


def _reset(oracle: Lagrangian, z: jax.Array, key: jax.Array, plan: NullSpacePlan) -> tuple[Linear, Work]:
    """(g, c, J) from all rows where the plan says so, else from a large batch."""

    def sampled():
        found, work = oracle.estimate(z, key, plan.large_batch)
        return Linear(found.objective_gradient, found.constraint, found.jacobian), work

    if oracle.population is None:
        return sampled()

    def exactly():
        (_, constraint, gradient, jacobian), work = oracle.linearise(z)
        return Linear(gradient, constraint, jacobian), work

    return jax.lax.cond(plan.exact_resets, exactly, sampled)


def _change(oracle: Lagrangian, z: jax.Array, previous: jax.Array, key: jax.Array, n: jax.Array) -> tuple[Linear, Work]:
    """(g, c, J) at z less those at the point before it, on the same n samples."""
    both, work = jax.vmap(lambda y: oracle.estimate(y, key, n))(jnp.stack([z, previous]))
    work = jax.tree.map(lambda part: part[0], work)
    parts = both.objective_gradient, both.constraint, both.jacobian
    return Linear(*(part[0] - part[1] for part in parts)), work + work


def _split(seen: Linear, plan: NullSpacePlan) -> Split:
    """By the singular value decomposition J = U S R: lam = -U S^-1 R g, w = -(g - R'R g), v = -R'S^-1 U'c."""
    outer, values, rows = jnp.linalg.svd(seen.jacobian, full_matrices=False)
    inverse = jnp.where(values > 0, 1 / jnp.where(values > 0, values, 1), 0)
    along = rows @ seen.gradient
    tangential = along @ rows - seen.gradient
    normal = -(inverse * (seen.constraint @ outer)) @ rows
    stationarity = jnp.linalg.norm(tangential)
    return Split(
        multipliers=-outer @ (inverse * along),
        move=tangential + plan.weight * plan.singular_value * normal,
        size=jnp.hypot(stationarity, plan.weight * jnp.linalg.norm(seen.constraint)),
        stationarity=stationarity,
        rows=rows,
        smallest=values[-1],
    )
