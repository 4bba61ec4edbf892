"""Stored runs made up for drawing: every column and field of a real one, with numbers that are easy to recognise."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mescal import Certificate, Measured, Result, Status, Tolerance
from mescal.experiments import SCHEMA, About, Size
from mescal.experiments.store import StoredRun
from mescal.forms import plain
from mescal.oracle import Tally
from mescal.run import History, Row
from mescal.run.result import Seconds, WorkDone
from mescal.run.settings import Outer

PLAIN = {"searches": 0.0, "seconds": 1.0, "penalty": 1.1, "step": 1.0, "batch": 8, "large_batch": 64, "inner_steps": 9}
PLAIN |= {"escapes": 0, "inner": "verified", "value_start": 1.0, "value_end": 0.5, "gradients": 1.0, "hvps": 0.0}
JUDGED = ("stationarity", "feasibility", "curvature", "objective")


def measured(value: float, error: float = 0.0, how: str = "exact over 300 rows") -> Measured:
    """A measure; an infinite or missing one has no ends."""
    return Measured(value, value - error, value + error, how)


def tally(gradients: int, hvps: int = 0) -> Tally:
    """So many gradients and products."""
    return Tally({"gradient_samples": gradients, "hvp_samples": hvps})


def made_up(
    problem: str = "toy/one",
    solver: str = "spider",
    seed: int = 0,
    *,
    tol: Any = 0.01,
    rows: int = 8,
    exact: bool = True,
    ended: bool = True,
    status: str = "certified",
    constraints: dict[str, Any] | None = None,
    config: dict[str, Any] | None = None,
    certificate: dict[str, Any] | None = None,
    history: dict[str, Any] | None = None,
) -> StoredRun:
    """A run; its numbers depend on problem, solver and seed alone. `config` and the rest replace single entries."""
    rng = np.random.default_rng([seed, *map(ord, problem + solver)])
    tolerance = Tolerance.from_plain(tol)
    asked = {"schema": SCHEMA, "problem": problem, "source": None, "parameters": {}, "solver": solver, "options": {}}
    asked |= {"solver_source": None, "outer": plain(Outer())}
    asked |= {"seed": seed, "cone": "paper", "record": "exact" if exact else None, "max_outer": 100, "starts": 1}
    asked |= {"max_work": None, "max_seconds": None, "tol": tolerance.to_plain()} | (config or {})
    path = Path("runs") / problem.replace("/", "-") / solver / f"seed={seed}"
    if not ended:
        return StoredRun(path, asked)
    values = {
        name: np.asarray(v, float) for name, v in ({"rate": -0.001} if constraints is None else constraints).items()
    }
    work = np.cumsum(rng.integers(1000, 5000, rows))
    decline = np.geomspace(1.0, 0.005, rows) if rows > 1 else np.array([0.005])
    columns: dict[str, np.ndarray] = {
        "outer": np.arange(rows),
        "work": work.astype(float),
        "seconds": 0.5 + np.arange(rows),
        "objective": 0.3 + decline * rng.uniform(0.1, 0.2),
        "stationarity": decline * rng.uniform(0.8, 1.2, rows),
        "feasibility": decline * rng.uniform(0.8, 1.2, rows),
        "curvature": rng.uniform(-1, 1, rows) * decline,
    }
    for name in values:
        columns[f"multiplier:{name}"] = rng.uniform(0, 1, rows)
    if exact:
        columns |= {f"exact:{name}": columns[name] * 1.01 for name in JUDGED}
    columns |= history or {}
    numbers = {"stationarity": rng.uniform(1e-3, 9e-3), "feasibility": rng.uniform(1e-3, 9e-3)}
    numbers |= {"curvature": rng.uniform(-9e-3, 9e-3), "relative_stationarity": rng.uniform(0.01, 0.09)}
    judged = {name: measured(float(number)) for name, number in numbers.items()}
    judged |= {"violation": measured(0.002), "complementarity": measured(0.001)}
    multipliers = {name: -300 * v for name, v in values.items()}
    slack = {name: -v for name, v in values.items()}
    objective = float(columns["objective"][-1])
    found = Certificate(
        **judged,
        objective=measured(objective),
        cone="paper",
        curvatures={"paper": judged["curvature"]},
        multipliers=multipliers,
        slack=slack,
        constraints=values,
        dual_sign=0.0,
        jacobian_singular=1.0,
        multiplier_norm=1.0,
        regularity=1.0,
        active_bounds=0,
        penalty=1.1,
        confidence=None,
    )
    result = Result(
        x=np.zeros(4),
        slack=slack,
        multipliers=multipliers,
        status=Status[status.upper()],
        certificate=replace(found, **(certificate or {})),
        objective=objective,
        history=made_up_history(columns, rows, list(values)),
        work=WorkDone(tally(int(work[-1]) - 200, 100), tally(5000), tally(0)),
        seconds=Seconds(3.25 + seed, 2.0, 0.1),
        tolerance=tolerance,
        solver=solver,
        seed=seed,
        penalty=1.1,
        outer_iterations=rows,
    )
    statement = Size(4, 300, (), "Reals()")
    parameters, versions = asked["parameters"], {"python": "3.11.0", "mescal": "0.1.0"}
    about = About(problem, parameters, "A problem made up for drawing", None, {}, statement, versions, {"cores": 2})
    return StoredRun(path, asked, result, about)


def made_up_history(columns: dict[str, np.ndarray], rows: int, constraints: list[str]) -> History:
    """Rows from columns."""
    plain = [name for name in columns if ":" not in name]

    def row(i: int) -> Row:
        exact = {name.removeprefix("exact:"): float(v[i]) for name, v in columns.items() if name.startswith("exact:")}
        multipliers = tuple(float(columns[f"multiplier:{name}"][i]) for name in constraints)
        return Row(**(PLAIN | {name: columns[name][i].item() for name in plain}), multipliers=multipliers, exact=exact)

    return History([row(i) for i in range(rows)], constraints)


def made_up_sweep(seeds: int = 3) -> list[StoredRun]:
    """Two problems, three solvers."""
    solvers = ("natasha2", "sg-hv-nc", "spider")
    return [made_up(f"toy/{name}", s, seed) for name in ("one", "two") for s in solvers for seed in range(seeds)]
