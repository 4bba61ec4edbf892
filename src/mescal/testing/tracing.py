"""What JAX does before a program runs: how often a function is traced, and which programs are compiled.

A program that is traced anew for every bound, seed or tolerance costs seconds each time; these counters are how tests notice.
"""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import jax

STAGES = {
    "jaxpr_trace_duration": "tracing",
    "jaxpr_to_mlir_module_duration": "lowering",
    "backend_compile_duration": "compiling",
}


class Traces:
    """How often Python ran a function."""

    def __init__(self):
        self.count = 0

    def reset(self):
        """Back to zero."""
        self.count = 0

    def __repr__(self) -> str:
        return f"Traces(count={self.count})"


def count_traces(fn: Callable) -> tuple[Callable, Traces]:
    """`fn` with a counter: within compiled programs Python runs it when it is traced, and not when they run.

    ```python
    loss, traces = mescal.testing.count_traces(loss)
    problem = mescal.Problem(E(loss, over=rows))
    mescal.minimize(problem, x0)
    traces.reset()
    mescal.minimize(problem, x0, seed=1)
    assert traces.count == 0
    ```
    """
    traces = Traces()

    @functools.wraps(fn)
    def counted(*arguments, **named):
        traces.count += 1
        return fn(*arguments, **named)

    return counted, traces


@dataclass
class Compilations:
    """What was compiled in the whole process, all threads together.

    **Arguments:**

    - `programs`: their names, as JAX has them, in order; those read from the disk are among them.
    - `read`: how many were read from the disk (`mescal.keep_compiled`).
    - `seconds`: by stage: tracing, lowering and compiling; reading from the disk counts as compiling.
    """

    programs: list[str] = field(default_factory=list)
    read: int = 0
    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(STAGES.values(), 0.0))

    @property
    def count(self) -> int:
        """How many programs."""
        return len(self.programs)


@contextmanager
def count_compilations() -> Iterator[Compilations]:
    """Count programs while a block runs; what was counted can be looked at within it and afterwards.

    ```python
    with mescal.testing.count_compilations() as compilations:
        mescal.certify(problem, x)
    assert compilations.count == 0, compilations.programs
    ```
    """
    found = Compilations()

    def on_duration(event: str, duration_secs: float, **details: str | int):
        stage = STAGES.get(event.rsplit("/", 1)[-1])
        if stage is not None:
            found.seconds[stage] += duration_secs
            if stage == "compiling":
                found.programs.append(str(details.get("fun_name", "")))

    def on_event(event: str, **_: str | int):
        found.read += event.endswith("/cache_hits")

    jax.monitoring.register_event_duration_secs_listener(on_duration)
    jax.monitoring.register_event_listener(on_event)
    try:
        yield found
    finally:
        jax.monitoring.unregister_event_duration_listener(on_duration)
        jax.monitoring.unregister_event_listener(on_event)
