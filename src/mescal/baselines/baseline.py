"""What a baseline is: settings, a compiled `init / step`, and what it makes of a measurement between two legs.

A run is a sequence of legs, of the same loop as MESCAL. A leg is a number of compiled steps; between two legs the point is
measured on the method's own samples (`measure.measure`), which is all that its stopping test sees. What a method keeps from leg
to leg is its memory: array leaves, which a `View` shows, and from which another view follows.
"""

import abc
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any, ClassVar, Unpack

import equinox as eqx
import jax
import jax.numpy as jnp

from ..checks import check_options
from ..errors import InputError, InputTypeError
from ..oracle import Lagrangian
from ..problem import Problem
from ..registry import by_name, classes, make
from ..run import Result
from ..run.checkpoint import check_folder
from ..run.loop import Run
from ..run.resume import keeping_checkpoints
from ..run.settings import Asked, Settings, settings, takes_settings
from . import legs
from .measure import Measured, Seen
from .view import View

# Of the settings of `mescal.minimize`: what a method without inner solves has a use for.
TAKEN = ("tol", "cone", "seed", "max_work", "max_seconds", "record", "confidence", "checkpoint", "callback", "progress")


class OutOfClass(InputError):
    """A problem outside of the class for which a method is made."""


class Baseline(eqx.Module):
    """Settings of a baseline. Final classes only: one algorithm per file, no overriding."""

    name: ClassVar[str]
    chunk: ClassVar[int] = 256  # steps between two looks at the clock and the budgets
    precise: ClassVar[bool] = False  # as sub-solvers say it: computed in the precision of the parameters ...
    host: ClassVar[bool] = False  # ... compiled whole

    max_outer: eqx.AbstractVar[int]  # legs at most

    def __check_init__(self):
        check_options(self, zero=("max_outer",), above_one=("growth",))
        rounds, steps = getattr(self, "rounds", 0), getattr(self, "steps", 0)
        if bool(rounds) != bool(steps):
            raise InputError(
                f"{type(self).__name__}(rounds={rounds}, steps={steps})",
                "both, or neither",
                "a planned run has so many subproblems of so many steps; leave both out to stop by measurements",
            )

    def declines(self, problem: Problem) -> str | None:
        """Why the method is not made for a problem; None where it is."""
        return None

    def sized(self, population: int | None) -> "Baseline":
        """Itself without its cap, which is a setting of the run: with other caps it shares compiled programs."""
        return replace(self, max_outer=0)

    def reason(self, population: int | None) -> str:
        """Why another one was chosen: none was."""
        return ""

    @abc.abstractmethod
    def begin(self, view: View) -> View:
        """With what is carried from leg to leg (`view.learnt(own=...)`, as array leaves) and the first penalty."""

    @abc.abstractmethod
    def plan(self, view: View) -> Any:
        """The parameters of the next leg as array leaves: nothing in them may change what is compiled."""

    @abc.abstractmethod
    def init(self, oracle: Lagrangian, z: jax.Array, plan: Any, memory: Any, key: jax.Array) -> Any:
        """The state at the start of a leg: it has a `progress` and a `memory`. Compiled."""

    @abc.abstractmethod
    def step(self, oracle: Lagrangian, state: Any, plan: Any) -> Any:
        """The next state; `state.progress.status` says when the leg is over. Compiled."""

    @abc.abstractmethod
    def read(self, view: View, oracle: Lagrangian, state: Any, z: jax.Array, seen: Seen) -> Measured:
        """Where a leg ended, as the method understands a measurement there."""

    @abc.abstractmethod
    def learn(self, view: View, measured: Measured) -> View:
        """What follows for the next leg: `view.learnt(own=..., dual=..., penalty=...)`."""

    def legs(self) -> int:
        """Legs at most; a method whose theorem says how many there are has its own number."""
        return self.max_outer

    def is_over(self, view: View, measured: Measured) -> bool:
        """Whether the method would stop here: where what it measured meets the tolerance."""
        size = float(jnp.linalg.norm(measured.seen.constraint))
        return float(measured.stationarity) <= view.target and size <= view.violation

    def point(self, state: Any) -> jax.Array:
        """What the method hands back after a leg."""
        return state.progress.z

    @takes_settings(*TAKEN)
    def minimize(
        self,
        problem: Problem,
        x0: Any,
        **asked: Unpack[Asked],
    ) -> Result:
        """Minimise a problem of the method's class; its result is as that of `mescal.minimize`.

        {settings}

        `result.converged` is true only where the judge's certificate meets the tolerance, curvature included, although
        the method itself looks at first derivatives alone. A problem outside of its class raises `OutOfClass`.
        """
        if not isinstance(problem, Problem):
            raise InputTypeError(f"{self.name} got {type(problem).__name__}", "a mescal.Problem", "build one first")
        if (reason := self.declines(problem)) is not None:
            raise OutOfClass(reason, f"a problem of the class of {self.name}", "use mescal.minimize, which takes any")
        held = replace(settings(self.name, asked, *TAKEN), max_outer=self.legs())
        if held.checkpoint is not None:
            check_folder(held.checkpoint.folder)
        run = self.prepare(problem, x0, self, held)
        return (run if held.checkpoint is None else keeping_checkpoints(run)).go()

    @staticmethod
    def prepare(problem: Problem, x0: Any, baseline: "Baseline", settings: Settings, warm: None = None) -> Run:
        """A run that is ready to go; `mescal.resume` fills it with what was stored."""
        return legs.prepare(problem, x0, baseline, settings, warm)


@cache
def found() -> Mapping[str, type[Baseline]]:
    """All baselines of this folder by name."""
    return by_name(classes(__package__ or "", Baseline))


def names() -> tuple[str, ...]:
    """The names of all baselines."""
    return tuple(found())


def get(name: Any, **options: Any) -> Baseline:
    """The baseline of that name with the given settings."""
    if not isinstance(name, str):
        raise InputTypeError(f"baseline {name!r}", f"one of {list(names())}", "write for example get('stoch-ialm')")
    return make("baseline", name, found(), options, "look at mescal.baselines.names()")
