"""One run of a method on a task, judged, as it is stored; what declines or breaks is a failure that says why."""

import traceback
from typing import Any

from .judge import judge
from .store import failed_row, row_of
from .task import Method, Task


def attempt(method: Method, task: Task, noise: float = 0.0) -> dict[str, Any]:
    """The run's row; also said on the screen."""
    if (reason := method.declines(task)) is not None:
        return failed_row(method, task, noise, f"declined: {reason}")
    try:
        answer = method.solve(task)
        row = row_of(method, task, noise, answer, judge(task, answer))
    except Exception as error:  # one method's failure is a row of the table, not the end of the run
        traceback.print_exc()
        row = failed_row(method, task, noise, f"broke: {type(error).__name__}: {str(error).splitlines()[0][:100]}")
    print(
        f"{task.name:12} {noise:6g} {method.name:24} {row['certified']!s:5} {row['status'][:40]} {row['why']}",
        flush=True,
    )
    return row
