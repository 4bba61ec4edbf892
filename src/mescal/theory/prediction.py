"""`predict`: what the theorems say about a problem and a tolerance, as a table that prints and turns into JSON.

K* of Theorem 2.1, the constants of the first and the last subproblem (Lemmas 3.2-3.5), and for each of the three solvers its
parameters there, the work of the whole run with the gap bounded for certain (3.9) and with probability (3.10)-(3.12)
(Theorems 4.2, 4.4, 4.6), and the exponents of both; beside them the single loop, where it is derived (`theory.single_loop`).
Constants that are not given are estimated (`theory.estimates`): the table then is a forecast, not a bound.
"""

import dataclasses
import json
import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

from ..errors import InputError, InputTypeError
from ..problem import Problem
from . import gap, outer
from .complexity import KINDS, SOLVERS, SearchKind, parameters_of, sample_complexity, solver_rate
from .constants import ProblemConstants, SubproblemConstants, subproblem_constants
from .estimates import estimate
from .outer import Schedule
from .single_loop import SingleForecast, is_covered, single_forecast
from .units import Constraint, Count, Curvature, Gradient, Number, Penalty


@dataclass(frozen=True, kw_only=True)
class Bound:
    """The work of a whole run by one of the two statements of a theorem."""

    statement: str  # "deterministic" or "probabilistic": how the gap is bounded
    rate: str
    exponent: Number  # a with work O~(eps^-a) when eps_g = eps_H = eps
    work: Number  # gradients + 2 Hessian-vector products, per theta, with the search that was asked for
    evaluations: Number  # Definition 1.3: single evaluations of F and C_j
    holds: Number  # with this probability at least
    by_search: dict[str, Number]  # work with the search that runs, "lanczos", and with the "paper"'s


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """What the theorems say about one solver."""

    solver: str
    success: Number  # of one solve, by its theorem
    bounds: tuple[Bound, ...]
    boosted: Number  # work, deterministic, where x_K is good with the probability asked for
    copies: Count  # independent solves per subproblem for that, at most
    first: Any  # parameters of subproblem 0 and of subproblem K*
    last: Any
    unmet: tuple[str, ...]  # assumptions on the tolerances that the last subproblem does not meet


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """The table; `print` it, or `to_json()`."""

    gradient_tolerance: Gradient
    curvature_tolerance: Curvature
    feasibility_tolerance: Constraint
    probability: Number
    estimated: bool  # whether the constants are estimates
    search: str  # that work is priced with
    population: Count | None  # thetas in a full pass; None on a stream, and where constants alone were given
    constants: ProblemConstants
    schedule: Schedule
    iterations: Count  # K*
    last_penalty: Penalty
    dual_samples: Count
    first: SubproblemConstants
    last: SubproblemConstants
    solvers: tuple[Forecast, ...]
    single_loop: SingleForecast | None  # None where its derivation is not about such a problem

    def to_json(self) -> str:
        """All of it as JSON; what is not finite is null."""
        return json.dumps(_plain(dataclasses.asdict(self)), indent=1, allow_nan=False)

    def __str__(self) -> str:
        origin = "estimated from samples: a forecast, not a bound" if self.estimated else "as given"
        subproblems = [["subproblem", "penalty", "L_g", "L_H", "s_g", "s_H", "Delta"]]
        for k, penalty, c in (
            (0, self.schedule.initial_penalty, self.first),
            (self.iterations, self.last_penalty, self.last),
        ):
            numbers = (penalty, c.gradient_lipschitz, c.hessian_lipschitz, c.gradient_noise, c.hessian_noise, c.gap)
            subproblems.append([f"k = {k}", *map(_number, numbers)])
        other, named = ("paper", "paper's search") if self.search == "lanczos" else ("lanczos", "by lanczos")
        work = [["solver", "p", "statement", "rate", "exponent", "work", named, "evaluations", "holds"]]
        for forecast in self.solvers:
            for bound in forecast.bounds:
                numbers = (bound.exponent, bound.work, bound.by_search[other], bound.evaluations, bound.holds)
                head = [forecast.solver, _number(forecast.success), bound.statement, bound.rate]
                work.append(head + [_number(v) for v in numbers])
        boosted = [[f"to p = {self.probability:g}", "copies", "work"]]
        boosted += [[f.solver, str(f.copies), _number(f.boosted)] for f in self.solvers]
        given = [["constant", "value"]] + [
            [name.replace("_", " "), _number(value)] for name, value in dataclasses.asdict(self.constants).items()
        ]
        parts = [
            f"MESCAL to eps_g = {self.gradient_tolerance:g}, eps_H = {self.curvature_tolerance:g}, "
            f"|c| <= {self.feasibility_tolerance:g}: K* = {self.iterations} (penalty "
            f"{_number(self.schedule.initial_penalty)} to {_number(self.last_penalty)}), multipliers <= "
            f"{_number(self.schedule.multiplier_bound)}, dual sample size {_number(self.dual_samples)}",
            f"Constants, {origin}:\n{_table(given)}",
            _table(subproblems),
            _table(work),
            _table(boosted),
            *(self._parameters(forecast) for forecast in self.solvers),
        ]
        if self.single_loop is not None:
            parts.append(_single_table(self.single_loop))
        return "\n\n".join(parts)

    def _parameters(self, forecast: Forecast) -> str:
        lines = [[f"parameters of {forecast.solver}", "k = 0", f"k = {self.iterations}"]]
        for field in dataclasses.fields(forecast.first):
            values = (getattr(each, field.name) for each in (forecast.first, forecast.last))
            lines.append([field.name.replace("_", " "), *map(_number, values)])
        return "\n".join([_table(lines), *(f"  note: {sentence}" for sentence in forecast.unmet)])


