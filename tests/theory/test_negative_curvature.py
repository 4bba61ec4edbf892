"""Searches for negative curvature: formulas, and the contract of Oja and Lanczos on matrices of known spectrum."""

import math

import numpy as np
import pytest

from mescal.errors import InputError
from mescal.theory import negative_curvature as nc
from mescal.theory.constants import SubproblemConstants
from mescal.theory.success import lower_bound


def known(lipschitz=2.0, noise=1.0, bend=3.0):
    return SubproblemConstants(
        gradient_lipschitz=lipschitz, hessian_lipschitz=bend, gradient_noise=1.0, hessian_noise=noise, gap=1.0
    )


def test_oja_by_hand():
    t, p, d = 0.1, 0.01, 30
    search = nc.oja(known(), t, p, d)
    assert search.runs == 8  # log2(200) = 7.6
    assert search.steps == math.ceil(576 * 400 * math.log(60 / 0.01) ** 2)
    assert search.verification_batch == math.ceil(72 * 400 * math.log(32 / 0.01))
    assert search.step_size == pytest.approx(t / (24 * 2.0 * math.log(6000)), rel=1e-6)
    assert search.cost.hessian_products == 8 * (search.steps + search.verification_batch)
    assert nc.oja(known(), t, p, d, absolute=2.0).steps == pytest.approx(4 * search.steps, rel=1e-6)


def test_oja_budget_adds_up_to_the_failure_probability():
    search = nc.oja(known(), 0.1, 0.01, 30)
    never_found = 0.5**search.runs
    verification = search.runs * 2 * math.exp(-search.verification_batch * 0.1**2 / (72 * 2.0**2))
    assert never_found + verification <= 0.01


def test_minibatch_matches_the_measured_setting():
    """Spec 4.2: d = 50, L = 2, s_H = 1, t = 0.01 gives b = 100, step 0.25, T about 3100."""
    search = nc.oja_minibatch(known(), 0.01, 50)
    assert (search.batch, search.step_size) == (100, pytest.approx(0.25))
    assert search.steps == pytest.approx(3100, rel=0.02)
    assert search.step_size * 1.0 / (2 * search.batch) <= 0.01 / 8 * (1 + 1e-9)  # noise floor
    assert nc.oja_minibatch(known(), 0.01, 50, population=40).batch == 40
    assert nc.oja_minibatch(known(noise=0.0), 0.01, 50).batch == 1


def test_lanczos_by_hand():
    t, p, d = 0.1, 0.01, 5000
    search = nc.lanczos(known(), t, p, d)
    assert search.batch == math.ceil(128 * 100 * math.log(20_000 / 0.01))
    e = t / (8 * 4.0)
    assert search.steps == math.ceil(0.5 + math.log(2 * 1.648 * math.sqrt(d) / p) / (2 * math.sqrt(e)))
    assert 1.648 * math.sqrt(d) * math.exp(-math.sqrt(e) * (2 * search.steps - 1)) <= p / 2
    assert nc.lanczos(known(), t, p, 12).steps == 12  # exact after d steps
    assert nc.lanczos(known(), t, p, d, population=300).batch == 300
    assert nc.lanczos(known(), t, p, d, spread=1.0).steps < search.steps


def test_neon2_by_hand():
    t, p, d = 0.1, 0.01, 30
    search = nc.neon2(known(), t, p, d)
    logarithm = math.log(60 / 0.01)
    assert search.step_size == pytest.approx(t / (4 * logarithm))
    assert search.steps == math.ceil(logarithm / (search.step_size * t))
    assert search.escape_radius == pytest.approx(6000 * search.perturbation)
    assert search.perturbation == pytest.approx(6000**-2 * search.step_size**2 * t**3 / 3.0)
    assert search.cost.gradients == 2 * search.runs * (search.steps + search.verification_batch)
    # Verification: finite-difference error t/8, sampling error t/8 but for p/2 over all runs.
    assert 3.0 * search.probe_length / 2 == pytest.approx(t / 8)
    assert search.runs * 2 * math.exp(-search.verification_batch * t**2 / (128 * 4)) <= p / 2


def test_neon2_of_the_theory_underflows_and_the_runnable_one_does_not():
    theory = nc.neon2(known(), 0.01, 1e-9, 1000, absolute=15.0)
    assert theory.perturbation == 0.0
    runnable = nc.neon2_runnable(known(), 0.01, 1000)
    assert runnable.perturbation == pytest.approx(1e-4 * runnable.escape_radius) == pytest.approx(1e-6 / 30)


