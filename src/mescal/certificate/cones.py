"""Smallest curvature on a polyhedral cone: ``min d'Hd`` over ``|d| = 1``, ``d in K``.

``K = {d : d_i = 0 (zero), d_i >= 0 (lower), d_i <= 0 (upper), E d = 0, A d <= 0}``. Bounds and rows are first reduced
to ``{y : G y <= 0}`` on an orthonormal basis of the span of K, in which no row of G is implied to be an equality. With
at most one row in G the minimum is the smallest eigenvalue on the span: ``d'Hd`` is even, so one sign condition is
void. With more, it is found by branching on faces (dense), or enclosed (matrix-free).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from ..errors import InputError
from .budget import ENDLESS, Budget
from .certificate import Measured
from .eigen import ROUNDING, SMALLEST_FAILURE, Extreme, lanczos_smallest, smallest_eigenspace
from .faces import Faces, copositive_weights
from .rows import (
    ANGLE,
    RANK_TOLERANCE,
    RESTRICTION_TOLERANCE,
    complement,
    counted,
    distinct,
    implied_equalities,
    null_basis,
    restricted,
    row_space,
    spectrum,
    unit_rows,
)
from .search import search
from .span import Span

Array = np.ndarray

TAKEN_OVER = 1.25  # of the resolution: how long an interval may be whose lower end comes from a larger cone
# Units of rounding per coordinate: what is left of a row at unit length on a subspace of which it is no condition. Bases are
# orthonormal to about one (measured: 1.1 of 5 coordinates).
SHORTEST = 8 * float(np.finfo(float).eps)
NO_HESSIAN = "none: the Hessian has entries that are not finite here"
FEW_SIGNS = 100  # up to this many sign conditions the matrix-free lower end makes use of them


@dataclass(frozen=True, eq=False)
class Cone:
    """The cone of directions d with ``d_i = 0``, ``d_i >= 0``, ``d_i <= 0``, ``E d = 0`` and ``A d <= 0``.

    **Arguments:**

    - `zero`, `lower`, `upper`: boolean masks of length n; a coordinate both lower and upper is zero.
    - `equalities`: E, one row per equality, of shape (p, n).
    - `inequalities`: A, one row per inequality, of shape (q, n).
    - `errors`: how far each row of E may be off, in length; default: zero.

    With errors, directions of E that these may have made count as none: the cone is then no smaller than the true one. What is
    left turns by an angle t = |errors| / sigma at most, rows at unit length and sigma their smallest singular value that counts;
    a unit d of the true cone lies within t of the one found, and d'Hd changes by (2t + t^2)|H|. Directions with t > `ANGLE`
    are left out. (Where signs bound the cone as well, the nearest direction may be further off than t; it is not looked for.)
    """

    zero: Array
    lower: Array
    upper: Array
    equalities: Array
    inequalities: Array
    errors: Array | None = None

    def __post_init__(self):
        size = np.shape(self.zero)
        for name in ("zero", "lower", "upper"):
            mask = np.asarray(getattr(self, name), dtype=bool)
            if mask.ndim != 1 or mask.shape != size:
                raise InputError(
                    f"the mask `{name}` of a cone has shape {mask.shape}",
                    f"one entry per coordinate, as `zero` has: {size}",
                    "build the masks for the same parameters and slacks",
                )
            object.__setattr__(self, name, mask)
        for name in ("equalities", "inequalities"):
            rows = np.asarray(getattr(self, name), dtype=np.float64)
            if rows.ndim != 2 or rows.shape[1:] != size or not np.isfinite(rows).all():
                raise InputError(
                    f"the rows `{name}` of a cone have shape {rows.shape} or entries that are not finite",
                    f"a finite matrix with {size[0]} columns",
                    "check the Jacobian at this point",
                )
            object.__setattr__(self, name, rows)
        if self.errors is None:
            object.__setattr__(self, "errors", np.zeros(len(self.equalities)))

    @classmethod
    def of(
        cls, n: int, *, zero=None, lower=None, upper=None, equalities=None, inequalities=None, errors=None
    ) -> "Cone":
        """The cone in R^n with what is not given left out: no argument makes all of R^n."""
        masks = [np.zeros(n, dtype=bool) if mask is None else mask for mask in (zero, lower, upper)]
        rows = [np.zeros((0, n)) if matrix is None else matrix for matrix in (equalities, inequalities)]
        return cls(*masks, *rows, errors=errors)

    @property
    def size(self) -> int:
        return len(self.zero)

    @property
    def free(self) -> Array:
        """Coordinates that are not fixed at zero by themselves."""
        return ~(self.zero | (self.lower & self.upper))

    @cached_property
    def space(self) -> tuple[Array, float]:
        """Orthonormal rows that span those of E on the free coordinates, and by how far errors of the rows may have turned them."""
        (values, vectors), error = self._spectrum
        kept = counted(values, error / ANGLE)
        return vectors[kept], error / float(values[kept].min()) if error > 0 and kept.any() else 0.0

    @property
    def is_loosened(self) -> bool:
        """Whether conditions were left out that errors may have made: its directions may then lie outside of the true cone."""
        assert self.errors is not None
        lengths = np.linalg.norm(np.where(self.free, self.equalities, 0.0), axis=1)
        unknown = (lengths <= self.errors) & (self.errors > 0)
        return bool(unknown.any()) or len(self.space[0]) < counted(self._spectrum[0][0]).sum()

    @cached_property
    def _spectrum(self) -> tuple[tuple[Array, Array], float]:
        """Of the unit rows of E that count on the free coordinates, and by how much these are off together."""
        lengths = np.linalg.norm(np.where(self.free, self.equalities, 0.0), axis=1)
        assert self.errors is not None
        known = self._known(lengths)
        rows = np.where(self.free, self.equalities, 0.0)[known] / lengths[known, None]
        return spectrum(rows), float(np.linalg.norm(self.errors[known] / lengths[known]))

    def _known(self, lengths: Array) -> Array:
        """Rows of E that count on the free coordinates: by their errors where these are given, else by a fraction of the row."""
        assert self.errors is not None
        whole = np.linalg.norm(self.equalities, axis=1)
        return lengths > np.where(self.errors > 0, self.errors, RESTRICTION_TOLERANCE * whole)

    def violation(self, direction: Array) -> float:
        """The largest violation of a condition of the cone by `direction`, rows taken at unit length."""
        d = np.asarray(direction, dtype=np.float64)
        parts = [np.abs(d[~self.free]), np.maximum(-d[self.lower], 0), np.maximum(d[self.upper], 0)]
        for rows, measure in ((self.equalities, np.abs), (self.inequalities, lambda r: np.maximum(r, 0))):
            lengths = np.linalg.norm(rows, axis=1)
            parts.append(measure((rows @ d)[lengths > 0] / lengths[lengths > 0]))
        return float(np.concatenate(parts).max(initial=0.0))


@dataclass(frozen=True, eq=False)
class Curvature:
    """The smallest curvature on a cone: ``lower <= min d'Hd <= upper``, rounding included.

    `value` is the best estimate: the curvature along `direction`, a unit vector of the cone; without a direction, that
    of the relaxation to the span. On the cone {0} all three are +inf. `how` says how the interval was found, and whether
    its lower end holds with a probability only.
    """

    value: float
    lower: float
    upper: float
    how: str
    direction: Array | None

    def widened(self, error: float) -> Measured:
        """As a measure, where the form itself is off by so much."""
        return Measured(self.value, self.lower - error, self.upper + error, self.how)


def smallest_on_cone(
    H: Array,
    cone: Cone,
    *,
    max_faces: int = 200,
    seed: int = 0,
    thorough: bool = True,
    budget: Budget = ENDLESS,
) -> Curvature:
    """``min d'Hd`` over ``|d| = 1``, ``d in K``, for a dense symmetric H.

    **Arguments:**

    - `max_faces`: eigenvalue problems that branching on faces may solve; past them the interval may stay open.
    - `seed`: of the vectors that probe multiple eigenvalues and start a search; the interval holds for every seed.
    - `thorough`: whether to go on where the first faces leave the interval open.
    - `budget`: when to end with the interval as it is; one eigenvalue problem is solved in any case.
    """
    H = np.asarray(H, dtype=np.float64)
    if H.shape != (cone.size, cone.size):
        raise InputError(
            f"the matrix has shape {H.shape}",
            f"a matrix of shape {(cone.size, cone.size)}, as the cone has",
            "build both for the same point",
        )
    basis, rows, angle, lost = _reduce(cone)
    if basis.shape[1] == 0:
        return _nothing()
    free = cone.free
    matrix = H[np.ix_(free, free)]
    if not np.isfinite(matrix).all():
        return Curvature(math.nan, -math.inf, math.inf, NO_HESSIAN, None)
    matrix = 0.5 * (matrix + matrix.T)
    norm = min(float(np.linalg.norm(matrix)), float(np.abs(matrix).sum(axis=1).max()))
    if not np.array_equal(basis, np.eye(len(basis))):
        matrix = basis.T @ matrix @ basis
        matrix = 0.5 * (matrix + matrix.T)
    rounding = (max(ROUNDING, 4 * len(matrix) * np.finfo(float).eps) + 2 * angle + angle**2) * norm
    if len(rows) <= 1:
        value, space = smallest_eigenspace(matrix, 0.0)
        lower, vector = value, space[:, 0]
        if float((rows @ vector).sum()) > 0:
            vector = -vector
        how = "dense eigenvalue" + _void(len(rows))
    else:
        faces = Faces(matrix, rows, rounding, seed, budget)
        lower, how = faces.minimise(max_faces, thorough)
        value, vector = faces.best, faces.vector
    if vector is None:
        return _nothing() if lower == math.inf else Curvature(lower, lower - rounding, math.inf, how, None)
    direction = np.zeros(cone.size)
    direction[free] = basis @ vector
    upper = math.inf if lost else value + rounding
    return Curvature(value, min(lower, value) - rounding, upper, how, direction)


def smallest_on_cone_matrix_free(
    hvp: Callable[[Array], Array],
    n: int,
    cone: Cone,
    *,
    resolution: float,
    failure: float = 1e-6,
    max_steps: int = 500,
    starts: int = 8,
    seed: int = 0,
    enclosing: Curvature | None = None,
    thorough: bool = True,
    budget: Budget = ENDLESS,
    decided: float = math.inf,
) -> Curvature:
    """``min d'Hd`` over ``|d| = 1``, ``d in K``, from products with H alone.

    With at most one sign condition the interval is that of Lanczos on the span of K. With more, the upper end is the
    curvature of the best direction of K that a search finds. The lower end is that of the span, without signs; where the
    two are further apart than `resolution` and sign conditions are few, it is that of ``H - G'NG`` for an N >= 0 found on
    the Krylov space, if larger: ``(Gd)'N(Gd) >= 0`` on the cone.

    **Arguments:**

    - `hvp`: maps an (n,) vector or an (n, k) block to H times it, in float64.
    - `resolution`: the length at which an interval is short enough.
    - `failure`: the probability, over random starts, that the lower end is wrong.
    - `max_steps`: Lanczos steps; each costs one product and n numbers of memory.
    - `starts`: random starts of the search.
    - `enclosing`: the smallest curvature of a form that is nowhere above d'Hd on K, on a cone that holds K. Its lower end
      holds here too; where the part in K of its direction has a curvature within 1.25 `resolution` of it, that is the answer.
    - `thorough`: whether sign conditions are made use of for the lower end.
    - `budget`: when to end with the interval as it is; one product is taken in any case.
    - `decided`: a lower end above it is enough, however long the interval.
    """
    if cone.size != n:
        raise InputError(f"the cone lies in R^{cone.size}", f"a cone in R^{n}", "build both for the same point")
    if not SMALLEST_FAILURE <= failure < 1:
        raise InputError(
            f"the failure probability is {failure}",
            f"a number from {SMALLEST_FAILURE} up to 1",
            "ask for 1e-6, or use the dense computation, which has no failure probability",
        )
    # signs that are many serve to find flat cones alone, which takes as long as a Lanczos run
    span = Span.of(cone, FEW_SIGNS * n) if budget.is_timed else Span.of(cone)
    if span.dimension == 0:
        return _nothing()

    def apply(vector: Array) -> Array:
        return np.asarray(hvp(vector), dtype=np.float64)

    def lanczos(operator: Callable[[Array], Array], share: float, seed: int) -> Extreme:
        return lanczos_smallest(
            operator,
            span.project,
            n,
            span.dimension,
            failure=share,
            resolution=resolution,
            max_steps=max_steps,
            seed=seed,
            budget=budget.share(0.5),
            decided=decided,
        )

    if enclosing is not None and (found := _enclosed(apply, span, enclosing, resolution)) is not None:
        return found
    signs = span.signs if span.count <= FEW_SIGNS else None
    extreme = lanczos(apply, failure if span.count <= 1 or signs is None else failure / 2, seed)
    turned = 2 * span.angle + span.angle**2
    extreme = replace(extreme, lower=extreme.lower - turned * extreme.scale)
    rounding = (ROUNDING + turned) * extreme.scale
    how = f"Lanczos, {_steps(extreme, failure)}"
    if signs is not None and span.count <= 1:
        vector = -extreme.vector if float((signs @ extreme.vector).sum()) > 0 else extreme.vector
        return Curvature(extreme.value, extreme.lower, extreme.value + rounding, how + _void(span.count), vector)
    random = np.random.default_rng([seed, 1]).standard_normal((starts, n))
    enough = max(extreme.value + rounding, extreme.lower + resolution)
    found = search(
        apply,
        span.project_cone,
        lambda d: span.face_vector(d, apply),
        extreme.largest + 0.05 * (extreme.largest - extreme.value),
        [*extreme.vectors.T, *(span.project(v) for v in random)],
        target=enough,
        budget=budget.share(0.5),
    )
    how += f", without {span.count} sign conditions"
    if found is None:
        return Curvature(extreme.value, extreme.lower, math.inf, f"{how}; no direction was found", None)
    value, vector = found
    lower = extreme.lower
    if thorough and signs is not None and value > enough and not budget.over:
        again = partial(lanczos, share=failure / 2, seed=seed + 1)
        signed = _with_signs(apply, signs, extreme, value, again, budget.share(0.5))
        if signed.lower > lower:
            lower, rounding = signed.lower - turned * signed.scale, (ROUNDING + turned) * signed.scale
            how = f"Lanczos with copositive shift of {span.count} sign conditions, {_steps(signed, failure)}"
    how += "; upper end from a search in the cone"
    return Curvature(value, min(lower, value - rounding), value + rounding, how, vector)


def _enclosed(apply, span: Span, enclosing: Curvature, resolution: float) -> Curvature | None:
    """The interval from the lower end of `enclosing` to the curvature of its direction's part in the cone, if short."""
    if enclosing.direction is None:
        return None
    part = span.project(enclosing.direction)
    if span.count:
        part = max((span.project_cone(sign * part) for sign in (1.0, -1.0)), key=lambda d: float(np.linalg.norm(d)))
    length = float(np.linalg.norm(part))
    if length < 0.5:
        return None
    direction = part / length
    product = apply(direction)
    value, rounding = float(direction @ product), ROUNDING * float(np.linalg.norm(product))
    if value - enclosing.lower > TAKEN_OVER * resolution:
        return None
    how = f"lower end from the whole space ({enclosing.how}), upper end from its direction in the cone"
    return Curvature(value, min(enclosing.lower, value - rounding), value + rounding, how, direction)


