"""`mescal certify`: judge a stored solution again, from the problem and the point alone."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.text import Text

from ..certificate import Certificate, Tolerance, certify as judge
from ..errors import InputError
from ..experiments import StoredRun, Task, load_run
from ..kept_programs import keep_compilations
from ..problem import flatten_parameters
from ..problem.statements.lifting import joined
from . import options
from .failure import CERTIFIED, FAILED
from .show import measure_table, results, show_verdict, verdict

AGREES = 1e-6  # relative: two exact certificates of one point


def certify(
    run: Annotated[
        Path,
        typer.Argument(
            parser=options.path, metavar="RUN", help="A run folder that holds a solution.", show_default=False
        ),
    ],
    tol: Annotated[
        float | None,
        typer.Option("--tol", "-t", help="Hold it to another tolerance.", show_default="the run's"),
    ] = None,
    tol_curvature: options.TolCurvature = None,
    tol_feasibility: options.TolFeasibility = None,
    tol_relative: options.TolRelative = None,
    cone: Annotated[str | None, options.a_cone("the run's")] = None,
    alone: Annotated[
        bool, typer.Option("--alone", help="Use x alone: the judge finds multipliers and slacks itself.")
    ] = False,
    as_sample: Annotated[
        bool,
        typer.Option(
            "--as-sample", help="Treat the data as draws from a distribution; bound what unseen data would give."
        ),
    ] = False,
    confidence: Annotated[
        float, typer.Option("--confidence", help="Of the bounds, on streams and with --as-sample.")
    ] = options.DEFAULTS.confidence,
    seed: Annotated[int, typer.Option("--seed", help="Of the judge's own samples, on streams.")] = 0,
    trust: options.Trust = False,
    problem_file: options.ProblemFile = None,
    as_json: options.Json = False,
):
    """Judge the solution of a run again, whoever found it.

    The judge reads solution.npz, makes the problem anew from config.json, and measures in float64; it asks no solver and
    believes nothing that result.json says. A problem of somebody's own is a Python file that is run: it has to be named, or
    the run trusted.

    **Examples:**

    ```text
    mescal certify runs/a
    mescal certify runs/a --tol 0.001
    mescal certify runs/a --cone critical --alone
    mescal certify runs/mine --problem-file my_problem.py:make
    ```
    """
    stored = load_run(run)
    given = Task.from_config(stored.config).with_trust(trust, options.named_files(problem_file, None))
    held = given.tolerance if tol is None else Tolerance(tol, tol)
    parts = {"curvature": tol_curvature, "feasibility": tol_feasibility, "relative": tol_relative}
    held = replace(held, **{name: part for name, part in parts.items() if part is not None})
    keep_compilations()
    certificate = again(
        stored, given, held, cone or given.cone, alone, as_sample=as_sample, confidence=confidence, seed=seed
    )
    passed = certificate.passes(held)
    if as_json:
        typer.echo(json.dumps({"passes": passed, "run": str(stored.path)} | certificate.to_dict(), indent=1))
    else:
        _show(stored, given, certificate, held, None if alone or as_sample else compare(stored, certificate))
    raise typer.Exit(CERTIFIED if passed else FAILED)


def again(stored: StoredRun, given: Task, held: Tolerance, cone: str, alone: bool, **how: Any) -> Certificate:
    """A fresh certificate of a stored solution."""
    solution = stored.solution()
    assert stored.result is not None
    named = given.make_problem()
    structure, start = flatten_parameters(named.x0)
    if solution["x"].shape != start.shape:
        raise InputError(
            f"the solution has {solution['x'].size} numbers",
            f"{start.size}, as the problem has parameters",
            "run it again with --force",
        )
    judged: dict[str, Any] = {} if alone else {"multipliers": solution["multipliers"], "slack": solution["slack"]}
    if np.isfinite(stored.result.penalty):
        judged["penalty"] = stored.result.penalty
    x = joined(structure.restore(solution["x"]), stored.result.auxiliary)
    return judge(named.problem, x, tol=held, cone=cone, **judged, **how)


@dataclass(frozen=True)
class Agreement:
    """Whether a fresh certificate agrees with the stored one, in a sentence."""

    agrees: bool
    sentence: str


def compare(stored: StoredRun, certificate: Certificate) -> Agreement:
    """Exact certificates agree to rounding; sampled ones where their error bounds overlap."""
    assert stored.result is not None
    for name in ("stationarity", "feasibility", "objective"):
        old, new = getattr(stored.result.certificate, name), getattr(certificate, name)
        apart = max(old.lower, new.lower) - min(old.upper, new.upper)
        if not apart <= AGREES * max(1e-3, abs(new.value)) and str(old.value) != str(new.value):
            return Agreement(False, f"The stored {name} was {old.value:.6g}; it is {new.value:.6g} now.")
    return Agreement(True, "This agrees with the certificate that the run stored.")


def _show(stored: StoredRun, given: Task, certificate: Certificate, held: Tolerance, agreement: Agreement | None):
    passed = certificate.passes(held)
    details = [Text(f"curvature on the cone {name}: {measured}") for name, measured in certificate.curvatures.items()]
    details.append(Text(f"objective {certificate.objective.value:.6g}, {certificate.objective.how}"))
    if np.isfinite(certificate.relative_stationarity.value):
        details.append(Text(f"relative stationarity {certificate.relative_stationarity.value:.3g}"))
    if agreement is not None:
        details += [Text(""), Text(agreement.sentence, "dim" if agreement.agrees else "yellow bold")]
    parts = [measure_table(certificate, held), Text(""), *details]
    title = f"{given.label} with {given.solver}, judged again"
    show_verdict(results(), stored, title, verdict(passed), parts, certificate, passed)
