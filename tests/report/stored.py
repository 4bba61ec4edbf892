"""Stored runs made up for drawing: every column and field of a real one, with numbers that are easy to recognise."""

from pathlib import Path
from typing import Any

import numpy as np

from mescal.experiments.store import StoredRun


def measured(value: float | None, error: float = 0.0, how: str = "exact over 300 rows") -> dict[str, Any]:
    """A measure as result.json holds it."""
    if value is None:
        return {"value": None, "lower": None, "upper": None, "how": how}
    return {"value": value, "lower": value - error, "upper": value + error, "how": how}


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
    asked = {"schema": 1, "problem": problem, "source": None, "parameters": {}, "solver": solver, "options": {}}
    asked |= {"seed": seed, "cone": "paper", "record": "exact" if exact else None, "max_outer": 100, "max_inner": 3000}
    asked |= {"max_work": None, "max_seconds": None, "tol": tol} | (config or {})
    path = Path("runs") / problem.replace("/", "-") / solver / f"seed={seed}"
    if not ended:
        return StoredRun(path, asked, None, {})
    constraints = {"rate": -0.001} if constraints is None else constraints
    work = np.cumsum(rng.uniform(1e3, 5e3, rows))
    decline = np.geomspace(1.0, 0.005, rows) if rows > 1 else np.array([0.005])
    columns: dict[str, np.ndarray] = {
        "outer": np.arange(rows, dtype=float),
        "work": work,
        "objective": 0.3 + decline * rng.uniform(0.1, 0.2),
        "stationarity": decline * rng.uniform(0.8, 1.2, rows),
        "feasibility": decline * rng.uniform(0.8, 1.2, rows),
        "curvature": rng.uniform(-1, 1, rows) * decline,
        "inner": np.asarray(["verified"] * rows),
    }
    for name in constraints:
        columns[f"multiplier:{name}"] = rng.uniform(0, 1, rows)
    if exact:
        for name in ("stationarity", "feasibility", "curvature", "objective"):
            columns[f"exact:{name}"] = columns[name] * 1.01
    columns |= history or {}
    judged = {
        "stationarity": measured(float(rng.uniform(1e-3, 9e-3))),
        "feasibility": measured(float(rng.uniform(1e-3, 9e-3))),
        "curvature": measured(float(rng.uniform(-9e-3, 9e-3)), how="dense eigenvalue"),
        "relative_stationarity": measured(float(rng.uniform(0.01, 0.09))),
        "cone": "paper",
        "warnings": [],
    }
    result = {
        "schema": 1,
        "problem": problem,
        "description": "A problem made up for drawing",
        "parameters": asked["parameters"],
        "statement": {"dimension": 4, "population": 300, "constraints": [], "domain": "Reals()"},
        "solver": solver,
        "seed": seed,
        "tol": tol,
        "status": status,
        "converged": status == "certified",
        "objective": float(columns["objective"][-1]),
        "certificate": judged | (certificate or {}),
        "multipliers": {name: np.multiply(values, -300).tolist() for name, values in constraints.items()},
        "constraints": dict(constraints),
        "slack": {name: np.multiply(values, -1).tolist() for name, values in constraints.items()},
        "work": {"gradients": work[-1] - 200, "hvps": 100.0, "total": work[-1], "certificate": 5000.0},
        "outer_iterations": rows,
        "seconds": {"total": 3.25 + seed, "compile": 2.0, "certificate": 0.1},
        "versions": {"python": "3.11.0", "mescal": "0.1.0"},
        "machine": {"system": "Linux", "cores": 2},
    }
    return StoredRun(path, asked, result, columns)


def made_up_sweep(seeds: int = 3) -> list[StoredRun]:
    """Two problems, three solvers."""
    solvers = ("natasha2", "sg-hv-nc", "spider")
    return [made_up(f"toy/{name}", s, seed) for name in ("one", "two") for s in solvers for seed in range(seeds)]
