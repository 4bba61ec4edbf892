"""The subproblem of one outer iteration as solvers on the host see it: L(z) = f + lam . c + (al/2)|c|^2 in z = (x, s).

It owns what a solver should not have to know: scales, slacks and their geometry, the set, and what a look costs. Arrays are
numpy's; what is compiled is the look, and whatever a solver compiles of its own around `lagrangian`.
"""

from typing import Any, NamedTuple

import jax
import numpy as np

from ..compiling import compiled, in_precision
from ..sets import ConvexSet, Reals
from .evaluator import Evaluator
from .lagrangian import Lagrangian, one_pass
from .look import At
from .work import Tally

Array = Any  # numpy's on the host, JAX's inside compiled programs
IRREGULAR = 1e-3  # regularity below which a violated constraint cannot be improved to first order


class Seen(NamedTuple):
    """What a solver knows of L at a point: its value and gradient, the constraint, and how stationary it is at which multipliers.

    `regularity` is |P_T(-J'c)| / |c|, NaN where unknown: where it vanishes, the violation cannot fall to first order.
    """

    z: Array
    value: Any
    objective: Any  # f alone
    gradient: Array
    constraint: Array
    multipliers: Array  # lam + al c
    stationarity: Any
    regularity: Any
    jacobian: Array | None  # of the constraint; None where no pass gave it
    noise: Any  # of the gradient, per theta; 0 where it is exact

    @property
    def finite(self) -> bool:
        """Whether the value and the gradient are."""
        return bool(np.isfinite(self.value) and np.isfinite(self.gradient).all())

    def arrays(self, dtype: Any = None) -> "Seen":
        """All parts as arrays, in one type where it is given: as compiled programs and checkpoints take them."""
        return Seen(*(None if part is None else np.asarray(part, dtype) for part in self))  # pyright: ignore[reportArgumentType]


