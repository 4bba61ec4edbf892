"""Cases of the fuzz: a grammar of smooth functions, sets, constraints, scales and types, and points on the edge of passing.

A case is what a few numbers say (`Shape`, `Draw`, both ready for JSON): shapes share their programs, draws change data alone.
f = h E[sum_k w_k phi_k(b_k + a_k . x)] + g . x + q |x|^2 / 2, constraints like the first term; g makes the Lagrangian's gradient
what the draw wants it to be, q its smallest curvature on the critical cone: often some thousandths beside the tolerance.
"""

import json
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st

import mescal
from mescal import E, Tolerance, sets

from .reference import CLOSED, LONG, faces, looked, null_space, project, smallest, summed

ROUNDED = 2.0**-48  # of what a row is a sum of: shorter ones are rounding
ROWS = 8
PHI = {
    "linear": lambda u: u,
    "square": lambda u: u * u / 2,
    "cube": lambda u: u**3 / 6,
    "fourth": lambda u: u**4 / 24,
    "sine": jnp.sin,
    "exponential": lambda u: jnp.exp(u / 3),
    "logarithm": lambda u: jnp.log1p(u * u),
    "tanh": jnp.tanh,
    "softplus": jax.nn.softplus,
}
DOMAINS = ("reals", "box", "nonnegative", "ball", "half-space")


@dataclass(frozen=True)
class Shape:
    """What is compiled: terms of f and of every constraint, kinds, number of parameters, set, source and type of the data."""

    size: int
    terms: tuple[str, ...]
    constraints: tuple[tuple[str, str], ...]  # kind and term
    domain: str
    stream: bool
    dtype: str


@dataclass(frozen=True)
class Draw:
    """What is data: a seed, exponents of scales, and what the point is to be."""

    seed: int
    stretch: int  # powers of ten: of directions, of f, of the constraints
    height: int
    factor: int
    often: int  # a constraint is stated as often E(q) - (often - 1) E(q)
    gradient: float  # of the tolerance: what is left of the gradient
    curvature: float  # of the tolerance: the smallest curvature
    multiplier: float
    offset: float  # of the constraint from zero
    push: float  # of the tolerance: multipliers of active bounds
    given: bool  # whether multipliers are handed to the judge
    cancel: bool  # rows that nearly cancel
    units: tuple[int, ...] = (0, 0)  # powers of ten beside `factor`, one per constraint


names = st.sampled_from(sorted(CLOSED))
shapes = st.builds(
    Shape,
    size=st.integers(1, 4),
    terms=st.lists(names, min_size=1, max_size=3).map(tuple),
    constraints=st.lists(st.tuples(st.sampled_from(["==", "<="]), names), max_size=2).map(tuple),
    domain=st.sampled_from(DOMAINS),
    stream=st.sampled_from([False] * 7 + [True]),
    dtype=st.sampled_from(["float64", "float64", "float32"]),
)
near_one = st.sampled_from([0.0, 0.5, 0.999, 1.001, 2.0, 100.0])
draws = st.builds(
    Draw,
    seed=st.integers(0, 2**32 - 1),
    stretch=st.one_of(st.just(0), st.integers(-12, 12)),
    height=st.one_of(st.just(0), st.integers(-12, 12)),
    factor=st.one_of(st.just(0), st.integers(-12, 12)),
    often=st.sampled_from([1, 1, 1000, 10**7, 10**10]),
    gradient=near_one,
    curvature=st.one_of(near_one, near_one.map(lambda t: -t)),
    multiplier=st.sampled_from([0.0, 1e-9, 1e-4, 1.0, 30.0, -1.0]),
    offset=st.sampled_from([0.0, 0.0, 1e-9, -1e-9, 0.5]),
    push=st.sampled_from([0.0, 1e-9, 0.999, 1.001, 100.0, -1.0]),
    given=st.booleans(),
    cancel=st.booleans(),
    units=st.one_of(st.just((0, 0)), st.tuples(st.integers(-6, 6), st.integers(-6, 6))),
)


