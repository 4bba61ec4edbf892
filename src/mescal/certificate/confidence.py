"""Error bounds for means over samples: of the gradient, the constraint, the Hessian.

With the multipliers frozen, g_i = dF_i + J_i'lam and H_i = d2F_i + sum_j lam_j d2C_ij are i.i.d. within a source, and
the mean over several sources has the covariance V = sum_k S_k / n_k. At failure probability delta:

- a vector mean (CLT: the error is Gaussian with covariance V): |error| <= R + sum_k 2 b_k a / (3 n_k) with
  R^2 = min( tr V + 2 sqrt(tr V^2 a) + 2 |V| a,  |V| chi2quantile(1 - delta; rank V) ),  a = ln(1/delta)  (Laurent-Massart)
- the mean of symmetric d x d matrices (CLT, Gaussian matrix series):  |error| <= sqrt(2 v l) + sum_k 2 b_k l / (3 n_k),
  l = ln(2d/delta),  v = sum_k |E (H_i - H)^2| / n_k
- the second terms are those of Bernstein's inequality for a few rare and large deviations, b_k = (sum_i |u_i - u|^4)^(1/4),
  which is no less than the largest one that was seen. What was not seen is not bounded: an event of which n draws show nothing
  may have a probability of ln(1/delta) / n, whatever its size. Certificates say so; a bound b from the user is the remedy:
- with bounds b on the deviation of one sample given by the user, no CLT: |error| <= b sqrt(2 ln(2/delta)/n) for vectors
  (Pinelis) and sqrt(2 b^2 ln(2d/delta)/n) + 2 b ln(2d/delta)/(3n) for matrices (matrix Bernstein).
- with weights w_i of mean one, the mean of w_i v_i is a ratio of two means; its error is that of w_i (v_i - v), to first
  order, and S is the covariance of these.

Variances are sums of squares of what is left after a mean over the first rows is taken off: offsets cost no digits. All spreads
come from all draws. What errors of H, of the Jacobian and of the gradient do to curvatures is in `inexact`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy

from ..compiling import compiled
from ..oracle.access import masked
from ..oracle.evaluator import Evaluator
from ..problem import Program, Rows
from .budget import ENDLESS, Budget
from .scalars import Frame

FULL_COVARIANCE = (
    512  # parameters up to which covariances are formed; beyond, only their trace, and their shape from few rows
)
GRAM_ROWS = 256  # rows from which the shape of a large covariance is estimated
POWER_STEPS = 20  # of the power iteration for the spread of Hessians, at most
STEADY = 1.001  # growth of its value below which it ends, after the fourth step
POWER_MARGIN = 1.2  # the power iteration sees slightly less than the norm


@dataclass(frozen=True)
class Spread:
    """The covariance V of a mean: trace, norm, trace of the square, rank."""

    trace: float
    norm: float
    square: float
    rank: int

    @classmethod
    def of(cls, covariance: np.ndarray) -> "Spread":
        """From the matrix itself."""
        if covariance.size == 0:
            return cls(0.0, 0.0, 0.0, 0)
        values = np.maximum(np.linalg.eigvalsh((covariance + covariance.T) / 2), 0)
        return cls(values.sum(), values.max(), (values**2).sum(), int((values > 1e-12 * values.max()).sum()))

    def plus(self, shape: "Spread", trace: float, n: int) -> "Spread":
        """With the mean of n more samples added: their covariance has this trace and the shape of a sub-sample's."""
        factor = trace / shape.trace / n if shape.trace > 0 else 0.0
        square = (np.sqrt(self.square) + factor * np.sqrt(shape.square)) ** 2
        norm = self.norm + POWER_MARGIN * factor * shape.norm
        return Spread(self.trace + trace / n, norm, float(square), self.rank)

    def radius(self, failure: float) -> float:
        """R with P(|error| > R) <= failure, the error being Gaussian with this covariance."""
        if self.trace <= 0:
            return 0.0
        a = np.log(1 / failure)
        tail = self.trace + 2 * np.sqrt(self.square * a) + 2 * self.norm * a
        return float(np.sqrt(min(tail, self.norm * 2 * scipy.special.gammainccinv(self.rank / 2, failure))))


