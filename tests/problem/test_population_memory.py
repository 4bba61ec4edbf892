"""Rows are kept once: not beside the arrays that they were copied from, nor beside the family that they were joined into."""

import gc
import weakref

import jax
import numpy as np
import pytest

import mescal
from mescal import E
from mescal.problem import Population, Rows


def loss(x, row):
    return 0.5 * (x - row) @ (x - row)


def rate(x, row):
    return row @ x


def rows(seed, count=40):
    return np.random.default_rng(seed).normal(size=(count, 3)).astype(np.float32)


def test_arrays_of_the_user_are_not_kept_alive():
    given = rows(0)
    alive, problem = weakref.ref(given), mescal.Problem(E(loss, over=given))
    del given
    gc.collect()
    assert alive() is None
    assert mescal.certify(problem, rows(0).mean(0)).stationarity.value < 1e-6


def test_expectations_over_one_array_share_one_copy():
    given = rows(0)
    one, other = E(loss, over=given).terms[0].source, E(rate, over=given).terms[0].source
    assert one is other
    assert Population.of((given, given)) is not Population.of([given, given])  # another structure
    assert E(loss, over=given, weights=np.ones(40)).terms[0].source is not one


def test_arrays_written_into_between_two_expectations_are_two_sources():
    given = rows(0)
    before = E(rate, over=given)
    given += 1
    problem = mescal.Problem(E(rate, over=given) - before)
    assert len(problem.sources) == 2
    assert mescal.certify(problem, np.ones(3)).objective.value == pytest.approx(3, abs=1e-6)


def test_joined_populations_keep_no_rows_of_their_own():
    groups = [rows(seed, 20 + seed) for seed in range(4)]
    problem = mescal.Problem(E(loss, over=rows(9)), {f"{k}": E(rate, over=part) <= 1 for k, part in enumerate(groups)})
    populations = [s for s in problem.sources if isinstance(s, Population) and s.size != 40]
    digests = [source.digest for source in populations]
    own = [weakref.ref(jax.tree.leaves(source.arrays)[0]) for source in populations]
    program, _ = problem.bind(np.zeros(3))
    (whole,) = (d for d in problem.device_data(program) if isinstance(d, Rows) and d.samples.shape[0] != 40)
    gc.collect()
    assert [one() for one in own] == [None] * 4
    for source, part in zip(populations, groups, strict=True):
        assert np.shares_memory(np.asarray(source.arrays), np.asarray(whole.samples))
        np.testing.assert_array_equal(source.arrays, part)
        np.testing.assert_array_equal(source.at(np.array([3, 1])).samples, part[[3, 1]])
        np.testing.assert_array_equal(source.placed(np.float64).samples, part)
        assert source.sample_shape().shape == (3,)
    assert digests == [Population(part).digest for part in groups]
