"""A physics-informed network whose PDE residual is an expectation constraint instead of a penalty.

    minimise E[(u(t_i) - y_i)^2]   subject to   E[(u''(t) + q(t))^2] / E[q^2] <= 0.005,    u(0) = u(1) = 0 by construction

Forty noisy measurements of u lie in the first third of a rod; the heat source q is known everywhere. The network (equinox,
two hidden layers) fits the noise where there are data, and is anything elsewhere, unless the heat equation binds it. With
a constraint the trade-off is a tolerance on the physics, in its own units, and no weight has to be tuned.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from style import BLUE, GREY, ORANGE, plt, save

import mescal
from mescal import E

TOL, RESIDUAL = 1e-3, 5e-3
rng = np.random.default_rng(0)
truth = lambda t: np.sin(np.pi * t) + 0.4 * np.sin(3 * np.pi * t)
source = lambda t: jnp.pi**2 * (jnp.sin(jnp.pi * t) + 3.6 * jnp.sin(3 * jnp.pi * t))

measured = rng.uniform(0.02, 0.33, 40).astype(np.float32)
values = (truth(measured) + 0.05 * rng.normal(size=40)).astype(np.float32)
places = ((np.arange(200) + 0.5) / 200).astype(np.float32)  # where the equation is asked for
size = float(np.mean(np.asarray(source(places)) ** 2))

# --- the problem ------------------------------------------------------------------------------------------------------

network = eqx.nn.MLP(1, "scalar", width_size=16, depth=2, activation=jnp.tanh, key=jax.random.key(0))


def u(model, t):
    """Zero at both ends."""
    return 4 * t * (1 - t) * model(jnp.reshape(t, (1,)))


def misfit(model, row):
    """Of one measurement."""
    t, y = row
    return (u(model, t) - y) ** 2


def residual(model, t):
    """Of the heat equation at one place, squared and relative to the source."""
    bent = jax.grad(jax.grad(u, argnums=1), argnums=1)(model, t)
    return (bent + source(t)) ** 2 / size


fit = E(misfit, over=(measured, values))
physics = E(residual, over=places) <= RESIDUAL
free = mescal.minimize(mescal.Problem(fit), network, solver="auto", tol=TOL)
bound = mescal.minimize(mescal.Problem(fit, {"heat equation": physics}), network, solver="auto", tol=TOL)
print(bound)

# --- what is claimed ----------------------------------------------------------------------------------------------------

t = np.linspace(0, 1, 401).astype(np.float32)
curve = lambda model: np.asarray(jax.vmap(u, in_axes=(None, 0))(model, t))
errors = {name: float(np.abs(curve(r.x) - truth(t)).max()) for name, r in {"free": free, "bound": bound}.items()}
kept = float(jax.vmap(residual, in_axes=(None, 0))(bound.x, places).mean())
print(
    f"largest error: without physics {errors['free']:.3f}, with it {errors['bound']:.3f}; mean squared residual {kept:.4f}"
)
assert free.converged and bound.converged
assert kept <= RESIDUAL + TOL
assert errors["bound"] < 0.1 < 0.3 < errors["free"]

# --- the picture ------------------------------------------------------------------------------------------------------

figure, (left, right) = plt.subplots(1, 2, figsize=(9.4, 3.7), width_ratios=[1.25, 1])
left.plot(t, truth(t), color=GREY, linewidth=4, alpha=0.35, label="truth")
left.plot(t, curve(free.x), "--", color=ORANGE, label=f"data alone, error {errors['free']:.2f}")
left.plot(t, curve(bound.x), color=BLUE, label=f"heat equation as constraint, error {errors['bound']:.2f}")
left.plot(measured, values, ".", color="black", markersize=4, label="measurements")
left.set(xlabel="place on the rod", ylabel="temperature", title="What the constraint knows beyond the data")
left.legend(fontsize=8)
for result, colour, style, name in ((free, ORANGE, "--", "data alone"), (bound, BLUE, "-", "constrained")):
    squares = np.asarray(jax.vmap(residual, in_axes=(None, 0))(result.x, places))
    right.semilogy(places, squares, style, color=colour, label=f"{name}, mean {squares.mean():.2g}")
right.axhline(RESIDUAL, color=GREY, linestyle=":", label=f"bound on the mean, to {TOL:g}")
right.set(xlabel="place on the rod", title="Squared residual of the equation, relative", ylim=(1e-6, 300))
right.legend(fontsize=8, loc="upper left")
save(figure, "pinn")