@dataclass(frozen=True)
class Moments:
    """Spreads of the means over a batch: objective, constraint, gradient of the Lagrangian, Jacobian."""

    objective: float
    constraint: np.ndarray
    gradient: Spread
    jacobian: float
    reach: dict[str, float]  # sum_k b_k / n_k of the gradient and of the constraint


def rare(reach: float, logarithm: float) -> float:
    """What a few rare and large deviations add to an error: the second term of Bernstein's inequality."""
    return 2 * reach * logarithm / 3


def moments(
    judge: Evaluator,
    populations: Sequence[Any],
    noisy: tuple[bool, ...],
    x: np.ndarray,
    weight: np.ndarray,
    frame: Frame,
) -> Moments:
    """Covariances of the means over the judge's rows, noisy sources alone: two passes over them, of all members together.

    Derivatives are those in the coordinates of a frame, here and below.
    """
    m, full = judge.program.layout.size, x.size <= FULL_COVARIANCE
    body, given, families = _covariance_sums if full else _trace_sums, (x, weight, frame), _noisy_families(judge, noisy)
    shares = [_shares(judge, noisy, k) for k in families]
    nothing = [
        (np.zeros(g), np.zeros((g, p)), np.zeros((g, x.size)), np.zeros((g, p, x.size)))
        for g, p in (np.shape(judge.program.families[k].fed) for k in families)
    ]
    before = judge.sums(body, families, given, list(zip(shares, nothing, strict=True)), first=True)
    taken_off = [
        tuple(first[0] / _along_first(np.maximum(count, 1.0), first[0]) for first in parts)
        for (_, count, *parts), _ in before
    ]
    sums = judge.sums(body, families, given, list(zip(shares, taken_off, strict=True)))
    objective, constraint, jacobian = 0.0, np.zeros((m, m)), 0.0
    reach = {"gradient": 0.0, "constraint": 0.0}
    covariance, spread = np.zeros((x.size, x.size)) if full else np.zeros((0, 0)), Spread(0.0, 0.0, 0.0, x.size)
    for k, ((ww, _, *parts), total) in zip(families, sums, strict=True):
        covariance += total if full else 0.0
        for n, member in _noisy_members(judge, noisy, k):
            square_of_weights = ww[member] / n
            f, c, g, j = ([each[member] / n for each in part] for part in parts)
            for name, part in (("gradient", g), ("constraint", c)):
                reach[name] += float(n * part[3]) ** 0.25 / n
            fed = list(judge.program.families[k].fed[member])
            objective += float(_centred(square_of_weights, *f[:3])) / (n - 1)
            constraint[np.ix_(fed, fed)] += _centred(square_of_weights, *c[:3]) / (n - 1)
            jacobian += float(_centred(square_of_weights, *j[:3])) / (n - 1)
            if full:
                nothing_yet = np.zeros_like(covariance)
                covariance += _centred(square_of_weights, g[0], g[1], nothing_yet) / (n - 1)
                continue
            with jax.enable_x64(True):
                rows = _first_rows(populations[judge.program.families[k].members[member]], GRAM_ROWS)
                gram = _gram(judge.program, k, member, rows, *jax.tree.map(jnp.asarray, given))
            spread = spread.plus(Spread.of(np.asarray(gram)), float(_centred(square_of_weights, *g[:3])), n - 1)
    judge.count("gradient", values=1, gradients=1)
    found = Spread.of(covariance) if full else spread
    return Moments(max(objective, 0.0), constraint, found, max(jacobian, 0.0), reach)


def _noisy_families(judge: Evaluator, noisy: tuple[bool, ...]) -> list[int]:
    """The families of which some member carries sampling error."""
    families = enumerate(judge.program.families)
    return [k for k, family in families if any(noisy[source] for source in family.members)]


