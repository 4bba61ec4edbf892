"""Energy dispatch with a chance constraint in every hour: power for tomorrow, before demand and wind are known.

    minimise sum_t cost(g_t) + ramping   subject to   E[2 sigmoid((demand_t - wind_t - sum_i g_it) / h)] <= 0.05  for t = 1..24

2 sigmoid(u/h) is at least 1 where u >= 0, so each of the 24 constraints bounds the chance of a shortfall in its hour by 5
percent. The parameters are a dict of three generators in a box of their capacities; a sample is one day, all 24 hours at
once. The promise is checked on days that the solver never saw.
"""

import jax
import jax.numpy as jnp
import numpy as np
from style import BLUE, GREEN, GREY, ORANGE, plt, save

import mescal
from mescal import E, sets

TOL, RISK, SMOOTHING, DAYS = 5e-3, 0.05, 0.02, 2000
HOURS = np.arange(24)
CAPACITY = {"base": 4.0, "gas": 2.6, "peak": 2.0}  # GW
PRICE = {"base": 0.20, "gas": 0.45, "peak": 0.90}  # of a GW in an hour, in units of 100,000
CURVE = {"base": 0.01, "gas": 0.04, "peak": 0.10}


def days(count: int, seed: int) -> np.ndarray:
    """Demand less wind, (count, 24) in GW: two daily peaks, errors that persist from hour to hour."""
    rng = np.random.default_rng(seed)
    demand = 5.2 + 1.3 * np.exp(-(((HOURS - 8.5) / 2.2) ** 2)) + 1.9 * np.exp(-(((HOURS - 19) / 2.6) ** 2))
    demand = demand - 1.2 * np.exp(-(((HOURS - 3) / 3.0) ** 2))
    error = np.zeros((count, 24))
    for hour in range(24):
        before = error[:, hour - 1] if hour else 0.0
        error[:, hour] = 0.8 * before + 0.16 * rng.standard_t(6, count)
    wind = 0.9 * np.clip(rng.beta(2, 3, (count, 1)) + 0.08 * rng.standard_normal((count, 24)), 0, 1.4)
    return (demand + error - wind).astype(np.float32)


# --- the problem ------------------------------------------------------------------------------------------------------


def cost(g):
    """Fuel, and a charge for moving the base unit."""
    fuel = sum(jnp.sum(PRICE[unit] * g[unit] + CURVE[unit] * g[unit] ** 2) for unit in PRICE)
    return (fuel + 0.3 * jnp.sum(jnp.diff(g["base"]) ** 2)) / 24


def shortfall(g, net):
    """Of one day: at least 1 in every hour in which demand exceeds wind and generation."""
    return 2 * jax.nn.sigmoid((net - sum(g.values())) / SMOOTHING)


seen = days(DAYS, seed=0)
problem = mescal.Problem(
    E(cost),
    {"shortfall": E(shortfall, over=seen) <= RISK},
    sets.Product({unit: sets.Box(0.0, top) for unit, top in CAPACITY.items()}),
)
x0 = {unit: np.full(24, 0.7 * top, np.float32) for unit, top in CAPACITY.items()}
result = mescal.minimize(problem, x0, solver="auto", tol=TOL)
print(result)

# --- what is claimed ----------------------------------------------------------------------------------------------------

plan = {unit: np.asarray(g) for unit, g in result.x.items()}
total = sum(plan.values())
fresh = days(100_000, seed=1)
risk = (fresh > total).mean(axis=0)
worst_case = seen.max(axis=0)
print(f"shortfall on fresh days: largest of 24 hours {risk.max():.4f}; peak generation {total.max():.2f} GW")
assert result.converged
# A frequency over 2,000 days has deviation sqrt(0.05 * 0.95 / 2000) = 0.005 at most; 4.5 deviations over 24 hours fail in
# one of 10,000 data sets. The tolerance of the certificate comes on top.
assert (risk <= RISK + TOL + 4.5 * np.sqrt(RISK * (1 - RISK) / DAYS)).all()
assert total.sum() < worst_case.sum() - 5, "far less power than the worst day seen would ask for"

# --- the picture ------------------------------------------------------------------------------------------------------

figure, (top, bottom) = plt.subplots(2, 1, figsize=(8.2, 5.4), sharex=True, height_ratios=[2.6, 1])
edges = np.arange(25)
floor = np.zeros(24)
for unit, colour in zip(plan, (GREY, BLUE, ORANGE), strict=True):
    ceiling = floor + plan[unit]
    top.stairs(ceiling, edges, baseline=floor, fill=True, color=colour, alpha=0.55, label=unit)
    floor = ceiling
low, middle, high = np.quantile(fresh, [0.05, 0.5, 0.95], axis=0)
top.fill_between(HOURS + 0.5, low, high, color=GREEN, alpha=0.35, label="demand less wind, 5 % to 95 %", linewidth=0)
top.plot(HOURS + 0.5, middle, color=GREEN, linewidth=1.2)
top.plot(HOURS + 0.5, worst_case, ":", color="black", linewidth=1, label=f"worst of {DAYS} days seen")
top.set(ylabel="GW", title="Certified dispatch: in every hour a shortfall has a chance of at most 5 %", ylim=(0, None))
top.legend(ncols=2, fontsize=8, loc="lower right")
bottom.bar(HOURS + 0.5, 100 * risk, width=0.8, color=BLUE, alpha=0.8)
bottom.axhline(100 * RISK, color=ORANGE, linestyle="--")
bottom.set(xlabel="hour", ylabel="shortfall, %", xlim=(0, 24), xticks=range(0, 25, 3))
bottom.set_title("Frequency on 100,000 fresh days")
save(figure, "energy_dispatch")
