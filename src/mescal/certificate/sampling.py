"""Rows for a statement about a distribution: two independent batches A and B of every source (sample splitting).

Multipliers, slacks and directions are chosen on A; measures and their error bounds come from B with these frozen, so the
terms of every mean are i.i.d. and no product of two expectations occurs. A stream gives fresh draws; a finite population
gives two halves of its rows when it is taken as a sample, and all of its rows, without error, when it is not.
"""

from collections.abc import Mapping
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
    sources = [judged(source, as_sample) for source in problem.sources]
    noisy = tuple(source.size is None or as_sample for source in sources)
    halves = {
        k: _halves(source, np.random.default_rng([seed, k])) if as_sample else (source, source)
        for k, source in enumerate(sources)
        if not isinstance(source, (Sampler, RowStream))
    }

    def batch(number: int) -> tuple[Any, ...]:
        keys = {k: (seed, look, 2 * k + number) for k in range(len(sources)) if k not in halves}
        drawn = draw({k: sources[k] for k in keys}, program.draws, samples, keys)
        return tuple(drawn[k] if k in drawn else halves[k][number] for k in range(len(sources)))

    return Batches(batch(0) if choosing else (), batch(1), noisy)


def draw(
    streams: Mapping[int, Any], read: Mapping[int, Reading], samples: int, keys: Mapping[int, tuple[int, ...]]
) -> "dict[int, Population | Selected]":
    """That many draws of every stream, as populations; `read` are the functions of samplers, which one program draws from."""
    drawn: dict[int, Population | Selected] = {}
    for k, stream in streams.items():
        if isinstance(stream, RowStream):
            rng = np.random.default_rng(keys[k])
            drawn[k] = _subset(stream.population, rng.integers(stream.population.size, size=samples))
    samplers = [k for k in streams if k not in drawn]
    if not samplers:
        return drawn
    functions, arrays = tuple(read[k].function for k in samplers), [read[k].constants for k in samplers]
    given, count = np.stack([words(*keys[k]) for k in samplers]), min(BLOCK_ROWS, samples)
    with jax.enable_x64(True):
        blocks = [
            jax.tree.map(np.asarray, _draw_block(functions, count, arrays, given, np.uint32(start)))
            for start in range(0, samples, BLOCK_ROWS)
        ]
    for i, k in enumerate(samplers):
        parts = [block[i] for block in blocks]
        population = Population(jax.tree.map(lambda *leaves: np.concatenate(leaves)[:samples], *parts))
        population.check(drawn=True)
        drawn[k] = population
    return drawn


@partial(compiled, static_argnums=(0, 1))
def _draw_block(functions: tuple[Traced, ...], count: int, arrays: Any, given: jax.Array, start: Any) -> Any:
    positions = start + jnp.arange(count, dtype=jnp.uint32)
    keys = jax.vmap(lambda own: jax.vmap(lambda i: jax.random.fold_in(as_key(own), i))(positions))(given)
    return [jax.vmap(lambda one, k=k: functions[k](arrays[k], one))(keys[k]) for k in range(len(functions))]


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
