"""Constraints in the terms in which they were stated: values against plain numpy, words, and what survives a change of sources."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E
from mescal.oracle.evaluator import evaluator_of
from mescal.problem.constraint import Held, Terms, held

RNG = np.random.default_rng(3)
ROWS = RNG.normal(size=(40, 2))
LABEL = (RNG.uniform(size=40) < 0.4).astype(float)
X = np.array([0.7, -0.4])
SCORE = 1 / (1 + np.exp(-ROWS @ X))


def score(w, row):
    return jax.nn.sigmoid(row[0] @ w)


def linear(w, row):
    return row[0] @ w


PEOPLE = (ROWS, LABEL)
MEAN, PRECISION = SCORE.mean(), (SCORE * LABEL).mean() / SCORE.mean()


def numbers(objective_free: dict, x=X) -> dict[str, Held]:
    """What the judge's look says of constraints at a point, by row."""
    problem = mescal.Problem(E(lambda w: w @ w), objective_free)
    program, vector = problem.bind(x)
    seen = evaluator_of(problem, program).at(vector)
    terms = {name: constraint.terms for name, constraint in problem.constraints.items()}
    return {row.name: row for row in held(program.layout.by_name(seen.constraint), terms)}


def precision():
    return mescal.rate(lambda w, r: r[1], given=score, over=PEOPLE)


STATED = {
    "upper": (lambda: E(score, over=PEOPLE) <= 0.3, MEAN, "<=", 0.3),
    "lower": (lambda: E(score, over=PEOPLE) >= 0.6, MEAN, ">=", 0.6),
    "level": (lambda: E(score, over=PEOPLE) == 0.5, MEAN, "==", 0.5),
    "from the left": (lambda: 0.3 >= E(score, over=PEOPLE), MEAN, "<=", 0.3),  # noqa: SIM300
    "against zero": (lambda: E(score, over=PEOPLE) - 0.3 <= 0, MEAN, "<=", 0.3),
    "two": (lambda: E(score, over=PEOPLE) <= 0.5 * E(linear, over=PEOPLE) + 0.1, MEAN - 0.5 * (ROWS @ X).mean(), "<=", 0.1),
    "precision": (lambda: precision() >= 0.8, PRECISION, ">=", 0.8),
    "its opposite": (lambda: precision() <= 0.2, PRECISION, "<=", 0.2),
    "at": (lambda: precision() == 0.4, PRECISION, "==", 0.4),
    "double": (lambda: 2 * precision() <= 0.9, 2 * PRECISION, "<=", 0.9),
    "against another": (lambda: precision() >= E(score, over=PEOPLE) + 0.1, PRECISION - MEAN, ">=", 0.1),
    "variance": (lambda: mescal.variance(linear, over=PEOPLE) <= 0.2, (ROWS @ X).var(), "<=", 0.2),
    "risk": (lambda: mescal.entropic(linear, 0.7, over=PEOPLE) <= 0.2, 0.7 * np.log(np.exp(ROWS @ X / 0.7).mean()), "<=", 0.2),
    "product": (lambda: mescal.of(lambda a, b: a * b, E(score, over=PEOPLE), precision()) >= 0.3, MEAN * PRECISION, ">=", 0.3),
}  # fmt: skip


def test_values_signs_and_bounds_are_those_that_were_stated():
    """All forms in one problem, beside plain numpy, to the rounding of some forty terms."""
    found = numbers({name: make() for name, (make, *_) in STATED.items()})
    for name, (_, value, sign, bound) in STATED.items():
        row = found[name]
        assert (row.sign, row.bound) == (sign, bound), name
        assert row.value == pytest.approx(value, rel=1e-12, abs=1e-13), name
        beyond = {"<=": value > bound, ">=": value < bound, "==": value != bound}[sign]
        assert (row.room < 0) == beyond and (row.excess > 0) == beyond, name


def test_rows_of_a_vector_have_bounds_of_their_own():
    found = numbers({"groups": E(lambda w, r: r[0] * (r[0] @ w), over=PEOPLE) <= np.array([0.5, -1.0])})
    moment = (ROWS * (ROWS @ X)[:, None]).mean(axis=0)
    for i in range(2):
        assert found[f"groups[{i}]"].value == pytest.approx(moment[i], rel=1e-12)
    assert [found[f"groups[{i}]"].bound for i in range(2)] == [0.5, -1.0]


