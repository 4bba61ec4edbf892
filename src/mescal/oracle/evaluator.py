"""Looks at points from the host: f, c, derivatives and Hessians over all rows, in float64 or another type, with their price.

One evaluator serves whoever wants exact values, solver or judge; what is compiled for one is compiled for the other. Draws of a
stream come in blocks of one size, so that any number of them shares one program, and what is left over makes a smaller one.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import jax
import numpy as np

from ..compiling import compiled, in_precision, prepared
from ..problem import Data, Population, Program, placed_families
from ..problem.program import in_type
from ..problem.stored import Selected
from . import look
from .access import sum_rows
from .look import At
from .memory import chunk_bytes
from .work import Tally, price

BLOCK_ROWS = 8192  # draws of a stream that are looked at together
# Bytes of rows up to which a solver that does not ask for rounding bounds looks by the program that has them, which the judge needs
# anyway: they take as long as the rest of a pass, compiling a second program as long as some hundred passes over so many bytes.
SHARED_BYTES = 1 << 26


class Part:
    """Some of the rows of an evaluator: their share in the mean, and what must live for them to be read."""

    def __init__(self, program: Program, data: tuple[Data | None, ...], share: float = 1.0, kept: Any = None):
        self.program, self.data, self.share, self.kept = program, data, share, kept
        self._calls: dict[Callable, Callable] = {}

    def call(self, function: Callable) -> Callable:
        """A function of (program, data, ...), compiled, at these rows."""
        if function not in self._calls:
            self._calls[function] = prepared(function, self.program, self.data)
        return self._calls[function]


class Evaluator:
    """A program and the rows of its families, ready to be looked at in points x (flat vectors)."""

    def __init__(self, program: Program, data: tuple[Data | None, ...], dtype: Any = np.float64):
        self.dtype = np.dtype(dtype)
        self.program = program
        self.parts = [Part(program, data)]
        self.sizes = [family.sizes or () for family in program.families]
        self.tally = Tally()

    @classmethod
    def of(cls, program: Program, populations: Sequence[Any]) -> "Evaluator":
        """Over other rows than the problem's own, which must be kept: draws of its streams, or a part of its populations."""
        sized = program.over([population.size for population in populations])
        streams = [k for k, family in enumerate(program.families) if family.sizes is None]
        finite = sized.only([k for k in range(len(program.families)) if k not in streams]) if streams else sized
        evaluator = cls(sized, ())
        evaluator.parts = [Part(finite, placed_families(finite, populations, None))]
        for k in streams:
            (member,) = program.families[k].members
            size = populations[member].size
            for block in _blocks(populations[member]):
                part = sized.only([k], fixed=False).over({member: block.size})
                evaluator.parts.append(Part(part, (block.placed(None),), block.size / size, block))
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
        function = _linearise if rounded or self._bytes <= SHARED_BYTES else _linearise_alone
        at = jax.tree.map(lambda part: np.asarray(part, np.float64), self._mean(function, x))
        at = at._replace(objective=float(at.objective), moments=at.moments if len(self.parts) == 1 else None)
        if at.rounding is None:
            return at
        off = at.rounding._replace(
            objective=float(at.rounding.objective + at.rounding.gradient @ np.abs(x)),
            constraint=at.rounding.constraint + at.rounding.jacobian @ np.abs(x),
        )
        known = np.linalg.norm(at.jacobian, axis=1) > np.linalg.norm(off.jacobian, axis=1)
        return at._replace(
            jacobian=np.where(known[:, None], at.jacobian, 0.0),
            rounding=off,
        )

    @cached_property
    def _bytes(self) -> int:
        """Of all rows."""
        rows = jax.tree.leaves([part.data for part in self.parts])
        return sum(leaf.size * leaf.dtype.itemsize for leaf in rows)

    def values(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """f and c alone."""
        self.count("value", values=1)
        f, c = self._mean(_values, x)
        return float(f), c

    def slope(self, x: np.ndarray, factor: float, weight: np.ndarray) -> np.ndarray:
        """The gradient of factor f + weight . c: one pass, however many constraints there are."""
        self.count("gradient", values=1, gradients=1)
        return self._mean(_slope, x, np.asarray(factor), weight)

    def hessian(self, x: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """grad^2 f + sum_j weight_j grad^2 c_j as a dense matrix."""
        self.count("hvp", times=x.size, values=1, gradients=1, hvps=1)
        return self._mean(_hessian, x, weight)

    def hessian_rounding(self, x: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What grad^2 f + sum_j weight_j grad^2 c_j may be off by: the sum of each row, and that of each row times |x|.

        The first bounds the error of the matrix in norm by its largest entry, as bounds of entries are symmetric; the second is
        what a gradient at these weights is off by because x is known to its last place only.
        """
        self.count("hvp", times=2, values=1, gradients=1, hvps=1)
        columns = np.stack([np.ones_like(x), np.abs(x)], axis=1)
        found = self._mean(_hessian_rounding, x, weight, columns)
        return found[:, 0], found[:, 1]

    def hessian_times(self, x: np.ndarray, weight: np.ndarray, directions: np.ndarray) -> np.ndarray:
        """(grad^2 f + sum_j weight_j grad^2 c_j) V for a vector V, or for the columns of V."""
        columns = directions.reshape(x.size, -1)
        self.count("hvp", times=columns.shape[1], values=1, gradients=1, hvps=1)
        return self._mean(_products, x, weight, columns).reshape(directions.shape)

    def sums(self, body: Callable, k: int, *arguments: Any, first: bool = False) -> Any:
        """The sum over the rows of family k of `body(rows, mask, program, k, *arguments)`, a module's own function.

        With `first`, over those of its first part alone.
        """
        members = self.program.families[k].members
        with in_precision(self.dtype):
            given = [np.asarray(argument, self.dtype) for argument in arguments]
            places = [
                (part, i)
                for part in self.parts
                for i, family in enumerate(part.program.families)
                if family.members == members
            ]
            found = [_sums(body, part.program, i, part.data[i], *given) for part, i in places[: 1 if first else None]]
            return jax.tree.map(lambda *leaves: np.sum([np.asarray(leaf) for leaf in leaves], axis=0), *found)

    def count(self, kind: str, times: int = 1, values: int = 0, gradients: int = 0, hvps: int = 0):
        """Add work on a full pass, `times` over: evaluations of C per sample and row."""
        self.tally += Tally(price(self.program, kind, None, values, gradients, hvps)).times(times)

    def _mean(self, function: Callable, *arguments: np.ndarray) -> Any:
        """The sum over the parts, each with its share."""
        with in_precision(self.dtype):
            given = [np.asarray(argument, self.dtype) for argument in arguments]
            total = None
            for part in self.parts:
                found = jax.tree.map(np.asarray, part.call(function)(*given))
                found = found if part.share == 1 else jax.tree.map(lambda leaf, share=part.share: leaf * share, found)
                total = found if total is None else jax.tree.map(np.add, total, found)
        return total


def evaluator_of(problem: Any, program: Program) -> Evaluator:
    """The evaluator of a problem whose sources are all finite, over rows that it keeps for solver and judge alike."""
    return Evaluator(program, problem.device_data(program))


def _blocks(drawn: Population | Selected) -> list[Any]:
    """Draws of a stream, which all count alike, some at a time."""
    if drawn.size <= BLOCK_ROWS:
        return [drawn]
    cuts = [slice(first, first + BLOCK_ROWS) for first in range(0, drawn.size, BLOCK_ROWS)]
    if isinstance(drawn, Selected):
        return [Selected(drawn.population, drawn.rows[cut]) for cut in cuts]
    return [Population(jax.tree.map(lambda leaf, cut=cut: np.asarray(leaf)[cut], drawn.arrays)) for cut in cuts]


def _linearise_alone(program: Program, data: Any, x: jax.Array) -> At:
    return look.linearise(program, data, x)


def _linearise(program: Program, data: Any, x: jax.Array) -> At:
    return look.linearise(program, data, x, rounded=True)


def _values(program: Program, data: Any, x: jax.Array) -> tuple[jax.Array, jax.Array]:
    return look.values(program, data, x)


def _slope(program: Program, data: Any, x: jax.Array, factor: jax.Array, weight: jax.Array) -> jax.Array:
    return look.pulled(program, data, x, factor, weight)[1]


def _hessian(program: Program, data: Any, x: jax.Array, weight: jax.Array) -> jax.Array:
    return look.hessian(program, data, x, 1.0, weight)


def _hessian_rounding(program: Program, data: Any, x: jax.Array, weight: jax.Array, directions: jax.Array) -> jax.Array:
    return look.hessian_rounding(program, data, x, 1.0, weight, directions)


def _products(program: Program, data: Any, x: jax.Array, weight: jax.Array, directions: jax.Array) -> jax.Array:
    return look.products(program, data, x, 1.0, weight, directions)


@compiled
def _sums(body: Callable, program: Program, k: int, data: Data, *arguments: jax.Array) -> Any:
    family = program.families[k]
    assert family.sizes is not None

    def chunk(rows, mask, member, program, *given):
        return body(in_type(rows, given[0].dtype), mask, member, program, k, *given)

    return sum_rows(chunk, data, family.sizes, chunk_bytes(), program, *arguments)
