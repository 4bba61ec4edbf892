"""Fairness with several overlapping groups on made-up census data: one constraint per group, all at once.

    minimise E[log(1 + exp(-y a'w))] + |w|^2/2000   subject to   0.9 E[score | all] <= E[score | group]  for four groups

score = sigmoid(a'w). The groups overlap (young women are young, and women), so mending one rate moves the others. The
multipliers say which constraints cost anything: groups that are helped along with others have multiplier zero.
"""

import jax
import jax.numpy as jnp
import numpy as np
from style import BLUE, GREY, ORANGE, plt, save

import mescal
from mescal import E

TOL, SHARE, PEOPLE = 0.005, 0.9, 6000
rng = np.random.default_rng(1)

# --- people -----------------------------------------------------------------------------------------------------------

woman = rng.random(PEOPLE) < 0.48
rural = rng.random(PEOPLE) < 0.3
age = rng.normal(44, 14, PEOPLE).clip(18, 80)
young = age < 30
school = rng.normal(12, 3, PEOPLE) - 1.2 * rural
hours = rng.normal(40, 9, PEOPLE) - 5 * woman
log_odds = 0.35 * (school - 12) + 0.07 * (hours - 38) + 0.04 * (age - 44) - 0.9 * woman - 0.5 * rural - 0.8
earns_more = rng.random(PEOPLE) < 1 / (1 + np.exp(-log_odds))

standard = lambda column: (column - column.mean()) / column.std()
columns = [standard(age), standard(age) ** 2 / 2, standard(school), standard(hours), woman, rural, np.ones(PEOPLE)]
features = np.stack(columns, axis=1).astype(np.float32)
labels = np.where(earns_more, 1, -1).astype(np.float32)
groups = {"women": woman, "under 30": young, "rural": rural, "women under 30": woman & young}

# --- the problem ------------------------------------------------------------------------------------------------------

score = lambda w, a: jax.nn.sigmoid(a @ w)
loss = lambda w, row: jax.nn.softplus(-row["label"] * (row["features"] @ w))
ridge = lambda w: jnp.sum(w**2) / 2000

everyone = E(score, over=features)
objective = E(loss, over={"features": features, "label": labels}) + E(ridge)
constraints = {name: SHARE * everyone <= E(score, over=features[rows]) for name, rows in groups.items()}

x0 = np.zeros(features.shape[1], np.float32)
plain = mescal.minimize(mescal.Problem(objective), x0, solver="auto", tol=TOL)
fair = mescal.minimize(mescal.Problem(objective, constraints), x0, solver="auto", tol=TOL)
print(fair)

# --- what is claimed ----------------------------------------------------------------------------------------------------


def ratios(w) -> np.ndarray:
    """The rate of each group, divided by that of everyone."""
    rates = jax.nn.sigmoid(features @ np.asarray(w))
    return np.array([rates[rows].mean() / rates.mean() for rows in groups.values()])


def accuracy(w) -> float:
    """Share of people on the right side."""
    return float(np.mean((features @ np.asarray(w) > 0) == earns_more))


before, after = ratios(plain.x), ratios(fair.x)
rate = float(jax.nn.sigmoid(features @ np.asarray(fair.x)).mean())
assert plain.converged and fair.converged
assert (before < SHARE - 0.05).sum() >= 3, "without constraints most groups fall short"
assert (after >= SHARE - TOL / rate).all(), "with them every group has its share, to the tolerance"
assert accuracy(fair.x) > accuracy(plain.x) - 0.1

# --- the picture ------------------------------------------------------------------------------------------------------

figure, axis = plt.subplots(figsize=(7.6, 3.6))
place = np.arange(len(groups))[::-1]
for y, old, new in zip(place, before, after, strict=True):
    axis.plot([old, new], [y, y], color="#cccccc", linewidth=2, zorder=1)
axis.scatter(before, place, color=ORANGE, marker="s", s=60, label=f"unconstrained (accuracy {accuracy(plain.x):.3f})")
axis.scatter(after, place, color=BLUE, s=70, label=f"constrained, certified (accuracy {accuracy(fair.x):.3f})")
axis.axvline(SHARE, color=GREY, linestyle="--")
axis.text(SHARE, len(groups) - 0.5, f" required, rates to {TOL:g}", color=GREY, fontsize=9)
labels = [f"{name}\n{rows.sum()} of {PEOPLE}" for name, rows in groups.items()]
axis.set_yticks(place, labels)
for y, name in zip(place, groups, strict=True):
    price = float(fair.multipliers[name])
    words = f"multiplier {price:.2f}" if price > 1e-3 else "free"
    axis.text(1.16, y, words, va="center", fontsize=9, color=BLUE, backgroundcolor="white")
axis.set(xlabel="rate of the group / rate of everyone", xlim=(0.3, 1.32), ylim=(-0.6, len(groups) - 0.15))
axis.set_title("Four overlapping groups, one constraint each")
figure.legend(*axis.get_legend_handles_labels(), loc="outside lower center", ncols=2)
save(figure, "fairness_groups")
