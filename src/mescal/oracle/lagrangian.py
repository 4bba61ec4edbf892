"""The augmented Lagrangian of a problem as an oracle:  L(z) = f + lam . c + (al/2) |c|^2  in z = (x, s).

Solvers see value, gradient, gradient difference, Hessian-vector product and projection, each estimate with its price,
and never the word "constraint". Multipliers, penalty, scales and batch sizes are leaves or traced arguments; data are
arguments; the micro-batch size and the surrogate are static.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from ..errors import InputError
from ..problem import EqualityForm, Rows
from . import exact
from .access import Data, replicated
from .batch import masked, single_chunk, sum_over_batch
from .draw import draw_rows
from .surrogates import Surrogate, shares
from .work import Work


class Exact(NamedTuple):
    """The augmented Lagrangian at a point, without noise: value, gradient, the constraint, its Jacobian if at hand."""

    value: jax.Array
    gradient: jax.Array
    constraint: jax.Array
    jacobian: jax.Array | None


class Estimate(NamedTuple):
    """One large batch, told apart: the unbiased gradient of L, and the mean constraint with its variance and Jacobian."""

    objective: jax.Array
    gradient: jax.Array
    constraint: jax.Array
    constraint_variance: jax.Array  # of the mean
    jacobian: jax.Array


class Lagrangian(eqx.Module):
    """The subproblem of one outer iteration."""

    form: EqualityForm
    data: tuple[Data | None, ...]
    multipliers: jax.Array
    penalty: jax.Array
    surrogate: Surrogate = eqx.field(static=True)
    micro: int = eqx.field(static=True, default=1024)

    # ---- what a solver may ask about space

    @property
    def size(self) -> int:
        """The number of variables."""
        return self.form.size

    @property
    def population(self) -> int | None:
        """Thetas in a full pass; None where a source is a stream."""
        return self.form.program.population

    def project(self, z: jax.Array) -> jax.Array:
        """Projection onto X x {s >= 0}."""
        return self.form.project(z)

    def project_tangent(self, z: jax.Array, v: jax.Array) -> jax.Array:
        """Projection of v onto the tangent cone at z."""
        return self.form.project_tangent(z, v)

    def project_face(self, z: jax.Array, v: jax.Array) -> jax.Array:
        """Projection of v onto the span of the face on which z lies."""
        return self.form.project_face(z, v)

    # ---- estimates from n samples

    def value(self, z: jax.Array, key: jax.Array, n: Any) -> tuple[jax.Array, Work]:
        """An unbiased estimate of L(z) from n thetas."""
        total = self._total(z, key, self._check(n))

        def body(start, count, mask):
            objective, first = self._first(z, key, start, count)
            return jnp.sum(masked(self._shares(z, objective, first, total, key, start, n, mask)[0], mask))

        values = self.surrogate.draws + self._repeats(n)
        return self._over_batch(body, n), self._work(n, "value", values=values)

    def gradient(self, z: jax.Array, key: jax.Array, n: Any) -> tuple[jax.Array, Work]:
        """An unbiased estimate of grad L(z) from n thetas."""
        total = self._total(z, key, self._check(n))
        return self._pull(z, total, key, n), self._gradient_work(n)

    def difference(self, z: jax.Array, previous: jax.Array, key: jax.Array, n: Any) -> tuple[jax.Array, Work]:
        """grad l_S(z) - grad l_S(previous) on the same n thetas; counts 2n."""
        both = jax.vmap(lambda y: self.gradient(y, key, n)[0])(jnp.stack([z, previous]))
        work = self._gradient_work(n)
        return both[0] - both[1], work + work

    def hvp(self, z: jax.Array, v: jax.Array, key: jax.Array, n: Any) -> tuple[jax.Array, Work]:
        """An unbiased estimate of grad^2 L(z) v from n thetas: the derivative of the gradient estimate."""
        total, change = jax.jvp(lambda y: self._total(y, key, self._check(n)), (z,), (v,))
        product = jax.jvp(lambda y, t: self._pull(y, t, key, n), (z, total), (v, change))[1]
        evaluations = self.surrogate.draws + self._repeats(n)
        if self.surrogate.symmetrised and self.form.constraints:
            first = jax.jvp(lambda y: self._sum(y, key, n, 0), (z,), (v,))[1]
            product = product + self._pull_second(z, self.penalty / 2 * first / n, key, n)
            evaluations += 2
        return product, self._work(n, "hvp", values=evaluations, gradients=evaluations, hvps=1)

    def path_hvp(self, z: jax.Array, previous: jax.Array, key: jax.Array, n: Any) -> tuple[jax.Array, Work]:
        """sum_j H(previous + (j-1)/n dz; theta_j) dz/n over j = 1..n, dz = z - previous: estimates the gradient's change.

        Every point of the path has one theta of its own, so the product c . c is that of `pair` whatever the surrogate.
        """
        step, count = z - previous, jnp.asarray(n, z.dtype)

        def gradient(y, first, second):
            (objective, rows), pull = jax.vjp(lambda x: self.form.evaluate(x, first, 1), y)
            weight = jnp.broadcast_to(self.multipliers, rows.shape)
            if self.form.constraints:
                weight = weight + self.penalty * self.form.evaluate(y, second, 1)[1]
            return pull((jnp.ones_like(objective), weight))[0]

        def product(position, first, second):
            first, second = jax.tree.map(lambda leaf: leaf[None], (first, second))
            y = previous + position.astype(z.dtype) / count * step
            return jax.jvp(lambda x: gradient(x, first, second), (y,), (step,))[1]

        def body(start, size, mask):
            first = draw_rows(self.form.program, self.data, key, start, size)
            second = self._constraint_samples(key, start, size, 1)
            products = jax.vmap(product)(start + jnp.arange(size), first, second)
            return jnp.sum(masked(products, mask), axis=0) / count

        return self._over_batch(body, n), self._work(n, "hvp", values=2, gradients=2, hvps=1)

    def constraint(self, z: jax.Array, key: jax.Array, n: Any) -> tuple[jax.Array, Work]:
        """The mean of C(z) over n samples: what the dual update needs."""
        return self._sum(z, key, n, 0) / n, self._work(n, "value", values=1)

    def estimate(self, z: jax.Array, key: jax.Array, n: Any) -> tuple[Estimate, Work]:
        """Gradient (U-statistic), constraint and Jacobian from one batch in one pass; counts n gradients.

        grad L ~ mean dF + J'lam + al (n J'c - mean J_i'C_i) / (n - 1), with J and c the means over the batch.
        """
        m, count = self.form.constraints, jnp.asarray(n, z.dtype)

        def body(start, size, mask):
            drawn = draw_rows(self.form.program, self.data, key, start, size)
            (objective, rows), pull = jax.vjp(lambda y: self.form.evaluate(y, drawn, size), z)
            nothing = jnp.zeros_like(objective)
            own = pull((masked(jnp.ones_like(objective), mask), jnp.zeros_like(rows)))[0]
            product = pull((nothing, masked(rows, mask)))[0]
            basis = jnp.broadcast_to(jnp.eye(m, dtype=z.dtype)[:, None], (m, *rows.shape))
            jacobian = jax.vmap(lambda row: pull((nothing, masked(row, mask)))[0])(basis).reshape(m, z.size)
            kept = masked(rows, mask)
            mean = jnp.sum(masked(objective, mask))
            return mean, own, product, jacobian, jnp.sum(kept, axis=0), jnp.sum(kept * kept, axis=0)

        parts = (part / count for part in self._over_batch(body, n))
        objective, own, product, jacobian, total, squares = parts
        penalised = (count * (total @ jacobian) - product) / (count - 1)
        gradient = own + self.multipliers @ jacobian + self.penalty * penalised
        variance = jnp.maximum(squares - total**2, 0) / (count - 1)
        work = self._work(n, "gradient", values=1, gradients=1)
        return Estimate(objective, gradient, total, variance, jacobian), work

    # ---- exact values, where every source is a finite population

    def exact(self, z: jax.Array) -> tuple[Exact, Work]:
        """Value, gradient and constraint from a full pass; counts the size of the largest population."""
        if exact.one_pass(self.form):
            point = exact.linearise(self.form, self.data, z)
            weight = self.multipliers + self.penalty * point.constraint
            value = self._combine(point.objective, point.constraint)
            gradient = point.gradient + weight @ point.jacobian
            work = self._work(self.population, "gradient", values=1, gradients=1, exact=True)
            return Exact(value, gradient, point.constraint, point.jacobian), work
        _, constraint = exact.values(self.form, self.data, z)
        weight = self.multipliers + self.penalty * constraint
        objective, gradient = exact.pulled(self.form, self.data, z, weight)
        work = self._work(self.population, "gradient", values=2, gradients=1, exact=True)
        return Exact(self._combine(objective, constraint), gradient, constraint, None), work

    def shifted(self, at: Exact, z: jax.Array, moved: jax.Array) -> Exact:
        """The exact values at `moved`, which differs from z in its slacks alone: no pass over the data."""
        assert at.jacobian is not None
        change = at.jacobian @ (moved - z)  # c is linear in the slacks
        gradient = at.gradient + self.penalty * (change @ at.jacobian)
        value = (
            at.value + (self.multipliers + self.penalty * at.constraint) @ change + self.penalty / 2 * change @ change
        )
        return Exact(value, gradient, at.constraint + change, at.jacobian)

    def exact_value(self, z: jax.Array) -> tuple[jax.Array, Work]:
        """L(z) from a full pass."""
        return self._combine(*exact.values(self.form, self.data, z)), self._work(
            self.population, "value", values=1, exact=True
        )

    def exact_hvp(self, z: jax.Array, v: jax.Array, at: Exact) -> tuple[jax.Array, Work]:
        """grad^2 L(z) v from a full pass; `at` holds the exact values at z."""
        weight = self.multipliers + self.penalty * at.constraint
        product = exact.hessian_product(self.form, self.data, z, v, weight, self.penalty, at.jacobian)
        passes = 1 if at.jacobian is not None else 2
        return product, self._work(self.population, "hvp", values=passes, gradients=passes, hvps=1, exact=True)

    # ---- parts

    def _check(self, n: Any) -> Any:
        if isinstance(n, int) and n < self.surrogate.smallest_batch:
            raise InputError(
                f"a batch of {n} for the surrogate {self.surrogate.name!r}",
                f"at least {self.surrogate.smallest_batch}",
                "use larger batches, or the surrogate 'cross'",
            )
        return n

    def _combine(self, objective: jax.Array, constraint: jax.Array) -> jax.Array:
        return objective + self.multipliers @ constraint + self.penalty / 2 * constraint @ constraint

    def _over_batch(self, body, n: Any) -> Any:
        """The sum of `body` over a batch, whole on every device."""
        return replicated(sum_over_batch(body, n, self.micro), self.data)

    def _first(self, z, key, start, count) -> tuple[jax.Array, jax.Array]:
        """F_i and C_i on the first draw."""
        return self.form.evaluate(z, draw_rows(self.form.program, self.data, key, start, count), count)

    def _constraint_rows(self, z, key, start, count, draw: int) -> jax.Array:
        """C_i alone, on the first (0) or second (1) draw."""
        return self.form.evaluate(z, self._constraint_samples(key, start, count, draw), count)[1]

    def _constraint_samples(self, key, start, count, draw: int) -> tuple[Rows | None, ...]:
        """Samples of the sources that feed constraints: the first (0) or second (1) draw."""
        program = self.form.program
        key = jax.random.fold_in(key, len(program.sources)) if draw else key
        return draw_rows(program, self.data, key, start, count, only=program.sources_of_constraints())

    def _sum(self, z, key, n, draw: int) -> jax.Array:
        """The sum of C over the whole batch."""

        def body(start, count, mask):
            return jnp.sum(masked(self._constraint_rows(z, key, start, count, draw), mask), axis=0)

        return self._over_batch(body, n)

    def _total(self, z, key, n) -> jax.Array | None:
        """The total that the partner needs, where a micro-batch does not see the whole batch by itself."""
        which = self.surrogate.totalled
        if which is None or self.form.constraints == 0 or single_chunk(n, self.micro):
            return None
        if which == 0 and not isinstance(n, int):  # a batch that turns out to fit totals itself: no samples here
            n = jnp.where(n > self.micro, n, 0)
        return self._sum(z, key, n, which)

    def _shares(self, z, objective, first, total, key, start, n, mask) -> tuple[jax.Array, jax.Array]:
        """Shares of the value, and cotangent rows of C, of some samples of the batch."""
        which, second = self.surrogate.totalled, None
        if self.surrogate.draws == 2 and total is None:
            second = self._constraint_rows(z, key, start, first.shape[0], 1)
        if which is not None and total is None:
            total = jnp.sum(first if second is None else second, axis=0)
        elif which == 0 and total is not None and not isinstance(n, int):
            total = jnp.where(n > self.micro, total, jnp.sum(masked(first, mask), axis=0))
        count = jnp.asarray(n, first.dtype)
        return shares(self.surrogate, objective, first, second, total, self.multipliers, self.penalty, count)

    def _pull(self, z, total, key, n) -> jax.Array:
        """mean_i dF_i + J_i'(lam + al partner_i)."""

        def body(start, count, mask):
            drawn = draw_rows(self.form.program, self.data, key, start, count)
            (objective, first), pull = jax.vjp(lambda y: self.form.evaluate(y, drawn, count), z)
            weights = self._shares(z, objective, first, total, key, start, n, mask)[1]
            ones = jnp.full_like(objective, 1) / jnp.asarray(n, z.dtype)
            return pull((masked(ones, mask), masked(weights, mask)))[0]

        return self._over_batch(body, n)

    def _pull_second(self, z, weight, key, n) -> jax.Array:
        """mean_i J_i' weight through the second draw."""

        def body(start, count, mask):
            rows, pull = jax.vjp(lambda y: self._constraint_rows(y, key, start, count, 1), z)
            return pull(masked(jnp.broadcast_to(weight / n, rows.shape), mask))[0]

        return self._over_batch(body, n)

    def _repeats(self, n: Any) -> Any:
        """Values of C that are computed a second time because a batch does not fit into one micro-batch."""
        return (n > self.micro) * 1 if self.surrogate.totalled == 0 else 0

    def _gradient_work(self, n: Any) -> Work:
        return self._work(n, "gradient", values=self.surrogate.draws + self._repeats(n), gradients=1)

    def _work(self, n: Any, kind: str, values: Any = 0, gradients: Any = 0, hvps: Any = 0, exact: bool = False) -> Work:
        """Work of one call on n thetas of which C was evaluated, differentiated, ... that many times per sample."""
        program = self.form.program
        feeding = [program.outputs(k) for k in range(len(program.sources))]
        rows = len({row for _, fed in feeding for row in fed})
        of_objective, of_constraints = n, n
        if exact:  # rows of the populations that feed each
            sizes = [source.size or 0 for source in program.sources]
            of_objective = max((s for s, (feeds, _) in zip(sizes, feeding, strict=True) if feeds), default=0)
            of_constraints = max((s for s, (_, fed) in zip(sizes, feeding, strict=True) if fed), default=0)
        sampled = any(feeds for feeds, _ in feeding)
        return Work.of(
            **{f"{kind}_samples": n},
            objective_gradients=of_objective * sampled * (kind == "gradient"),
            objective_hvps=of_objective * sampled * (kind == "hvp"),
            constraint_values=of_constraints * rows * values,
            constraint_gradients=of_constraints * rows * gradients,
            constraint_hvps=of_constraints * rows * hvps,
        )
