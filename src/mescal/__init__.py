"""mescal: stochastic optimisation with expectation constraints and second-order certificates.

minimise E[F(x, xi)]  subject to  E[C(x, zeta)] = 0 or <= 0,  x in a closed convex set
"""

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
)

__version__ = "0.1.0"
