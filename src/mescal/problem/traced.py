"""A user's function as JAX sees it: traced once, and known from then on by what it computes.

Two functions with the same equations are the same function here, whoever wrote them and wherever: what is compiled for one
serves the other. One that reads a global, a closure cell or an attribute that has changed has other equations, so it can never
meet a program of its earlier self. Arrays that a function closes over are no part of it: they become arguments.

    key = equations, with what their parameters say; a rule of the user's for derivatives is known by the first two derivatives

What cannot be compared by value (what a callback calls, say) is compared by identity, and kept alive: the same key never means
two things.
"""

import warnings
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import eval_jaxpr
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal

COMPILED = ("jit", "pjit")
CALLED = ("checkpoint", "remat", "remat2", "closed_call", "core_call")
RULES = ("custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr")
# Equations that move numbers about, and round none. (Those that put numbers together are not among them: a sum of what they make is
# known as well as each of its numbers is, those that do not depend on x included.)
UNROUNDED = {
    *("reshape", "broadcast_in_dim", "squeeze", "transpose", "rev", "slice", "copy", "copy_p", "expand_dims"),
    *("neg", "abs", "dynamic_slice", "gather", "split", "unstack"),
}
BODIES = ("call_jaxpr", "fun_jaxpr")  # of equations with rules: what they compute where no derivative is taken
NAMES = {"name", "debug_info", "ctx_mesh"}  # parameters of equations that change nothing


