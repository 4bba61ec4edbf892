"""What people state beside expectations: closed forms, a linear program, plain numpy at the answer, and refusals with advice."""

import json

import jax
import numpy as np
import pytest
import scipy

import mescal
from mescal import Certificate, E
from mescal.errors import InputError
from mescal.problem.constraint import held

RNG = np.random.default_rng(3)
ROWS = RNG.normal(size=(200, 3))
LABELS = (ROWS[:, 0] + 0.5 * RNG.normal(size=200) > 0).astype(float)
PEOPLE = (ROWS, LABELS)


def score(w, row):
    return jax.nn.sigmoid(row[0] @ w)


def is_positive(_, row):
    return row[1]


def hit(w, row):
    return score(w, row) * row[1]


def sigmoid(v):
    return 1 / (1 + np.exp(-v))


def solved(problem, x0, tol=1e-3, **asked):
    result = mescal.minimize(problem, x0, tol=tol, seed=0, **asked)
    assert result.converged, result
    return result


# ---- ratios


def test_precision_at_largest_recall_in_plain_numpy():
    precision = mescal.rate(is_positive, given=score, over=PEOPLE)
    problem = mescal.Problem(-E(hit, over=PEOPLE), {"precision": precision >= 0.8}, mescal.sets.Box(-20.0, 20.0))
    result = solved(problem, np.zeros(3))
    p = sigmoid(ROWS @ np.asarray(result.x))
    assert (p * LABELS).mean() / p.mean() >= 0.8 - 0.01
    assert result.auxiliary == {} and set(result.multipliers) == {"precision", "precision (denominator)"}


def test_predicting_nothing_does_not_meet_a_precision():
    """The floor of the denominator is a constraint of its own."""
    floor = 0.2
    problem = mescal.Problem(
        E(lambda w: w @ w), {"precision": mescal.ratio(E(hit, over=PEOPLE), E(score, over=PEOPLE), floor) >= 0.5}
    )
    certificate = mescal.certify(problem, np.array([-30.0, -30.0, -30.0]) * 1e3)
    assert certificate.violation.value > 0.1 or certificate.constraints["precision (denominator)"] <= 0
    with pytest.raises(InputError, match="floor"):
        mescal.ratio(E(hit, over=PEOPLE), E(score, over=PEOPLE), 0.0)


def test_a_ratio_is_minimised():
    """min E[(x - a)^2 + 1] / E[x + 2] at a = 1 on both rows: ((x-1)^2 + 1)/(x + 2) has its minimum at x = -2 + sqrt(10)."""
    a = np.ones(2)
    ratio = E(lambda x, v: (x[0] - v) ** 2 + 1, over=a) / E(lambda x, v: x[0] + 2 + 0 * v, over=a)
    result = solved(mescal.Problem(ratio, {}, mescal.sets.Box(-1.0, 10.0)), np.zeros(1), tol=1e-5)
    best = -2 + np.sqrt(10)
    assert float(result.x[0]) == pytest.approx(best, abs=1e-3)
    assert result.objective == pytest.approx(((best - 1) ** 2 + 1) / (best + 2), abs=1e-3)
    assert list(result.auxiliary) == ["objective: denominator"]
    assert float(result.auxiliary["objective: denominator"]) == pytest.approx(best + 2, abs=1e-3)


def test_a_rate_among_rows_and_among_what_a_model_chooses():
    chosen = ROWS[:, 1] > 0
    among = mescal.rate(score, given=chosen, over=PEOPLE)
    problem = mescal.Problem(among, {})
    x = np.array([0.3, -0.2, 0.5])
    assert mescal.certify(problem, x).objective.value == pytest.approx(sigmoid(ROWS[chosen] @ x).mean())
    assert mescal.rate(score, over=PEOPLE).terms[0].fn is score


# ---- the worst of several


