"""Problems that several benchmarks measure: the Neyman-Pearson problem on two sets of rows, and its parts."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import mescal
from mescal import E
from mescal.oracle import Lagrangian, surrogate
from mescal.oracle.evaluator import Evaluator, evaluator_of
from mescal.oracle.subproblem import Seen, Subproblem
from mescal.problem import equality_form


def score(w, a):
    """The probability that a row is positive."""
    return jax.nn.sigmoid(a @ w)


def miss(w, a):
    """The probability that a positive row is missed."""
    return 1 - score(w, a)


def neyman_pearson(positives: np.ndarray, negatives: np.ndarray) -> mescal.Problem:
    """Few misses subject to a false-positive rate of at most 0.2."""
    return mescal.Problem(E(miss, over=positives), {"false positives": E(score, over=negatives) <= 0.2})


def normal_rows(sizes: tuple[int, int], d: int, dtype: Any, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two sets of standard normal rows, made in place."""
    rows = np.random.default_rng(seed).standard_normal((sum(sizes), d), dtype=dtype)
    return rows[: sizes[0]], rows[sizes[0] :]


def judge_of(problem: mescal.Problem, x: np.ndarray) -> Evaluator:
    """The judge's view of a problem on finite populations."""
    return evaluator_of(problem, problem.bind(x)[0])


def seen_at(oracle: Lagrangian, z: jax.Array) -> Seen:
    """What a full pass shows of the oracle at z, in the type of z: where a solver's recursion starts from."""
    looks = Evaluator(oracle.form.program, oracle.data, z.dtype)
    return Subproblem(oracle, looks).look(np.asarray(z))[0].arrays(z.dtype)


def lagrangian_of(
    problem: mescal.Problem, x: np.ndarray, rule: str = "ustat", multiplier: float = 0.3, penalty: float = 1.1
) -> tuple[Lagrangian, jax.Array]:
    """The oracle of a problem in the type of x, and the point (x, slack 0)."""
    program, _ = problem.bind(x, dtype=x.dtype)
    form, data = equality_form(program, problem.domain), problem.device_data(program, x.dtype)
    multipliers = jnp.full(form.constraints, multiplier, x.dtype)
    oracle = Lagrangian(form, data, multipliers, jnp.asarray(penalty, x.dtype), surrogate(rule))
    return oracle, form.join(jnp.asarray(x), jnp.zeros(form.size - x.size, x.dtype))
