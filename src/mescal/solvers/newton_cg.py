"""Sub-sampled Newton-CG: truncated conjugate gradients on the Hessian, negative curvature followed where met.

Practical mode, inside epochs of one Newton step each: the gradient is that of the reset. The Hessian is that of a sub-sample,
which grows where fresh samples refute the step. Whether a step led down is the question of the reset that follows: by exact values,
or by paired differences on common samples; if it did not, the trust radius shrinks. Populations of at most `exact` thetas are
looked at whole: `exact_newton`.
"""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp

from ..curvature import Lanczos, Search
from .epoch import EpochSolver, Inner
from .move import REACH, natural_radius
from .newton.exact_newton import ExactNewton
from .newton.growing_subsample import sufficient_step
from .newton.quadratic_model import make_model
from .newton.truncated_cg import truncated_cg

FORCING = 0.1  # of |g|: a residual that ends CG ...
FINAL = 0.5  # ... or this of the tolerance


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

    def sized(self, population):
        """On a population that is looked at whole: Newton's method around exact looks."""
        if population is not None and population <= self.exact:
            return ExactNewton(products=self.products, search=self.search)
        return self

    def recurse(self, oracle, reset, memory, target, key, budget):
        """One step."""
        model = make_model(oracle, reset, memory.smoothness, memory.trust, key, self.batch, self.blocks)
        radius = REACH * memory.trust * natural_radius(oracle.form.split(reset.z)[0])
        enough = jnp.maximum(FORCING * jnp.linalg.norm(model.gradient), FINAL * target.gradient)
        cap = min(self.products, reset.z.size)
        step, _, work = sufficient_step(
            model, lambda of, size, start: truncated_cg(model, of, size, start, radius, enough, cap)
        )
        smoothness = jnp.where(step.top > 0, step.top, memory.smoothness)
        return Inner(model.point(step.d), smoothness, jnp.int32(1), work)
