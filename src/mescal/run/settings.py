"""What a run is asked, said once: each setting with its default, its check and its help.

`minimize`, baselines, `resume`, tasks and the command line take their settings from here.
"""

import difflib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypedDict

from ..certificate import Tolerance, as_tolerance
from ..certificate.second_order import CONES
from ..checks import WORDS, Check, from_text, function, limit, number, one_of, truth, whole
from ..errors import InputError, InputTypeError
from ..files import as_path
from ..forms import APART, stored_fields
from ..importing import on_first_use
from ..registry import unknown_name


def setting(default: Any, check: Check, help: str, **more: Any) -> Any:
    """A field that knows what it may be."""
    return field(default=default, metadata={"check": check, "help": help, **more})


class Checked:
    """Checks every setting when it is made, and keeps it in the form that its check returns."""

    def __post_init__(self):
        for each in fields(self):  # pyright: ignore[reportArgumentType]
            object.__setattr__(self, each.name, each.metadata["check"](each.name, getattr(self, each.name)))


@dataclass(frozen=True, kw_only=True)
class Outer(Checked):
    """Settings of the outer loop that hardly anybody needs.

    {settings}
    """

    penalty: float = setting(1.1, number(0), "al_0 of the penalty schedule")
    growth: float = setting(1.1, number(1), "beta of the penalty schedule")
    bounded_dual: bool = setting(
        False, truth, "keep multipliers bounded for any noise by a summable sequence gamma_k (the theory's rule)"
    )
    scale: bool = setting(
        True, truth, "bring objective and constraints to a common scale where one is extreme (undone in all reports)"
    )
    max_inner: int = setting(3000, whole(1), "steps of one inner solve, at most; theory modes count theirs by formulas")
    watchdog: float | None = setting(
        300.0,
        limit,
        "after so many seconds without a step, the log says which function the run hangs in; None: never",
        **APART,  # it changes no number of a run
    )

    @classmethod
    def parse(cls, texts: Mapping[str, str]) -> "Outer":
        """From texts, as a command line has them, by what the settings are declared to be."""
        defaults, found = {each.name: each.default for each in fields(cls)}, {}
        for name, text in texts.items():
            if name not in defaults:
                raise unknown_name("setting of the outer loop", name, defaults)
            try:
                found[name] = from_text(type(defaults[name]), text)
            except ValueError:
                raise InputError(
                    f"{name}={text} of the outer loop",
                    f"{WORDS[type(defaults[name])]}, for example {name}={str(defaults[name]).lower()}",
                    "leave it out for the default",
                ) from None
        return cls(**found)

    def changed(self) -> dict[str, Any]:
        """What differs from the defaults and can change a run."""
        return {f.name: value for f in stored_fields(type(self)) if (value := getattr(self, f.name)) != f.default}


@dataclass(frozen=True)
class Checkpoint:
    """A folder in which a run is stored every so many seconds, and when it is stopped."""

    folder: Any
    seconds: float = 60.0

    def __post_init__(self):
        object.__setattr__(self, "folder", as_path(self.folder, "checkpoint"))
        object.__setattr__(self, "seconds", number(0, at=True)("seconds between checkpoints", self.seconds))


@dataclass(frozen=True)
class Starts:
    """So many starts, the first of which is x0; the others lie around it, about `reach` times max(1, |x0|) away."""

    count: int = 1
    reach: float = 1.0

    def __post_init__(self):
        object.__setattr__(self, "count", whole(1)("starts", self.count))
        object.__setattr__(self, "reach", number(0)("the reach of starts", self.reach))


def _starts(name: str, value: Any) -> Starts:
    return value if isinstance(value, Starts) else Starts(value)


def _progress(name: str, value: Any) -> Any:
    """True for a bar, which is made once the tolerance is known."""
    return {True: True, False: None}[value] if isinstance(value, bool) else function(name, value)


def _checkpoint(name: str, value: Any) -> Checkpoint | None:
    return value if value is None or isinstance(value, Checkpoint) else Checkpoint(value)


def _outer(name: str, value: Any) -> Outer:
    if not isinstance(value, Outer):
        raise InputTypeError(f"{name}={value!r}", "a mescal.Outer", "write for example outer=mescal.Outer(growth=2.0)")
    return value


