"""One BLAS thread for the linear algebra of the host.

Its matrices are small: a tridiagonal form of 500 columns is a thousand products of a few microseconds each, and threads meet
after every one of them. Where another process holds one of the cores, each of these meetings waits for the scheduler: an
eigenvalue of 20 milliseconds has been seen to take eight seconds. And numpy and scipy bring a pool of threads each, which stand in
each other's way on machines with many cores. OpenBLAS, which comes with their wheels, takes the number at any time; other
libraries are left alone.
"""

import contextlib
import ctypes
import threading
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

_lock = threading.Lock()
_inside = 0
_before: list[int] = []


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Within it, the libraries' pools have one thread; the last one to leave gives them back what they had."""
    global _inside, _before
    with _lock:
        _inside += 1
        if _inside == 1:
            _before = [get() for get, _ in _pools()]
            for _, put in _pools():
                put(1)
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                for (_, put), count in zip(_pools(), _before, strict=True):
                    put(count)


@cache
def _pools() -> tuple[tuple[Callable[[], int], Callable[[int], Any]], ...]:
    """How to read and to set the number of threads of each library that numpy and scipy are linked to."""
    import numpy.linalg._umath_linalg as of_numpy
    import scipy.linalg._fblas as of_scipy

    found = [_openblas(str(module.__file__)) for module in (of_numpy, of_scipy)]
    return tuple(pair for pair in found if pair is not None)


def _openblas(extension: str) -> tuple[Callable[[], int], Callable[[int], Any]] | None:
    """Those of the OpenBLAS that an extension module brings along, whatever prefix its build gave the names; None without one."""
    try:
        library = ctypes.CDLL(extension)
    except OSError:
        return None
    for prefix in ("scipy_", ""):
        for suffix in ("64_", ""):
            names = [f"{prefix}openblas_{verb}_num_threads{suffix}" for verb in ("get", "set")]
            if all(hasattr(library, name) for name in names):
                get, put = (getattr(library, name) for name in names)
                get.restype, put.argtypes, put.restype = ctypes.c_int, [ctypes.c_int], None
                return get, put
    return None