@pytest.mark.parametrize("search", [nc.oja, nc.lanczos, nc.neon2])
def test_harder_searches_cost_more(search):
    base = search(known(), 0.1, 0.01, 10_000).cost.total
    assert search(known(), 0.05, 0.01, 10_000).cost.total > base
    assert search(known(), 0.1, 0.001, 10_000).cost.total > base
    assert search(known(), 0.1, 0.01, 100_000).cost.total > base
    assert search(known(lipschitz=4.0), 0.1, 0.01, 10_000).cost.total >= base
    with pytest.raises(InputError, match="failure"):
        search(known(), 0.1, 0.0, 10)
    with pytest.raises(InputError, match="tolerance"):
        search(known(), 0.0, 0.1, 10)


def spectra(rng, trials, d, tolerance):
    """Random symmetric matrices in [-1/2, 1/2]; smallest eigenvalue around the tolerance, where errors can happen."""
    basis = np.linalg.qr(rng.normal(size=(trials, d, d)))[0]
    values = rng.uniform(-0.3 * tolerance, 0.5, (trials, d))
    values[:, 0] = -tolerance * rng.choice([0.2, 0.6, 1.05, 1.4], trials)
    return np.einsum("nij,nj,nkj->nik", basis, values, basis), values.min(1)


def test_oja_keeps_its_contract():
    """80 noisy matrices, |H_theta| <= 1 = L_g, t = 0.5, p = 0.2: failures in either direction within p at 99 %.

    With true failure probability p the one-sided Clopper-Pearson test rejects in 1 % of seeds.
    """
    rng, trials, d, t, p = np.random.default_rng(3), 80, 3, 0.5, 0.2
    search = nc.oja(known(lipschitz=1.0), t, p, d)
    matrices, smallest = spectra(rng, trials, d, t)
    rows = np.repeat(matrices, search.runs, 0)
    w = rng.normal(size=(len(rows), d))
    w /= np.linalg.norm(w, axis=1, keepdims=True)
    kept, keep_at = w.copy(), rng.integers(1, search.steps + 1, len(rows))
    for i in range(1, search.steps + 1):
        noise = 0.5 * rng.choice([-1.0, 1.0], (len(rows), 1))  # H_theta = H +- I/2: a.s. bound 1
        kept = np.where((keep_at == i)[:, None], w, kept)
        product = np.matmul(rows, w[:, :, None])[:, :, 0] + noise * w
        w = w + search.step_size * (w / 2 - product / 2)
        w /= np.sqrt(np.einsum("ij,ij->i", w, w))[:, None]
    curvature = np.einsum("ni,nij,nj->n", kept, rows, kept)
    wrong = 0.5 * (2 * rng.binomial(search.verification_batch, 0.5, len(rows)) / search.verification_batch - 1)
    estimate = (curvature + wrong).reshape(trials, search.runs)
    best = estimate.argmin(1)
    found = estimate.min(1) < -search.threshold
    true = curvature.reshape(trials, search.runs)[np.arange(trials), best]
    failures = np.sum(np.where(found, true > -t / 2, smallest < -t))
    assert lower_bound(int(failures), trials, 0.99) <= p
    assert found.any()
    assert not found.all()


def test_lanczos_keeps_its_contract():
    """200 noisy matrices, whole spectrum of the sampled Hessian (steps = d): failures within p at 99 %."""
    rng, trials, d, t, p = np.random.default_rng(4), 200, 4, 0.4, 0.1
    search = nc.lanczos(known(lipschitz=1.0, noise=0.5), t, p, d)
    assert search.steps == d
    matrices, smallest = spectra(rng, trials, d, t)
    signs = 2 * rng.binomial(search.batch, 0.5, (trials, d)) / search.batch - 1  # independent signs on the diagonal
    sampled = matrices + 0.5 * np.einsum("ni,ij->nij", signs, np.eye(d))
    values, vectors = np.linalg.eigh(sampled)
    u, found = vectors[:, :, 0], values[:, 0] <= -search.threshold
    true = np.einsum("ni,nij,nj->n", u, matrices, u)
    failures = np.sum(np.where(found, true > -t / 2, smallest < -t))
    assert lower_bound(int(failures), trials, 0.99) <= p
    assert 0 < found.sum() < trials