def test_the_worst_of_two_groups_is_minimised():
    """max((x-1)^2, (x+2)^2) has its minimum at -1/2, where both are 9/4; each multiplier is 1/2."""
    a, b = np.full(3, 1.0), np.full(4, -2.0)
    square = lambda x, v: (x[0] - v) ** 2
    problem = mescal.Problem(mescal.worst({"a": E(square, over=a), "b": E(square, over=b)}))
    result = solved(problem, np.zeros(1), tol=1e-4)
    assert float(result.x[0]) == pytest.approx(-0.5, abs=1e-3) and result.objective == pytest.approx(2.25, abs=1e-3)
    assert float(result.multipliers["objective[a]"]) == pytest.approx(0.5, abs=1e-3)


def test_a_bound_on_the_worst_is_one_on_each():
    parts = [E(lambda x, v: x[0] * v, over=np.full(2, k)) for k in (1.0, 2.0)]
    problem = mescal.Problem(E(lambda x: -x[0]), {"both": mescal.worst(parts) <= 1.0})
    assert list(problem.constraints) == ["both[0]", "both[1]"] and problem.lifting is None
    assert float(solved(problem, np.zeros(1)).x[0]) == pytest.approx(0.5, abs=2e-3)


# ---- functions of expectations


def test_the_f_measure_as_an_objective():
    share = LABELS.mean()
    f_measure = mescal.of(lambda h, p: 2 * h / (p + share), E(hit, over=PEOPLE), E(score, over=PEOPLE), between=(0, 1))
    problem = mescal.Problem(-f_measure, {}, mescal.sets.Box(-8.0, 8.0))
    result = solved(problem, np.array([0.5, 0.0, 0.0]), tol=1e-3)
    p = sigmoid(ROWS @ np.asarray(result.x))
    value = 2 * (p * LABELS).mean() / (p.mean() + share)
    assert -result.objective == pytest.approx(value, abs=5e-3)

    def minus(w):
        p = sigmoid(ROWS @ w)
        return -2 * (p * LABELS).mean() / (p.mean() + share)

    best = scipy.optimize.minimize(minus, [0.5, 0.0, 0.0], bounds=[(-8, 8)] * 3)
    assert value >= -best.fun - 5e-3


def test_a_function_is_bounded_from_both_sides():
    """x y <= 1/4 and x y >= 1/4, x and y as expectations."""
    parts = E(lambda x: x[0]), E(lambda x: x[1])
    product = mescal.of(lambda a, b: a * b, *parts)
    for constraint in (product >= 0.25, product == 0.25):
        problem = mescal.Problem(E(lambda x: x @ x), {"product": constraint})
        result = solved(problem, np.array([1.0, 0.4]), tol=1e-4)
        assert np.allclose(np.abs(result.x), 0.5, atol=1e-2) and result.x[0] * result.x[1] > 0


# ---- risk


def test_cvar_of_a_portfolio_against_a_linear_program():
    """min CVaR_0.9 of the loss of long portfolios on 250 days of 5 assets, to 1e-3."""
    returns = 0.01 * np.random.default_rng(0).standard_t(5, size=(250, 5)) + np.linspace(0, 0.002, 5)
    level, (n, d) = 0.9, returns.shape
    loss = lambda x, row: -100 * (row @ x)
    risk = mescal.cvar(loss, level, over=returns, width=1e-4)
    result = solved(mescal.Problem(risk, {}, mescal.sets.Simplex()), np.full(d, 1 / d), tol=1e-3)
    cost = np.concatenate([np.zeros(d), [1.0], np.full(n, 1 / ((1 - level) * n))])
    above = np.concatenate([-100 * returns, -np.ones((n, 1)), -np.eye(n)], axis=1)
    whole = np.concatenate([np.ones(d), np.zeros(1 + n)])[None]
    program = scipy.optimize.linprog(
        cost, above, np.zeros(n), whole, [1.0], bounds=[(0, None)] * d + [(None, None)] + [(0, None)] * n
    )
    losses = np.sort(-100 * returns @ np.asarray(result.x, np.float64))
    t = losses[int(np.ceil(level * n)) - 1]
    value = t + np.maximum(losses - t, 0).mean() / (1 - level)
    assert value == pytest.approx(program.fun, abs=1e-3 * max(1, abs(program.fun)) + 2e-3)
    assert list(result.auxiliary) == ["objective: quantile"]


