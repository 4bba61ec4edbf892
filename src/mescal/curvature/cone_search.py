"""ConeSearch: negative curvature on the critical cone, by eigenproblems on subspaces.

    K = {v in V : a_i v <= 0, i in W},   k = |W|,   tau = t / (8 (k + 1)),   V_S = {v in V : a_i v = 0, i in S}

    stack = [{}]
    while stack:
        S = stack.pop(), if not seen
        u, R = eigen(V_S)                 # R(u) <= lambda_min + tau, but for p / 2^k; R measured to t/16
        if R > -3t/4: continue
        if u or -u is in K: return it
        push S + {i} for every i in W \\ S with a_i u != 0
    return nothing

With probability at least 1 - p: "nothing" means v'Hv >= -t |v|^2 on K, and what is returned is in K with curvature <= -t/2.

*Proof.* Let y in K, |y| = 1, have R(y) = l < -t. Invariant: at S there is a unit y in K and V_S with R(y) <= l + |S| tau; it is
about S alone, so it does not matter when S is visited. There R(u) <= lambda_S + tau <= l + (k + 1) tau < -7t/8, which is
measured below -13t/16, and S is not pruned. Take the sign of u with y.u >= 0. If u is not in K, the segment from y to u leaves
K at z = (1 - h) y + h u, on a row i of W \\ S with a_i u > 0, since the rows of S vanish at both ends. q(v) = v'(H - lambda_S) v
is positive semidefinite on V_S, so its root is a seminorm: q(z) <= ((1 - h)^2 + h^2) (q(y) + q(u)) by Cauchy and Schwarz, and
|z|^2 >= (1 - h)^2 + h^2. Hence R(z/|z|) <= R(y) + tau: the invariant at S + {i}, which is pushed. At S = W every u is in K.
What is returned was measured at -3t/4 or below, to t/16. QED. (Pruning at -t, the obvious mistake, loses directions.)

At most 2^k eigenproblems, one where k <= 1: v'Hv is even, and a single sign condition void. k = 0 is SNAP (Lu et al. 2020), and
k = O(log d) HOUDINI (2023). Deciding for large k is NP-hard: after `nodes` eigenproblems a power iteration projected onto K
(Yi and Neykov 2020) looks for a direction, and "nothing" is not proved.

Deviation from the lemma: weak rows that vanish on V_S count with S, which only saves eigenproblems.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..checks import check_options
from .critical import ON_ROW, Array, CriticalCone, Subspace

PRUNED = 3 / 4  # of the tolerance: a face whose lowest curvature is measured above it is closed
GAP = 8  # t / (8 (k + 1)): what an eigenvector may be off by
MEASURED = 1 / 16  # of the tolerance: how finely its curvature is measured
POWER_STEPS = 60  # of the projected iteration
STARTS = 8  # of it, at random, beside what the faces gave


class Eigenpair(NamedTuple):
    """What an eigen-solver says of a subspace: a unit u, None where nothing is below -3t/4, and its measured curvature."""

    vector: Array | None
    curvature: float


Eigen = Callable[[Subspace, float, float, int], Eigenpair]  # (V_S, gap tau, failure, number of the node)


class Sought(NamedTuple):
    """A direction of the cone, or None; its curvature or the lowest seen; nodes; whether "nothing" is proved."""

    direction: Array | None
    curvature: float
    nodes: int
    proved: bool


@dataclass(frozen=True)
class ConeSearch:
    """Settings of the search.

    **Arguments:**

    - `nodes`: the most eigenproblems.
    - `failure`: p, shared by the 2^k eigenproblems.
    """

    nodes: int = 64
    failure: float = 0.01

    def __post_init__(self):
        check_options(self, below_one=("failure",))

    def __call__(
        self,
        eigen: Eigen,
        cone: CriticalCone,
        tolerance: float,
        product: Callable[[Array], Array] | None = None,
        seed: int = 0,
    ) -> Sought:
        """Search the cone; `product` is H v, for the projected iteration where the faces are too many."""
        gap, failure = tolerance / (GAP * (cone.weak + 1)), self.failure / 2.0 ** min(cone.weak, 60)
        stack, seen, lowest, met = [frozenset()], set(), np.inf, []
        count = 0
        while stack and count < self.nodes:
            space = cone.subspace(stack.pop())
            chosen = cone.vanishing(space)
            if chosen in seen or space.dimension < 1:
                continue
            seen.add(chosen)
            count += 1
            vector, curvature = eigen(space, gap, failure, count)
            lowest = min(lowest, curvature)
            if vector is None or curvature > -PRUNED * tolerance:
                continue
            for u in (vector, -vector):
                if cone.contains(u):
                    return Sought(u, curvature, count, True)
            met.append(vector)
            slopes = np.abs(cone.slopes(vector))
            stack += [chosen | {int(i)} for i in np.argsort(slopes) if slopes[i] > ON_ROW and int(i) not in chosen]
        if not stack:
            return Sought(None, lowest, count, True)
        found = None if product is None else projected_power(product, cone, met, seed)
        if found is not None and found[1] <= -PRUNED * tolerance:
            return Sought(found[0], found[1], count, False)
        return Sought(None, lowest, count, False)


def projected_power(
    product: Callable[[Array], Array], cone: CriticalCone, starts: list[Array], seed: int
) -> tuple[Array, float] | None:
    """The best of v <- P_K((shift - H) v) at unit length from several starts; None where all end at zero."""
    random = np.random.default_rng(seed).standard_normal((STARTS, cone.size))
    shift = 0.0
    v = cone.subspace().project(random[0])
    for _ in range(POWER_STEPS // 4):  # the largest |eigenvalue|
        v = cone.subspace().project(product(v / max(float(np.linalg.norm(v)), np.finfo(float).tiny)))
        shift = max(shift, float(np.linalg.norm(v)))
    best: tuple[Array, float] | None = None
    for start in [*starts[:STARTS], *random]:
        for sign in (1.0, -1.0):
            v = cone.project(sign * start)
            for _ in range(POWER_STEPS):
                length = float(np.linalg.norm(v))
                if length <= ON_ROW * float(np.linalg.norm(start)):
                    break
                v = v / length
                image = product(v)
                curvature = float(v @ image)
                if best is None or curvature < best[1]:
                    best = v, curvature
                v = cone.project(shift * v - image)
    return best
