"""What a sub-solver is: settings, a state, and `init / step`; the loop around it is written once, in `drive`.

A sub-solver minimises the augmented Lagrangian of one outer iteration, given as an oracle, to the tolerances of a
`Goal`. It never sees a constraint.
"""

import abc
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..checks import check_options
from ..compiling import leaf
from ..oracle import Tally, Work
from ..theory.constants import SubproblemConstants
from ..theory.merit import MeritConstants

# why an inner solve stands where it stands
RUNNING, VERIFIED, EXHAUSTED, BROKEN, STATIONARY, RUNAWAY, FARAWAY, IRREGULAR = range(8)


class Memory(NamedTuple):
    """What a solver learnt of the landscape and keeps between outer iterations.

    Its smoothness, a floor under it, and the trust radius as a share of its natural size.
    """

    smoothness: Any
    floor: Any
    trust: Any

    @classmethod
    def fresh(cls, smoothness: Any, dtype: Any) -> "Memory":
        """At the start of a run."""
        return cls.of(smoothness, 0, 1, dtype)

    @classmethod
    def of(cls, smoothness: Any, floor: Any, trust: Any, dtype: Any) -> "Memory":
        """From numbers."""
        return cls(leaf(smoothness, dtype), leaf(floor, dtype), leaf(trust, dtype))


class Progress(NamedTuple):
    """The part of every state that the driver, the outer loop and people look at; arrays of numpy on the host."""

    z: Any
    key: Any
    steps: Any
    status: Any
    work: Any  # a `Work`; a `Tally` on the host
    searches: Any  # the part of the work that curvature searches took
    stationarity: Any  # |P_T(-g)| at the last reset
    curvature: Any  # the last curvature found by a search; NaN before the first
    escapes: Any  # negative-curvature steps taken


class Goal(NamedTuple):
    """What the outer loop asks of one inner solve, on the host: tolerances and cap, in the solver's units.

    `population` is the number of thetas in a full pass (None on a stream). A stationary point whose constraint, in the
    problem's units, exceeds `feasibility` is no candidate for a certificate, and is handed back as STATIONARY without a
    curvature search; one that exceeds `runaway`, in the solver's units, ends the solve as RUNAWAY. `constants` are those of
    the subproblem, or of a merit function, where they are known: a theory mode needs them, practical modes estimate what they need.
    """

    gradient: float
    curvature: float
    steps: int
    population: int | None
    large_batch: int
    curvature_batch: int
    feasibility: float = float("inf")
    runaway: float = float("inf")
    constants: SubproblemConstants | MeritConstants | None = None
    failure: float = 0.5  # what a theory mode without copies may fail with
    dual_batch: int = 2
    judged: bool = (
        False  # whether at a stationary point whose constraint is below `ready` the judge looks for negative curvature
    )
    ready: float = 0.0  # a violation that a candidate for a certificate may have, in the problem's units
    far: float = float("inf")  # |x| beyond it ends a solve as FARAWAY: the problem may be unbounded
    weak: float = 0.0  # a multiplier of a bound that the judge takes for zero
    dimension: int = 1  # variables, slacks included: what the searches of theory modes are planned for
    penalty: float = 1.0  # al_k, by which the lengths of a paper mode fall


class Outcome(NamedTuple):
    """What an inner solve hands to the outer loop: the point, what L and c are there, and the sizes it worked with.

    Values are exact on finite populations. On a stream they are estimates, and `value - first_value` is one from common
    samples; the values themselves then count from an arbitrary zero.
    """

    z: jax.Array
    value: jax.Array  # of the augmented Lagrangian, at its own multipliers and penalty
    first_value: jax.Array  # the same at the start
    objective: float  # NaN where it is not known
    constraint: jax.Array
    multipliers: jax.Array  # lam + al c, as sharp as the samples allow
    stationarity: jax.Array
    regularity: jax.Array  # |P_T(-J'c)| / |c|; NaN where it is not known
    step: float  # what multiplies a gradient, or the length of a move
    batch: int  # thetas of a recursive step
    large_batch: int  # thetas of a reset
    dual: Any = (
        None  # the mean of C on a dual sample of its own, where the multipliers move by another than `constraint`
    )
    watched: Tally = Tally()  # what looking at the solve from outside cost, which is no work of its


