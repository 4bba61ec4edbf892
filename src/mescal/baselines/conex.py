"""Constraint extrapolation inside a proximal point method (Boob, Deng, Lan 2023), for inequalities c_i(x) <= 0.

    x_k ~ argmin over X of  f(x) + mu_0 |x - x_{k-1}|^2   s.t.   c_i(x) + mu_i |x - x_{k-1}|^2 <= 0

Each subproblem is strongly convex, with modulus a_0, where mu exceeds the weak convexity of f and c, and is solved by ConEx:

    l_t = c(x_{t-1}; S') + J(x_{t-1}; S') (x_t - x_{t-1}),   s_t = (1 + th_t) l_t - th_t l_{t-1}
    y_{t+1} = max(0, y_t + s_t / tau_t),   x_{t+1} = P_X(x_t - (grad f + J'y_{t+1})(x_t; S) / eta_t)
    t_0 = 4 (L_f + B L_c) / a_0 + 2,   th_t = (t + t_0 + 1)/(t + t_0 + 2),   eta_t = a_0 (t + t_0 + 1)/2
    tau_t = max(32 M^2 / a_0,  T^(3/2) sigma / B) / (t + 1),   output: averages of x and y with weights t + t_0 + 2

With `rounds` and `steps` a run stops as its theorem says, by counting: K subproblems of T steps, and x_k with k uniform in
2, ..., K is handed back. `rounds_for` has the K at which its stationarity is at most eps in mean square.

Deviations: 1. L_f, L_c, M = |J|, the weak convexity and B = 1 + |y| are estimated where the steps go. 2. mu_0 is at least
L_f/10, so that convex problems have a strongly convex subproblem of moderate condition, and |grad f|/(8R), so that it does
not leave the region of the estimates, R a trust radius. 3. Unless they are counted, T starts at 4 t_0 and doubles after a
subproblem that did not halve the residual, and 4. the last x_k is measured, not a random one. 5. The term of tau in sigma, the
deviation of a batch's constraint, is the one that balances the noise of y over T steps.
"""

import math
from dataclasses import replace
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from ..oracle import Work
from ..solvers.base import EXHAUSTED, Progress, fresh_progress
from ..solvers.move import natural_radius
from .baseline import Baseline
from .measure import Measured, least_squares, plain, stationarity
from .storm import moved_on, running

CONDITION = 0.1  # of the smoothness: mu_0 at least
WITHIN = 8.0  # mu_0 >= |grad f| / (8 R): a subproblem moves x by at most 4 R
LOTTERY = 1 << 27  # of the key of a run: what decides which subproblem is handed back
SHORTEST, LONGEST = 128, 1 << 16  # steps of a subproblem


class Memory(eqx.Module):
    """y, how many times t_0 a subproblem takes, how many are solved, the one to be handed back, and that one."""

    multipliers: jax.Array
    effort: jax.Array
    solved: jax.Array
    chosen: jax.Array
    kept: jax.Array
    kept_multipliers: jax.Array


class Plan(eqx.Module):
    """The constants of a subproblem: mu_0, mu_i, a_0, t_0, tau_t (t + 1), T."""

    proximal: jax.Array
    proximal_rows: jax.Array
    modulus: jax.Array
    offset: jax.Array
    dual: jax.Array
    most: jax.Array


class State(eqx.Module):
    """x_{t-1}, l_{t-1}, and the weighted means; x_t is the progress's, y_t the memory's."""

    progress: Progress
    memory: Memory
    centre: jax.Array
    previous: jax.Array
    linear: jax.Array
    mean_x: jax.Array
    mean_y: jax.Array
    weight: jax.Array