def test_variance_bounds_the_spread():
    """min E[(x - 2)^2] with variance of x z at most 1, z with variance v: |x| <= 1/sqrt(v)."""
    z = RNG.normal(size=100)
    problem = mescal.Problem(
        E(lambda x: (x[0] - 2) ** 2), {"spread": mescal.variance(lambda x, v: x[0] * v, over=z) <= 1.0}
    )
    result = solved(problem, np.zeros(1), tol=1e-4)
    assert float(result.x[0]) == pytest.approx(min(2, 1 / z.std()), abs=1e-3)


def test_the_curvature_of_a_lifted_form_is_that_of_dense_numpy():
    """E[(x z - m)^2] with m = x E z: the variance of z times x^2; m beside it counts in the unit |E z|."""
    z = RNG.normal(size=50) + 1
    problem = mescal.Problem(mescal.variance(lambda x, v: x[0] * v, over=z))
    found = mescal.certify(problem, np.array([0.7])).curvatures["whole"]
    assert found.value == pytest.approx(2 * min(np.var(z), max(1.0, np.mean(z)) ** 2), rel=1e-9)


@pytest.mark.parametrize("as_objective", [False, True])
def test_entropic_risk(as_objective):
    """T ln E exp(x z/T) for z = +-1 is T ln cosh(x/T)."""
    z, T = np.array([-1.0, 1.0]), 0.5
    risk = mescal.entropic(lambda x, v: x[0] * v, T, over=z)
    if as_objective:
        result = solved(mescal.Problem(risk + E(lambda x: -0.5 * x[0])), np.zeros(1), tol=1e-4)
        assert float(result.x[0]) == pytest.approx(T * np.arctanh(0.5), abs=1e-3)
    else:
        result = solved(mescal.Problem(E(lambda x: -x[0]), {"risk": risk <= 0.3}), np.zeros(1), tol=1e-4)
        assert float(result.x[0]) == pytest.approx(T * np.arccosh(np.exp(0.3 / T)), abs=1e-3)


def test_a_chance_is_kept_and_conservative():
    """Nine tenths of the outputs above 0.8, as small as possible: what comes out keeps it, by plain counting."""
    z = RNG.normal(size=400)
    output = lambda x, v: x[0] + 0.3 * v
    problem = mescal.Problem(
        E(lambda x: x[0] ** 2), {"quality": mescal.chance(lambda x, v: output(x, v) - 0.8, over=z, width=1e-3) >= 0.9}
    )
    result = solved(problem, np.ones(1))
    assert np.mean(float(result.x[0]) + 0.3 * z >= 0.8) >= 0.9
    rare = mescal.Problem(
        E(lambda x: (x[0] - 3) ** 2),
        {"alarms": mescal.chance(lambda x, v: output(x, v) - 2, over=z, width=1e-3) <= 0.1},
    )
    assert np.mean(float(solved(rare, np.ones(1)).x[0]) + 0.3 * z > 2) <= 0.1


# ---- streams, starts, and what comes back


def test_statements_on_a_stream():
    draw = mescal.Sampler(lambda key: 1 + 0.5 * jax.random.normal(key))
    problem = mescal.Problem(
        E(lambda x, v: (x[0] - 2 - 0 * v) ** 2, over=draw),
        {"spread": mescal.variance(lambda x, v: x[0] * v, over=draw) <= 0.25},
    )
    result = mescal.minimize(problem, np.full(1, 0.5, np.float32), tol=0.05, seed=0)
    assert result.converged and float(result.x[0]) == pytest.approx(1.0, abs=0.1)