class Solver(eqx.Module):
    """Settings of what `minimize(solver=...)` takes; `sized` makes them a sub-solver for a problem."""

    name: ClassVar[str]
    mode: ClassVar[str] = (
        "practical"  # or "theory", with parameters from formulas, or "paper", with parameters set by hand
    )
    guarantee: ClassVar[float | None] = None

    def __check_init__(self):
        check_options(self, zero=("large",))

    @abc.abstractmethod
    def sized(self, population: int | None) -> "SubSolver":
        """The sub-solver for a population of this size (None: a stream), with what was left open settled."""

    def reason(self, population: int | None) -> str:
        """Why `sized` chose another solver for such a population; empty where it chose none."""
        return ""

    def share(self, population: int | None) -> float:
        """The share of its rows on which such a population should be solved first, for a start; 1: none."""
        return 1.0


class SubSolver(Solver):
    """Settings of a sub-solver. Final classes only: one algorithm per file, no overriding.

    `plan` turns a goal into arrays, on the host, once per outer iteration. States have a `progress` and a `memory`. Practical
    solvers run on the host, around programs of their own, and see a `Subproblem`; others (`host` is False) are compiled whole, and
    see a `Lagrangian`. `guarantee` is the success probability of a theorem that asks for the constants of the subproblem; None for
    practical modes, which ask for nothing and promise nothing before the judge has looked.
    """

    precise: ClassVar[bool] = False  # whether it computes in float64, whatever the parameters are
    host: ClassVar[bool] = True
    single_loop: ClassVar[bool] = False  # whether it needs no outer loop: it moves multipliers by itself
    chunk: ClassVar[int] = 32  # steps between two looks at the clock and the budgets, at most

    if not TYPE_CHECKING:

        def __getattribute__(self, name: str) -> Any:
            """Methods as Python has them: equinox makes a pytree of a method whenever it is named, which takes as long as a step on
            few rows.
            """
            return object.__getattribute__(self, name)

    def sized(self, population: int | None) -> "SubSolver":
        """Itself."""
        return self

    def pace(self, goal: Goal) -> int:
        """Steps between two looks at the clock and the budgets; never a question of time, or runs could not be repeated."""
        return self.chunk

    @abc.abstractmethod
    def plan(self, goal: Goal, dtype: Any) -> Any:
        """The parameters of one inner solve as array leaves: nothing in them may change what is compiled."""

    @abc.abstractmethod
    def init(self, oracle: Any, z: Any, plan: Any, memory: Memory, key: Any) -> Any:
        """The state at the start of an inner solve."""

    @abc.abstractmethod
    def step(self, oracle: Any, state: Any, plan: Any, goal: Any = None) -> Any:
        """The next state; `state.progress.status` says when it is over."""

    @abc.abstractmethod
    def outcome(self, oracle: Any, start: Any, state: Any, plan: Any, goal: Goal) -> tuple[Outcome, Tally]:
        """How a solve from `start` ended, on the host; with the work of finding that out."""


def fresh_progress(z: Any, key: Any) -> Progress:
    """Progress at the start of an inner solve; in numpy's arrays where z is one."""
    host = isinstance(z, np.ndarray)
    xp = np if host else jnp
    return Progress(
        z=z,
        key=key,
        steps=xp.asarray(0, xp.int32),
        status=xp.asarray(RUNNING, xp.int32),
        work=Tally() if host else Work.zero(),
        searches=Tally() if host else Work.zero(),
        stationarity=xp.asarray(xp.inf, np.float64 if host else z.dtype),
        curvature=xp.asarray(xp.nan, np.float64 if host else z.dtype),
        escapes=xp.asarray(0, xp.int32),
    )


def next_progress(
    before: Progress,
    z: Any,
    steps: int,
    status: int,
    work: Tally,
    looked: Tally,
    stationarity: Any,
    curvature: Any,
    escaped: int,
) -> Progress:
    """Progress after a step on the host, in the types of the one before it: checkpoints ask for them."""
    return Progress(
        z=z,
        key=before.key,
        steps=leaf(steps, np.int32),
        status=leaf(status, np.int32),
        work=work,
        searches=before.searches + looked,
        stationarity=leaf(stationarity, np.float64),
        curvature=leaf(curvature, np.float64),
        escapes=leaf(int(before.escapes) + escaped, np.int32),
    )
