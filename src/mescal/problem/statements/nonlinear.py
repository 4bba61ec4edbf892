"""A function of expectations: the F-measure, a product of rates, a sum of ratios.

of(g, e_1, ..., e_k)   is   g(y)   with   y_i = e_i   as equalities
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from ...checks import number
from ...errors import InputTypeError
from ..expectation import E, Expectation
from .algebra import Statement, worth
from .lifting import Lift
from .ratio import Ratio
from .values import At


class Of(Statement):
    """g of some expectations and ratios; it may be bounded from both sides."""

    def __init__(self, g: Callable, parts: tuple[Expectation | Ratio, ...], between: tuple[float, float] | None):
        self.g, self.parts, self.between = g, parts, between

    def above(self, lift: Lift, name: str) -> Expectation:
        scalars = []
        for i, part in enumerate(self.parts):
            own = f"{name}: value {i}"
            value = lift.scalar(own, lambda at, part=part: worth(part, at), self.between)
            plain = part.exact(lift, own) if isinstance(part, Ratio) else lift.plain(part)
            lift.side(own, (plain - E(value)) == 0, value)
            scalars.append(value)
        return E(lambda z: self.g(*(value(z) for value in scalars)))

    below = exact = above

    def value_at(self, at: At) -> float:
        return float(self.g(*(worth(part, at) for part in self.parts)))

    def __repr__(self) -> str:
        return f"{getattr(self.g, '__name__', 'a function')} of {len(self.parts)} expectations"


def of(g: Callable, *parts: Any, between: tuple[float, float] | None = None) -> Statement:
    """A smooth function of expectations and ratios, in objectives and constraints, from both sides.

    ```python
    parts = E(hit, over=people), E(predicted, over=people)
    f_measure = mescal.of(lambda hits, predictions: 2 * hits / (predictions + positives), *parts, between=(0, 1))
    ```

    **Arguments:**

    - `g`: a function of as many numbers, made of `jax.numpy`.
    - `parts`: expectations or ratios of them.
    - `between`: two numbers between which all parts lie, such as 0 and 1 for rates. A solver may look at g anywhere between them
      before it has found out what the parts can be: where g has poles elsewhere, they must be given.
    """
    if not callable(g):
        raise InputTypeError(
            f"of got {type(g).__name__} first", "a function", "write of(lambda a, b: a / b, first, second)"
        )
    if not parts or not all(isinstance(part, (Expectation, Ratio)) for part in parts):
        raise InputTypeError(
            f"of got {', '.join(type(part).__name__ for part in parts) or 'nothing'} beside its function",
            "expectations and ratios of expectations",
            "write of(lambda a, b: a / b, E(first, over=d), E(second, over=d))",
        )
    if between is not None:
        if not isinstance(between, (tuple, list)) or len(between) != 2:
            raise InputTypeError(f"between={between!r:.60}", "two numbers", "write between=(0, 1)")
        low, high = (number(-np.inf)("between", end) for end in between)
        between = low, high
    return Of(g, parts, between)
