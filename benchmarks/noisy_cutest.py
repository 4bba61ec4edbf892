"""CUTEst with noise: share certified at (0.01, 0.01) by our solvers, the baselines and the peers, at an equal number of samples.

The noise model is F = f + sigma xi'x, C = c + sigma (zeta + Z x), all standard Gaussian and drawn afresh; answers are judged on
the problem without noise, exactly, on the critical cone. Every method has the same budget of evaluations
per sample, and what was found with more does not count. All but the PyTorch peers compute in float64. Deterministic
peers solve the average of N draws, each pass over it counting N, with N such that an entry of the averaged noise deviates by a
two-hundredth of the tolerance, or a 300th of the budget. Runs are kept in results/noisy_cutest.jsonl: a second call goes on
where the first was stopped; `--only null-space` runs one method alone, `--seconds 0` sums up what is there.
"""

import time
from pathlib import Path

import jax
import numpy as np

from . import _measure, cutest, peers
from ._measure import Report
from .cutest.noisy import picked
from .harness import Budget, Method, Task
from .harness.attempt import attempt
from .harness.ours import baselines, ours
from .harness.profiles import common_problems, data_profile, failures, methods, performance_profile, shares
from .harness.store import Store

STORE = Path(__file__).parent / "results" / "noisy_cutest.jsonl"
TOL, SEED = 0.01, 0
SEEDS = range(3)  # of the first group at the main level of noise; profiles are of the first seed
BUDGET = Budget(work=1e7, seconds=600)
SOLVERS = ("spider", "newton-cg", "null-space", "sg-hv-nc", "natasha2", "scr")
MAIN = 1e-2
COUNTS = {MAIN: 42, 0.0: 9, 1e-4: 9, 1e-1: 9}  # problems at each level of noise, the main one first


def order() -> list[str]:
    """The picked problems, kinds taken in turn, so that every beginning of the list holds all kinds alike."""
    kinds: dict[str, list[str]] = {}
    for row in picked():
        kinds.setdefault(row["kind"], []).append(row["name"])
    longest = max(map(len, kinds.values()))
    return [names[i] for i in range(longest) for names in kinds.values() if i < len(names)]


def task_of(name: str, noise: float, memo: dict, seed: int = SEED) -> Task:
    """The task of one problem at one level of noise."""
    instance = cutest.load(name)
    return Task(
        name=name,
        problem=instance.noisy(noise),
        x0=instance.x0,
        tol=TOL,
        seed=seed,
        budget=BUDGET,
        judged=instance.exact,
        average=lambda draws, seed: instance.average(noise, draws, seed),
        draws=draws(noise),
        memo=memo,
    )


def draws(noise: float) -> int:
    """Samples in the average that deterministic peers solve."""
    return int(min(max(1.0, np.ceil((200 * noise / TOL) ** 2)), BUDGET.work / 300))


def groups() -> list[tuple[Method, ...]]:
    """Methods in the order in which they are run: a group is run on all problems before the next begins.

    The first group, the solver that `auto` takes on streams, the most robust one, the single loop and the peers, is run at every
    level of noise. Solvers of one group share what they compile for a problem.
    """
    spider, newton, single, *others = map(ours, SOLVERS)
    return [(spider, newton, single, *peers.methods()), tuple(others), baselines()]


def run(quick: bool) -> Report:
    """Whatever is missing in the store, then the summary."""
    if quick:
        return _quick()
    store, started = Store(STORE), time.monotonic()
    wanted = _measure.chosen([method.name for group in groups() for method in group])
    for noise, count in COUNTS.items():
        for number, group in enumerate(groups()[: None if noise == MAIN else 1]):
            for name in _measure.share(order()[:count]):
                for seed in SEEDS if noise == MAIN and number == 0 else (SEED,):
                    memo: dict = {}
                    for method in (one for one in group if one.name in wanted):
                        if not store.has(method.name, name, noise, seed, TOL) and _measure.time_left(started):
                            store.add(attempt(method, task_of(name, noise, memo, seed), noise))
                jax.clear_caches()  # a process can hold only so many programs
    return report(list(store.all()))


def _quick() -> Report:
    """One small problem, one solver and one peer."""
    memo: dict = {}
    task = task_of("HS6", MAIN, memo)
    chosen = (ours(SOLVERS[0]), next(method for method in peers.methods() if method.name == "SLSQP"))
    return report([attempt(method, task, MAIN) for method in chosen])


def report(rows: list[dict]) -> Report:
    """Shares, failures and profiles at the main level of noise, and shares at the others."""
    seeds = len({row["seed"] for row in rows})
    report = Report({"tol": TOL, "budget": BUDGET.work, "seeds": seeds, "solvers": list(SOLVERS)})
    report.settings |= {
        "peers": peers.versions(STORE.with_suffix(".json")),
        "averaged_draws": {f"{noise:g}": draws(noise) for noise in COUNTS},
    }
    rows = [within_budget(row) for row in rows]
    for line in shares([row for row in rows if row["noise"] == MAIN]) if seeds > 1 else []:
        report.add(f"noise {MAIN:g}, {seeds} seeds: share of runs certified", **line)
    rows = [row for row in rows if row["seed"] == SEED]
    for noise in COUNTS:
        here = [row for row in rows if row["noise"] == noise]
        for line in shares(here):
            report.add(f"noise {noise:g}: share certified at (0.01, 0.01) within {BUDGET.work:.0e} evaluations", **line)
    main = [row for row in rows if row["noise"] == MAIN]
    common = common_problems(main)
    report.settings |= {"profiled_problems": common, "kinds": methods(main)}
    within = [row for row in main if row["problem"] in common]
    report.settings["profiles"] = {
        "data, work": data_profile(within, "work"),
        "performance, work": performance_profile(within, "work"),
        "data, seconds": data_profile(within, "seconds"),
        "performance, seconds": performance_profile(within, "seconds"),
    }
    for line in failures(main):
        report.add(f"noise {MAIN:g}: what was not certified", **line)
    return report


def within_budget(row: dict) -> dict:
    """The row as it counts: an answer that took more than the budget is none. Our solvers look at it between steps."""
    late = row["certified"] and row["work"] > BUDGET.work
    return row | {"certified": False, "claims": False, "why": "beyond the budget"} if late else row
