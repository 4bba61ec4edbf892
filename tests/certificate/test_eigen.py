"""Lanczos with a lower bound: how often the bounds fail over random starts, and what happens on invariant subspaces."""

import math

import numpy as np
import pytest
import scipy.linalg
import scipy.stats

from mescal.certificate.eigen import (
    Krylov,
    lanczos_smallest,
    lowest_eigenpairs,
    polynomial_lower_bound,
    smallest_eigenspace,
    smallest_start_component,
    spread_fraction,
)


def whole(v):
    return v


def hard_spectrum(dimension, gap=0.05):
    """One eigenvalue at 0, the others in [gap, 1] with the density of Chebyshev points: the slowest kind for Lanczos."""
    return np.concatenate([[0.0], gap + (1 - gap) * np.sin(np.linspace(0, np.pi / 2, dimension - 1)) ** 2])


def dense_ritz(spectrum, starts, steps):
    """Smallest Ritz values of Krylov spaces of `steps` products, one per start, by orthonormal bases in plain numpy."""
    found = []
    for b in starts:
        columns = [b / np.linalg.norm(b)]
        for _ in range(steps - 1):
            w = spectrum * columns[-1]
            Q = np.stack(columns, axis=1)
            for _ in range(2):
                w = w - Q @ (Q.T @ w)
            columns.append(w / np.linalg.norm(w))
        Q = np.stack(columns, axis=1)
        found.append(np.linalg.eigvalsh(Q.T @ (spectrum[:, None] * Q))[0])
    return np.array(found)


@pytest.mark.parametrize(("steps", "failure"), [(6, 0.5), (10, 0.3), (14, 0.1)])
def test_kuczynski_wozniakowski_bound_holds(steps, failure):
    """2000 uniform starts. The bound is not sharp: a failure needs an observed frequency beyond it, many standard errors
    above the true one (0.03 to 0.15 here), so false failures are negligible; that the frequency is positive where the bound
    is closest shows that the test can see failures at all."""
    dimension = 100
    spectrum = hard_spectrum(dimension)
    rng = np.random.default_rng([1, steps])
    ritz = dense_ritz(spectrum, rng.standard_normal((2000, dimension)), steps)
    fraction = spread_fraction(dimension, steps, failure)
    assert 1.648 * math.sqrt(dimension) * math.exp(-math.sqrt(fraction) * (2 * steps - 1)) == pytest.approx(failure)
    frequency = np.mean(spectrum[0] < ritz - fraction * (spectrum[-1] - spectrum[0]))
    assert frequency <= failure
    if steps == 10:
        assert frequency > 0.05


def test_polynomial_bound_holds():
    """2000 uniform starts with failure probability 0.2, which is sharp: 4 standard errors, a false failure in 30000 runs."""
    dimension, steps, failure = 100, 14, 0.2
    spectrum = hard_spectrum(dimension)
    rng = np.random.default_rng(2)
    component = smallest_start_component(dimension, failure)
    failures = 0
    for b in rng.standard_normal((2000, dimension)):
        krylov = Krylov(lambda v: spectrum * v, whole, dimension, steps)
        krylov.begin(b)
        krylov.extend()
        ritz = float(krylov.ritz()[0][0])
        lower = polynomial_lower_bound(
            np.array(krylov.diagonal), np.array(krylov.offdiagonal), ritz, component, krylov.scale
        )
        failures += spectrum[0] < lower
    assert failures / 2000 <= failure + 4 * math.sqrt(failure * (1 - failure) / 2000)
    assert failures > 0


@pytest.mark.parametrize("size", [1.0, 1e300, 1e305, 1e307, np.inf, np.nan])
def test_polynomial_bound_ends_where_numbers_end(size):
    """From 1e305 on the point lies beyond the largest number: nothing is known, and nobody waits for a ratio of infinities."""
    lower = polynomial_lower_bound(np.zeros(2), np.full(2, size), 0.0, 1e-12, size)
    if size <= 1e300:  # 1 + y^2 + (y^2 - 1)^2 = 1e24 in units of the size
        root = (0.5 + math.sqrt(1e24 - 1.75)) ** 0.5
        assert lower / size == pytest.approx(-root, rel=1e-3) and lower / size <= -root * (1 - 1e-9)
    elif np.isfinite(size):
        assert lower == -math.inf


def test_start_component_quantile():
    for dimension in (2, 3, 10, 10_000):
        for failure in (0.3, 1e-3, 1e-8):
            t = smallest_start_component(dimension, failure)
            exact = scipy.stats.beta.cdf(t * t, 0.5, (dimension - 1) / 2)
            assert 0.5 * failure <= exact <= failure


