"""The exact finish: Newton's method on the first-order conditions, in float64, from a certified point.

    [H  J_A'] [ dx ]     [g + J_A' lam_A]
    [J_A  0 ] [dlam]  = -[     c_A      ]        A: inequalities with positive multipliers, H: Hessian of the Lagrangian

It converges quadratically, so what is left after a few steps is rounding: fits of the same data in another order, or with
rows repeated instead of weighted, agree to rounding too.
Every step must bring the conditions closer, and the signs of multipliers and of the other inequalities must stay.
"""

import numpy as np

from ..oracle.evaluator import evaluator_of
from ..oracle.look import At
from ..problem import Problem, Program

STEPS = 16
LARGEST = 1024  # parameters: beyond, a dense Hessian costs more than it is worth
COST = 4e10  # rows * parameters^2: a few seconds of arithmetic per step at most


def affordable(rows: int, parameters: int) -> bool:
    """Whether dense Hessians are cheap beside the fit."""
    return parameters <= LARGEST and rows * parameters**2 <= COST


def finish(
    problem: Problem, program: Program, x: np.ndarray, multipliers: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """(x, multipliers) to rounding, from nearby ones; None where Newton's method does not lead there."""
    judge = evaluator_of(problem, program)
    active = multipliers > 0
    multipliers = np.where(active, multipliers, 0.0)
    at = judge.at(x)
    left = residual(at, multipliers, active)
    for _ in range(STEPS):
        step = _newton_step(judge.hessian(x, multipliers), at, multipliers, active)
        if step is None:
            break
        ahead = multipliers.copy()
        ahead[active] += step[1]
        there = judge.at(x + step[0])
        now = residual(there, ahead, active)
        if not now < left:
            break
        x, multipliers, at, slow, left = x + step[0], ahead, there, now > left / 2, now
        if slow:  # what is left is rounding
            break
    met = (multipliers >= 0).all() and (at.constraint[~active] <= 0).all()
    return (x, multipliers) if met else None


def residual(at: At, multipliers: np.ndarray, active: np.ndarray) -> float:
    """|(grad L, c_A)|."""
    slope = at.gradient + multipliers @ at.jacobian
    return float(np.hypot(np.linalg.norm(slope), np.linalg.norm(at.constraint[active])))


def _newton_step(
    hessian: np.ndarray, at: At, multipliers: np.ndarray, active: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    d, rows = len(hessian), at.jacobian[active]
    system = np.block([[hessian, rows.T], [rows, np.zeros((len(rows), len(rows)))]])
    wanted = -np.concatenate([at.gradient + multipliers @ at.jacobian, at.constraint[active]])
    try:
        step = np.linalg.solve(system, wanted)
    except np.linalg.LinAlgError:
        return None
    return (step[:d], step[d:]) if np.isfinite(step).all() else None
