"""Looks at points from the host: f, c, derivatives and Hessians over all rows, in float64 or another type, with their price.

One evaluator serves whoever wants exact values, solver or judge; what is compiled for one is compiled for the other. Draws of
streams come in blocks of one size, a block of every stream beside those of the others, so that any number of them shares one
program, and what is left over makes a smaller one.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..compiling import in_precision, prepared
from ..problem import Data, Population, Program, placed_families
from ..problem.program import in_type
from ..problem.stored import Selected
from . import look
from .access import sum_rows
from .look import At
from .memory import chunk_bytes
from .work import Tally, price

BLOCK_ROWS = 8192  # draws of a stream that are looked at together
WORTH_ROUGHNESS = (
    1 << 32
)  # products of a Gram matrix that take longer in float64 than the same in float32 and its program


class Part:
    """Some of the rows of an evaluator: their share in the mean, and what must live for them to be read."""

    def __init__(self, program: Program, data: tuple[Data | None, ...], share: float = 1.0, kept: Any = None):
        self.program, self.data, self.share, self.kept = program, data, share, kept
        self._calls: dict[Any, Callable] = {}

    def call(self, function: Callable) -> Callable:
        """A function of (program, data, ...), compiled, at these rows."""
        if function not in self._calls:
            self._calls[function] = prepared(function, self.program, self.data)
        return self._calls[function]

    def sums(self, body: Callable, families: tuple[int, ...]) -> Callable:
        """The sums of `body` over the rows of some families, a function of what is left of its arguments; compiled."""
        if (body, families) not in self._calls:
            data = tuple(self.data[k] for k in families)
            self._calls[body, families] = prepared(_sums, body, self.program, families, data)
        return self._calls[body, families]


class Evaluator:
    """A program and the rows of its families, ready to be looked at in points x (flat vectors)."""

    def __init__(self, program: Program, data: tuple[Data | None, ...], dtype: Any = np.float64):
        self.dtype = np.dtype(dtype)
        self.program = program
        self.parts = [Part(program, data)]
        self.sizes = [family.sizes or () for family in program.families]
        self.tally = Tally()
        self._prices: dict[tuple, Tally] = {}

    @classmethod
    def of(cls, program: Program, populations: Sequence[Any]) -> "Evaluator":
        """Over other rows than the problem's own, which must be kept: draws of its streams, or a part of its populations."""
        sized = program.over([population.size for population in populations])
        streams = [k for k, family in enumerate(program.families) if family.sizes is None]
        finite = sized.only([k for k in range(len(program.families)) if k not in streams]) if streams else sized
        evaluator = cls(sized, ())
        evaluator.parts = [Part(finite, placed_families(finite, populations, None))] if finite.families else []
        for size in sorted({populations[program.families[k].members[0]].size for k in streams}):
            alike = [k for k in streams if populations[program.families[k].members[0]].size == size]
            # what needs no samples goes with the first draws, if it is with nothing else
            evaluator.parts += _parts_of_draws(sized, alike, populations, fixed=not evaluator.parts)
        evaluator.parts = evaluator.parts or [Part(finite, ())]
        return evaluator

    @property
    def full_pass(self) -> int:
        """Thetas in a full pass: the rows of the largest population."""
        return max((size for sizes in self.sizes for size in sizes), default=1)

    def at(self, x: np.ndarray, rounded: bool = True) -> At:
        """f, c, gradient and Jacobian in one pass, with what each number may be off by where that is wanted; on the host.

        Rows of J that are no longer than what they may be off by are zero: a huge multiplier could turn them into anything.
        """
        self.count("gradient", values=1, gradients=1)
        at = self._mean(_linearise, x, np.asarray(float(rounded)), read=None if rounded else _without_bounds)
        if self.dtype != np.float64:
            at = jax.tree.map(lambda part: np.asarray(part, np.float64), at)
        at = at._replace(objective=float(at.objective), moments=at.moments if len(self.parts) == 1 else None)
        if not rounded:
            return at
        with np.errstate(invalid="ignore"):  # where derivatives are not finite, infinity times zero is no news
            off = at.rounding._replace(
                objective=float(at.rounding.objective + at.rounding.gradient @ np.abs(x)),
                constraint=at.rounding.constraint + at.rounding.jacobian @ np.abs(x),
            )
        known = np.linalg.norm(at.jacobian, axis=1) > np.linalg.norm(off.jacobian, axis=1)
        return at._replace(
            jacobian=np.where(known[:, None], at.jacobian, 0.0),
            rounding=off,
        )

    def values(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """f and c alone."""
        self.count("value", values=1)
        f, c = self._mean(_values, x)
        return float(f), c

    def slope(self, x: np.ndarray, factor: float, weight: np.ndarray) -> np.ndarray:
        """The gradient of factor f + weight . c: one pass, however many constraints there are."""
        self.count("gradient", values=1, gradients=1)
        return self._mean(_slope, x, np.asarray(factor), weight)

    def beside(self, points: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """f, c, and the gradient of f + weight . c, at the rows of a matrix: one pass for all of them."""
        self.count("gradient", times=len(points), values=1, gradients=1)
        return self._mean(_beside, points, weight)

    def hessian(self, x: np.ndarray, weight: np.ndarray, rough: bool = False) -> np.ndarray:
        """grad^2 f + sum_j weight_j grad^2 c_j as a dense matrix; where `rough`, it is off by `roughness` more, and cheaper."""
        self.count("hvp", times=x.size, values=1, gradients=1, hvps=1)
        return self._mean(_rough_hessian if rough else _hessian, x, weight)

    def is_gram(self, x: np.ndarray, weight: np.ndarray) -> bool:
        """Whether a dense Hessian takes a product of rows with rows, and not as many products with it as there are parameters."""
        with in_precision(self.dtype):
            given = [np.asarray(argument, self.dtype) for argument in (x, weight)]
            return all(look.is_gram(part.program, part.data, *given) for part in self.parts)

    def roughness(self, size: int) -> float | None:
        """How many times its rounding bound a rough Hessian is off by; None where that saves less than compiling it takes."""
        rows = sum(sum(sizes) for sizes in self.sizes)
        if jax.default_backend() != "cpu" or self.dtype != np.float64 or rows * size**2 < WORTH_ROUGHNESS:
            return None  # elsewhere, products in float32 may be rounded further, or are no faster
        return max(look.roughness(part.program, part.data, size, self.dtype) for part in self.parts)

    def hessian_rounding(
        self, x: np.ndarray, weight: np.ndarray, rough: bool = False, units: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """What grad^2 f + sum_j weight_j grad^2 c_j may be off by, M u, and what its gradient is off by inside; u: `units` or 1.

        The largest entry of T'M u, u = T 1, bounds the error of T'HT for T >= 0 in norm, as M is symmetric; the second is
        what a gradient at these weights is off by because x, and what functions compute of it, is known to its last place only.
        Where `rough`, both are bounds on these, for half of the price: with s = max |x_i| / u_i, M s u + seeds is no less than
        M|x| + seeds or s M u.
        """
        self.count("hvp", times=1 if rough else 2, values=1, gradients=1, hvps=1)
        units = np.ones_like(x) if units is None else units
        size = float((np.abs(x) / units).max(initial=0.0)) or 1.0
        if rough:
            found = self._mean(_hessian_rounding, x, weight, size * units, np.ones(()), np.zeros(()))
            return found / size, found
        entries = self._mean(_hessian_rounding, x, weight, units, np.zeros(()), np.zeros(()))
        return entries, self._mean(_hessian_rounding, x, weight, np.abs(x), np.ones(()), np.ones(()))

    def hessian_times(self, x: np.ndarray, weight: np.ndarray, directions: np.ndarray) -> np.ndarray:
        """(grad^2 f + sum_j weight_j grad^2 c_j) V for a vector V, or for the columns of V."""
        columns = directions.reshape(x.size, -1)
        self.count("hvp", times=columns.shape[1], values=1, gradients=1, hvps=1)
        return self._mean(_products, x, weight, columns).reshape(directions.shape)

    def sums(self, body: Callable, families: Sequence[int], shared: Any, own: Any, first: bool = False) -> list[Any]:
        """Sums over the rows of some families, of each, in one program: those of its members one by one, and of all together.

        `body(rows, mask, member, program, k, shared, mine)`, a module's own function, says what rows of a member add to both: two
        trees. `own` holds for every family arrays with an entry for each member, of which `mine` are one member's. With `first`,
        a stream's first block stands for all of it.
        """
        wanted = [self.program.families[k].members for k in families]
        found: list[Any] = [None] * len(wanted)
        with in_precision(self.dtype):
            shared, own = jax.tree.map(lambda leaf: np.asarray(leaf, self.dtype), (shared, own))
            for part in self.parts:
                here = [family.members for family in part.program.families]
                places = [i for i, members in enumerate(wanted) if members in here and not (first and found[i])]
                if not places:
                    continue
                call = part.sums(body, tuple(here.index(wanted[i]) for i in places))
                for i, sums in zip(places, call(shared, [own[i] for i in places]), strict=True):
                    sums = jax.tree.map(np.asarray, sums)
                    found[i] = sums if found[i] is None else jax.tree.map(np.add, found[i], sums)
        return found

    def count(self, kind: str, times: int = 1, values: int = 0, gradients: int = 0, hvps: int = 0):
        """Add work on a full pass, `times` over: evaluations of C per sample and row."""
        call = kind, values, gradients, hvps
        if call not in self._prices:
            self._prices[call] = Tally(price(self.program, kind, None, values, gradients, hvps))
        self.tally += self._prices[call] if times == 1 else self._prices[call].times(times)

    def _mean(self, function: Callable, *arguments: np.ndarray, read: Callable | None = None) -> Any:
        """The sum over the parts, each with its share, of what is to be `read` of them."""
        with in_precision(self.dtype):
            given = [np.asarray(argument, self.dtype) for argument in arguments]
            total = None
            for part in self.parts:
                found = part.call(function)(*given)
                found = jax.tree.map(np.asarray, found if read is None else read(found))
                found = found if part.share == 1 else jax.tree.map(lambda leaf, share=part.share: leaf * share, found)
                total = found if total is None else jax.tree.map(np.add, total, found)
        return total


def evaluator_of(problem: Any, program: Program) -> Evaluator:
    """The evaluator of a problem whose sources are all finite, over rows that it keeps for solver and judge alike."""
    return Evaluator(program, problem.device_data(program))


def _parts_of_draws(sized: Program, streams: list[int], populations: Sequence[Any], fixed: bool) -> list[Part]:
    """Draws of streams, as many of each: the i-th block of all of them is a part. Constants and deterministic terms, if they are
    here, are in the first, and zero in the others: all blocks of one size share a program.
    """
    members = [sized.families[k].members[0] for k in streams]
    parts: list[Part] = []
    for blocks in zip(*(_blocks(populations[member]) for member in members), strict=True):
        size = blocks[0].size
        share = size / populations[members[0]].size
        program = sized.only(streams, fixed).over(dict.fromkeys(members, size))
        if fixed:
            program = program.with_fixed_times(0.0 if parts else 1 / share)
        parts.append(Part(program, tuple(block.placed(None) for block in blocks), share, blocks))
    return parts


def _blocks(drawn: Population | Selected) -> list[Any]:
    """Draws of a stream, which all count alike, some at a time."""
    if drawn.size <= BLOCK_ROWS:
        return [drawn]
    cuts = [slice(first, first + BLOCK_ROWS) for first in range(0, drawn.size, BLOCK_ROWS)]
    if isinstance(drawn, Selected):
        return [Selected(drawn.population, drawn.rows[cut]) for cut in cuts]
    return [Population(jax.tree.map(lambda leaf, cut=cut: np.asarray(leaf)[cut], drawn.arrays)) for cut in cuts]


def _linearise(program: Program, data: Any, x: jax.Array, rounded: jax.Array) -> At:
    return look.linearise(program, data, x, rounded)


def _without_bounds(at: At) -> At:
    return at._replace(rounding=None)


def _values(program: Program, data: Any, x: jax.Array) -> tuple[jax.Array, jax.Array]:
    return look.values(program, data, x)


def _slope(program: Program, data: Any, x: jax.Array, factor: jax.Array, weight: jax.Array) -> jax.Array:
    return look.pulled(program, data, x, factor, weight)[1]


def _beside(program: Program, data: Any, points: jax.Array, weight: jax.Array) -> Any:
    return look.beside(program, data, points, weight)


def _hessian(program: Program, data: Any, x: jax.Array, weight: jax.Array) -> jax.Array:
    return look.hessian(program, data, x, 1.0, weight)


def _rough_hessian(program: Program, data: Any, x: jax.Array, weight: jax.Array) -> jax.Array:
    return look.hessian(program, data, x, 1.0, weight, rough=True)


def _hessian_rounding(program: Program, data: Any, x: jax.Array, weight: jax.Array, *asked: jax.Array) -> jax.Array:
    return look.hessian_rounding(program, data, x, 1.0, weight, *asked)


def _products(program: Program, data: Any, x: jax.Array, weight: jax.Array, directions: jax.Array) -> jax.Array:
    return look.products(program, data, x, 1.0, weight, directions)


def _sums(
    body: Callable, program: Program, families: tuple[int, ...], data: tuple[Data, ...], shared: Any, own: Any
) -> list[Any]:
    kind = jax.tree.leaves(shared)[0].dtype

    def of_family(k: int, rows: Data, mine: Any) -> Any:
        family = program.families[k]
        assert family.sizes is not None
        members = len(family.members)

        def chunk(rows, mask, member, program, shared, mine):
            mine = jax.tree.map(lambda leaf: leaf[member], mine)
            each, total = body(in_type(rows, kind), mask, member, program, k, shared, mine)
            placed = jax.tree.map(lambda part: jnp.zeros((members, *part.shape), kind).at[member].set(part), each)
            return placed, total

        return sum_rows(chunk, rows, family.sizes, chunk_bytes(), program, shared, mine)

    return [of_family(*given) for given in zip(families, data, own, strict=True)]
