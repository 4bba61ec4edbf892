"""On streams a run's failure probability is spent over its questions: the k-th has the share 6/(pi k)^2, all together all of it."""

import numpy as np

import mescal
from mescal.run import judging
from mescal.testing.exercises import nearest


def test_every_further_question_is_asked_for_more(monkeypatch):
    """The first two answers are about another point, and so refusals; the third is about the run's own."""
    asked, original = [], judging.certify

    def certify(problem, x, *rest, **given):
        asked.append(given["confidence"])
        return original(problem, x + 1 if len(asked) < 3 else x, *rest, **given)

    monkeypatch.setattr(judging, "certify", certify)
    at = nearest(streamed=True)
    result = mescal.minimize(at.problem, at.x0, solver="spider", tol=0.2, confidence=0.9, seed=0)
    assert result.converged and len(asked) >= 3
    failures = 1 - np.array(asked)
    np.testing.assert_allclose(failures, 0.1 * 6 / (np.pi * np.arange(1, len(asked) + 1)) ** 2)
    assert np.isclose(np.sum(6 / (np.pi * np.arange(1, 10**6)) ** 2), 1, atol=1e-5)
