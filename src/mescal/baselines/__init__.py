"""The peers of the paper's Table 1 on the same problems, oracle, counters, history and judge: one algorithm per file.

A baseline is an object of settings: `baselines.get("conex").minimize(problem, x0)` returns what `mescal.minimize` returns.
"""

from typing import TYPE_CHECKING

from ..registry import exported as _exported
from .adaptive_curvature import AdaptiveCurvature as AdaptiveCurvature
from .baseline import Baseline as Baseline, OutOfClass as OutOfClass, get as get, names as names
from .conex import ConEx as ConEx
from .penalty_storm import PenaltyStorm as PenaltyStorm
from .stoch_ialm import StochIALM as StochIALM
from .stoch_sqp import StochSQP as StochSQP

if not TYPE_CHECKING:
    __getattr__, __dir__ = _exported(__name__, Baseline)
