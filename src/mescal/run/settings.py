"""What `minimize` was asked, checked: tolerances, caps and budgets, penalty schedule, dual rule."""

from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from ..certificate import Tolerance, as_tolerance
from ..certificate.second_order import CONES
from ..errors import InputError, InputTypeError
from ..files import as_path
from ..options import real_number
from ..solvers import names
from ..solvers.base import Solver
from ..theory.constants import ProblemConstants


@dataclass(frozen=True)
class Settings:
    """Checked arguments of a run."""

    tolerance: Tolerance
    cone: str
    seed: int
    max_outer: int
    max_inner: int
    max_work: float
    max_seconds: float
    penalty: float
    growth: float
    bounded_dual: bool
    scale: bool
    record: str | None
    confidence: float
    callback: Callable[[Any], Any] | None
    progress: Callable[[Any], Any] | None
    constants: ProblemConstants | None = None
    success: float | None = None
    option: str = "II"
    checkpoint: Path | None = None
    checkpoint_seconds: float = 60.0
    watchdog: float = 300.0


def check_settings(**given: Any) -> Settings:
    """The settings, or an error in three parts; those that are left out have their defaults."""
    given = {field.name: field.default for field in fields(Settings) if field.default is not MISSING} | given
    tolerance = as_tolerance(given.pop("tol"))
    seed = given["seed"]
    if not isinstance(seed, (Integral, np.integer)) or isinstance(seed, bool):
        raise InputTypeError(f"seed={seed!r}", "an integer", "write for example seed=0")
    if not 0 <= int(seed) < 2**32:  # pyright: ignore[reportArgumentType]
        raise InputError(f"seed={seed}", "an integer from 0 to 2^32 - 1", "write for example seed=0")
    if not isinstance(given["cone"], str) or given["cone"] not in CONES:
        raise InputError(f"cone={given['cone']!r}", f"one of {list(CONES)}", "leave it out for 'critical'")
    given = check_limits(given)
    if not _is_number(given["penalty"]) or not 0 < given["penalty"] < np.inf:
        raise InputError(f"penalty={given['penalty']!r}", "a positive number", "use the default, 1.1")
    if not _is_number(given["growth"]) or not 1 < given["growth"] < np.inf:
        raise InputError(f"growth={given['growth']!r}", "a number above 1", "use the default, 1.1")
    if given["record"] is not None and (not isinstance(given["record"], str) or given["record"] != "exact"):
        raise InputError(
            f"record={given['record']!r}", "None or 'exact'", "'exact' adds the judge's measures to history"
        )
    if not _is_number(given["confidence"]) or not 0 < given["confidence"] < 1:
        raise InputError(f"confidence={given['confidence']!r}", "a number between 0 and 1", "use for example 0.95")
    for name in ("bounded_dual", "scale"):
        if not isinstance(given[name], (bool, np.bool_)):
            raise InputTypeError(f"{name}={given[name]!r}", "True or False", "leave it out for the default")
    for name in ("callback", "progress"):
        if given[name] is not None and not callable(given[name]):
            raise InputTypeError(f"{name}={given[name]!r}", "a function of one history row", "leave it out if unsure")
    given["checkpoint"] = None if given["checkpoint"] is None else as_path(given["checkpoint"], "checkpoint")
    if not _is_number(given["checkpoint_seconds"]) or not given["checkpoint_seconds"] >= 0:
        raise InputError(
            f"checkpoint_seconds={given['checkpoint_seconds']!r}", "seconds between checkpoints", "use the default, 60"
        )
    if given["watchdog"] is None:
        given["watchdog"] = np.inf
    elif not _is_number(given["watchdog"]) or not given["watchdog"] > 0:
        raise InputError(f"watchdog={given['watchdog']!r}", "seconds, or None for no watchdog", "use the default, 300")
    return Settings(tolerance=tolerance, **given)


def check_limits(given: dict[str, Any]) -> dict[str, Any]:
    """The same settings with caps and budgets checked, None for a budget taken as none."""
    for name in {"max_outer", "max_inner"} & set(given):
        value = given[name]
        if not isinstance(value, (Integral, np.integer)) or isinstance(value, bool) or value < 1:  # pyright: ignore[reportOperatorIssue]
            raise InputError(f"{name}={value!r}", "an integer of at least 1", "leave it out for the default")
    budgets = {
        name: np.inf if given[name] is None else given[name] for name in ("max_work", "max_seconds") if name in given
    }
    for name, value in budgets.items():
        if not _is_number(value) or not value > 0:
            raise InputError(
                f"{name}={value!r}", "a positive number, or None for no limit", "leave it out for no limit"
            )
    return given | budgets


def _is_number(value: Any) -> bool:
    return real_number(value) is not None


def check_promise(solver: Solver, settings: Settings):
    """Raise where constants, a success probability or an option are wrong, or the solver has no use for them."""
    constants, success, option = settings.constants, settings.success, settings.option
    if constants is not None and not isinstance(constants, ProblemConstants):
        raise InputTypeError(
            f"constants={type(constants).__name__}", "theory.ProblemConstants", "see theory.estimate(problem, x0)"
        )
    if success is not None and (not _is_number(success) or not 0 < float(success) < 1):
        raise InputError(f"success={success!r}", "a probability between 0 and 1", "write for example success=0.95")
    if not isinstance(option, str) or option not in ("I", "II"):
        raise InputError(
            f"option={option!r}", "'I' (in expectation) or 'II' (with a probability)", "leave it out for 'II'"
        )
    if option == "I" and success is not None:
        raise InputError(
            f"success={success} beside option='I'",
            "a success probability with option='II' alone",
            "leave one of them out: Option I promises an expectation",
        )
    asked = {"constants": constants is not None, "success": success is not None, "option": option == "I"}
    if solver.guarantee is None and any(asked.values()):
        named = ", ".join(name for name, given in asked.items() if given)
        raise InputError(
            f"{named} for the solver {solver.name!r}",
            "a theory mode, whose parameters follow from constants and which promises a probability",
            f"use solver='{_theory(solver)}', or leave {named} out: what this one returns is judged anyway",
        )


def _theory(solver: Solver) -> str:
    """The theory mode of a solver, or of another one where it has none."""
    return own if (own := f"{solver.name}-theory") in names() else "spider-theory"