def predict(
    problem: Problem | ProblemConstants,
    x0: Any = None,
    tol: Any = 0.01,
    *,
    constants: ProblemConstants | None = None,
    penalty: float = 1.1,
    growth: float = 1.1,
    feasibility: float | None = None,
    probability: float = 0.95,
    sharp: bool = False,
    search: SearchKind = "lanczos",
    seed: int = 0,
) -> Prediction:
    """What Theorems 2.1, 4.2, 4.4 and 4.6 say about a run of `minimize` from x0 with lam_0 = 0.

    **Arguments:**

    - `problem`: a problem, or its constants; with a problem and no `constants` these are estimated around `x0`.
    - `tol`: a number for both tolerances, or a `Tolerance`.
    - `penalty`, `growth`: al_0 and beta, as in `minimize`.
    - `feasibility`: the tolerance of |c|; default: the gradient tolerance.
    - `probability`: what boosting is priced for.
    - `sharp`: the sharper constants of `theory.constants` and of `theory.spider`, as the theory modes have them.
    - `search`: what a search for negative curvature costs: as much as the one that runs, "lanczos", or the "paper"'s.
    """
    gradient, curvature = _tolerances(tol)
    known, estimated = _constants(problem, x0, constants, seed)
    feasible = gradient if feasibility is None else feasibility
    total = outer.dual_bound_total(known.sampled_constraint_bound, penalty)
    schedule = Schedule(initial_penalty=penalty, growth=growth, multiplier_bound=outer.multiplier_bound(0.0, total))
    last = outer.iteration_bound(known, schedule, gradient, feasible)
    ends = [
        subproblem_constants(
            known,
            schedule.multiplier_bound,
            schedule.penalty(k),
            gap.deterministic_bound(known, schedule, k),
            sharp=sharp,
        )
        for k in (0, last)
    ]
    population = _population(problem)
    asked = {"feasibility_tolerance": feasible, "sharp": sharp, "population": population}
    return Prediction(
        gradient_tolerance=gradient,
        curvature_tolerance=curvature,
        feasibility_tolerance=feasible,
        probability=probability,
        estimated=estimated,
        search=search,
        population=population,
        constants=known,
        schedule=schedule,
        iterations=last,
        last_penalty=schedule.penalty(last),
        dual_samples=outer.dual_sample_size(known.constraint_noise, feasible),
        first=ends[0],
        last=ends[1],
        solvers=tuple(
            _forecast(name, known, schedule, (gradient, curvature), ends, probability, search, asked)
            for name in SOLVERS
        ),
        single_loop=single_forecast(known, gradient, curvature, feasible, probability, known.dimension, sharp)
        if known.constraint_count and (isinstance(problem, ProblemConstants) or is_covered(problem))
        else None,
    )


