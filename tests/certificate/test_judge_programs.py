"""What the judge of samples compiles and how often it goes through its rows: neither grows with sources, groups or draws."""

import jax
import numpy as np
import pytest

import mescal
from mescal import E
from mescal.certificate import confidence
from mescal.certificate.scalars import Frame
from mescal.compiling import options_here
from mescal.oracle import evaluator
from mescal.oracle.evaluator import BLOCK_ROWS, evaluator_of
from mescal.testing import count_compilations

X = np.array([0.3, -0.2, 0.5])
MOST = 6  # draws, a look, its Hessian, what rounding does to that, spreads of values and slopes, and those of Hessians


def problem_over(streams: int) -> mescal.Problem:
    """A sum over several streams, a constraint on another, and a term without samples."""
    samplers = [mescal.Sampler(lambda key, k=k: k + jax.random.normal(key, (3,))) for k in range(streams)]
    loss = lambda x, a: (x - a) @ (x - a) / 2
    objective = sum((E(loss, over=sampler) for sampler in samplers), E(lambda x: x @ x) + 0.25)
    other = mescal.Sampler(lambda key: jax.random.uniform(key, (3,)))
    return mescal.Problem(objective, {"c": E(lambda x, b: jax.numpy.tanh(b @ x), over=other) <= 0.5})


@pytest.mark.parametrize("streams", [1, 3])
def test_a_stream_is_judged_by_few_programs_however_many_draws_and_sources(streams):
    problem = problem_over(streams)
    options_here()  # which compilers are asked about once a process
    with count_compilations() as first:
        mescal.certify(problem, X, samples=BLOCK_ROWS)
    assert len(first.programs) <= MOST, first.programs
    with count_compilations() as again:
        four = mescal.certify(problem, X, samples=4 * BLOCK_ROWS)
    assert not again.programs
    exact = 0.25 + X @ X + sum((np.sum((X - k) ** 2) + 3) / 2 for k in range(streams))
    assert four.objective.lower <= exact <= four.objective.upper  # at one seed, which either covers or does not


def test_what_needs_no_samples_counts_once_however_many_blocks():
    """10,000 draws are a block and a part of one: shares are no powers of two, constants and Hessians are whole."""
    problem = mescal.Problem(E(lambda x: x @ x) + 0.25 + 0 * E(lambda x, a: a @ x, over=mescal.stream(np.eye(3))))
    found = mescal.certify(problem, X, samples=10_000)
    assert found.objective.value == pytest.approx(0.25 + X @ X, rel=1e-15)
    assert found.curvature.value == pytest.approx(2, rel=1e-12)


def test_spreads_take_passes_whose_number_does_not_grow_with_groups(monkeypatch):
    counts, plain = [], evaluator.Part.sums
    for groups in (2, 12):
        rows = [np.random.default_rng(g).normal(size=(30, 3)) for g in range(groups)]
        problem = mescal.Problem(
            E(lambda x: x @ x), {f"{g}": E(lambda x, a: a @ x * (a @ x), over=part) <= 1 for g, part in enumerate(rows)}
        )
        program, _ = problem.bind(X)
        judge, noisy, weight = evaluator_of(problem, program), (True,) * groups, np.ones(groups)
        calls = []
        with monkeypatch.context() as patch:

            def counted(part, *given, calls=calls):
                call = plain(part, *given)
                return lambda *arguments: calls.append(0) or call(*arguments)

            patch.setattr(evaluator.Part, "sums", counted)
            confidence.moments(judge, problem.sources, noisy, X, weight, Frame.none(X.size))
            confidence.directional(judge, noisy, X, weight, Frame.none(X.size), X)
        counts.append(len(calls))
    assert counts == [4, 4]
