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

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .public import *  # noqa: F403
else:

    def __getattr__(name: str):
        """A file of this folder, or what `public.py` names, on first use: a run needs a few of the files."""
        if not name.startswith("__"):
            try:
                return _import_module(f".{name}", __name__)
            except ModuleNotFoundError as error:
                if error.name != f"{__name__}.{name}":
                    raise
        if name == "__all__" or name in __dir__():
            return getattr(_import_module(".public", __name__), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_import_module(".public", __name__).__all__})
