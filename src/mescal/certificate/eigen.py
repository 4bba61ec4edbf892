"""Smallest eigenvalues with their error: dense, and by Lanczos with a probabilistic lower bound.

Lanczos gives the Ritz value ``ritz >= lambda_min``. For a start uniform on the sphere of a space of dimension D, two lower
ends hold, and the larger is used:

1. Kuczynski and Wozniakowski, after k steps (products with the operator):
   ``P(lambda_min < ritz - e (lambda_max - lambda_min)) <= 1.648 sqrt(D) exp(-sqrt(e) (2k - 1))``.
   Applied to both ends of the spectrum it also bounds the spread: ``spread <= ritz spread / (1 - 2e)``.
2. Lanczos polynomials (van Dorsselaer, Hochstenbach, van der Vorst): let w be the weight of the start on the eigenspace
   of lambda_min and p_j the orthonormal polynomials that Lanczos generates. Then ``w sum_j p_j(lambda_min)^2 <= 1``, and
   ``P(w < t^2) <= t sqrt(2 D / pi)``. So lambda_min is at least the point left of the Ritz value where the sum reaches
   1/t^2. One event covers all step counts, no spread is needed, and a gap in the spectrum is used.

The first is a statement for a step count fixed in advance; the checks are therefore made on a fixed grid of step counts
(and where the space becomes invariant, and at the last step) and share the failure probability. Where time ends a run between
these, the second bound alone is used.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy

from .budget import ENDLESS, Budget

Array = np.ndarray
Apply = Callable[[Array], Array]

ROUNDING = 1e-12  # allowance for rounding in an eigenvalue, in units of the matrix norm
BREAKDOWN = 1e-13  # a Lanczos residual below this fraction of the norm is rounding: the space is invariant
SMALLEST_FAILURE = 1e-10  # below it the component of the start falls under the rounding of float64
KEPT = 0.7  # of the length of a vector after it was made orthogonal: less, and it is done once more (Kahan, Parlett)
CLOSE = 1.0005  # ratio of the ends between which a lower bound is sought
TINY = 1e-100  # stands for the norm of the zero operator


@dataclass(frozen=True, eq=False)
class Extreme:
    """The smallest eigenvalue of a symmetric operator: ``lower <= lambda_min <= value``, `value` attained by `vector`.

    `exact` says that the whole space was exhausted, so that the interval holds without a probability. `vectors` are the
    Ritz vectors of the few smallest Ritz values, one per column; `largest` is the largest Ritz value. The operator is
    `tridiagonal` on the orthonormal rows of `basis`. `scale` is the largest norm of a product that was seen.
    """

    value: float
    lower: float
    largest: float
    vectors: Array
    steps: int
    exact: bool
    scale: float
    basis: Array
    tridiagonal: Array

    @property
    def vector(self) -> Array:
        return self.vectors[:, 0]


def smallest_eigenspace(matrix: Array, width: float) -> tuple[float, Array]:
    """The smallest eigenvalue and an orthonormal basis of the eigenvectors whose values lie within `width` of it."""
    size = matrix.shape[0]
    count = min(4, size)
    while True:
        values, vectors = lowest_eigenpairs(matrix, count)
        close = int(np.count_nonzero(values <= values[0] + width))
        if close < count or count == size:
            return float(values[0]), vectors[:, :close]
        count = size


def lowest_eigenpairs(matrix: Array, count: int) -> tuple[Array, Array]:
    """The lowest eigenpairs; all of them where LAPACK's routine for some fails, as it can on clusters of equal values."""
    try:
        return scipy.linalg.eigh(matrix, subset_by_index=(0, count - 1), driver="evr")
    except np.linalg.LinAlgError:
        values, vectors = scipy.linalg.eigh(matrix, driver="evd")
        return values[:count], vectors[:, :count]


def spread_fraction(dimension: int, steps: int, failure: float) -> float:
    """The e with ``1.648 sqrt(dimension) exp(-sqrt(e) (2 steps - 1)) = failure`` (Kuczynski and Wozniakowski)."""
    logarithm = math.log(max(1.648 * math.sqrt(dimension) / failure, 1.0))
    return (logarithm / (2 * steps - 1)) ** 2


def smallest_start_component(dimension: int, failure: float) -> float:
    """A t with ``P(|b_1| < t) <= failure`` for b uniform on the unit sphere of R^dimension."""
    return failure * math.sqrt(math.pi / (2 * dimension))


