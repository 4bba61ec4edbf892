"""What the theory modes share: constants, counts that fit a device, the search's batch, resets, choices, the outcome.

A theory mode takes every parameter from the formulas of `theory`, which hold for X = R^d. Each move is projected onto X, so
that iterates stay feasible for any X; the guarantees are those of X = R^d. An inner solve ends as VERIFIED when the
algorithm reached the end that its theorem speaks of, with the theorem's probability and no further check; as EXHAUSTED
when it used up its steps without; as BROKEN when an estimate was not finite, with the last point where it was. The cap
`steps` of a goal is not used: the theorems say how many steps there are.
"""

import abc
import math
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from ...checks import one_of, real_number
from ...compiling import compiled
from ...curvature import Found, Lanczos, Search, TheoryOja
from ...curvature.contract import Known
from ...errors import InputError, InputTypeError
from ...oracle import Lagrangian, Work
from ...theory import concentration, negative_curvature
from ...theory.constants import ProblemConstants, SubproblemConstants
from ..base import Goal, Outcome, SubSolver
from ..move import paired_differences
from ..reset import regularity

LARGEST = 2**31 - 1  # what a 32-bit counter holds

# One batch, as large as the theorem asks, from the start: no growing from small ones. The random start fails far less
# often than any theorem allows, at the price of a logarithm. Up to 256 variables the Krylov space is complete; beyond, a plan
# that may need more steps is refused (`search_plan`).
SEARCH = Lanczos(steps=256, first_batch=LARGEST, failure=1e-9)