def stored(shape: Shape, draw: Draw) -> str:
    """A case as text."""
    return json.dumps({"shape": asdict(shape), "draw": asdict(draw)}, indent=1)


def restored(text: str) -> tuple[Shape, Draw]:
    """A case from text."""
    content = json.loads(text)
    shape = content["shape"]
    shape["terms"] = tuple(shape["terms"])
    shape["constraints"] = tuple(tuple(c) for c in shape["constraints"])
    draw = content["draw"]
    return Shape(**shape), Draw(**draw | {"units": tuple(draw.get("units", (0, 0)))})


@cache
def function(terms: tuple[str, ...]) -> Any:
    """The function of a row, of shape (k, 2 + d) with columns w, b, a."""

    def fn(x, r):
        u = r[:, 2:] @ x + r[:, 1]
        return sum(r[k, 0] * PHI[name](u[k]) for k, name in enumerate(terms))

    return fn


def tilt(x, r):
    """g . x + q |x|^2 / 2."""
    return r[1:] @ x + r[0] * (x @ x) / 2


def drawn(key, rows, edges):
    """A row with its probability."""
    return rows[jnp.searchsorted(edges, jax.random.uniform(key))]


@dataclass
class Case:
    """A problem, a point and a tolerance, with everything that the reference knows of them."""

    problem: mescal.Problem
    x: np.ndarray
    tolerance: Tolerance
    multipliers: np.ndarray | None
    kinds: tuple[str, ...]
    parts: Any  # f, g, H and c, J, K in 80 bits
    domain: Any  # equalities, one-sided rows, and what each adds to the Hessian per unit of its multiplier
    sizes: Any  # lengths of which each row of J is a sum