def log_polynomial_sum(diagonal: Array, offdiagonal: Array, point: float) -> float:
    """``log sum_{j=0}^{k} p_j(point)^2`` for the Lanczos polynomials.

    They satisfy ``b_{j+1} p_{j+1} = (x - a_j) p_j - b_j p_{j-1}`` with p_0 = 1, a = `diagonal` and b = `offdiagonal`,
    both of length k: the last entry of `offdiagonal` is the residual of the last step.
    """
    before, now, total, logarithm, coupling = 0.0, 1.0, 1.0, 0.0, 0.0
    for a, b in zip(diagonal.tolist(), offdiagonal.tolist(), strict=True):
        before, now = now, (point - a) / b * now - coupling / b * before  # ratios first: products would overflow
        coupling = b
        total += now * now
        if total > 1e200:
            before, now, total, logarithm = (
                before * 1e-100,
                now * 1e-100,
                total * 1e-200,
                logarithm + 200 * math.log(10),
            )
    return logarithm + math.log(total)


def polynomial_lower_bound(diagonal: Array, offdiagonal: Array, ritz: float, component: float, scale: float) -> float:
    """The point left of `ritz` where the sum of squared Lanczos polynomials reaches ``1 / component^2``.

    -inf when the sum is larger already at `ritz`, the component of the start being known to be smaller then, and where numbers end
    before the point is reached. Each bisection halves the logarithm of a ratio that is 4 at first.
    """
    target = -2 * math.log(component)
    floor = max(scale, TINY) * 1e-17
    if log_polynomial_sum(diagonal, offdiagonal, ritz - floor) >= target:
        return -math.inf
    low, high = floor, 2 * floor
    while log_polynomial_sum(diagonal, offdiagonal, ritz - high) < target:
        low, high = high, 4 * high
    if not math.isfinite(ritz - high):
        return -math.inf
    for _ in range(math.ceil(math.log2(math.log(4) / math.log(CLOSE)))):
        middle = math.sqrt(low) * math.sqrt(high)
        if log_polynomial_sum(diagonal, offdiagonal, ritz - middle) < target:
            low = middle
        else:
            high = middle
    return ritz - high


class Krylov:
    """An orthonormal Lanczos basis, fully reorthogonalised, of the operator `apply` on the range of `project`.

    The basis is a sequence of blocks, one per start; a block ends when its Krylov space is invariant.
    """

    def __init__(self, apply: Apply, project: Apply, size: int, capacity: int):
        self.apply, self.project = apply, project
        self.basis = np.empty((min(capacity, 32), size))
        self.capacity = capacity
        self.steps = 0
        self.first = 0
        self.scale = 0.0
        self.diagonal: list[float] = []
        self.offdiagonal: list[float] = []
        self.next: Array | None = None

    def begin(self, start: Array) -> bool:
        """Opens a block at `start`; false when nothing of it lies outside the basis."""
        self.first = self.steps
        vector = self._outside(start)
        length = float(np.linalg.norm(vector))
        if not length > 1e-8 * float(np.linalg.norm(start)):
            self.next = None
            return False
        vector = self._outside(vector / length)
        self.next = vector / np.linalg.norm(vector)
        return True

    def step(self) -> bool:
        """One product with the operator; false when the block has become invariant."""
        if self.next is None:
            raise RuntimeError("a Krylov block must be opened by begin before it is extended")
        if self.steps == len(self.basis):
            rows = np.empty((min(2 * self.steps, self.capacity), self.basis.shape[1]))
            rows[: self.steps] = self.basis
            self.basis = rows
        self.basis[self.steps] = self.next
        product = np.asarray(self.apply(self.next), dtype=np.float64)
        self.scale = max(self.scale, float(np.linalg.norm(product)))
        product = self.project(product)
        self.diagonal.append(float(self.next @ product))
        self.steps += 1
        product = product - self.diagonal[-1] * self.next
        if self.steps > self.first + 1:
            product = product - self.offdiagonal[-1] * self.basis[self.steps - 2]
        product = self._outside(product)
        residual = float(np.linalg.norm(product))
        self.offdiagonal.append(residual)
        if residual <= BREAKDOWN * self.scale:
            self.next = None
            return False
        self.next = product / residual
        return True

    def _outside(self, vector: Array) -> Array:
        """What of a vector lies outside the basis: once more where the first time took much away, since rounding is then left."""
        basis = self.basis[: self.steps]
        for _ in range(2):
            before = vector = self.project(vector)
            vector = vector - (basis @ vector) @ basis
            if float(np.linalg.norm(vector)) > KEPT * float(np.linalg.norm(before)):
                break
        return vector

    def bands(self, first: int) -> tuple[Array, Array]:
        """Diagonal and off-diagonal of the operator in the basis, from basis vector `first` on."""
        coupling = np.array(self.offdiagonal[first : self.steps - 1])
        coupling[coupling <= BREAKDOWN * self.scale] = 0.0
        return np.array(self.diagonal[first:]), coupling

    def extend(self) -> None:
        """Steps until the block is invariant or the capacity is reached."""
        while self.steps < self.capacity and self.step():
            pass

    def ritz(self, first: int = 0) -> tuple[Array, Array]:
        """Ritz values and their coordinates in the basis, for the blocks from basis vector `first` on."""
        values, vectors = scipy.linalg.eigh_tridiagonal(*self.bands(first))
        return values, np.asarray(vectors)

    def vectors(self, count: int) -> Array:
        """Ritz vectors of the smallest Ritz values, one per column."""
        return self.basis[: self.steps].T @ self.ritz()[1][:, :count]


