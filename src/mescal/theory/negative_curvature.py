"""Parameters of the negative-curvature searches: Oja (Definition 4.1), Neon2 (Definition 4.3), sub-sampled Lanczos.

All obey one contract, `nc_search(x, tolerance=t, failure=p)`: with probability at least 1 - p, either a unit u with
u'Hu <= -t/2, or the answer "none", and then lambda_min(H) >= -t. Samples satisfy |H_theta| <= L_g almost surely.

Deviations from the paper and its sources:

1. The paper states three contracts; callers translate theirs to the one above (Neon2's sign: erratum 1).
2. The failure probability is split between finding a direction and verifying it, p/2 each; the usual statements spend p
   on either and fail with probability 2p.
3. Oja's last-iterate lottery succeeds with probability 1/2 only (Markov), so log2(2/p) runs are needed, not ln(1/p).
4. Absolute constants that the sources leave open are arguments with default 1.
5. Neon2's perturbation (d/p)^(-2 C0) eta^2 t^3 / L_H underflows in any floating-point format for p as small as a solver
   needs; `neon2_runnable` is the variant to execute.
"""

import math
from dataclasses import dataclass

from . import concentration
from .constants import SubproblemConstants
from .cost import Cost
from .counts import check_positive, check_probability, count
from .units import Count, Curvature, Length, Number, StepSize

SHARE = 1 / 8  # of the tolerance of sub-sampled Lanczos: what the Hessian of its batch may be off by


@dataclass(frozen=True)
class Oja:
    """R runs of w <- normalise(w + step (I/2 - H_theta/(2 L_g)) w), each kept at a random step, then verified."""

    runs: Count
    steps: Count  # per run, one Hessian-vector product each
    step_size: Number  # of the shifted matrix, which has no unit
    verification_batch: Count  # per run
    threshold: Curvature  # "none" unless some verified Rayleigh quotient is below -threshold

    @property
    def cost(self) -> Cost:
        """R (T + n) Hessian-vector products."""
        return Cost(hessian_products=self.runs * (self.steps + self.verification_batch))


def oja(
    constants: SubproblemConstants, tolerance: Curvature, failure: Number, dimension: Count, absolute: float = 1.0
) -> Oja:
    """R = ceil(log2(2/p)), T = ceil(576 C^2 (L/t)^2 ln^2(2d/p)), step 1/sqrt(T), n = ceil(72 (L/t)^2 ln(4R/p)).

    With L = L_g, M = I/2 - H/(2L) lies in [0, I]. Regret C ln(2d/p)/sqrt(T) = t/(24 L) makes a random step suboptimal
    by at most t/(12 L) in M, that is t/6 in H, with probability 1/2; R runs fail together with probability p/2.
    Hoeffding on [-L, L]: a quotient errs by t/6 with probability 2 exp(-n t^2/(72 L^2)) = p/(2R). Threshold 2t/3: a
    returned direction has curvature <= -2t/3 + t/6 = -t/2, and "none" means lambda_min >= -2t/3 - t/6 - t/6 = -t.
    """
    _check(tolerance, failure, dimension)
    ratio = constants.gradient_lipschitz / tolerance
    runs = math.ceil(math.log2(2 / failure))
    steps = count(576 * (absolute * ratio * math.log(2 * dimension / failure)) ** 2)
    return Oja(
        runs=runs,
        steps=steps,
        step_size=1 / math.sqrt(steps),
        verification_batch=count(72 * ratio**2 * math.log(4 * runs / failure)),
        threshold=2 * tolerance / 3,
    )


@dataclass(frozen=True)
class ConeSearch:
    """Oja's method as the eigen-solver of `curvature.cone_search`: at most 2^k subspaces, each searched with `each`."""

    subspaces: Count
    gap: Curvature  # tau: what an eigenvector may be off by
    each: Oja

    @property
    def cost(self) -> Cost:
        """2^k R (T + n) Hessian-vector products, at most."""
        return Cost(hessian_products=self.subspaces * self.each.cost.hessian_products)


