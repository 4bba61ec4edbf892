"""Records in a notebook, in pictures and in words: whole, escaped, and with the numbers of the record."""

import math
import re
import sys
from dataclasses import replace

import jax
import numpy as np
import pytest

import mescal
from mescal import E, InputError, Measured, Status
from mescal.report.cards import ROWS
from mescal.report.words import promise
from tests.report.test_page import HOSTILE, Reader

RNG = np.random.default_rng(8)
POSITIVES, NEGATIVES = RNG.normal(0.6, 1, (60, 3)), RNG.normal(-0.6, 1, (50, 3))


TAGS = {*("div", "style", "p", "b", "br", "small", "span", "i", "code", "details", "summary", "ul", "li")}
TAGS |= {"table", "thead", "tbody", "tr", "th", "td"}
PLAIN = " ".join(HOSTILE.split())  # as a reader of text sees it


def score(w, a):
    return jax.nn.sigmoid(a @ w)


def miss(w, a):
    return 1 - score(w, a)


def made(bound: float = 0.15) -> mescal.Problem:
    return mescal.Problem(
        E(miss, over=POSITIVES) + 0.01 * E(lambda w: w @ w),
        {"contacts": E(score, over=NEGATIVES) <= bound, HOSTILE: E(score, over=POSITIVES) >= 0.3},
    )


@pytest.fixture(scope="module")
def problem():
    return made()


@pytest.fixture(scope="module")
def good(problem):
    return mescal.minimize(problem, np.zeros(3), tol=1e-4, solver="newton-cg", starts=2)


@pytest.fixture(scope="module")
def bad(good):
    """The same point, as a run that was cut off before its constraint held."""
    found = good.certificate
    low = found.constraints | {"contacts": np.array(0.004)}
    beyond = Measured.exact(0.004, "exact over 60 rows")
    found = replace(found, constraints=low, violation=beyond, feasibility=beyond, warnings=(HOSTILE,))
    return replace(good, status=Status.WORK_LIMIT, certificate=found, warnings=("<i>slow</i>",), spread=None)


@pytest.fixture(params=["result", "cut off", "certificate", "problem", "history"])
def record(request, problem, good, bad):
    named = {
        "result": good,
        "cut off": bad,
        "certificate": good.certificate,
        "problem": problem,
        "history": good.history,
    }
    return named[request.param]


def test_a_card_is_whole_small_and_asks_for_nothing(record):
    markup = record._repr_html_()
    reader = Reader(markup)
    assert reader.elements[0] == ("div", {"class": reader.elements[0][1]["class"]}) and len(markup) < 20_000
    assert not re.search(r"https?:|@import|url\(|<script|<img|onerror=alert\(1\)>", markup)
    assert {tag for tag, _ in reader.elements} <= TAGS


def test_a_result_says_what_a_person_asks(good, bad):
    text = Reader(good._repr_html_()).text
    assert text.startswith("✓ Certified to the tolerance 0.0001") and "best of 2 starts" in text
    assert f"{good.objective:.6g}" in text and promise(good.certificate) in text and "For a reviewer" in text
    (row,) = [row for row, _ in good.held if row.name == "contacts"]
    assert f"contacts {row.shown} ≤ 0.15 {row.gap}" in text and PLAIN in text
    text = Reader(bad._repr_html_()).text
    assert text.startswith("✗ Not certified: work limit") and Status.WORK_LIMIT.advice in text
    assert "✗ contacts 0.154 ≤ 0.15 over by 0.004" in text and "✗ feasibility" in text and "40 times" in text
    assert "<i>slow</i>" in text


def test_long_records_leave_rows_out_and_say_so(good):
    rows = [replace(good.history[0], outer=i) for i in range(40)]
    history = type(good.history)(rows, good.history.multipliers)
    text = Reader(history._repr_html_()).text
    assert "History: 40 rows" in text and f"… {40 - ROWS} rows …" in text
    many = {"each": np.linspace(-1, 1, 40)}
    certificate = replace(good.certificate, constraints=many, multipliers=many, terms={})
    text = Reader(replace(good, certificate=certificate, multipliers=many)._repr_html_()).text
    assert f"{40 - ROWS} rows more" in text and "✗ each[39]" in text


