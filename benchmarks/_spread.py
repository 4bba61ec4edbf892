"""Work spread over processes, each with one thread and its own programs, until all jobs are done or time is up."""

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import active_children, get_context
from typing import Any

from . import _measure


def spread(function: Callable[[Any], Any], jobs: list[Any]) -> Iterator[Any]:
    """What `function`, one of a module, makes of each job, in no order; what is not done after `--seconds` is left."""
    ends = None if _measure.seconds_left is None else time.monotonic() + _measure.seconds_left
    if _measure.workers == 1:
        for job in jobs:
            if ends is not None and time.monotonic() > ends:
                return
            yield function(job)
        return
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NPROC"):
        os.environ[name] = "1"
    pool = ProcessPoolExecutor(_measure.workers, mp_context=get_context("spawn"))
    done = [pool.submit(function, job) for job in jobs]
    try:
        for outcome in as_completed(done, None if ends is None else max(0.0, ends - time.monotonic())):
            yield outcome.result()
    except TimeoutError:
        for child in active_children():  # a run that is asked to stop would finish its chunk first
            child.kill()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
