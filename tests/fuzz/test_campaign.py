"""The fuzz of the judge, in short: every stored case, some new ones, and a judge that errs, which must be found out.

`make fuzz` runs it for an hour.
"""

from dataclasses import replace

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

import mescal
from tests.fuzz import campaign
from tests.fuzz.campaign import CORPUS, judged
from tests.fuzz.cases import Draw, Shape, draws, restored, shapes, stored
from tests.fuzz.reference import LONG, eigen, null_space, smallest

FILES = sorted(CORPUS.glob("*.json"))
CASES = [
    pytest.param(
        file, id=file.stem, marks=[pytest.mark.slow] if '"stream": true' in file.read_text(encoding="utf-8") else []
    )
    for file in FILES
]
PLAIN = Shape(3, ("sine", "square"), (("<=", "logarithm"),), "reals", False, "float64")
AT_REST = Draw(3, 0, 0, 0, 1, 0.5, 2.0, 1.0, 0.0, 100.0, True, False)


def test_there_is_a_corpus():
    assert len(FILES) >= 4
    shape, draw = restored(FILES[0].read_text(encoding="utf-8"))
    assert restored(stored(shape, draw)) == (shape, draw)


@pytest.mark.parametrize("file", CASES)
def test_what_was_wrong_once(file):
    outcome = judged(*restored(file.read_text(encoding="utf-8")))
    assert not outcome["false"] and not outcome["contradicted"] and not outcome["doubted"], outcome


@hypothesis.settings(
    max_examples=3, deadline=None, derandomize=True, database=None, suppress_health_check=list(hypothesis.HealthCheck)
)
@hypothesis.given(shapes.filter(lambda shape: not shape.stream), st.lists(draws, min_size=8, max_size=8))
def test_new_cases(shape, several):
    """Finite ones: statements on streams hold with their confidence only."""
    for draw in several:
        outcome = judged(shape, draw)
        assert not outcome["false"] and not outcome["contradicted"] and not outcome["doubted"], (draw, outcome)


def test_a_point_that_passes_passes():
    outcome = judged(PLAIN, AT_REST)
    assert outcome["certified"] and outcome["true"], outcome


@pytest.mark.parametrize("measure", ["stationarity", "curvature"])
def test_a_judge_that_errs_is_found_out(monkeypatch, measure):
    """A certificate without its errors, and with a measure that is always met."""
    wrong = {"stationarity": {"gradient": 100.0}, "curvature": {"curvature": -100.0}}[measure]
    shape, draw = PLAIN, replace(AT_REST, **wrong)
    assert not judged(shape, draw)["certified"]
    certify = mescal.certify

    def careless(*arguments, **named):
        found = certify(*arguments, **named)
        met = mescal.certificate.certificate.Measured(0.0, 0.0, 0.0, "never looked")
        return replace(found, **{measure: met})

    monkeypatch.setattr(mescal, "certify", careless)
    assert judged(shape, draw)["false"]


def test_the_reference_knows_eigenvalues_and_cones():
    """Against LAPACK on the whole space, and against closed forms where signs count."""
    rng = np.random.default_rng(0)
    for n in range(1, 7):
        a = rng.normal(size=(n, n))
        values, vectors = eigen(LONG(a + a.T))
        np.testing.assert_allclose(values.astype(float), np.linalg.eigvalsh(a + a.T), atol=1e-13)
        assert float(np.abs(vectors.T @ vectors - np.eye(n)).max()) < 1e-17
    rows = LONG(rng.normal(size=(2, 5)))
    assert null_space(rows).shape == (5, 3) and float(np.abs(rows @ null_space(rows)).max()) < 1e-17
    none, saddle = np.zeros((0, 2), LONG), LONG([[0, -1], [-1, 0]])
    quadrant = -np.eye(2, dtype=LONG)
    assert smallest(saddle, none, quadrant) == pytest.approx(-1) and smallest(-saddle, none, quadrant) == 0
    assert smallest(saddle, np.eye(2, dtype=LONG), none) == np.inf


def test_a_campaign_counts_and_writes(tmp_path, capsys):
    """One process, a few seconds."""
    outcome = campaign.worker(0, 2.0, 1, str(tmp_path / "corpus"))
    assert outcome["counts"]["finite judged"] + outcome["counts"].get("streams judged", 0) > 0
    assert not outcome["failures"], outcome["failures"]