def test_the_judge_takes_the_users_point_and_its_scalars_at_their_best():
    z = RNG.normal(size=50) + 2
    problem = mescal.Problem(mescal.variance(lambda x, v: x[0] * v, over=z))
    certificate = mescal.certify(problem, np.array([1.5]))
    assert certificate.objective.value == pytest.approx(1.5**2 * z.var(), rel=1e-12)


def test_parameters_are_any_pytree_and_runs_continue():
    z = RNG.normal(size=50)
    x0 = {"a": np.zeros(2), "b": np.ones(())}
    fn = lambda x, v: x["a"][0] * v + x["b"] - 1
    domain = mescal.sets.Box(-3.0, 3.0)
    problem = mescal.Problem(
        mescal.cvar(lambda x, v: fn(x, v) ** 2, 0.5, over=z) + E(lambda x: x["a"] @ x["a"]), {}, domain
    )
    result = mescal.minimize(problem, x0, tol=0.05, seed=0)
    assert result.converged and set(result.x) == {"a", "b"}
    again = mescal.minimize(problem, start=result, tol=0.02, seed=0)
    assert again.converged and set(again.auxiliary) == set(result.auxiliary)


def test_rebuilt_statements_compile_nothing():
    z = np.linspace(-1, 1, 30)

    def built():
        return mescal.Problem(E(lambda x: -x[0]), {"spread": mescal.variance(lambda x, v: x[0] * v, over=z) <= 1.0})

    mescal.minimize(built(), np.zeros(1), tol=0.01, seed=0)
    with mescal.testing.count_compilations() as counted:
        mescal.minimize(built(), np.zeros(1), tol=0.01, seed=0)
    assert counted.count == 0, counted.programs


# ---- in the terms in which things were stated


def test_a_row_says_what_was_stated_about_x_where_a_bound_has_room():
    """Beside a bound that does not bind a scalar may stand anywhere; the row of a tail is still that of the tail at x."""

    def loss(w, row):
        return jax.nn.softplus(row[0] @ w) - row[1] * (row[0] @ w)

    tail = mescal.cvar(loss, 0.95, over=PEOPLE)
    unbounded = solved(mescal.Problem(E(loss, over=PEOPLE)), np.zeros(3))
    bound = tail.value(unbounded.x) + 1
    result = solved(mescal.Problem(E(loss, over=PEOPLE), {"tail": tail <= bound}), np.full(3, 0.01))
    ((told, _),) = result.held
    assert tail.value(result.x) - 1e-9 <= told.value <= tail.value(result.x) + tail.error


def test_rows_beside_a_scalar_have_its_value_as_their_bound():
    """The loss of each group beside the worst of them, and a part of a function beside the scalar that stands for it."""
    x = np.array([0.3, -0.2, 0.5])
    groups = {"a": (ROWS[:90], LABELS[:90]), "b": (ROWS[90:], LABELS[90:])}
    squared = lambda w, row: (score(w, row) - row[1]) ** 2
    worst = mescal.worst({name: E(squared, over=rows) for name, rows in groups.items()})
    risk = mescal.entropic(squared, 0.5, over=PEOPLE)
    problem = mescal.Problem(worst + risk + E(squared, over=PEOPLE) / E(score, over=PEOPLE))
    certificate = mescal.certify(problem, x)
    told = {row.name: row for row in held(certificate.constraints, certificate.terms)}
    p = sigmoid(ROWS @ x)
    means = {"a": ((p - LABELS) ** 2)[:90].mean(), "b": ((p - LABELS) ** 2)[90:].mean()}
    for name, mean in means.items():
        assert told[f"objective[{name}]"].value == pytest.approx(mean)
        assert told[f"objective[{name}]"].bound == pytest.approx(max(means.values()))
    over = told["objective: denominator"]
    assert over.sign == "==" and over.value == pytest.approx(p.mean()) == over.bound
    entropic = told["objective: risk"]
    assert entropic.value == pytest.approx(risk.value(x)) == entropic.bound
    assert (
        Certificate.from_dict(json.loads(certificate.to_json())).terms["objective[a]"].bound
        == told["objective[a]"].bound
    )


