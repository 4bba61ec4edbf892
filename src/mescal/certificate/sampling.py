"""Rows for a statement about a distribution: two independent batches A and B of every source (sample splitting).

Multipliers, slacks and directions are chosen on A; measures and their error bounds come from B with these frozen, so the
terms of every mean are i.i.d. and no product of two expectations occurs. A stream gives fresh draws; a finite population
gives two halves of its rows when it is taken as a sample, and all of its rows, without error, when it is not.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..compiling import compiled
from ..errors import InputError
from ..oracle.draw import as_key, words
from ..oracle.evaluator import BLOCK_ROWS
from ..problem import Finite, OnDisk, Population, Problem, Program, RowStream, Sampler, Sharded, Source
from ..problem.stored import Selected
from ..problem.traced import Reading, Traced

SMALLEST_HALF = 8  # rows of a half below which a variance estimate means nothing


@dataclass(frozen=True)
class Batches:
    """Rows of each source for A, if anything is to be chosen, and B; `noisy` says which sources carry sampling error."""

    first: tuple[Any, ...]
    second: tuple[Any, ...]
    noisy: tuple[bool, ...]


def judged(source: Source, as_sample: bool) -> Source:
    """What the judge takes a source for: rows that are a sample themselves are no stream, whose draws would repeat them."""
    return source.population if as_sample and isinstance(source, RowStream) else source


def split(
    problem: Problem, program: Program, samples: int, seed: int, look: int, as_sample: bool, choosing: bool = True
) -> Batches:
    """Two independent batches of every source: `samples` draws each of a stream, halves of a sampled population.

    Without `choosing` there is no first one.
    """
    first, second, noisy = [], [], []
    for k, source in enumerate(judged(source, as_sample) for source in problem.sources):
        if isinstance(source, (Sampler, RowStream)):
            if choosing:
                first.append(draw(source, program.draws.get(k), samples, (seed, look, 2 * k)))
            second.append(draw(source, program.draws.get(k), samples, (seed, look, 2 * k + 1)))
        elif as_sample:
            halves = _halves(source, np.random.default_rng([seed, k]))
            first.append(halves[0])
            second.append(halves[1])
        else:
            first.append(source)
            second.append(source)
        noisy.append(source.size is None or as_sample)
    return Batches(tuple(first) if choosing else (), tuple(second), tuple(noisy))


def draw(
    stream: Sampler | RowStream, read: Reading | None, samples: int, key: tuple[int, ...]
) -> "Population | Selected":
    """That many draws of a stream, as a population; `read` is a sampler's function."""
    if isinstance(stream, RowStream):
        rng = np.random.default_rng(key)
        return _subset(stream.population, rng.integers(stream.population.size, size=samples))
    with jax.enable_x64(True):
        assert read is not None
        blocks = [
            jax.tree.map(
                np.asarray,
                _draw_block(read.function, min(BLOCK_ROWS, samples), read.constants, words(*key), np.uint32(start)),
            )
            for start in range(0, samples, BLOCK_ROWS)
        ]
    rows = jax.tree.map(lambda *leaves: np.concatenate(leaves)[:samples], *blocks)
    population = Population(rows)
    population.check(drawn=True)
    return population


@partial(compiled, static_argnums=(0, 1))
def _draw_block(function: Traced, count: int, arrays: Any, given: jax.Array, start: Any) -> Any:
    key = as_key(given)
    keys = jax.vmap(lambda i: jax.random.fold_in(key, i))(start + jnp.arange(count, dtype=jnp.uint32))
    return jax.vmap(lambda one: function(arrays, one))(keys)


def _halves(population: Finite, rng: np.random.Generator) -> tuple[Any, Any]:
    if isinstance(population, Sharded):
        raise InputError(
            "a population over many devices taken as a sample",
            "rows that one device holds, or rows on disk",
            "certify with as_sample=False, or on held-out rows that are not sharded",
        )
    half = population.size // 2
    if half < SMALLEST_HALF:
        raise InputError(
            f"a population of {population.size} rows taken as a sample",
            f"at least {2 * SMALLEST_HALF} rows to split",
            "certify with as_sample=False, or with more held-out rows",
        )
    order = rng.permutation(population.size)
    return _subset(population, np.sort(order[:half])), _subset(population, np.sort(order[half:]))


def _subset(population: Population | OnDisk, rows: np.ndarray) -> Population | Selected:
    return Selected(population, rows) if isinstance(population, OnDisk) else Population(*population.at(rows))
