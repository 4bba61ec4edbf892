"""A user's own problem: a function in a Python file, named `path/to/file.py:function`, that returns (problem, x0).

To make it is to run the file. That is done where the user named the file; one that a stored run names is run on the user's word
alone, since a folder from elsewhere can name any file.
"""

import ast
import hashlib
import inspect
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from ..errors import InputError
from ..files import as_path, cannot_read
from ..forms import APART
from ..problem import Problem
from ..problems import NamedProblem, Statement
from ..registry import unknown_name

EXAMPLE = "for example my_problem.py:make"


@dataclass(frozen=True)
class OwnProblem:
    """Where a user's problem is written. `sha256` is that of the file, so that a changed file is another problem.

    `trusted` says that the user, and not a stored run, named the file or agreed to run it.
    """

    file: str
    function: str
    sha256: str
    trusted: bool = field(default=False, compare=False, metadata=APART)

    @property
    def name(self) -> str:
        """The file without its folder, and the function."""
        return f"{Path(self.file).name}:{self.function}"

    def with_trust(self, trust: "bool | OwnProblem") -> "OwnProblem":
        """The same, on the user's word that the file may be run, or from a copy of the file that the user has named."""
        if isinstance(trust, bool):
            return replace(self, trusted=trust)
        if (trust.function, trust.sha256) != (self.function, self.sha256):
            raise InputError(
                f"{trust.file}:{trust.function} is not what this run was made with",
                f"the function {self.function} in a file with the sha256 {self.sha256[:12]}...",
                "give that file as it was, or solve the new problem into another folder",
            )
        return trust

    def make(self, parameters: Mapping[str, Any]) -> NamedProblem:
        """Run the function."""
        if not self.trusted:
            raise InputError(
                f"this run's problem is the function {self.function} in {self.file}, a file that would be run",
                "your word that it may be: a folder from elsewhere can name any file",
                f"look at it, then pass --trust (in Python trust=True), or name the file: --problem-file {self.name}",
            )
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
        path = as_path(self.file, "file")
        content = _content(path)
        if _sha256(content) != self.sha256:
            raise InputError(
                f"{path} has changed since this run was made",
                f"the file with the sha256 {self.sha256[:12]}...",
                "restore it, or solve the new problem into another folder",
            )
        name = f"_mescal_problem_{self.sha256[:16]}_{hashlib.sha256(self.file.encode()).hexdigest()[:16]}"
        if name not in sys.modules:
            module = ModuleType(name)
            module.__file__ = str(path)
            if str(path.parent) not in sys.path:
                sys.path.insert(0, str(path.parent))  # the file may import its neighbours, as a script may
            # What was looked at is what runs: a compiled copy beside the file could be another one's.
            self._run(lambda: exec(compile(content, str(path), "exec"), vars(module)))
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
        except (Exception, SystemExit) as error:
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
    path = as_path(file, "file").expanduser().resolve()
    return OwnProblem(str(path), function, _sha256(_content(path)), trusted=True)


def literal(text: str) -> Any:
    """A parameter of a user's function from text: a Python literal, otherwise the text itself."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise cannot_read(path, error) from error


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
