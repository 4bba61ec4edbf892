"""Options that several commands share, and how they complete."""

from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer

from .. import baselines, problems, solvers
from ..certificate import Tolerance
from ..certificate.second_order import CONES
from ..checks import WORDS, from_text
from ..curvature import Search
from ..errors import InputError
from ..experiments.own import OwnFile, OwnSolver, own_problem, own_solver
from ..experiments.task import method
from ..files import as_path
from ..run.settings import Outer as OuterSettings, Settings, help_of


def path(text: str) -> Path:
    """A path as it was given: one that is empty is a mistake and not the working folder."""
    try:
        return as_path(text, "a path")
    except InputError as error:
        raise typer.BadParameter(f"{error.found.partition(', ')[2]}: {error.advice}") from None


DEFAULTS = Settings()
WHICH_SOLVER = "The sub-solver; `mescal solvers` lists them."
PROBLEM_FILE, SOLVER_FILE = ("--problem-file", "FILE.py:FUNCTION"), ("--solver-file", "FILE.py:CLASS")


def told(name: str) -> str:
    """What a setting is, as a help text of the terminal."""
    text = help_of(name).replace("`", "").replace('"', "")
    return f"{text[0].upper()}{text[1:]}."


def complete_problem(incomplete: str) -> Iterable[tuple[str, str]]:
    """Names of problems, with what they are."""
    return [(n, problems.about(n).description) for n in problems.names() if n.startswith(incomplete)]


def complete_solver(incomplete: str) -> Iterable[str]:
    """Names of solvers and baselines."""
    return [name for name in (*solvers.names(), *baselines.names()) if name.startswith(incomplete)]


def complete_cone(incomplete: str) -> Iterable[str]:
    """Names of cones."""
    return [name for name in CONES if name.startswith(incomplete)]


def a_problem(help: str, metavar: str = "PROBLEM") -> Any:
    """An argument that names a problem."""
    return typer.Argument(metavar=metavar, help=help, autocompletion=complete_problem, show_default=False)


def a_solver(help: str, default: str | bool = True, flags: tuple[str, ...] = ("--solver", "-s")) -> Any:
    """An option that names a solver or a baseline."""
    return typer.Option(*flags, metavar="NAME", help=help, autocompletion=complete_solver, show_default=default)


def a_file(flag: str, metavar: str, help: str) -> Any:
    """An option that names what is in a user's own Python file."""
    return typer.Option(flag, metavar=metavar, help=help, show_default=False)


def a_path(*flags: str, metavar: str, help: str, default: str | bool = False) -> Any:
    """An option that is a path."""
    return typer.Option(*flags, parser=path, metavar=metavar, help=help, show_default=default)


def a_cone(default: str) -> Any:
    """An option that names a cone."""
    return typer.Option("--cone", metavar="NAME", help=told("cone"), show_default=default, autocompletion=complete_cone)


