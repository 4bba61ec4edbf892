"""Units of every constant and parameter, so that a formula can be checked by changing the scale of the problem.

Three units exist: that of the objective (F), of a length in x (X) and of the constraint (C). Replacing f by s f, x by
r x and c by t c multiplies a quantity of unit F^a X^b C^e by s^a r^b t^e, and must leave counts and probabilities as
they were. A formula that does not is wrong: this is how errata 3 and 7-10 of the paper show.
"""

import dataclasses
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar, get_args, get_type_hints

Record = TypeVar("Record")


@dataclass(frozen=True)
class Unit:
    """The unit F^objective X^length C^constraint."""

    objective: float = 0
    length: float = 0
    constraint: float = 0

    def factor(self, objective: float, length: float, constraint: float) -> float:
        """What a quantity of this unit is multiplied by when f, x and c are multiplied by the three numbers."""
        return objective**self.objective * length**self.length * constraint**self.constraint


Count = Annotated[int, Unit()]
Number = Annotated[float, Unit()]  # probabilities and ratios

Value = Annotated[float, Unit(objective=1)]
Gradient = Annotated[float, Unit(objective=1, length=-1)]
Curvature = Annotated[float, Unit(objective=1, length=-2)]
ThirdDerivative = Annotated[float, Unit(objective=1, length=-3)]

Length = Annotated[float, Unit(length=1)]
StepSize = Annotated[float, Unit(objective=-1, length=2)]  # what multiplies a gradient to give a length
PerSquaredLength = Annotated[float, Unit(length=-2)]

Constraint = Annotated[float, Unit(constraint=1)]
Jacobian = Annotated[float, Unit(length=-1, constraint=1)]
ConstraintCurvature = Annotated[float, Unit(length=-2, constraint=1)]
ConstraintThirdDerivative = Annotated[float, Unit(length=-3, constraint=1)]
Multiplier = Annotated[float, Unit(objective=1, constraint=-1)]
Penalty = Annotated[float, Unit(objective=1, constraint=-2)]
MultiplierSlope = Annotated[float, Unit(objective=1, length=-1, constraint=-1)]
MultiplierBend = Annotated[float, Unit(objective=1, length=-2, constraint=-1)]


def unit_of(annotation: Any) -> Unit | None:
    """The unit written in a type such as `Length`; None for a type without one, such as `bool`."""
    return next((part for part in get_args(annotation) if isinstance(part, Unit)), None)


def rescale(record: Record, objective: float = 1.0, length: float = 1.0, constraint: float = 1.0) -> Record:
    """The same dataclass in other units: the record of the problem s f(x / r), c(x / r) t.

    Fields are scaled by the unit in their type; counts, flags and fields without a unit stay as they are.
    """
    hints = get_type_hints(type(record), include_extras=True)
    changes = {}
    for field in dataclasses.fields(record):  # pyright: ignore[reportArgumentType]
        value, unit = getattr(record, field.name), unit_of(hints[field.name])
        if dataclasses.is_dataclass(value):
            changes[field.name] = rescale(value, objective, length, constraint)
        elif unit is not None and not isinstance(value, int):
            changes[field.name] = value * unit.factor(objective, length, constraint)
    return dataclasses.replace(record, **changes)  # pyright: ignore[reportType, reportArgumentType]