def test_a_problem_reads_as_it_was_stated():
    e = E(score, over=PEOPLE)
    problem = mescal.Problem(
        mescal.worst({"a": e}) - e / e, {"tail": mescal.cvar(score, 0.9, over=PEOPLE) <= 2, "rate": e - 0.5 <= 0.25}
    )
    assert str(problem).splitlines() == [
        "minimise worst of a + (-E(score, Population(200 rows))) / (E(score, Population(200 rows)))",
        "  tail: cvar(score, 0.9; at most 0.069 too large) <= 2",
        "  rate: E(score, Population(200 rows)) - 0.5 <= 0.25",
        "  x in Reals()",
    ]


# ---- refusals


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda e: mescal.cvar(score, 0.9, over=PEOPLE) >= 1.0, "bounded from below"),
        (lambda e: mescal.variance(score, over=PEOPLE) == 1.0, "bound it from above"),
        (lambda e: e - mescal.variance(score, over=PEOPLE) <= 1.0, "turn the sign"),
        (lambda e: max(e, e / e) <= 1.0, "mescal.worst"),
        (lambda e: mescal.worst([e, e]) >= 0.5, "every lower bound by itself"),
        (lambda e: mescal.worst([]) <= 0.5, "at least one"),
        (lambda e: mescal.worst([e, 3.0]) <= 0.5, "expectations and ratios"),
        (lambda e: (e / e) / e <= 0.5, "mescal.of"),
        (lambda e: 1.0 / (e / e) <= 0.5, "mescal.of"),
        (lambda e: (e / e) * e <= 0.5, "mescal.of"),
        (lambda e: (e / e) / (e / e) <= 0.5, "over (E(score, Population(200 rows))) / "),
        (lambda e: mescal.rate("positive", given=score, over=PEOPLE) >= 0.5, "rate of str 'positive'"),
        (lambda e: mescal.chance(score, over=PEOPLE) + e <= 0.5, "a bound on it"),
        (lambda e: mescal.chance(score, over=PEOPLE) <= 0.0, "0.999 for nearly always"),
        (lambda e: mescal.chance(score, over=PEOPLE) == 0.5, "by <= or by >="),
        (lambda e: mescal.cvar(score, 90, over=PEOPLE) <= 1.0, "write level=0.9"),
        (lambda e: mescal.entropic(score, 0, over=PEOPLE) <= 1.0, "in units of the function"),
        (lambda e: mescal.rate(score, given=[1, 2], over=PEOPLE) <= 1.0, "one truth value per row"),
        (
            lambda e: mescal.rate(score, given=LABELS > 0, over=mescal.stream(PEOPLE)) <= 1.0,
            "draw from these rows alone",
        ),
        (lambda e: mescal.of(3, e) <= 1.0, "a function"),  # pyright: ignore[reportArgumentType]
        (lambda e: mescal.of(lambda a: a) <= 1.0, "expectations and ratios"),
        (lambda e: (e / e) != 1.0, "<="),
    ],
)
def test_what_makes_no_sense_is_refused_with_advice(build, said):
    with pytest.raises(InputError) as raised:
        mescal.Problem(E(lambda w: w @ w), {"c": build(E(score, over=PEOPLE))})
    assert said in str(raised.value) and "What to do" in str(raised.value)


def test_scalars_of_a_result_are_those_of_its_x():
    """A denominator in a unit of 1e-6 may be anything within the tolerance for a solver; not for the judge, nor for readers."""
    above, below = (1e-6 * E(lambda x, s=s: 1 + s * x[0] ** 2) for s in (3.0, 1.0))
    result = mescal.minimize(mescal.Problem(mescal.ratio(above, below, floor=1e-9)), np.array([0.5]), seed=0)
    assert result.auxiliary["objective: denominator"] == pytest.approx(1e-6 * (1 + result.x[0] ** 2), rel=1e-6)
    assert result.converged and abs(result.x[0]) < 0.01
