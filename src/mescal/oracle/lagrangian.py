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
from ..problem import Data, EqualityForm, Program, Rows
from . import look
from .access import masked, replicated, single_chunk, sum_over, sum_over_batch
from .draw import by_sample, draw_rows
from .surrogates import Surrogate, shares
from .work import Work, price

# The Jacobian is accumulated row by row in one pass while a source feeds at most this many outputs; above, values come
# first and a second pass pulls back one weighted row. Equal arithmetic at two: one forward and two pulls against
# two forwards and one pull, the second forward costing a pass over the data; measured, see benchmarks/oracle_gradient.py.
ONE_PASS_OUTPUTS = 2
GROUPS = 8  # independent groups of samples behind an estimated error
SECOND = 1 << 16  # of the key of the second draw of theta, apart from the numbers of sources


class Exact(NamedTuple):
    """The augmented Lagrangian at a point, without noise: value, gradient, the constraint, its Jacobian if at hand."""

    value: jax.Array
    gradient: jax.Array
    constraint: jax.Array
    jacobian: jax.Array | None


class Estimate(NamedTuple):
    """One large batch, told apart: the unbiased gradient of L, and the mean constraint with its variance and Jacobian."""

    objective: jax.Array
    objective_variance: jax.Array  # of the mean
    objective_gradient: jax.Array  # of f alone
    gradient: jax.Array
    constraint: jax.Array
    constraint_variance: jax.Array  # of the mean
    jacobian: jax.Array


class Noise(NamedTuple):
    """Traces of covariances: an average over n thetas has these, divided by n."""

    gradient: jax.Array
    stationarity: jax.Array
    constraint: jax.Array  # of C in the problem's units, as feasibility is measured


class Compared(NamedTuple):
    """An estimate, its noise per theta, and the change of L since another point with its standard error."""

    estimate: Estimate
    noise: Noise
    change: jax.Array
    error: jax.Array


class ValueSums(NamedTuple):
    """Sums over samples: F, F^2, C, C^2."""

    objective: jax.Array
    squared: jax.Array
    constraint: jax.Array
    squares: jax.Array


