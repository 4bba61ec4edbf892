"""Families: sources over which the same functions are taken, joined so that they have one call site, and their rows.

Populations in memory are joined, others stand alone. Two are of one kind where their rows have the same shapes and types, both or
neither have weights, and the same functions (by their equations, with the same arrays closed over) are taken of them, for the
objective or for constraints of equal shapes.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from .layout import Layout
from .over import RowStream, Source
from .program import OBJECTIVE, BoundTerm, Family, Program, Rows
from .sharding import ShardedRows
from .source import Population, Sampler, joined
from .stored import StoredRows
from .traced import Traced

if TYPE_CHECKING:
    from .binding import Read

Data = Rows | ShardedRows | StoredRows


def join(
    sources: Sequence[Source], terms: "Sequence[Sequence[Read]]", draws: dict[int, Traced], first: int, layout: Layout
) -> tuple[Family, ...]:
    """The families of the sources whose terms are given, in the order of their first members; `first`: place of draws' arrays."""
    kinds: dict[Any, list[int]] = {}
    for k, source in enumerate(sources):
        kinds.setdefault(_kind(source, terms[k]) if isinstance(source, Population) else k, []).append(k)
    return tuple(_family(tuple(members), sources, terms, draws, first, layout) for members in kinds.values())


def _kind(source: Population, terms: "Sequence[Read]") -> Any:
    leaves, structure = jax.tree.flatten(source.arrays)
    slots = _local(terms)
    return (
        structure,
        tuple((leaf.shape[1:], str(leaf.dtype)) for leaf in leaves),
        source.weighted,
        tuple((r.reading.function, _arrays(r), s) for r, s in zip(terms, slots, strict=True)),
    )


def _arrays(term: "Read") -> Any:
    """What two readings of one function must share: the arrays that it closes over, if there are any."""
    return term.constants if term.reading.constants else None


def _local(terms: "Sequence[Read]") -> list[int]:
    """The slot of each term, numbered among those of its source."""
    slots = sorted({r.slot for r in terms} - {OBJECTIVE})
    return [OBJECTIVE if r.slot == OBJECTIVE else slots.index(r.slot) for r in terms]


def _family(members, sources, terms, draws, first: int, layout: Layout) -> Family:
    chosen = [sources[k] for k in members]
    lead = chosen[0]
    fed = [
        tuple(
            row
            for slot in sorted({r.slot for r in terms[k]} - {OBJECTIVE})
            for row in range(layout.slices[slot].start, layout.slices[slot].stop)
        )
        for k in members
    ]
    sizes = None if lead.size is None else tuple(source.size for source in chosen)
    return Family(
        members=members,
        sizes=sizes,
        rows=(lead.population.size,) if isinstance(lead, RowStream) else sizes,
        weighted=lead.weighted,
        draw=draws.get(members[0]) if isinstance(lead, Sampler) else None,
        draw_constants=first + sorted(draws).index(members[0]) if members[0] in draws else -1,
        terms=tuple(
            BoundTerm(
                same[0].reading.function,
                same[0].constants,
                tuple(r.slot for r in same),
                tuple(r.coefficient for r in same),
            )
            for same in zip(*(terms[k] for k in members), strict=True)
        ),
        fed=tuple(fed),
    )


def placed_families(program: Program, sources: Sequence[Any], dtype: Any) -> tuple[Data | None, ...]:
    """The rows of each family for compiled programs: floating columns in `dtype`, or in their own type."""
    return tuple(_placed([sources[k] for k in family.members], dtype) for family in program.families)


def _placed(sources: list[Any], dtype: Any) -> Data | None:
    parts = [source.placed(dtype) for source in sources]
    if len(parts) == 1:
        return parts[0]
    with jax.enable_x64(True):
        whole = jax.tree.map(lambda *leaves: joined(leaves), *parts)
    if dtype is None:
        for source, first in zip(sources, np.cumsum([0, *(source.size for source in sources)]), strict=False):
            source.join(whole.samples, int(first))
    return whole
