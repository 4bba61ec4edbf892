"""What a run is asked to do: problem, solver, seed, tolerance and limits; checked when it is made, without reading data."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_type_hints

from .. import baselines, problems, solvers
from ..baselines import Baseline
from ..certificate import Tolerance
from ..errors import InputError
from ..forms import NAMES, Unfit, plain, typed, value
from ..problems import NamedProblem
from ..run import Result, minimize
from ..run.settings import Outer, Settings
from .code import code_of, code_of_all
from .own import OwnFile, OwnProblem, OwnSolver
from .result_file import damaged

CONFIG = "config.json"
CODE = "code"  # what config.json calls the digest of the code that began a run
NOT_ASKED = ("schema", CODE)  # of config.json
LIMITS = ("max_outer", "max_work", "max_seconds")
DEFAULTS = Settings()


@dataclass(frozen=True)
class Task:
    """One run that can be made and made again; `task` makes and checks one.

    **Arguments:**

    - `problem`: a name of `mescal.problems.names()`, or that of a user's own problem.
    - `source`: where a user's own problem is written; None for a named one.
    - `parameters`: of the problem, all of them.
    - `solver`, `options`: a name of `mescal.solvers.names()` or `mescal.baselines.names()`, or that of a user's own solver, and
      settings other than its defaults.
    - `solver_source`: where a user's own solver is written; None for a named one.
    - `seed`, `tolerance`, `cone`, `record`, the limits, `starts` and `outer`: as for `mescal.minimize`.
    """

    problem: str
    source: OwnProblem | None
    parameters: Mapping[str, Any]
    solver: str
    solver_source: OwnSolver | None
    options: Mapping[str, Any]
    seed: int
    tolerance: Tolerance
    cone: str
    record: str | None
    max_outer: int
    max_work: float | None
    max_seconds: float | None
    starts: int
    outer: Outer

    def config(self) -> dict[str, Any]:
        """The task as config.json holds it: nothing but what was asked, so equal tasks have equal configs."""
        return plain(self)

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> "Task":
        """The task that a config.json holds."""
        try:
            given = vars(typed(cls, config))
        except Unfit as error:
            raise InputError(
                f"{CONFIG} is no whole task: {error.found}", error.expected, "solve it anew into another folder"
            ) from None
        problem = given.pop("source") or given["problem"]
        solver = given.pop("solver_source") or given["solver"]
        given |= {"problem": problem, "solver": solver, "tol": given.pop("tolerance")}
        try:
            return task(**given)
        except InputError as error:
            raise InputError(
                f"config.json cannot be carried out: {error.found}",
                error.expected,
                "restore it from a copy, or solve the problem anew into another folder",
            ) from None

    def with_trust(self, trust: bool, named: Sequence[OwnFile] = ()) -> "Task":
        """The same task, where files of the user's own may be run: see `OwnFile.with_trust`."""
        own = {"source": self.source, "solver_source": self.solver_source}
        return replace(self, **{part: file.with_trust(trust, named) for part, file in own.items() if file is not None})

    def make_problem(self) -> NamedProblem:
        """The problem and its start; reads or downloads its data."""
        if self.source is not None:
            return self.source.make(self.parameters)
        return problems.get(self.problem, **self.parameters)

    def make_solver(self, **options: Any) -> solvers.Solver | Baseline:
        """The solver or the baseline, with what else a caller asks of it; that of a user's own file is made by running the file."""
        made = method(self.solver_source or self.solver, options | dict(self.options))
        if isinstance(made, Baseline):
            found = f"the baseline {self.solver}"
            if self.starts != 1:
                raise InputError(f"{found} from {self.starts} starts", "one start", "run it from each start by itself")
            if self.outer != DEFAULTS.outer:
                raise InputError(
                    f"{found} with {self.outer}", "nothing of MESCAL's outer loop, which it has not", "leave outer out"
                )
        return made

    @property
    def label(self) -> str:
        """The problem, with the parameters that differ from their defaults."""
        changed = "".join(f",{name}={value}" for name, value in self._changed().items())
        return self.problem + changed

    @property
    def solver_label(self) -> str:
        """The solver, with the settings that are not its defaults, nor those of the outer loop."""
        return self.solver + "".join(f",{name}={value}" for name, value in asked_of(self.options, self.outer).items())

    @property
    def folder(self) -> Path:
        """Where the run lies below the root of a store: problem/solver/tol/seed."""
        tol = re.sub(", (curvature )?", ",", str(self.tolerance)).replace(" ", "=")
        starts = "" if self.starts == 1 else f",starts={self.starts}"
        parts = [*self.label.split("/"), self.solver_label, f"tol={tol}", f"seed={self.seed}{starts}"]
        return Path(*(re.sub(r"[^\w.,=+-]+", "-", part).strip(".") or "-" for part in parts))

    @property
    def group(self) -> str:
        """Tasks of one group share their compilations when they run in one process."""
        sources = [None if own is None else own.sha256 for own in (self.source, self.solver_source)]
        return repr((self.problem, sources, dict(self.parameters), self.solver_label))

    def arguments(self) -> dict[str, Any]:
        """What `minimize` is called with beside the problem and its start."""
        limits = {name: getattr(self, name) for name in LIMITS}
        chosen = {
            "tol": self.tolerance,
            "seed": self.seed,
            "cone": self.cone,
            "record": self.record,
            "starts": self.starts,
            "outer": self.outer,
        }
        return limits | chosen | {"solver": self.make_solver()}

    def solve(self, named: NamedProblem, checkpoint: Path, progress: Callable[[Any], Any] | None) -> Result:
        """Carry it out; baselines and several starts keep no checkpoints."""
        given = self.arguments()
        if not isinstance(given["solver"], Baseline):
            kept = checkpoint if self.starts == 1 else None
            return minimize(named.problem, named.x0, progress=progress, checkpoint=kept, **given)
        given = {name: value for name, value in given.items() if name not in ("solver", "max_outer", "starts", "outer")}
        baseline = self.make_solver(max_outer=self.max_outer)
        assert isinstance(baseline, Baseline)
        return baseline.minimize(named.problem, named.x0, progress=progress, **given)

    def _changed(self) -> dict[str, Any]:
        if self.source is not None:
            return dict(self.parameters)
        declared = problems.about(self.problem).parameters
        return {name: value for name, value in self.parameters.items() if value != declared[name].default}


