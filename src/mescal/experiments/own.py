"""A user's own Python file that a run needs, for its problem or its solver: `path/to/file.py:name`, known by its digest.

What the name stands for is had by running the file. That is done where the user named the file; one that a stored run names is
run on the user's word alone, since a folder from elsewhere can name any file.
"""

import ast
import hashlib
import inspect
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Self

from ..baselines import Baseline
from ..errors import InputError
from ..files import as_path, cannot_read
from ..forms import APART
from ..problem import Problem
from ..problems import Instance, NamedProblem
from ..registry import is_complete, make, unknown_name
from ..solvers import Solver


@dataclass(frozen=True)
class OwnFile:
    """Where something of a user's own is written. `sha256` is that of the file, so that a changed file is another one.

    `function` is what is called to make it: a function, or a class. `trusted` says that the user, and not a stored run, named the
    file or agreed to run it.
    """

    what: ClassVar[str]  # that a run has of its own
    kind: ClassVar[str]  # of what makes it
    returns: ClassVar[str]  # what it is, in errors
    flag: ClassVar[str]  # of the command line
    example: ClassVar[str]

    file: str
    function: str
    sha256: str
    trusted: bool = field(default=False, compare=False, metadata=APART)

    @classmethod
    def named(cls, text: str) -> Self:
        """What `path.py:name` names. Reads the file but runs nothing."""
        file, colon, function = text.rpartition(":")
        if not colon or not file.endswith(".py") or not function.isidentifier():
            raise InputError(
                f"the {cls.what} file {text!r}",
                f"a Python file and a {cls.kind}, for example {cls.example}",
                "write both, with a colon",
            )
        path = as_path(file, "file").expanduser().resolve()
        return cls(str(path), function, _sha256(_content(path)), trusted=True)

    @property
    def place(self) -> str:
        """The file without its folder, and what is called."""
        return f"{Path(self.file).name}:{self.function}"

    @property
    def name(self) -> str:
        """What stands in the place of the name of a known one."""
        return self.place

    def with_trust(self, trust: bool, named: "Sequence[OwnFile]" = ()) -> Self:
        """The same, on the user's word that the file may be run, or from a copy of the file among those that the user has named."""
        given = next((one for one in named if isinstance(one, type(self))), None)
        if given is None:
            return replace(self, trusted=trust)
        if (given.function, given.sha256) != (self.function, self.sha256):
            raise InputError(
                f"{given.file}:{given.function} is not what this run was made with",
                f"the {self.kind} {self.function} in a file with the sha256 {self.sha256[:12]}...",
                f"give that file as it was, or solve with the new {self.what} into another folder",
            )
        return given

    def refuse_untrusted(self):
        """Raise where nobody has said that the file may be run."""
        if not self.trusted:
            raise InputError(
                f"this run's {self.what} is the {self.kind} {self.function} in {self.file}, a file that would be run",
                "your word that it may be: a folder from elsewhere can name any file",
                f"look at it, then pass --trust (in Python trust=True), or name the file: {self.flag} {self.place}",
            )

    def module(self) -> ModuleType:
        """The file, run; once for all that is asked of it."""
        self.refuse_untrusted()
        path = as_path(self.file, "file")
        content = _content(path)
        if _sha256(content) != self.sha256:
            raise InputError(
                f"{path} has changed since this run was made",
                f"the file with the sha256 {self.sha256[:12]}...",
                f"restore it, or solve with the new {self.what} into another folder",
            )
        name = f"_mescal_own_{self.sha256[:16]}_{hashlib.sha256(self.file.encode()).hexdigest()[:16]}"
        if name not in sys.modules:
            module = ModuleType(name)
            module.__file__ = str(path)
            if str(path.parent) not in sys.path:
                sys.path.insert(0, str(path.parent))  # the file may import its neighbours, as a script may
            sys.modules[name] = module  # classes look for their module while they are made
            try:
                # What was looked at is what runs: a compiled copy beside the file could be another one's.
                self.guarded(lambda: exec(compile(content, str(path), "exec"), vars(module)))
            except BaseException:
                del sys.modules[name]
                raise
        return sys.modules[name]

    def guarded(self, code: Callable[[], Any]) -> Any:
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
                f"a {self.kind} {self.function} {self.returns}",
                "run the file with Python to see the whole traceback",
            ) from error


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise cannot_read(path, error) from error


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


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
        if isinstance(made, Instance):
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


IN_DOUBT = "write a class with a `name`, derived from one of mescal.solvers or mescal.baselines"
SHOWN = 8  # digits of the file's digest: a changed file makes other runs, in other folders and rows of a table


@dataclass(frozen=True)
class OwnSolver(OwnFile):
    """Where a user's solver is written."""

    what: ClassVar[str] = "solver"
    kind: ClassVar[str] = "class"
    returns: ClassVar[str] = "of a solver, whose settings have defaults"
    flag: ClassVar[str] = "--solver-file"
    example: ClassVar[str] = "my_solver.py:MySolver"

    @property
    def name(self) -> str:
        """With the beginning of the digest."""
        return f"{self.place}@{self.sha256[:SHOWN]}"

    def make(self, options: Mapping[str, Any]) -> Solver | Baseline:
        """Run the file, and make a solver with these settings."""
        module = self.module()
        known = {
            key: value
            for key, value in vars(module).items()
            if is_complete(value, Solver) or is_complete(value, Baseline)
            if value.__module__ == module.__name__
        }
        kind = f"solver in {self.place.partition(':')[0]}"
        return self.guarded(lambda: make(kind, self.function, known, options, IN_DOUBT))


def own_solver(text: str) -> OwnSolver:
    """The solver that `path.py:Class` names. Reads the file but runs nothing."""
    return OwnSolver.named(text)
