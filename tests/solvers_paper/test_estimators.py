"""The estimators along runs: as close to the gradient as the proofs need them."""

import numpy as np

from mescal import theory


def errors(subproblem, solver, seeds, steps, stride=1):
    """|g_t - grad L(z_t)| along runs."""
    plan, found = subproblem.plan(solver), []
    for seed in seeds:
        state = subproblem.begin(solver, plan, seed)
        for _ in range(steps // stride):
            state = subproblem.advance(solver, state, plan, stride)
            found.append(np.linalg.norm(np.asarray(state.gradient) - subproblem.exact_gradient(state.previous)))
    return np.asarray(found)


def test_hvp_rvr_errs_by_e_in_mean_square(subproblem, knowing_solvers):
    """E|g - grad L|^2 <= e^2 = (eps_g/3)^2 at every step; here the mean over 4 runs of 600 steps, escapes included."""
    accuracy = theory.sg_hv_nc.parameters(subproblem.constants, 0.1, 0.3).gradient_accuracy
    found = errors(subproblem, knowing_solvers["sg-hv-nc"], range(4), 600, stride=2)
    assert 0.1 * accuracy < np.sqrt(np.mean(found**2)) <= accuracy


def test_spider_errs_by_less_than_its_accuracy(subproblem, knowing_solvers):
    """|g - grad L| <= et at every step of a run, but for one run in 16; here 600 steps of 4."""
    accuracy = theory.spider.parameters(subproblem.constants, 0.1, 0.3, sharp=True).accuracy
    found = errors(subproblem, knowing_solvers["spider"], range(4), 600, stride=2)
    assert 0.05 * accuracy < found.max() <= accuracy
