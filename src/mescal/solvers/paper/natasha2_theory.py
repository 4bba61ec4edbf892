"""Natasha2 (Allen-Zhu 2018; the paper's Algorithms 4 and 5) with every parameter from `theory.natasha2`.

    repeat:  v = search(z_t);  found: z_{t+1} = z_t +- (d/L_H) v, fair sign
             else: (x^_t, z_{t+1}) = Natasha1.5(V_t, z_t), V_t = L + L_g max(0, |z - z_t| - d/L_H)^2, and store (z_t, x^_t)
    until N1 pairs are stored;  (x, x^) uniform over them
    return SGD3SC(W, x^),  W = L + L_g max(0, |z - x| - d/L_H)^2 + iota |z - x^|^2

Guarantee, for X = R^d: |grad L| <= eps_g and lambda_min >= -eps_H with probability at least 2/3, for suitable free constants;
for those of `theory.natasha2.FreeConstants`, which predictions use, too, it is argued there and not proved, and a run whose promise
rests on it says so. Deviations from the paper are those of `theory.natasha2`, `natasha15` and `sgd3sc`; with X smaller than R^d
moves are projected.
"""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from ...curvature import Search
from ...oracle import Work
from ...theory import natasha2, sgd3sc
from ..base import BROKEN, RUNNING, VERIFIED, Goal, Memory, Progress, fresh_progress
from .natasha15 import Natasha15Plan, natasha15
from .sgd3sc import Sgd3scState, SgdSchedule, pad_schedule, sgd3sc_run, sgd3sc_start
from .theory_mode import (
    SEARCH,
    SearchPlan,
    TheorySolver,
    counts,
    fair_sign,
    finite,
    known_constants,
    look,
    replaces,
    search_plan,
)


class Natasha2Plan(eqx.Module):
    """The parameters of Algorithm 4 as arrays, with those of its two subroutines."""

    pairs: jax.Array  # N1
    curvature_step: jax.Array  # d/L_H
    epoch: Natasha15Plan
    final: SgdSchedule
    search: SearchPlan


class Natasha2State(eqx.Module):
    """z_t in `progress`; pairs stored so far, the one chosen among them, and the last phase."""

    progress: Progress
    memory: Memory
    pairs: jax.Array
    centre: jax.Array  # x of the chosen pair
    chosen: jax.Array  # x^ of the chosen pair
    final: Sgd3scState


