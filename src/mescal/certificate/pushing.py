"""Which of what pushes is held on the critical cone: forces that nearly cancel hold less than each of them pushes.

A force is a condition J_j d <= 0 with a multiplier lam_j > 0: a constraint, a boundary of X, a bound. Multipliers within the
tolerance of the true ones may have R of them where the truth has none, if the slope |P sum_R lam_j J_j| that is left on the
face of the others is no more than what counts as a push. With R all its parts can go, too, so that it is enough to look at the
largest sets: each makes a face, the others held and R let go, and a minimiser has no negative curvature on any of them. Of
what cannot go alone nothing can go with others. And the truth may have one force where they have another that is nearly
parallel to it: each such exchange makes faces of its own.
"""

from dataclasses import replace

import numpy as np

from .beside import Beside
from .forces import Forces, Held
from .letting_go import MOST, Few
from .rows import RESTRICTION_TOLERANCE, row_space


def faces_of(forces: Forces, held: np.ndarray, strong: float) -> list[Held]:
    """What is held of the rows `held` and of all bounds that push, on each face."""
    if not (len(forces.always) or held.any() or (forces.active.any() and forces.bounds.any())):
        return [Held(held, forces.bounds != 0)]
    push = forces.bounds + forces.multipliers[held] @ forces.rows[held]
    start = Held(held, forces.bounds != 0)
    found, todo, seen = [], [(start, Beside.of(forces, held), strong)], [start]
    replaced, looked = [], 0
    while todo:
        all_held, beside, least = todo.pop(0)
        others_are_free = (forces.active & ~all_held.rows).any() or (forces.sides[~all_held.bounds] != 0).any()
        faces = _let_go(beside, least)
        found += faces
        for face in faces:
            if face.loose or not others_are_free:
                continue
            if _same(face, all_held):
                at = beside, least
            else:
                at, looked = _sharing(forces, face, push, strong), looked + 1
            others = at[0].exchanges(strong, all_held) if at else []
            replaced += [old for old, _ in others]
            if looked + len(others) + len(seen) > 2 * MOST:  # without what takes their places the faces are larger
                return _largest([*found, _without(found, replaced)])
            for old, new in others:
                other = _exchanged(face, old, new)
                if not any(_same(other, before) for before in seen):
                    seen.append(other)
                    at_other = _sharing(forces, other, push, strong)
                    todo += [(other, *at_other)] if at_other else []
    return _largest(found)


def _same(one: Held, other: Held) -> bool:
    return np.array_equal(one.rows, other.rows) and np.array_equal(one.bounds, other.bounds)


def _sharing(forces: Forces, face: Held, push: np.ndarray, strong: float) -> tuple[Beside, float] | None:
    """What is held on a face with multipliers that make up the `push`, and how much of a slope beside what they leave of it is
    none. None where no multipliers of the right signs leave so little.
    """
    beside = Beside.of(replace(forces, bounds=np.where(face.bounds, forces.sides, 0.0)), face.rows)
    beside, wrong = beside.sharing(push)
    left = float(np.linalg.norm(beside.rest))
    return (beside, float(np.sqrt(max(strong**2 - left**2, 0.0)))) if np.hypot(left, wrong) <= strong else None


def _exchanged(face: Held, old: int, new: int) -> Held:
    """The same with one force for another; numbers beyond those of the rows are coordinates with bounds."""
    both = np.concatenate([face.rows, face.bounds])
    both[old], both[new] = False, True
    return Held(both[: len(face.rows)], both[len(face.rows) :])


def _without(found: list[Held], gone: list[int]) -> Held:
    """What all faces hold, without those that may go."""
    both = np.all([np.concatenate([face.rows, face.bounds]) for face in found], axis=0)
    both[gone] = False
    return Held(both[: len(found[0].rows)], both[len(found[0].rows) :], loose=True)


def _let_go(beside: Beside, strong: float) -> list[Held]:
    """The faces that letting go makes."""
    forces, held, touching = beside.forces, beside.held, beside.forces.bounds != 0
    rows, bounds = beside.doubtful(strong)
    if not (rows.any() or bounds.any()):
        return [Held(held, touching)]
    few = _few(forces, held, touching, rows, bounds)
    sets, loose = few.sets(strong)
    faces = []
    for gone in sets:
        kept = ~gone
        kept |= few.within(kept)  # what others make up makes no difference
        of_rows, of_bounds = held & ~rows, touching & ~bounds
        of_rows[rows], of_bounds[bounds] = kept[: rows.sum()], kept[rows.sum() :]
        faces.append(Held(of_rows, of_bounds, loose))
    return faces


def _few(forces: Forces, held: np.ndarray, touching: np.ndarray, rows: np.ndarray, bounds: np.ndarray) -> Few:
    """These rows and bounds, without what all others make up of them."""
    places = np.flatnonzero(bounds)
    units = np.zeros((len(places), forces.rows.shape[1]))
    units[np.arange(len(places)), places] = np.sign(forces.bounds[places])
    free = ~((touching & ~bounds) | forces.fixed)
    mine = np.where(free, np.concatenate([forces.rows[rows], units]), 0.0)
    others = np.where(free, np.concatenate([forces.rows[held & ~rows], forces.always]), 0.0)
    lengths = np.linalg.norm(others, axis=1)
    least = np.concatenate([forces.least[rows], np.full(len(places), RESTRICTION_TOLERANCE)])
    span = row_space(others[lengths > 0] / lengths[lengths > 0, None])
    for _ in range(2):  # the second time takes off what rounding left
        mine = mine - (mine @ span.T) @ span
    return Few(
        mine,
        np.concatenate([forces.multipliers[rows], np.abs(forces.bounds[places])]),
        np.concatenate([forces.more[rows], np.full(len(places), forces.more_of_a_bound)]),
        least,
    )


def _largest(faces: list[Held]) -> list[Held]:
    """Without those that hold what another does, and more."""
    found: list[Held] = []
    for face in sorted(faces, key=lambda face: int(face.rows.sum() + face.bounds.sum())):
        if not any((other.rows <= face.rows).all() and (other.bounds <= face.bounds).all() for other in found):
            found.append(face)
    return found