class Traced:
    """Equations, and the structure of what they return. Equal ones are one object, which compares by identity."""

    __slots__ = ("__weakref__", "jaxpr", "key", "structure")

    def __init__(self, jaxpr: Jaxpr, structure: Any, key: Hashable):
        self.jaxpr, self.structure, self.key = jaxpr, structure, key

    def __call__(self, constants: Sequence[Any], *arguments: Any) -> Any:
        """The function at `arguments`, with the arrays that it closes over."""
        leaves = eval_jaxpr(self.jaxpr, constants, *jax.tree.leaves(arguments))
        return jax.tree.unflatten(self.structure, leaves)

    def shaken(self, constants: Sequence[Any], shake: Any, *arguments: Any) -> Any:
        """The function with every number that it computes from its first argument times 1 + shake, as rounding would have it."""
        leaves = _shaken(self.jaxpr, (*constants, *jax.tree.leaves(arguments)), {self.jaxpr.invars[0]}, shake)
        return jax.tree.unflatten(self.structure, leaves)

    def known_by(self) -> Hashable:
        """What decides the programs in which it is."""
        return self.key

    @property
    def out(self) -> Any:
        """Shapes and types of what is returned."""
        shapes = [jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in self.jaxpr.outvars]  # pyright: ignore[reportAttributeAccessIssue]
        return jax.tree.unflatten(self.structure, shapes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the one array that is returned."""
        return tuple(self.jaxpr.outvars[0].aval.shape)  # pyright: ignore[reportAttributeAccessIssue]


class Reading(NamedTuple):
    """A function that was traced: its equations, and the arrays it closed over."""

    function: Traced
    constants: tuple[Any, ...]


_known: WeakValueDictionary[Hashable, Traced] = WeakValueDictionary()


def trace(fn: Callable, *arguments: Any) -> Reading:
    """Trace `fn` at arguments of these shapes and types, always anew; the same equations give the same `Traced`."""
    with (
        warnings.catch_warnings()
    ):  # of what JAX remembers of an array from where 64-bit types were let in: see `_plain`
        warnings.filterwarnings("ignore", "Explicitly requested dtype", UserWarning)
        anew = jax.make_jaxpr(lambda *given: fn(*given), return_shape=True)  # a new function: never cached
        program, out = anew(*arguments)
        jaxpr, constants = _hoisted(_opened(program))
    structure = jax.tree.structure(out)
    key = (_key_of(jaxpr), structure)
    known = _known.get(key)
    if known is None:
        known = _known[key] = Traced(jaxpr, structure, key)
    return Reading(known, constants)


def evaluate_equation(jaxpr: Jaxpr, equation: JaxprEqn, operands: Sequence[Any]) -> list[Any]:
    """The results of one equation of a jaxpr."""
    given = {
        atom: value for atom, value in zip(equation.invars, operands, strict=True) if not isinstance(atom, Literal)
    }
    single = jaxpr.replace(constvars=[], invars=list(given), outvars=equation.outvars, eqns=[equation])
    return eval_jaxpr(single, (), *given.values())


def body_of(equation: JaxprEqn) -> ClosedJaxpr | None:
    """The one function that an equation calls as it is, without a rule of its own for derivatives."""
    if equation.primitive.name not in (*COMPILED, *CALLED):
        return None
    inner = equation.params.get("jaxpr", equation.params.get("call_jaxpr"))
    return ClosedJaxpr(inner, ()) if isinstance(inner, Jaxpr) else inner


class Loop(NamedTuple):
    """A `scan` taken apart: its body, and which of its operands are carried on and which are read row by row."""

    body: ClosedJaxpr
    constants: int
    carried: int
    length: int
    reverse: bool

    @classmethod
    def of(cls, equation: JaxprEqn) -> "Loop | None":
        if equation.primitive.name != "scan":
            return None
        given, body = equation.params, equation.params["jaxpr"]
        if "ft_in" in given:  # from JAX 0.11 on: three trees, of what is closed over, carried and read
            constants, carried = (len(part) for part in given["ft_in"].unpack()[:2])
            body = ClosedJaxpr(body, ()) if isinstance(body, Jaxpr) else body
        else:
            constants, carried = given["num_consts"], given["num_carry"]
        return cls(body, constants, carried, given["length"], given["reverse"])

    def moves(self, operands: Sequence[bool]) -> list[bool]:
        """Which operands move once what is carried has gone round, given which of them do at first."""
        moving = list(operands)
        while True:
            inside = {v for v, moves in zip(self.body.jaxpr.invars, moving, strict=True) if moves}
            out = [
                not isinstance(v, Literal) and v in _reached(self.body.jaxpr, inside) for v in self.body.jaxpr.outvars
            ]
            now = [
                moves or (self.constants <= i < self.constants + self.carried and out[i - self.constants])
                for i, moves in enumerate(moving)
            ]
            if now == moving:
                return moving
            moving = now

    def run(self, step: Callable, carry: Any, rows: Any) -> tuple[Any, Any]:
        """The loop with another body, (carry, row) -> (carry, out)."""
        return jax.lax.scan(step, carry, rows, length=self.length, reverse=self.reverse)


def _reached(jaxpr: Jaxpr, moving: set) -> set:
    """The variables that depend on those in `moving`, these among them."""
    for equation in jaxpr.eqns:
        if any(not isinstance(atom, Literal) and atom in moving for atom in equation.invars):
            moving = moving | set(equation.outvars)
    return moving


def _shaken_loop(loop: Loop, operands: Sequence[Any], carried: Sequence[bool], shake: Any) -> list[Any]:
    inside = {v for v, moves in zip(loop.body.jaxpr.invars, loop.moves(carried), strict=True) if moves}
    fixed, ends = operands[: loop.constants], loop.constants + loop.carried

    def step(carry, row):
        given = (*loop.body.consts, *fixed, *carry, *row)
        results = _shaken(loop.body.jaxpr, given, inside, shake)
        return tuple(results[: loop.carried]), tuple(results[loop.carried :])

    return list(sum(loop.run(step, tuple(operands[loop.constants : ends]), tuple(operands[ends:])), ()))


def _shaken(jaxpr: Jaxpr, arguments: Sequence[Any], moving: set, shake: Any) -> list[Any]:
    """Results of a jaxpr at its constants and arguments; branches, and functions with rules of their own, as a whole."""
    values: dict[Any, Any] = dict(zip((*jaxpr.constvars, *jaxpr.invars), arguments, strict=True))

    def read(atom: Any) -> Any:
        return atom.val if isinstance(atom, Literal) else values[atom]

    for equation in jaxpr.eqns:
        operands = [read(atom) for atom in equation.invars]
        carried = [not isinstance(atom, Literal) and atom in moving for atom in equation.invars]
        inner, loop = body_of(equation), Loop.of(equation)
        if inner is not None and any(carried):
            inside = {v for v, moves in zip(inner.jaxpr.invars, carried, strict=True) if moves}
            results = _shaken(inner.jaxpr, (*inner.consts, *operands), inside, shake)
        elif loop is not None and any(carried):
            results = _shaken_loop(loop, operands, carried, shake)
        else:
            results = evaluate_equation(jaxpr, equation, operands)
            if any(carried) and equation.primitive.name not in UNROUNDED:
                results = [_times(value, shake) for value in results]
        if any(carried):
            moving = moving | set(equation.outvars)
        values |= dict(zip(equation.outvars, results, strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def _times(value: Any, shake: Any) -> Any:
    return value * (1 + shake).astype(value.dtype) if jnp.issubdtype(value.dtype, jnp.inexact) else value


def _opened(program: ClosedJaxpr) -> ClosedJaxpr:
    """The equations with compiled functions that close over arrays written out: the arrays are the outer function's then."""
    if not any(_closes_over(equation) for equation in program.jaxpr.eqns):
        return program
    return jax.make_jaxpr(lambda *values: _written_out(program, values))(*map(_like, program.jaxpr.invars))


def _closes_over(equation: JaxprEqn) -> bool:
    if equation.primitive.name not in COMPILED:
        return False
    inner = equation.params["jaxpr"]
    return any(np.ndim(constant) for constant in inner.consts) or any(map(_closes_over, inner.jaxpr.eqns))


def _written_out(program: ClosedJaxpr, arguments: Sequence[Any]) -> list[Any]:
    jaxpr = program.jaxpr
    values: dict[Any, Any] = dict(zip(jaxpr.constvars, map(_plain, program.consts), strict=True))
    values |= dict(zip(jaxpr.invars, arguments, strict=True))

    def read(atom: Any) -> Any:
        return atom.val if isinstance(atom, Literal) else values[atom]

    for equation in jaxpr.eqns:
        operands = [read(atom) for atom in equation.invars]
        if _closes_over(equation):
            results = _written_out(equation.params["jaxpr"], operands)
        else:
            results = evaluate_equation(jaxpr, equation, operands)
        values |= dict(zip(equation.outvars, results, strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def _like(variable: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(variable.aval.shape, variable.aval.dtype)


def _hoisted(program: ClosedJaxpr) -> tuple[Jaxpr, tuple[Any, ...]]:
    """The equations with every array that they hold, literals too, taken out as constants; numbers stay."""
    jaxpr, constants = program.jaxpr, list(program.consts)
    variables, equations = list(jaxpr.constvars), []
    for equation in jaxpr.eqns:
        atoms = list(equation.invars)
        for i, atom in enumerate(atoms):
            if isinstance(atom, Literal) and np.ndim(atom.val):
                atoms[i] = type(equation.outvars[0])(atom.aval)  # a new variable
                variables.append(atoms[i])
                constants.append(atom.val)
        equations.append(equation if atoms == list(equation.invars) else equation.replace(invars=atoms))
    return jaxpr.replace(constvars=variables, eqns=equations), tuple(map(_plain, constants))


def _plain(constant: Any) -> Any:
    """An array as compiled programs take it: JAX's own, or a copy of numpy's, into which nobody can write.

    In the type that JAX sees now: what it remembers of an array may come from where 64-bit types were let in.
    """
    if isinstance(constant, jax.Array):
        return constant
    return np.array(constant, jax.dtypes.canonicalize_dtype(np.asarray(constant).dtype))


def _key_of(jaxpr: Jaxpr, rules: bool = True) -> Hashable:
    """The equations with variables numbered in the order in which they appear; without `rules`, values alone matter."""
    numbers: dict[Any, int] = {}

    def name(variable: Any) -> int:
        return numbers.setdefault(variable, len(numbers))

    def atom(value: Any) -> Hashable:
        if isinstance(value, Literal):
            return "number", str(value.aval), _value(value.val, rules)
        return name(value)

    head = tuple((name(v), str(v.aval)) for v in (*jaxpr.constvars, *jaxpr.invars))
    body = tuple(
        (
            equation.primitive,
            tuple(atom(value) for value in equation.invars),
            tuple((name(v), str(v.aval)) for v in equation.outvars),
            _parameters(jaxpr, equation, rules),
        )
        for equation in jaxpr.eqns
    )
    return len(jaxpr.constvars), head, body, tuple(atom(value) for value in jaxpr.outvars)


def _parameters(jaxpr: Jaxpr, equation: JaxprEqn, rules: bool) -> Hashable:
    parameters = equation.params
    if equation.primitive.name in RULES:
        body = tuple(_value(parameters[name], rules=False) for name in BODIES if name in parameters)
        return (body, _derivatives(jaxpr, equation)) if rules else body
    return tuple((name, _value(value, rules)) for name, value in sorted(parameters.items()) if name not in NAMES)


def _value(value: Any, rules: bool) -> Hashable:
    """A parameter of an equation, to be compared by value where it can be and by identity where not, as functions are."""
    if isinstance(value, ClosedJaxpr):
        return _key_of(value.jaxpr, rules), tuple(_value(np.asarray(constant), rules) for constant in value.consts)
    if isinstance(value, Jaxpr):
        return _key_of(value, rules)
    if isinstance(value, (tuple, list)):
        return type(value), tuple(_value(part, rules) for part in value)
    if isinstance(value, dict):
        return tuple((key, _value(part, rules)) for key, part in sorted(value.items()))
    if isinstance(value, (np.ndarray, np.generic, jax.Array)):
        array = np.asarray(value)
        return str(array.dtype), array.shape, array.tobytes()
    if isinstance(value, float):
        return "float", value.hex()  # -0.0 is not 0.0, and nan is nan
    try:
        hash(value)
    except TypeError:
        return _Same(value)
    return type(value), value


def _derivatives(jaxpr: Jaxpr, equation: JaxprEqn) -> Hashable:
    """What an equation with a rule for its derivatives computes where they are taken, up to the second; arrays it closes over
    are not moved.
    """
    avals: list[Any] = [atom.aval for atom in equation.invars]
    variables = [type(equation.outvars[0])(aval) for aval in avals]
    single = jaxpr.replace(
        constvars=[], invars=variables, outvars=equation.outvars, eqns=[equation.replace(invars=list(variables))]
    )
    closed_over = equation.params.get("num_consts", 0)
    moving = [i for i, aval in enumerate(avals) if i >= closed_over and jnp.issubdtype(aval.dtype, jnp.floating)]

    def bent(derivative: Callable, times: int, values: Sequence[Any]) -> Any:
        def along(*part):
            placed = list(values)
            for i, value in zip(moving, part, strict=True):
                placed[i] = value
            return bent(derivative, times - 1, placed)

        return derivative(along, [values[i] for i in moving]) if times else eval_jaxpr(single, (), *values)

    derivative = _forward if equation.primitive.name == "custom_jvp_call" else _backward
    try:
        program = jax.make_jaxpr(lambda *values: bent(derivative, 2, values))(*map(_like, equation.invars))
    except Exception:  # a rule that cannot be followed so far: nothing but itself is known to be the same
        return _Same(equation)
    return _value(program, rules=False)


def _forward(along: Callable, at: list[Any]) -> Any:
    return jax.jvp(along, tuple(at), tuple(map(jnp.cos, at)))


def _backward(along: Callable, at: list[Any]) -> Any:
    out, pull = jax.vjp(along, *at)
    return out, pull(jax.tree.map(jnp.cos, out))


class _Same:
    """Equal to nothing but the same object, which it keeps alive."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, _Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)

    def __reduce__(self):
        raise TypeError(f"{self!r} is known by what it is, which cannot be written down")

    def __repr__(self) -> str:
        return f"the same {type(self.value).__name__} {self.value!r}"