def _noisy_members(judge: Evaluator, noisy: tuple[bool, ...], k: int) -> Iterator[tuple[int, int]]:
    """Rows, and number in its family, of every member that carries sampling error."""
    for member, source in enumerate(judge.program.families[k].members):
        if noisy[source]:
            yield judge.sizes[k][member], member


def _shares(judge: Evaluator, noisy: tuple[bool, ...], k: int) -> np.ndarray:
    """By member, what a sum of squares of its deviations counts in the variance of its mean: 1 / n (n - 1), 0 without error."""
    shares = np.zeros(len(judge.sizes[k]))
    for n, member in _noisy_members(judge, noisy, k):
        shares[member] = 1 / n / (n - 1)
    return shares


def _along_first(factor: np.ndarray, array: np.ndarray) -> np.ndarray:
    """A factor for every entry of the first axis, to be multiplied with."""
    return factor.reshape(factor.shape + (1,) * (array.ndim - 1))


def _centred(ww: np.ndarray, mean: np.ndarray, weighted: np.ndarray, square: np.ndarray) -> np.ndarray:
    """Mean of (u_i - w_i u)(u_i - w_i u)' for u_i = w_i v_i with mean u, or its trace: what `_sums_of` is summed for."""
    if square.ndim == 2:
        cross = np.outer(weighted, mean)
        return square - cross - cross.T + ww * np.outer(mean, mean)
    return square - 2 * np.sum(weighted * mean) + ww * np.sum(mean * mean)


def _sums_of(w: jax.Array, u: jax.Array, outer: bool) -> tuple[jax.Array, ...]:
    """Sums over rows of u_i, w_i u_i, u_i u_i' (or |u_i|^2) and |u_i|^4."""
    squares = jnp.sum(jnp.reshape(u * u, (u.shape[0], -1)), axis=1)
    return jnp.sum(u, 0), jnp.tensordot(w, u, 1), u.T @ u if outer else jnp.sum(squares), squares @ squares


def _row_weights(rows: Rows, dtype) -> jax.Array:
    count = jax.tree.leaves(rows.samples)[0].shape[0]
    return jnp.ones(count, dtype) if rows.weights is None else rows.weights.astype(dtype)


def _moment_sums(rows: Rows, mask, member, program: Program, k: int, shared, mine, full: bool):
    """Sums over the rows of one member of w^2 and of w, and for each of f, c, g, J, less w_i times what is to be taken off them,
    those of `_sums_of`; where `full`, over all members those of g g' times the share of a member.
    """
    (x, weight, frame), (share, off) = shared, mine
    w = masked(_row_weights(rows, x.dtype), mask)
    parts = [
        masked(part, mask) - jnp.tensordot(w, less, 0)
        for part, less in zip(_each_row(k, member, rows, program, x, weight, frame), off, strict=True)
    ]
    found = [_sums_of(w, part, outer) for part, outer in zip(parts, (False, True, False, False), strict=True)]
    return (w @ w, jnp.sum(w), *found), share * parts[2].T @ parts[2] if full else jnp.zeros((), x.dtype)


def _trace_sums(*given):
    """Those of which the covariance of the gradient is known by its trace."""
    return _moment_sums(*given, full=False)


def _covariance_sums(*given):
    """Those with all of it."""
    return _moment_sums(*given, full=True)


@compiled
def _gram(
    program: Program, k: int, member: int, rows: Rows, x: jax.Array, weight: jax.Array, frame: Frame
) -> jax.Array:
    """Gram matrix of centred gradients of a few rows: the nonzero eigenvalues of their covariance."""
    g = _each_row(k, member, rows, program, x, weight, frame)[2]
    centred = g - _row_weights(rows, x.dtype)[:, None] * jnp.mean(g, 0)
    return centred @ centred.T / centred.shape[0]


