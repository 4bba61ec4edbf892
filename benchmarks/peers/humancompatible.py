"""humancompatible-train: its augmented Lagrangian (`ALM`, penalty 1) and its penalty-barrier method (`PBM`), beside Adam.

Of the first, equalities and inequalities are two constraint groups; its safeguard on the multipliers is the default. The second is
the stochastic penalty-barrier method of arXiv 2605.18618, for inequalities alone, with all of its defaults but one: its multipliers
are multiplied in every step, and from its default start, 1e-9, they do not get away within the budget. They start at 1.
"""

# PyTorch and what is built on it come with the extra `peers`, which not every environment has.
# pyright: reportMissingImports=false, reportPrivateImportUsage=false

from functools import partial

import numpy as np
import torch
from humancompatible.train.dual_optim import ALM, PBM

from ..harness.task import Task
from ._torch import DUAL_FACTOR, PENALTY, RATES, Sampled, Trained


def _trainer(sampled: Sampled, primal: torch.optim.Optimizer, rate: float, penalty=PENALTY, duals=True):
    order = torch.cat([torch.nonzero(~sampled.inequality).ravel(), torch.nonzero(sampled.inequality).ravel()])
    equalities = int((~sampled.inequality).sum())
    inequalities = order.numel() - equalities
    dual = None
    for count, inequality in ((equalities, False), (inequalities, True)):
        if not count:
            continue
        settings = {"m": count, "lr": DUAL_FACTOR * rate if duals else 0.0, "is_ineq": inequality}
        if dual is None:
            dual = ALM(penalty=penalty, **settings)
        else:
            dual.add_constraint_group(**settings)

    def step():
        loss, values = sampled.draw()
        lagrangian = loss if dual is None else dual.forward_update(loss, values[order])
        lagrangian.backward()
        primal.step()
        primal.zero_grad()

    def multipliers() -> np.ndarray:
        values = np.zeros(sampled.m)
        if dual is not None:
            values[order.numpy()] = np.concatenate([group["params"][0].detach().numpy() for group in dual.param_groups])
        return values

    return step, multipliers


def penalty_method(penalty: float, batch: int, rates: tuple[float, ...] = RATES) -> Trained:
    """Its quadratic penalty: multipliers that never move."""
    trainer = partial(_trainer, penalty=penalty, duals=False)
    return Trained("humancompatible-train", trainer, batch=batch, variant=f"penalty {penalty:g}", rates=rates)


def augmented(batch: int = 0, rates: tuple[float, ...] = RATES) -> Trained:
    """Its augmented Lagrangian; the batch is sized by the budget unless given."""
    return Trained("humancompatible-train", _trainer, batch=batch, rates=rates)


def _barrier(sampled: Sampled, primal: torch.optim.Optimizer, rate: float):
    dual = PBM(m=sampled.m, init_duals=1.0, epoch_length=sampled.epoch)

    def step():
        loss, values = sampled.draw()
        dual.forward_update(loss, values).backward()
        primal.step()
        primal.zero_grad()

    return step, lambda: dual.duals.detach().numpy().astype(np.float64)


class PenaltyBarrier(Trained):
    """Declines equations."""

    def declines(self, task: Task) -> str | None:
        """They have no interior."""
        every = all(task.problem.bind(task.x0)[0].layout.inequality)
        return super().declines(task) or (None if every else "it has equations")


METHODS = (augmented(), PenaltyBarrier("penalty-barrier", _barrier))
