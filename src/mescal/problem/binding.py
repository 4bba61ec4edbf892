"""Binding a problem to parameters: its functions traced at one sample, checked, and brought together into families.

A function must be one that can be differentiated twice, first in reverse and then forwards, as the oracle does: which operations
of it cannot be is read from its equations.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal
from jax.interpreters.ad import primitive_jvps

from ..errors import InputError, InputTypeError
from .expectation import Expectation, Term
from .families import join
from .layout import Layout, Parameters
from .program import OBJECTIVE, BoundTerm, Program, constants
from .row_checks import first_line, refuse_traced
from .source import Sampler
from .traced import Reading, Traced, trace

if TYPE_CHECKING:
    from .problem import Problem

UNRULED = {
    "while": "a loop of unknown length (lax.while_loop, or lax.fori_loop with computed ends) has no reverse mode: "
    "use lax.scan, or lax.fori_loop with numbers as ends",
    "custom_vjp_call": "a rule by jax.custom_vjp has no forward mode, which Hessians need: state it as jax.custom_jvp",
    "pure_callback": "a callback has no derivative: give it one by jax.custom_jvp, or write it in jax.numpy",
    "io_callback": "a callback has no derivative: give it one by jax.custom_jvp, or write it in jax.numpy",
}
OPENED = ("jit", "pjit", "cond", "scan", "remat", "checkpoint", "remat2", "closed_call", "core_call")


class Read(NamedTuple):
    """A term whose function was traced: where its arrays are kept, what it adds to, where its coefficient is."""

    term: Term
    reading: Reading
    constants: int
    slot: int
    coefficient: int


def bind_terms(problem: "Problem", spec: Parameters, dtype: np.dtype) -> Program:
    """The functions of a problem on parameters of this structure, in this floating type."""
    bodies = [problem.objective, *(c.body for c in problem.constraints.values())]
    names = ["the objective", *(f"constraint {name!r}" for name in problem.constraints)]
    draws = {k: source.traced() for k, source in enumerate(problem.sources) if isinstance(source, Sampler)}
    shapes_of = [draws[k].function.out if k in draws else s.sample_shape() for k, s in enumerate(problem.sources)]
    samples = [_in_type(shape, dtype) for shape in shapes_of]
    seen: dict[tuple, tuple[int, Reading]] = {}
    read: list[Read] = []
    shapes = []
    for slot, (body, what) in enumerate(zip(bodies, names, strict=True), start=OBJECTIVE):
        own = []
        for term in body.terms:
            sample = None if term.source is None else samples[problem.index(term.source)]
            leaves, structure = jax.tree.flatten(sample)
            key = (id(term.fn), structure, tuple((leaf.shape, str(leaf.dtype)) for leaf in leaves))
            if key not in seen:
                seen[key] = len(seen), trace_term(term, spec, dtype, sample, what)
            place, reading = seen[key]
            own.append(Read(term, reading, place, slot, len(read) + len(own)))
        read += own
        shapes.append(_output_shape(body, [each.reading.function.shape for each in own], what))
    if shapes[0] != ():
        raise InputError(
            f"the objective has shape {shapes[0]}",
            "a scalar",
            "return one number per sample: sum or average inside the function",
        )
    layout = Layout(tuple(problem.constraints), tuple(shapes[1:]), tuple(c.kind for c in problem.constraints.values()))
    fixed = tuple(
        BoundTerm(r.reading.function, r.constants, (r.slot,), (r.coefficient,)) for r in read if r.term.source is None
    )
    by_source: list[list[Read]] = [[] for _ in problem.sources]
    for r in read:
        if r.term.source is not None:
            by_source[problem.index(r.term.source)].append(r)
    families = join(problem.sources, by_source, {k: draw.function for k, draw in draws.items()}, len(seen), layout)
    return Program(
        coefficients=np.asarray([r.term.coefficient for r in read], np.float64),
        objective_constant=np.asarray(problem.objective.constant, np.float64),
        constraint_constant=constants([(b.constant, s) for b, s in zip(bodies[1:], shapes[1:], strict=True)]),
        constants=(*(reading.constants for _, reading in seen.values()), *(draws[k].constants for k in sorted(draws))),
        fixed=fixed,
        families=families,
        parameters=spec,
        layout=layout,
    )


def _output_shape(expression: Expectation, shapes: list[tuple[int, ...]], what: str) -> tuple[int, ...]:
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


def trace_term(term: Term, spec: Parameters, dtype: np.dtype, sample: Any, what: str) -> Reading:
    """The function of one term, of a flat vector and a sample; what fails is told with the shapes that it was given."""
    vector = jax.ShapeDtypeStruct((spec.size,), dtype)
    samples = () if term.source is None else (sample,)
    name = getattr(term.fn, "__name__", type(term.fn).__name__)
    try:
        reading = trace(lambda v, *s: term.fn(spec.unflatten(v), *s), vector, *samples)
    except Exception as error:
        given = f"parameters of shape {spec.shapes[0] if spec.bare else spec.shapes}"
        if samples:
            given += f" and a sample of shape {jax.tree.map(lambda leaf: leaf.shape, samples[0])}"
        raise InputError(
            f"the function {name} of {what} failed on {given}: {type(error).__name__}: {first_line(error)}",
            "a function of (parameters, one sample)" if samples else "a function of the parameters",
            "check the shape of x, call the function on x and one row by hand, and use jax.numpy inside it",
        ) from error
    refuse_traced(reading.constants, f"an array that the function {name} of {what} closes over")
    structure, found = reading.function.structure, [out.aval for out in reading.function.jaxpr.outvars]
    if structure != jax.tree.structure(0) or not jnp.issubdtype(found[0].dtype, jnp.floating):  # pyright: ignore[reportAttributeAccessIssue]
        kind = found[0].dtype if structure == jax.tree.structure(0) else _described(structure)  # pyright: ignore[reportAttributeAccessIssue]
        raise InputTypeError(
            f"the function {name} of {what} returns {kind}",
            "one real number or one floating-point array",
            "return a single array; step functions of x have no useful derivative, use a smooth one",
        )
    missing = missing_rule(reading.function)
    if missing is not None:
        raise InputTypeError(
            f"the function {name} of {what} uses {missing[0]}, through which it cannot be differentiated twice",
            "a function with a gradient and a Hessian",
            missing[1],
        )
    return reading


def _described(structure: Any) -> str:
    return type(jax.tree.unflatten(structure, [0] * structure.num_leaves)).__name__


def _in_type(shapes: Any, dtype: np.dtype) -> Any:
    """Shapes of a sample with floating columns in `dtype`, and the others in what JAX makes of them."""

    def kind(leaf):
        floating = jnp.issubdtype(leaf.dtype, jnp.floating)
        return jax.ShapeDtypeStruct(leaf.shape, dtype if floating else jax.dtypes.canonicalize_dtype(leaf.dtype))

    return jax.tree.map(kind, shapes)


def missing_rule(fn: Traced) -> tuple[str, str] | None:
    """The first operation on what depends on x, the first argument, that has no derivative as needed, and what to do."""
    return _missing_in(fn.jaxpr, {fn.jaxpr.invars[0]})


def _missing_in(jaxpr: Jaxpr, moving: set) -> tuple[str, str] | None:
    moving = set(moving)
    for equation in jaxpr.eqns:
        carried = [not isinstance(atom, Literal) and atom in moving for atom in equation.invars]
        floating = any(jnp.issubdtype(getattr(v.aval, "dtype", bool), jnp.inexact) for v in equation.outvars)
        if not any(carried) or not floating:
            continue
        moving |= set(equation.outvars)
        name = equation.primitive.name
        if name in UNRULED or name.startswith("custom_vjp_call"):
            return name, UNRULED.get(name, UNRULED["custom_vjp_call"])
        for inner in _bodies(equation.params) if name in OPENED else ():
            found = _missing_in(inner, set(inner.invars))
            if found is not None:
                return found
        if name not in OPENED and not name.startswith("custom_") and equation.primitive not in primitive_jvps:
            return name, "JAX has no derivative for it: write it by other functions, or give it one by jax.custom_jvp"
    return None


def _bodies(parameters: dict[str, Any]) -> list[Jaxpr]:
    parts = [part for value in parameters.values() for part in (value if isinstance(value, tuple) else (value,))]
    bodies = [part.jaxpr if isinstance(part, ClosedJaxpr) else part for part in parts]
    return [body for body in bodies if isinstance(body, Jaxpr)]
