"""mescal: stochastic optimisation with expectation constraints and second-order certificates.

minimise E[F(x, xi)]  subject to  E[C(x, zeta)] = 0 or <= 0,  x in a closed convex set
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

from .distribution import warn_of_namesake as _warn_of_namesake
from .importing import collector_at_rest as _collector_at_rest

_warn_of_namesake()

with _collector_at_rest():
    from . import sets as sets, solvers as solvers
    from .certificate import (
        Certificate as Certificate,
        Measured as Measured,
        Tolerance as Tolerance,
        certify as certify,
    )
    from .errors import InputError as InputError, InputTypeError as InputTypeError
    from .problem import (
        Constraint as Constraint,
        E as E,
        Expectation as Expectation,
        Problem as Problem,
        Sampler as Sampler,
        chance as chance,
        cvar as cvar,
        entropic as entropic,
        of as of,
        on_disk as on_disk,
        rate as rate,
        ratio as ratio,
        shard as shard,
        stream as stream,
        subsample as subsample,
        variance as variance,
        worst as worst,
    )
    from .run import (
        Checkpoint as Checkpoint,
        Outer as Outer,
        Result as Result,
        Spread as Spread,
        Starts as Starts,
        Status as Status,
        minimize as minimize,
    )
    from .version import __version__ as __version__

# What a call of `minimize` does not need is imported on first use; `estimators` needs scikit-learn, which the rest does not.
_PACKAGES = (
    "baselines",
    "curvature",
    "datasets",
    "estimators",
    "experiments",
    "problems",
    "report",
    "testing",
    "theory",
)
_FUNCTIONS = {"keep_compiled": "kept_programs", "resume": "experiments.resume"}

if TYPE_CHECKING:
    from . import (
        baselines as baselines,
        curvature as curvature,
        datasets as datasets,
        estimators as estimators,
        experiments as experiments,
        problems as problems,
        report as report,
        testing as testing,
        theory as theory,
    )
    from .experiments.resume import resume as resume
    from .kept_programs import keep_compiled as keep_compiled
else:

    def __getattr__(name: str):
        if name in _PACKAGES:
            return _import_module(f".{name}", __name__)
        if name in _FUNCTIONS:
            return getattr(_import_module(f".{_FUNCTIONS[name]}", __name__), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_PACKAGES, *_FUNCTIONS})
