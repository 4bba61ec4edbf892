"""Neon2: negative curvature from gradients alone (Allen-Zhu and Li 2018; the paper's Definition 4.3), the runnable variant.

    x <- x - step (g_b(x) - g_b(x_0)),   from |x - x_0| = 1e-4 r to the escape radius r = t/(10 L_H),   x_0 = z,

same samples at both points; no escape in T = 2 ln(d/1e-4)/(step t) steps: nothing. Else the direction is verified on fresh
samples with differences of length t/(4 L_H). Batch, step and verification are those of `power`, which this is, with
(g_b(z + l w) - g_b(z - l w)) / (2 l) for H_b w, l = |x - x_0|.

**Rounding.** A difference quotient of length l errs by L_H l/2 and, as gradients are known to `rounding` only, by
rounding/l. So l is at least 8 rounding/t, which makes the second error t/8 at most. The rounding is measured: it is
|g_b(z + h u) - g_b(z)| for the shortest step that changes z, h = 4 eps max(1, |z|); in theory it is eps (|g_theta| + L_g |z|).
Float64 leaves lengths of 1e-4 r and above alone. Float32 (eps = 1.2e-7) raises the short ones; at l = 8 rounding/t the
first error is t/8, too, while t >= sqrt(32 rounding L_H), about 3e-3 for functions of unit size.

Where L_H is not given it is 1.5 max |g_b(z + h u) - 2 g_b(z) + g_b(z - h u)|/h^2 over 4 random u, h = eps^(1/4) max(1, |z|),
and at least L_g/(10 max(1, |z|)).

Deviations from the source:

1. Its perturbation (d/p)^(-2 C0) step^2 t^3/L_H underflows; this is the variant that floating point can run.
2. Differences are central: the same price, exact to second order in l, and a low estimate of L_H does less harm.
3. After an escape the iteration goes on at the radius, to T steps or the early exit of `power`, in place of three restarts;
   x never comes closer than 1e-4 r. With the direction normalised and the length apart, both are the same iteration.
4. z +- l w may leave X by l, at most the larger of 5/2 t max(1, |z|)/L_g and 8 rounding/t: functions must be defined there.
"""

import math
from dataclasses import replace
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..oracle import Lagrangian, Work
from .contract import Search, limit, on_face, random_direction
from .power import PILOT, PILOT_BATCH, VERIFY, WHOLE, in_small_chunks, walk

PERTURBATION = 1e-4  # of the escape radius
RADIUS = 1 / 10  # t/L_H: the escape radius
PROBE = 1 / 4  # t/L_H: length of the differences that verify; they err by t/8 at most
CLEAR = 8  # roundings / t: the shortest difference; it errs by t/8 at most
BENDS = 4  # directions in which the Hessian's change is looked at
BEND_MARGIN = 1.5  # on the largest change seen


