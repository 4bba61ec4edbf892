"""Sub-sampled Newton-CG: truncated conjugate gradients on the Hessian, negative curvature followed where met.

Practical mode, inside epochs of one Newton step each: the gradient is that of the reset. On populations of at most `exact`
thetas the Hessian is exact, and so are the values by which the length of a step is chosen: exact Newton-CG. On larger
ones and on streams the Hessian is that of a sub-sample, which grows where fresh samples refute the step. Whether a step
led down is the question of the reset that follows: by exact values, or by paired differences on common samples; if it did
not, the trust radius shrinks.
"""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from ..curvature import Lanczos, Search
from ..oracle import Work
from .epoch import EpochSolver, Inner
from .model import Model, make_model
from .move import REACH, natural_radius
from .reset import rounding_of
from .subsample import Step, sufficient_step
from .truncated_cg import truncated_cg

FORCING = 0.1  # of |g|: a residual that ends CG ...
FINAL = 0.5  # ... or this of the tolerance
ARMIJO = 1e-4  # of the model's decrease: what an exact step must bring
SHRINK = 0.25  # factor on a step that does not bring it ...
STRETCH = 2.0  # ... and on one that ended at the boundary and does ...
LONGEST = 8.0  # ... up to this: further out, a flat region looks like a way down
TRIES = 8  # lengths of an exact step


class NewtonCG(EpochSolver):
    """Settings of Newton-CG.

    **Arguments:**

    - `batch`: thetas of a block of the sub-sample of the Hessian.
    - `blocks`: blocks of a sub-sample at most.
    - `products`: Hessian-vector products of one solve by CG.
    - `exact`: populations up to this size are looked at whole.
    - `search`: the negative-curvature search.
    """

    name: ClassVar[str] = "newton-cg"

    batch: int = eqx.field(static=True, default=1024)
    blocks: int = eqx.field(static=True, default=4)
    products: int = eqx.field(static=True, default=40)
    exact: int = eqx.field(static=True, default=8192)
    period: int = eqx.field(static=True, default=1)
    search: Search = Lanczos()

    def recurse(self, oracle, reset, memory, target, key, budget):
        """One step."""
        whole = oracle.population is not None and oracle.population <= self.exact
        batch = None if whole else self.batch
        model = make_model(oracle, reset, memory.smoothness, memory.trust, key, batch, self.blocks)
        radius = REACH * memory.trust * natural_radius(oracle.form.split(reset.z)[0])
        enough = jnp.maximum(FORCING * jnp.linalg.norm(model.gradient), FINAL * target.gradient)
        cap = min(self.products, reset.z.size)
        step, _, work = sufficient_step(
            model, lambda of, size, start: truncated_cg(model, of, size, start, radius, enough, cap)
        )
        moved = model.point(step.d)
        if whole:
            moved, spent = exact_length(model, step)
            work = work + spent
        smoothness = jnp.where(step.top > 0, step.top, memory.smoothness)
        return Inner(moved, smoothness, jnp.int32(1), work)


def exact_length(model: Model, step: Step) -> tuple[jax.Array, Work]:
    """Along a step by exact values: shorter until it leads down; longer while it leads further from the boundary."""
    value, dtype = model.reset.value, model.gradient.dtype
    decrease = -(model.gradient @ step.d + step.d @ step.product / 2)
    slack = rounding_of(model.reset)

    def going(state):
        tries, *_, done, _ = state
        return (tries < TRIES) & ~done

    def body(state):
        tries, length, best, lowest, _, work = state
        reached, spent = model.oracle.exact_value(model.point(length * step.d))
        wanted = jnp.where(best > 0, lowest, value - ARMIJO * length * decrease + slack)
        better = reached <= wanted
        done = (better | (best > 0)) & ~(better & step.boundary & (length >= 1) & (length < LONGEST))
        best, lowest = jnp.where(better, length, best), jnp.where(better, reached, lowest)
        return tries + 1, length * jnp.where(better, STRETCH, SHRINK), best, lowest, done, work + spent

    start = (jnp.int32(0), jnp.ones((), dtype), jnp.zeros((), dtype), value, jnp.asarray(False), Work.zero())
    _, length, best, _, _, work = jax.lax.while_loop(going, body, start)
    return model.point(jnp.where(best > 0, best, length) * step.d), work