def tolerances(help: str, default: str) -> Any:
    """An option with several tolerances."""
    return typer.Option("--tol", "-t", help=f"{help} Repeat it for more.", show_default=default)


Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines, and nothing else, on standard output.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
Force = Annotated[bool, typer.Option("--force", help="Run again and replace what the folder holds.")]
Tol = Annotated[
    float,
    typer.Option(
        "--tol", "-t", help="Bound on stationarity and feasibility, and on negative curvature unless it has its own."
    ),
]
TolCurvature = Annotated[
    float | None,
    typer.Option("--tol-curvature", help="Bound on negative curvature.", show_default="as --tol"),
]
TolFeasibility = Annotated[
    float | None,
    typer.Option(
        "--tol-feasibility",
        help="Bound on the violation of the constraints alone; 0: inequalities are met exactly.",
        show_default="as --tol, on |c + s|",
    ),
]
TolRelative = Annotated[
    float | None,
    typer.Option(
        "--tol-relative",
        help="Bound on stationarity times max(1, |x|), which a flat region cannot fool.",
        show_default="none",
    ),
]
Seed = Annotated[int, typer.Option("--seed", help=told("seed"))]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Set a parameter of the problem, such as tau=0.1. Repeat it for more.",
        show_default=False,
    ),
]
Option = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        metavar="NAME=VALUE",
        help="Set an option of the solver, such as batch=128. Repeat it for more.",
        show_default=False,
    ),
]
MaxWork = Annotated[
    float | None,
    typer.Option("--max-work", help=told("max_work"), show_default="no limit"),
]
MaxSeconds = Annotated[
    float | None,
    typer.Option("--max-seconds", help=told("max_seconds"), show_default="no limit"),
]
MaxOuter = Annotated[int, typer.Option("--max-outer", help=told("max_outer"))]
Starts = Annotated[int, typer.Option("--starts", metavar="N", help=told("starts").partition(". ")[0] + ".")]
Jobs = Annotated[
    int | None,
    typer.Option("--jobs", "-j", min=1, metavar="N", help="Processes.", show_default="one per core"),
]
Trust = Annotated[
    bool,
    typer.Option("--trust", help="Run the Python files that the run names for its problem and its solver: look first."),
]
ProblemFile = Annotated[str | None, a_file(*PROBLEM_FILE, "The run's own problem, from a file that you name.")]
SolverFile = Annotated[str | None, a_file(*SOLVER_FILE, "The run's own solver, from a file that you name.")]
Exact = Annotated[
    bool, typer.Option("--exact-history", help="Let the judge measure every outer iteration, for figures.")
]
Outer = Annotated[
    list[str] | None,
    typer.Option(
        "--outer",
        metavar="NAME=VALUE",
        help=f"Set one of the outer loop: {', '.join(f.name for f in fields(OuterSettings))}. Repeat it for more.",
        show_default=False,
    ),
]
Runs = Annotated[
    list[Path],
    typer.Argument(
        parser=path, metavar="RUN", help="Run folders, or folders that hold run folders.", show_default=False
    ),
]


def tolerance(tol: float, curvature: float | None, feasibility: float | None, relative: float | None) -> Tolerance:
    """The tolerance that the options mean."""
    return Tolerance(tol, tol if curvature is None else curvature, feasibility=feasibility, relative=relative)


def named_files(problem_file: str | None, solver_file: str | None) -> list[OwnFile]:
    """The files of a run that the user has named."""
    finders = ((own_problem, problem_file), (own_solver, solver_file))
    return [find(text) for find, text in finders if text is not None]


def outer(given: list[str] | None) -> OuterSettings:
    """The settings of the outer loop that the options mean."""
    return OuterSettings.parse(assignments(given, "--outer"))


def assignments(given: list[str] | None, flag: str) -> dict[str, str]:
    """`["tau=0.1"]` as a dict of texts."""
    found: dict[str, str] = {}
    for text in given or []:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise InputError(f"{flag} {text}", "a name and a value, name=value", f"write for example {flag} tau=0.1")
        if name.strip() in found:
            raise InputError(f"{flag} sets {name.strip()} twice", "each name once", "leave one of them out")
        found[name.strip()] = value.strip()
    return found


def in_short(setting: Any) -> Any:
    """A setting as a command line has it: a search by its name, a sequence by the one number that stands for all of it."""
    if isinstance(setting, Search):
        return setting.name
    return setting[0] if isinstance(setting, tuple) and len(setting) == 1 else setting


def solver_options(name: str | OwnSolver, given: list[str] | None) -> dict[str, Any]:
    """Options of a solver, in the types of their defaults."""
    texts = assignments(given, "--option")
    if not texts:
        return {}
    defaults = method(name, {})
    found: dict[str, Any] = {}
    for option, text in texts.items():
        kind = type(in_short(getattr(defaults, option, None)))
        try:
            if kind not in WORDS:
                raise ValueError
            found[option] = from_text(kind, text)
        except ValueError:
            simple = [k for k, v in vars(defaults).items() if isinstance(in_short(v), tuple(WORDS))]
            raise InputError(
                f"--option {option}={text} of the solver {name if isinstance(name, str) else name.place}",
                f"one of {', '.join(simple)}, as a number, a word, or true or false",
                f"`mescal solvers {name}` shows them with their defaults"
                if isinstance(name, str)
                else f"{name.file} has them with their defaults",
            ) from None
    return found