def cone_search(
    constants: SubproblemConstants,
    tolerance: Curvature,
    failure: Number,
    dimension: Count,
    weak: Count,
    absolute: float = 1.0,
) -> ConeSearch:
    """With k = `weak` rows: tau = t/(8(k+1)), q = p/2^k, R = ceil(log2(2/q)), T = ceil(64 C^2 (L/tau)^2 ln^2(2d/q)),
    n = ceil(32 (L/tau)^2 ln(4R/q)), threshold 3t/4.

    As for `oja`: regret C ln(2d/q)/sqrt(T) = tau/(8L) makes a random step suboptimal by tau/2 in H with probability 1/2, and R
    runs fail together with probability q/2. By Hoeffding a quotient errs by tau/4 but for q/(2R), so the lowest of R is within
    tau/2 + 2 tau/4 = tau of lambda_min, and is known to tau/4 <= t/32. With k = O(log d) all of it is polynomial.
    """
    _check(tolerance, failure, dimension)
    gap, share = tolerance / (8 * (weak + 1)), failure / 2**weak
    ratio, runs = constants.gradient_lipschitz / gap, math.ceil(math.log2(2 / share))
    steps = count(64 * (absolute * ratio * math.log(2 * dimension / share)) ** 2)
    each = Oja(
        runs=runs,
        steps=steps,
        step_size=1 / math.sqrt(steps),
        verification_batch=count(32 * ratio**2 * math.log(4 * runs / share)),
        threshold=3 * tolerance / 4,
    )
    return ConeSearch(2**weak, gap, each)


@dataclass(frozen=True)
class Minibatch:
    """Stochastic power iteration w <- normalise(w - step H_b w) on batches, and one verification."""

    batch: Count
    step_size: StepSize
    steps: Count
    verification_batch: Count

    @property
    def cost(self) -> Cost:
        """b T + n Hessian-vector products."""
        return Cost(hessian_products=self.batch * self.steps + self.verification_batch)


def oja_minibatch(
    constants: SubproblemConstants, tolerance: Curvature, dimension: Count, population: Count | None = None
) -> Minibatch:
    """b = ceil(2 s^2/(L t)), step = min(1/(2L), b t/(4 s^2)), T = ceil(2 ln d/(step t)), n = 4b, with L = L_g, s = s_H.

    Batches are at most the population. The noise floor of the Rayleigh quotient, about step s^2/(2b), is then at most
    t/8. A rule that was measured, not proved: no failure probability.
    """
    check_positive(tolerance=tolerance, dimension=dimension)
    lipschitz, variance = constants.gradient_lipschitz, constants.hessian_noise**2
    limit = math.inf if population is None else population
    batch = int(min(count(2 * variance / (lipschitz * tolerance)), limit))
    step = 1 / (2 * lipschitz)
    if variance > 0 and batch < limit:
        step = min(step, batch * tolerance / (4 * variance))
    return Minibatch(
        batch=batch,
        step_size=step,
        steps=count(2 * math.log(max(2, dimension)) / (step * tolerance)),
        verification_batch=int(min(4 * batch, limit)),
    )


@dataclass(frozen=True)
class Lanczos:
    """k Lanczos steps from a random start on one fixed batch, and a product more on fresh samples; on a population, exact ones."""

    batch: Count
    steps: Count  # at most; a search ends as soon as it has proved either answer
    threshold: Curvature  # "none" unless the smallest Ritz value is at most -threshold
    exact: bool = False  # whether the batch is the population

    @property
    def cost(self) -> Cost:
        """k b Hessian-vector products, and b to check what they found; on a population k N and the gradient there, N."""
        if self.exact:
            return Cost(gradients=self.batch, hessian_products=self.steps * self.batch)
        return Cost(hessian_products=(self.steps + 1) * self.batch)


def lanczos(
    constants: SubproblemConstants,
    tolerance: Curvature,
    failure: Number,
    dimension: Count,
    population: Count | None = None,
    spread: Curvature | None = None,
) -> Lanczos:
    """b = ceil(128 (s_H/t)^2 ln(4d/p)), k = ceil(1/2 + ln(3.296 sqrt(d)/p) / (2 sqrt(e))), e = t/(8 spread).

    Matrix Hoeffding (`concentration`): |H_b - H| <= t/8 but for p/2. Kuczynski and Wozniakowski: P(ritz - lambda_min > e spread) <=
    1.648 sqrt(d) exp(-sqrt(e) (2k-1)) = p/2; exact after d steps. With the threshold 5t/8 a direction has curvature
    <= -5t/8 + t/8 = -t/2, and "none" means lambda_min > -5t/8 - t/8 - t/8 > -t. A whole population has no sampling
    error. `spread` = lambda_max - lambda_min of the batch Hessian, 2 L_g unless known.
    """
    _check(tolerance, failure, dimension)
    width = 2 * constants.gradient_lipschitz if spread is None else spread
    batch = concentration.matrices(constants.hessian_noise, SHARE * tolerance, failure / 2, dimension)
    steps = 0.5 + math.log(2 * 1.648 * math.sqrt(dimension) / failure) / (2 * math.sqrt(tolerance / (8 * width)))
    return Lanczos(
        batch=batch if population is None else min(batch, population),
        steps=min(dimension, count(steps)),
        threshold=5 * tolerance / 8,
        exact=population is not None and batch >= population,
    )


