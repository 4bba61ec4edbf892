"""The problem:  minimise E[F(x, xi)]  subject to  E[C(x, zeta)] = 0 or <= 0  and  x in X,  the paper's (1.1).

Checks its data when built and its functions on one sample when parameters are first given.
"""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

from ..compiling import in_precision
from ..errors import InputError, InputTypeError
from ..importing import on_first_use
from ..sets import ConvexSet, Reals
from .binding import bind_terms
from .constraint import Constraint
from .expectation import Expectation, Term
from .families import Data, placed_families
from .layout import Layout, flatten_parameters, refuse_too_large
from .over import Source, refuse_mixtures
from .program import Program
from .source import Sampler, placed_type
from .statements.algebra import Stated, Statement
from .statements.lifting import Lifted
from .statements.lowering import lower


class Problem:
    """minimise `objective` subject to `constraints` and x in `domain`.

    **Arguments:**

    - `objective`: an expectation, `E(fn, over=data)` or a combination of several, or a statement (`worst`, `cvar`, ...); scalar.
    - `constraints`: a dict from names to comparisons, `{"rate": E(score, over=negatives) <= 0.2}`.
    - `domain`: a closed convex set of `mescal.sets`; default: all of space.
    """

    def __init__(self, objective: Any, constraints: Mapping[str, Any] | None = None, domain: Any = None):
        self.domain = Reals() if domain is None else domain
        if not isinstance(self.domain, ConvexSet):
            raise InputTypeError(
                f"domain={type(domain).__name__}",
                "a set of mescal.sets",
                "write for example domain=mescal.sets.Box(-1.0, 1.0), or Projected(your_projection)",
            )
        stated = {} if constraints is None else constraints
        given = objective, stated
        objective, stated, self.domain, self.lifting = lower(objective, stated, self.domain)
        self.objective, self.constraints = _check_objective(objective), _check_constraints(stated)
        self.stated: tuple[Any, dict[str, Any]] = (self.objective, self.constraints)  # for people to read
        if any(isinstance(part, (Statement, Stated)) for part in (given[0], *given[1].values())):
            self.stated = given[0], dict(given[1])
        self.domain = self.domain.renewed()
        found: dict[tuple, Source] = {}
        for term in self._all_terms():
            if term.source is not None:
                found.setdefault(term.source.key, term.source)
        self.sources: tuple[Source, ...] = tuple(found.values())
        refuse_mixtures(self.sources)
        self._index = {key: i for i, key in enumerate(found)}
        for source in self.sources:
            source.check()
        self._programs: dict[tuple, Program] = {}
        self._data: dict[tuple, tuple] = {}

    def bind(self, x: Any, name: str = "x", dtype: Any = np.float64) -> tuple[Program, np.ndarray]:
        """The problem on parameters of the structure of `x`, computing in `dtype`, and `x` as a flat vector.

        Its functions are read here, once for a structure and a type, and from then on what they were is what is solved and
        judged: a problem whose functions read something that has changed must be built anew.
        """
        spec, vector = flatten_parameters(self.lifted(x, name), name)
        key = (spec.key, str(np.dtype(dtype)))
        if key not in self._programs:
            if np.dtype(dtype) != np.float64:
                self.bind(x, name)  # first, as the judge will need it: JAX may give arrays that it has rounded once
            arrays = spec.arrays(vector)
            if self.lifting is not None:
                self.stated_domain.check(arrays.x)  # first: what a user must mend is said without the scalars
            self.domain.check(arrays)
            with in_precision(dtype):
                program = bind_terms(self, spec, np.dtype(dtype))
            self._refuse_changed_shapes(program.layout)
            self._programs[key] = program
        return self._programs[key], vector

    def working_type(self, x: Any, name: str = "x") -> np.dtype:
        """The floating type in which a stochastic solver computes: that of the parameters, as JAX is set to have it."""
        _, vector = flatten_parameters(self.lifted(x, name), name)
        kind = jax.dtypes.canonicalize_dtype(vector.dtype)
        refuse_too_large(vector, kind, name)
        return kind

    def lifted(self, x: Any, name: str = "x") -> Any:
        """Parameters with the scalars that statements add, at their values at x; without any where there are none."""
        return self.unlifted(x)[0] if self.lifting is None else self.lifting.lift(x, name)

    def settled(self, x: Any, drawn: bool = False) -> Any:
        """Parameters whose scalars, if they have some, are moved to their values at x over all rows; where there is a sampler,
        only if `drawn`: over some thousand draws.
        """
        if not isinstance(x, Lifted) or self.lifting is None or (self.is_drawn and not drawn):
            return x
        return self.lifting.settled(self.lifting.lift(x))

    @property
    def is_drawn(self) -> bool:
        """Whether some samples come from a sampler, so that no scalar is known but up to chance."""
        return any(isinstance(source, Sampler) for source in self.sources)

    @property
    def stated_domain(self) -> ConvexSet:
        """The domain as it was stated: of the user's parameters alone."""
        return self.domain if self.lifting is None else self.lifting.domain

    def unlifted(self, x: Any) -> tuple[Any, dict[str, Any]]:
        """The user's parameters, and the scalars beside them."""
        return (x.x, x.auxiliary) if isinstance(x, Lifted) else (x, {})

    def with_sources(self, change: Callable[[Source], Source]) -> "Problem":
        """The same functions over other sources: `change` is called once for each of these."""
        changed = {source.key: change(source) for source in self.sources}

        def of(expectation: Expectation) -> Expectation:
            terms = (
                Term(t.coefficient, t.fn, None if t.source is None else changed[t.source.key])
                for t in expectation.terms
            )
            return Expectation(tuple(terms), expectation.constant)

        constraints = {name: c.with_body(of(c.body)) for name, c in self.constraints.items()}
        problem = Problem(of(self.objective), constraints, self.domain)
        problem.lifting = None if self.lifting is None else self.lifting.over(changed)
        return problem

    def device_data(self, program: Program, dtype: Any = None) -> tuple[Data | None, ...]:
        """The rows of each family as compiled programs see them, floating columns in `dtype` (None: in their own).

        Kept, so that solver and judge share them; None for families that have no rows.
        """
        if dtype is not None and all(_has_type(source, np.dtype(dtype)) for source in self.sources):
            dtype = None
        key = (tuple(family.members for family in program.families), None if dtype is None else str(np.dtype(dtype)))
        if key not in self._data:
            self._data[key] = placed_families(program, self.sources, dtype)
        return self._data[key]

    def _all_terms(self) -> list[Term]:
        return [*self.objective.terms, *(t for c in self.constraints.values() for t in c.body.terms)]

    def index(self, source: Source) -> int:
        """The place of a source among those of the problem."""
        return self._index[source.key]

    def _refuse_changed_shapes(self, layout: Layout):
        for known in self._programs.values():
            for name, before, now in zip(layout.names, known.layout.shapes, layout.shapes, strict=True):
                if before != now:
                    raise InputError(
                        f"constraint {name!r} has shape {now}; with the parameters given first it had {before}",
                        "one shape per constraint",
                        "give x the shape it had before, or build a second Problem",
                    )

    def _repr_html_(self) -> str:
        return on_first_use("report.cards").problem_card(self)

    def __repr__(self) -> str:
        objective, constraints = self.stated
        lines = [f"minimise {objective}", *(f"  {name}: {c}" for name, c in constraints.items())]
        return "\n".join([*lines, f"  x in {self.stated_domain}"])


def _has_type(source: Source, dtype: np.dtype) -> bool:
    """Whether the rows of a source are what programs that compute in `dtype` see of them already."""
    leaves = [] if isinstance(source, Sampler) else jax.tree.leaves(source.sample_shape())
    return not source.weighted and all(leaf.dtype == placed_type(leaf.dtype, dtype) for leaf in leaves)


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