class Subproblem:
    """L for given multipliers and penalty; `looks` sees all rows, None where there are streams. Nothing in it changes."""

    def __init__(self, lagrangian: Lagrangian, looks: Evaluator | None, with_jacobian: bool = False):
        form = lagrangian.form
        self.lagrangian, self.looks, self.form = lagrangian, looks, form
        self.multipliers = np.asarray(lagrangian.multipliers, np.float64)
        self.penalty = float(lagrangian.penalty)
        self.population = form.program.population  # thetas in a full pass; None where a source is a stream
        self.parameters = form.program.parameters.size  # variables that are no slacks
        self.inequality = form.program.layout.inequality  # which rows of c are
        self.factor, self.scale = float(form.objective_scale), np.asarray(form.constraint_scale, np.float64)
        self.inward = np.asarray(form.inward, np.float64)  # by how much bounds are moved
        self.gives_jacobian = with_jacobian or one_pass(form.program)  # whether a look at all rows gives that of c
        self.columns = np.eye(len(self.scale))[:, self.inequality]  # where slacks are in the rows of c
        self._whole_space = isinstance(form.domain, Reals)

    # ---- space

    def project(self, z: Array) -> Array:
        """Projection onto X x {s >= 0}."""
        x, slack = z[: self.parameters], z[self.parameters :]
        return np.concatenate([self._in_domain(_project, x), np.maximum(slack, 0)])

    def project_tangent(self, z: Array, v: Array) -> Array:
        """Projection of v onto the tangent cone at z."""
        at, vs = z[self.parameters :], v[self.parameters :]
        return np.concatenate([self._in_domain(_tangent, z, v), np.where(at <= 0, np.maximum(vs, 0), vs)])

    def project_face(self, z: Array, v: Array) -> Array:
        """Projection of v onto the span of the face on which z lies."""
        at, vs = z[self.parameters :], v[self.parameters :]
        return np.concatenate([self._in_domain(_face, z, v), np.where(at <= 0, 0, vs)])

    def project_on_face_of(self, x: Array, v: Array) -> Array:
        """`project_face` in the parameters alone."""
        return self._in_domain(_face, x, v)

    def _in_domain(self, function: Any, *vectors: Array) -> Array:
        parts = [vector[: self.parameters] for vector in vectors]
        if self._whole_space:
            return parts[-1]
        with in_precision(parts[-1].dtype):
            return np.asarray(function(self.form.domain, self.form.program.parameters, *parts))

    # ---- slacks

    def settle(self, z: Array, constraint: Array) -> Array:
        """z with the slacks that minimise L for its x, given c(z) with the slacks of z: free where c is known exactly."""
        rows = self.inequality
        if not rows.any():
            return z
        scale = self.scale[rows]
        without = constraint[rows] - scale * z[self.parameters :]
        slack = np.maximum(0, -(without + self.multipliers[rows] / self.penalty) / scale)
        return np.concatenate([z[: self.parameters], slack]).astype(z.dtype)

    # ---- looks

    def look(self, z: Array) -> tuple[Seen, Tally]:
        """L at z from a full pass, with slacks moved to their best for this x."""
        assert self.looks is not None
        before = self.looks.tally
        x, slack = z[: self.parameters].astype(np.float64), z[self.parameters :].astype(np.float64)
        if self.gives_jacobian:
            at = self.lift(self.looks.at(x, rounded=False), slack)
            settled = self.settle(z, at.constraint)
            moved = (settled - z).astype(np.float64)
            constraint, jacobian = at.constraint + at.jacobian @ moved, at.jacobian
            weight = self.multipliers + self.penalty * constraint
            objective, gradient = at.objective, at.gradient + weight @ jacobian
        else:
            f, c = self.looks.values(x)
            settled, jacobian = z, None
            constraint = self.scale * (c + self.inward + self.spread(slack))
            weight = self.multipliers + self.penalty * constraint
            slope = self.looks.slope(x, self.factor, weight * self.scale)
            objective = f * self.factor
            gradient = np.concatenate([slope, (weight * self.scale)[self.inequality]])
        seen = Seen(
            z=settled,
            value=float(objective + (self.multipliers + self.penalty / 2 * constraint) @ constraint),
            objective=float(objective),
            gradient=gradient,
            constraint=constraint,
            multipliers=weight,
            stationarity=float(np.linalg.norm(self.project_tangent(settled, -gradient))),
            regularity=self.regularity(settled, constraint, jacobian),
            jacobian=jacobian,
            noise=0.0,
        )
        return seen, self.looks.tally - before

    def lift(self, at: At, slack: Array) -> At:
        """f, c, gradient and Jacobian at x as those of the scaled form at (x, slack)."""
        return at._replace(
            objective=self.factor * at.objective,
            constraint=self.scale * (at.constraint + self.inward + self.spread(slack)),
            gradient=np.concatenate([self.factor * at.gradient, np.zeros(len(slack))]),
            jacobian=self.scale[:, None] * np.concatenate([at.jacobian, self.columns], axis=1),
        )

    def regularity(self, z: Array, constraint: Array, jacobian: Array | None) -> float:
        """|P_T(-J'c)| / |c| at z; infinite without violation, NaN where the Jacobian was not needed."""
        size = float(np.linalg.norm(constraint))
        if jacobian is None:
            return float("nan")
        slope = float(np.linalg.norm(self.project_tangent(z, -(constraint @ jacobian))))
        return slope / size if size > 0 else float("inf")

    def stuck(self, at: Seen) -> bool:
        """Whether the violation at a stationary point cannot fall to first order: a larger penalty alone leads nowhere."""
        return not float(at.regularity) > IRREGULAR

    def violation(self, constraint: Array) -> float:
        """|c| in the problem's units."""
        return float(np.linalg.norm(constraint / self.scale))

    def spread(self, slack: Array) -> Array:
        """Slacks in the rows of c; zero for equalities."""
        rows = np.zeros(len(self.inequality))
        rows[self.inequality] = slack
        return rows


@compiled
def _project(domain: ConvexSet, parameters: Any, x: jax.Array) -> jax.Array:
    return parameters.flatten(domain.project(parameters.arrays(x))).astype(x.dtype)


@compiled
def _tangent(domain: ConvexSet, parameters: Any, x: jax.Array, v: jax.Array) -> jax.Array:
    return parameters.flatten(domain.project_tangent(parameters.arrays(x), parameters.arrays(v))).astype(v.dtype)


@compiled
def _face(domain: ConvexSet, parameters: Any, x: jax.Array, v: jax.Array) -> jax.Array:
    return parameters.flatten(domain.project_face(parameters.arrays(x), parameters.arrays(v))).astype(v.dtype)


def best_shift(rows: Array, gradient: Array, reach: Array) -> Array:
    """argmin over |mu_j| <= reach_j of |g + J'mu|, by least squares and clipping; g and J are those of a face."""
    if not len(rows):
        return np.zeros(0)
    gram = rows @ rows.T
    ridge = np.finfo(float).eps * np.trace(gram) + np.finfo(float).tiny  # above zero also where the face is a point
    gram = gram + ridge * np.eye(len(gram))
    return np.clip(-np.linalg.solve(gram, rows @ gradient), -reach, reach)
