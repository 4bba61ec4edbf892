"""Coverage of the judge's intervals on streams: how often they hold the truth, on ten kinds of streams, at confidence 0.95.

The function is  E[a (x_1 + x_2) + h |x|^2 / 2], a and h drawn, at x = (1, 1): its gradient E[a] + E[h] in both coordinates and its
Hessian E[h] I are known in closed form. An interval that is to hold with probability 0.95 may be missed by
0.05 R + 3 sqrt(0.05 0.95 R) of R repetitions: at R = 1,000 that is 70.7, a share of 0.929, which chance alone passes with
probability 0.9987. The target is 0.93.
"""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np

import mescal
from mescal import E, Sampler

from ._measure import Report
from ._spread import spread

REPETITIONS, CHUNK, SAMPLES, TARGET = 1000, 25, 8192, 0.93


def rare(probability, size):
    """1 with a mean of 1 more from events of this probability."""
    return lambda key: 1.0 + size * jax.random.bernoulli(key, probability, (2,)).astype(float)


# Draws of (a, h), two numbers, and their means.
STREAMS = {
    "gaussian": (lambda key: 1.0 + jax.random.normal(key, (2,)), (1.0, 1.0)),
    "offset 1e8": (lambda key: 1e8 + 1e4 * jax.random.normal(key, (2,)), (1e8, 1e8)),
    "heavy tails, two moments": (lambda key: jax.random.pareto(key, 2.5, (2,)), (2.5 / 1.5, 2.5 / 1.5)),
    "student, four degrees": (lambda key: 1.0 + jax.random.t(key, 4.0, (2,)), (1.0, 1.0)),
    "rare, 1 in 100": (rare(1e-2, 100.0), (2.0, 2.0)),
    "rare, 1 in 1,000": (rare(1e-3, 1000.0), (2.0, 2.0)),
    "correlated": (lambda key: jnp.full(2, 1.0 + jax.random.normal(key, ())), (1.0, 1.0)),
    "tiny variance": (lambda key: 1.0 + 1e-6 * jax.random.normal(key, (2,)), (1.0, 1.0)),
    "lognormal": (lambda key: jnp.exp(jax.random.normal(key, (2,))), (float(np.exp(0.5)),) * 2),
    "two values": (lambda key: jax.random.bernoulli(key, 0.5, (2,)).astype(float), (0.5, 0.5)),
}


def bowl(x, u):
    """a (x_1 + x_2) + h |x|^2 / 2."""
    return u[0] * jnp.sum(x) + 0.5 * u[1] * (x @ x)


@cache
def problem(kind: str) -> mescal.Problem:
    """Its stream, made in float64."""
    with jax.enable_x64(True):
        return mescal.Problem(E(bowl, over=Sampler(STREAMS[kind][0])))


def covered(job: tuple[str, int]) -> tuple[str, list[list[bool]]]:
    """Whether each of three intervals holds the truth, for some seeds, and whether a certificate says what it may not see."""
    kind, first = job
    a, h = STREAMS[kind][1]
    truths = {"stationarity": np.sqrt(2.0) * abs(a + h), "curvature": h}
    found = []
    for seed in range(first, first + CHUNK):
        certificate = mescal.certify(problem(kind), np.ones(2), samples=SAMPLES, seed=seed)
        inside = [
            getattr(certificate, name).lower <= truth <= getattr(certificate, name).upper
            for name, truth in truths.items()
        ]
        said = "blind to events rarer than" in certificate.curvature.how
        found.append([*inside, all(inside), said])
    return kind, found


def run(quick: bool) -> Report:
    """All kinds."""
    repetitions = CHUNK if quick else REPETITIONS
    kinds = ["gaussian"] if quick else list(STREAMS)
    jobs = [(kind, first) for first in range(0, repetitions, CHUNK) for kind in kinds]
    report = Report({"repetitions": repetitions, "samples": SAMPLES, "confidence": 0.95, "target": TARGET})
    every: dict[str, list[list[bool]]] = {kind: [] for kind in kinds}
    for kind, found in spread(covered, jobs):
        every[kind] += found
    for kind, found in every.items():
        if not found:
            continue
        shares = np.mean(found, axis=0)
        names = ("stationarity", "curvature", "both", "says_what_it_cannot_see")
        report.add(
            "shares of intervals that hold the truth",
            stream=kind,
            repetitions=len(found),
            **dict(zip(names, map(float, shares), strict=True)),
        )
        report.hold(f"{kind}: share of repetitions in which an interval misses", float(1 - shares[2]), 1 - TARGET)
    return report
