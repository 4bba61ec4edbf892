"""Stochastic power iteration towards the lowest eigenvector, and its verification: what Oja's method and Neon2 share.

    w <- normalise(w - step H_b w),   every batch of b thetas fresh

1. **Pilot.** Where L_g and s_H are not given: 8 power iterations towards the largest |eigenvalue|, each with the products
   of two fresh batches of n. Their mean moves v; L = 1.1 max |mean|, s^2 = max n |difference|^2 / 2, which is
   E|(H_theta - H) v|^2, the noise that disturbs the iteration.
2. **Iteration.** b = 2 s^2/(L t), step = min(1/(2L), b t/(4 s^2)), T = 2 ln(d/p)/(step t), rounded up, batches capped. The
   noise floor of the Rayleigh quotient, about step s^2/(2b), is then at most t/8. A component along an eigenvalue <= -t
   outgrows those along eigenvalues >= -t/2 by about exp(step t T/2) = d/p, those >= 0 by its square, and the start has at
   least p/d of it, but for a probability p sqrt(2/(pi d)).
   Every product gives a fresh, unbiased w'Hw for nothing: the loop ends early when its mean over 50 steps is at most -t,
   by 3 standard errors.
3. **Verification** of w on fresh samples, 8 groups, 4b or 128 thetas at first: found if mean + 3 s.e. <= -t/2, nothing
   if mean - 3 s.e. > -3t/4, else four times as many or more, up to the cap, where mean <= -5t/8 decides.

4. **As an eigen-solver** for `ConeSearch`: batch, step and T are those of a gap `share` t in place of t, there is no early exit,
   the curvature is measured to t/16, and what is at most -3t/4 counts as found.

L_g at least t is used: below it there is nothing to find. Deviations from the rule that was measured: p enters
T, since 2 ln d is no probability in few dimensions; the early exit averages 50 batches, since one batch has noise far
above t; the verification grows, since 4b thetas seldom resolve t/8.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from ..oracle import Lagrangian, Work
from .contract import ENOUGH, GROUPS, SURE, Found, Within, enlarged, nothing, spread, unit

PILOT_STEPS = 8  # power iterations of the pilot
PILOT_BATCH = 64  # thetas of each of its two batches
MARGIN = 1.1  # on the largest eigenvalue seen
WINDOW = 50  # steps between two looks at the mean Rayleigh quotient
FIRST = 4  # times the batch: thetas of the first verification
FEWEST = 128  # thetas of a verification at least: 16 per group, so that skewed curvatures have means that are not
REFUSED = 3 / 4  # of the tolerance: a direction surely above it is what is found where lambda_min >= -t
RESOLVED = 1 / 8  # of the tolerance: the error that a verification aims at
CHUNK = 64  # thetas of a micro-batch
WHOLE = 1.0  # share of the tolerance that plans an iteration: below it, it solves for the lowest eigenvector
MEASURED = 1 / 16  # of the tolerance: how finely the curvature of that is measured

PILOT, ITERATE, VERIFY, DONE = range(4)


class Walk(eqx.Module):
    """One flat loop through the stages, with one product in its body; `direction` is what is multiplied in each."""

    stage: jax.Array
    count: jax.Array  # of products in this stage
    direction: jax.Array
    before: jax.Array  # the product before, in the pilot
    lipschitz: jax.Array
    variance: jax.Array
    batch: jax.Array
    step: jax.Array
    steps: jax.Array
    growth: jax.Array  # ln |w| if it were not normalised, never below 0
    peak: jax.Array  # its maximum
    window: jax.Array  # mean Rayleigh quotient, and sum of squared deviations, since the last look
    curvatures: jax.Array  # of the groups
    found: Found
    work: Work


Product = Callable[[Walk, jax.Array, jax.Array], tuple[jax.Array, Work]]  # (walk, key, n) -> H walk.direction


def walk(
    oracle: Lagrangian,
    product: Product,
    start: jax.Array,
    tolerance: jax.Array,
    key: jax.Array,
    cap: jax.Array,
    lipschitz: Any,
    noise: Any,
    failure: float,
    most: int,
    escape: float = 0.0,
    share: Any = WHOLE,
) -> tuple[Found, Work]:
    """Search from a start on the face, in at most `most` steps; no verification where w never grew by exp(`escape`).

    With a `share` below 1 it is an eigen-solver: see 4 above.
    """
    dtype, whole = start.dtype, oracle.population
    logarithm = 2 * jnp.log(start.size / jnp.asarray(failure, dtype))
    share = jnp.asarray(share, dtype)
    gap, solving = share * tolerance, share < WHOLE

    def is_whole(n: jax.Array) -> jax.Array:
        return jnp.asarray(False) if whole is None else n >= whole

    def planned(state: Walk) -> Walk:
        """Batch, step and number of steps from the constants; back to the start."""
        largest = jnp.asarray(state.lipschitz if lipschitz is None else lipschitz, dtype)
        largest = jnp.maximum(largest, tolerance)
        variance = state.variance if noise is None else jnp.asarray(noise, dtype) ** 2
        batch = clipped(jnp.ceil(2 * variance / (largest * gap)), oracle.surrogate.smallest_batch, cap)
        disturbed = jnp.where(is_whole(batch), 0, variance) / batch.astype(dtype)
        step = 1 / jnp.maximum(2 * largest, 4 * disturbed / gap)
        steps = clipped(jnp.ceil(logarithm / (step * gap)), 1, most)
        return replace(
            state,
            stage=jnp.int32(ITERATE),
            count=jnp.int32(0),
            direction=start,
            lipschitz=largest,
            batch=batch,
            step=step,
            steps=steps,
        )

    def pilot(state: Walk, product: jax.Array) -> Walk:
        """The second product with one v: noise from their difference, a power iteration with their mean."""
        second = state.count % 2 == 1
        mean, difference = (product + state.before) / 2, product - state.before
        size, noise = jnp.linalg.norm(mean), state.batch.astype(dtype) / 2 * (difference @ difference)
        state = replace(
            state,
            direction=jnp.where(second & (size > 0), unit(mean), state.direction),
            before=product,
            lipschitz=jnp.where(second, jnp.maximum(state.lipschitz, MARGIN * size), state.lipschitz),
            variance=jnp.where(second, jnp.maximum(state.variance, noise), state.variance),
            count=state.count + 1,
        )
        return select(state.count == 2 * PILOT_STEPS, planned(state), state)

    def iterate(state: Walk, product: jax.Array) -> Walk:
        """One step, and after 50 a look at the mean Rayleigh quotient."""
        moved = state.direction - state.step * product
        length = jnp.linalg.norm(moved)
        growth = jnp.maximum(state.growth + jnp.log(length), 0)
        rayleigh, seen = state.direction @ product, state.count % WINDOW
        delta = rayleigh - state.window[0]
        mean = state.window[0] + delta / (seen + 1)
        squares = state.window[1] + delta * (rayleigh - mean)
        full = seen == WINDOW - 1
        enough = ~solving & full & (mean + SURE * jnp.sqrt(squares / (WINDOW * (WINDOW - 1))) <= -tolerance)
        state = replace(
            state,
            direction=unit(moved),
            growth=growth,
            peak=jnp.maximum(state.peak, growth),
            window=jnp.where(full, 0, jnp.stack([mean, squares])),
            found=Found(state.found.direction, mean, state.found.negative),
            count=state.count + 1,
        )
        over = enough | (state.count >= state.steps) | ~jnp.isfinite(length)
        first = clipped(FIRST * state.batch.astype(dtype), FEWEST, cap)
        after = jnp.where(enough | (state.peak >= escape), VERIFY, DONE).astype(jnp.int32)
        return select(over, replace(state, stage=after, count=jnp.int32(0), batch=first), state)

    def verify(state: Walk, product: jax.Array) -> Walk:
        """One group of fresh samples; the last one decides, or asks for more."""
        group, exact = state.count % GROUPS, is_whole(state.batch)
        curvature = state.direction @ product
        curvatures = jnp.where(exact, curvature, state.curvatures.at[group].set(curvature))
        mean, error = spread(curvatures)
        sure = mean + SURE * error <= -tolerance / 2
        refused = mean - SURE * error > -REFUSED * tolerance
        last = state.batch >= cap
        negative = sure | (last & (mean <= -ENOUGH * tolerance))
        sure = jnp.where(solving, SURE * error <= MEASURED * tolerance, negative | refused)
        negative = jnp.where(solving, mean <= -REFUSED * tolerance, negative)
        complete = exact | (group == GROUPS - 1)
        done = complete & (sure | last)
        aim = jnp.where(solving, MEASURED, RESOLVED)
        larger = enlarged(state.batch, SURE * error / (aim * tolerance), cap)
        return replace(
            state,
            stage=jnp.where(done, DONE, VERIFY).astype(jnp.int32),
            batch=jnp.where(complete & ~done, larger, state.batch),
            curvatures=curvatures,
            count=state.count + 1,
            found=Found(jnp.where(negative, state.direction, 0), mean, negative),
        )

    def advance(state: Walk) -> Walk:
        grouped = (state.stage == VERIFY) & ~is_whole(state.batch)
        n = jnp.where(grouped, jnp.maximum(state.batch // GROUPS, oracle.surrogate.smallest_batch), state.batch)
        sample = jax.random.fold_in(jax.random.fold_in(key, state.stage), state.count)
        answer, spent = product(state, sample, n)
        state = replace(state, work=state.work + spent)
        return jax.lax.switch(state.stage, (pilot, iterate, verify), state, answer)

    zero = jnp.zeros((), dtype)
    begin = Walk(
        stage=jnp.int32(PILOT),
        count=jnp.int32(0),
        direction=start,
        before=jnp.zeros_like(start),
        lipschitz=zero,
        variance=zero,
        batch=jnp.minimum(jnp.int32(PILOT_BATCH), cap),
        step=zero,
        steps=jnp.int32(0),
        growth=zero,
        peak=zero,
        window=jnp.zeros(2, dtype),
        curvatures=jnp.zeros(GROUPS, dtype),
        found=nothing(start),
        work=Work.zero(),
    )
    if lipschitz is not None and noise is not None:
        begin = planned(begin)
    end = jax.lax.while_loop(lambda state: state.stage != DONE, advance, begin)
    return end.found, end.work


def in_small_chunks(oracle: Any) -> Any:
    """The same oracle for thousands of small batches: a batch is computed in whole micro-batches."""
    if isinstance(oracle, Within):
        return replace(oracle, oracle=in_small_chunks(oracle.oracle))
    return replace(oracle, micro=min(oracle.micro, CHUNK))


def clipped(value: jax.Array, low: int, high: Any) -> jax.Array:
    """A count computed in floating point as an integer between two bounds; NaN gives the lower one."""
    bound = jnp.asarray(high, jnp.int32)
    inside = jnp.fmax(value, low) < bound
    return jnp.where(inside, jnp.fmax(value, low), 0).astype(jnp.int32) + jnp.where(inside, 0, bound)


def select(condition: jax.Array, first: Any, second: Any) -> Any:
    """One of two states."""
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), first, second)
