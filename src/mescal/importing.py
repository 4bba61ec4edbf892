"""Importing with the garbage collector at rest, and when something is first looked at.

What modules make when they are imported stays, so looking through it again and again finds nothing, and takes a tenth of
a second with JAX (`benchmarks/cold.py`).
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any


def on_first_use(module: str) -> Any:
    """A module of this package, by its name: how a record finds what draws it, which lies below it and is seldom needed.

    Records know no more of it than its functions' names, and the tests hold every use to a short list.
    """
    return import_module(f"{__package__}.{module}")


@contextmanager
def collector_at_rest() -> Iterator[None]:
    """No collections within; afterwards all that is there counts as old, and the collector is as it was."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        if gc.get_freeze_count() == 0:  # else somebody's frozen objects would be thawed
            gc.freeze()
            gc.unfreeze()
        gc.enable()
