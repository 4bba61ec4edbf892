"""The paper's theorems as functions: constants, schedules, parameter formulas, work bounds. Plain numbers in and out.

```python
problem = theory.ProblemConstants(dimension=10, constraint_count=1, ...)         # what the theorems assume
schedule = theory.Schedule(initial_penalty=1.0, growth=1.1, multiplier_bound=2.0)
theory.iteration_bound(problem, schedule, 0.01)                                  # K* of Theorem 2.1
gap = theory.gap.deterministic_bound(problem, schedule, k=3)                     # Delta*_k of Lemma 3.6
constants = theory.subproblem_constants(problem, 2.0, schedule.penalty(3), gap)  # Lemmas 3.2-3.5
theory.spider.parameters(constants, 0.01, 0.01)                                  # Algorithm 6
theory.sample_complexity("spider", problem, schedule, 0.01, 0.01)                # Theorem 4.6, counted
theory.solver_rate("spider")                                                     # its order
theory.estimate(stated, x0)                                                      # constants of a mescal.Problem
print(theory.predict(stated, x0, 0.01))                                          # all of this as a table
```
"""

from . import (
    boosting,
    gap,
    natasha2,
    negative_curvature,
    outer,
    scr,
    sg_hv_nc,
    sgd3sc,
    spider,
    success,
    table1,
    units,
)
from .boosting import boost, copies, option_one
from .complexity import (
    SampleComplexity,
    general_rate,
    general_work,
    sample_complexity,
    solver_rate,
)
from .constants import (
    Affine,
    ProblemConstants,
    SubproblemConstants,
    gradient_lipschitz,
    gradient_noise,
    gradient_noise_mean_square,
    hessian_lipschitz,
    hessian_noise,
    subproblem_constants,
)
from .estimates import estimate
from .outer import (
    Schedule,
    dual_bound,
    dual_bound_total,
    dual_sample_size,
    feasibility_bound,
    iteration_bound,
    multiplier_bound,
    success_probability,
)
from .prediction import Prediction, predict
from .rates import Rate
from .work import Cost, Work

__all__ = [
    "Affine",
    "Cost",
    "Prediction",
    "ProblemConstants",
    "Rate",
    "SampleComplexity",
    "Schedule",
    "SubproblemConstants",
    "Work",
    "boost",
    "boosting",
    "copies",
    "dual_bound",
    "dual_bound_total",
    "dual_sample_size",
    "estimate",
    "feasibility_bound",
    "gap",
    "general_rate",
    "general_work",
    "gradient_lipschitz",
    "gradient_noise",
    "gradient_noise_mean_square",
    "hessian_lipschitz",
    "hessian_noise",
    "iteration_bound",
    "multiplier_bound",
    "natasha2",
    "negative_curvature",
    "option_one",
    "outer",
    "predict",
    "sample_complexity",
    "scr",
    "sg_hv_nc",
    "sgd3sc",
    "solver_rate",
    "spider",
    "subproblem_constants",
    "success",
    "success_probability",
    "table1",
    "units",
]
