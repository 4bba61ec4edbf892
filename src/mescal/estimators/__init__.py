"""scikit-learn classifiers with constraints on rates, and a regressor with constraints on errors and coverage."""

from ..distribution import install as _install

try:
    import sklearn as _sklearn  # noqa: F401
except ImportError as error:
    raise ImportError(
        "scikit-learn was not found.\n"
        "  Expected: scikit-learn 1.6 or later, on which mescal.estimators is built.\n"
        f"  What to do: install the extra, {_install('sklearn')}."
    ) from error

from .constrained import ConstrainedClassifier as ConstrainedClassifier
from .fair import FairClassifier as FairClassifier
from .neyman_pearson import NeymanPearsonClassifier as NeymanPearsonClassifier
from .rates import (
    RateConstraint as RateConstraint,
    Rates as Rates,
    coverage as coverage,
    error as error,
    rate as rate,
)
from .regressor import ConstrainedRegressor as ConstrainedRegressor
from .thresholds import smallest_sample as smallest_sample, umbrella_rank as umbrella_rank
