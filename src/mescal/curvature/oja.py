"""Oja's method: stochastic power iteration with Hessian-vector products (the paper's Definition 4.1).

`Oja` is the one to use: mini-batches, constants estimated where they are not given (`power`).

`TheoryOja` is the method of the theorem, with all parameters from `theory.negative_curvature.oja`: R runs of

    w <- normalise(w + step (I/2 - H_theta/(2 L_g)) w),    one theta each, w kept at a uniformly random one of T steps,

the Rayleigh quotient of each on n fresh thetas, the lowest of them returned if it is below -threshold.

Deviation from the theorem: the face. w stays in the span of the face of X on which z lies, where the method is Oja's with
P H P and has its guarantee. A surrogate that needs two thetas for an estimate gets two.
"""

from dataclasses import replace
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..errors import InputError
from ..oracle import Work
from .contract import Found, Search, hessian_product, limit, no_values, nothing, on_face, random_direction, unit
from .power import WHOLE, in_small_chunks, select, walk


class Oja(Search):
    """Mini-batch power iteration.

    **Arguments:**

    - `gradient_lipschitz`: L_g, a bound on |H|; estimated if not given.
    - `hessian_noise`: s_H, with E|(H_theta - H) w|^2 <= s_H^2 for unit w; estimated if not given.
    - `failure`: p, the probability with which a random start may hide the lowest eigenvector.
    - `steps`: the cap on steps. Where T exceeds it, "nothing" proves less: T is about 4 ln(d/p) L_g/t.
    - `share`: of the tolerance, what the direction may be off the lowest by; 1 is the contract, less an eigen-solver.
    """

    name: ClassVar[str] = "oja"

    gradient_lipschitz: Any = None
    hessian_noise: Any = None
    failure: float = 0.01
    steps: int = eqx.field(static=True, default=10_000)
    share: float = WHOLE

    def told(self, known):
        """Constants that were not given are those of the subproblem, and so is the failure probability, of a start and a check."""
        if known is None:
            return self
        given = self.gradient_lipschitz, self.hessian_noise
        slope, noise = (
            new if own is None else own
            for own, new in zip(given, (known.gradient_lipschitz, known.hessian_noise), strict=True)
        )
        return eqx.tree_at(
            lambda search: (search.gradient_lipschitz, search.hessian_noise, search.failure),
            self,
            (slope, noise, known.failure),
            is_leaf=lambda leaf: leaf is None,
        )

    def finer(self, share, failure):
        """For `lowest`."""
        return replace(self, share=np.float32(share), failure=np.float32(failure))

    def __call__(self, oracle, z, tolerance, key, batch):
        """Pilot, iteration and verification on batches of at most `batch`."""
        tolerance = jnp.asarray(tolerance, z.dtype)
        oracle, cap = in_small_chunks(oracle), limit(oracle, batch)
        key_start, key_walk = jax.random.split(key)
        at, prepared = no_values(oracle, z), Work.zero()
        if oracle.population is not None:
            values = at
            at, prepared = jax.lax.cond(
                cap >= oracle.population, lambda: oracle.exact(z), lambda: (values, Work.zero())
            )

        def product(state, sample, n):
            return hessian_product(oracle, z, at, state.direction, sample, n)

        start = random_direction(oracle, z, key_start)
        known = self.gradient_lipschitz, self.hessian_noise
        found, work = walk(
            oracle, product, start, tolerance, key_walk, cap, *known, self.failure, self.steps, share=self.share
        )
        return found, prepared + work


class TheoryOja(Search):
    """Oja's method with the parameters of the theorem, all of them leaves; `tolerance` and `batch` are in them already.

    `TheoryOja()` is for theory modes: their plans have the parameters for every subproblem, so that they follow the penalty.

    **Arguments:**

    - `gradient_lipschitz`: L_g >= |H_theta|.
    - `runs`, `steps`, `step_size`, `verification_batch`, `threshold`: those of `theory.negative_curvature.oja`.
    """

    name: ClassVar[str] = "theory-oja"

    gradient_lipschitz: Any = None
    runs: Any = None
    steps: Any = None
    step_size: Any = None
    verification_batch: Any = None
    threshold: Any = None

    def told(self, known):
        """The parameters for the present subproblem, unless they were given."""
        if known is None or self.steps is not None:
            return self
        names = ("gradient_lipschitz", "runs", "steps", "step_size", "verification_batch", "threshold")
        return replace(self, **{name: getattr(known, name) for name in names})

    def __call__(self, oracle, z, tolerance, key, batch):
        """R (T + n) Hessian-vector products."""
        if self.steps is None:
            raise InputError(
                "TheoryOja() without parameters", "those of theory.negative_curvature.oja", "give them, or use Oja()"
            )
        dtype, single, steps = z.dtype, oracle.surrogate.smallest_batch, jnp.asarray(self.steps, jnp.int32)
        scale, size = jnp.asarray(self.gradient_lipschitz, dtype), jnp.asarray(self.step_size, dtype)

        def one_run(r, carry):
            best, work = carry
            own = jax.random.fold_in(key, r)
            key_start, key_steps, key_lottery, key_check = jax.random.split(own, 4)

            def step(i, state):
                w, kept, spent = state
                kept = jnp.where(i == chosen, w, kept)
                product, more = oracle.symmetric_hvp(z, w, jax.random.fold_in(key_steps, i), single)
                product = on_face(oracle, z, w, product)
                return unit(w + size * (w / 2 - product / (2 * scale))), kept, spent + more

            w = random_direction(oracle, z, key_start)
            chosen = jax.random.randint(key_lottery, (), 0, steps)  # T is known: a lottery in advance, no reservoir
            _, kept, spent = jax.lax.fori_loop(0, steps, step, (w, w, Work.zero()))
            product, checked = oracle.symmetric_hvp(z, kept, key_check, jnp.asarray(self.verification_batch, jnp.int32))
            rho = kept @ on_face(oracle, z, kept, product)
            found = Found(kept, rho, rho < -jnp.asarray(self.threshold, dtype))
            return select((r == 0) | (rho < best.curvature), found, best), work + spent + checked

        best, work = jax.lax.fori_loop(0, self.runs, one_run, (nothing(z), Work.zero()))
        return Found(jnp.where(best.negative, best.direction, 0), best.curvature, best.negative), work