def test_krylov_identity():
    """A Q = Q T + r e', and Q'Q = 1."""
    rng = np.random.default_rng(3)
    A = rng.standard_normal((40, 40))
    A = A + A.T
    krylov = Krylov(lambda v: A @ v, whole, 40, 25)
    krylov.begin(rng.standard_normal(40))
    krylov.extend()
    Q = krylov.basis[:25].T
    diagonal, coupling = krylov.bands(0)
    T = np.diag(diagonal) + np.diag(coupling, 1) + np.diag(coupling, -1)
    rest = A @ Q - Q @ T
    assert krylov.next is not None
    rest[:, -1] -= krylov.offdiagonal[-1] * krylov.next
    np.testing.assert_allclose(rest, 0, atol=1e-12)
    np.testing.assert_allclose(Q.T @ Q, np.eye(25), atol=1e-13)


def test_intervals_hold_over_many_starts():
    """400 starts with failure probability 0.1: at most the 1 - 1e-5 quantile of Binomial(400, 0.1) may fail."""
    rng = np.random.default_rng(4)
    dimension = 120
    spectrum = np.sort(np.concatenate([[-1.0, -0.97], rng.uniform(-0.9, 3.0, dimension - 2)]))
    failures, lengths = 0, []
    for seed in range(400):
        found = lanczos_smallest(
            lambda v: spectrum * v, whole, dimension, dimension, failure=0.1, resolution=0.05, max_steps=60, seed=seed
        )
        assert found.value >= spectrum[0] - 1e-12
        failures += spectrum[0] < found.lower
        lengths.append(found.value - found.lower)
    assert failures <= scipy.stats.binom.ppf(1 - 1e-5, 400, 0.1)
    assert max(lengths) <= 0.05


@pytest.mark.parametrize("spectrum", [np.zeros(50), np.full(50, 2.5), np.repeat([3.0, -1.0, 0.0], [20, 1, 29])])
def test_invariant_subspaces(spectrum):
    dimension = len(spectrum)
    Q = np.linalg.qr(np.random.default_rng(5).standard_normal((dimension, dimension)))[0]
    A = Q @ np.diag(spectrum) @ Q.T
    for resolution in (1e-3, 1e-14):
        found = lanczos_smallest(
            lambda v: A @ v, whole, dimension, dimension, failure=1e-6, resolution=resolution, max_steps=100, seed=0
        )
        assert found.lower <= spectrum.min() <= found.value + 1e-12
        assert found.value == pytest.approx(spectrum.min(), abs=1e-12)
        assert found.value - found.lower <= max(1e-3, resolution)
        assert found.exact == (found.steps == dimension)


def test_restart_finds_what_a_start_inside_an_invariant_subspace_misses():
    """A projection that hides the start's component makes the first block invariant; the second one finds the rest."""
    spectrum = np.array([1.0, 2.0, 3.0, -5.0])
    calls = []

    def project(v):
        if len(calls) == 0:
            calls.append(1)
            return v * np.array([1.0, 1.0, 1.0, 0.0])
        return v

    krylov = Krylov(lambda v: spectrum * v, project, 4, 4)
    krylov.begin(np.array([1.0, 1.0, 1.0, 0.0]))
    krylov.extend()
    assert krylov.steps == 3
    assert not krylov.begin(np.array([1.0, 2.0, -1.0, 0.0]))
    assert krylov.begin(np.array([1.0, 2.0, -1.0, 1.0]))
    krylov.extend()
    np.testing.assert_allclose(np.sort(krylov.ritz()[0]), np.sort(spectrum), atol=1e-12)


def test_dense_eigenspace_has_the_whole_multiplicity():
    Q = np.linalg.qr(np.random.default_rng(6).standard_normal((12, 12)))[0]
    for multiplicity in (1, 3, 4, 7, 12):
        values = np.concatenate([np.full(multiplicity, -2.0), np.arange(12 - multiplicity)])
        value, space = smallest_eigenspace(Q @ np.diag(values) @ Q.T, 1e-10)
        assert value == pytest.approx(-2.0)
        assert space.shape == (12, multiplicity)


def test_where_lapack_fails_on_a_cluster_all_eigenpairs_are_computed(monkeypatch):
    """Its routine for some eigenpairs ends in "Internal Error" on some matrices with many equal eigenvalues."""
    Q = np.linalg.qr(np.random.default_rng(0).normal(size=(18, 18)))[0]
    matrix = Q @ np.diag([1e-4] * 13 + [0.1, 0.2, 0.3, 0.4, 0.5]) @ Q.T
    whole_eigh = scipy.linalg.eigh

    def failing(matrix, **options):
        if options.get("driver") == "evr":
            raise np.linalg.LinAlgError("Internal Error.")
        return whole_eigh(matrix, **options)

    monkeypatch.setattr(scipy.linalg, "eigh", failing)
    values, vectors = lowest_eigenpairs(matrix, 4)
    np.testing.assert_allclose(values, 1e-4, atol=1e-15)
    np.testing.assert_allclose(matrix @ vectors, vectors * values, atol=1e-15)
    value, space = smallest_eigenspace(matrix, 1e-8)
    assert value == pytest.approx(1e-4) and space.shape == (18, 13)