class SearchPlan(eqx.Module):
    """Tolerance of a search, and what its batch b = ceil(a (ln d + l)) takes for d variables (sub-sampled Lanczos).

    Oja's method and Neon2, where they were asked for, have their parameters from `known`: those of this subproblem.
    """

    tolerance: jax.Array
    factor: jax.Array  # a = 128 (s_H/t)^2
    logarithm: jax.Array  # l = ln(4/p)
    known: Known | None

    def batch(self, dimension: int) -> jax.Array:
        """Thetas that a search in `dimension` variables looks at together, on 32 bits."""
        asked = jnp.ceil(self.factor * (math.log(dimension) + self.logarithm))
        return jnp.maximum(1, jnp.minimum(asked, float(LARGEST // 2))).astype(jnp.int32)


# Converters, and not `__check_init__`: Equinox looks at static fields in between, and warns of what is refused here.
def _constants(given: Any) -> ProblemConstants | None:
    if given is not None and not isinstance(given, ProblemConstants):
        raise InputTypeError(
            f"constants={type(given).__name__}", "theory.ProblemConstants", "see theory.estimate(problem, x0)"
        )
    return given


def _success(given: Any) -> float | None:
    probability = real_number(given)
    if given is not None and not 0 < (probability or 0) < 1:
        raise InputError(f"success={given!r}", "a probability between 0 and 1", "write for example success=0.95")
    return probability


def _option(given: Any) -> str:
    return one_of("I", "II", advice="write 'I' (in expectation) or 'II' (with a probability)")("option", given)


class TheorySolver(SubSolver):
    """A solver whose parameters are those of its theorem; `guarantee` is the success probability that this promises.

    **Arguments**, beside those of each:

    - `constants`: what the theorems assume of the problem; without them they are estimated from samples, and a warning says so.
      A theory mode bounds its multipliers, scales nothing, and ends after the outer iterations that its theorem counts.
    - `success`: boost it to this success probability instead of its theorem's 1/2, 5/8 or 2/3.
    - `option`: of Algorithm 1: `"II"`, with that probability, or `"I"`, in expectation.
    """

    mode: ClassVar[str] = "theory"
    host: ClassVar[bool] = False
    chunk: ClassVar[int] = 1024

    sharp: eqx.AbstractVar[bool]
    search: eqx.AbstractVar[Search]
    surrogate: eqx.AbstractVar[str]

    constants: ProblemConstants | None = eqx.field(static=True, default=None, converter=_constants)
    success: float | None = eqx.field(static=True, default=None, converter=_success)
    option: str = eqx.field(static=True, default="II", converter=_option)

    def __check_init__(self):
        if self.option == "I" and self.success is not None:
            raise InputError(
                f"success={self.success} beside option='I'",
                "a success probability with option='II' alone",
                "leave one of them out: Option I promises an expectation",
            )

    def sized(self, population: int | None) -> "TheorySolver":
        """Itself without what the schedule alone asks for: other constants share compiled programs."""
        return replace(self, constants=None, success=None, option="II")

    @abc.abstractmethod
    def sizes(self, plan: Any) -> tuple[jax.Array, jax.Array, jax.Array]:
        """The step, the thetas of a recursive step, and those of a reset, for people to look at."""

    def outcome(self, oracle, start, state, plan, goal):
        """The returned point with L, c and |P_T(-grad L)| there, measured afresh: no theorem leaves them at hand."""
        progress = state.progress
        key = jax.random.fold_in(progress.key, 0x0D)
        seen, work = measure(oracle, start, progress.z, key, jnp.int32(goal.dual_batch))
        step, batch, large = self.sizes(plan)
        return Outcome(
            z=progress.z,
            value=seen.value,
            first_value=seen.first_value,
            objective=float(seen.objective),
            constraint=seen.constraint,
            multipliers=seen.multipliers,
            stationarity=seen.stationarity,
            regularity=seen.regularity,
            step=float(step),
            batch=int(batch),
            large_batch=int(large),
        ), work.tally()  # fmt: skip


class Seen(eqx.Module):
    """What is measured at the end of an inner solve."""

    value: jax.Array
    first_value: jax.Array
    objective: jax.Array
    constraint: jax.Array
    multipliers: jax.Array
    stationarity: jax.Array
    regularity: jax.Array


@compiled
def measure(oracle: Lagrangian, start: jax.Array, z: jax.Array, key: jax.Array, n: jax.Array) -> tuple[Seen, Work]:
    """L, f, c and stationarity at z: exact on finite populations, from n fresh thetas (the dual sample S^d) on streams.

    On a stream L(start) is taken as zero and L(z) as the difference of the two on common thetas, another n of them.
    """
    start = oracle.project(start)
    if oracle.population is None:
        at, work = oracle.estimate(z, jax.random.fold_in(key, 0), n)
        change, _, compared = paired_differences(oracle, z[None], start, jax.random.fold_in(key, 1), n)
        first, value, objective = jnp.zeros((), z.dtype), change[0], at.objective
    else:
        at, work = oracle.exact(z)
        first, compared = oracle.exact_value(start)
        value = at.value
        objective = value - (oracle.multipliers + oracle.penalty / 2 * at.constraint) @ at.constraint
    multipliers = oracle.multipliers + oracle.penalty * at.constraint
    stationarity = jnp.linalg.norm(oracle.project_tangent(z, -at.gradient))
    seen = Seen(value, first, objective, at.constraint, multipliers, stationarity, regularity(oracle, z, at))
    return seen, work + compared


def known_constants(goal: Goal, name: str) -> SubproblemConstants:
    """The constants of the subproblem, without which there are no formulas to use."""
    if not isinstance(goal.constants, SubproblemConstants):
        raise InputError(
            f"solver {name!r} was given no constants of the subproblem",
            "the Lipschitz constants, noise bounds and gap that the theorems assume",
            "give the constants of the problem (theory.ProblemConstants, or theory.SubproblemConstants for one"
            f" subproblem), or use {name.removesuffix('-theory')!r}, which needs none",
        )
    return goal.constants


def counts(name: str, **numbers: int) -> list[jax.Array]:
    """Counts as 32-bit integers; raise where a formula asks for more than they hold."""
    for what, number in numbers.items():
        if number > LARGEST:
            raise InputError(
                f"the formulas of {name!r} ask for {number:.3g} {what.replace('_', ' ')}",
                f"at most 2^31 - 1 = {LARGEST}",
                "loosen the tolerances, give sharper constants, or use"
                f" {name.removesuffix('-theory')!r}, whose parameters are estimated",
            )
    return [jnp.int32(number) for number in numbers.values()]


def search_plan(
    name: str,
    constants: SubproblemConstants,
    tolerance: float,
    failure: float,
    dtype: Any,
    search: Search = SEARCH,
    dimension: int = 1,
) -> SearchPlan:
    """The search at this tolerance and failure probability; see `theory.negative_curvature`.

    Raises where a search may need more steps than it has, since its "none" would then be unproven.
    """
    asked = negative_curvature.lanczos(constants, tolerance, failure, dimension)
    known = None
    if isinstance(search, Lanczos):
        counts(name, thetas_of_a_search=2 * asked.batch)
        if asked.steps > search.steps or search.failure > failure / 2:
            raise InputError(
                f"a search of {name!r} may need {asked.steps:,} Lanczos steps in {dimension:,} variables and may miss with"
                f" probability {failure / 2:.3g}; this one ends after {search.steps:,} and may miss with {search.failure:.3g}",
                "at least as many steps, and no larger a probability",
                f"give search=mescal.curvature.Lanczos(steps={asked.steps}, first_batch={LARGEST}, failure="
                f"{min(failure / 2, SEARCH.failure):.1g}), which keeps steps x variables numbers, or loosen the tolerance",
            )
    else:
        known = _known(name, constants, tolerance, failure, dtype, isinstance(search, TheoryOja), dimension)
    share = negative_curvature.SHARE * tolerance
    return SearchPlan(
        jnp.asarray(tolerance, dtype),
        jnp.asarray(concentration.matrix_factor(constants.hessian_noise, share), dtype),
        jnp.asarray(concentration.matrix_logarithm(failure / 2), dtype),
        known,
    )


def _known(
    name: str,
    constants: SubproblemConstants,
    tolerance: float,
    failure: float,
    dtype: Any,
    theorem: bool,
    dimension: int,
) -> Known:
    """What Oja's method and Neon2 are told; the theorem's counts only where its own form runs, which they may keep from it."""
    oja = negative_curvature.oja(constants, tolerance, failure, dimension)
    sizes = (
        {"steps_of_a_search": oja.steps, "thetas_of_a_search": oja.verification_batch}
        if theorem
        else {"none": 0, "": 0}
    )
    steps, batch = counts(name, **sizes)
    number = partial(jnp.asarray, dtype=dtype)
    return Known(
        gradient_lipschitz=number(constants.gradient_lipschitz),
        hessian_noise=number(constants.hessian_noise),
        hessian_lipschitz=number(constants.hessian_lipschitz),
        failure=number(failure),
        runs=jnp.int32(oja.runs),
        steps=steps,
        step_size=number(oja.step_size),
        verification_batch=batch,
        threshold=number(oja.threshold),
    )


def look(search: Search, oracle: Lagrangian, z: jax.Array, plan: Any, key: jax.Array) -> tuple[Found, Work]:
    """A search as a plan has it."""
    told = search.told(getattr(plan, "known", None))
    return told(oracle, z, plan.tolerance, key, plan.batch(z.size))


def reset_gradient(
    oracle: Lagrangian, z: jax.Array, key: jax.Array, n: jax.Array, exact: jax.Array
) -> tuple[jax.Array, Work]:
    """The mean of n fresh gradients, or the exact one where `exact` says so and the population is finite."""
    if oracle.population is None:
        return oracle.gradient(z, key, n)

    def exactly():
        at, work = oracle.exact(z)
        return at.gradient, work

    return jax.lax.cond(exact, exactly, lambda: oracle.gradient(z, key, n))


def replaces(key: jax.Array, number: jax.Array) -> jax.Array:
    """Whether the candidate `number` = 1, 2, ... takes the place of the one kept: with probability 1/number.

    After n candidates each is the one kept with probability 1/n (reservoir sampling), in the memory of one.
    """
    return jax.random.randint(key, (), 0, number) == 0


def fair_sign(key: jax.Array, dtype: Any) -> jax.Array:
    """+1 or -1, each with probability 1/2."""
    return jax.random.rademacher(key, (), dtype)


def finite(*arrays: jax.Array) -> jax.Array:
    """Whether every entry is."""
    return jnp.stack([jnp.all(jnp.isfinite(array)) for array in arrays]).all()
