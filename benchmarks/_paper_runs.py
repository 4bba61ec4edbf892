"""Runs of the paper's section 5: a grid search per problem and solver, runs with its choice, and runs that search more or less.

SG-HV-NC is run with shorter steps than the grid's, too: more of them, so that its coin is tossed more often. And all three with
resets from batches in place of all rows, which are most of the work where rows are many.

Every run is a row of a store; what is there is not run again. Those of the first seed have their curves.
"""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import jax
import numpy as np

from mescal import Status, minimize, problems
from mescal.experiments.reproduce import PAPER, PAPER_CONE
from mescal.experiments.tune import choices, tune
from mescal.solvers import Natasha2Paper, get

from . import _measure
from ._paper_curves import Curve, Watched, thinned
from .harness.store import Store

KEYS = ("study", "problem", "solver", "seed", "setting")
PAPER_MODES = ("spider-paper", "sg-hv-nc-paper", "natasha2-paper")
PRACTICAL = ("spider", "sg-hv-nc", "natasha2")
MOST = 1e7  # work of a run
OUTER = 100
TUNED, REPORTED, VARIED = 100, range(5), range(3)  # seeds: of the grid, of what is reported, of the frequencies

# What says how often a solver searches, and steps of the algorithm between two searches for a value of it.
FREQUENCIES: dict[str, tuple[str, tuple[float, ...]]] = {
    "spider-paper": ("block", (1, 4, 16, 64, 256)),
    "sg-hv-nc-paper": ("coin", (0.02, 0.2, 0.5, 0.9, 0.99)),
    "natasha2-paper": ("sub_epochs", (2, 4, 8, 16, 32)),
}

SHORT: dict[str, Any] = {"step_size": 4.0, "path_density": 10.0}  # of SG-HV-NC
COINS = (0.2, 0.5, 0.9, 0.99)

# What says how large a reset is, and values for problems, below their rows.
RESETS = {"spider-paper": "reset", "sg-hv-nc-paper": "reset", "natasha2-paper": "epoch"}
BATCHES: dict[str, tuple[int, ...]] = {
    "neyman-pearson/spambase": (512,),
    "neyman-pearson/madelon": (512,),
    "fairness/bank": (512, 4096),
    "fairness/loan": (512, 4096),
}


def shortened(options: Mapping[str, Any] | None) -> bool:
    """Whether short steps of SG-HV-NC are shorter than the grid's choice."""
    return options is not None and options["step_size"] > SHORT["step_size"]


def between(solver: str, value: float, options: Mapping[str, Any]) -> float:
    """Steps between two searches, in the mean."""
    if solver == "sg-hv-nc-paper":
        return 1 / (1 - value)
    return value if solver == "spider-paper" else value * Natasha2Paper(**options).sub_epoch_steps


class Runs:
    """A store, and the time that is left for runs which are not in it."""

    def __init__(self, store: Store, most: float = MOST):
        self.store, self.most, self.started = store, most, time.monotonic()

    def all_of(self, names: tuple[str, ...], seeds: range, varied: range):
        """Everything on these problems: paper modes, practical ones, frequencies; a process can hold only so many programs."""
        for name in names:
            for solver in PAPER_MODES:
                options = self.choice(name, solver)
                if options is not None:
                    for seed in seeds:
                        self.once("paper", name, solver, seed, "", options)
                jax.clear_caches()
            for solver in PRACTICAL:
                for seed in seeds:
                    self.once("practical", name, solver, seed, "", {})
            jax.clear_caches()
        for name in names:
            for solver, (setting, values) in FREQUENCIES.items():
                options = self.choice(name, solver)
                if options is not None:
                    for value in values:
                        for seed in varied:
                            self.once("frequency", name, solver, seed, f"{value:g}", options | {setting: value})
                    for value in BATCHES.get(name, ()):
                        for seed in varied:
                            self.once("resets", name, solver, seed, f"{value}", options | {RESETS[solver]: value})
                jax.clear_caches()
            for coin in COINS if shortened(self.choice(name, "sg-hv-nc-paper")) else ():
                for seed in varied:
                    self.once("short steps", name, "sg-hv-nc-paper", seed, f"{coin:g}", SHORT | {"coin": coin})
            jax.clear_caches()

    def choice(self, name: str, solver: str) -> dict[str, Any] | None:
        """Of the grid; None where nothing was certified, or there was no time."""
        key = ("tuning", name, solver, TUNED, "")
        wanted = [list(options.items()) for options in choices(get(solver))]
        tried = [list(trial["options"].items()) for trial in self.store.rows.get(key, {}).get("trials", ())]
        self._unless(tried == wanted, key, lambda: self._tuned(name, solver))
        row = self.store.rows.get(key)
        return None if row is None or row["best"] is None else row["best"]["options"]

    def _tuned(self, name: str, solver: str) -> dict[str, Any]:
        named = problems.get(name)
        found = tune(named, solver, seed=TUNED, max_outer=OUTER, max_work=self.most)
        best = None if found.best is None else asdict(found.best)
        return {"best": best, "work": found.work, "trials": [asdict(trial) for trial in found.trials]}

    def once(self, study: str, name: str, solver: str, seed: int, setting: str, options: Mapping[str, Any]):
        """A run that is not there yet, or is there with other settings."""
        key = study, name, solver, seed, setting
        there = self.store.has(*key) and self.store.rows[key]["options"] == dict(options)
        self._unless(there, key, lambda: _run(study, name, solver, seed, options, self.most))

    def _unless(self, there: bool, key: tuple, made: Callable[[], dict[str, Any]]):
        if there or not _measure.time_left(self.started):
            return
        row = dict(zip(KEYS, key, strict=True)) | made()
        self.store.add(row)
        print(*key, {name: row[name] for name in ("certified", "work", "outer") if name in row}, flush=True)


def _run(study: str, name: str, solver: str, seed: int, options: Mapping[str, Any], most: float) -> dict[str, Any]:
    """A run, with its curve where it is the first of the two modes."""
    named, curve = problems.get(name), Curve()
    paper, drawn = study != "practical", study in ("paper", "practical") and seed == 0
    asked = get(solver, **options, **({"watch": curve} if paper and drawn else {}))
    asked = Watched(asked, curve) if drawn and not paper else asked
    result = minimize(
        named.problem,
        named.x0,
        solver=asked,
        tol=PAPER,
        cone=PAPER_CONE,
        seed=seed,
        max_outer=OUTER,
        max_work=most,
        record=None if paper or not drawn else "exact",
    )
    if result.status is Status.INTERRUPTED:
        raise KeyboardInterrupt  # its work is not that of a run
    ends = [row.work for row in result.history]  # with the start's own row where it is recorded
    return {
        "options": json.loads(json.dumps(dict(options))),
        "certified": result.converged,
        "status": result.status.name,
        "work": float(result.work.total),
        "searches": float(result.history[-1].searches),
        "outer": result.outer_iterations,
        "steps": int(sum(row.inner_steps for row in result.history)),
        "escapes": int(sum(row.escapes for row in result.history)),
        "objective": float(result.objective),
        "distance": float(np.linalg.norm(np.asarray(result.x))),
        "gradients": float(result.work.gradients),
        "curve": thinned(curve.points([0.0, *ends] if paper else ends)) if drawn else [],
    }
