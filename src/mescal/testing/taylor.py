"""Taylor checks of a problem's functions: the remainder after k terms must shrink like t^(k+1).

For a function phi and a direction v:  |phi(x + t v) - phi(x) - t phi'v|  has slope 2 in t, and with  t^2/2 v'phi''v
taken off as well, slope 3. A kink, a wrong custom derivative or a number rounded to float32 breaks the slope.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..problem import Problem, Rows, RowStream, Sampler, Source

ROWS = 32  # samples of each source on which functions are checked
STEPS = 2.0 ** -np.arange(2, 12)  # step lengths relative to max(1, |x|): far from rounding in float64 for both slopes
SLACK = 0.35  # how far below 2 or 3 a fitted slope may stay: what the next Taylor term does to these steps


@dataclass(frozen=True)
class Slopes:
    """Fitted slopes of one function: about 2 and 3 if it is smooth and its derivatives are right."""

    name: str
    first: float
    second: float

    @property
    def good(self) -> bool:
        """Whether both slopes are what Taylor's theorem asks for (infinite where the remainder vanishes)."""
        return self.first >= 2 - SLACK and self.second >= 3 - SLACK


def taylor_slopes(problem: Problem, x: Any, *, seed: int = 0) -> tuple[Slopes, ...]:
    """Slopes for the objective and for every row of the constraints at x, in float64, along a random direction."""
    program, vector = problem.bind(x)
    rng = np.random.default_rng(seed)
    with jax.enable_x64(True):
        point = jnp.asarray(vector, jnp.float64)
        v = jnp.asarray(rng.standard_normal(vector.size))
        v = v / jnp.linalg.norm(v) * max(1.0, float(np.linalg.norm(vector)))
        rows = [_some_rows(source, rng) for source in problem.sources]
        places = [(k, g, rows[s]) for k, family in enumerate(program.families) for g, s in enumerate(family.members)]

        @jax.jit
        def along(t):
            objective, constraints = program.deterministic(point + t * v)
            for k, member, part in places:
                f, c = program.contribution(k, point + t * v, part, member)
                objective = objective + jnp.mean(f)
                constraints = constraints + program.spread(k, jnp.mean(c, axis=0), member)
            return jnp.concatenate([objective[None], constraints])

        zero = jnp.zeros(())
        slope = jax.jacfwd(along)
        values = np.asarray([along(jnp.asarray(t)) for t in STEPS])
        start, first, second = (np.asarray(part) for part in (along(zero), slope(zero), jax.jacfwd(slope)(zero)))
    names = ["objective"]
    for name, of in zip(program.layout.names, program.layout.slices, strict=True):
        width = of.stop - of.start
        names += [name] if width == 1 else [f"{name}[{i}]" for i in range(width)]
    t = STEPS[:, None]
    linear = np.abs(values - start - t * first)
    quadratic = np.abs(values - start - t * first - t**2 / 2 * second)
    rounding = 64 * np.finfo(float).eps * np.maximum(np.abs(values).max(0), np.abs(first) + np.abs(second))
    return tuple(
        Slopes(name, _slope(linear[:, j], rounding[j]), _slope(quadratic[:, j], rounding[j]))
        for j, name in enumerate(names)
    )


def check_derivatives(problem: Problem, x: Any, *, seed: int = 0):
    """Raise an AssertionError that names the function if a Taylor slope at x is off."""
    for slopes in taylor_slopes(problem, x, seed=seed):
        assert slopes.good, (
            f"{slopes.name}: Taylor slopes {slopes.first:.2f} and {slopes.second:.2f}, expected 2 and 3: the function is "
            "not smooth here, a custom derivative is wrong, or something inside is rounded to float32"
        )


def _slope(remainder: np.ndarray, rounding: float) -> float:
    """The largest slope between neighbouring steps whose remainders are both well above rounding, by their median."""
    usable = remainder > rounding
    if usable.sum() < 3:
        return np.inf
    pairs = usable[1:] & usable[:-1]
    return float(np.median(np.log2(remainder[:-1][pairs] / remainder[1:][pairs])))


def _some_rows(source: Source, rng: np.random.Generator) -> Rows:
    if isinstance(source, Sampler):
        keys = jax.random.split(jax.random.key(int(rng.integers(2**31)), impl="threefry2x32"), ROWS)
        return Rows(jax.vmap(source.draw)(keys))
    if isinstance(source, RowStream):
        source = source.population
    chosen = np.sort(rng.choice(source.size, min(ROWS, source.size), replace=False))

    def take(part):
        return jnp.asarray(part.astype(np.float64) if np.issubdtype(part.dtype, np.floating) else part)

    return jax.tree.map(take, source.at(chosen))
