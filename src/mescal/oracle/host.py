"""From the host into compiled programs: what a small solve would otherwise spend most of its time on."""

from typing import Any

import jax
import numpy as np

fold_in = jax.jit(jax.random.fold_in)  # the same keys as without compiling, in one dispatch


def leaf(value: Any, dtype: Any) -> Any:
    """An array leaf of a compiled program's arguments, left on the host: the call takes it along with all others.

    Sent to the device one by one, the numbers of a plan would take longer than a small solve.
    """
    return np.asarray(value, dtype)