def _each_row(
    k: int, member: Any, rows: Rows, program: Program, x: jax.Array, weight: jax.Array, frame: Frame
) -> tuple[jax.Array, ...]:
    """For every row: f, what it adds to the rows of c that its member feeds, gradient of f + weight . c, Jacobian of these rows."""
    fed = program.fed_rows(k, member)

    def one(row):
        single = jax.tree.map(lambda leaf: leaf[None], row)
        (f, c), pull = jax.vjp(lambda y: jax.tree.map(lambda v: v[0], program.contribution(k, y, single, member)), x)
        jacobian = jax.vmap(lambda e: pull((jnp.zeros_like(f), e))[0])(jnp.eye(c.size, dtype=x.dtype))
        jacobian = jacobian.reshape(c.size, x.size)
        gradient = pull((jnp.ones_like(f), jnp.zeros_like(c)))[0] + weight[fed] @ jacobian
        return f, c, frame.slope(gradient), frame.slope(jacobian.T).T

    return jax.vmap(one)(rows)


def _first_rows(population: Any, count: int) -> Rows:
    """The first rows of a population, on the host and in float64."""
    rows = population.at(np.arange(min(count, population.size)))

    def take(leaf):
        return np.asarray(leaf, np.float64 if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf.dtype)

    return jax.tree.map(take, rows)


def hessian_spread(
    judge: Evaluator,
    noisy: tuple[bool, ...],
    x: np.ndarray,
    weight: np.ndarray,
    frame: Frame,
    seed: int,
    budget: Budget = ENDLESS,
) -> tuple[float, float]:
    """v = sum_k |E (H_i - H)^2| / n_k and sum_k b_k / n_k, over all rows of noisy sources.

    By power iteration on v -> E D_i^2 v, D_i = w_i (H_i - H), of every source by itself, in step; b_k from the D_i v of its last
    vector.
    """
    families = _noisy_families(judge, noisy)
    sizes = [np.asarray(judge.sizes[k], float)[:, None] for k in families]
    counted = [np.array([noisy[source] for source in judge.program.families[k].members]) for k in families]
    weighted = any(judge.program.families[k].weighted for k in families)
    start = np.random.default_rng(seed).standard_normal(x.size)
    at = [np.tile(start, (len(n), 1)) for n in sizes]
    lengths, fourths = [np.zeros(len(n)) for n in sizes], [np.zeros(len(n)) for n in sizes]
    for step in range(POWER_STEPS if families else 0):
        at = [v / np.maximum(np.linalg.norm(v, axis=1, keepdims=True), 1e-300) for v in at]
        first_of = _deviations(judge, families, x, weight, frame, at)
        means = [first / n for (first, *_), n in zip(first_of, sizes, strict=True)]
        found = _deviations(judge, families, x, weight, frame, at, means, twice=True)
        at = [square / n for (_, square, *_), n in zip(found, sizes, strict=True)]
        if weighted:
            along = [share / n for (_, _, share, *_), n in zip(found, sizes, strict=True)]
            less = _deviations(judge, families, x, weight, frame, along)
            at = [v - first / n for v, (first, *_), n in zip(at, less, sizes, strict=True)]
        judge.count("hvp", times=3, values=1, gradients=1, hvps=1)
        before, lengths = lengths, [np.linalg.norm(v, axis=1) for v in at]
        fourths = [fourth for *_, fourth, _ in found]
        grown = [(new > STEADY * old)[which] for new, old, which in zip(lengths, before, counted, strict=True)]
        if step >= 3 and not any(map(np.any, grown)):
            break
        if budget.over:  # it may still grow
            return np.inf, np.inf
    total = reach = 0.0
    for n, length, fourth, which in zip(sizes, lengths, fourths, counted, strict=True):
        total += float(np.sum((POWER_MARGIN * length / n[:, 0])[which]))
        reach += float(np.sum((fourth**0.25 / n[:, 0])[which]))
    return total, reach


