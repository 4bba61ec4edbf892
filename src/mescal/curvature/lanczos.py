"""Sub-sampled Lanczos: the smallest Ritz pair of the Hessian of one batch, checked on fresh samples.

For one fixed batch of b thetas, Lanczos steps with full reorthogonalisation from a random start v on the face give a
tridiagonal T, the Ritz pair (rho, u) of H_b, and the polynomial p_k with q_{k+1} = p_k(H_b) v. They end when

- **none**: |p_k(-3t/4)| > 1/delta, delta = p sqrt(pi/(2d)), and -3t/4 is below all Ritz values. The component of v along
  the lowest eigenvector e exceeds delta but for p, and |p_k(lambda_min)| |v'e| = |q_{k+1}'e| <= 1; |p_k| decreases on the
  left of the Ritz values, so lambda_min(H_b) > -3t/4. With the pivots of T + 3t/4 = LDL', |p_k| = prod pivot_j/beta_j.
  (van Dorsselaer, Hochstenbach, van der Vorst 2000; far fewer steps than the bound of Kuczynski and Wozniakowski.)
- **some**: a Ritz value is below -3t/4 and the residual beta_k |y_k| of its pair is small;
- or the cap on steps is reached, and the Ritz value decides with nothing proved.

Then u'Hu is measured on fresh samples, with its standard error e:

- none, and 3e <= t/4: nothing. The noise of H_b along the lowest eigenvector of H is then taken to be below t/4, too.
- rho <= -5t/8, and mean + 3e <= -t/2: u.
- else the batch grows, at least fourfold, up to the cap, where mean <= -5t/8 decides. A refuted u alone proves nothing:
  the lowest eigenvector of a small batch fits its noise.

At the size of a finite population the exact Hessian is used and no check is needed. Lanczos needs a symmetric H_b: the
surrogates `ustat` and `cross` have one, that of `pair` is symmetrised (`Lagrangian.symmetric_hvp`).

All products with H, of Lanczos and of the check, are asked for at one place, in one flat loop: every such place is
compiled anew, and a search is part of every solver.
"""

import math
from dataclasses import replace
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from ..oracle import Work
from .contract import (
    ENOUGH,
    GROUPS,
    SURE,
    Found,
    Search,
    enlarged,
    hessian_product,
    limit,
    no_values,
    nothing,
    random_direction,
    spread,
    unit,
)

LOWEST = 3 / 4  # of the tolerance: what the batch must prove before it says "none"; t/8 below ENOUGH
NOISE = 1 / 4  # of the tolerance: what is left for the sampling error of "none"
RESIDUAL = 0.1  # of the tolerance, or of a lower Ritz value: a Ritz pair is good enough
ROUND = 4  # Lanczos steps between two looks at a Ritz value that is negative enough
BREAKDOWN = 10  # roundings of H: a remainder below them ends the Krylov space


class Krylov(eqx.Module):
    """k Lanczos steps on one batch: H_b Q = Q T + beta_k q_{k+1} e_k'. Row k of `basis` is the next direction."""

    basis: jax.Array
    diagonal: jax.Array
    offdiagonal: jax.Array
    taken: jax.Array
    pivot: jax.Array  # the last of LDL' = T + 3t/4
    certainty: jax.Array  # ln |p_k(-3t/4)|
    below: jax.Array  # whether a Ritz value lies below -3t/4
    scale: jax.Array  # the size of H, as far as seen


class State(eqx.Module):
    """One flat loop: Lanczos steps while `checks` is -1, then groups of fresh samples, then perhaps a larger batch."""

    batch: jax.Array
    attempt: jax.Array
    checks: jax.Array
    krylov: Krylov
    ritz: jax.Array
    direction: jax.Array
    candidate: jax.Array  # whether the batch says "some"
    curvatures: jax.Array  # of the groups
    at: Any  # exact values at z, once the batch is the population
    found: Found
    done: jax.Array
    work: Work


