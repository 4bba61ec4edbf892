"""Seconds of a run, and of those the ones that JAX spent tracing, lowering and compiling."""

import time

import jax

_COMPILING = ("jaxpr_trace_duration", "jaxpr_to_mlir_module_duration", "backend_compile_duration")
_spent = [0.0]


def _listen(event: str, duration_secs: float, **_: str | int):
    if event.rsplit("/", 1)[-1] in _COMPILING:
        _spent[0] += duration_secs


jax.monitoring.register_event_duration_secs_listener(_listen)


class Clock:
    """Started when made."""

    def __init__(self):
        self.started, self.compiled_before = time.perf_counter(), _spent[0]

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.perf_counter() - self.started

    @property
    def compiling(self) -> float:
        """Of those, tracing, lowering and compiling."""
        return min(_spent[0] - self.compiled_before, self.seconds)