def check_steps(max_steps: int) -> list[int]:
    """The step counts at which the interval is looked at: 6 and then half as many more each time."""
    grid, steps = [], 6
    while steps < max_steps:
        grid.append(steps)
        steps += steps // 2
    return [*grid, max_steps]


def lanczos_smallest(
    apply: Apply,
    project: Apply,
    size: int,
    dimension: int,
    *,
    failure: float,
    resolution: float,
    max_steps: int,
    seed: int,
    budget: Budget = ENDLESS,
    decided: float = math.inf,
) -> Extreme:
    """An interval for the smallest eigenvalue of ``P H P`` on range(P), P = `project` of rank `dimension`, H = `apply`.

    The lower end fails with probability at most `failure` over the random start, unless `exact`. Stops when the interval
    is no longer than `resolution`, when it lies above `decided`, or when the `budget` is over. After a breakdown the search goes on
    in the orthogonal complement if the interval is still longer; every further block has half the failure probability of the one
    before.
    """
    rng = np.random.default_rng(seed)
    max_steps = min(max_steps, dimension)
    krylov = Krylov(apply, project, size, max_steps)
    krylov.begin(rng.standard_normal(size))
    grid = check_steps(max_steps)
    share = failure / 2
    closed = math.inf
    while True:
        extended = krylov.step()
        steps, block = krylov.steps, krylov.steps - krylov.first
        late = budget.over
        planned = steps == max_steps or not extended or block in grid
        finished = steps == max_steps or late
        if not (planned or late):
            continue
        values, _ = krylov.ritz(krylov.first)
        ritz, largest = float(values[0]), float(values[-1])
        rounding = ROUNDING * krylov.scale
        if steps == dimension:
            lower, exact = min(closed, ritz) - rounding, True
        else:
            remaining = dimension - krylov.first
            lower, exact = _block_lower(krylov, ritz, largest, remaining, share / 2, len(grid) + 2, planned), False
            lower = min(closed, lower) - rounding
        value = min(closed, ritz)
        if finished or value - lower <= max(resolution, 2 * rounding) or lower > decided:
            break
        if not extended:
            closed = value
            share /= 2
            if not krylov.begin(rng.standard_normal(size)):
                break
    values = krylov.ritz()[0]
    diagonal, coupling = krylov.bands(0)
    return Extreme(
        value=float(values[0]),
        lower=lower,
        largest=float(values[-1]),
        vectors=krylov.vectors(min(4, steps)),
        steps=steps,
        exact=exact,
        scale=krylov.scale,
        basis=krylov.basis[:steps],
        tridiagonal=np.diag(diagonal) + np.diag(coupling, 1) + np.diag(coupling, -1),
    )


def _block_lower(
    krylov: Krylov, ritz: float, largest: float, dimension: int, share: float, checks: int, planned: bool
) -> float:
    block = krylov.steps - krylov.first
    diagonal = np.array(krylov.diagonal[krylov.first :])
    offdiagonal = np.maximum(krylov.offdiagonal[krylov.first :], 1e-15 * max(krylov.scale, TINY))
    component = smallest_start_component(dimension, share)
    lower = polynomial_lower_bound(diagonal, offdiagonal, ritz, component, krylov.scale)
    fraction = spread_fraction(dimension, block, share / (2 * checks))
    if planned and fraction < 0.5:
        lower = max(lower, ritz - fraction * (largest - ritz) / (1 - 2 * fraction))
    return lower
