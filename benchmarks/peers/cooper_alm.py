"""cooper: the augmented Lagrangian by simultaneous steps, Adam on x and gradient ascent on the multipliers.

Dense multipliers, a constant penalty coefficient of 1: its rule for growing penalties multiplies them whenever a violation
exceeds 1e-4, which on noisy batches is always, and overflows.
"""

# PyTorch and what is built on it come with the extra `peers`, which not every environment has.
# pyright: reportMissingImports=false, reportPrivateImportUsage=false

from functools import partial
from typing import Any

import cooper
import numpy as np
import torch

from ._torch import DUAL_FACTOR, PENALTY, RATES, Sampled, Trained


class _Problem(cooper.ConstrainedMinimizationProblem):
    """The problem in cooper's terms: equalities and inequalities as two groups."""

    def __init__(self, sampled: Sampled, penalty: float, multipliers: bool):
        super().__init__()
        self.sampled = sampled
        self.groups = []
        kinds = ((False, cooper.ConstraintType.EQUALITY), (True, cooper.ConstraintType.INEQUALITY))
        for inequality, kind in kinds:
            rows = torch.nonzero(sampled.inequality == inequality).ravel()
            if rows.numel():
                coefficient = cooper.penalty_coefficients.DensePenaltyCoefficient(torch.full((rows.numel(),), penalty))
                formulations = cooper.formulations
                factors: dict[str, Any] = {"penalty_coefficient": coefficient}
                formulation = formulations.AugmentedLagrangian if multipliers else formulations.QuadraticPenalty
                if multipliers:
                    factors["multiplier"] = cooper.multipliers.DenseMultiplier(num_constraints=rows.numel())
                constraint = cooper.Constraint(constraint_type=kind, formulation_type=formulation, **factors)
                setattr(self, f"constraint_{len(self.groups)}", constraint)
                self.groups.append((constraint, rows))

    def compute_cmp_state(self) -> cooper.CMPState:
        """Loss and violations of one batch."""
        loss, values = self.sampled.draw()
        observed = {constraint: self._state(constraint, values[rows]) for constraint, rows in self.groups}
        return cooper.CMPState(loss=loss, observed_constraints=observed)

    def _state(self, constraint, violation) -> cooper.ConstraintState:
        return cooper.ConstraintState(violation=violation, contributes_to_dual_update=constraint.multiplier is not None)


def _trainer(sampled: Sampled, primal: torch.optim.Optimizer, rate: float, penalty=PENALTY, duals=True):
    problem = _Problem(sampled, penalty, duals)
    if problem.groups and duals:
        dual = torch.optim.SGD(problem.dual_parameters(), lr=DUAL_FACTOR * rate, maximize=True)
        optimizer = cooper.optim.SimultaneousOptimizer(cmp=problem, primal_optimizers=primal, dual_optimizers=dual)
    else:
        optimizer = cooper.optim.UnconstrainedOptimizer(cmp=problem, primal_optimizers=primal)

    def step():
        optimizer.roll()

    def multipliers() -> np.ndarray:
        values = np.zeros(sampled.m)
        for constraint, rows in problem.groups if duals else ():
            values[rows.numpy()] = constraint.multiplier.weight.detach().numpy().ravel()
        return values

    return step, multipliers


def penalty_method(penalty: float, batch: int, rates: tuple[float, ...] = RATES) -> Trained:
    """Its quadratic penalty, without multipliers."""
    trainer = partial(_trainer, penalty=penalty, duals=False)
    return Trained("cooper", trainer, batch=batch, rates=rates, variant=f"penalty {penalty:g}")


def augmented(batch: int = 0, rates: tuple[float, ...] = RATES) -> Trained:
    """Its augmented Lagrangian; the batch is sized by the budget unless given."""
    return Trained("cooper", _trainer, batch=batch, rates=rates)


METHODS = (augmented(),)
