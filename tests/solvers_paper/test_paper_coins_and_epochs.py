"""Paper modes of SG-HV-NC and Natasha2: work counted by hand, frequencies of what is drawn, and what no practical recursion does.

Chi-square quantiles are at 1 - 1e-6: so often a test fails that should not, for a new set of seeds; the seeds are fixed.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2

import mescal
from mescal.errors import InputError
from mescal.solvers import Natasha2, Natasha2Paper, SgHvNc, SgHvNcPaper, SpiderPaper
from mescal.solvers.base import EXHAUSTED, Goal, Memory
from mescal.solvers.drive import compiled_advance, compiled_begin
from mescal.testing.exercises import ROWS, nearest
from mescal.theory import sgd3sc
from tests.solvers_paper.watched import PENALTY, Nowhere, lengths, walk

COIN, RESET = 0.6, 0.25
DENSITY = 300.0
SG_HV_NC = SgHvNcPaper(
    step_size=0.1, coin=COIN, reset_share=RESET, path_density=DENSITY, every=1, inner_steps=5000, search=Nowhere()
)
NATASHA2 = Natasha2Paper(step_size=0.05, sub_epochs=3, sub_epoch_steps=4, pairs=3, final_steps=50, search=Nowhere())
EPOCH = ROWS + 2 * 3 * 4  # gradients


def require_frequencies(counts, probabilities):
    """Pearson's statistic below its quantile."""
    expected = np.sum(counts) * np.asarray(probabilities)
    assert expected.min() > 20
    assert np.sum((counts - expected) ** 2 / expected) < chi2.isf(1e-6, len(expected) - 1)


def test_work_of_sg_hv_nc_is_a_hand_count(small):
    """Step by step: a search where z stays; all rows or ceil(k (al |dz|)^2/b) products where the last step moved; else nothing."""
    walked = walk(SG_HV_NC, small, 60)
    moved = lengths(walked)
    work = [(0, 0)] + [(p.work.tally().gradients, p.work.tally().hvps) for p in walked[1:]]
    kinds = []
    for t in range(60):
        gradients, products = np.subtract(work[t + 1], work[t])
        products -= moved[t] == 0  # the search
        path = DENSITY * (PENALTY * (moved[t - 1] if t else 0)) ** 2 / RESET
        if t == 0 or (moved[t - 1] and gradients):
            assert (gradients, products) == (ROWS, 0)
            kinds.append("reset")
        else:
            assert gradients == 0
            assert path * (1 - 1e-3) <= products < path + 1 + 1e-3 * path
            kinds.append("path" if path else "stay")
    assert set(kinds) == {"reset", "path", "stay"} and max(np.diff(work, axis=0)[:, 1]) > 5


def test_coins_of_sg_hv_nc(small):
    """2,000 steps: each searches with probability 1 - q; all but the first reset with q b. Chi-square, one degree of freedom."""
    steps = 2000
    end = walk(replace(SG_HV_NC, every=steps, inner_steps=steps, path_density=1e-6), small, 1)[-1]
    searches, resets = end.searches.tally().hvps, end.work.tally().gradients // ROWS - 1
    require_frequencies([searches, steps - searches], [1 - COIN, COIN])
    require_frequencies([resets, steps - 1 - resets], [COIN * RESET, 1 - COIN * RESET])


def test_sg_hv_nc_stands_still_while_it_searches(small):
    """Nothing found: z stays for a step, whatever the gradient is. The practical recursion moves where it is not stationary."""
    walked = walk(SG_HV_NC, small, 40)
    searched = np.diff([0] + [p.searches.tally().hvps for p in walked[1:]])
    np.testing.assert_array_equal(searched == 1, lengths(walked) == 0)
    assert 0 < searched.sum() < 40
    practical = walk(SgHvNc(search=Nowhere()), small, 3)
    assert (lengths(practical) > 0).all() and practical[-1].searches.tally().hvps == 0


