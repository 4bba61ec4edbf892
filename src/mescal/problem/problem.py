"""The problem:  minimise E[F(x, xi)]  subject to  E[C(x, zeta)] = 0 or <= 0  and  x in X.

Checks its data when built and its functions on one sample when parameters are first given.
"""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import InputError, InputTypeError
from ..sets import ConvexSet, Reals
from .checks import first_line
from .constraint import Constraint
from .expectation import Expectation, Term
from .layout import Layout
from .over import Source, refuse_mixtures
from .parameters import Parameters, flatten_parameters
from .program import OBJECTIVE, BoundSource, BoundTerm, Program, Rows, constants
from .row_stream import RowStream
from .sharding import ShardedRows
from .source import Sampler
from .stored import StoredRows


class Problem:
    """minimise `objective` subject to `constraints` and x in `domain`.

    **Arguments:**

    - `objective`: an expectation, `E(fn, over=data)` or a combination of several; scalar.
    - `constraints`: a dict from names to comparisons, `{"rate": E(score, over=negatives) <= 0.2}`.
    - `domain`: a closed convex set of `mescal.sets`; default: all of space.
    """

    def __init__(self, objective: Expectation, constraints: Mapping[str, Constraint] | None = None, domain: Any = None):
        self.objective = _check_objective(objective)
        self.constraints = _check_constraints({} if constraints is None else constraints)
        self.domain = Reals() if domain is None else domain
        if not isinstance(self.domain, ConvexSet):
            raise InputTypeError(
                f"domain={type(domain).__name__}",
                "a set of mescal.sets",
                "write for example domain=mescal.sets.Box(-1.0, 1.0), or Projected(your_projection)",
            )
        found: dict[tuple, Source] = {}
        for term in self._all_terms():
            if term.source is not None:
                found.setdefault(term.source.key, term.source)
        self.sources: tuple[Source, ...] = tuple(found.values())
        refuse_mixtures(self.sources)
        self._index = {key: i for i, key in enumerate(found)}
        for source in self.sources:
            source.check()
        self._programs: dict[Parameters, Program] = {}
        self._data: dict[str, tuple] = {}

    def bind(self, x: Any, name: str = "x") -> tuple[Program, np.ndarray]:
        """The problem on parameters of the structure of `x`, and `x` as a flat vector."""
        spec, vector = flatten_parameters(x, name)
        if spec not in self._programs:
            self.domain.check(spec.arrays(vector))
            program = self._build(spec)
            self._refuse_changed_shapes(program.layout)
            self._programs[spec] = program
        return self._programs[spec], vector

    def with_sources(self, change: Callable[[Source], Source]) -> "Problem":
        """The same functions over other sources: `change` is called once for each of these."""
        changed = {source.key: change(source) for source in self.sources}

        def of(expectation: Expectation) -> Expectation:
            terms = (
                Term(t.coefficient, t.fn, None if t.source is None else changed[t.source.key])
                for t in expectation.terms
            )
            return Expectation(tuple(terms), expectation.constant)

        constraints = {name: Constraint(of(c.body), c.kind) for name, c in self.constraints.items()}
        return Problem(of(self.objective), constraints, self.domain)

    def device_data(self, dtype: Any) -> tuple[Rows | ShardedRows | StoredRows | None, ...]:
        """The populations as compiled programs see them, floating columns in `dtype`; None for samplers. Once per type."""
        name = str(np.dtype(dtype))
        if name not in self._data:
            self._data[name] = tuple(source.placed(dtype) for source in self.sources)
        return self._data[name]

    def _all_terms(self) -> list[Term]:
        return [*self.objective.terms, *(t for c in self.constraints.values() for t in c.body.terms)]

    def _build(self, spec: Parameters) -> Program:
        shapes = [_output_shape(self.objective, spec, "the objective")]
        shapes += [_output_shape(c.body, spec, f"constraint {name!r}") for name, c in self.constraints.items()]
        if shapes[0] != ():
            raise InputError(
                f"the objective has shape {shapes[0]}",
                "a scalar",
                "return one number per sample: sum or average inside the function",
            )
        layout = Layout(tuple(self.constraints), tuple(shapes[1:]), tuple(c.kind for c in self.constraints.values()))
        slots = [(OBJECTIVE, t) for t in self.objective.terms]
        slots += [(j, t) for j, c in enumerate(self.constraints.values()) for t in c.body.terms]
        terms = tuple(
            BoundTerm(None if t.source is None else self._index[t.source.key], slot, k, t.fn)
            for k, (slot, t) in enumerate(slots)
        )
        bodies = [c.body for c in self.constraints.values()]
        return Program(
            coefficients=np.asarray([t.coefficient for _, t in slots], np.float64),
            objective_constant=np.asarray(self.objective.constant, np.float64),
            constraint_constant=constants([(b.constant, s) for b, s in zip(bodies, shapes[1:], strict=True)]),
            terms=terms,
            sources=tuple(_bound(source) for source in self.sources),
            parameters=spec,
            layout=layout,
        )

    def _refuse_changed_shapes(self, layout: Layout):
        for known in self._programs.values():
            for name, before, now in zip(layout.names, known.layout.shapes, layout.shapes, strict=True):
                if before != now:
                    raise InputError(
                        f"constraint {name!r} has shape {now}; with the parameters given first it had {before}",
                        "one shape per constraint",
                        "give x the shape it had before, or build a second Problem",
                    )

    def __repr__(self) -> str:
        lines = [f"minimise {self.objective}"]
        lines += [f"  {name}: {c}" for name, c in self.constraints.items()]
        return "\n".join([*lines, f"  x in {self.domain}"])


