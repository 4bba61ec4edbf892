"""Carrying on a run from its checkpoints: everything that was asked of it is in them, but for the problem's functions and data."""

from dataclasses import asdict, fields, replace
from typing import Any

import jax
import numpy as np

from .. import solvers
from ..certificate import Tolerance
from ..errors import InputError, InputTypeError
from ..files import as_path
from ..problem import Problem
from ..solvers import Solver
from ..theory.constants import ProblemConstants
from ..version import __version__
from .checkpoint import Checkpoints, Stored, forget_newer, read_latest, understood
from .fingerprint import describe, fingerprint, pack, refuse_another, unpack
from .loop import Run
from .mescal import prepare
from .result import Result
from .settings import Checkpoint, Outer, Settings, check_limits
from .setup import Start
from .snapshot import restore

HERE_ONLY = (
    "callback",
    "progress",
    "checkpoint",
    "starts",
)  # settings that are given anew, or that have no checkpoints
STORED = tuple(field.name for field in fields(Settings) if field.name not in HERE_ONLY)


def keeping_checkpoints(run: Run, x0_given: bool = True, start: Start | None = None) -> Run:
    """A new run that keeps checkpoints in the folder that was asked for."""
    settings = run.here.settings
    assert settings.checkpoint is not None
    kept = Checkpoints(
        settings.checkpoint.folder, settings.checkpoint.seconds, _about(run, x0_given, start), fresh=True
    )
    return run._replace(here=replace(run.here, checkpoints=kept))


def resume(
    path: Any,
    problem: Problem,
    x0: Any = None,
    *,
    solver: Any = None,
    max_outer: int | None = None,
    max_work: float | None = None,
    max_seconds: float | None = None,
    callback: Any = None,
    progress: Any = None,
) -> Result:
    """Carry on a run from the newest whole checkpoint in a folder.

    See `mescal.resume`.
    """
    if not isinstance(problem, Problem):
        raise InputTypeError(
            f"resume got {type(problem).__name__} for its problem",
            "the mescal.Problem that the run was started with",
            "build it as before, and pass it",
        )
    folder = as_path(path, "path")
    stored = read_latest(folder)
    about = stored.about
    limits = {"max_outer": max_outer, "max_work": max_work, "max_seconds": max_seconds}
    _refuse_another_version(stored)
    with understood(stored.path):
        every = Checkpoint(folder, about["every"])
        here = {"callback": callback, "progress": progress, "checkpoint": every}
        settings = _settings(dict(about["settings"]), limits, here)
        chosen = _solver(stored, solver)
        first = _parameters(stored, problem, np.asarray(about["x0"], np.float64), x0)
        start = None if about["start"] is None else _start(first, about["start"])
        spent = float(about["seconds"]), float(about["compiling"])
        theirs, x0_given = dict(about["problem"]), bool(about["x0_given"])
    told = {name: about[name] for name in about if name not in ("seconds", "compiling")}
    kept = Checkpoints(folder, every.seconds, told, fresh=False)
    try:
        made = prepare if isinstance(chosen, Solver) else chosen.prepare
        run = made(problem, first if x0_given else None, chosen, settings, start)
        with understood(stored.path):
            refuse_another(run.here, run.probe, theirs, stored.path)
            state = restore(run.method, run.here, run.state, stored.snapshot)
        run.here.clock.carry_on(*spent)
        if jax.process_index() == 0:
            forget_newer(stored.path)  # damaged: it must not take the place of a good one
        here = replace(run.here, warnings=(*run.here.warnings, *stored.warnings), checkpoints=kept)
        return Run(run.method, here, state, run.probe).go()
    finally:
        kept.release()


def _about(run: Run, x0_given: bool, start: Start | None) -> dict[str, Any]:
    """What a checkpoint says of its run, beside the state."""
    here, asked = run.here, run.here.settings
    assert asked.checkpoint is not None
    settings: dict[str, Any] = {name: getattr(asked, name) for name in STORED}
    settings |= {"tol": asdict(asked.tol), "outer": asdict(asked.outer)}
    warm = None
    if start is not None:
        rows = {"slack": start.slack, "multipliers": start.multipliers}
        warm = {name: {key: np.asarray(value).tolist() for key, value in group.items()} for name, group in rows.items()}
        warm["penalty"] = float(start.penalty)  # pyright: ignore[reportArgumentType]
    return {
        "mescal": __version__,
        "jax": jax.__version__,
        "problem": fingerprint(here, run.probe),
        "solver": describe(here.asked),
        "settings": settings,
        "every": asked.checkpoint.seconds,
        "x0": here.origin.astype(np.float64).tolist(),
        "x0_given": x0_given,
        "structure": pack(here.program.parameters),
        "start": warm,
    }


def _refuse_another_version(stored: Stored):
    if stored.about.get("mescal") != __version__:
        raise InputError(
            f"{stored.path} was written by mescal {stored.about.get('mescal')}; this is {__version__}",
            "the version that wrote it, whose steps a resumed run repeats",
            "install that version, or start anew from its last point",
        )


def _settings(stored: dict[str, Any], limits: dict[str, Any], here: dict[str, Any]) -> Settings:
    parts: dict[str, Any] = {"tol": Tolerance(**stored["tol"]), "outer": Outer(**stored["outer"])}
    return Settings(**(stored | parts | check_limits(limits) | here))


def _start(x: Any, warm: dict[str, Any]) -> Start:
    return Start(x, _arrays(warm["slack"]), _arrays(warm["multipliers"]), float(warm["penalty"]))


def _solver(stored: Stored, given: Any) -> Any:
    """The solver that the run was started with: from its settings where they are plain, or as given."""
    wanted = stored.about["solver"]
    plain = {name: value for name, value in wanted.items() if name != "name" and not isinstance(value, dict)}
    if isinstance(constants := wanted.get("constants"), dict):
        plain["constants"] = ProblemConstants(**{name: constants[name] for name in constants if name != "name"})
    chosen = solvers.get(wanted["name"], **plain) if given is None else given
    if describe(chosen) != wanted:
        given_as = "none was given" if given is None else f"{describe(given)} was given"
        raise InputError(
            f"{stored.path} is of a run of the solver {wanted}; {given_as}",
            "the solver that the run was started with",
            "pass solver=... as it was passed to minimize",
        )
    return chosen


def _parameters(stored: Stored, problem: Problem, vector: np.ndarray, x0: Any) -> Any:
    """The start in the user's own structure."""
    if x0 is not None:
        program, given = problem.bind(x0, "x0")
        if given.size != vector.size:
            raise InputError(f"x0 has {given.size} numbers", f"{vector.size}, like the run", "pass the x0 of the run")
        return program.parameters.restore(vector)
    structure = stored.about["structure"]
    if structure is None:
        raise InputError(
            "the parameters of this run are of a structure that a checkpoint cannot hold",
            "x0, of which the structure alone is used",
            "pass x0 as it was passed to minimize",
        )
    return unpack(structure, vector)


def _arrays(group: dict[str, Any]) -> dict[str, np.ndarray]:
    return {name: np.asarray(value, np.float64) for name, value in group.items()}
