"""A minimum-risk portfolio with an expected-return constraint, and the whole frontier from warm starts.

    minimise E[(r'w - m)^2]   subject to   E[r'w] >= target,   w in the simplex,  m in R

The variance is no expectation of one sample, but its minimum over m is: the parameters are the dict {"w": weights, "m": mean}
on a product of two sets. Returns are monthly, in percent; each month is a row. The frontier is compared with quadratic
programming on the sample covariance.
"""

import numpy as np
from scipy.optimize import minimize as scipy_minimize
from style import BLUE, BROWN, GREEN, GREY, ORANGE, PINK, plt, save

import mescal
from mescal import E, sets

TOL = 1e-3
rng = np.random.default_rng(3)
NAMES = ["bonds", "utilities", "broad stocks", "small stocks", "emerging", "gold"]
MEANS = np.array([0.25, 0.45, 0.70, 0.85, 0.95, 0.35])
DEVIATIONS = np.array([1.2, 3.2, 4.3, 5.6, 6.3, 4.6])
loadings = rng.normal(size=(6, 2)) * [[0.2, 0.5], [0.5, 0.3], [0.9, 0.1], [0.9, 0.1], [0.8, 0.1], [0.0, 0.4]]
scale = np.sqrt((loadings**2).sum(1) + 0.25)
factors, own = rng.standard_t(5, size=(600, 2)), rng.standard_t(5, size=(600, 6))
noise = (factors @ loadings.T + 0.5 * own) / scale / np.sqrt(5 / 3)
months = MEANS + DEVIATIONS * noise

# --- the problem ------------------------------------------------------------------------------------------------------

portfolio = lambda x, r: r @ x["w"]
objective = E(lambda x, r: (portfolio(x, r) - x["m"]) ** 2, over=months)
domain = sets.Product(w=sets.Simplex(), m=sets.Reals())


def problem(target: float) -> mescal.Problem:
    """The problem for one expected return, in percent per month."""
    return mescal.Problem(objective, {"return": E(portfolio, over=months) >= target}, domain)


means, covariance = months.mean(axis=0), np.cov(months.T, bias=True)


def reference(target: float) -> np.ndarray:
    """The same portfolio by quadratic programming on the sample moments."""
    conditions = [
        {"type": "eq", "fun": lambda w: w.sum() - 1},
        {"type": "ineq", "fun": lambda w: means @ w - target},
    ]
    bounds = [(0, 1)] * 6
    found = scipy_minimize(
        lambda w: w @ covariance @ w, np.full(6, 1 / 6), bounds=bounds, constraints=conditions, tol=1e-12
    )
    return found.x


x0 = {"w": np.full(6, 1 / 6, np.float32), "m": np.float32(0.5)}
smallest = float(means @ reference(-10.0))
targets = np.linspace(smallest, means.max() - 0.05, 7)[1:]
results, last = [], None
for target in targets:
    last = mescal.minimize(problem(target), x0 if last is None else None, solver="auto", tol=TOL, start=last)
    results.append(last)
print(last)

# --- what is claimed ----------------------------------------------------------------------------------------------------

weights = np.array([np.asarray(result.x["w"]) for result in results])
risks = np.sqrt([result.objective for result in results])
exact = np.array([reference(target) for target in targets])
best = np.sqrt(np.einsum("ki,ij,kj->k", exact, covariance, exact))
assert all(result.converged for result in results)
assert (weights @ means >= targets - TOL).all()
prices = np.array([float(result.multipliers["return"]) for result in results])
# What a violation of at most TOL can gain at these prices, and stationarity of TOL over weights at most sqrt(2) apart.
assert (np.abs(risks**2 - best**2) <= TOL * (prices * 1.05 + 2)).all(), (risks, best)
slopes = np.diff(risks**2) / np.diff(targets)
assert ((slopes >= prices[:-1] * 0.98 - 0.05) & (slopes <= prices[1:] * 1.02 + 0.05)).all(), (
    "the multiplier is the price"
)

# --- the picture ------------------------------------------------------------------------------------------------------

figure, (left, right) = plt.subplots(1, 2, figsize=(9.4, 3.9), width_ratios=[1.1, 1])
colours = [GREY, GREEN, BLUE, ORANGE, PINK, BROWN]
left.scatter(np.sqrt(np.diag(covariance)), means, color=colours, marker="x", zorder=3)
for name, x, y in zip(NAMES, np.sqrt(np.diag(covariance)), means, strict=True):
    below = name == "broad stocks"
    left.annotate(name, (x, y), (5, -11 if below else 4), textcoords="offset points", fontsize=8)
fine = np.linspace(smallest, means.max() - 1e-3, 60)
curve = np.array([reference(target) for target in fine])
left.plot(
    np.sqrt(np.einsum("ki,ij,kj->k", curve, covariance, curve)), fine, color="#bbbbbb", label="quadratic programming"
)
left.plot(risks, weights @ means, "o", color=BLUE, label="certified by mescal")
left.set(xlabel="risk: standard deviation, % per month", ylabel="expected return, % per month")
left.set(title="The frontier, each point warm from the last", xlim=(0, 7.3), ylim=(0.1, 1.05))
left.legend(loc="upper left", fontsize=8)
right.stackplot(targets, weights.T, labels=NAMES, colors=colours, alpha=0.85)
right.set(xlabel="required return, % per month", ylabel="weight", xlim=(targets[0], targets[-1]), ylim=(0, 1))
right.set_title("What it is made of")
right.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=3, fontsize=8)
right.grid(False)
save(figure, "portfolio")