def make(shape: Shape, draw: Draw) -> Case:
    """The case of a shape and a draw."""
    rng = np.random.default_rng(draw.seed)
    stretch, height, factor = (10.0**e for e in (draw.stretch, draw.height, draw.factor))
    dtype, d = np.dtype(shape.dtype), shape.size
    if dtype == np.float32:  # what its numbers hold
        stretch, height = stretch ** (1 / 3), height ** (1 / 3)
    x, domain, cone = _placed(shape.domain, rng, stretch, d, dtype)
    every = [shape.terms, *((term,) for _, term in shape.constraints)]
    data = [_rows(rng, len(terms), d, stretch, draw.cancel).astype(dtype) for terms in every]
    weights = np.full(ROWS, 1 / ROWS)
    if shape.stream:
        rare = rng.choice([0.3, 1e-2, 2e-3])
        weights = np.append(np.full(ROWS - 1, (1 - rare) / (ROWS - 1)), rare)
    tolerance = Tolerance(1e-3 * height * stretch, 1e-3 * height * stretch**2)
    exact = LONG(x.astype(np.float64))
    f = [LONG(height) * part for part in looked(shape.terms, data[0].astype(np.float64), weights, exact)]
    often = float(draw.often)
    factors = [factor * 10.0**unit for unit, _ in zip(draw.units, shape.constraints, strict=False)]
    rises, falls = [f * often for f in factors], [f * (often - 1) for f in factors]
    coefficients = [LONG(rise) - LONG(fall) for rise, fall in zip(rises, falls, strict=True)]
    c = [
        looked((term,), rows.astype(np.float64), weights, exact)
        for (_, term), rows in zip(shape.constraints, data[1:], strict=True)
    ]
    sizes = [
        (abs(LONG(rise)) + abs(LONG(fall))) * summed((term,), rows.astype(np.float64), weights, exact)
        for rise, fall, (_, term), rows in zip(rises, falls, shape.constraints, data[1:], strict=True)
    ]
    levels = [float(value) - draw.offset * (1 + abs(float(value))) for value, _, _ in c]
    shifts = [factor * level for factor, level in zip(factors, levels, strict=True)]
    c = [(a * v - LONG(s), a * J, a * K) for a, (v, J, K), s in zip(coefficients, c, shifts, strict=True)]
    lam = draw.multiplier * height / np.array(factors)
    lam = np.where([kind == "<=" and draw.offset > 0 for kind, _ in shape.constraints], 0.0, lam)
    along = sum((LONG(m) * J for m, (_, J, _) in zip(lam, c, strict=True)), np.zeros(d, LONG))
    bent = sum((LONG(m) * K for m, (_, _, K) in zip(lam, c, strict=True)), np.zeros((d, d), LONG))
    equalities, sides, _ = cone
    normal = sum((LONG(draw.push * tolerance.gradient) * row for row in sides), np.zeros(d, LONG))
    left = rng.normal(size=d)
    left = LONG(draw.gradient * tolerance.gradient * left / np.linalg.norm(left))
    held = [np.array([J for _, J, _ in c], LONG).reshape(-1, d), *([sides] if draw.push > 1 else [])]
    space = null_space(np.concatenate([equalities, *held]))
    low = smallest(f[2] + bent, np.concatenate([equalities, *held]), sides[:0]) if space.shape[1] else LONG(0)
    q = float(LONG(draw.curvature * tolerance.curvature) - (low if np.isfinite(low) else 0))
    g = (-along - normal - left - f[1] - LONG(q) * exact).astype(np.float64)
    row = np.concatenate([[q], g])
    f = [
        f[0] + LONG(g) @ exact + LONG(q) * (exact @ exact) / 2,
        f[1] + LONG(g) + LONG(q) * exact,
        f[2] + LONG(q) * np.eye(d, dtype=LONG),
    ]
    sources = [_source(shape, rows, weights) for rows in data]
    objective = height * E(function(shape.terms), over=sources[0]) + E(tilt, over=row[None])
    constraints = {}
    for j, ((kind, term), source) in enumerate(zip(shape.constraints, sources[1:], strict=True)):
        mean = E(function((term,)), over=source)
        body = rises[j] * mean - falls[j] * mean - shifts[j] if falls[j] else rises[j] * mean - shifts[j]
        constraints[f"c{j}"] = body == 0 if kind == "==" else body <= 0
    problem = mescal.Problem(objective, constraints, domain)
    kinds = tuple(kind for kind, _ in shape.constraints)
    return Case(problem, x, tolerance, lam if draw.given else None, kinds, (f, c), cone, sizes)