def _with_signs(apply, signs: Array, extreme: Extreme, value: float, lanczos, budget: Budget) -> Extreme:
    """Lanczos on ``H - G'NG`` with the N that is best on the Krylov space and the rows of G = `signs`."""
    rest = signs - (signs @ extreme.basis.T) @ extreme.basis
    extra = row_space(unit_rows(rest, np.ones(len(rest)), RANK_TOLERANCE))
    products = apply(np.ascontiguousarray(extra.T))
    subspace = np.concatenate([extreme.basis, extra])
    mixed = subspace @ products
    steps = len(extreme.basis)
    matrix = np.zeros((len(subspace), len(subspace)))
    matrix[:steps, :steps] = extreme.tridiagonal
    matrix[:, steps:], matrix[steps:, :] = mixed, mixed.T
    matrix[steps:, steps:] = 0.5 * (mixed[steps:] + mixed[steps:].T)
    weights = copositive_weights(matrix, signs @ subspace.T, value, budget=budget)
    return lanczos(lambda v: apply(v) - signs.T @ (weights @ (signs @ v)))


def _nothing() -> Curvature:
    return Curvature(math.inf, math.inf, math.inf, "the cone is {0}", None)


def _void(count: int) -> str:
    return ", the one sign condition is void" if count else ""


