"""Physics-informed networks: min mean r(w; p)^2  s.t.  mean b(w; p)^2 <= bound; r is what an equation misses inside, b at edges.

    Helmholtz, on [-1, 1]^2:         r = (u_xx + u_yy + u - q) / |q|,  q = (1 - 2 pi^2) sin(pi x) sin(pi y);  b = u on the boundary
    Burgers, on [-1, 1] x [0, 1]:    r = u_t + u u_x - nu u_xx;  b = u + sin(pi x) at t = 0, and b = u at x = -1 and 1

u is a network of two hidden layers of tanh, and |q| the root mean square of q. Inside, points are those of the additive recurrence
p_n = (1/2 + n (1/g, 1/g^2)) mod 1, with g^3 = g + 1, which fill the square evenly (Roberts 2018); on edges they are equidistant.

The two equations are those on which constrained training is usually compared (Raissi, Perdikaris and Karniadakis 2019; Wang, Teng
and Perdikaris 2021), where edges come as a weighted penalty.

1. Each edge condition is a constraint with a bound in the units of u^2, in place of a weight.
2. Burgers has a larger viscosity by default than the usual 0.01/pi, whose front is too thin for so few points.
"""

from functools import partial
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np

from ..problem import E, Problem
from .linear_model import DTYPE
from .named import Entry, Instance, Parameter

PLASTIC = 1.3247179572447460  # g^3 = g + 1


def network(sizes: tuple[int, ...], w, p):
    """The output at one point of the plane; w holds, layer by layer, a matrix and the offsets below it."""
    at, h = 0, p
    for number, (rows, columns) in enumerate(pairwise(sizes)):
        layer = w[at : at + (rows + 1) * columns].reshape(rows + 1, columns)
        at += (rows + 1) * columns
        h = h @ layer[:-1] + layer[-1]
        h = h if number == len(sizes) - 2 else jnp.tanh(h)
    return h[0]


def start(sizes: tuple[int, ...], seed: int, dtype: str) -> np.ndarray:
    """Matrices of deviation sqrt(2 / (rows + columns)) (Glorot and Bengio 2010), offsets zero."""
    rng, layers = np.random.default_rng(seed), []
    for rows, columns in pairwise(sizes):
        layers += [rng.standard_normal((rows, columns)) * np.sqrt(2 / (rows + columns)), np.zeros((1, columns))]
    return np.concatenate([layer.ravel() for layer in layers]).astype(dtype)


def square(points: int) -> np.ndarray:
    """Evenly spread points of [0, 1]^2."""
    return (0.5 + np.arange(1, points + 1)[:, None] / PLASTIC ** np.array([1, 2])) % 1


def equidistant(points: int) -> np.ndarray:
    """Midpoints of as many parts of [0, 1]."""
    return (np.arange(points) + 0.5) / points


def _slopes(sizes: tuple[int, ...], w, p):
    """u, and its derivatives: (first, second) of each coordinate."""
    at = lambda z: network(sizes, w, z)

    def along(e):
        first = lambda z: jax.jvp(at, (z,), (e,))[1]
        return jax.jvp(first, (p,), (e,))

    axes = jnp.eye(2, dtype=p.dtype)
    return at(p), along(axes[0]), along(axes[1])


def helmholtz_residual(sizes, size, w, p):
    """Squared, relative to the source."""
    u, (_, xx), (_, yy) = _slopes(sizes, w, p)
    return (xx + yy + u - source(p)) ** 2 / size


def source(p):
    """q: what makes sin(pi x) sin(pi y) the solution."""
    return (1 - 2 * jnp.pi**2) * jnp.sin(jnp.pi * p[0]) * jnp.sin(jnp.pi * p[1])


def burgers_residual(sizes, nu, w, p):
    """Squared."""
    u, (x, xx), (t, _) = _slopes(sizes, w, p)
    return (t + u * x - nu * xx) ** 2


def off(sizes, w, row):
    """The squared distance of u from what it is to be at a point."""
    p, value = row
    return (network(sizes, w, p) - value) ** 2


def helmholtz(*, width: int, points: int, bound: float, seed: int, dtype: str) -> Instance:
    """One constraint: the boundary."""
    sizes, inside = (2, width, width, 1), (2 * square(points) - 1).astype(dtype)
    s = 2 * equidistant(max(1, points // 8)) - 1
    one = np.ones_like(s)
    edge = np.concatenate([np.column_stack(side) for side in ((s, one), (s, -one), (one, s), (-one, s))]).astype(dtype)
    size = float(np.mean(np.asarray(source(inside.T)) ** 2))
    problem = Problem(
        E(partial(helmholtz_residual, sizes, size), over=inside),
        {"boundary": E(partial(off, sizes), over=(edge, np.zeros(len(edge), dtype))) <= bound},
    )
    return Instance(problem, start(sizes, seed, dtype))


def burgers(*, width: int, points: int, bound: float, nu: float, seed: int, dtype: str) -> Instance:
    """Two constraints: where time begins, and where the place ends."""
    sizes, inside = (2, width, width, 1), (square(points) * [2, 1] - [1, 0]).astype(dtype)
    s = equidistant(max(1, points // 4))
    places = np.column_stack([2 * s - 1, np.zeros_like(s)]).astype(dtype)
    ends = np.concatenate([np.column_stack([np.full_like(s, x), s]) for x in (-1, 1)]).astype(dtype)
    problem = Problem(
        E(partial(burgers_residual, sizes, nu), over=inside),
        {
            "start": E(partial(off, sizes), over=(places, -np.sin(np.pi * places[:, 0]))) <= bound,
            "ends": E(partial(off, sizes), over=(ends, np.zeros(len(ends), dtype))) <= bound,
        },
    )
    return Instance(problem, start(sizes, seed, dtype))


COMMON = {
    "width": Parameter(12, "of both hidden layers", low=1),
    "points": Parameter(256, "inside, where the equation is asked for", low=8),
    "bound": Parameter(1e-3, "on the mean square of what the edges miss", low=0),
    "seed": Parameter(0, "of the network's start", low=0),
    "dtype": DTYPE,
}

PROBLEMS = (
    Entry(
        "physics/helmholtz", helmholtz, "A network that solves a Helmholtz equation, its boundary a constraint", COMMON
    ),
    Entry(
        "physics/burgers",
        burgers,
        "A network that solves Burgers' equation, its start and its ends constraints",
        COMMON | {"nu": Parameter(0.05, "the viscosity", low=0)},
    ),
)
