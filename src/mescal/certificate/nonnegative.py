"""Nonnegative least squares: ``argmin |A mu - b|`` over ``mu >= 0``, checked against its optimality conditions.

The residual ``b - A mu`` is the projection of b onto the cone ``{y : A'y <= 0}``. Block principal pivoting (Portugal,
Judice and Vicente; Kim and Park) on the cached Gram matrix solves most cases in a few linear systems. Where it does not
meet ``A'(b - A mu) <= 0``, with equality where mu > 0, the active-set method of Lawson and Hanson takes over.

`scipy.optimize.nnls` is not used: since 1.15, and in 1.17.1 still, it can return a point that is not the minimiser, with a
residual norm that is not that of the point (scipy issue 25389), where b is orthogonal to columns up to rounding: projections of
points on a face are, and 277 of the projections in the tests of cones came back wrong, by up to five times |b|.
"""

import numpy as np

Array = np.ndarray

OPTIMALITY = 1e-13  # tolerated slope, in units of |b|, for unit columns


class NonnegativeLeastSquares:
    """``argmin |A mu - b|`` over mu >= 0 for one matrix A with unit columns and many b."""

    def __init__(self, matrix: Array):
        self.matrix = np.ascontiguousarray(matrix, dtype=np.float64)
        self.gram = self.matrix.T @ self.matrix

    def solve(self, target: Array) -> Array:
        size = self.matrix.shape[1]
        scale = float(np.linalg.norm(target))
        if size == 0 or scale == 0.0:
            return np.zeros(size)
        mu = self._pivot(target, OPTIMALITY * scale)
        if mu is None:
            mu = self._active_set(target, OPTIMALITY * scale)
        return mu

    def residual(self, target: Array) -> Array:
        """``target - A mu``: the projection of `target` onto ``{y : A'y <= 0}``."""
        return target - self.matrix @ self.solve(target)

    def _pivot(self, target: Array, tolerance: float) -> Array | None:
        """Block principal pivoting; None when it does not arrive at an optimal point."""
        size = self.matrix.shape[1]
        passive = np.zeros(size, dtype=bool)
        mu = np.zeros(size)
        fewest, patience = size + 1, 3
        for _ in range(50 + size):
            slope = self.matrix.T @ (target - self.matrix @ mu)
            wrong = np.where(passive, mu < 0, slope > tolerance)
            count = int(wrong.sum())
            if count == 0:
                return mu if float(np.abs(slope[passive]).max(initial=0.0)) <= tolerance else None
            if count < fewest:
                fewest, patience = count, 3
            elif patience:
                patience -= 1
            else:
                wrong[: np.flatnonzero(wrong)[-1]] = False
            passive ^= wrong
            chosen = np.flatnonzero(passive)
            gram = self.gram[np.ix_(chosen, chosen)]
            mu = np.zeros(size)
            try:
                mu[chosen] = np.linalg.solve(gram, self.matrix[:, chosen].T @ target)
                mu[chosen] += np.linalg.solve(gram, self.matrix[:, chosen].T @ (target - self.matrix @ mu))
            except np.linalg.LinAlgError:
                return None
            if not np.isfinite(mu).all():
                return None
        return None

    def _active_set(self, target: Array, tolerance: float) -> Array:
        """Lawson and Hanson: one column enters at a time and the residual norm falls with each."""
        size = self.matrix.shape[1]
        passive = np.zeros(size, dtype=bool)
        blocked = np.zeros(size, dtype=bool)
        mu = np.zeros(size)
        for _ in range(10 * size + 50):
            slope = self.matrix.T @ (target - self.matrix @ mu)
            slope[passive | blocked] = -np.inf
            entering = int(np.argmax(slope))
            if not slope[entering] > tolerance:
                break
            passive[entering] = True
            trial = self._least_squares(passive, target)
            if trial[entering] <= 0:
                passive[entering], blocked[entering] = False, True
                continue
            while (negative := passive & (trial <= 0)).any():
                steps = np.full(size, np.inf)
                steps[negative] = mu[negative] / (mu[negative] - trial[negative])
                length = float(steps.min())
                mu = mu + length * (trial - mu)
                passive &= ~(negative & (steps <= length)) & (mu > 0)
                mu[~passive] = 0.0
                trial = self._least_squares(passive, target)
            mu = trial
            blocked[:] = False
        return mu

    def _least_squares(self, passive: Array, target: Array) -> Array:
        mu = np.zeros(self.matrix.shape[1])
        if passive.any():
            mu[passive] = np.linalg.lstsq(self.matrix[:, passive], target, rcond=1e-13)[0]
        return mu
