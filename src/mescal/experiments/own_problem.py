"""A user's own problem: a function in a Python file, named `path/to/file.py:function`, that returns (problem, x0)."""

import ast
import hashlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..datasets.lookup import unknown_name
from ..errors import InputError
from ..files import cannot_read
from ..problem import Problem
from ..problems import NamedProblem, Statement

EXAMPLE = "for example my_problem.py:make"


@dataclass(frozen=True)
class OwnProblem:
    """Where a user's problem is written. `sha256` is that of the file, so that a changed file is another problem."""

    file: str
    function: str
    sha256: str

    @property
    def name(self) -> str:
        """The file without its folder, and the function."""
        return f"{Path(self.file).name}:{self.function}"

    def make(self, parameters: Mapping[str, Any]) -> NamedProblem:
        """Run the function."""
        builder = self._builder()
        try:
            inspect.signature(builder).bind(**parameters)
        except TypeError as error:
            raise InputError(
                f"{self.name} cannot be called with {dict(parameters)}: {error}",
                f"the parameters {inspect.signature(builder)}",
                "give every parameter without a default, as in --set name=value",
            ) from None
        made = self._run(lambda: builder(**parameters))
        if isinstance(made, Statement):
            made = made.problem, made.x0
        if not (isinstance(made, tuple) and len(made) == 2 and isinstance(made[0], Problem)):
            raise InputError(
                f"{self.name} returned {type(made).__name__}",
                "a pair: a mescal.Problem and its initial parameters",
                "end the function with `return problem, x0`",
            )
        problem, x0 = made
        first = (inspect.getdoc(builder) or "").partition("\n")[0]
        return NamedProblem(self.name, problem, x0, dict(parameters), first, None, None, "critical")

    def _builder(self) -> Callable[..., Any]:
        path = Path(self.file)
        if _sha256(path) != self.sha256:
            raise InputError(
                f"{path} has changed since this run was made",
                f"the file with the sha256 {self.sha256[:12]}...",
                "restore it, or solve the new problem into another folder",
            )
        name = f"_mescal_problem_{self.sha256[:16]}_{hashlib.sha256(self.file.encode()).hexdigest()[:16]}"
        if name not in sys.modules:
            spec = importlib.util.spec_from_file_location(name, path)
            assert spec is not None and spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            if str(path.parent) not in sys.path:
                sys.path.insert(0, str(path.parent))  # the file may import its neighbours, as a script may
            loader = spec.loader
            self._run(lambda: loader.exec_module(module))
            sys.modules[name] = module
        functions = {key: value for key, value in vars(sys.modules[name]).items() if inspect.isfunction(value)}
        if self.function not in functions:
            raise unknown_name(f"function in {path.name}", self.function, functions)
        return functions[self.function]

    def _run(self, code: Callable[[], Any]) -> Any:
        """Run the user's code; what goes wrong there is told with the line."""
        try:
            return code()
        except InputError:
            raise
        except Exception as error:
            lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == self.file]
            where = f", line {lines[-1]}" if lines else ""
            raise InputError(
                f"{self.file}{where} raised {type(error).__name__}: {error}",
                f"a function {self.function} that returns (problem, x0)",
                "run the file with Python to see the whole traceback",
            ) from error


def own_problem(text: str) -> OwnProblem:
    """The problem that `path.py:function` names. Reads the file but runs nothing."""
    file, colon, function = text.rpartition(":")
    if not colon or not file.endswith(".py") or not function.isidentifier():
        raise InputError(
            f"the problem file {text!r}", f"a Python file and a function, {EXAMPLE}", "write both, with a colon"
        )
    path = Path(file).expanduser().resolve()
    return OwnProblem(str(path), function, _sha256(path))


def literal(text: str) -> Any:
    """A parameter of a user's function from text: a Python literal, otherwise the text itself."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _sha256(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise cannot_read(path, error) from error
