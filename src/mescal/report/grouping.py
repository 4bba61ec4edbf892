"""Which runs belong together: a group is one problem at one tolerance, a series one solver in it, over its seeds."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from ..certificate import Tolerance
from ..errors import InputError, InputTypeError
from ..experiments.store import StoredRun
from .colours import in_order, looks
from .numbers import short
from .run_view import RunView

APART = (
    "seed",
    "solver",
    "solver_source",
    "options",
    "outer",
    "code",
)  # entries of a config that make no series of their own


@dataclass(frozen=True, eq=False)
class Series:
    """Runs that differ in their seeds alone. `look` is the number of their colour, marker and dash."""

    label: str
    look: int
    views: tuple[RunView, ...]

    @property
    def ended(self) -> tuple[RunView, ...]:
        """The runs that have a result."""
        return tuple(view for view in self.views if view.ended)


@dataclass(frozen=True, eq=False)
class Group:
    """A problem at a tolerance, with the series that solved it."""

    problem: str
    label: str
    tolerance: Tolerance
    series: tuple[Series, ...]

    @property
    def views(self) -> tuple[RunView, ...]:
        """All runs."""
        return tuple(view for series in self.series for view in series.views)

    @property
    def ended(self) -> tuple[RunView, ...]:
        """The runs that have a result."""
        return tuple(view for view in self.views if view.ended)

    @property
    def kind(self) -> str:
        """The first part of the problem's name: one figure per kind."""
        return self.problem.partition("/")[0]

    @property
    def tolerance_text(self) -> str:
        """The tolerance in words."""
        return str(self.tolerance)


def arrange(runs: Sequence[StoredRun]) -> list[Group]:
    """The groups, in the order in which their runs were given."""
    if not runs:
        raise InputError("there are no runs to report on", "at least one stored run", "run `mescal solve` first")
    for run in runs:
        if not isinstance(run, StoredRun):
            raise InputTypeError(
                f"a {type(run).__name__} among the runs",
                "stored runs, as `experiments.sweep` and `experiments.load_run` return them",
                "`experiments.load_run(FOLDER)` reads a run; `mescal report FOLDER` does all of it",
            )
    views = [RunView(run) for run in runs]
    grouped: dict[tuple[str, str, Tolerance], list[RunView]] = {}
    for view in views:
        grouped.setdefault((view.problem, _text(view.parameters), view.tolerance), []).append(view)
    named = {key: _series_labels(members) for key, members in grouped.items()}
    look = looks(in_order(dict.fromkeys(label for labels in named.values() for label in labels)))
    return [
        Group(
            problem=members[0].problem,
            label=_problem_label(members[0], views),
            tolerance=members[0].tolerance,
            series=tuple(
                Series(label, look[label], tuple(sorted(named[key][label], key=lambda view: view.seed)))
                for label in in_order(named[key])
            ),
        )
        for key, members in grouped.items()
    ]


def _problem_label(view: RunView, views: list[RunView]) -> str:
    """The problem, with the parameters in which other runs of the same problem differ."""
    others = [other.parameters for other in views if other.problem == view.problem]
    differ = {k: v for k, v in view.parameters.items() if any(other.get(k) != v for other in others)}
    return _with(view.problem, differ)


def _series_labels(views: list[RunView]) -> dict[str, list[RunView]]:
    """Series of a group by their label: the solver, with the settings in which its runs differ beside the seed."""
    series: dict[str, list[RunView]] = {}
    for view in views:
        same = [other.config for other in views if other.solver == view.solver]
        differ = {
            name: value
            for name, value in view.config.items()
            if name not in APART and any(config.get(name) != value for config in same)
        }
        series.setdefault(_with(view.solver, differ), []).append(view)
    return series


def _with(name: str, settings: dict) -> str:
    inside = ", ".join(f"{key}={short(value)}" for key, value in settings.items())
    return f"{name} ({inside})" if inside else name


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True, default=str)
