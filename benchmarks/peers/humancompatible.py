"""humancompatible-train: its augmented-Lagrangian dual optimiser (`ALM`, penalty 1) beside Adam, as its README shows.

Equalities and inequalities are two constraint groups; its safeguard on the multipliers is the default.
"""

# PyTorch and what is built on it come with the extra `peers`, which not every environment has.
# pyright: reportMissingImports=false, reportPrivateImportUsage=false

from functools import partial

import numpy as np
import torch
from humancompatible.train.dual_optim import ALM

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


METHODS = (augmented(),)