class ConEx(Baseline):
    """Settings of constraint extrapolation with a proximal point.

    **Arguments:**

    - `batch`: thetas of a step: as many for the gradient as for the linearised constraint.
    - `rounds`, `steps`: the subproblems of a run and the steps of each, if these are to be counted; 0: stop by measurements.
    - `max_outer`: subproblems at most, where they are not counted.
    """

    name: ClassVar[str] = "conex"

    batch: int = eqx.field(static=True, default=64)
    rounds: int = eqx.field(static=True, default=0)
    steps: int = eqx.field(static=True, default=0)
    max_outer: int = eqx.field(static=True, default=100)

    def declines(self, problem):
        """An equality, split in two inequalities, has no strictly feasible point, which the method needs."""
        named = [name for name, constraint in problem.constraints.items() if constraint.kind != "<="]
        return f"{self.name} with the equality {named[0]!r}; it needs a strictly feasible point" if named else None

    def begin(self, view):
        """Multipliers that fit the start, where the constraints are active."""
        guess = jnp.maximum(least_squares(view.oracle(), view.state.z, view.seen), 0)
        y, z = jnp.where(view.seen.constraint > 0, guess, 0), jnp.asarray(view.state.z)
        key = jax.random.fold_in(view.here.key, LOTTERY)
        chosen = jax.random.randint(key, (), min(2, max(1, self.rounds)), self.rounds + 1)
        return view.learnt(own=Memory(y, view.array(4), jnp.int32(0), chosen, z, y))

    def legs(self):
        """One for each subproblem, where they are counted."""
        return self.rounds or self.max_outer

    def is_over(self, view, measured):
        """Never by a measurement, where subproblems are counted."""
        return not self.rounds and super().is_over(view, measured)

    def plan(self, view):
        """The next subproblem."""
        bounds, y = view.bounds, view.memory.multipliers
        radius = natural_radius(view.state.z[: view.here.program.parameters.size])
        bound = 1 + jnp.linalg.norm(y)
        mu = jnp.maximum(bounds.concave[0], CONDITION * bounds.slope[0])
        mu = jnp.maximum(mu, bounds.gradient / (WITHIN * radius))
        rows = bounds.concave[1:]
        modulus = 2 * mu - bounds.concave[0]
        smooth = bounds.slope[0] + 2 * mu + bound * jnp.linalg.norm(bounds.slope[1:] + 2 * rows)
        offset = 4 * smooth / modulus + 2
        most = jnp.clip(view.memory.effort * offset, SHORTEST, LONGEST)
        most = jnp.full_like(most, self.steps) if self.steps else most
        steep = bounds.jacobian + 2 * radius * jnp.linalg.norm(rows)
        noise = jnp.sqrt(bounds.noise / self.batch)
        dual = jnp.maximum(32 * steep**2 / modulus, most**1.5 * noise / bound)
        tiny = jnp.finfo(dual.dtype).tiny
        return Plan(mu, rows, modulus, offset, jnp.maximum(dual, tiny), most.astype(jnp.int32))

    def init(self, oracle, z, plan, memory, key):
        """At the centre of the proximal terms; slacks play no part."""
        x, slack = oracle.form.split(z)
        z = oracle.form.join(x, jnp.zeros_like(slack))
        nothing = jnp.zeros_like(memory.multipliers)
        return State(fresh_progress(z, key), memory, z, z, nothing, jnp.zeros_like(z), nothing, jnp.zeros((), z.dtype))

    def step(self, oracle, state, plan):
        """One step of ConEx."""
        progress, y, centre = state.progress, state.memory.multipliers, state.centre
        z, before, dtype = progress.z, state.previous, progress.z.dtype
        key_rows, key_gradient = jax.random.split(progress.key)
        t = progress.steps.astype(dtype)
        first = progress.steps == 0
        theta = (t + plan.offset + 1) / (t + plan.offset + 2)
        rows, change = jax.jvp(lambda q: oracle.constraint(q, key_rows, self.batch)[0], (before,), (z - before,))
        off = before - centre
        linear = rows + change + plan.proximal_rows * (off @ off + 2 * off @ (z - before))
        extrapolated = jnp.where(first, linear, (1 + theta) * linear - theta * state.linear)
        y = jnp.maximum(0, y + extrapolated * (t + 1) / plan.dual)
        gradient, spent = replace(plain(oracle), multipliers=y).gradient(z, key_gradient, self.batch)
        gradient = gradient + 2 * (plan.proximal + y @ plan.proximal_rows) * (z - centre)
        x_part, slack = oracle.form.split(gradient)
        gradient = oracle.form.join(x_part, jnp.zeros_like(slack))
        moved = oracle.project(z - 2 / (plan.modulus * (t + plan.offset + 1)) * gradient)
        weight = t + plan.offset + 2
        share = weight / (state.weight + weight)  # a running mean stays in X, where a sum would round out of it
        finite = jnp.all(jnp.isfinite(moved)) & jnp.all(jnp.isfinite(y))
        status = running(progress.steps + 1 >= plan.most, EXHAUSTED)
        return State(
            progress=moved_on(progress, moved, finite, status, spent + _linear_work(oracle, self.batch)),
            memory=replace(state.memory, multipliers=y),
            centre=centre,
            previous=z,
            linear=linear,
            mean_x=state.mean_x + share * (moved - state.mean_x),
            mean_y=state.mean_y + share * (y - state.mean_y),
            weight=state.weight + weight,
        )

    def point(self, state):
        """The weighted average; after the last subproblem of a counted run that of the chosen one."""
        return state.memory.kept if self._hands_back(state) else state.mean_x

    def _hands_back(self, state) -> bool:
        """Whether all subproblems are solved and another one than the last was chosen."""
        memory = state.memory
        return int(memory.solved) + 1 == self.rounds and int(memory.chosen) != self.rounds

    def read(self, view, oracle, state, z, seen):
        """At the averaged y, with slacks where y says that a constraint is not active."""
        y = state.memory.kept_multipliers if self._hands_back(state) else state.mean_y
        z, seen, y, norm = complementary_reading(oracle, z, seen, y)
        last = 2 / float(state.weight) * float(state.progress.steps)
        return Measured(z, seen, y, norm, last, self.batch)

    def learn(self, view, measured):
        """The averages are the next start; more steps where the last did not help."""
        memory, y = view.memory, measured.multipliers
        effort = memory.effort * (1 if view.improved else 2)
        memory = replace(memory, multipliers=y, effort=jnp.minimum(effort, LONGEST), solved=memory.solved + 1)
        if int(memory.solved) == int(memory.chosen):
            memory = replace(memory, kept=jnp.asarray(measured.z), kept_multipliers=y)
        return view.learnt(own=memory)