class Natasha2Theory(TheorySolver):
    """Settings of Natasha2 in theory mode; it needs the constants of the subproblem, and its guarantee is for X = R^d.

    **Arguments:**

    - `free`: the constants c_L, c_iota, c_B, c_q, c_eta, c_N, c_Lt, c_T that the paper leaves open.
    - `sharp`: sharper constants of the subproblem (`theory.constants`): the same guarantee for less work.
    - `search`: the negative-curvature search.
    - `surrogate`: the estimator that the theorems are about.
    """

    name: ClassVar[str] = "natasha2-theory"
    guarantee: ClassVar[float | None] = natasha2.SUCCESS_PROBABILITY
    chunk: ClassVar[int] = 8  # a step is a whole epoch

    free: natasha2.FreeConstants = eqx.field(static=True, default=natasha2.FreeConstants())
    sharp: bool = eqx.field(static=True, default=False)
    search: Search = SEARCH
    surrogate: str = eqx.field(static=True, default="pair")

    def plan(self, goal: Goal, dtype: Any) -> Natasha2Plan:
        """The parameters of Algorithms 4 and 5 and the schedule of SGD3SC for the goal."""
        constants = known_constants(goal, self.name)
        p = natasha2.parameters(constants, goal.gradient, goal.curvature, population=goal.population, free=self.free)
        pairs, batch, inner, total = counts(
            self.name,
            first_order_steps=p.first_order_steps,
            gradients_of_a_snapshot=p.epoch_batch,
            steps_of_a_sub_epoch=p.inner_steps,
            steps_of_an_epoch=p.sub_epochs * p.inner_steps,
        )
        counts(self.name, steps_of_the_last_phase=p.final_steps)
        return Natasha2Plan(
            pairs=pairs,
            curvature_step=jnp.asarray(p.curvature_step, dtype),
            epoch=Natasha15Plan(
                epoch_batch=batch,
                exact_resets=jnp.asarray(p.exact_resets),
                inner_steps=inner,
                total_steps=total,
                step_size=jnp.asarray(p.step_size, dtype),
                strong_nonconvexity=jnp.asarray(p.strong_nonconvexity, dtype),
                hinge_weight=jnp.asarray(p.hinge_weight, dtype),
                hinge_radius=jnp.asarray(p.curvature_step, dtype),
            ),
            final=pad_schedule(
                self.name, sgd3sc.schedule(p.strong_nonconvexity, p.final_smoothness, p.final_steps), dtype
            ),
            search=search_plan(
                self.name, constants, p.search_tolerance, p.search_failure, dtype, self.search, goal.dimension
            ),
        )

    def sizes(self, plan):
        """See `TheorySolver`."""
        return plan.epoch.step_size, jnp.int32(1), plan.epoch.epoch_batch

    def init(self, oracle, z, plan, memory, key):
        """At the start, before the first search."""
        z = oracle.project(z)
        return Natasha2State(fresh_progress(z, key), memory, jnp.int32(0), z, z, sgd3sc_start(z))

    def step(self, oracle, state, plan):
        """One search with the step or the epoch that follows from it; once all pairs are stored, one run of SGD3SC."""
        return jax.lax.cond(
            state.pairs < plan.pairs,
            lambda: self._iterate(oracle, state, plan),
            lambda: _finish(oracle, state, plan),
        )

    def _iterate(self, oracle, state: Natasha2State, plan: Natasha2Plan) -> Natasha2State:
        progress, z = state.progress, state.progress.z
        key_next, key_search, key_sign, key_epoch, key_pair = jax.random.split(progress.key, 5)
        found, looked = look(self.search, oracle, z, plan.search, key_search)

        def escape():
            along = fair_sign(key_sign, z.dtype) * plan.curvature_step * found.direction
            return z, oracle.project(z + along), progress.stationarity, Work.zero()

        def epoch():
            result = natasha15(oracle, z, plan.epoch, key_epoch)
            stationarity = jnp.linalg.norm(oracle.project_tangent(z, -result.gradient))
            return result.chosen, result.end, stationarity, result.work

        chosen, moved, stationarity, spent = jax.lax.cond(found.negative, escape, epoch)
        broken = ~finite(chosen, moved)
        pairs = state.pairs + (~found.negative).astype(jnp.int32)
        takes = ~found.negative & ~broken & replaces(key_pair, jnp.maximum(pairs, 1))
        centre, chosen = jnp.where(takes, z, state.centre), jnp.where(takes, chosen, state.chosen)
        complete = pairs >= plan.pairs
        return Natasha2State(
            Progress(
                z=jnp.where(broken, z, jnp.where(complete, chosen, moved)),
                key=key_next,
                steps=progress.steps + 1,
                status=jnp.where(broken, BROKEN, RUNNING).astype(jnp.int32),
                work=progress.work + looked + spent,
                searches=progress.searches + looked,
                stationarity=stationarity,
                curvature=found.curvature,
                escapes=progress.escapes + found.negative.astype(jnp.int32),
            ),
            state.memory,
            pairs,
            centre,
            chosen,
            state.final,
        )


def _finish(oracle, state: Natasha2State, plan: Natasha2Plan) -> Natasha2State:
    progress, z = state.progress, state.progress.z
    key_next, key_run = jax.random.split(progress.key)
    moved, final, spent = sgd3sc_run(
        oracle, z, state.final, plan.final, plan.epoch, state.centre, state.chosen, key_run
    )
    broken = ~finite(moved)
    ended = jnp.where(final.row >= plan.final.rows, VERIFIED, RUNNING)
    return Natasha2State(
        Progress(
            z=jnp.where(broken, z, moved),
            key=key_next,
            steps=progress.steps + 1,
            status=jnp.where(broken, BROKEN, ended).astype(jnp.int32),
            work=progress.work + spent,
            searches=progress.searches,
            stationarity=progress.stationarity,
            curvature=progress.curvature,
            escapes=progress.escapes,
        ),
        state.memory,
        state.pairs,
        state.centre,
        state.chosen,
        final,
    )