def _rows(rng, terms, d, stretch, cancel):
    rows = rng.normal(size=(ROWS, terms, 2 + d))
    if cancel:
        rows[ROWS // 2 :] = rows[: ROWS // 2]
        rows[ROWS // 2 :, :, 0] *= -(1 + 1e-9 * rng.normal(size=(ROWS // 2, terms)))
    rows[:, :, 2:] *= stretch
    return rows


def _source(shape, rows, weights):
    if not shape.stream:
        return rows
    table, edges = rows.copy(), np.cumsum(weights)[:-1].astype(np.float32)
    return mescal.Sampler(lambda key: drawn(key, jnp.asarray(table), jnp.asarray(edges)))


def _placed(kind, rng, stretch, d, dtype):
    """A point, a set that it lies in, and the tangent cone there: equalities, rows <= 0, and their bending."""
    x = (rng.normal(size=d) / stretch).astype(dtype)
    active = rng.integers(0, 3, d)
    nothing, one = np.zeros((0, d), LONG), np.eye(d, dtype=LONG)
    if kind == "box":
        low = np.where(active == 0, x, x - dtype.type(1 / stretch)).astype(dtype)
        high = np.where(active == 2, x, x + dtype.type(1 / stretch)).astype(dtype)
        sides = np.concatenate([-one[active == 0], one[active == 2]])
        return x, sets.Box(low, high), (nothing, sides, np.zeros(len(sides), LONG))
    if kind == "nonnegative":
        x = np.where(active == 0, 0, np.abs(x)).astype(dtype)
        return x, sets.NonNegative(), (nothing, -one[x == 0], np.zeros(int((x == 0).sum()), LONG))
    if kind == "ball":
        radius = float(np.linalg.norm(x.astype(np.float64)))
        x = (x.astype(np.float64) * (1 if active[0] else 0.5)).astype(dtype)
        if not active[0]:
            return x, sets.Ball(radius), (nothing, nothing, np.zeros(0, LONG))
        unit = LONG(x.astype(np.float64)) / np.sqrt(LONG(x.astype(np.float64)) @ LONG(x.astype(np.float64)))
        return x, sets.Ball(radius), (nothing, unit[None], np.array([1 / LONG(radius)]))
    if kind == "half-space":
        normal = rng.integers(-2, 3, d).astype(float)
        normal[0] = 1.0
        x = np.round(x * stretch * 64) / 64 / stretch
        x = x.astype(dtype)
        level = float(normal @ x.astype(np.float64)) + (0 if active[0] else 1 / stretch)
        row = LONG(normal / np.linalg.norm(normal))[None]
        return (
            x,
            sets.HalfSpace(normal, level),
            (nothing, row if active[0] else nothing, np.zeros(int(active[0] > 0), LONG)),
        )
    return x, sets.Reals(), (nothing, nothing, np.zeros(0, LONG))


def truth(case: Case, found: mescal.Certificate) -> dict[str, float]:
    """The three measures in 80 bits, at the multipliers and slacks that a certificate reports."""
    (_, g, H), c = case.parts
    d, m = len(g), len(c)
    lam = np.array([LONG(float(found.multipliers[f"c{j}"])) for j in range(m)], LONG)
    slack = np.array([LONG(float(found.slack.get(f"c{j}", 0.0))) for j in range(m)], LONG)
    inequality = np.array([kind == "<=" for kind in case.kinds], bool)
    J = np.array([row for _, row, _ in c], LONG).reshape(m, d)
    values = np.array([value for value, _, _ in c], LONG)
    equalities, sides, bends = case.domain
    v = -(g + lam @ J) if m else -g
    moved = project(equalities, sides, v)
    wrong = inequality & ((lam < 0) | ((slack > 0) & (lam != 0)))
    strong = LONG(case.tolerance.gradient)
    pushes = _pushes(equalities, sides, v - moved)
    hessian = H + sum((lam[j] * c[j][2] for j in range(m)), np.zeros((d, d), LONG))
    at_zero = inequality & (slack <= 0)
    rows = np.concatenate([sides, J[at_zero]])
    multipliers = np.concatenate([pushes, lam[at_zero]])
    always = np.concatenate([J[~inequality], equalities])
    # a row within the rounding of float64 is one of the cone, which is then no larger, but lets nothing go
    known = np.sqrt((J**2).sum(1)) > ROUNDED * np.array(case.sizes, LONG).reshape(m)
    firm = np.concatenate([J[~inequality & known], equalities])
    curvature = np.inf
    for held in faces(rows, multipliers, firm, strong, len(sides)):
        bent = hessian + (pushes * bends)[held[: len(sides)]].sum() * np.eye(d, dtype=LONG)
        # lengths are those of x
        curvature = min(curvature, smallest(bent, np.concatenate([always, rows[held]]), rows[~held]))
    return {
        "stationarity": np.inf if wrong.any() else float(np.sqrt(moved @ moved)),
        "feasibility": float(np.sqrt((values + slack) @ (values + slack))),
        "curvature": float(curvature),
    }


def _pushes(equalities, sides, normal):
    """mu >= 0 with sides' mu + equalities' nu = normal, for rows that are orthogonal to each other."""
    return np.maximum(sides @ normal, 0) if len(sides) else np.zeros(0, LONG)
