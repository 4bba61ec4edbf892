"""mescal: stochastic optimisation with expectation constraints and second-order certificates.

minimise E[F(x, xi)]  subject to  E[C(x, zeta)] = 0 or <= 0,  x in a closed convex set
"""

from importlib import import_module as _import_module

from . import (
    baselines as baselines,
    datasets as datasets,
    problems as problems,
    sets as sets,
    solvers as solvers,
    testing as testing,
    theory as theory,
)
from .certificate import Certificate as Certificate, Measured as Measured, Tolerance as Tolerance, certify as certify
from .errors import InputError as InputError, InputTypeError as InputTypeError
from .experiments.resume import resume as resume
from .outer import Result as Result, Status as Status, minimize as minimize
from .problem import (
    Constraint as Constraint,
    E as E,
    Expectation as Expectation,
    Problem as Problem,
    Sampler as Sampler,
    on_disk as on_disk,
    shard as shard,
    stream as stream,
    subsample as subsample,
)
from .version import __version__ as __version__


def __getattr__(name: str):
    """`mescal.estimators`, on first use: it needs scikit-learn, which the rest does not."""
    if name == "estimators":
        return _import_module(".estimators", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