@dataclass(frozen=True, kw_only=True)
class Settings(Checked):
    """What a run is asked, beside its problem, its start and its solver."""

    tol: Tolerance = setting(0.01, lambda _, value: as_tolerance(value), "a number for all measures, or a `Tolerance`")
    cone: str = setting(
        "critical",
        one_of(*CONES, advice="leave it out for 'critical'"),
        'the curvature that decides: `"critical"`, whose condition alone every local minimiser meets, `"paper"` or `"whole"`',
    )
    seed: int = setting(0, whole(0, 2**32 - 1), "of all randomness: equal seeds give equal runs")
    max_outer: int = setting(100, whole(1), "outer iterations, at most")
    max_work: float = setting(None, limit, "evaluations after which the run ends")
    max_seconds: float = setting(None, limit, "seconds after which the run ends, its last certificate included")
    starts: Starts = setting(
        1,
        _starts,
        "how many starts: the first is x0, the others lie around it, by the seed, and the best certified result is returned, "
        "with the `spread` of all. Budgets and `work` are those of all together. `Starts(8, reach=3.0)` goes three times as far",
    )
    record: str | None = setting(
        None,
        one_of(None, "exact"),
        '`"exact"` adds the judge\'s measures to every row of the history, and a row for the start, whose `outer` is -1 '
        "(counted apart, never fed back)",
    )
    confidence: float = setting(0.95, number(0, 1), "of the certificate, on streams")
    checkpoint: Checkpoint | None = setting(
        None,
        _checkpoint,
        "a folder, or a `Checkpoint(folder, seconds=60)`, in which the run is stored every so often, and when it is stopped: by "
        "Ctrl-C, SIGTERM or a budget. `mescal.resume` carries it on, bit for bit as if nothing had happened, on the same machine",
    )
    callback: Callable[[Any], Any] | None = setting(
        None,
        function,
        "called with every history row, also the last one, and with x if it needs two arguments; a true return value stops the run",
    )
    progress: Callable[[Any], Any] | None = setting(
        None,
        _progress,
        "`True` for a bar in notebooks and on terminals, or what is called with every row of an outer iteration",
    )
    outer: Outer = setting(
        Outer(), _outer, "an `Outer`: penalty schedule, scaling, the cap on inner steps, the watchdog"
    )

    def __post_init__(self):
        super().__post_init__()
        if self.progress is True:
            object.__setattr__(self, "progress", on_first_use("report.bar").Bar(self.tol, self.max_seconds))


class Asked(TypedDict, total=False):
    """The same as keyword arguments, for editors and type checkers."""

    tol: float | Tolerance
    cone: str
    seed: int
    max_outer: int
    max_work: float | None
    max_seconds: float | None
    starts: int | Starts
    record: str | None
    confidence: float
    checkpoint: str | Path | Checkpoint | None
    callback: Callable[[Any], Any] | None
    progress: bool | Callable[[Any], Any] | None
    outer: Outer


def _told(shown: list[Any]) -> str:
    return "\n".join(f"- `{each.name}`: {each.metadata['help']}." for each in shown)


Outer.__doc__ = inspect.cleandoc(Outer.__doc__ or "").replace("{settings}", _told(list(fields(Outer))))


def takes_settings(*names: str) -> Callable[[Any], Any]:
    """A function of `**settings` that shows them: in its signature, and in its docstring in place of `{settings}`."""
    shown = [each for each in fields(Settings) if not names or each.name in names]

    def change(wrapped: Any) -> Any:
        own = inspect.signature(wrapped)
        kept = [p for p in own.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
        added = [inspect.Parameter(s.name, inspect.Parameter.KEYWORD_ONLY, default=s.default) for s in shown]
        wrapped.__signature__ = own.replace(parameters=[*kept, *added])
        wrapped.__doc__ = inspect.cleandoc(wrapped.__doc__ or "").replace("{settings}", _told(shown))
        return wrapped

    return change


def settings(who: str, given: Mapping[str, Any], *names: str) -> Settings:
    """The settings of a call of `who`, which takes those of some names, or all."""
    known = names or tuple(each.name for each in fields(Settings))
    for name in given:
        if name not in known:
            raise InputTypeError(f"{who} got {name}=", f"some of {', '.join(known)}", _advice(who, name, known))
    return Settings(**given)


def _advice(who: str, name: str, known: tuple[str, ...]) -> str:
    """Where an argument belongs that is none of a call's."""
    if name in (each.name for each in fields(Outer)) and "outer" in known:
        return f"write outer=mescal.Outer({name}=...)"
    if name in ("seconds", "checkpoint_seconds"):
        return "write checkpoint=mescal.Checkpoint(folder, seconds=...)"
    if name in ("constants", "success", "option") and "outer" in known:
        return f"theory modes take it: write solver=mescal.solvers.get('spider-theory', {name}=...)"
    if "outer" not in known and name in {each.name for group in (Settings, Outer) for each in fields(group)}:
        return f"leave it out; what {who} has of its own is an argument of mescal.baselines.get({who!r}, ...)"
    near = difflib.get_close_matches(name, known, 1)
    kind = "solvers" if "outer" in known else "baselines"
    return f"did you mean {near[0]}=?" if near else f"options of a method are arguments of mescal.{kind}.get(name, ...)"


def help_of(name: str) -> str:
    """What a setting is, in words."""
    return next(each.metadata["help"] for each in fields(Settings) if each.name == name)


def check_limits(given: dict[str, Any]) -> dict[str, Any]:
    """The settings among `given` that are not None, checked."""
    known = {each.name: each.metadata["check"] for each in fields(Settings)}
    return {name: known[name](name, value) for name, value in given.items() if value is not None}
