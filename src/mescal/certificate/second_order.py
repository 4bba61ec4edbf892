"""Curvature of the Lagrangian at a point, on three cones; two of them, the paper's, are in z = (x, s):

- `whole`: all of space, for the augmented Lagrangian,  H + al A'A,  A = [J, S]: the paper's test, sufficient;
- `paper`: T_X(x) x T_{s >= 0} and A d = 0: its definition (iii);
- `critical`, in x alone: T_X(x), J_j d = 0 for equalities and for inequalities that push, J_j d <= 0 for those that are active and
  do not, and d orthogonal to what pushes of X: the true critical cone, the only one whose condition is necessary at a local
  minimiser. Where the boundary of X is curved, its curvature times its multiplier is added to H, as the second-order
  condition for curved sets has it.

H = grad^2 f + sum_j lam_j grad^2 c_j acts on x alone; S puts the slack of each inequality into its row of c. Lengths on the
critical cone are those of x: a slack s = -c(x) moves as fast as the unit of its constraint makes it, and counted as well, a
constraint in a small unit would make every curvature small. For the same reason a row pushes where lam_j |J_j| is large.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from .budget import ENDLESS, Budget
from .cones import NO_HESSIAN, Cone, Curvature, smallest_on_cone, smallest_on_cone_matrix_free
from .forces import same_faces
from .rows import RANK_TOLERANCE, RESTRICTION_TOLERANCE
from .situation import Situation

CONES = ("whole", "paper", "critical")
DENSE_SIZE = 1500  # up to this many parameters the Hessian is formed; its eigenvalues then take about a second
ALWAYS_FORMED = 100  # parameters up to which the Hessian is formed whatever the time: that takes less than compiling it
SHORT_ROW = 10 * RANK_TOLERANCE
SLOW = (
    1e-3  # of what x moves: what slacks move in units in which their length adds no more than its square to that of x
)
DOUBTFUL = "no upper end: rows of the Jacobian are short or, like multipliers of bounds, within rounding"
LANCZOS_STEPS = 500  # at most, on the cone that decides ...
BRIEF_STEPS = 64  # ... and on the others, of which an interval is reported, however long
LANCZOS_FAILURE = 1e-6  # probability that a Lanczos lower end is wrong


def by_products(size: int, is_gram: Callable[[], bool]) -> bool:
    """Whether Lanczos, with all the steps that it may take, asks for fewer products than a dense Hessian that is no Gram matrix."""
    return size > LANCZOS_STEPS and not is_gram()


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
        thorough, whole = deciding in (None, name), _enclosing(name, found, situation)
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


def _enclosing(name: str, found: dict[str, Curvature], situation: Situation) -> Curvature | None:
    """The whole space as a bound for cones with A'd = 0, A' within errors e of A: its form has al |A d|^2 <= al |e|^2 more.

    Per length of x alone, (d, -J'd) is longer than d by the factor 1 + |J'|^2 at most, J' the rows of inequalities; scalars add
    to it what `scalars` says.
    """
    whole = found.get("whole")
    if whole is None:
        return None
    lower, direction = whole.lower - situation.penalty * float(situation.off @ situation.off), whole.direction
    if name == "critical":
        rows, size = situation.jacobian[situation.inequality], situation.gradient.size
        faster = float(np.linalg.norm(rows, 2)) + float(np.linalg.norm(situation.off)) if len(rows) else 0.0
        lower = min(lower, lower * (1 + faster**2) * situation.loosened)
        direction = None if direction is None else direction[:size]
        length = 0.0 if direction is None else float(np.linalg.norm(direction))
        direction = direction / length if direction is not None and length > 0 else None
    return replace(whole, lower=lower, direction=direction)


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

    With `relaxed`, A d = 0 is no condition any more, and relaxed |A d|^2 is added to the curvature instead; on the critical cone
    A has slow slacks for one-sided rows, and a lower end below zero becomes lower by what they add to lengths. `enclosing` is
    what is known of the whole space; without a dense matrix it can save a second Lanczos run, of at most `steps`.
    """
    faces = situation.on_faces if name == "critical" else [situation]
    options = (resolution, seed, relaxed, enclosing, thorough, budget, steps)
    found = _least([_on_face(name, face, matrix, product, *options) for face in faces])
    if name != "whole" and relaxed is None and _is_doubtful(name, situation):
        found = replace(found, upper=np.inf, how=f"{found.how}; {DOUBTFUL}")
    if situation.tangent is None and name != "whole":
        how = f"{found.how}; a bound, on all directions: the tangent cone of the set is not known"
        return replace(found, value=found.lower, upper=np.inf, how=how)
    return found


def _least(found: list[Curvature]) -> Curvature:
    """Of the curvatures on several faces, together the critical cone."""
    least = min(found, key=lambda curvature: curvature.lower)
    if len(found) == 1 or np.isnan(least.value):
        return least
    lowest = min(found, key=lambda curvature: curvature.value)
    how = f"{lowest.how}; the least of {len(found)} faces, as what pushes nearly cancels"
    return replace(lowest, lower=least.lower, upper=min(curvature.upper for curvature in found), how=how)


def _on_face(
    name: str,
    situation: Situation,
    matrix: np.ndarray | None,
    product: Callable[[np.ndarray], np.ndarray],
    resolution: float,
    seed: int,
    relaxed: float | None,
    enclosing: Curvature | None,
    thorough: bool,
    budget: Budget,
    steps: int,
) -> Curvature:
    """The same on one face of the critical cone, or on another cone."""
    cone, bending = build_cone(name, situation) if relaxed is None else relaxed_cone(name, situation, SLOW)
    penalty = situation.penalty if name == "whole" else relaxed
    size = situation.gradient.size
    weight = 0.0 if penalty is None else penalty
    rows = relaxed_rows(name, situation, SLOW) if weight else np.zeros((0, cone.size))
    if matrix is not None:
        joint = np.zeros((cone.size, cone.size))
        joint[:size, :size] = matrix + np.diag(bending)
        if len(rows):
            joint += weight * rows.T @ rows
        found = smallest_on_cone(joint, cone, seed=seed, thorough=thorough, budget=budget)
    else:

        def apply(v: np.ndarray) -> np.ndarray:
            block = v.reshape(cone.size, -1)
            out = np.zeros_like(block)
            out[:size] = product(block[:size]) + bending[:, None] * block[:size]
            if not np.isfinite(out).all():
                raise _UndefinedError
            if len(rows):
                out += weight * rows.T @ (rows @ block)
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
    if name == "critical":
        longest = (cone.size - size) * SLOW**2 + situation.loosened  # the square of a length, per length of x
        found = replace(found, lower=min(found.lower, found.lower * longest))
    if name != "whole" and relaxed is None and cone.is_loosened:
        found = replace(found, upper=np.inf, how=f"{found.how}; {DOUBTFUL}")
    if name == "critical" and situation.held.loose:
        how = f"{found.how}; no upper end: more forces nearly cancel than can be told apart"
        found = replace(found, upper=np.inf, how=how)
    return found


class _UndefinedError(Exception):
    """A product with the Hessian is not finite."""


def _is_doubtful(name: str, situation: Situation) -> bool:
    """Whether conditions may be missing: a bound would be held if its multiplier were as large as its error lets it be."""
    lengths, errors = np.linalg.norm(situation.jacobian, axis=1), situation.off
    unknown = (errors > 0) & (lengths <= errors)  # such rows are zero here: their sign conditions are missing, ...
    if (situation.at_zero & unknown).any():
        return True
    if name == "paper":
        short = (lengths > 0) & (
            lengths <= SHORT_ROW
        )  # ... those of others may have been lost beside the unit of a slack, ...
        moving = (
            situation.inequality & unknown & (errors > SHORT_ROW**0.5)
        )  # ... and a free slack that moves makes steps longer
        return bool((situation.at_zero & short).any() or moving.any())
    for face in situation.on_faces:
        free = build_cone(name, face)[0].free[: situation.gradient.size]
        left = np.linalg.norm(situation.jacobian * free, axis=1)
        if (situation.at_zero & ~face.pushing & (left > 0) & ~_known(situation, free)).any():
            return True
    if max(abs(situation.doubt), abs(situation.spread), errors.max(initial=0.0)) == 0:
        return False
    doubt = max(abs(situation.doubt), np.finfo(float).tiny)
    upwards = replace(situation, doubt=doubt, spread=abs(situation.spread))
    return not same_faces(upwards.faces, situation.faces)


def _known(situation: Situation, free: np.ndarray) -> np.ndarray:
    """Rows of the Jacobian of which more than rounding is left on the free coordinates of x."""
    whole = np.linalg.norm(situation.jacobian, axis=1)
    left = np.linalg.norm(situation.jacobian * free[: situation.gradient.size], axis=1)
    return left > np.maximum(situation.off, RESTRICTION_TOLERANCE * whole)


def build_cone(name: str, situation: Situation) -> tuple[Cone, np.ndarray]:
    """The cone, and the diagonal that curved boundaries add to H on it."""
    if name == "whole":
        return relaxed_cone(name, situation, SLOW)
    if name == "critical":
        cone, bending = _held(situation)
        rows = situation.jacobian
        keeps = ~situation.inequality | situation.pushing
        gives = situation.at_zero & ~keeps & _known(situation, cone.free)
        off = np.concatenate([situation.off[keeps], np.zeros(len(cone.equalities))])
        return replace(
            cone,
            equalities=np.concatenate([rows[keeps], cone.equalities]),
            inequalities=np.concatenate([cone.inequalities, rows[gives]]),
            errors=off,
        ), bending
    cone, bending = relaxed_cone(name, situation, SLOW)
    # where a slack is free to make up for an error of its row, that changes no curvature: H acts on x alone
    off = np.where(situation.inequality, 0.0, situation.off)
    rows = np.concatenate([situation.rows, cone.equalities])
    return replace(cone, equalities=rows, errors=np.concatenate([off, np.zeros(len(cone.equalities))])), bending


def relaxed_cone(name: str, situation: Situation, speed: float) -> tuple[Cone, np.ndarray]:
    """The same without A d = 0; on the critical cone in x and in slacks of one-sided rows, as `relaxed_rows` has them."""
    size, slacks = situation.gradient.size, int(situation.inequality.sum())
    if name == "whole":
        return Cone.of(size + slacks), np.zeros(size)
    if name == "critical":
        cone, bending = _held(situation)
        return _with_slacks(cone, np.ones(relaxed_rows(name, situation, speed).shape[1] - size, bool)), bending
    tangent = situation.tangent_cone
    cone = Cone.of(
        size,
        lower=tangent.lower,
        upper=tangent.upper,
        equalities=tangent.equalities,
        inequalities=tangent.inequalities,
    )
    return _with_slacks(cone, situation.at_zero[situation.inequality]), np.zeros(size)


def relaxed_rows(name: str, situation: Situation, speed: float) -> np.ndarray:
    """A of A d = 0. On the critical cone slacks are there for one-sided rows alone, and move at most `speed` times as fast as x."""
    if name != "critical":
        return situation.rows
    keeps = ~situation.inequality | situation.pushing
    gives = situation.at_zero & ~keeps & _known(situation, _held(situation)[0].free)
    counted = keeps | gives
    units = np.diag(np.linalg.norm(situation.jacobian, axis=1) / speed)
    return np.concatenate([situation.jacobian, units[:, gives]], axis=1)[counted]


def _held(situation: Situation) -> tuple[Cone, np.ndarray]:
    """The tangent cone of X in x with what pushes held, and how far the boundary bends H."""
    tangent, (_, bounds, boundaries, _) = situation.tangent_cone, situation.held
    cone = Cone.of(
        situation.gradient.size,
        zero=bounds,
        lower=tangent.lower,
        upper=tangent.upper,
        equalities=np.concatenate([tangent.equalities, tangent.inequalities[boundaries]]),
        inequalities=tangent.inequalities[~boundaries],
    )
    multipliers = situation.normal_multipliers[1] + situation.doubt
    return cone, tangent.bending(np.where(boundaries, multipliers, 0.0))


def _with_slacks(cone: Cone, bounded: np.ndarray) -> Cone:
    """The cone with slacks beside x, of which some are not to become negative."""
    slacks = len(bounded)
    nothing = np.zeros(slacks, bool)
    return Cone.of(
        cone.size + slacks,
        zero=np.concatenate([cone.zero, nothing]),
        lower=np.concatenate([cone.lower, bounded]),
        upper=np.concatenate([cone.upper, nothing]),
        equalities=_pad(cone.equalities, slacks),
        inequalities=_pad(cone.inequalities, slacks),
    )


def _pad(rows: np.ndarray, columns: int) -> np.ndarray:
    return np.concatenate([rows, np.zeros((len(rows), columns))], axis=1)
