"""Robust principal component analysis on the sphere: a nonconvex loss under an equality constraint.

    minimise E[ r/(1 + r) ],  r = |a - (a'x) x|^2 / s^2   subject to   x'x = 1

The loss of a point far from the line is bounded by 1 (Geman and McClure), so outliers lose their pull. The price is a
nonconvex objective on a nonconvex set: the certificate says that the line found is a local minimiser, and the best of a few
seeds' certified points is kept. Ordinary components follow the outliers.
"""

import jax.numpy as jnp
import numpy as np
from style import BLUE, GREEN, GREY, ORANGE, plt, save

import mescal
from mescal import E

TOL, DIMENSION, INLIERS, OUTLIERS = 1e-3, 20, 700, 100
rng = np.random.default_rng(5)
truth, away = np.linalg.qr(rng.normal(size=(DIMENSION, 2)))[0].T
inliers = rng.normal(size=(INLIERS, 1)) * 3 * truth + 0.4 * rng.normal(size=(INLIERS, DIMENSION))
away = 0.5 * truth + np.sqrt(0.75) * away  # 60 degrees
outliers = 14 * away * rng.choice([-1, 1], size=(OUTLIERS, 1)) + rng.normal(size=(OUTLIERS, DIMENSION))
rows = np.concatenate([inliers, outliers]).astype(np.float32)
scale = float(np.median(np.linalg.norm(rows, axis=1)))

# --- the problem ------------------------------------------------------------------------------------------------------


def loss(x, a):
    """r/(1 + r) with r the squared distance of a from the line of x, in units of the scale."""
    r = jnp.sum((a - (a @ x) * x) ** 2) / scale**2
    return r / (1 + r)


problem = mescal.Problem(E(loss, over=rows), {"sphere": E(lambda x: x @ x) == 1})
starts = [rng.normal(size=DIMENSION) for _ in range(4)]
results = [
    mescal.minimize(problem, (x / np.linalg.norm(x)).astype(np.float32), solver="auto", tol=TOL, seed=seed)
    for seed, x in enumerate(starts)
]
result = min((r for r in results if r.converged), key=lambda r: r.objective)
print(result)

# --- what is claimed ----------------------------------------------------------------------------------------------------


def angle(x) -> float:
    """Degrees between a line and the true one."""
    cosine = abs(x @ truth) / np.linalg.norm(x)
    return float(np.degrees(np.arccos(min(1.0, cosine))))


component = np.linalg.eigh(np.cov(rows.T))[1][:, -1]
robust = np.asarray(result.x, np.float64)
certificates = [mescal.certify(problem, component.astype(np.float32), tol=TOL), result.certificate]
print(f"angle to the truth: ordinary component {angle(component):.1f}, robust {angle(robust):.2f} degrees")
assert all(r.converged for r in results)
assert angle(robust) < 3 and angle(component) > 40
assert not certificates[0].passes(TOL) and certificates[1].passes(TOL)

# --- the picture ------------------------------------------------------------------------------------------------------

figure, axis = plt.subplots(figsize=(8.4, 4.4))
plane = np.linalg.qr(np.stack([truth, away], axis=1))[0].T
plane = plane * np.sign(plane @ (truth + away))[:, None]
for cloud, colour, name in ((inliers, GREY, "inliers"), (outliers, ORANGE, "outliers")):
    axis.plot(*(cloud @ plane.T).T, ".", color=colour, markersize=3, alpha=0.6, label=f"{len(cloud)} {name}")
reach = np.array([-13.0, 13.0])
for x, colour, style, name in (
    (component, ORANGE, "--", f"ordinary component, {angle(component):.0f}° off"),
    (robust, BLUE, "-", f"robust, certified, {angle(robust):.1f}° off"),
):
    direction = plane @ x
    axis.plot(reach * direction[0], reach * direction[1], style, color=colour, linewidth=2, label=name)
axis.axhline(0, color=GREEN, linewidth=0.8, linestyle=":", label="the truth")
axis.set(xlabel="along the true direction", ylabel="across it, towards the outliers", xlim=(-14, 14), ylim=(-15, 15))
axis.set_title(f"A line in {DIMENSION} dimensions, seen in the plane of truth and outliers")
figure.legend(*axis.get_legend_handles_labels(), loc="outside right upper", fontsize=9)
save(figure, "robust_pca")