def test_terms_stay_where_sources_change():
    problem = mescal.Problem(E(lambda w: w @ w), {"precision": precision() >= 0.8, "low": E(score, over=PEOPLE) >= 0.1})
    fewer = mescal.subsample(problem, 20, 0)
    before, after = (
        {n: (c.terms.sign, float(c.terms.bound), c.terms.over) for n, c in p.constraints.items()}
        for p in (problem, fewer)
    )
    assert before == after and before["precision"] == (">=", 0.8, "precision (denominator)")


@pytest.mark.parametrize(
    ("row", "allowed", "text"),
    [
        (Held("a", 0.154, "<=", 0.15, 0.004), 0.001, "0.154 <= 0.15, over by 0.004, VIOLATED"),
        (Held("a", 0.154, "<=", 0.15, 0.004), 0.01, "0.154 <= 0.15, over by 0.004, within the tolerance"),
        (Held("a", 0.150004, "<=", 0.15, 4e-6), 0.01, "0.150004 <= 0.15, over by 4e-06, within the tolerance"),
        (Held("a", 0.85, ">=", 0.9, 0.05), 0.01, "0.85 >= 0.9, short by 0.05, VIOLATED"),
        (Held("a", 0.93, ">=", 0.9, -0.03), 0.01, "0.93 >= 0.9, 0.03 to spare"),
        (Held("a", 0.15, "<=", 0.15, 0.0), 0.01, "0.15 <= 0.15, at its bound"),
        (Held("a", 0.204348, "<=", 0.204348, 0.0), 0.01, "0.204348 <= 0.204348, at its bound"),
        (Held("a", 1.0, "==", 1.0, 0.0), 0.01, "1 == 1, met"),
        (Held("a", 1.02, "==", 1.0, 0.02), 0.01, "1.02 == 1, off by 0.02, VIOLATED"),
        (Held("a", 0.0, "<=", 0.1, -0.1), 0.01, "0 <= 0.1, 0.1 to spare"),
        (Held("a", float("nan"), "<=", 0.1, float("nan")), 0.01, "nan <= 0.1, not a number, VIOLATED"),
        (Held("a", float("inf"), "<=", 0.1, float("inf")), 0.01, "inf <= 0.1, out of all bounds, VIOLATED"),
    ],
)
def test_words(row, allowed, text):
    assert row.words(allowed) == text


def test_a_printed_result_says_them_and_marks_what_is_violated():
    """The exact minimiser of a stated problem, at a bound that cannot be met."""
    problem = mescal.Problem(E(lambda w: (w - 2.0) ** 2), {"size": E(lambda w: w**2) <= -1.0})
    result = mescal.minimize(problem, np.array(0.0), max_outer=2, solver="newton-cg")
    (line,) = [line for line in str(result).splitlines() if "size:" in line]
    assert ">= " not in line and "<= -1, over by" in line and "VIOLATED" in line


def test_an_unknown_denominator_is_no_error():
    row = next(held({"r": np.array(0.1)}, {"r": Terms("<=", np.array(0.5), over="elsewhere")}))
    assert row.value == pytest.approx(0.6)


def test_long_vectors_show_those_that_matter():
    bounds = np.linspace(0.1, 1.0, 12)
    problem = mescal.Problem(E(lambda w: jnp.sum((w - 2.0) ** 2)), {"each": E(lambda w: w) <= bounds})
    result = mescal.minimize(problem, np.zeros(12), solver="newton-cg", tol=1e-4)
    lines = result.constraint_lines(3)
    assert result.converged and len(lines) == 4 and lines[-1] == "and 9 rows more, with smaller multipliers"
    assert result.constraint_lines(11)[-1] == "and 1 row more, with smaller multipliers"
    assert [line.split(":")[0] for line in lines[:3]] == ["each[0]", "each[1]", "each[2]"]  # the tightest cost most


@pytest.mark.parametrize("zero", [0, 0.0, -0.0])
def test_a_bound_of_zero_has_no_sign(zero):
    value = E(lambda w: w)
    bounds = [(value <= zero).terms.bound, (value >= zero).terms.bound, (value == zero).terms.bound]
    assert [f"{float(bound):.6g}" for bound in bounds] == ["0", "0", "0"]
