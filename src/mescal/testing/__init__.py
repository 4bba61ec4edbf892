"""Helpers for the people who bring their own: Taylor checks, counts of calls, traces and compilations, and conformance suites."""

from .baseline_conformance import BASELINE_CHECKS as BASELINE_CHECKS, check_baseline as check_baseline
from .counting import Calls as Calls, count_calls as count_calls
from .problem_conformance import PROBLEM_CHECKS as PROBLEM_CHECKS, check_problem as check_problem
from .set_conformance import check_set as check_set
from .solver_conformance import SOLVER_CHECKS as SOLVER_CHECKS, check_solver as check_solver
from .taylor import Slopes as Slopes, check_derivatives as check_derivatives, taylor_slopes as taylor_slopes
from .tracing import (
    Compilations as Compilations,
    Traces as Traces,
    count_compilations as count_compilations,
    count_traces as count_traces,
)