def _deviations(
    judge: Evaluator,
    families: list[int],
    x: np.ndarray,
    weight: np.ndarray,
    frame: Frame,
    directions: list[np.ndarray],
    means: list[np.ndarray] | None = None,
    offsets: list[np.ndarray] | None = None,
    twice: bool = False,
    first: bool = False,
) -> list[Any]:
    """By family, for a direction of every member: what `_product_sums` sums, less `means` of products and `offsets` along them."""
    means = [np.zeros_like(v) for v in directions] if means is None else means
    offsets = [np.zeros(len(v)) for v in directions] if offsets is None else offsets
    own = list(zip(directions, means, offsets, strict=True))
    found = judge.sums(_product_sums, families, (x, weight, frame, float(twice)), own, first)
    return [each for each, _ in found]


def _row_products(
    k: int, member: Any, rows: Rows, program: Program, x: jax.Array, weight: jax.Array, frame: Frame
) -> Any:
    """A function that maps a vector for each row to the products of the rows' Hessians with them."""
    fed = weight[program.fed_rows(k, member)]

    def one(row, v):
        single = jax.tree.map(lambda leaf: leaf[None], row)

        def gradient(y):
            (f, c), pull = jax.vjp(lambda p: program.contribution(k, p, single, member), y)
            return pull((jnp.ones_like(f), jnp.broadcast_to(fed, c.shape)))[0]

        return frame.slope(jax.jvp(gradient, (x,), (frame.outward(v),))[1])

    return lambda vectors: jax.vmap(one)(rows, vectors)


def _product_sums(rows: Rows, mask, member, program: Program, k: int, shared, mine):
    """Sums over the rows of one member, for D_i v = H_i v - w_i `mean`: of D_i v, of H_i D_i v where `twice` (zeros otherwise), of
    w_i D_i v, of |D_i v|^4; then of w^2, of w, and those of `_sums_of` for q_i = v'H_i v - w_i `off`.
    """
    (x, weight, frame, twice), (v, mean, off) = shared, mine
    products = _row_products(k, member, rows, program, x, weight, frame)
    w = masked(_row_weights(rows, x.dtype), mask)
    along = masked(products(jnp.broadcast_to(v, (w.size, v.size))), mask)
    deviations = along - w[:, None] * mean
    again = jax.lax.cond(
        twice > 0, lambda d: jnp.sum(masked(products(d), mask), axis=0), lambda d: jnp.zeros_like(v), deviations
    )
    lengths = jnp.sum(deviations**2, axis=1)
    forms = w @ w, jnp.sum(w), *_sums_of(w, along @ v - w * off, False)
    return (jnp.sum(deviations, axis=0), again, w @ deviations, lengths @ lengths, forms), ()


def matrix_radius(v: float, dimension: int, failure: float, reach: float = 0.0) -> float:
    """Bound on the error of a mean of symmetric matrices in operator norm."""
    logarithm = np.log(2 * max(dimension, 1) / failure)
    return float(np.sqrt(2 * v * logarithm) + rare(reach, logarithm))


def directional(
    judge: Evaluator, noisy: tuple[bool, ...], x: np.ndarray, weight: np.ndarray, frame: Frame, u: np.ndarray
) -> float:
    """The variance of u'Hu, a mean over the judge's rows: for an upper bound along a direction fixed beforehand."""
    families = _noisy_families(judge, noisy)
    at = [np.tile(u, (len(judge.sizes[k]), 1)) for k in families]
    first = [forms for *_, forms in _deviations(judge, families, x, weight, frame, at, first=True)]
    off = [total / np.maximum(count, 1.0) for _, count, total, *_ in first]
    variance = 0.0
    second = _deviations(judge, families, x, weight, frame, at, offsets=off)
    for k, (*_, forms) in zip(families, second, strict=True):
        for n, member in _noisy_members(judge, noisy, k):
            ww, _, *q = (part[member] / n for part in forms)
            variance += float(_centred(ww, *q[:3])) / (n - 1)
    judge.count("hvp", values=1, gradients=1, hvps=1)
    return max(variance, 0.0)
