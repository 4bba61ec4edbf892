"""cooper: the augmented Lagrangian by simultaneous steps, Adam on x and gradient ascent on the multipliers.

Dense multipliers, a constant penalty coefficient of 1: its rule for growing penalties multiplies them whenever a violation
exceeds 1e-4, which on noisy batches is always, and overflows.
"""

import cooper
import numpy as np
import torch

from ._torch import DUAL_FACTOR, PENALTY, Sampled, Trained


class _Problem(cooper.ConstrainedMinimizationProblem):
    """The problem in cooper's terms: equalities and inequalities as two groups."""

    def __init__(self, sampled: Sampled):
        super().__init__()
        self.sampled = sampled
        self.groups = []
        kinds = ((False, cooper.ConstraintType.EQUALITY), (True, cooper.ConstraintType.INEQUALITY))
        for inequality, kind in kinds:
            rows = torch.nonzero(sampled.inequality == inequality).ravel()
            if rows.numel():
                constraint = cooper.Constraint(
                    constraint_type=kind,
                    formulation_type=cooper.formulations.AugmentedLagrangian,
                    multiplier=cooper.multipliers.DenseMultiplier(num_constraints=rows.numel()),
                    penalty_coefficient=cooper.penalty_coefficients.DensePenaltyCoefficient(
                        init=torch.full((rows.numel(),), PENALTY)
                    ),
                )
                setattr(self, f"constraint_{len(self.groups)}", constraint)
                self.groups.append((constraint, rows))

    def compute_cmp_state(self) -> cooper.CMPState:
        """Loss and violations of one batch."""
        loss, values = self.sampled.draw()
        observed = {constraint: cooper.ConstraintState(violation=values[rows]) for constraint, rows in self.groups}
        return cooper.CMPState(loss=loss, observed_constraints=observed)


def _trainer(sampled: Sampled, primal: torch.optim.Optimizer, rate: float):
    problem = _Problem(sampled)
    if problem.groups:
        dual = torch.optim.SGD(problem.dual_parameters(), lr=DUAL_FACTOR * rate, maximize=True)
        optimizer = cooper.optim.SimultaneousOptimizer(cmp=problem, primal_optimizers=primal, dual_optimizers=dual)
    else:
        optimizer = cooper.optim.UnconstrainedOptimizer(cmp=problem, primal_optimizers=primal)

    def step():
        optimizer.roll()

    def multipliers() -> np.ndarray:
        values = np.zeros(sampled.m)
        for constraint, rows in problem.groups:
            values[rows.numpy()] = constraint.multiplier.weight.detach().numpy().ravel()
        return values

    return step, multipliers


METHODS = (Trained("cooper", _trainer),)