def _steps(extreme: Extreme, failure: float) -> str:
    certainty = "the whole space, exact" if extreme.exact else f"failure probability {failure:g}"
    return f"{extreme.steps} step{'s' if extreme.steps > 1 else ''}, {certainty}"


def _reduce(cone: Cone) -> tuple[Array, Array, float, bool]:
    """(basis on the free coordinates, unit rows G, angle) with ``K = {basis y : G y <= 0}``; no column for the cone {0}.

    The last entry says whether rows were left out that are short and yet longer than rounding: K may then be smaller.
    """
    free = cone.free
    space, angle = cone.space
    basis = complement(space[:, free])
    bounded = np.flatnonzero((cone.lower | cone.upper)[free])
    bounds = np.where(cone.lower[free][bounded], -1.0, 1.0)[:, None] * basis[bounded]
    rows = np.concatenate([bounds, restricted(cone.inequalities, free)[:, free] @ basis])
    lengths = np.linalg.norm(rows, axis=1)
    lost = bool(((lengths > SHORTEST * cone.size) & (lengths <= RANK_TOLERANCE)).any())
    rows = unit_rows(rows, np.ones(len(rows)), RANK_TOLERANCE)
    while (implied := implied_equalities(rows)).any():
        smaller = null_basis(rows[implied])
        basis, rows = basis @ smaller, rows[~implied] @ smaller
        rows = unit_rows(rows, np.ones(len(rows)), RANK_TOLERANCE)
    return basis, distinct(rows), angle, lost
