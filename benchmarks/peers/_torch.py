"""What the PyTorch peers share: batches of our functions as torch tensors, a small grid of learning rates, bounds by projection.

Value and derivatives of a batch come from one compiled program and enter autograd as a function with a known gradient, so
that no peer pays for slower derivatives. Constraints and their gradients come from the same batch, as their documentation
shows. Adam with its defaults and a cosine decay moves x; the dual rate is ten times the primal one, as in cooper's README.
None has a stopping test: each rate of the grid gets the whole budget, and the grid is settled by the smallest
max(stationarity, violation) of the last iterates on exact functions, a help that no one else is given.
"""

# PyTorch and what is built on it come with the extra `peers`, which not every environment has.
# pyright: reportMissingImports=false, reportPrivateImportUsage=false

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch

from .._measure import clock
from ..harness.functions import Batches, Functions, domain_is_bounds
from ..harness.task import Answer, Kind, Task

RATES = (1e-3, 1e-2, 1e-1)
BATCH, STEPS = 256, 10_000  # the smallest batch; larger ones are taken where the budget is more than so many of them
DUAL_FACTOR = 10.0
PENALTY = 1.0


class _Batch(torch.autograd.Function):
    """(f, c) of one batch at x; backward multiplies by the known derivatives."""

    @staticmethod
    def forward(ctx, x, batches: Batches, seed: int, step: int):
        """Values; derivatives are kept."""
        values, rows = batches(seed, step, x.detach().numpy())
        ctx.rows = torch.from_numpy(rows)
        return torch.from_numpy(values)

    @staticmethod
    def backward(ctx, *weights):
        """weights' (gradient, Jacobian)."""
        return weights[0] @ ctx.rows, None, None, None


class Sampled:
    """A problem as a torch training loop sees it."""

    def __init__(self, batches: Batches, exact: Functions, task: Task):
        self.batches, self.seed, self.steps = batches, task.seed, 0
        self.m, self.epoch = (
            exact.m,
            max(1, (exact.program.population or 0) // batches.n),
        )  # batches in a pass over the data
        self.x = torch.nn.Parameter(torch.from_numpy(np.array(task.x0, np.float32)))
        self.low, self.high = (torch.from_numpy(side.astype(np.float32)) for side in exact.bounds())
        self.inequality = torch.tensor(exact.inequality)

    def draw(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Loss and constraints of a fresh batch."""
        values = _Batch.apply(self.x, self.batches, self.seed, self.steps)
        assert isinstance(values, torch.Tensor)
        self.steps += 1
        return values[0], values[1:]

    def project(self):
        """Back within the bounds."""
        with torch.no_grad():
            self.x.clamp_(self.low, self.high)


# Of a problem and an optimiser for x: a step, and the multipliers as they stand. The dual rate follows the primal one.
Trainer = Callable[[Sampled, torch.optim.Optimizer, float], tuple[Callable[[], None], Callable[[], np.ndarray]]]


@dataclass(frozen=True)
class Trained:
    """A training loop for a fixed number of samples, for each rate of the grid; the best last iterate is handed in."""

    name: str
    trainer: Trainer
    kind: Kind = "peer"
    stops: bool = False
    batch: int = 0  # 0: to be sized by the budget
    variant: str = ""
    rates: tuple[float, ...] = RATES

    def declines(self, task: Task) -> str | None:
        """Domains other than bounds."""
        return domain_is_bounds(task.problem)

    def solve(self, task: Task) -> Answer:
        """All rates; work and seconds are those of the best rate alone. The tolerance does not enter: asked again, it is told."""
        key = (self.name, self.variant, self.batch, task.seed, task.budget)
        if key not in task.memo:
            batch = self.batch or max(BATCH, 2 ** math.ceil(math.log2(max(1.0, task.budget.work / STEPS))))
            task.memo[key] = replace(self, batch=batch)._solve(task)
        return task.memo[key]

    def _solve(self, task: Task) -> Answer:
        start = clock()
        batches, exact = self._compiled(task)
        compiled = clock() - start
        best: tuple[float, Answer] | None = None
        for rate in self.rates:
            answer, multipliers = self._train(Sampled(batches, exact, task), rate, task)
            merit = _merit(exact, answer.x, multipliers)
            if best is None or merit < best[0]:
                best = merit, replace(answer, compile=compiled)
        assert best is not None
        return best[1]

    def _train(self, sampled: Sampled, rate: float, task: Task) -> tuple[Answer, np.ndarray]:
        steps = max(1, int(task.budget.work // self.batch))
        primal = torch.optim.Adam([sampled.x], lr=rate)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(primal, T_max=steps)
        step, multipliers = self.trainer(sampled, primal, rate)
        start = clock()
        while sampled.steps < steps and clock() - start < task.budget.seconds:
            step()
            schedule.step()
            sampled.project()
            if sampled.steps % 64 == 0 and not bool(torch.isfinite(sampled.x).all()):
                break
        answer = Answer(
            x=sampled.x.detach().numpy().copy(),
            claims=None,
            status=f"budget spent, rate {rate:g}",
            work=sampled.steps * self.batch,
            seconds=clock() - start,
            details={"rate": rate, "batch": self.batch},
        )
        return answer, multipliers()

    def _compiled(self, task: Task) -> tuple[Batches, Functions]:
        key = ("batches", self.batch)
        if key not in task.memo:
            batches = Batches(task.problem, task.x0, self.batch)
            batches(0, 0, np.asarray(task.x0, np.float32))
            task.memo[key] = batches
        if "exact" not in task.memo:
            task.memo["exact"] = Functions(task.judged, task.x0)
        return task.memo[key], task.memo["exact"]


def _merit(exact: Functions, x: np.ndarray, multipliers: np.ndarray) -> float:
    """max(stationarity, violation) on the judged problem, at the peer's multipliers."""
    if not np.isfinite(x).all():
        return np.inf
    found, (low, high) = exact.first(x.astype(np.float64)), exact.bounds()
    gradient = found.gradient + multipliers @ found.jacobian
    violation = np.where(exact.inequality, np.maximum(found.constraint, 0), found.constraint)
    merit = max(np.linalg.norm(x - np.clip(x - gradient, low, high)), np.linalg.norm(violation))
    return float(merit) if np.isfinite(merit) else np.inf
