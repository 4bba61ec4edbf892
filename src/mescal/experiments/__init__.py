"""Runs that are kept: one run and its folder, sweeps over many, the paper's experiments, tables of what came out.

```python
from mescal import experiments

stored = experiments.run(experiments.task("neyman-pearson/breast-cancer", tol=0.01, seed=0), "runs/a")
stored.result.work.total, stored.result.history.column("feasibility")
tasks = experiments.product(["saddles/circle"], ["spider", "natasha2"], seeds=range(5))
swept = experiments.sweep(tasks, "runs/saddles", jobs=2)
experiments.compare(swept.runs)
experiments.tune(mescal.problems.get("neyman-pearson/breast-cancer"), "spider", {"batch": (16, 64)}, tol=0.01).best
```
"""

from .own import OwnProblem as OwnProblem, OwnSolver as OwnSolver, own_problem as own_problem, own_solver as own_solver
from .ray_executor import RayExecutor as RayExecutor
from .result_file import About as About, Size as Size
from .resume import resume as resume, resume_run as resume_run
from .run import run as run
from .store import (
    SCHEMA as SCHEMA,
    Readable as Readable,
    StoredRun as StoredRun,
    load_readable as load_readable,
    load_run as load_run,
    load_runs as load_runs,
    write_config as write_config,
    write_result as write_result,
)
from .sweep import Swept as Swept, product as product, sweep as sweep
from .table import ComparisonRow as ComparisonRow, compare as compare
from .task import Task as Task, task as task
from .tune import Trial as Trial, Tuned as Tuned, tune as tune