class Sums(NamedTuple):
    """Those, and of dF, J'C and J."""

    objective: jax.Array
    squared: jax.Array
    constraint: jax.Array
    squares: jax.Array
    own: jax.Array
    product: jax.Array
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
            product = product + self._pull_second(z, self.penalty / 2 * first / jnp.asarray(n, z.dtype), key, n)
            evaluations += 2
        return product, self._work(n, "hvp", values=evaluations, gradients=evaluations, hvps=1)

    def symmetric_hvp(self, z: jax.Array, v: jax.Array, key: jax.Array, n: Any) -> tuple[jax.Array, Work]:
        """The same from a symmetric estimate of grad^2 L, which searches for eigenvalues need.

        That of `pair`, (3.2), is (H + H')/2, H = mean_i grad^2 F_i + sum_j (lam + al C_i2)_j grad^2 C_i1,j + al J_i1'J_i2: half the
        difference of J_i2'J_i1 v and J_i1'J_i2 v is added. Its terms are independent, symmetric, and no larger than before.
        """
        product, work = self.hvp(z, v, key, n)
        if self.surrogate.symmetric or not self.form.constraints:
            return product, work

        def body(start, count, mask):
            def rows(draw):
                return lambda y: self._constraint_rows(y, key, start, count, draw)

            along = [masked(jax.jvp(rows(draw), (z,), (v,))[1], mask) for draw in (0, 1)]
            return sum(sign * jax.vjp(rows(1 - draw), z)[1](along[draw])[0] for draw, sign in ((0, 1), (1, -1)))

        change = self._over_batch(body, n) * (self.penalty / 2 / jnp.asarray(n, z.dtype))
        raw = price(self.form.program, "value", n, values=4, gradients=4)  # the thetas are those of the product
        return product + change, work + Work.of(**{name: raw[name] for name in raw if name.startswith("constraint")})

    def weighted_hvp(
        self, z: jax.Array, v: jax.Array, weight: jax.Array, key: jax.Array, n: Any
    ) -> tuple[jax.Array, Work]:
        """The mean over n thetas of grad^2 (F_i + weight . C_i) v, the weights held fixed; in whole micro-batches."""
        blocks = jnp.maximum(1, (jnp.asarray(n, jnp.int32) + self.micro - 1) // self.micro)

        def body(i, total):
            drawn = draw_rows(self.form.program, self.data, key, i * self.micro, self.micro)

            def value(y):
                f, c = self.form.evaluate(y, drawn, self.micro)
                return jnp.sum(f + c @ weight)

            return total + jax.jvp(jax.grad(value), (z,), (v,))[1]

        total = jax.lax.fori_loop(0, blocks, body, jnp.zeros_like(z))
        thetas = blocks * self.micro
        work = self._work(thetas, "hvp", values=1, gradients=1, hvps=1)
        return replicated(total, self.data) / thetas.astype(z.dtype), work

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
            first, second = jax.tree.map(lambda leaf: leaf[:, None], (first, second))
            y = previous + position.astype(z.dtype) / count * step
            return jax.jvp(lambda x: gradient(x, first, second), (y,), (step,))[1]

        def body(start, size, mask):
            first = by_sample(draw_rows(self.form.program, self.data, key, start, size))
            second = by_sample(self._constraint_samples(key, start, size, 1))
            products = jax.vmap(product)(start + jnp.arange(size), first, second)
            return jnp.sum(masked(products, mask), axis=0) / count

        return self._over_batch(body, n), self._work(n, "hvp", values=2, gradients=2, hvps=1)

    def constraint(self, z: jax.Array, key: jax.Array, n: Any) -> tuple[jax.Array, Work]:
        """The mean of C(z) over n samples: what the dual update needs."""
        return self._sum(z, key, n, 0) / jnp.asarray(n, z.dtype), self._work(n, "value", values=1)

    def estimate(self, z: jax.Array, key: jax.Array, n: Any) -> tuple[Estimate, Work]:
        """Gradient (U-statistic), constraint and Jacobian from one batch in one pass; counts n gradients.

        n is taken up to whole micro-batches.
        """
        (sums, _), n = self._grouped(z, None, key, n)
        return self._estimated(
            jax.tree.map(lambda part: jnp.sum(part, axis=0) / n.astype(z.dtype), sums), n
        ), self._work(n, "gradient", values=1, gradients=1)

    def compare(self, z: jax.Array, before: jax.Array, key: jax.Array, n: Any) -> tuple[Compared, Work]:
        """An estimate at z; beside it its noise and L(z) - L(before) with its standard error, all from the same samples.

        The samples fall into independent groups. From their means come the errors: with the influence of a group,

            psi_g = dF_g + J_g'(lam + al c) + al J'(c_g - c),     sigma^2 = n / groups * (sample variance of psi_g)

        whose last term only moves the multiplier; without it, the noise is that of stationarity at a multiplier of one's choice.
        """
        (sums, other), n = self._grouped(z, before, key, n)
        count = n.astype(z.dtype)
        each = jax.tree.map(lambda part: part * (GROUPS / count), sums)  # means of the groups
        mean = jax.tree.map(lambda part: jnp.mean(part, axis=0), each)
        at = self._estimated(mean, n)
        weight = self.multipliers + self.penalty * at.constraint
        pulled = each.own + jnp.einsum("m,gmd->gd", weight, each.jacobian)
        whole = pulled + self.penalty * (each.constraint - at.constraint) @ at.jacobian
        change = self._values(each, count / GROUPS) - self._values(
            jax.tree.map(lambda part: part * (GROUPS / count), other), count / GROUPS
        )
        scale = jnp.asarray(self.form.constraint_scale, z.dtype)
        noise = Noise(
            gradient=_between(whole) * count / GROUPS,
            stationarity=_between(pulled) * count / GROUPS,
            constraint=jnp.sum(at.constraint_variance * count / scale**2),
        )
        error = jnp.std(change, ddof=1) / jnp.sqrt(jnp.asarray(GROUPS, z.dtype))
        work = self._work(n, "gradient", values=1, gradients=1) + self._work(n, "value", values=1)
        return Compared(at, noise, jnp.mean(change), error), work

    def _grouped(self, z: jax.Array, before: jax.Array | None, key: jax.Array, n: Any) -> tuple[Any, jax.Array]:
        """Sums over a batch at z, and of values at `before`, by group; one place where samples are drawn."""
        m = self.form.constraints
        micro = max(GROUPS, self.micro // GROUPS * GROUPS)
        blocks = jnp.maximum(1, (jnp.asarray(n, jnp.int32) + micro - 1) // micro)

        def group(rows):
            (f, c), pull = jax.vjp(lambda y: self.form.evaluate(y, rows, micro // GROUPS), z)
            own = pull((jnp.ones_like(f), jnp.zeros_like(c)))[0]
            product = pull((jnp.zeros_like(f), c))[0] if m else jnp.zeros_like(z)
            basis = jnp.broadcast_to(jnp.eye(m, dtype=z.dtype)[:, None], (m, *c.shape))
            jacobian = jax.vmap(lambda row: pull((jnp.zeros_like(f), row))[0])(basis).reshape(m, z.size)
            f1, f2, c1, c2 = _value_sums(f, c)
            return Sums(f1, f2, c1, c2, own, product, jacobian)

        def body(i):
            drawn = draw_rows(self.form.program, self.data, key, i * micro, micro)
            grouped = jax.tree.map(
                lambda leaf: jnp.moveaxis(leaf.reshape(leaf.shape[0], GROUPS, -1, *leaf.shape[2:]), 1, 0), drawn
            )
            other = None
            if before is not None:
                values = jax.vmap(
                    lambda rows, y=before: self.form.evaluate(y, rows, micro // GROUPS), axis_size=GROUPS
                )(grouped)
                other = jax.vmap(lambda f, c: ValueSums(*_value_sums(f, c)))(*values)
            if not jax.tree.leaves(grouped):  # nothing is sampled
                one = group(tuple(None for _ in drawn))
                return jax.tree.map(lambda part: jnp.broadcast_to(part, (GROUPS, *part.shape)), one), other
            return jax.vmap(group)(grouped), other

        return replicated(sum_over(body, 0, blocks), self.data), blocks * micro

    def _estimated(self, mean: Any, n: jax.Array) -> Estimate:
        """grad L ~ mean dF + J'lam + al (n J'c - mean J_i'C_i) / (n - 1), with J and c the means over the batch."""
        count = n.astype(mean.own.dtype)
        penalised = (count * (mean.constraint @ mean.jacobian) - mean.product) / (count - 1)
        gradient = mean.own + self.multipliers @ mean.jacobian + self.penalty * penalised
        variances = [
            jnp.maximum(square - value**2, 0) / (count - 1)
            for square, value in ((mean.squared, mean.objective), (mean.squares, mean.constraint))
        ]
        return Estimate(mean.objective, variances[0], mean.own, gradient, mean.constraint, variances[1], mean.jacobian)

    def _values(self, mean: Any, count: jax.Array) -> jax.Array:
        """The unbiased estimate of L (U-statistic) of each group, from its means over `count` samples."""
        c = mean.constraint
        products = (count * jnp.sum(c * c, axis=-1) - jnp.sum(mean.squares, axis=-1)) / (count - 1)
        return mean.objective + c @ self.multipliers + self.penalty / 2 * products

    # ---- exact values, where every source is a finite population

    def exact(self, z: jax.Array) -> tuple[Exact, Work]:
        """Value, gradient and constraint from a full pass; counts the size of the largest population."""
        program, (x, _) = self.form.program, self.form.split(z)
        if one_pass(program):
            objective, constraint, gradient, jacobian = self.form.lift(z, *look.linearise(program, self.data, x)[:4])
            weight = self.multipliers + self.penalty * constraint
            value = self._combine(objective, constraint)
            work = self._work(self.population, "gradient", values=1, gradients=1, exact=True)
            return Exact(value, gradient + weight @ jacobian, constraint, jacobian), work
        constraint = self._exact_values(z)[1]
        weight = self.multipliers + self.penalty * constraint
        objective, gradient = self._exact_pull(z, weight)
        work = self._work(self.population, "gradient", values=2, gradients=1, exact=True)
        return Exact(self._combine(objective, constraint), gradient, constraint, None), work

    def linearise(self, z: jax.Array) -> tuple[tuple[jax.Array, ...], Work]:
        """f, c, gradient of f and Jacobian of c from a full pass, in the units of the form."""
        x, _ = self.form.split(z)
        work = self._work(self.population, "gradient", values=1, gradients=1, exact=True)
        return self.form.lift(z, *look.linearise(self.form.program, self.data, x)[:4]), work

    def _exact_values(self, z: jax.Array) -> tuple[jax.Array, jax.Array]:
        x, slack = self.form.split(z)
        objective, constraint = look.values(self.form.program, self.data, x)
        return self.form.scale(objective, constraint + self.form.shift(slack), z.dtype)

    def _exact_pull(self, z: jax.Array, weight: jax.Array) -> tuple[jax.Array, jax.Array]:
        """f, and the gradient of f + weight . c."""
        form, (x, _) = self.form, self.form.split(z)
        scaled = weight * jnp.asarray(form.constraint_scale, z.dtype)
        objective, gradient = look.pulled(form.program, self.data, x, form.objective_scale, scaled)
        return objective * jnp.asarray(form.objective_scale, z.dtype), form.join(gradient, form.drop(weight))

    def exact_value(self, z: jax.Array) -> tuple[jax.Array, Work]:
        """L(z) from a full pass."""
        return self._combine(*self._exact_values(z)), self._work(self.population, "value", values=1, exact=True)

    def exact_hvp(self, z: jax.Array, v: jax.Array, at: Exact) -> tuple[jax.Array, Work]:
        """grad^2 L(z) v from a full pass; `at` holds the exact values at z."""
        weight = self.multipliers + self.penalty * at.constraint
        if at.jacobian is None:
            passes, change = 2, jax.jvp(lambda y: self._exact_values(y)[1], (z,), (v,))[1]
        else:
            passes, change = 1, at.jacobian @ v
        product = jax.jvp(lambda y, w: self._exact_pull(y, w)[1], (z, weight), (v, self.penalty * change))[1]
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
        key = jax.random.fold_in(key, SECOND) if draw else key
        only = [k for k, family in enumerate(program.families) if family.fed[0]]
        return draw_rows(program, self.data, key, start, count, only=only)

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
            return pull(masked(jnp.broadcast_to(weight / jnp.asarray(n, z.dtype), rows.shape), mask))[0]

        return self._over_batch(body, n)

    def _repeats(self, n: Any) -> Any:
        """Values of C that are computed a second time because a batch does not fit into one micro-batch."""
        if self.surrogate.totalled != 0:
            return 0
        over = n > self.micro
        return int(over) if isinstance(over, bool) else over.astype(jnp.int32)

    def _gradient_work(self, n: Any) -> Work:
        return self._work(n, "gradient", values=self.surrogate.draws + self._repeats(n), gradients=1)

    def _work(self, n: Any, kind: str, values: Any = 0, gradients: Any = 0, hvps: Any = 0, exact: bool = False) -> Work:
        """Work of one call on n thetas of which C was evaluated, differentiated, ... that many times per sample."""
        return Work.of(**price(self.form.program, kind, None if exact else n, values, gradients, hvps))


def _value_sums(f: jax.Array, c: jax.Array) -> tuple[jax.Array, ...]:
    return jnp.sum(f), jnp.sum(f**2), jnp.sum(c, axis=0), jnp.sum(c**2, axis=0)


def _between(groups: jax.Array) -> jax.Array:
    """The trace of the sample covariance of the rows."""
    return jnp.sum(jnp.var(groups, axis=0, ddof=1))


def one_pass(program: Program) -> bool:
    """Whether one pass that accumulates the Jacobian is the cheaper way to a gradient."""
    return all(family.outputs <= ONE_PASS_OUTPUTS for family in program.families)