@dataclass(frozen=True)
class Neon2:
    """R runs of x <- x - step (g_theta(x) - g_theta(x_0)) from near x_0 to the escape radius, each verified."""

    runs: Count
    steps: Count  # per run, two gradients each
    batch: Count  # samples per step
    step_size: StepSize
    perturbation: Length  # distance of the start from x_0; 0.0 where it underflows
    escape_radius: Length
    probe_length: Length  # |v'| of the verification (g(x_0 + v') - g(x_0))'v'/|v'|^2
    verification_batch: Count
    threshold: Curvature

    @property
    def cost(self) -> Cost:
        """2 R (b T + n) gradients, at most."""
        return Cost(gradients=2 * self.runs * (self.batch * self.steps + self.verification_batch))


def neon2(
    constants: SubproblemConstants, tolerance: Curvature, failure: Number, dimension: Count, absolute: float = 1.0
) -> Neon2:
    """Neon2-online with C0 = `absolute`, L = L_g and l = ln(2d/p).

    step = t/(C0^2 L^2 l), T = ceil(C0^2 l/(step t)), perturbation (2d/p)^(-2 C0) step^2 t^3/L_H, radius (2d/p)^C0 times
    that; R = ceil(ln(2/p)) runs, each successful with probability 2/3; verification on ceil(128 (L/t)^2 ln(4R/p))
    samples with |v'| = t/(4 L_H) and threshold 3t/4. The difference quotient errs by L_H |v'|/2 = t/8 and, by
    Hoeffding, t/8: a returned direction has curvature <= -t/2.
    """
    _check(tolerance, failure, dimension)
    lipschitz, logarithm = constants.gradient_lipschitz, math.log(2 * dimension / failure)
    step = tolerance / (absolute**2 * lipschitz**2 * logarithm)
    scale = step**2 * tolerance**3 / constants.hessian_lipschitz
    runs = math.ceil(math.log(2 / failure))
    return Neon2(
        runs=runs,
        steps=count(absolute**2 * logarithm / (step * tolerance)),
        batch=1,
        step_size=step,
        perturbation=scale * math.exp(-2 * absolute * logarithm),
        escape_radius=scale * math.exp(-absolute * logarithm),
        probe_length=tolerance / (4 * constants.hessian_lipschitz),
        verification_batch=count(128 * (lipschitz / tolerance) ** 2 * math.log(4 * runs / failure)),
        threshold=3 * tolerance / 4,
    )


def neon2_runnable(
    constants: SubproblemConstants, tolerance: Curvature, dimension: Count, population: Count | None = None
) -> Neon2:
    """The variant that floating point can run; for float64, and no failure probability is claimed.

    Radius t/(10 L_H), perturbation 1e-4 of it, batch and step of `oja_minibatch`, T = ceil(2 ln(d/1e-4)/(step t)),
    verification on 4b samples.
    """
    power = oja_minibatch(constants, tolerance, dimension, population)
    radius = tolerance / (10 * constants.hessian_lipschitz)
    return Neon2(
        runs=1,
        steps=count(2 * math.log(dimension / 1e-4) / (power.step_size * tolerance)),
        batch=power.batch,
        step_size=power.step_size,
        perturbation=1e-4 * radius,
        escape_radius=radius,
        probe_length=tolerance / (4 * constants.hessian_lipschitz),
        verification_batch=power.verification_batch,
        threshold=3 * tolerance / 4,
    )


def _check(tolerance: Curvature, failure: Number, dimension: Count) -> None:
    check_positive(tolerance=tolerance, dimension=dimension)
    check_probability(failure=failure)