@pytest.mark.parametrize(
    "solver",
    [
        SpiderPaper(step_length=0.1, reset=8, batch=2),
        SgHvNcPaper(curvature_step=0.1, coin=0.0, reset=8),
        Natasha2Paper(curvature_step=0.1, epoch=8),
    ],
    ids=lambda solver: solver.name,
)
def test_steps_along_negative_curvature_have_fair_signs(subproblem, knowing_solvers, solver):
    """One length, and from a ridge either side in 150 runs: chi-square, one degree of freedom."""
    solver = replace(solver, search=knowing_solvers["spider"].search)
    plan, moves = solver.plan(subproblem.goal(), np.float32), []
    for seed in range(150):
        state = subproblem.begin(solver.steps, plan, seed)
        after = subproblem.advance(solver.steps, state, plan, 1)
        moves.append(np.asarray(after.progress.z, np.float64) - np.asarray(state.progress.z, np.float64))
    np.testing.assert_allclose(np.linalg.norm(moves, axis=1), 0.1, rtol=1e-3)
    positive = int(np.sum(np.stack(moves) @ moves[0] > 0))
    require_frequencies([positive, 150 - positive], [0.5, 0.5])


def test_work_of_natasha2_is_a_hand_count(small):
    """A search and N + 2 q B' gradients for every pair; then a gradient for every step of SGD3SC's schedule, and the end."""
    smoothness = PENALTY / (2 * NATASHA2.step_size)
    stages = sgd3sc.schedule(NATASHA2.nonconvexity * PENALTY, smoothness, NATASHA2.final_steps)
    runs = [segment.steps for stage in stages for segment in stage.segments for _ in range(segment.repeats)]
    walked = walk(NATASHA2, small, 3 + len(runs))
    for progress in walked:
        t, tally = int(progress.steps), progress.work.tally()
        assert (tally.gradients, tally.hvps) == (EPOCH * min(t, 3) + sum(runs[: max(0, t - 3)]), min(t, 3))
        assert progress.searches.tally().hvps == min(t, 3)
    assert int(walked[-1].status) == EXHAUSTED


def test_natasha2_searches_before_every_epoch(small):
    """The practical recursion takes as many epochs without one."""
    assert walk(NATASHA2, small, 3)[-1].searches.tally().hvps == 3
    practical = walk(Natasha2(search=Nowhere()), small, 3)[-1]
    assert practical.work.tally().gradients > 0 and practical.searches.tally().hvps == 0


def test_the_hinge_of_natasha2_holds_an_epoch_back(small):
    """Beyond its radius, 0.05/al, epochs move less than without a hinge, which the practical recursion does not have."""
    free = replace(NATASHA2, sub_epochs=20, hinge=0.0, curvature_step=0.05)
    far, near = (lengths(walk(solver, small, 1))[0] for solver in (free, replace(free, hinge=5.0)))
    assert far > 4 * 0.05 / PENALTY
    assert near < far / 2


def test_pairs_of_natasha2_are_uniform(small):
    """The centre of the last phase is each of three starts of epochs once in three: 150 runs, chi-square, two degrees."""
    plan = replace(NATASHA2, epoch=2).plan(Goal(1e-6, 1e-6, 100, ROWS, ROWS, ROWS, penalty=PENALTY), np.float32)
    z, counts = 3 * np.ones(small.form.size, np.float32), [0, 0, 0]
    for seed in range(150):
        key = np.array([0, seed], np.uint32)
        state = compiled_begin(NATASHA2.steps, small.lagrangian, z, plan, Memory.fresh(1.0, np.float32), key)
        starts = []
        for _ in range(3):
            starts.append(np.asarray(state.progress.z))
            state = compiled_advance(NATASHA2.steps, small.lagrangian, state, plan, np.int32(1))
        counts[[bool((start == np.asarray(state.centre)).all()) for start in starts].index(True)] += 1
    require_frequencies(counts, np.full(3, 1 / 3))


@pytest.mark.parametrize("solver", [SG_HV_NC, NATASHA2], ids=lambda solver: solver.name)
def test_a_run_is_algorithm_1_of_section_5(solver):
    """al_k = 1.1^(k+1), work that is the sum of the inner solves', the same bits for the same seed."""
    at = nearest()
    asked = {"solver": replace(solver, inner_steps=8), "tol": 1e-9, "max_outer": 3, "seed": 3}
    first, again = (mescal.minimize(at.problem, at.x0, **asked) for _ in range(2))
    assert [row.penalty for row in first.history] == pytest.approx([1.1, 1.21, 1.331])
    assert first.work.solver == again.work.solver and (first.x == again.x).all()
    assert first.history[-1].work == first.work.total


def test_probabilities_are_probabilities():
    """Coins beyond 1 are refused in three parts."""
    with pytest.raises(InputError, match=r"coin=1\.5.*\n.*a probability from 0 to 1"):
        SgHvNcPaper(coin=1.5)
