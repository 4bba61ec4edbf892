"""Verification of a returned point on fresh samples: its gradient, and one more search for negative curvature.

What boosting and Option I need (`theory.boosting`): a copy passes if |P_T(-g)| <= accept on n fresh gradients and the search
finds nothing. On a population of at most n the gradient is exact.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from ...compiling import compiled
from ...curvature import Search
from ...oracle import Lagrangian, Tally
from ...theory.boosting import Boost
from ...theory.constants import SubproblemConstants
from .theory_mode import SearchPlan, counts, look, reset_gradient, search_plan


class Verdict(NamedTuple):
    """Whether a point passed, the norm that was verified, whether negative curvature was found, and what it cost."""

    passed: bool
    stationarity: float
    negative: bool
    work: Tally


class Checks(eqx.Module):
    """The batches and thresholds of `Boost` as arrays."""

    batch: jax.Array
    exact: jax.Array
    search: SearchPlan


def verify(
    name: str,
    search: Search,
    oracle: Lagrangian,
    z: jax.Array,
    boost: Boost,
    constants: SubproblemConstants,
    key: jax.Array,
) -> Verdict:
    """Check a point that the solver `name` returned; `constants` are those of the subproblem."""
    (batch,) = counts(name, gradients_of_a_verification=boost.verification_batch)
    exact = oracle.population is not None and boost.verification_batch >= oracle.population
    asked = boost.search_tolerance, boost.verification_failure
    plan = search_plan(name, constants, *asked, z.dtype, search, z.size)
    stationarity, negative, work = _look(search, oracle, z, Checks(batch, jnp.asarray(exact), plan), key)
    norm, found = float(stationarity), bool(negative)
    return Verdict(norm <= boost.accept and not found, norm, found, work.tally())


@compiled
def _look(search: Search, oracle: Lagrangian, z: jax.Array, checks: Checks, key: jax.Array) -> Any:
    key_gradient, key_search = jax.random.split(key)
    gradient, spent = reset_gradient(oracle, z, key_gradient, checks.batch, checks.exact)
    found, looked = look(search, oracle, z, checks.search, key_search)
    return jnp.linalg.norm(oracle.project_tangent(z, -gradient)), found.negative, spent + looked