class Neon2(Search):
    """Gradient-only search.

    **Arguments:**

    - `gradient_lipschitz`, `hessian_noise`, `hessian_lipschitz`: L_g, s_H, L_H; estimated if not given.
    - `steps`: the cap on steps. Where T exceeds it, "nothing" proves less: T is about 4 ln(d/1e-4) L_g/t.
    - `share`: as for `Oja`.
    """

    name: ClassVar[str] = "neon2"

    gradient_lipschitz: Any = None
    hessian_noise: Any = None
    hessian_lipschitz: Any = None
    steps: int = eqx.field(static=True, default=10_000)
    share: float = WHOLE

    def told(self, known):
        """Constants that were not given are those of the subproblem."""
        if known is None:
            return self
        names = ("gradient_lipschitz", "hessian_noise", "hessian_lipschitz")
        return replace(self, **{name: getattr(known, name) for name in names if getattr(self, name) is None})

    def finer(self, share, failure):
        """For `lowest`; its failure probability is not at choice."""
        return replace(self, share=np.float32(share))

    def __call__(self, oracle, z, tolerance, key, batch):
        """Probes for L_H and rounding, then pilot, iteration and verification on batches of at most `batch`."""
        tolerance = jnp.asarray(tolerance, z.dtype)
        oracle, cap, dtype = in_small_chunks(oracle), limit(oracle, batch), z.dtype
        key_start, key_probes, key_walk = jax.random.split(key, 3)
        unit_length = jnp.maximum(jnp.linalg.norm(z), 1)
        bend, rounding, probed = probe(oracle, z, unit_length, key_probes, jnp.minimum(PILOT_BATCH, cap))
        if self.hessian_lipschitz is not None:
            bend = jnp.asarray(self.hessian_lipschitz, dtype)
        shortest = CLEAR * rounding / tolerance

        def length(state):
            """|x - x_0| of this stage."""
            least = jnp.maximum(bend, state.lipschitz / (10 * unit_length))
            radius = RADIUS * tolerance / least
            growing = jnp.minimum(PERTURBATION * radius * jnp.exp(state.growth), radius)
            pilot = unit_length * jnp.finfo(dtype).eps ** (1 / 3)  # balances h^2 against rounding/h
            chosen = jnp.where(state.stage == VERIFY, PROBE * tolerance / least, growing)
            return jnp.where(state.stage == PILOT, pilot, jnp.maximum(chosen, shortest))

        def product(state, sample, n):
            ell = length(state)
            change, work = central_change(oracle, z, ell * state.direction, sample, n)
            return on_face(oracle, z, state.direction, change / (2 * ell)), work

        start = random_direction(oracle, z, key_start)
        known = self.gradient_lipschitz, self.hessian_noise
        escape = -math.log(PERTURBATION)
        found, work = walk(
            oracle, product, start, tolerance, key_walk, cap, *known, PERTURBATION, self.steps, escape, self.share
        )
        return found, probed + work


def central_change(
    oracle: Lagrangian, z: jax.Array, step: jax.Array, key: jax.Array, n: jax.Array
) -> tuple[jax.Array, Work]:
    """g(z + step) - g(z - step) on the same n thetas; exact where n reaches the population."""

    def sampled():
        return oracle.difference(z + step, z - step, key, n)

    def exact():
        (first, second), works = jax.lax.map(lambda y: _exact_gradient(oracle, y), jnp.stack([z + step, z - step]))
        one = jax.tree.map(lambda leaf: leaf[0], works)
        return first - second, one + one

    if oracle.population is None:
        return sampled()
    return jax.lax.cond(n >= oracle.population, exact, sampled)


def probe(
    oracle: Lagrangian, z: jax.Array, unit_length: jax.Array, key: jax.Array, n: jax.Array
) -> tuple[jax.Array, jax.Array, Work]:
    """Estimates of L_H and of the rounding of a gradient difference, from gradients at z and on both sides of it."""
    eps = jnp.finfo(z.dtype).eps
    lengths = unit_length * jnp.asarray([eps**0.25] * BENDS + [4 * eps], z.dtype)

    def one(i):
        key_direction, key_sample = jax.random.split(jax.random.fold_in(key, i))
        step = lengths[i] * random_direction(oracle, z, key_direction)
        points = jnp.stack([z, z + step, z - step])
        gradients, works = jax.vmap(lambda y: oracle.gradient(y, key_sample, n))(points)
        middle, ahead, behind = jax.vmap(lambda g: oracle.project_face(z, g))(gradients)
        work = jax.tree.map(lambda leaf: leaf[0], works)
        return jnp.linalg.norm(ahead - 2 * middle + behind), jnp.linalg.norm(ahead - middle), work + work + work

    bends, changes, works = jax.lax.map(one, jnp.arange(BENDS + 1))
    work = Work.zero()
    for i in range(BENDS + 1):
        work = work + jax.tree.map(lambda leaf, i=i: leaf[i], works)
    return BEND_MARGIN * jnp.max(bends[:BENDS] / lengths[:BENDS] ** 2), changes[BENDS], work


def _exact_gradient(oracle: Lagrangian, y: jax.Array) -> tuple[jax.Array, Work]:
    values, work = oracle.exact(y)
    return values.gradient, work
