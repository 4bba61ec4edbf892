"""From what was stated to a plain problem: expectations, constraints between them, and the scalars that were added."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from ...errors import InputError, InputTypeError
from ...sets import ConvexSet, Product, Reals
from ..constraint import Constraint
from ..expectation import Expectation
from .algebra import Stated, Statement
from .lifting import Lift, Lifted, Lifting


class Lowered(NamedTuple):
    """A plain problem."""

    objective: Any
    constraints: Any
    domain: ConvexSet
    lifting: Lifting | None


def lower(objective: Any, constraints: Any, domain: ConvexSet) -> Lowered:
    """The plain form; what holds no statements, or is no problem at all, is passed through."""
    if isinstance(objective, Stated):
        raise InputTypeError(
            "the objective is a comparison", "a value to be minimised", "move the comparison into constraints={...}"
        )
    parts = [objective, *(constraints.values() if isinstance(constraints, Mapping) else ())]
    if not any(isinstance(part, (Statement, Stated)) for part in parts):
        return Lowered(objective, constraints, domain, None)
    lift = Lift()
    goal = objective.above(lift, "objective") if isinstance(objective, Statement) else _plain(objective, lift)
    found: dict[Any, Any] = {}
    for name, stated in constraints.items():
        if isinstance(stated, Statement):
            raise InputTypeError(
                f"constraint {name!r} has no comparison",
                "a comparison by <=, >= or ==",
                f"write {name!r}: {stated} <= 0.1",
            )
        _add(found, stated.lower(lift, name) if isinstance(stated, Stated) else {name: _plain(stated, lift)})
    _add(found, lift.sides)
    if not lift.starts:
        return Lowered(_same(goal, lift), {name: _same(part, lift) for name, part in found.items()}, domain, None)
    own = domain
    if not all(isinstance(each, Reals) for each in (domain, *lift.ranges.values())):
        domain = Product(Lifted(domain, dict(lift.ranges)))
    return Lowered(goal, found, domain, Lifting(lift.starts, own))


def _add(found: dict[Any, Any], more: Mapping[Any, Any]):
    for name in more:
        if name in found:
            raise InputError(
                f"two constraints called {name!r}: what is stated about one thing makes several, with names of their own",
                "a name for each",
                "rename what is stated under the shorter name, or the constraint that has this one",
            )
    found |= more


def _plain(part: Any, lift: Lift) -> Any:
    """An expectation or a constraint over x as one over both; anything else is refused elsewhere."""
    if isinstance(part, Expectation):
        return lift.plain(part)
    return part.with_body(lift.plain(part.body)) if isinstance(part, Constraint) else part


def _same(part: Any, lift: Lift) -> Any:
    if isinstance(part, Expectation):
        return lift.dropped(part)
    return part.with_body(lift.dropped(part.body)) if isinstance(part, Constraint) else part
