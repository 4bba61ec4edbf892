"""How a saddle fools a first-order method, and how the judge and a second-order solver see through it.

    minimise E[x2^4 - x2^2 + xi x1]   subject to   E[x1^2 + x2^2 - 1 + zeta] = 0

At (1, 0) the gradient vanishes along the circle, and noise moves x1 alone. An augmented Lagrangian method with stochastic
gradients started there, or anywhere on the axis, settles on it: every first-order measure is met. The curvature along the
circle is -2; the minimisers have x1^2 = x2^2 = 1/2 and the value -1/4.
"""

import jax
import jax.numpy as jnp
import numpy as np
from style import BLUE, GREY, ORANGE, plt, save

import mescal
from mescal import problems

TOL = 0.01
named = problems.get("saddles/circle")
start = np.array([1.6, 0.0], np.float32)

# --- a first-order method: augmented Lagrangian, plain stochastic gradients, averaged -----------------------------------


def gradient(x, multiplier, penalty, key):
    """grad F + (lam + al C') grad C from two independent samples: unbiased."""
    xi, zeta, other = 0.1 * jax.random.normal(key, (3,))
    circle = lambda y: y[0] ** 2 + y[1] ** 2 - 1
    own = jax.grad(lambda y: y[1] ** 4 - y[1] ** 2 + xi * y[0])(x)
    return own + (multiplier + penalty * (circle(x) + other)) * jax.grad(lambda y: circle(y) + zeta)(x)


@jax.jit
def inner(x, multiplier, key, steps=jnp.arange(3000.0)):
    """Stochastic gradient steps 2/(20 + k) on one subproblem: where they went."""

    def body(y, at):
        y = y - 2 / (20 + at[0]) * gradient(y, multiplier, 2.0, at[1])
        return y, y

    return jax.lax.scan(body, x, (steps, jax.random.split(key, steps.size)))[1]


x, multiplier, path = start, 0.0, [start[None]]
for outer in range(5):
    path.append(np.asarray(inner(x, multiplier, jax.random.key(outer))))
    x = path[-1][-1500:].mean(axis=0)
    multiplier += 2.0 * float(x @ x - 1)
stuck = x

# --- what the judge says about it, and what a second-order solver does from there ----------------------------------------

exact = problems.get("saddles/circle", sigma=0.0).problem
verdict = mescal.certify(exact, stuck, tol=TOL)
print("the first-order method ends at", stuck, "with multiplier", round(multiplier, 4))
print(verdict)
result = mescal.minimize(named.problem, stuck, solver="spider", tol=TOL, seed=0)
print(result)

assert verdict.stationarity.upper <= TOL and verdict.feasibility.upper <= TOL, "first-order tests are met at the saddle"
assert not verdict.passes(TOL) and abs(verdict.curvature.value + 2) < 0.05, "the curvature gives it away"
assert result.converged and abs(result.objective + 0.25) < 0.02, "the second-order solver reaches a minimiser"

# --- the picture ------------------------------------------------------------------------------------------------------

figure, (left, right) = plt.subplots(1, 2, figsize=(9.2, 4.6), width_ratios=[1, 1.15])
x2 = np.linspace(-1.15, 1.15, 300)[:, None]
extent = (-0.2, 1.75, -1.15, 1.15)
left.imshow(
    x2**4 - x2**2, extent=extent, origin="lower", cmap="Greys_r", vmin=-0.6, vmax=0.05, interpolation="bilinear"
)
left.fill([], [], color="#b0b0b0", label="objective, darker: lower")
left.grid(False)
angle = np.linspace(-np.pi / 2, np.pi / 2, 200)
left.plot(np.cos(angle), np.sin(angle), color=GREY, label="the constraint")
points = np.concatenate(path)
left.plot(points[:, 0], points[:, 1], color=ORANGE, linewidth=1.2, label="first-order path")
left.plot(*start, "o", color=ORANGE, markersize=6)
left.plot(*stuck, "s", color=ORANGE, markersize=8, label="where it stays")
left.annotate("", result.x, stuck, arrowprops={"arrowstyle": "->", "color": BLUE, "linewidth": 1.5, "shrinkB": 6})
left.plot(*result.x, "*", color=BLUE, markersize=14, label="certified minimiser")
left.set(xlabel="$x_1$", ylabel="$x_2$", title="A path that ends on a saddle", aspect="equal", xlim=(-0.2, 1.75))
left.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, fontsize=8)

along = np.linspace(-1.2, 1.2, 200)
right.plot(along, np.sin(along) ** 4 - np.sin(along) ** 2, color=GREY)
right.plot(0, 0, "s", color=ORANGE, markersize=8)
right.annotate(
    f"stationarity {verdict.stationarity.value:.1e}\nfeasibility {verdict.feasibility.value:.1e}\n"
    f"curvature {verdict.curvature.value:.2f}: refused",
    (0, 0),
    (0, 0.035),
    ha="center",
    fontsize=9,
    color=ORANGE,
)
there = np.arctan2(result.x[1], result.x[0])
right.plot(there, result.objective, "*", color=BLUE, markersize=14)
right.annotate(
    f"certified:\ncurvature {result.certificate.curvature.value:.2f}",
    (there, result.objective),
    (0.0, -0.19),
    ha="center",
    fontsize=9,
    color=BLUE,
)
right.set(xlabel="angle along the circle", ylabel="objective", ylim=(-0.29, 0.13), title="The objective on the circle")
save(figure, "saddle")
