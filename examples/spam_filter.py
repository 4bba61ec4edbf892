"""A Neyman-Pearson spam filter: the fewest missed spams at a bounded rate of lost mail, and what the bound costs.

    minimise E[sigmoid(-a'w) | spam] + |w|^2/2000   subject to   E[sigmoid(a'w) | mail] <= tau

The bound tau is tightened step by step, each solve warm from the last. The multiplier of a certified point is the price of
the bound: by how much fewer misses there would be per unit of tau. The script checks that against the curve it draws.
Real e-mails (spambase) where the folder MESCAL_DATA or the cache has them; nothing is downloaded, and without them the
tumours that come with scikit-learn take their place.
"""

import jax
import jax.numpy as jnp
import numpy as np
from style import BLUE, GREY, ORANGE, plt, save

import mescal
from mescal import E, datasets
from mescal.datasets.places import data_folder

TOL = 2e-3
folders = [folder for folder in (data_folder(), datasets.cache_folder()) if folder is not None]
spam = any((folder / "spambase.data").is_file() for folder in folders)
name, what = ("spambase", ("spam", "mail")) if spam else ("breast-cancer", ("malignant", "benign"))
data = datasets.load(name)
print(f"{name}: {len(data.positives)} {what[0]}, {len(data.negatives)} {what[1]}")

# --- the problem, for every bound -----------------------------------------------------------------------------------------

score = lambda w, a: jax.nn.sigmoid(a @ w)
miss = lambda w, a: jax.nn.sigmoid(-(a @ w))
objective = E(miss, over=data.positives) + E(lambda w: jnp.sum(w**2) / 2000)
accepted = E(score, over=data.negatives)

bounds = [0.30, 0.25, 0.20, 0.15, 0.12, 0.10, 0.08] if spam else [0.08, 0.07, 0.06, 0.05, 0.04, 0.03]
results, last = [], None
for tau in bounds:
    problem = mescal.Problem(objective, {"false positives": accepted <= tau})
    x0 = None if last else np.zeros(data.features.shape[1], np.float32)
    last = mescal.minimize(problem, x0, solver="auto", tol=TOL, start=last)
    results.append(last)
print(last)

# --- what is claimed ----------------------------------------------------------------------------------------------------

values = np.array([result.objective for result in results])
prices = np.array([float(result.multipliers["false positives"]) for result in results])
rates = np.array([float(jax.nn.sigmoid(data.negatives @ np.asarray(r.x)).mean()) for r in results])
assert all(result.converged for result in results)
assert (rates <= np.array(bounds) + TOL).all(), "every bound is kept, to the tolerance"
steps = -np.diff(bounds)
predicted = steps * (prices[1:] + prices[:-1]) / 2
slack = TOL * prices.max() + TOL * max(np.linalg.norm(np.asarray(r.x)) for r in results) / 4
assert (np.diff(values) >= -slack).all() and values[-1] > values[0] + slack, "a tighter bound costs misses"
assert np.all(np.abs(np.diff(values) - predicted) <= slack), "the multiplier is the price of the bound"

# --- the picture ------------------------------------------------------------------------------------------------------

figure, (left, right) = plt.subplots(1, 2, figsize=(9.2, 3.7))
left.plot(bounds, values, "o-", color=BLUE, label="certified points")
for tau, value, price in list(zip(bounds, values, prices, strict=True))[::2]:
    reach = 0.012
    tangent = [value + price * reach, value - price * reach]
    left.plot([tau - reach, tau + reach], tangent, color=ORANGE, linewidth=1.3)
left.plot([], [], color=ORANGE, label="slope given by the multiplier")
left.set(xlabel=f"bound on accepted {what[1]}, tau", ylabel=f"rate of missed {what[0]} (+ ridge)")
left.set(title="What a stricter bound costs", ylim=(0, None))
left.legend()
first, final = (np.asarray(r.x) for r in (results[0], results[-1]))
bins = np.linspace(0, 1, 31)
for rows, colour, label in ((data.positives, ORANGE, what[0]), (data.negatives, BLUE, what[1])):
    shares = np.full(len(rows), 1 / len(rows))
    for w, style, tau in ((first, "--", bounds[0]), (final, "-", bounds[-1])):
        scores = np.asarray(jax.nn.sigmoid(rows @ w))
        right.hist(
            scores, bins, weights=shares, histtype="step", color=colour, linestyle=style, label=f"{label}, tau = {tau}"
        )
right.axvline(0.5, color=GREY, linewidth=0.8)
right.set(xlabel="score", ylabel="share", title="Scores at the loosest and the strictest bound", yscale="log")
right.legend(fontsize=8, loc="upper center", ncols=2)
right.set_ylim(top=3)
save(figure, "spam_filter")
