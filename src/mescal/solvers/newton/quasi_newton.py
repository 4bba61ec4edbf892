"""L-BFGS directions: what a few gradients say of the Hessian, for nothing (Nocedal 1980).

    d = -B g,   B from the last pairs  s = x+ - x,  y = g+ - g  with  s.y > 0

Pairs are rows of two arrays, so that they can be stored.
"""

from typing import NamedTuple

import numpy as np

Array = np.ndarray
PAIRS = 10  # kept
CURVED = 1e-10  # of |s||y|: a smaller s.y says nothing of the curvature


class Pairs(NamedTuple):
    """The last pairs, the newest first, and how many of the rows there are."""

    steps: Array
    changes: Array
    count: Array

    @classmethod
    def none(cls, size: int) -> "Pairs":
        """Before the first step."""
        return cls(np.zeros((PAIRS, size)), np.zeros((PAIRS, size)), np.asarray(0))

    def add(self, step: Array, change: Array) -> "Pairs":
        """With one more, unless it says nothing."""
        if not step @ change > CURVED * np.linalg.norm(step) * np.linalg.norm(change):
            return self
        steps = np.concatenate([step[None], self.steps[:-1]])
        changes = np.concatenate([change[None], self.changes[:-1]])
        return Pairs(steps, changes, np.asarray(min(int(self.count) + 1, PAIRS)))

    def direction(self, gradient: Array) -> Array:
        """-B g, the gradient alone without pairs."""
        n = int(self.count)
        q, shares = gradient.copy(), np.zeros(n)
        products = np.einsum("kd,kd->k", self.steps[:n], self.changes[:n])
        for i in range(n):
            shares[i] = self.steps[i] @ q / products[i]
            q -= shares[i] * self.changes[i]
        if n:
            q *= products[0] / (self.changes[0] @ self.changes[0])
        for i in reversed(range(n)):
            q += (shares[i] - self.changes[i] @ q / products[i]) * self.steps[i]
        return -q