def rounds_for(gap: float, proximal: float, pulled: float, tolerance: float) -> int:
    """K = ceil(4 M^2 D/(mu_0 eps^2)) + 1, M = mu_0 + sum_i y_i mu_i, D >= f(x_1) - min f over the feasible points.

    x_{k-1} is feasible for subproblem k, so f(x_k) + mu_0 |x_k - x_{k-1}|^2 <= f(x_{k-1}) and sum_k mu_0 |x_k - x_{k-1}|^2 <= D.
    The KKT conditions of subproblem k leave 2 M |x_k - x_{k-1}| of those of the problem: in mean square over k = 2, ..., K no
    more than 4 M^2 D/(mu_0 (K - 1)) <= eps^2, subproblems solved exactly.
    """
    return math.ceil(4 * pulled**2 * gap / (proximal * tolerance**2)) + 1


@eqx.filter_jit
def complementary_reading(oracle, z, seen, y):
    """Slack -c and multiplier 0 where -c > y, slack 0 and multiplier y elsewhere; and how stationary that is."""
    free = -seen.constraint > y
    slack = jnp.where(free, -seen.constraint, 0)
    multipliers = jnp.where(free, 0, y)
    moved = oracle.form.join(oracle.form.split(z)[0], slack)
    seen = seen._replace(constraint=seen.constraint + slack)
    norm, _ = stationarity(oracle, moved, seen, multipliers, jnp.zeros_like(y))
    return moved, seen, multipliers, norm


def _linear_work(oracle, n: int) -> Work:
    """Of c with one directional derivative, on n thetas."""
    rows = oracle.form.program.fed
    return Work.of(gradient_samples=n, constraint_values=n * rows, constraint_gradients=n * rows)
