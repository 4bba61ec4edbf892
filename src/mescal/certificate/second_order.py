"""Curvature of the Lagrangian at a point, on three cones in z = (x, s):

- `whole`: all of space, for the augmented Lagrangian,  H + al A'A,  A = [J, S]: the paper's test, sufficient;
- `paper`: T_X(x) x T_{s >= 0} and A d = 0: its definition (iii);
- `critical`: in addition d orthogonal to the gradient of the Lagrangian, that is d = 0 along strongly active bounds: the
  true critical cone, the only one whose condition is necessary at a local minimiser. Where the boundary of X is curved,
  its curvature times its multiplier is added to H, as the second-order condition for curved sets has it.

H = grad^2 f + sum_j lam_j grad^2 c_j acts on x alone; S puts the slack of each inequality into its row of c.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ..sets.cone import TangentCone
from .budget import ENDLESS, Budget
from .cones import NO_HESSIAN, Cone, Curvature, smallest_on_cone, smallest_on_cone_matrix_free
from .rows import RANK_TOLERANCE

CONES = ("whole", "paper", "critical")
DENSE_SIZE = 1500  # up to this many parameters the Hessian is formed; its eigenvalues then take about a second
ALWAYS_FORMED = 100  # parameters up to which the Hessian is formed whatever the time: that takes less than compiling it
SHORT_ROW = 10 * RANK_TOLERANCE
LANCZOS_STEPS = 500  # at most, on the cone that decides ...
BRIEF_STEPS = 64  # ... and on the others, of which an interval is reported, however long
LANCZOS_FAILURE = 1e-6  # probability that a Lanczos lower end is wrong


@dataclass(frozen=True)
class Situation:
    """A point, as the second-order conditions see it: everything in float64, slacks and rows unscaled.

    `gradient` is that of the Lagrangian in x; `tangent` is None where the set only has a projection; `strong` is the
    size above which a multiplier of a bound counts as positive; `doubt` is added to the multipliers of the bounds of X
    before they are used; `errors` says how far each row of the Jacobian may be off, in length.
    """

    gradient: np.ndarray
    jacobian: np.ndarray
    multipliers: np.ndarray
    inequality: np.ndarray
    slack: np.ndarray
    tangent: TangentCone | None
    normal: np.ndarray
    penalty: float
    strong: float
    doubt: float = 0.0
    errors: np.ndarray | None = None

    @property
    def slack_columns(self) -> np.ndarray:
        """S, shape (m, k): which row each slack belongs to."""
        return np.eye(len(self.multipliers))[:, self.inequality]

    @property
    def rows(self) -> np.ndarray:
        """A = [J, S], shape (m, d + k)."""
        return np.concatenate([self.jacobian, self.slack_columns], axis=1)


def curvatures(
    situation: Situation,
    matrix: np.ndarray | None,
    product: Callable[[np.ndarray], np.ndarray],
    resolution: float,
    seed: int = 0,
    deciding: str | None = None,
    budget: Budget = ENDLESS,
) -> dict[str, Curvature]:
    """The smallest curvature on each of the three cones; `matrix` is H where it is formed, `product` maps blocks V to H V.

    Where many signs leave an interval open at first, only that of the `deciding` cone is worth more (None: all are); it has the
    time of the `budget` that the whole space leaves.
    """
    found: dict[str, Curvature] = {}
    # the whole space comes first: on the other cones A d = 0, and its form is nowhere above theirs ...
    names = sorted(CONES, key=lambda name: (name != "whole", name != deciding))
    if matrix is None and deciding is not None and _few_signs(deciding, situation):
        names.sort(key=lambda name: name != deciding)  # ... unless the deciding cone is a subspace, and needs no help
    for name in names:
        thorough, whole = deciding in (None, name), _enclosing(found, situation)
        if budget.over:
            found[name] = unmeasured(whole)
            continue
        time = budget.share(0.4) if whole is None and deciding != name else budget
        steps = LANCZOS_STEPS if thorough or names[0] == name == "whole" else BRIEF_STEPS
        found[name] = on_cone(
            name, situation, matrix, product, resolution, seed, None, whole, thorough, budget=time, steps=steps
        )
        if budget.is_timed and whole is not None and found[name].lower < whole.lower:
            found[name] = replace(
                found[name], lower=whole.lower, how=f"{found[name].how}; lower end from the whole space"
            )
    return {name: found[name] for name in CONES}


def _enclosing(found: dict[str, Curvature], situation: Situation) -> Curvature | None:
    """The whole space as a bound for cones with A'd = 0, A' within errors e of A: its form has al |A d|^2 <= al |e|^2 more."""
    whole = found.get("whole")
    if whole is None or situation.errors is None:
        return whole
    return replace(whole, lower=whole.lower - situation.penalty * float(situation.errors @ situation.errors))


def unmeasured(whole: Curvature | None = None) -> Curvature:
    """What is known of a cone for which there was no time: what the whole space says, if that is known."""
    if whole is None:
        return Curvature(np.nan, -np.inf, np.inf, "not measured: the judge's time was up", None)
    how = f"not measured: the judge's time was up; a bound, from the whole space ({whole.how})"
    return Curvature(whole.lower, whole.lower, np.inf, how, None)


def _few_signs(name: str, situation: Situation) -> bool:
    """Whether a cone has one sign condition at most."""
    cone, _ = build_cone(name, situation)
    return int(((cone.lower | cone.upper) & cone.free).sum()) + len(cone.inequalities) <= 1


def on_cone(
    name: str,
    situation: Situation,
    matrix: np.ndarray | None,
    product: Callable[[np.ndarray], np.ndarray],
    resolution: float,
    seed: int = 0,
    relaxed: float | None = None,
    enclosing: Curvature | None = None,
    thorough: bool = True,
    budget: Budget = ENDLESS,
    steps: int = LANCZOS_STEPS,
) -> Curvature:
    """The smallest curvature on one cone, dense where `matrix` (H itself) is given, by Lanczos on `product` otherwise.

    With `relaxed`, A d = 0 is no condition any more, and relaxed |A d|^2 is added to the curvature instead. `enclosing` is
    what is known of the whole space; without a dense matrix it can save a second Lanczos run, of at most `steps`.
    """
    cone, bending = build_cone(name, situation, rows=relaxed is None)
    penalty = situation.penalty if name == "whole" else relaxed
    rows = None if penalty is None else situation.rows
    size = situation.gradient.size
    if matrix is not None:
        joint = np.zeros((cone.size, cone.size))
        joint[:size, :size] = matrix + np.diag(bending)
        if rows is not None:
            joint += penalty * rows.T @ rows
        found = smallest_on_cone(joint, cone, seed=seed, thorough=thorough, budget=budget)
    else:

        def apply(v: np.ndarray) -> np.ndarray:
            block = v.reshape(cone.size, -1)
            out = np.zeros_like(block)
            out[:size] = product(block[:size]) + bending[:, None] * block[:size]
            if not np.isfinite(out).all():
                raise _UndefinedError
            if rows is not None:
                out += penalty * rows.T @ (rows @ block)
            return out.reshape(v.shape)

        try:
            found = smallest_on_cone_matrix_free(
                apply,
                cone.size,
                cone,
                failure=LANCZOS_FAILURE,
                resolution=resolution,
                seed=seed,
                enclosing=enclosing,
                thorough=thorough,
                budget=budget,
                max_steps=steps,
                decided=0.0,
            )
        except _UndefinedError:
            return Curvature(np.nan, -np.inf, np.inf, NO_HESSIAN, None)
    if name != "whole" and (cone.is_loosened or _is_doubtful(name, situation, cone)):
        how = (
            f"{found.how}; no upper end: rows of the Jacobian are short or, like multipliers of bounds, within rounding"
        )
        found = replace(found, upper=np.inf, how=how)
    if situation.tangent is None and name != "whole":
        how = f"{found.how}; a bound, on all directions: the tangent cone of the set is not known"
        return Curvature(found.lower, found.lower, np.inf, how, None)
    return found


class _UndefinedError(Exception):
    """A product with the Hessian is not finite."""


def _is_doubtful(name: str, situation: Situation, cone: Cone) -> bool:
    """Whether conditions may be missing: a bound would be held if its multiplier were as large as its error lets it be."""
    at_zero = situation.inequality & (situation.slack <= 0)
    lengths = np.linalg.norm(situation.jacobian, axis=1)
    errors = np.zeros_like(lengths) if situation.errors is None else situation.errors
    unknown = (errors > 0) & (lengths <= errors)  # such rows are zero here: their sign conditions are missing, ...
    short = (lengths > 0) & (
        lengths <= SHORT_ROW
    )  # ... those of others may have been lost beside the unit of a slack, ...
    if (at_zero & (unknown | short)).any():
        return True
    if (
        situation.inequality & unknown & (errors > SHORT_ROW**0.5)
    ).any():  # ... and a free slack that moves makes steps longer
        return True
    if name != "critical" or situation.doubt == 0:
        return False
    tight, _ = build_cone(name, replace(situation, doubt=abs(situation.doubt)))
    return bool((tight.zero != cone.zero).any()) or len(tight.equalities) != len(cone.equalities)


def build_cone(name: str, situation: Situation, rows: bool = True) -> tuple[Cone, np.ndarray]:
    """The cone in z, and the diagonal that curved boundaries add to H on it; without `rows`, A d = 0 is left out."""
    size, slacks = situation.gradient.size, int(situation.inequality.sum())
    bending = np.zeros(size)
    if name == "whole":
        return Cone.of(size + slacks), bending
    tangent = situation.tangent or TangentCone.whole(size)
    at_zero = situation.slack[situation.inequality] <= 0
    lower = np.concatenate([tangent.lower, at_zero])
    upper = np.concatenate([tangent.upper, np.zeros(slacks, bool)])
    zero = np.zeros(size + slacks, bool)
    equalities = [situation.rows[: None if rows else 0], _pad(tangent.equalities, slacks)]
    inequalities = tangent.inequalities
    if name == "critical":
        of_bounds, of_rows = normal_multipliers(tangent, situation.normal)
        of_rows = of_rows + situation.doubt
        zero[:size] = (tangent.lower | tangent.upper) & (np.abs(of_bounds) + situation.doubt > situation.strong)
        zero[size:] = at_zero & (situation.multipliers[situation.inequality] > situation.strong)
        held = of_rows > situation.strong
        bending = tangent.bending(np.where(held, of_rows, 0.0))
        equalities.append(_pad(inequalities[held], slacks))
        inequalities = inequalities[~held]
    rows_of = np.concatenate(equalities)
    off = np.zeros(len(rows_of))
    if rows and situation.errors is not None:
        # where a slack is free to make up for an error of its row, that changes no curvature: H acts on x alone
        made_up = np.zeros(len(situation.rows), bool)
        made_up[situation.inequality] = ~zero[size:]
        off[: len(situation.rows)] = np.where(made_up, 0.0, situation.errors)
    cone = Cone.of(
        size + slacks,
        zero=zero,
        lower=lower,
        upper=upper,
        equalities=rows_of,
        inequalities=_pad(inequalities, slacks),
        errors=off,
    )
    return cone, bending


def normal_multipliers(tangent: TangentCone, normal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Multipliers of the active bounds (by coordinate) and of the active rows that make up a normal vector of X.

    normal = E' nu + A' mu + (upper part) - (lower part): nu and mu from the coordinates that touch no bound. Any such
    decomposition gives the same critical cone: all its terms have one sign on tangent directions.
    """
    touching = tangent.lower | tangent.upper
    rows = np.concatenate([tangent.equalities, tangent.inequalities])
    weights = np.linalg.lstsq(rows[:, ~touching].T, normal[~touching], rcond=None)[0] if len(rows) else np.zeros(0)
    rest = normal - weights @ rows if len(rows) else normal
    return np.where(touching, rest, 0.0), weights[len(tangent.equalities) :]


def _pad(rows: np.ndarray, columns: int) -> np.ndarray:
    return np.concatenate([rows, np.zeros((len(rows), columns))], axis=1)