def _bound(source: Source) -> BoundSource:
    if isinstance(source, Sampler):
        return BoundSource(None, None, False, source.draw)
    rows = source.population.size if isinstance(source, RowStream) else source.size
    return BoundSource(source.size, rows, source.weighted, None)


def _check_objective(objective: Any) -> Expectation:
    if isinstance(objective, Constraint):
        raise InputTypeError(
            "the objective is a comparison", "an expectation", "move the comparison into constraints={...}"
        )
    if not isinstance(objective, Expectation):
        raise InputTypeError(
            f"the objective is {type(objective).__name__}",
            "an expectation, E(fn, over=data)",
            "wrap the function: E(fn, over=data), or E(fn) where it needs no samples",
        )
    return objective


def _check_constraints(constraints: Any) -> dict[str, Constraint]:
    if not isinstance(constraints, Mapping):
        raise InputTypeError(
            f"constraints is {type(constraints).__name__}",
            "a dict from names to comparisons",
            'write constraints={"rate": E(score, over=negatives) <= 0.2}',
        )
    for name, constraint in constraints.items():
        if not isinstance(name, str):
            raise InputTypeError(f"a constraint is named {name!r}", "a string", "give it a name people can read")
        if isinstance(constraint, Expectation):
            raise InputTypeError(
                f"constraint {name!r} has no comparison",
                "an expectation compared by <=, >= or ==",
                f"write {name!r}: expectation <= 0",
            )
        if not isinstance(constraint, Constraint):
            raise InputTypeError(
                f"constraint {name!r} is {type(constraint).__name__}",
                "a comparison of expectations",
                f"write {name!r}: E(fn, over=data) <= bound",
            )
    return dict(constraints)


def _output_shape(expression: Expectation, spec: Parameters, what: str) -> tuple[int, ...]:
    shapes = [_term_shape(term, spec, what) for term in expression.terms]
    first = shapes[0] if shapes else expression.constant.shape
    if any(shape != first for shape in shapes):
        raise InputError(
            f"the terms of {what} have shapes {sorted(set(shapes))}",
            "one shape",
            "make the functions of one expression return arrays of equal shape",
        )
    if expression.constant.shape not in ((), first):
        raise InputError(
            f"{what} has values of shape {first} and a bound of shape {expression.constant.shape}",
            "a bound that is a number or has the same shape",
            "check the length of the bound",
        )
    return first


def _term_shape(term: Term, spec: Parameters, what: str) -> tuple[int, ...]:
    dtype = jax.dtypes.canonicalize_dtype(np.result_type(*spec.dtypes))
    vector = jax.ShapeDtypeStruct((spec.size,), dtype)
    samples = () if term.source is None else (_canonical(term.source.sample_shape()),)
    name = getattr(term.fn, "__name__", type(term.fn).__name__)
    try:
        out = jax.eval_shape(lambda v, *s: term.fn(spec.unflatten(v), *s), vector, *samples)
    except Exception as error:
        given = f"parameters of shape {spec.shapes[0] if spec.bare else spec.shapes}"
        if samples:
            given += f" and a sample of shape {jax.tree.map(lambda leaf: leaf.shape, samples[0])}"
        raise InputError(
            f"the function {name} of {what} failed on {given}: {type(error).__name__}: {first_line(error)}",
            "a function of (parameters, one sample)" if samples else "a function of the parameters",
            "check the shape of x, call the function on x and one row by hand, and use jax.numpy inside it",
        ) from error
    if not hasattr(out, "shape") or not jnp.issubdtype(out.dtype, jnp.floating):
        kind = out.dtype if hasattr(out, "dtype") else type(out).__name__
        raise InputTypeError(
            f"the function {name} of {what} returns {kind}",
            "one real number or one floating-point array",
            "return a single array; step functions of x have no useful derivative, use a smooth one",
        )
    return tuple(out.shape)


def _canonical(shapes: Any) -> Any:
    return jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct(leaf.shape, jax.dtypes.canonicalize_dtype(leaf.dtype)), shapes
    )