class Lanczos(Search):
    """Sub-sampled Lanczos search.

    **Arguments:**

    - `steps`: the cap on Lanczos steps.
    - `first_batch`: thetas of the first attempt.
    - `failure`: p, the probability with which a random start may hide the lowest eigenvector.
    """

    name: ClassVar[str] = "lanczos"

    steps: int = eqx.field(static=True, default=40)
    first_batch: int = eqx.field(static=True, default=128)
    failure: float = eqx.field(static=True, default=0.01)

    def __call__(self, oracle, z, tolerance, key, batch):
        """Search with batches growing from `first_batch` to `batch` until fresh samples agree."""
        tolerance = jnp.asarray(tolerance, z.dtype)
        whole, cap, steps = oracle.population, limit(oracle, batch), min(self.steps, z.size)
        needed = -math.log(self.failure * math.sqrt(math.pi / (2 * z.size)))  # ln 1/delta

        def advance(state: State) -> State:
            checking = state.checks >= 0
            at, prepared = state.at, Work.zero()
            if whole is not None:
                wanted = ~checking & (state.krylov.taken == 0) & (state.batch >= whole)
                at, prepared = jax.lax.cond(wanted, lambda: oracle.exact(z), lambda: (state.at, Work.zero()))
            v = jnp.where(checking, state.direction, state.krylov.basis[state.krylov.taken])
            n = jnp.where(checking, jnp.maximum(state.batch // GROUPS, 2), state.batch)
            sample = jax.random.fold_in(key, (GROUPS + 1) * state.attempt + state.checks + 2)  # 0 is the start's
            product, spent = hessian_product(oracle, z, at, v, sample, n)
            state = replace(state, at=at, work=state.work + prepared + spent)
            return jax.lax.cond(checking, check, extend, state, product)

        def extend(state: State, product: jax.Array) -> State:
            """One Lanczos step; with the whole population, the last one decides."""
            krylov, remainder = lanczos_step(state.krylov, product, -LOWEST * tolerance)
            none = ~krylov.below & (krylov.certainty > needed)
            over = none | (krylov.taken == steps) | (remainder == 0)
            early = krylov.below & ((krylov.taken % ROUND == 0) | (remainder <= RESIDUAL * tolerance))
            ritz, direction, residual = jax.lax.cond(
                over | early,
                lambda: smallest_pair(krylov, remainder),
                lambda: (state.ritz, state.direction, jnp.asarray(jnp.inf, z.dtype)),
            )
            over = over | (residual <= RESIDUAL * jnp.maximum(tolerance, -ritz))
            exact = jnp.asarray(False) if whole is None else state.batch >= whole
            candidate = over & ~none & (ritz <= -ENOUGH * tolerance)
            negative = candidate & exact
            return replace(
                state,
                checks=jnp.where(over, 0, -1).astype(jnp.int32),
                krylov=krylov,
                ritz=ritz,
                direction=direction,
                candidate=candidate,
                found=Found(jnp.where(negative, direction, 0), ritz, negative),
                done=over & exact,
            )

        def check(state: State, product: jax.Array) -> State:
            """One group of fresh samples; the last one decides, or asks for a larger batch."""
            curvatures = state.curvatures.at[state.checks].set(state.direction @ product)
            mean, error = spread(curvatures)
            candidate, last = state.candidate, state.batch >= cap
            sure = mean + SURE * error <= -tolerance / 2
            negative = candidate & (sure | (last & (mean <= -ENOUGH * tolerance)))
            none = ~candidate & (SURE * error <= NOISE * tolerance)
            complete = state.checks == GROUPS - 1
            done = complete & (negative | none | last)
            again = complete & ~done
            larger = enlarged(state.batch, SURE * error / (NOISE * tolerance), cap)
            return replace(
                state,
                batch=jnp.where(again, larger, state.batch),
                attempt=state.attempt + again,
                checks=jnp.where(again, -1, state.checks + 1).astype(jnp.int32),
                krylov=restarted(state.krylov, again),
                curvatures=curvatures,
                found=Found(jnp.where(negative, state.direction, 0), jnp.where(candidate, mean, state.ritz), negative),
                done=done,
            )

        start = State(
            batch=jnp.minimum(jnp.int32(self.first_batch), cap),
            attempt=jnp.int32(0),
            checks=jnp.int32(-1),
            krylov=empty(random_direction(oracle, z, jax.random.fold_in(key, 0)), steps),
            ritz=jnp.zeros((), z.dtype),
            direction=jnp.zeros_like(z),
            candidate=jnp.asarray(False),
            curvatures=jnp.zeros(GROUPS, z.dtype),
            at=no_values(oracle, z),
            found=nothing(z),
            done=jnp.asarray(False),
            work=Work.zero(),
        )
        end = jax.lax.while_loop(lambda state: ~state.done, advance, start)
        return end.found, end.work


def empty(start: jax.Array, steps: int) -> Krylov:
    """No step taken yet."""
    zero, zeros = jnp.zeros((), start.dtype), jnp.zeros(steps, start.dtype)
    basis = jnp.zeros((steps + 1, start.size), start.dtype).at[0].set(start)
    return Krylov(basis, zeros, zeros, jnp.int32(0), jnp.ones_like(zero), zero, jnp.asarray(False), zero)


def restarted(krylov: Krylov, again: jax.Array) -> Krylov:
    """Back to the start direction, which row 0 of the basis still holds."""
    return replace(
        krylov,
        taken=jnp.where(again, 0, krylov.taken),
        certainty=jnp.where(again, 0, krylov.certainty),
        below=krylov.below & ~again,
    )


def lanczos_step(krylov: Krylov, product: jax.Array, shift: jax.Array) -> tuple[Krylov, jax.Array]:
    """The step that follows from the product with the last row of the basis; and beta, 0 at a breakdown."""
    j, dtype = krylov.taken, product.dtype
    known = (jnp.arange(krylov.basis.shape[0], dtype=j.dtype) <= j).astype(
        dtype
    )  # later rows may be left over from a smaller batch
    alpha = krylov.basis[j] @ product
    w = product
    for _ in range(2):  # twice is enough
        w = w - (known * (krylov.basis @ w)) @ krylov.basis
    beta = jnp.linalg.norm(w)
    scale = jnp.maximum(jnp.where(j == 0, 0, krylov.scale), jnp.abs(alpha) + beta)
    beta = jnp.where(beta > BREAKDOWN * jnp.finfo(dtype).eps * scale, beta, 0)
    link = jnp.where(j == 0, 0, krylov.offdiagonal[j - 1])
    pivot = alpha - shift - link**2 / krylov.pivot
    below = krylov.below | ~(pivot > 0)
    return Krylov(
        basis=krylov.basis.at[j + 1].set(jnp.where(beta > 0, w / jnp.where(beta > 0, beta, 1), 0)),
        diagonal=krylov.diagonal.at[j].set(alpha),
        offdiagonal=krylov.offdiagonal.at[j].set(beta),
        taken=j + 1,
        pivot=jnp.where(below, 1, pivot),
        certainty=krylov.certainty + jnp.log(jnp.where(below, 1, pivot)) - jnp.log(beta),
        below=below,
        scale=scale,
    ), beta


def smallest_pair(krylov: Krylov, remainder: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Smallest Ritz value, its vector, and its residual; steps not taken sit above all others (Gershgorin)."""
    taken = jnp.arange(krylov.diagonal.size) < krylov.taken
    diagonal, links = jnp.where(taken, krylov.diagonal, 0), jnp.where(taken[1:], krylov.offdiagonal[:-1], 0)
    top = jnp.max(jnp.abs(diagonal)) + 2 * jnp.max(jnp.abs(links), initial=0)
    above = jnp.where(top > 0, 2 * top, 1)
    tridiagonal = jnp.diag(jnp.where(taken, diagonal, above)) + jnp.diag(links, 1) + jnp.diag(links, -1)
    values, vectors = jnp.linalg.eigh(tridiagonal)
    y = vectors[:, 0]
    return values[0], unit(y @ krylov.basis[:-1]), remainder * jnp.abs(y[krylov.taken - 1])
