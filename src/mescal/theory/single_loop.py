"""What the derivation of the single loop says about a problem: the part of a `Prediction` that is not MESCAL's.

It stands apart from the theorems: for equalities on all of space alone, with `regularity` taken for a lower bound of the smallest
singular value of J, which is more than the theorems ask, and on the word of two readers.
"""

from dataclasses import dataclass

from ..problem import Problem
from ..sets import Reals
from . import null_space
from .constants import ProblemConstants
from .merit import MeritConstants, merit_constants
from .null_space import Parameters
from .units import Constraint, Count, Curvature, Gradient, Number

NOTE = "for equalities on all of space with regularity <= sigma_min(J); derived in docs/null-space.md, not in the paper"


@dataclass(frozen=True, kw_only=True)
class SingleForecast:
    """Constants of the merit function, parameters, and the worst case of the work for the probability asked for."""

    solver: str
    rate: str
    exponent: Number  # a with work O~(eps^-a) when eps_g = eps_H = eps
    work: Number  # gradients + 2 Hessian-vector products, per theta
    holds: Number  # with this probability at least
    constants: MeritConstants
    parameters: Parameters
    note: str = NOTE


def is_covered(problem: Problem) -> bool:
    """Whether the derivation is about such a problem: equalities on all of space, and some."""
    constraints = problem.constraints.values()
    return isinstance(problem.domain, Reals) and bool(constraints) and not any(one.inequality for one in constraints)


def single_forecast(
    known: ProblemConstants,
    gradient: Gradient,
    curvature: Curvature,
    feasibility: Constraint,
    probability: Number,
    dimension: Count,
    sharp: bool,
) -> SingleForecast:
    """The forecast for tolerances, at a success probability that the formulas take as it is: no copies are needed."""
    constants = merit_constants(known, gradient, feasibility, sharp=sharp)
    parameters = null_space.parameters(constants, gradient, curvature, failure=1 - probability)
    cost = null_space.work(parameters, null_space.search(parameters, constants, dimension).cost).worst
    return SingleForecast(
        solver=null_space.NAME,
        rate=str(null_space.RATE),
        exponent=null_space.RATE.power(),
        work=cost.total,
        holds=probability,
        constants=constants,
        parameters=parameters,
    )