class TestWords:
    def test_the_promise_bounds_every_direction_that_keeps_the_constraints(self, good, problem):
        """f'd >= -stationarity |(d, e)| for 2,000 random d, with e = -J d where that keeps slacks from falling below zero.

        Directions are drawn, the bound is a theorem (Cauchy-Schwarz on the projected gradient): it holds for each.
        """
        x, found = np.asarray(good.x, float), good.certificate
        s = 1 / (1 + np.exp(-POSITIVES @ x))
        t = 1 / (1 + np.exp(-NEGATIVES @ x))
        gradient = -(s * (1 - s)) @ POSITIVES / 60 + 0.02 * x
        jacobian = np.stack([(t * (1 - t)) @ NEGATIVES / 50, -(s * (1 - s)) @ POSITIVES / 60])
        slack = np.array([float(found.slack["contacts"]), float(found.slack[HOSTILE])])
        assert slack[0] < 1e-3 < slack[1]  # one is at its bound
        tried = 0
        for d in np.random.default_rng(0).normal(size=(2000, 3)):
            e = -jacobian @ d
            if slack[0] == 0 and e[0] < 0:
                continue
            tried += 1
            assert gradient @ d >= -found.stationarity.upper * np.linalg.norm([*d, *e])
        assert tried > 500 and f"{found.stationarity.upper:.3g} per unit of length" in promise(found)

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"curvature": Measured(math.inf, math.inf, math.inf, "empty")}, "none is left open for the second"),
            ({"curvature": Measured.exact(-0.5, "dense")}, "a step of length t gains at most 0.25 t² more"),
            ({"curvature": Measured(math.nan, -math.inf, math.inf, "kink")}, "of the second nothing is known"),
            ({"stationarity": Measured(0.1, 0.0, math.inf, "kink")}, "Nothing bounds how fast"),
            ({"constraints": {}, "terms": {}}, "within the domain"),
        ],
    )
    def test_the_promise_says_no_more_than_is_known(self, good, changes, words):
        assert words in promise(replace(good.certificate, **changes))

    def test_an_explanation_has_what_a_reviewer_asks_for(self, good, bad):
        told = good.explain()
        for part in (
            "is certified",
            "double precision",
            "without sampling error",
            "critical cone",
            "What is not promised",
        ):
            assert part in told
        for number in (
            good.certificate.stationarity.value,
            good.certificate.curvature.value,
            good.certificate.jacobian_singular,
        ):
            assert f"{number:.3g}" in told
        assert "best of 2 starts" in told and f"{good.work.total:,.0f} evaluations" in told
        assert (
            "is NOT certified" in bad.explain()
            and "over by 0.004, VIOLATED" in bad.explain()
            and HOSTILE in bad.explain()
        )
        alone = good.certificate.explain()
        assert "within what was asked for" not in alone and "within what was asked for" in good.certificate.explain(
            1e-4
        )
        assert "does NOT meet" in good.certificate.explain(1e-300)

    def test_samples_and_their_confidence_are_said(self, good):
        drawn = replace(good.certificate, confidence=0.95, stationarity=Measured(0.01, 0.0, 0.02, "8192 samples"))
        told = drawn.explain(0.05)
        assert "with confidence 0.95 (8192 samples)" in told and "between 0 and 0.02" in told
        assert "unseen data" not in told and "without sampling error" not in told


class TestPictures:
    def test_curves_against_work_and_seconds(self, good):
        for against, name in (("work", "total work"), ("seconds", "seconds")):
            figure = good.plot(against)
            assert [ax.get_xlabel() for ax in figure.axes] == [name] * 3
        with pytest.raises(InputError, match="against='hours'"):
            good.plot("hours")

    def test_a_certificate_is_marked_where_it_misses_its_tolerance(self, good, bad):
        titles = [ax.get_title("left") for ax in good.certificate.plot(1e-4).axes]
        assert [title[0] for title in titles] == ["✓", "✓", "✓", "C"]
        figure = bad.certificate.plot(1e-4)
        assert "does not meet" in figure.get_suptitle() and figure.axes[1].get_title("left").startswith("✗ feasibility")
        assert any("over by 0.004, VIOLATED" in text.get_text() for text in figure.axes[-1].texts)

    def test_without_matplotlib_an_error_says_what_to_install(self, good, monkeypatch):
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        for draw in (good.plot, good.certificate.plot):
            with pytest.raises(InputError) as error:
                draw()
            assert (
                "matplotlib" in error.value.found
                and "plot" in error.value.expected
                and "pip install" in error.value.advice
            )


def test_a_console_shows_records_in_a_few_lines(good):
    """As `print` has them, and not every field; one of a thing is one."""
    assert repr(good) == str(good) and repr(good.certificate) == str(good.certificate)
    assert repr(good.history).startswith(f"History(rows={len(good.history)}, last=Row(outer=")
    once = replace(good, outer_iterations=1, history=type(good.history)(good.history.rows[-1:]))
    assert " 1 outer iteration, " in str(once) and "took 1 outer iteration and" in once.explain()
    assert " 1 outer iteration, " in once._repr_html_() and "1 row of history" in once._repr_html_()