def _forecast(
    name: str,
    known: ProblemConstants,
    schedule: Schedule,
    tolerances: tuple[float, float],
    ends: list[SubproblemConstants],
    probability: float,
    search: SearchKind,
    asked: dict[str, Any],
) -> Forecast:
    module = SOLVERS[name]
    bounds = []
    for statement in ("deterministic", "probabilistic"):
        rate = solver_rate(name, statement)
        runs = {
            kind: sample_complexity(name, known, schedule, *tolerances, gap_bound=statement, search=kind, **asked)
            for kind in KINDS
        }
        run = runs[search]
        bounds.append(
            Bound(
                statement=statement,
                rate=str(rate),
                exponent=rate.power(),
                work=run.cost.total,
                evaluations=run.evaluations,
                holds=run.work_probability,
                by_search={kind: each.cost.total for kind, each in runs.items()},
            )
        )
    boosted = sample_complexity(name, known, schedule, *tolerances, probability=probability, search=search, **asked)
    formulas = {key: asked[key] for key in ("sharp", "population")}
    first, last = (parameters_of(name, constants, *tolerances, **formulas) for constants in ends)
    return Forecast(
        solver=name,
        success=module.SUCCESS_PROBABILITY,
        bounds=tuple(bounds),
        boosted=boosted.cost.total,
        copies=max(boosted.copies),
        first=first,
        last=last,
        unmet=module.violations(ends[1], *tolerances),
    )


def _single_table(forecast: SingleForecast) -> str:
    lines = [[forecast.solver, "value"], ["rate", forecast.rate]]
    lines += [["work", _number(forecast.work)], ["holds", _number(forecast.holds)]]
    for record in (forecast.constants, forecast.parameters):
        lines += [[name.replace("_", " "), _number(value)] for name, value in dataclasses.asdict(record).items()]
    return f"{_table(lines)}\n  note: {forecast.note}"


def _tolerances(tol: Any) -> tuple[float, float]:
    pair = (tol, tol) if isinstance(tol, Real) else (getattr(tol, "gradient", None), getattr(tol, "curvature", None))
    if any(not isinstance(value, Real) or isinstance(value, bool) for value in pair):
        raise InputTypeError(f"tol={tol!r}", "a number, or a mescal.Tolerance", "write for example tol=0.01")
    gradient, curvature = (float(value) for value in pair)  # pyright: ignore[reportArgumentType]
    if not all(math.isfinite(value) and value > 0 for value in (gradient, curvature)):
        raise InputError(f"tol={tol!r}", "positive finite numbers", "use for example tol=0.01")
    return gradient, curvature


def _constants(
    problem: Problem | ProblemConstants, x0: Any, constants: ProblemConstants | None, seed: int
) -> tuple[ProblemConstants, bool]:
    if isinstance(problem, ProblemConstants):
        if x0 is not None:
            raise InputError(
                f"x0={x0!r} beside constants", "no x0: nothing is estimated", "for a tolerance, write tol=..."
            )
        return problem, False
    if not isinstance(problem, Problem):
        raise InputTypeError(
            f"predict got {type(problem).__name__}", "a mescal.Problem, or theory.ProblemConstants", "build one first"
        )
    if constants is not None:
        return constants, False
    if x0 is None:
        raise InputError(
            "a problem without x0 and without constants",
            "a point around which the constants can be estimated",
            "pass x0, or constants=theory.ProblemConstants(...)",
        )
    return estimate(problem, x0, seed=seed), True


def _population(problem: Problem | ProblemConstants) -> Count | None:
    """Thetas in a full pass over a problem whose sources are finite, 1 where nothing is sampled."""
    if isinstance(problem, ProblemConstants):
        return None
    sizes = [source.size for source in problem.sources]
    return None if None in sizes else max((size for size in sizes if size is not None), default=1)


def _number(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) and abs(value) < 10**6:
        return f"{value:,}"
    return f"{value:.3g}"


def _table(lines: list[list[str]]) -> str:
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join(
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
