"""A network with 97,000 parameters under three constraints at once, trained to a certificate on a CPU.

    minimise E[log-loss] + 0.01 |W|^2/2   subject to   parity of two overlapping groups, and a bound on false positives

The parameters are a list of dicts, two hidden layers of 300. All three constraints come from one function, so that every
sample passes through the network once for all of them; a group's rate is E[1_group score]/P(group), one expectation. The
curvature of the certificate is a Lanczos bound over all 97,000 directions, with its failure probability.
"""

import jax
import jax.numpy as jnp
import numpy as np
from style import BLUE, GREY, ORANGE, plt, save

import mescal
from mescal import E

TOL, WIDTH, FEATURES, PEOPLE = 0.01, 300, 20, 1000
BOUNDS = np.array([0.05, 0.05, 0.15])  # gap between women and men, young and old; false positives

# --- people -----------------------------------------------------------------------------------------------------------

rng = np.random.default_rng(0)
a = rng.normal(size=(PEOPLE, FEATURES)).astype(np.float32)
woman = a[:, 0] + 0.5 * rng.normal(size=PEOPLE) > 0
young = a[:, 1] + 0.5 * rng.normal(size=PEOPLE) > 0.3
log_odds = 2 * np.tanh(a[:, 2] * a[:, 3]) + 1.2 * a[:, 0] + 0.8 * a[:, 1] + np.sin(2 * a[:, 4])
label = rng.random(PEOPLE) < 1 / (1 + np.exp(-log_odds))
parity = lambda rows: rows / rows.mean() - ~rows / (1 - rows.mean())  # its mean with a score is a difference of rates
shares = np.stack([parity(woman), parity(young), ~label / (~label).mean()], axis=1).astype(np.float32)
people = {"features": a, "label": label.astype(np.float32), "shares": shares}

# --- the problem ------------------------------------------------------------------------------------------------------


def initial(key, sizes):
    """Weights of variance 1/inputs, biases zero."""
    keys = jax.random.split(key, len(sizes) - 1)
    layers = zip(keys, sizes[:-1], sizes[1:], strict=True)
    return [{"w": jax.random.normal(k, (m, n)) / jnp.sqrt(m), "b": jnp.zeros(n)} for k, m, n in layers]


def network(layers, x):
    """The log-odds of one person."""
    for layer in layers[:-1]:
        x = jnp.tanh(x @ layer["w"] + layer["b"])
    return (x @ layers[-1]["w"] + layers[-1]["b"])[0]


def loss(layers, person):
    """Of one person."""
    z = network(layers, person["features"])
    return jax.nn.softplus(z) - person["label"] * z


rates = lambda layers, person: person["shares"] * jax.nn.sigmoid(network(layers, person["features"]))
decay = lambda layers: 0.005 * sum(jnp.sum(layer["w"] ** 2) for layer in layers)

problem = mescal.Problem(E(loss, over=people) + E(decay), {"rates": E(rates, over=people) <= BOUNDS})
x0 = initial(jax.random.key(0), [FEATURES, WIDTH, WIDTH, 1])
parameters = sum(leaf.size for leaf in jax.tree.leaves(x0))
result = mescal.minimize(problem, x0, solver="auto", tol=TOL)
print(result)
print(result.certificate)

# --- what is claimed ----------------------------------------------------------------------------------------------------

scores = np.asarray(jax.vmap(lambda x: jax.nn.sigmoid(network(result.x, x)))(a))
before = np.asarray(jax.vmap(lambda x: jax.nn.sigmoid(network(x0, x)))(a))
reached = (shares * scores[:, None]).mean(axis=0)
print(f"{parameters} parameters; rates {reached.round(4)} under bounds {BOUNDS}")
assert 90_000 < parameters < 110_000
assert result.converged and "Lanczos" in result.certificate.curvatures["whole"].how
assert (reached <= BOUNDS + TOL).all()
assert ((scores > 0.5) == label).mean() > ((before > 0.5) == label).mean() + 0.1

# --- the picture ------------------------------------------------------------------------------------------------------

figure, (left, right) = plt.subplots(1, 2, figsize=(9.2, 3.6), width_ratios=[1, 1.1])
history = result.history
for name, colour, marker in (("stationarity", BLUE, "o"), ("feasibility", ORANGE, "s")):
    left.semilogy(history.column("work") / 1e6, history.column(name), marker=marker, color=colour, label=name)
left.axhline(TOL, color=GREY, linestyle="--", label="tolerance")
left.set(xlabel="work, millions of sample evaluations", title=f"{parameters:,} parameters, {PEOPLE} people")
left.legend()
names = ["women - men", "young - old", "false positives"]
place = np.arange(3)
first = (shares * before[:, None]).mean(axis=0)
right.barh(place, reached, color=BLUE, height=0.5, label="at the certified point")
right.plot(BOUNDS, place, "|", color=ORANGE, markersize=30, markeredgewidth=2.5, label=f"bound, to {TOL:g}")
for y, price in zip(place, result.multipliers["rates"], strict=True):
    beside = max(reached[y], BOUNDS[y]) + 0.015
    right.text(beside, y, f"multiplier {price:.2f}", va="center", fontsize=9, backgroundcolor="white")
right.set_yticks(place, names)
right.set(xlabel="difference of rates, or rate", xlim=(min(0, reached.min()), 0.25), title="Three constraints")
right.set_ylim(-0.5, 3.1)
right.legend(loc="upper right", fontsize=8, ncols=2, markerscale=0.4)
save(figure, "network")
