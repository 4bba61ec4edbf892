"""A user's own problem: a function in a Python file that returns (problem, x0)."""

import ast
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ..errors import InputError
from ..problem import Problem
from ..problems import NamedProblem, Statement
from ..registry import unknown_name
from .own_file import OwnFile


@dataclass(frozen=True)
class OwnProblem(OwnFile):
    """Where a user's problem is written."""

    what: ClassVar[str] = "problem"
    kind: ClassVar[str] = "function"
    returns: ClassVar[str] = "that returns (problem, x0)"
    flag: ClassVar[str] = "--problem-file"
    example: ClassVar[str] = "my_problem.py:make"

    def make(self, parameters: Mapping[str, Any]) -> NamedProblem:
        """Run the function."""
        builder = self._builder()
        try:
            inspect.signature(builder).bind(**parameters)
        except TypeError as error:
            raise InputError(
                f"{self.place} cannot be called with {dict(parameters)}: {error}",
                f"the parameters {inspect.signature(builder)}",
                "give every parameter without a default, as in --set name=value",
            ) from None
        made = self.guarded(lambda: builder(**parameters))
        if isinstance(made, Statement):
            made = made.problem, made.x0
        if not (isinstance(made, tuple) and len(made) == 2 and isinstance(made[0], Problem)):
            raise InputError(
                f"{self.place} returned {type(made).__name__}",
                "a pair: a mescal.Problem and its initial parameters",
                "end the function with `return problem, x0`",
            )
        problem, x0 = made
        first = (inspect.getdoc(builder) or "").partition("\n")[0]
        return NamedProblem(self.name, problem, x0, dict(parameters), first, None, None, "critical")

    def _builder(self) -> Callable[..., Any]:
        module = self.module()
        functions = {key: value for key, value in vars(module).items() if inspect.isfunction(value)}
        if self.function not in functions:
            raise unknown_name(f"function in {self.place.partition(':')[0]}", self.function, functions)
        return functions[self.function]


def own_problem(text: str) -> OwnProblem:
    """The problem that `path.py:function` names. Reads the file but runs nothing."""
    return OwnProblem.named(text)


def literal(text: str) -> Any:
    """A parameter of a user's function from text: a Python literal, otherwise the text itself."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
