"""What `minimize` was asked, checked: tolerances, caps and budgets, penalty schedule, dual rule."""

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

from ..certificate import Tolerance, as_tolerance
from ..certificate.second_order import CONES
from ..errors import InputError, InputTypeError


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


def check_settings(**given: Any) -> Settings:
    """The settings, or an error in three parts."""
    tolerance = as_tolerance(given.pop("tol"))
    seed = given["seed"]
    if not isinstance(seed, (Integral, np.integer)) or isinstance(seed, bool):
        raise InputTypeError(f"seed={seed!r}", "an integer", "write for example seed=0")
    if not 0 <= int(seed) < 2**32:  # pyright: ignore[reportArgumentType]
        raise InputError(f"seed={seed}", "an integer from 0 to 2^32 - 1", "write for example seed=0")
    if given["cone"] not in CONES:
        raise InputError(f"cone={given['cone']!r}", f"one of {list(CONES)}", "use 'critical' when bounds are active")
    for name in ("max_outer", "max_inner"):
        if not isinstance(given[name], (Integral, np.integer)) or isinstance(given[name], bool) or given[name] < 1:
            raise InputError(f"{name}={given[name]!r}", "an integer of at least 1", "leave it out for the default")
    for name in ("max_work", "max_seconds"):
        value = given[name]
        if value is None:
            given[name] = np.inf
        elif not isinstance(value, Real) or isinstance(value, bool) or not float(value) > 0:  # pyright: ignore[reportArgumentType]
            raise InputError(
                f"{name}={value!r}", "a positive number, or None for no limit", "leave it out for no limit"
            )
    if not given["penalty"] > 0 or not np.isfinite(given["penalty"]):
        raise InputError(f"penalty={given['penalty']}", "a positive number", "use the default, 1.1")
    if not given["growth"] > 1 or not np.isfinite(given["growth"]):
        raise InputError(f"growth={given['growth']}", "a number above 1", "use the default, 1.1")
    if given["record"] not in (None, "exact"):
        raise InputError(
            f"record={given['record']!r}", "None or 'exact'", "'exact' adds the judge's measures to history"
        )
    if not 0 < given["confidence"] < 1:
        raise InputError(f"confidence={given['confidence']}", "a number between 0 and 1", "use for example 0.95")
    for name in ("callback", "progress"):
        if given[name] is not None and not callable(given[name]):
            raise InputTypeError(f"{name}={given[name]!r}", "a function of one history row", "leave it out if unsure")
    return Settings(tolerance=tolerance, **given)
