"""What a named problem is, and what a file of this folder declares about one."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from ..problem import Problem
from .parameter import Parameter, Value

Cone = Literal["critical", "paper"]


@dataclass(frozen=True, eq=False)
class Statement:
    """What a builder returns: the problem, where to start, and what is known of its minimisers."""

    problem: Problem
    x0: np.ndarray
    optimum: float | None = None
    solution: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class NamedProblem:
    """A problem with its name, its parameters and a start.

    **Arguments:**

    - `name`, `parameters`: what `get` needs to make it again.
    - `problem`, `x0`: what is to be solved, and from where.
    - `description`: a sentence.
    - `optimum`: the best objective known, None where none is.
    - `solution`: a minimiser, in float64 and the shape of `x0`; None where it is not known.
    - `cone`: the cone on which a certificate can be expected to pass at the minimisers.
    """

    name: str
    problem: Problem
    x0: np.ndarray
    parameters: dict[str, Value]
    description: str
    optimum: float | None
    solution: np.ndarray | None
    cone: Cone

    @property
    def kind(self) -> str:
        """The first part of the name."""
        return self.name.partition("/")[0]

    def __repr__(self) -> str:
        given = "".join(f", {name}={value!r}" for name, value in self.parameters.items())
        return f"NamedProblem({self.name!r}{given})"


@dataclass(frozen=True)
class Entry:
    """What a file of this folder says about one of its problems.

    **Arguments:**

    - `name`: `kind/problem`.
    - `build`: a function of the parameters, given by name, that returns a `Statement`.
    - `description`: a sentence; the formula is in the file's docstring.
    - `parameters`: what can be set, by name.
    - `optimum`: the best objective known with the default parameters, where the builder cannot tell.
    - `cone`: see `NamedProblem`.
    """

    name: str
    build: Callable[..., Statement]
    description: str
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    optimum: float | None = None
    cone: Cone = "critical"

    def make(self, parameters: Mapping[str, Any]) -> NamedProblem:
        """The problem with checked parameters."""
        statement = self.build(**parameters)
        usual = all(
            parameters[name] == parameter.default for name, parameter in self.parameters.items() if parameter.restates
        )
        optimum = self.optimum if statement.optimum is None and usual else statement.optimum
        return NamedProblem(
            name=self.name,
            problem=statement.problem,
            x0=statement.x0,
            parameters=dict(parameters),
            description=self.description,
            optimum=optimum,
            solution=statement.solution,
            cone=self.cone,
        )