def check_config(file: Path, config: Mapping[str, Any]):
    """Raise where a file's entries are not what those of a task are; entries may be missing where no task is to be made."""
    hints = {NAMES.get(name, name): hint for name, hint in get_type_hints(Task).items()} | {CODE: str | None}
    try:
        for name, content in config.items():
            if name in hints:
                value(hints[name], content, name)
        if not isinstance(config.get("problem"), str):
            raise Unfit("it says nothing about problem", "a file that mescal wrote")
    except Unfit as error:
        raise damaged(file, error) from None


def code_now(config: Mapping[str, Any]) -> str | None:
    """The digest of the code that would run the solver or the baseline of a config.json; None where there is none. Runs no file."""
    try:
        return code_of_all() if config.get("solver_source") else code_of(method(config.get("solver", ""), {}))
    except InputError:
        return None


def asked_of(options: Mapping[str, Any], outer: Outer) -> dict[str, Any]:
    """The settings of a solver and of the outer loop that are not their defaults, by the names that labels give them."""
    return dict(options) | {f"outer.{name}": value for name, value in outer.changed().items()}


def method(name: str | OwnSolver, options: Mapping[str, Any]) -> solvers.Solver | Baseline:
    """The sub-solver or the baseline of that name or in that file, with these settings."""
    if isinstance(name, OwnSolver):
        return name.make(options)
    return baselines.get(name, **options) if name in baselines.names() else solvers.get(name, **options)


def task(
    problem: "str | OwnProblem",
    *,
    parameters: Mapping[str, Any] | None = None,
    solver: str | OwnSolver = "auto",
    options: Mapping[str, Any] | None = None,
    seed: int = DEFAULTS.seed,
    tol: Any = DEFAULTS.tol,
    cone: str | None = None,
    record: str | None = None,
    max_outer: int = DEFAULTS.max_outer,
    max_work: float | None = None,
    max_seconds: float | None = None,
    starts: int = 1,
    outer: Outer = DEFAULTS.outer,
) -> Task:
    """A task, checked: names exist, numbers make sense. `cone=None` takes the one that suits the problem.

    A solver in a file that may be run is made here, so that its options are checked; one that may not is not.
    """
    given, own = dict(parameters or {}), None
    if isinstance(problem, OwnProblem):
        own, name, cone = problem, problem.name, cone or "critical"
    else:
        entry = problems.about(problem)
        name, cone = problem, cone or entry.cone
        if unknown := set(given) - set(entry.parameters):
            problems.parse(problem, {sorted(unknown)[0]: ""})
        given = {key: p.check(key, given.get(key, p.default)) for key, p in entry.parameters.items()}
    limits = {"max_outer": max_outer, "max_work": max_work, "max_seconds": max_seconds}
    asked = {"tol": tol, "cone": cone, "seed": seed, "record": record, "starts": starts, "outer": outer} | limits
    checked, own_solver = Settings(**asked), solver if isinstance(solver, OwnSolver) else None
    made = Task(
        problem=name,
        source=own,
        parameters=given,
        solver=solver.name if isinstance(solver, OwnSolver) else solver,
        solver_source=own_solver,
        options=dict(options or {}),
        seed=int(seed),
        tolerance=checked.tol,
        cone=cone,
        record=record,
        max_outer=int(max_outer),
        max_work=max_work,
        max_seconds=max_seconds,
        starts=checked.starts.count,
        outer=outer,
    )
    if own_solver is None or own_solver.trusted:
        made.make_solver()
    return made
