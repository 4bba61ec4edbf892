"""Values of functions at a point, sample by sample: where scalars start, and what a statement is worth."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy

from ...compiling import compiled
from ...errors import InputTypeError
from ..binding import trace_term
from ..expectation import Expectation, Term
from ..layout import flatten_parameters
from ..over import RowStream
from ..source import Sampler
from ..traced import Traced

WHERE = "a statement"
DRAWS = 8192  # of a stream, and rows that are looked at together


class At(NamedTuple):
    """Where a statement is looked at: a point, and on which samples."""

    x: Any
    instead: Mapping[Any, Any] = MappingProxyType(
        {}
    )  # by key of a stated source: what stands for it, as in a subsample
    starting: bool = False  # for a start: denominators no smaller than their floors, so that all is finite


class Values(NamedTuple):
    """Values of a function on samples, and the weights of these, which sum to 1."""

    values: np.ndarray
    weights: np.ndarray

    @property
    def mean(self) -> float:
        """Weighted."""
        return float(self.weights @ self.values)

    def quantile(self, level: float, width: float) -> float:
        """The t at which E[sigmoid((value - t)/width)] is 1 - level: the quantile, where `width` is small."""
        shift = width * scipy.special.logit(
            1 - level
        )  # at the ends less this, all sigmoids are on one side of 1 - level
        ends = float(self.values.min()) - shift, float(self.values.max()) - shift
        if ends[0] == ends[1]:
            return ends[0]

        def over(t: float) -> float:
            return float(self.weights @ scipy.special.expit((self.values - t) / width)) - (1 - level)

        # rounding may cost the signs at the ends, where all values are as good as one
        if over(ends[0]) <= 0 or over(ends[1]) >= 0:
            return min(ends, key=lambda t: abs(over(t)))
        return float(scipy.optimize.brentq(over, *ends, xtol=np.finfo(float).eps * width))


def values_at(fn: Callable, source: Any, x: Any) -> Values:
    """`fn(x, sample)` over all rows of a population, or over some draws of a stream, in float64."""
    spec, vector = flatten_parameters(x)
    term, kind = Term(1.0, fn, source), np.dtype(np.float64)
    with jax.enable_x64(True):
        point = jnp.asarray(vector, kind)
        if source is None:
            program, constants = trace_term(term, spec, kind, None, WHERE)
            return Values(_numbers(fn, np.asarray([program(constants, point)], kind)), np.ones(1))
        found, weights = [], []
        for rows, counted in _chunks(source):
            program, constants = trace_term(term, spec, kind, jax.tree.map(_one, rows), WHERE)
            found.append(_numbers(fn, np.asarray(_each(program, constants, point, rows), kind)))
            weights.append(counted)
    whole = np.concatenate(weights)
    return Values(np.concatenate(found), whole / whole.sum())


def mean_at(expectation: Expectation, at: At) -> float:
    """The value of an expectation."""
    if expectation.constant.ndim:
        _refuse_arrays("constants", expectation.constant.shape)
    return float(expectation.constant) + sum(term_at(term, at).mean * term.coefficient for term in expectation.terms)


def term_at(term: Term, at: At) -> Values:
    """The values of one summand, without its coefficient."""
    source = term.source
    return values_at(term.fn, source if source is None else at.instead.get(source.key, source), at.x)


@compiled
def _each(program: Traced, constants: Any, x: Any, rows: Any) -> jax.Array:
    return jax.vmap(lambda row: program(constants, x, row))(rows)


def _numbers(fn: Callable, values: np.ndarray) -> np.ndarray:
    if values.ndim > 1:
        _refuse_arrays(f"values of {getattr(fn, '__name__', 'a function')}", values.shape[1:])
    return values


def _refuse_arrays(what: str, shape: tuple[int, ...]):
    raise InputTypeError(
        f"{what} of shape {shape} in a statement (a worst case, a ratio, a risk, a function of expectations)",
        "one number per sample",
        "state one for every component, in a dict by name",
    )


def _one(leaf: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype)


def _is_floating(leaf: Any) -> bool:
    return hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jnp.floating)


def _chunks(source: Any):
    if isinstance(source, RowStream):
        source = source.population
    if isinstance(source, Sampler):
        with jax.enable_x64(source.wide):
            rows = jax.vmap(source.draw)(jax.random.split(jax.random.key(0, impl="threefry2x32"), DRAWS))
        yield _float64(rows), np.ones(DRAWS)
        return
    for start in range(0, source.size, DRAWS):
        rows = source.at(np.arange(start, min(start + DRAWS, source.size)))
        count = jax.tree.leaves(rows.samples)[0].shape[0]
        yield _float64(rows.samples), np.ones(count) if rows.weights is None else np.asarray(rows.weights, np.float64)


def _float64(rows: Any) -> Any:
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, np.float64) if _is_floating(leaf) else jnp.asarray(leaf), rows)
