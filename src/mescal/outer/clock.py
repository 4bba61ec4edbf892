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
    """Started when made; a run that is carried on counts what it took before."""

    def __init__(self):
        self.started, self.compiled_before = time.perf_counter(), _spent[0]
        self.earlier, self.compiled_earlier = 0.0, 0.0

    def carry_on(self, seconds: float, compiling: float):
        """Count what a run took before it was carried on here."""
        self.earlier, self.compiled_earlier = seconds, compiling

    @property
    def here(self) -> float:
        """Since the start of this clock: what limits on seconds are about."""
        return time.perf_counter() - self.started

    @property
    def seconds(self) -> float:
        """Of the whole run."""
        return self.earlier + self.here

    @property
    def compiling(self) -> float:
        """Of those, tracing, lowering and compiling."""
        return self.compiled_earlier + min(_spent[0] - self.compiled_before, self.here)
