"""The recursion of Natasha2 (Allen-Zhu 2018; the paper's Algorithms 4 and 5): its steps, whoever set its plan.

    repeat:  v = search(z_t);  found: z_{t+1} = z_t +- (d/L_H) v, fair sign
             else: (x^_t, z_{t+1}) = Natasha1.5(V_t, z_t), V_t = L + L_g max(0, |z - z_t| - d/L_H)^2, and store (z_t, x^_t)
    until N1 pairs are stored;  (x, x^) uniform over them
    return SGD3SC(W, x^),  W = L + L_g max(0, |z - x| - d/L_H)^2 + iota |z - x^|^2

Natasha1.5 and SGD3SC are files of their own; with X smaller than R^d moves are projected.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from ...curvature import Search
from ...oracle import Work
from ..base import BROKEN, RUNNING, VERIFIED, Memory, Progress, fresh_progress
from .natasha15 import Natasha15Plan, natasha15
from .sgd3sc import Sgd3scState, SgdSchedule, sgd3sc_run, sgd3sc_start
from .theory_mode import fair_sign, finite, look, replaces


class Natasha2Plan(eqx.Module):
    """The parameters of Algorithm 4 as arrays, with those of its two subroutines."""

    pairs: jax.Array  # N1
    curvature_step: jax.Array  # d/L_H
    epoch: Natasha15Plan
    final: SgdSchedule
    search: Any  # a `SearchPlan`, or one set by hand


class Natasha2State(eqx.Module):
    """z_t in `progress`; pairs stored so far, the one chosen among them, and the last phase."""

    progress: Progress
    memory: Memory
    pairs: jax.Array
    centre: jax.Array  # x of the chosen pair
    chosen: jax.Array  # x^ of the chosen pair
    final: Sgd3scState


class Natasha2Steps(eqx.Module):
    """A search with the step or the epoch that follows from it, or a run of the last phase, at a time; compiled."""

    search: Search

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
