"""The conformance suite of solvers: solvers that break one property each are found by the check of that property."""

import weakref
from typing import Any, ClassVar

import equinox as eqx
import numpy as np
import pytest

import mescal
from mescal import testing
from mescal.curvature import Lanczos, Search
from mescal.errors import InputError, InputTypeError
from mescal.solvers import Spider, SubSolver
from mescal.solvers.base import VERIFIED
from mescal.solvers.epoch import EpochSolver, Inner

GOOD = Spider(batch=64, period=16)
TIMES = {"never": 0, "once": 1, "twice": 2}


class Priced(EpochSolver):
    """The recursion of SPIDER; `priced`: how often what it draws is paid; `looks`: whether it asks for a value and does not pay."""

    name: ClassVar[str] = "priced"

    priced: str = eqx.field(static=True, default="once")
    looks: bool = eqx.field(static=True, default=False)
    batch: int = eqx.field(static=True, default=64)
    period: int = eqx.field(static=True, default=16)
    search: Search = Lanczos()

    def recurse(self, oracle, reset, memory, target, key, budget):
        inner = GOOD.recurse(oracle, reset, memory, target, key, budget)
        unpaid = 0 * oracle.value(inner.z, key, self.batch)[0] if self.looks else 0  # decides nothing
        return Inner(inner.z + unpaid, inner.smoothness, inner.steps, inner.work.times(TIMES[self.priced]))


class Wrapped(SubSolver):
    """SPIDER, whose programs it shares, with something done to them on the host. Abstract."""

    def sized(self, population):
        return self

    def plan(self, goal, dtype):
        return GOOD.plan(goal, dtype)

    def init(self, oracle, z, plan, memory, key):
        return GOOD.init(oracle, z, plan, memory, key)

    def step(self, oracle, state, plan, goal=None):
        return GOOD.step(oracle, state, plan, goal)  # pyright: ignore[reportArgumentType]

    def outcome(self, oracle, start, state, plan, goal):
        return GOOD.outcome(oracle, start, state, plan, goal)


def moved(state: Any, by: Any) -> Any:
    """A state whose next point is elsewhere."""
    return state._replace(progress=state.progress._replace(z=(state.progress.z + by).astype(state.progress.z.dtype)))


class Idle(Wrapped):
    """Says that it is done where it stands."""

    name: ClassVar[str] = "idle"

    def step(self, oracle, state, plan, goal=None):
        after = super().step(oracle, state, plan, goal)
        return after._replace(
            progress=after.progress._replace(z=state.progress.z, status=np.asarray(VERIFIED, np.int32)),
        )


class Moody(Wrapped):
    """Draws from a generator that no seed begins."""

    name: ClassVar[str] = "moody"
    rng: ClassVar[Any] = np.random.default_rng(0)

    def step(self, oracle, state, plan, goal=None):
        return moved(super().step(oracle, state, plan, goal), 1e-3 * self.rng.random())


class Compiling(Wrapped):
    """What the goal says becomes a setting, and so a new program."""

    name: ClassVar[str] = "compiling"

    def step(self, oracle, state, plan, goal=None):
        assert goal is not None
        own = Priced(batch=64 + int(1e6 * goal.gradient) % 97)
        return own.step(oracle, state, plan, goal)


class Widening(Wrapped):
    """Counts steps in another type from the second on."""

    name: ClassVar[str] = "widening"

    def step(self, oracle, state, plan, goal=None):
        after = super().step(oracle, state, plan, goal)
        return after._replace(progress=after.progress._replace(steps=np.asarray(after.progress.steps, np.int64)))


class Forgetful(Wrapped):
    """Keeps in a drawer of its own what belongs into its state."""

    name: ClassVar[str] = "forgetful"
    chunk: ClassVar[int] = 4
    drawer: ClassVar[Any] = weakref.WeakKeyDictionary()

    def step(self, oracle, state, plan, goal=None):
        self.drawer[oracle] = self.drawer.get(oracle, 0) + 1
        return moved(super().step(oracle, state, plan, goal), 1e-3 * self.drawer[oracle])


class Startled(Wrapped):
    """Begins elsewhere."""

    name: ClassVar[str] = "startled"

    def init(self, oracle, z, plan, memory, key):
        return super().init(oracle, 0 * z, plan, memory, key)


BROKEN = {
    "nothing is paid": (Priced(priced="never"), "prices_on_streams", "all that ran is priced"),
    "a value is not paid": (Priced(looks=True), "prices", "all that ran is priced: value_samples"),
    "all is paid twice": (Priced(priced="twice"), "prices_on_streams", "nothing is priced that did not run"),
    "it never moves": (Idle(), "certifies", "an easy problem is certified"),
    "it stays at a saddle": (Idle(), "leaves_saddles", "a saddle is left"),
    "a seed is not enough": (Moody(), "repeats", "the same seed gives the same bits"),
    "a goal is compiled": (Compiling(), "repeats", "another seed, tolerance and bound compile nothing"),
    "types change": (Widening(), "prices", "a state keeps the shapes and types of its leaves"),
    "a state is not all": (Forgetful(), "resumes", "ends as if it had never stopped"),
    "a start is lost": (Startled(), "ends", "a start where nothing is a number ends a run there"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_solver_is_found(what):
    solver, check, sentence = BROKEN[what]
    with pytest.raises(AssertionError) as caught:
        testing.SOLVER_CHECKS[check](solver, 0)
    assert str(caught.value).startswith(f"{solver.name}: ") and sentence in str(caught.value)


@pytest.mark.slow
def test_the_solver_that_they_are_made_of_passes():
    testing.check_solver(GOOD)
    testing.check_solver(Priced())


def test_what_is_no_practical_solver_is_refused():
    with pytest.raises(InputTypeError, match="a theory mode"):
        testing.check_solver("spider-theory")
    with pytest.raises(InputError, match="did you mean 'spider'"):
        testing.check_solver("spidr")
    assert mescal.testing.check_solver is testing.check_solver
