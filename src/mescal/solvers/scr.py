"""SCR, stochastic cubic regularisation (Tripuraneni, Stern, Jin, Regier, Jordan 2018), as a sub-solver.

    d = argmin g.d + d'Bd/2 + (rho/6)|d|^3,    z+ = z + d

with g from n1 samples and B, of which only products are needed, from n2 others. Practical mode, inside epochs of one step
each. Deviations from the paper:

1. g is that of the reset: exact on finite populations, from a batch that the norm test sizes on streams;
2. the subproblem is solved exactly in a Krylov space of at most `products` dimensions instead of by gradient steps from a
   perturbed g, and n2 grows where fresh samples refute the step (`growing_subsample`);
3. rho is found, not given. It starts at L/R with R = max(1, |x|/10), where the cubic term bends as much as the quadratic
   one at the trust radius of the other solvers; a step that does not lead down raises it fourfold, one that does halves
   it again (the rule of ARC, by exact values or by paired differences);
4. the paper stops when the cubic model promises little; here the stop test and the search of `epoch` decide, and there is
   no final solve.
"""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp

from ..curvature import Lanczos, Search
from .epoch import EpochSolver, Inner
from .move import REACH, natural_radius
from .newton.cubic import cubic_step
from .newton.growing_subsample import sufficient_step
from .newton.quadratic_model import make_model

FORCING = 0.1  # of |g|: a residual of the cubic model that ends Lanczos ...
FINAL = 0.25  # ... or this of the tolerance


class Scr(EpochSolver):
    """Settings of SCR.

    **Arguments:**

    - `batch`: n2, thetas of a block of the sub-sample of the Hessian; smaller populations are looked at whole.
    - `blocks`: blocks of a sub-sample at most.
    - `products`: dimensions of the Krylov space.
    - `search`: the negative-curvature search.
    """

    name: ClassVar[str] = "scr"

    batch: int = eqx.field(static=True, default=512)
    blocks: int = eqx.field(static=True, default=4)
    products: int = eqx.field(static=True, default=20)
    period: int = eqx.field(static=True, default=1)
    search: Search = Lanczos()

    def recurse(self, oracle, reset, memory, target, key, budget):
        """One cubic step."""
        whole = oracle.population is not None and oracle.population <= self.batch
        batch = None if whole else self.batch
        model = make_model(oracle, reset, memory.smoothness, memory.trust, key, batch, self.blocks)
        radius = natural_radius(oracle.form.split(reset.z)[0])
        rho = memory.smoothness / (radius * memory.trust)
        enough = jnp.maximum(FORCING * jnp.linalg.norm(model.gradient), FINAL * target.gradient)
        cap = min(self.products, reset.z.size)
        step, _, work = sufficient_step(model, lambda of, size, _: cubic_step(model, of, size, rho, enough, cap))
        smoothness = jnp.where(step.top > 0, step.top, memory.smoothness)
        length = jnp.linalg.norm(oracle.form.split(step.d)[0])  # where H is nearly 0, so is rho, and nothing bounds d
        shorter = jnp.minimum(1, REACH * radius / jnp.maximum(length, jnp.finfo(length.dtype).tiny))
        return Inner(model.point(shorter * step.d), smoothness, jnp.int32(1), work)
