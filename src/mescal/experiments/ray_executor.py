"""Ray's cluster as an executor: what is submitted becomes a task of Ray's, which gives it to another worker if one dies."""

from collections.abc import Callable
from concurrent.futures import Executor, Future
from importlib import import_module
from typing import Any

from ..distribution import install
from ..errors import InputError


class RayExecutor(Executor):
    """For `sweep(..., jobs=RayExecutor())`, after `ray.init(...)`.

    **Arguments:**

    - `options`: of Ray's tasks, such as `num_cpus=2`; `max_retries` is without end unless it is given here.
    """

    def __init__(self, **options: Any):
        try:
            self._ray = import_module("ray")
        except ImportError:
            raise InputError("ray is not installed", "Ray, which this executor runs on", install("ray")) from None
        self._options = {"max_retries": -1} | options

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """The call as a task of Ray's."""
        return self._ray.remote(fn).options(**self._options).remote(*args, **kwargs).future()
