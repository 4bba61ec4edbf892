"""The worst of several values: of groups, of scenarios.

worst(e_1, ..., e_k) <= b   is   e_i <= b for every i;     minimised, it is the least t with e_i <= t for every i

A multiple u worst(...), u > 1, has u (e_i - t) <= 0: whether a value is the largest is told in the units in which it counts.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...errors import InputTypeError
from ..constraint import Constraint
from ..expectation import E, Expectation
from .algebra import Stated, Statement, worth
from .lifting import Lift
from .values import At


class Worst(Statement):
    """The largest of some expectations and statements."""

    only_above = "state every lower bound by itself: {f'group {i}': e >= bound for i, e in enumerate(groups)}"

    def __init__(self, members: Mapping[str, Expectation | Statement]):
        self.members = dict(members)

    def at_most(self, bound: Expectation, lift: Lift, name: str) -> dict[str, Constraint]:
        found: dict[str, Constraint] = {}
        for key, member in self.members.items():
            own = f"{name}[{key}]"
            if isinstance(member, Expectation):
                found[own] = lift.plain(member) <= lift.plain(bound)
            else:
                found |= Stated(member, "<=", bound).lower(lift, own)
        return found

    def above(self, lift: Lift, name: str) -> Expectation:
        value, unit = lift.scalar(f"{name}: worst", self.value_at), max(1.0, lift.unit)
        for key, member in self.members.items():
            own = f"{name}[{key}]"
            whole = lift.plain(member) if isinstance(member, Expectation) else member.above(lift, own)
            lift.side(own, unit * (whole - E(value)) <= 0, value, unit)
        return E(value)

    def value_at(self, at: At) -> float:
        return max(worth(member, at) for member in self.members.values())

    def __repr__(self) -> str:
        return f"worst of {', '.join(self.members)}"


def worst(members: Sequence[Any] | Mapping[str, Any]) -> Statement:
    """The largest of several expectations, ratios or risks, to be minimised or bounded from above.

    **Arguments:**

    - `members`: a list, or a dict by name; the names are those of the constraints that come of it.
    """
    if not isinstance(members, Iterable):
        members = []
    named = members if isinstance(members, Mapping) else {str(i): member for i, member in enumerate(members)}
    if not named:
        raise InputTypeError(
            "worst of nothing that can be listed",
            "at least one expectation",
            "write worst([E(loss, over=a), E(loss, over=b)])",
        )
    for key, member in named.items():
        if not isinstance(member, (Expectation, Statement)):
            raise InputTypeError(
                f"worst got {type(member).__name__} as its member {key}",
                "expectations and ratios, risks or other statements",
                "write worst([E(loss, over=a), E(loss, over=b)])",
            )
    return Worst(named)
